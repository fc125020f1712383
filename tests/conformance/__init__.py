"""A DeviceArray against a plain JAX array: the same program, run on both, must do the same."""
