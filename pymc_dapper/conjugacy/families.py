"""Families of priors that are conjugate to something: their parameters, draws and densities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Op
from pytensor.tensor.random import basic as laws
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.kernels import families as kernels
from pymc_dapper.conjugacy.names import family_name
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.known import known_value

Parameters = tuple[TensorVariable, ...]


@dataclass(frozen=True)
class Family:
    """A family of distributions to which conditionals of a parameter belong.

    Each likelihood that it is conjugate to adds a term to its parameters.

    Attributes
    ----------
    name : str
        The family's name.
    parameters : tuple of str
        Names of its parameters.
    draw : callable
        ``draw(rng, *parameters) -> theta``, all arrays of theta's shape.
    log_density : callable
        ``log_density(theta, *parameters) -> float``: up to a constant, over all entries.
    positive : bool
        Whether theta is positive, so that roots of it are powers of it.
    kernel : callable, optional
        For numba: what draws the same in compiled code, ``kernel(rng, width, out, *parameters)``.
        All arrays are flat there; ``width`` is the length of theta's last axis. Without it, each
        draw crosses from compiled code to Python and back.
    """

    name: str
    parameters: tuple[str, ...]
    draw: Callable[..., np.ndarray]
    log_density: Callable[..., float]
    positive: bool = True
    kernel: Callable[..., None] | None = None


def drawn_by(kernel: Any) -> Callable[..., np.ndarray]:
    """Make the draw in Python of a kernel's source."""

    def draw(rng: np.random.Generator, *parameters: np.ndarray) -> np.ndarray:
        shape = np.shape(parameters[0])
        out = np.empty(shape)
        flat = (np.ravel(x) for x in parameters)
        kernel.py_func(rng, shape[-1] if shape else 1, out.reshape(-1), *flat)
        return out

    return draw


BETA = Family(
    "Beta",
    ("a", "b"),
    drawn_by(kernels.draw_beta),
    lambda p, a, b: float(((a - 1) * np.log(p) + (b - 1) * np.log1p(-p)).sum()),
    kernel=kernels.draw_beta,
)
GAMMA = Family(
    "Gamma",
    ("shape", "rate"),
    drawn_by(kernels.draw_gamma),
    lambda x, shape, rate: float(((shape - 1) * np.log(x) - rate * x).sum()),
    kernel=kernels.draw_gamma,
)
INVERSE_GAMMA = Family(
    "InverseGamma",
    ("shape", "scale"),
    drawn_by(kernels.draw_inverse_gamma),
    lambda x, shape, scale: float((-(shape + 1) * np.log(x) - scale / x).sum()),
    kernel=kernels.draw_inverse_gamma,
)
DIRICHLET = Family(
    "Dirichlet",
    ("a",),
    drawn_by(kernels.draw_dirichlet),
    lambda p, a: float(((a - 1) * np.log(p)).sum()),
    kernel=kernels.draw_dirichlet,
)

ReadPrior = Callable[..., tuple[Family, Parameters]]
_priors: dict[type[Op], ReadPrior] = {}


def conjugate_prior(distribution: Any) -> Callable[[ReadPrior], ReadPrior]:
    """Register how a prior distribution is written as a member of a conjugate family.

    Parameters
    ----------
    distribution : type
        A PyMC distribution, such as ``pm.Exponential``, or the type of its random variable
        operation.

    Returns
    -------
    callable
        Decorator for a function ``read(*parameters) -> (family, family's parameters)`` of the
        symbolic parameters of the distribution, in the order of its operation's ``dist_params``.

    Examples
    --------
    >>> @conjugate_prior(pm.Weibull)
    ... def weibull(alpha, beta):
    ...     if known_value(alpha) != 1:
    ...         raise NotConjugateError("its prior is Weibull with another shape than 1")
    ...     return GAMMA, (alpha, 1 / beta)
    """
    op_type = rv_type(distribution)

    def register(read: ReadPrior) -> ReadPrior:
        _priors[op_type] = read
        return read

    return register


def rv_type(distribution: Any) -> type[Op]:
    """Return the type of the operation behind a PyMC distribution."""
    if isinstance(distribution, type) and issubclass(distribution, Op):
        return distribution
    found = getattr(distribution, "rv_type", None) or type(getattr(distribution, "rv_op", None))
    if not (isinstance(found, type) and issubclass(found, Op)):
        raise TypeError(f"{distribution!r} is neither a PyMC distribution nor a type of Op")
    return found


def check_prior(op: Op) -> None:
    """Refuse a prior that belongs to no conjugate family."""
    if type(op) not in _priors:
        raise NotConjugateError(
            f"its prior ({family_name(type(op))}) belongs to no conjugate family known here; known "
            "are " + ", ".join(sorted(family_name(t) for t in _priors)) + ", Normal and MvNormal"
        )


def read_prior(op: Op, parameters: Sequence[TensorVariable]) -> tuple[Family, Parameters]:
    """Write a prior as a member of a conjugate family; refuse one that belongs to none."""
    check_prior(op)
    return _priors[type(op)](*parameters)


@conjugate_prior(laws.UniformRV)
def _uniform(low: TensorVariable, high: TensorVariable) -> tuple[Family, Parameters]:
    bounds = known_value(low), known_value(high)
    if any(x is None for x in bounds) or np.any(bounds[0] != 0) or np.any(bounds[1] != 1):
        raise NotConjugateError("its prior is Uniform, which is conjugate on [0, 1] only")
    return BETA, (pt.as_tensor(1.0), pt.as_tensor(1.0))


conjugate_prior(laws.BetaRV)(lambda a, b: (BETA, (a, b)))
conjugate_prior(laws.GammaRV)(lambda shape, scale: (GAMMA, (shape, 1 / scale)))
conjugate_prior(laws.ExponentialRV)(lambda scale: (GAMMA, (pt.as_tensor(1.0), 1 / scale)))
conjugate_prior(laws.InvGammaRV)(lambda shape, scale: (INVERSE_GAMMA, (shape, scale)))
conjugate_prior(laws.DirichletRV)(lambda a: (DIRICHLET, (a,)))
