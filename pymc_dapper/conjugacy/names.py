"""Names of distributions and of their parameters, for messages."""

from pytensor.graph import Op

PARAMETERS = {
    "Bernoulli": ("p",),
    "Beta": ("alpha", "beta"),
    "Binomial": ("n", "p"),
    "Categorical": ("p",),
    "Exponential": ("scale",),
    "Gamma": ("shape", "scale"),
    "Geometric": ("p",),
    "HalfNormal": ("location", "sd"),
    "InverseGamma": ("shape", "scale"),
    "LogNormal": ("mean of the logarithm", "sd of the logarithm"),
    "Multinomial": ("n", "p"),
    "MvNormal": ("mean", "covariance"),
    "NegativeBinomial": ("n", "p"),
    "Normal": ("mean", "sd"),
    "Poisson": ("mean",),
    "Uniform": ("lower bound", "upper bound"),
}
"""Names of the parameters of distributions, in the order of ``op.dist_params``."""


LONGER = {"InvGamma": "InverseGamma", "NegBinomial": "NegativeBinomial", "WeibullBeta": "Weibull"}
"""PyMC's names, if the operation's differ."""


def family_name(rv_type: type[Op]) -> str:
    """Name the distribution behind a type of random variable operation."""
    name = rv_type.__name__.removesuffix("RandomVariable").removesuffix("RV")
    return LONGER.get(name, name)
