"""Conjugate pairs: what a child adds to the parameters of its parameter's prior.

Each rule's formula is its docstring: the child's likelihood as a function of theta, and with it the
conditional. Sums run over the entries of the child that share theta.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph import Op
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Link
from pymc_dapper.conjugacy.families import BETA, DIRICHLET, GAMMA, INVERSE_GAMMA, Family, rv_type
from pymc_dapper.conjugacy.names import family_name
from pymc_dapper.graphs.errors import NotConjugateError

Rule = Callable[[Link], Sequence[TensorVariable]]


@dataclass(frozen=True)
class Pair:
    """The place of theta in a child's distribution that a rule needs."""

    rule: Rule
    position: int
    """Which of the child's parameters."""
    power: float
    """Which power of theta it must be."""
    scaled: bool
    """Whether it may be a multiple of that power."""


_pairs: dict[tuple[str, type[Op]], list[Pair]] = {}


def conjugate_rule(
    family: Family, child: Any, *, parameter: int = 0, power: float = 1.0, scaled: bool = False
) -> Callable[[Rule], Rule]:
    """Register a conjugate pair.

    Parameters
    ----------
    family : Family
        The family of the prior.
    child : type
        A PyMC distribution, such as ``pm.Poisson``, or the type of its random variable operation.
    parameter : int, default 0
        The parameter of the child that is made of theta, in the order of its operation's
        ``dist_params`` (for example ``mu, sigma`` of a Normal and ``shape, scale`` of a Gamma).
    power : float, default 1
        The power of theta in that parameter: -0.5 if theta is a precision and the parameter a
        standard deviation.
    scaled : bool, default False
        Whether it may be any multiple of that power; the rule then uses ``link.coefficient``.

    Returns
    -------
    callable
        Decorator for the rule, ``rule(link) -> terms``: what the child adds to each parameter of
        the family, in the shape of theta. ``link.value`` is the child's value, ``link.parameters``
        are the parameters of its distribution, and ``link.total(terms)`` adds up terms, one for
        each entry of the child, by the entry of theta they belong to.

    Examples
    --------
    >>> @conjugate_rule(GAMMA, pm.Poisson, scaled=True)
    ... def gamma_poisson(link):
    ...     return link.total(link.value), link.total(link.coefficient)
    """
    op_type = rv_type(child)

    def register(rule: Rule) -> Rule:
        pairs = _pairs.setdefault((family.name, op_type), [])
        pairs.append(Pair(rule, parameter, power, scaled))
        return rule

    return register


def find_rule(family: Family, link: Link) -> Rule:
    """Find the rule for a child; without one, say what doesn't match."""
    child, relation = link.child, link.relation
    pairs = _pairs.get((family.name, type(child.op)))
    if pairs is None:
        known = sorted(family_name(t) for name, t in _pairs if name == family.name)
        raise NotConjugateError(
            f"the likelihood of '{child.name}' ({child.family}) isn't conjugate to "
            f"{_a(family.name)} prior; those of {', '.join(known)} are"
        )
    for pair in pairs:
        same_power = (pair.position, pair.power) == (link.position, relation.exponent)
        if same_power and (pair.scaled or not relation.scaled):
            return pair.rule

    def formula(position: int, power: float, scaled: bool) -> str:
        of_theta = f"{link.theta.name}" if power == 1 else f"{link.theta.name}^{power:g}"
        return f"{child.name_parameter(position)} is {'c * ' if scaled else ''}{of_theta}"

    wanted = " or ".join(formula(pair.position, pair.power, pair.scaled) for pair in pairs)
    raise NotConjugateError(
        f"{formula(link.position, relation.exponent, relation.scaled)}; {_a(family.name)} prior is "
        f"conjugate where {wanted}"
    )


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


@conjugate_rule(BETA, pm.Bernoulli)
def beta_bernoulli(link: Link) -> Sequence[TensorVariable]:
    """Likelihood p^x (1 - p)^(1 - x).

    Conditional Beta(a + sum x, b + sum (1 - x)).
    """
    x = link.value
    return link.total(x), link.total(1 - x)


@conjugate_rule(BETA, pm.Binomial, parameter=1)
def beta_binomial(link: Link) -> Sequence[TensorVariable]:
    """Likelihood p^x (1 - p)^(n - x).

    Conditional Beta(a + sum x, b + sum (n - x)).
    """
    x, (n, _) = link.value, link.parameters
    return link.total(x), link.total(n - x)


@conjugate_rule(BETA, pm.Geometric)
def beta_geometric(link: Link) -> Sequence[TensorVariable]:
    """Likelihood p (1 - p)^(x - 1).

    Conditional Beta(a + sum 1, b + sum (x - 1)).
    """
    return link.total(1.0), link.total(link.value - 1)


@conjugate_rule(BETA, pm.NegativeBinomial, parameter=1)
def beta_negative_binomial(link: Link) -> Sequence[TensorVariable]:
    """Likelihood p^n (1 - p)^x, of x failures before n successes.

    Conditional Beta(a + sum n, b + sum x).
    """
    n, _ = link.parameters
    return link.total(n), link.total(link.value)


@conjugate_rule(DIRICHLET, pm.Categorical)
def dirichlet_categorical(link: Link) -> Sequence[TensorVariable]:
    """Likelihood p_x.

    Conditional Dirichlet(a_k + number of x equal to k).
    """
    return (link.count(),)


@conjugate_rule(DIRICHLET, pm.Multinomial, parameter=1)
def dirichlet_multinomial(link: Link) -> Sequence[TensorVariable]:
    """Likelihood prod_k p_k^x_k.

    Conditional Dirichlet(a_k + sum x_k).
    """
    return (link.total(link.value),)


@conjugate_rule(GAMMA, pm.Poisson, scaled=True)
def gamma_poisson(link: Link) -> Sequence[TensorVariable]:
    """Likelihood theta^x exp(-c theta), the mean being c theta.

    Conditional Gamma(shape + sum x, rate + sum c).
    """
    return link.total(link.value), link.total(link.coefficient)


@conjugate_rule(GAMMA, pm.Exponential, power=-1, scaled=True)
@conjugate_rule(INVERSE_GAMMA, pm.Exponential, scaled=True)
def of_exponential(link: Link) -> Sequence[TensorVariable]:
    """Likelihood t exp(-t x / c), the scale being c / t.

    Conditional Gamma(shape + sum 1, rate + sum x / c) of the rate t = theta, and
    InverseGamma(shape + sum 1, scale + sum x / c) of the scale theta = 1 / t.
    """
    return link.total(1.0), link.total(link.value / link.coefficient)


@conjugate_rule(GAMMA, pm.Gamma, parameter=1, power=-1, scaled=True)
@conjugate_rule(INVERSE_GAMMA, pm.Gamma, parameter=1, scaled=True)
def of_gamma(link: Link) -> Sequence[TensorVariable]:
    """Likelihood t^k exp(-t x / c), the shape being k and the scale c / t.

    Conditional Gamma(shape + sum k, rate + sum x / c) of the rate t = theta, and
    InverseGamma(shape + sum k, scale + sum x / c) of the scale theta = 1 / t.
    """
    k, _ = link.parameters
    return link.total(k), link.total(link.value / link.coefficient)


@conjugate_rule(GAMMA, pm.InverseGamma, parameter=1, scaled=True)
def gamma_inverse_gamma(link: Link) -> Sequence[TensorVariable]:
    """Likelihood theta^k exp(-c theta / x), the shape being k and the scale c theta.

    Conditional Gamma(shape + sum k, rate + sum c / x).
    """
    k, _ = link.parameters
    return link.total(k), link.total(link.coefficient / link.value)


@conjugate_rule(GAMMA, pm.Normal, parameter=1, power=-0.5, scaled=True)
@conjugate_rule(GAMMA, pm.HalfNormal, parameter=1, power=-0.5, scaled=True)
@conjugate_rule(INVERSE_GAMMA, pm.Normal, parameter=1, power=0.5, scaled=True)
@conjugate_rule(INVERSE_GAMMA, pm.HalfNormal, parameter=1, power=0.5, scaled=True)
def of_normal(link: Link) -> Sequence[TensorVariable]:
    """Likelihood t^(1/2) exp(-t r^2 / 2), r = (x - location) / c, the sd being c t^(-1/2).

    Conditional Gamma(shape + sum 1/2, rate + sum r^2 / 2) of the precision t = theta, and
    InverseGamma(shape + sum 1/2, scale + sum r^2 / 2) of the variance theta = 1 / t.
    """
    location, _ = link.parameters
    return _of_residuals(link, link.value - location)


@conjugate_rule(GAMMA, pm.LogNormal, parameter=1, power=-0.5, scaled=True)
@conjugate_rule(INVERSE_GAMMA, pm.LogNormal, parameter=1, power=0.5, scaled=True)
def of_log_normal(link: Link) -> Sequence[TensorVariable]:
    """Likelihood and conditionals as those of a Normal, with r = (log x - mu) / c."""
    mu, _ = link.parameters
    return _of_residuals(link, pt.log(link.value) - mu)


def _of_residuals(link: Link, residual: TensorVariable) -> Sequence[TensorVariable]:
    squares = (residual / link.coefficient) ** 2
    return link.total(0.5), link.total(squares / 2)
