"""From graphs to compiled functions: what knows the internals of PyTensor's numba backend."""
