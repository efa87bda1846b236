"""The fraction of missing information of a cell's parameters, from points of its chains."""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import xarray as xr
from pymc import NUTS
from pymc.step_methods import BlockedStep, CompoundStep
from pymc.vartypes import discrete_types

from pymc_dapper.backend.internals import PointType
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.counts.step import CountStep
from pymc_dapper.diagnostics.missing_information import (
    drawn_again,
    fraction_of_missing_information,
    sweeps_between_draws,
)
from pymc_dapper.records.step import DapperStep
from pymc_dapper.studies.models import PreparedModel


def missing_information(
    prepared: PreparedModel,
    points: Sequence[Sequence[PointType]],
    names: Sequence[str],
    seed: np.random.SeedSequence,
    check_time: Callable[[], None],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Estimate the fraction of missing information from points that chains came by.

    As :func:`pymc_dapper.diagnostics.missing_information`, with the steps that sampled; NUTS is
    tuned by then. Each chain has values of the model's value variables at draws after tuning.
    Returns the fraction and its Monte Carlo error by name. Returns nothing if nothing is latent, or
    if a parameter is moved by other steps than conjugate draws and NUTS, such as a CountStep that
    integrates it out.
    """
    steps = _parameter_steps(prepared)
    if not steps:
        return {}
    step = CompoundStep(steps)
    step.setup_chain(np.random.default_rng(seed), 0, len(points[0]))
    pairs = []
    for point in chain.from_iterable(points):
        check_time()
        moved = drawn_again(step, point, sweeps_between_draws(steps))
        pairs.append((prepared.values(names, point), prepared.values(names, moved)))
    found = {}
    for k, name in enumerate(names):
        first, second = (np.array([x[k] for x in each], float) for each in zip(*pairs, strict=True))
        by_chain = xr.DataArray(first.reshape(len(points), -1, *first.shape[1:]))
        with np.errstate(invalid="ignore"):  # nan for a variable without variance
            fraction, error = fraction_of_missing_information(by_chain, second).values
        found[name] = fraction, error
    return found


def _parameter_steps(prepared: PreparedModel) -> list[BlockedStep]:
    """Return the steps that draw all parameters given the latent variables, if there are any."""
    latent = {x for s in prepared.steps if isinstance(s, DapperStep) for x in s.vars}
    for step in prepared.steps:
        if isinstance(step, CountStep):  # its other variables are parameters that it draws itself
            latent |= {x for x in step.vars if x.dtype in discrete_types}
    steps = [step for step in prepared.steps if isinstance(step, ConjugateStep | NUTS)]
    moved = {x for step in steps for x in step.vars}
    return steps if latent and latent | moved == set(prepared.model.value_vars) else []
