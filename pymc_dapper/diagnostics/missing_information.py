"""How much of the information on parameters is missing because records are latent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats
from pymc import Model
from pymc.step_methods import BlockedStep, CompoundStep
from pytensor.graph import Variable

from pymc_dapper.assignment.latent import find_records
from pymc_dapper.assignment.parameters import assign_parameter_steps
from pymc_dapper.backend.internals import PointType, RandomState, get_random_generator
from pymc_dapper.checks import random_generator, whole_number
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.context import model_to_read
from pymc_dapper.diagnostics._result import check_kept, group
from pymc_dapper.graphs.values import forward
from pymc_dapper.steps.variables import record_values

MIN_DRAWS = 4
"""With fewer draws of each chain there is no Monte Carlo error."""

SWEEPS = 10
"""Updates of parameters that aren't drawn as one block, from a draw to an independent one."""


def missing_information(
    idata: Any,
    model: Model,
    *,
    records: Variable | Sequence[Variable] | None = None,
    thin: int = 1,
    sweeps: int | None = None,
    tune: int = 500,
    random_seed: RandomState = None,
) -> xr.Dataset:
    """Estimate the Bayesian fraction of missing information of each parameter.

    That is 1 - E[Var(theta | x)] / Var(theta | s_dp): the share of a parameter's posterior variance
    that would disappear, on average, if the confidential records x were known. It limits a sampler
    that alternates between records and parameters: near 1, both follow each other slowly.

    Parameters
    ----------
    idata : DataTree
        The result of ``pmd.sample(keep_records=True)``, with all free variables.
    model : Model
        The model.
    records : variable or sequence of variables, optional
        The records. Found as :func:`pymc_dapper.assign_steps` does if not given.
    thin : int, default 1
        Use every ``thin``-th draw.
    sweeps : int, optional
        Updates of all parameters, with the records held fixed, between two independent draws. By
        default 1 if one conjugate step draws them all, otherwise 10. Use more if NUTS moves
        strongly correlated parameters.
    tune : int, default 500
        Updates to tune NUTS with, if it is needed.
    random_seed : int, Generator, ..., optional
        Seed.

    Returns
    -------
    Dataset
        For each parameter, in its shape, the fraction; with dim ``statistic``: "fraction" and its
        Monte Carlo "error".

    Raises
    ------
    TypeError
        If an argument is of another type: the message names it.
    ValueError
        If thinning leaves fewer than four draws of each chain, if the records' draws, or those of
        another free variable, weren't kept, or if a parameter is discrete.

    Notes
    -----
    A posterior draw is a draw of theta given its own x. With theta' drawn from p(theta | x) as
    well, E[(theta - theta')^2] / 2 = E[Var(theta | x)], so one further draw of theta at each
    kept draw is enough. It starts at theta, where it should end: short runs need no warm-up.

    If theta is drawn from p(theta | x) as one block, its lag-1 autocorrelation in the chain equals
    the fraction: (theta_t, x_t+1) is a draw from the joint posterior however x moves, and theta_t+1
    is a draw from p(theta | x_t+1). The fraction is the chain's rate of convergence only if x is
    drawn exactly as one block, too (Liu 1994). Records that are moved one by one make the chain
    slower, which shows from lag 2 on.

    References
    ----------
    Liu, J. S. (1994). The fraction of missing information and convergence rate for data
    augmentation. Computing Science and Statistics 26.
    """
    model = model_to_read(model)
    posterior = group(idata, "posterior")
    whole_number(tune, "tune", at_least=0)
    rng = random_generator(random_seed, "random_seed")
    if sweeps is not None:
        sweeps = whole_number(sweeps, "sweeps", at_least=1)
    thin = whole_number(thin, "thin", at_least=1)
    kept = len(range(0, posterior.sizes["draw"], thin))
    if kept < MIN_DRAWS:
        raise ValueError(
            f"thin={thin} leaves {kept} of {posterior.sizes['draw']} draws of each chain, too few "
            f"for an estimate: at least {MIN_DRAWS} are needed"
        )
    cure = (
        "sample with pmd.sample(keep_records=True) (or pm.sample without var_names), and use thin= "
        "here where there are many"
    )
    check_kept(posterior, model.free_RVs, cure)
    records = find_records(model) if records is None else records
    of_records = record_values(records, model)
    steps = assign_parameter_steps(of_records, model)
    _check_all_moved(model, [*of_records, *(x for step in steps for x in step.vars)])
    sweeps = sweeps or sweeps_between_draws(steps)

    draws = posterior.isel(draw=slice(None, None, thin))
    points = _value_points(draws, model)
    step = CompoundStep(steps)
    step.setup_chain(get_random_generator(rng), tune, len(points))
    if not all(isinstance(each, ConjugateStep) for each in steps):
        step.tune = True
        for k in range(tune):  # NUTS finds its step size and scales, at records as they come
            step.step(points[k % len(points)])
    step.stop_tuning()

    parameters = [rv for rv in model.free_RVs if model.rvs_to_values[rv] not in of_records]
    naturals = model.replace_rvs_by_values(parameters)
    to_natural = model.compile_fn(naturals, inputs=model.value_vars, on_unused_input="ignore")
    first = {rv.name: draws[rv.name] for rv in parameters}
    return xr.Dataset(fractions(first, points, step, sweeps, to_natural))


def _check_all_moved(model: Model, moved: Sequence[Variable]) -> None:
    fixed = [model.values_to_rvs[x].name for x in model.value_vars if x not in moved]
    if fixed:
        names = ", ".join(f"'{name}'" for name in fixed)
        raise ValueError(
            f"{names} can't be drawn given the records here: missing_information knows conjugate "
            "draws and NUTS, which discrete parameters have neither of"
        )


def _value_points(draws: Any, model: Model) -> list[PointType]:
    """Write draws as points of the model's value variables."""
    naturals = [rv.type(name=rv.name) for rv in model.free_RVs]
    values = forward(model, dict(zip(model.free_RVs, naturals, strict=True)))
    compiled = model.compile_fn(values, inputs=naturals, on_unused_input="ignore", point_fn=False)
    stacked = [draws[rv.name].values for rv in model.free_RVs]
    names = [model.rvs_to_values[rv].name for rv in model.free_RVs]
    places = np.ndindex(stacked[0].shape[:2])
    return [dict(zip(names, compiled(*(x[at] for x in stacked)), strict=True)) for at in places]


def sweeps_between_draws(steps: Sequence[BlockedStep]) -> int:
    """Return the number of updates of all parameters between two independent draws."""
    exact = len(steps) == 1 and isinstance(steps[0], ConjugateStep) and steps[0].is_one_block
    return 1 if exact else SWEEPS


def fractions(
    draws: Mapping[str, xr.DataArray],
    points: Iterable[PointType],
    step: CompoundStep,
    sweeps: int,
    values: Callable[[PointType], Sequence[np.ndarray]],
) -> dict[str, xr.DataArray]:
    """Draw parameters again at each point, with the records held fixed, and compare.

    ``values(point)`` has the parameters of the draws, which are those at the points.
    """
    again = []
    for moved in points:
        for _ in range(sweeps):
            moved, _ = step.step(moved)
        again.append(values(moved))
    pairs = zip(draws, zip(*again, strict=True), strict=True)
    return {name: _fraction(draws[name], np.array(each)) for name, each in pairs}


def _fraction(first: xr.DataArray, second: np.ndarray) -> xr.DataArray:
    """One minus the ratio of within to total variance, and its Monte Carlo error."""
    a, b = first.values.astype(float), second.reshape(first.shape).astype(float)
    centre = np.concatenate([a, b], axis=1).mean(axis=(0, 1))
    total = ((a - centre) ** 2 + (b - centre) ** 2) / 2
    within = (a - b) ** 2 / 2
    # The ratio of two means, linearised for its error.
    ratio = within.mean(axis=(0, 1)) / total.mean(axis=(0, 1))
    residual = (within - ratio * total) / total.mean(axis=(0, 1))
    error = array_stats.mcse(residual, chain_axis=0, draw_axis=1, method="mean")
    coords = {dim: first[dim].values for dim in first.dims[2:]}
    return xr.DataArray(
        np.stack([1 - ratio, error]),
        dims=("statistic", *first.dims[2:]),
        coords={"statistic": ["fraction", "error"], **coords},
    )
