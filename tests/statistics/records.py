"""Records that statistics are taken of."""

import numpy as np

N = 9
RNG = np.random.default_rng(4)
CATEGORY = RNG.integers(0, 4, size=N)
CATEGORIES = RNG.integers(0, 3, size=(N, 2))
NUMBER = RNG.normal(scale=2.0, size=N)
NUMBERS = RNG.normal(scale=2.0, size=(N, 2))
