"""NUTS that evaluates only what depends on the variables it moves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType, ValueGradFunction
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.present import Present, present_factors
from pymc_dapper.steps.progress import stage


class NUTS(pm.NUTS):
    """PyMC's, without NumPy's warnings of energies that aren't finite.

    A trajectory that comes there diverges, which PyMC counts and tells of.
    """

    def astep(self, *args: Any) -> Any:
        """Take a step."""
        with np.errstate(invalid="ignore", over="ignore"):
            return super().astep(*args)


def lean_nuts(
    values: Sequence[TensorVariable],
    model: Model,
    *,
    point: PointType | None = None,
    present: Present | None = None,
    **options: Any,
) -> NUTS:
    """Build PyMC's NUTS for some variables, without the factors that don't depend on them.

    PyMC's own evaluates the model's whole log-density at each leapfrog step, the privacy mechanism
    among it, even where that depends on nothing that NUTS moves. The stat ``lp`` is the log-density
    of the factors that this one evaluates, of records with ``present`` rows for these alone. The
    model's own initial point is taken if none is given, and options are passed on to ``pm.NUTS``.
    """
    point = initial_point(model) if point is None else point
    factors = present_factors(model, dependent_factors(model, values), present or {})
    cost = pt.add(*(factor.sum() for factor in factors.values()))
    return nuts_on(cost, values, model.value_vars, model, point, **options)


def nuts_on(
    cost: TensorVariable,
    values: Sequence[TensorVariable],
    besides: Sequence[TensorVariable],
    model: Model,
    point: PointType,
    *,
    around: Callable[[ValueGradFunction], Callable] | None = None,
    **options: Any,
) -> NUTS:
    """Build PyMC's NUTS for some variables, with a log-density of one's own.

    What it depends on ``besides`` the values is taken by name from the points that NUTS gets, such
    as this one. NUTS calls what ``around`` makes of its function, if that is given.
    """
    values = list(values)
    stage(f"Compiling NUTS for {', '.join(f"'{model.values_to_rvs[x].name}'" for x in values)}")
    inputs = set(explicit_graph_inputs([cost]))
    # Where nothing besides enters, NUTS would take all of the point for its own variables.
    besides = [x for x in besides if x not in values]
    entering = [x for x in besides if x in inputs] or besides[:1]
    others = {x: point[x.name] for x in entering}
    compile_kwargs = {"on_unused_input": "ignore", **(options.get("compile_kwargs") or {})}
    if compile_kwargs.get("mode") is None:  # any other will do as well
        compile_kwargs["mode"] = numba_mode(None)
    function = ValueGradFunction(
        [cost],
        values,
        others,
        model=model,
        initial_point=point,
        ravel_inputs=True,
        **compile_kwargs,
    )
    function.set_extra_values(point)
    function.trust_input = True
    _compile(function, [point[x.name] for x in values])
    if around is not None:
        function._pytensor_function = around(function)
    return NUTS(values, model=model, initial_point=point, logp_dlogp_func=function, **options)


def _compile(function: ValueGradFunction, start: Sequence[np.ndarray]) -> None:
    """Call the function once: PyTensor compiles then, and forked workers inherit the result."""
    function(np.concatenate([np.ravel(x) for x in start]))
