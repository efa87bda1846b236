"""Log-densities of a model with conjugate parameters marginalised.

By Bayes' rule p(x) = p(x given theta) p(theta) / p(theta given x), for any theta. If the
conditional p(theta given x) is of a known family, the right-hand side can be evaluated at one fixed
theta. So every pair of :mod:`pymc_dapper.conjugacy.rules` has a marginal without another formula:
Beta and Binomial give the beta-binomial, Gamma and Poisson the negative binomial, Dirichlet and
Multinomial the Dirichlet-multinomial.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.conditional import Conditional
from pymc_dapper.conjugacy.families import BETA, DIRICHLET, GAMMA
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.view import ModelView


def _log_beta(theta: np.ndarray, a: Any, b: Any) -> TensorVariable:
    log_constant = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
    return (log_constant + (a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta)).sum()


def _log_gamma(theta: np.ndarray, shape: Any, rate: Any) -> TensorVariable:
    log_constant = shape * pt.log(rate) - pt.gammaln(shape)
    return (log_constant + (shape - 1) * np.log(theta) - rate * theta).sum()


def _log_dirichlet(theta: np.ndarray, a: Any) -> TensorVariable:
    log_constant = pt.gammaln(a.sum(axis=-1)).sum() - pt.gammaln(a).sum()
    return log_constant + ((a - 1) * np.log(theta)).sum()


LOG_DENSITIES: dict[str, Callable[..., TensorVariable]] = {
    BETA.name: _log_beta,
    GAMMA.name: _log_gamma,
    DIRICHLET.name: _log_dirichlet,
}
"""The families that parameters of counts have, with their normalised log-densities."""


def _fixed_theta(conditional: Conditional) -> np.ndarray:
    """Return a value of the parameter at which all likelihoods are positive."""
    [shape] = conditional.shapes
    at = {BETA.name: 0.5, GAMMA.name: 1.0, DIRICHLET.name: 1.0 / shape[-1] if shape else 1.0}
    return np.full(shape, at[conditional.family.name])


def parameters_to_marginalise(
    conditionals: Sequence[Conditional], counts: Sequence[TensorVariable]
) -> list[Conditional]:
    """Find the parameters, each with its own conditional, that can be marginalised above counts.

    They have a conditional of a known family, and the distribution of some counts depends on them.
    No two of them have a child in common.
    """
    found, taken = [], dict[str, str]()
    for conditional in conditionals:
        with suppress(NotConjugateError):
            _check(conditional, [rv.name for rv in counts], taken)
            found.append(conditional)
    return found


def marginalise(
    view: ModelView, conditionals: Sequence[Conditional], counts: Sequence[TensorVariable]
) -> dict[str, TensorVariable]:
    """Write a model's log-density, factor by factor, with parameters marginalised.

    The result is in terms of the value variables except the parameters'. Factors that depend on a
    parameter, including its own prior, are evaluated at a fixed value of it. The correction to the
    integral is part of the factor of the first dependent counts. A constant may be left out.

    Raises
    ------
    NotConjugateError
        If a parameter can't be marginalised.
    """
    names = [rv.name for rv in counts]
    # The parameters' own priors too: they may depend on counts.
    model = view.model
    written = view.named_log_densities([*model.basic_RVs, *model.potentials])
    fixed: dict[Variable, Variable] = {}
    marginal: dict[str, TensorVariable] = {}
    taken: dict[str, str] = {}
    for conditional in conditionals:
        first = _check(conditional, names, taken)
        theta = _fixed_theta(conditional)
        [at_theta] = rebuild(conditional.to_values, {conditional.thetas[0]: pt.constant(theta)})
        value = view.values[model.rvs_to_values[conditional.rvs[0]]]
        fixed[value] = at_theta.astype(value.dtype)
        given = LOG_DENSITIES[conditional.family.name](theta, *conditional.parameters)
        marginal[first] = marginal.get(first, 0.0) - given
    written = dict(zip(written, rebuild(list(written.values()), fixed), strict=True))
    return {
        name: graph.sum() + marginal[name] if name in marginal else graph
        for name, graph in written.items()
    }


def _check(conditional: Conditional, counts: Sequence[str], taken: dict[str, str]) -> str:
    """Refuse parameters that can't be marginalised; return the first dependent counts."""
    [rv] = conditional.rvs
    children = [name for name in counts if name in conditional.children]
    if conditional.family.name not in LOG_DENSITIES or not children:
        raise NotConjugateError(
            f"'{rv.name}' can't be marginalised: it isn't a conjugate parameter of "
            + ", ".join(f"'{name}'" for name in counts)
            + ". Leave it to a step of its own"
        )
    about = (rv.name, *conditional.children)
    for name in about:
        if name in taken:
            raise NotConjugateError(
                f"'{rv.name}' and '{taken[name]}' can't both be marginalised: the distribution "
                f"of '{name}' depends on both. Leave one of them to a step of its own"
            )
    taken |= dict.fromkeys(about, rv.name)
    return children[0]
