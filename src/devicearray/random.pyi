from jax.random import *
