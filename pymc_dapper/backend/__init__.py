"""What knows the internals of PyTensor's numba backend, and of PyMC. It imports nothing of ours."""
