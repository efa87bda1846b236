"""Numba kernels that sweep over tables of counts: arrays in, arrays out."""
