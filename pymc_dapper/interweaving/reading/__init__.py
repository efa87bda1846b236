"""Records as a function of parameters and of noise: x_i = F^-1(u_i; theta)."""

from pymc_dapper.interweaving.reading import families, series  # noqa: F401  (these register maps)
