"""Sweeps over records, in numba: arrays in, arrays out."""
