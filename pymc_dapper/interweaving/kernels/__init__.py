"""Moves of parameters, in numba: arrays in, arrays out."""
