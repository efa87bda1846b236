"""Numba kernels that sweep over records: arrays in, arrays out."""
