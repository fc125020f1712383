from jax.numpy.linalg import *
