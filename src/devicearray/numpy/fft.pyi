from jax.numpy.fft import *
