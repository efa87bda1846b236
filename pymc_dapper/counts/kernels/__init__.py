"""Sweeps over tables of counts, in numba: arrays in, arrays out."""
