"""Numba kernels: arrays in, arrays out. They know neither PyMC nor PyTensor."""
