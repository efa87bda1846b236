"""A graph as the source of one function of scalars and loops, which numba compiles at once.

PyTensor's backend compiles a function for each operation, and functions for what numba overloads
in it: some hundred for a log-density, each typed and optimised by itself. Here, an array is a
function from indices to a scalar expression. It is written out where it is used, or stored first if
it is used several times.
"""
