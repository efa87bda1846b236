"""Join the kernel with a model: tables of weights, and sums over them with their gradient."""
