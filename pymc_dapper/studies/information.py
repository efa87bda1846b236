"""The fraction of missing information of a cell's parameters, from points of its chains."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from pymc import NUTS
from pymc.step_methods import BlockedStep, CompoundStep
from pymc.vartypes import discrete_types

from pymc_dapper.backend.internals import PointType
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.counts.step import CountStep
from pymc_dapper.diagnostics.missing_information import fraction_of_missing_information
from pymc_dapper.records.step import DapperStep
from pymc_dapper.studies.models import PreparedModel

SWEEPS = 10
"""Updates of parameters that aren't drawn as one block, from a draw to an independent one."""


def missing_information(
    prepared: PreparedModel,
    points: Sequence[Sequence[PointType]],
    names: Sequence[str],
    seed: np.random.SeedSequence,
    check_time: Callable[[], None],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Estimate the fraction of missing information from points that chains came by.

    As :func:`pymc_dapper.diagnostics.missing_information` does it, with the steps that sampled, of
    which NUTS is tuned by now. Each chain has values of the model's value variables at draws after
    tuning. Returned are, by name, the fraction and its Monte Carlo error; nothing where nothing is
    latent, or if a parameter is moved by other steps than conjugate draws and NUTS, such as a
    CountStep that integrates it out.
    """
    steps = _parameter_steps(prepared)
    if not steps:
        return {}
    exact = len(steps) == 1 and isinstance(steps[0], ConjugateStep) and steps[0].is_one_block
    step = CompoundStep(steps)
    step.setup_chain(np.random.default_rng(seed), 0, len(points[0]))
    first: list[list[list[np.ndarray]]] = []
    second: list[list[list[np.ndarray]]] = []
    for chain in points:
        first.append([])
        second.append([])
        for point in chain:
            check_time()
            moved = point
            for _ in range(1 if exact else SWEEPS):
                moved, _ = step.step(moved)
            first[-1].append(prepared.values(names, point))
            second[-1].append(prepared.values(names, moved))
    return {
        name: _estimate(_stacked(first, k), _stacked(second, k)) for k, name in enumerate(names)
    }


def _parameter_steps(prepared: PreparedModel) -> list[BlockedStep]:
    """Return the steps that draw all parameters given what is latent, if there are such."""
    latent = {x for s in prepared.steps if isinstance(s, DapperStep) for x in s.vars}
    for step in prepared.steps:
        if isinstance(step, CountStep):  # its other variables are parameters that it draws itself
            latent |= {x for x in step.vars if x.dtype in discrete_types}
    steps = [step for step in prepared.steps if isinstance(step, ConjugateStep | NUTS)]
    moved = {x for step in steps for x in step.vars}
    return steps if latent and latent | moved == set(prepared.model.value_vars) else []


def _stacked(values: list[list[list[np.ndarray]]], k: int) -> np.ndarray:
    return np.array([[point[k] for point in chain] for chain in values], dtype=np.float64)


def _estimate(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    dims = ("chain", "draw", *(f"dim_{k}" for k in range(first.ndim - 2)))
    with np.errstate(invalid="ignore"):  # nan for a variable without variance
        fraction, error = fraction_of_missing_information(
            xr.DataArray(first, dims=dims), second
        ).values
    return fraction, error
