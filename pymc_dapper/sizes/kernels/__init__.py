"""The algorithm, in NumPy and numba."""
