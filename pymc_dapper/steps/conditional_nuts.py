"""NUTS that evaluates only factors of the variables that it moves."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt
from pytensor.graph import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType, ValueGradFunction
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.checks import known
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.present import Present, present_factors
from pymc_dapper.steps.progress import stage

JITTER_TRIES = 10
"""How often a jittered start is drawn until its log-density is finite, as by ``pm.sample``."""

TARGET_ACCEPT = 0.95
"""Given records, the density changes from one iteration to the next, and so does the step size that
fits; of a hierarchy, it is narrow where the scale is small. So steps are shorter than by PyMC's
0.8. Trajectories take hardly longer, and fewer diverge: 13 of 4,000 for 95, before diverging ones
were begun again (`STEPS`; the model is three_histograms in `benchmarks.as_they_come`)."""

STEPS = 10.0 ** -np.arange(6)
"""How long steps are where longer ones diverge, in units of the one that was adapted."""

OPTIONS = sorted({x for kind in pm.NUTS.__mro__[:3] for x in signature(kind.__init__).parameters})
"""What ``pm.NUTS`` takes, by itself or through what it is derived from."""


class NUTS(pm.NUTS):
    """PyMC's, started as ``pm.sample`` starts a NUTS of its own, by ``jitter+adapt_diag``.

    ``pm.sample`` does so only for a model that NUTS moves alone. NumPy's warnings of energies that
    aren't finite are left out: such a trajectory diverges. PyMC counts a
    step as divergent if shorter ones diverge, too.
    """

    def step(self, point: PointType) -> Any:
        """Take a step. Arrays are in C order, as when compiled: PyMC's start may have others."""
        return super().step({name: np.asarray(x, None, "C") for name, x in point.items()})

    def astep(self, q0: Any) -> Any:
        """Take a step; the first one of tuning from a jittered point."""
        with np.errstate(invalid="ignore", over="ignore"):
            return super().astep(self._jittered(q0) if self.tune and not self.iter_count else q0)

    def _hamiltonian_step(self, start: Any, p0: Any, step_size: Any) -> Any:
        """Where a trajectory diverges after tuning, begin others, with steps a tenth as long.

        Trajectories of all longer steps have to diverge from its end, too, or else the chain stays.
        So the way back is as probable as the way there (delayed rejection).

        No step size is learned where there is no gradient, as of a probability clipped to 1. Every
        step diverges there, however short, and all other trajectories would take longer.
        """
        made = super()._hamiltonian_step(start, p0, step_size)
        if not np.isfinite(start.q_grad).all():
            return made._replace(accept_stat=self.target_accept)
        if self.tune or not made.divergence_info:
            return made
        for k in range(1, len(STEPS)):
            made = self._trajectory(start, STEPS[k] * step_size)
            if not made.divergence_info:
                longer = (self._trajectory(made.end, x * step_size) for x in STEPS[:k])
                return made if all(x.divergence_info for x in longer) else made._replace(end=start)
        return made._replace(end=start)

    def _trajectory(self, at: Any, step_size: Any) -> Any:
        start = self.integrator.compute_state(at.q, self.potential.random())
        return super()._hamiltonian_step(start, start.p, step_size)

    def _jittered(self, start: Any) -> Any:
        at_rest = np.zeros_like(start.data)
        for _ in range(JITTER_TRIES):
            moved = start.data + self.rng.uniform(-1, 1, start.data.size)
            point = start._replace(data=moved)
            if np.isfinite(self.integrator.compute_state(point, at_rest).energy):
                return point
        return start


def conditional_nuts(
    values: Sequence[TensorVariable],
    model: pm.Model,
    *,
    present: Present | None = None,
    **options: Any,
) -> NUTS:
    """Build PyMC's NUTS for some variables, without the factors that don't depend on them.

    PyMC's NUTS evaluates the model's whole log-density at each leapfrog step, including the privacy
    mechanism, even if that doesn't depend on the moved variables. Here the stat ``lp`` is the
    log-density of the evaluated factors, for records with ``present`` rows of these alone.
    """
    factors = present_factors(model, dependent_factors(model, values), present or {})
    cost = pt.add(*(factor.sum() for factor in factors.values()))
    return nuts_on(cost, values, model, initial_point(model), **options)


def nuts_on(
    cost: TensorVariable,
    values: Sequence[TensorVariable],
    model: pm.Model,
    point: PointType,
    **options: Any,
) -> NUTS:
    """Build PyMC's NUTS for some variables, with a log-density of one's own.

    Its other inputs are taken by name from NUTS' points, such as this one. Options are passed on to
    ``pm.NUTS``, which would leave unknown ones aside; by default ``target_accept`` is 0.95.
    """
    known(options, OPTIONS, "nuts: pm.NUTS has no option")
    values = list(values)
    stage(f"Compiling NUTS for {', '.join(f"'{model.values_to_rvs[x].name}'" for x in values)}")
    inputs = set(explicit_graph_inputs([cost]))
    # Without other inputs, NUTS would take the whole point as its own variables.
    besides = [x for x in model.value_vars if x not in values]
    entering = [x for x in besides if x in inputs] or besides[:1]
    others = {x: point[x.name] for x in entering}
    compile_kwargs = {"on_unused_input": "ignore", "trust_input": True}
    compile_kwargs |= options.get("compile_kwargs") or {}
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
    start = np.concatenate([np.ravel(point[x.name]) for x in values])
    _compile(function, start)
    if not options.keys() & {"potential", "scaling"}:
        options["potential"] = QuadPotentialDiagAdapt(start.size, start, np.ones(start.size), 10)
    options = {"target_accept": TARGET_ACCEPT, **options}
    return NUTS(values, model=model, initial_point=point, logp_dlogp_func=function, **options)


def _compile(function: ValueGradFunction, start: np.ndarray) -> None:
    """Call the function once: PyTensor compiles then, and forked workers inherit the result."""
    function(start)
