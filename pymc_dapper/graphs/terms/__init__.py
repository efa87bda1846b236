"""Log-densities as terms, each of a few entries of linear functions of an array."""
