"""Records as a function of parameters and of noise: x_i = F^-1(u_i; theta)."""

from pymc_dapper.interweaving.reading import families  # noqa: F401  (registers its maps)
