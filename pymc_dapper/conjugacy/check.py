"""A numerical check of a conditional, made before anything is sampled."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.conditional import Conditional
from pymc_dapper.graphs.asked_once import answer, log_densities
from pymc_dapper.graphs.errors import FAILURES, NotConjugateError
from pymc_dapper.graphs.evaluation import agree, at_point, log_density_at
from pymc_dapper.graphs.present import present_factors
from pymc_dapper.graphs.prior_draws import draw_values, is_finite

TOLERANCE = 1e-6
"""Relative difference of two log-density ratios that rounding may leave."""


def check_conditional(conditional: Conditional, point: Mapping[str, np.ndarray]) -> None:
    """Refuse a conditional whose density ratios differ from the model's.

    Between two values of theta, given everything else, both must be the same. They are compared
    at a draw of everything else from the prior, if there is one, and else at the given point.
    """
    family = conditional.family
    names = " and ".join(f"'{rv.name}'" for rv in conditional.rvs)
    rng = np.random.default_rng(0)
    model = conditional.model
    written = log_density_at(model, _written(conditional))
    values_at = at_point(model, conditional.to_values)
    draw = partial(draw_values, conditional.view, model.free_RVs, np.random.default_rng(0), {})
    drawn = answer(model, "a draw from the prior", draw)
    states = [point] if drawn is None or not is_finite(drawn) else [drawn, point]
    sizes = {model.rvs_to_values[n].name for n in conditional.present.values()}
    for state in states:
        # At least one record is present: functions of empty matrices can't be evaluated in Python.
        state = {**state, **{n: np.maximum(state[n], 1) for n in sizes}}
        try:
            parameters = [np.asarray(x) for x in at_point(model, conditional.parameters)(state)]
            first, second = (family.draw(rng, *parameters) for _ in range(2))
        except FAILURES as error:
            raise NotConjugateError(
                f"the conditional of {names} can't be drawn from: {error}. Look for data, or a "
                "start of other variables, that the model excludes"
            ) from error
        expected = []
        for theta in (first, second):
            natural = dict(zip(conditional.thetas, conditional.split(theta), strict=True))
            values = dict(zip(conditional.values, values_at(state, natural), strict=True))
            expected.append(written(state, values))
        if not np.all(np.isfinite(expected)):
            continue
        computed = [family.log_density(theta, *parameters) for theta in (first, second)]
        size = max(abs(x) for x in (*expected, *computed))
        if not agree(np.diff(computed), np.diff(expected), TOLERANCE, size):
            raise NotConjugateError(
                f"the conditional of {names} was read wrongly: between two values of it the "
                f"model's log-density changes by {expected[1] - expected[0]:.10g}, the "
                f"{family.name} conditional's by {computed[1] - computed[0]:.10g}. Nothing "
                "has been sampled. Either a rule registered with `conjugate_rule` is wrong, or "
                "this is a fault of pymc_dapper's: please report the model"
            )
        return


def _written(conditional: Conditional) -> list[TensorVariable]:
    """Return the model's own log-density of the parameters and of their present children."""
    model, view = conditional.model, conditional.view
    factors = [*conditional.rvs, *(model[name] for name in conditional.children)]
    written = log_densities(model, factors)
    by_name = dict(zip([x.name for x in factors], written, strict=True))
    # Without the Jacobian of theta's transform, as a density of theta itself.
    transforms = ((rv, model.rvs_to_transforms[rv]) for rv in conditional.rvs)
    of = model.rvs_to_values
    jacobians = [x.log_jac_det(of[rv], *rv.owner.inputs) for rv, x in transforms if x is not None]
    graphs = view(present_factors(model, by_name, conditional.present).values())
    return [*graphs, *(-x for x in view.at_values(jacobians))]
