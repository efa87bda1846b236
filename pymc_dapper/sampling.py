"""Sampling with the steps that a user wants."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
from pymc import sample as pymc_sample
from pymc.step_methods import STEP_METHODS, BlockedStep
from pytensor.graph import Variable
from xarray import DataTree

from pymc_dapper import checks
from pymc_dapper.assignment.latent import Latent, find_latent
from pymc_dapper.assignment.readings import Readings
from pymc_dapper.assignment.steps import choose_steps
from pymc_dapper.backend.accelerate.switch import once_more_without
from pymc_dapper.backend.jit import numba_by_default
from pymc_dapper.budget.written import ATTRIBUTE, budgets_of_releases
from pymc_dapper.context import model_to_read
from pymc_dapper.garbage import searching_new_garbage_only
from pymc_dapper.interweaving.reading.hierarchy import (
    GROUPS,
    SERIES,
    find_hierarchy,
    find_without_map,
)
from pymc_dapper.records.step import DapperStep
from pymc_dapper.steps.building import (
    building,
    telling_why,
    whole_graphs,
    without_c_compiler,
    without_traces,
)
from pymc_dapper.steps.progress import LOGGER, progress
from pymc_dapper.steps.stats import each_warning_once
from pymc_dapper.steps.thinning import ThinnedStep
from pymc_dapper.steps.variables import record_values
from pymc_dapper.tabulation.choice import Table, tables_if_cheaper

MOST_CHECKED = 100
"""Number of entries of a variable whose R-hat and effective draws are checked."""

SWITCHED = 0.2
"""Chains may differ in their order of components if the variance of their means, relative to the
variance within chains, is above this."""

REMEDIES = {
    GROUPS: "Try it as location + scale * z, with z of location 0 and scale 1",
    SERIES: (
        "Try its steps as scale * z, with z of location 0 and scale 1: a random walk is "
        "start + pt.cumsum(scale * z)"
    ),
}
"""How to rewrite variables that NUTS moves badly, by kind."""


def _checked(draws: object, thin: object, given: Mapping[str, Any], model: pm.Model) -> int:
    """Check before compilation what ``pm.sample`` checks after it, or never; return the draws."""
    if isinstance(draws, pm.Model):
        raise TypeError("the model was passed twice, by position and as model=...")
    if "step" in given:
        raise TypeError(
            "pmd.sample chooses the steps itself. To choose some, use "
            "pm.sample(step=[..., *pmd.assign_steps(...)])"
        )
    of_steps = {method.name for method in STEP_METHODS}
    known = {*inspect.signature(pymc_sample).parameters, *of_steps, "target_accept"} - {"kwargs"}
    for name in given:
        if name not in known:
            raise TypeError(
                f"pmd.sample has no argument '{name}', and neither has pm.sample. Options of steps "
                "go to dapper= or nuts="
            )
    if given.get("init", "auto") not in ("auto", "jitter+adapt_diag"):
        raise ValueError(
            f"init={given['init']!r} would be without effect: beside other steps, NUTS starts and "
            "adapts by 'jitter+adapt_diag'. Leave it out; initvals= sets where chains start, and "
            "nuts= takes options of pm.NUTS"
        )
    numbers = {"thin": thin, **given}
    for name, least in (("chains", 1), ("cores", 1), ("tune", 0), ("thin", 1)):
        if numbers.get(name) is not None:
            checks.whole_number(numbers[name], name, at_least=least)
    checks.random_generator(given.get("random_seed"), "random_seed")
    _check_starts(given.get("initvals"), model)
    return checks.whole_number(draws, "draws", at_least=1)


def _check_starts(initvals: Any, model: pm.Model) -> None:
    """Refuse starts of unknown variables, of another shape than theirs, or that aren't finite."""
    of_chains = initvals if isinstance(initvals, list | tuple) else [initvals]
    shapes = {rv.name: rv.type.shape for rv in model.free_RVs}
    there = [*shapes, *(x.name for x in model.value_vars if x.name not in shapes)]
    for of_chain in of_chains:
        for key, value in (of_chain or {}).items():
            name = key if isinstance(key, str) else key.name
            checks.known([name], there, "initvals: there is no variable")
            if isinstance(value, str | Variable) or value is None:
                continue
            if checks.as_array(value).dtype == bool:
                value = np.asarray(value, dtype=int)
            found = checks.real_numbers(value, f"initvals of '{name}'", finite=True).shape
            if name in shapes and not checks.fits(found, shapes[name]):
                told = str(shapes[name]).replace("None", "?")
                raise ValueError(f"initvals: '{name}' has the shape {told}, its start {found}")


def _kept(var_names: Any, keep_records: bool, model: pm.Model) -> list[str] | None:
    """Check the names of variables to keep, if there are any."""
    if var_names is None:
        return None
    if keep_records:
        raise TypeError("pass either var_names or keep_records: var_names says what is kept")
    kept = checks.names(var_names, "var_names")
    there = [rv.name for rv in model.unobserved_RVs]
    checks.known(kept, there, "var_names: there is no variable")
    return list(kept)


def _without_records(
    steps: Sequence[BlockedStep], tables: Sequence[Table], model: pm.Model
) -> list[str] | None:
    """Name what is kept: all but the records, which are latent variables other than counts."""
    records = [x for s in steps if isinstance(s, DapperStep) for x in s.records_of_people()]
    of_people = [name for table in tables for name in table.of_people if name not in records]
    others = [rv.name for rv in model.unobserved_RVs if rv.name not in (*records, *of_people)]
    if others and (records or of_people):
        LOGGER.info(
            "Left out of the result: %s. var_names= keeps what it names, keep_records=True all",
            _quoted([*records, *of_people]),
        )
    # Of a model without parameters, the records are all there is to keep.
    return others or None


def _factors(steps: Sequence[BlockedStep], tables: Sequence[Table]) -> list[str]:
    """Name the factors that depend on the records."""
    of_steps = [name for step in steps if isinstance(step, DapperStep) for name in step.factors]
    return [*of_steps, *(name for table in tables for name in table.factors)]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _check_log_densities(
    idata_kwargs: Mapping[str, Any] | None, latent: Latent, var_names: Sequence[str]
) -> None:
    """Refuse log-densities in the result that need draws which it won't have."""
    asked = [x for x in ("log_likelihood", "log_prior") if (idata_kwargs or {}).get(x)]
    names = [rv.name for rv in latent.all]
    missing = [name for name in names if name not in var_names]
    if asked and missing:
        raise ValueError(
            f"idata_kwargs asks for the {asked[0]}, which depends on {_quoted(missing)}, and the "
            "result leaves that out: pass keep_records=True"
        )


def _check_chains(result: DataTree, model: pm.Model, checked: bool) -> None:
    """Log convergence warnings for computed variables, and chains that stand still apart.

    PyMC checks free variables only. Of a large variable, some entries are checked.
    """
    posterior = result["posterior"].dataset
    n_chains, n_draws = (posterior.sizes[dim] for dim in ("chain", "draw"))
    if n_chains == 1 or n_draws < 100 or not checked:
        return
    slow = _slow(result, set(posterior) - {rv.name for rv in model.free_RVs})
    if slow:
        LOGGER.warning(
            "R-hat is above 1.01, or there are fewer than 100 effective draws a chain: %s. Draw "
            "more, and look at the chains before you rely on them",
            _quoted(sorted(slow)),
        )
    switched = [str(name) for name, x in posterior.items() if _is_switched(x.values)]
    if switched:
        LOGGER.warning(
            "Chains have the components of %s in different orders: sorted, their entries agree. "
            "Judge quantities that don't depend on the order by their own R-hat. To keep an "
            "order, give one of the variables transform=pm.distributions.transforms.ordered, and "
            "initval= in that order",
            _quoted(switched),
        )
    stats = result["sample_stats"].dataset if "sample_stats" in result else {}
    names = [x for x in stats if "mechanism_logp" in str(x)]
    logp = [stats[x].values.reshape(n_chains, n_draws, -1) for x in names]
    if any(_stand_still_apart(x.min(axis=1), x.max(axis=1)) for x in logp):
        LOGGER.warning(
            "Chains stand still at different records: no record moves alone, and none of their "
            "draws can be relied on. Start them by initvals= at records that explain the release "
            "well, or write the records as counts"
        )


def _slow(result: DataTree, names: Iterable[Any]) -> list[str]:
    """Find variables of R-hat above 1.01, or with fewer than 100 effective draws a chain."""
    from arviz_stats import ess, rhat

    slow, posterior = [], result["posterior"].dataset
    for name in set(posterior).intersection(names):
        draws = posterior[name].values
        entries = draws.reshape(*draws.shape[:2], -1).T.astype(float)
        some = [x.T for x in entries[:: 1 + len(entries) // MOST_CHECKED]]
        with np.errstate(invalid="ignore", divide="ignore"):  # a constant entry has no R-hat
            if any(rhat(x) > 1.01 or ess(x) < 100 * len(draws) for x in some):
                slow.append(str(name))
    return slow


def _is_switched(draws: np.ndarray) -> bool:
    """Whether chains differ by the order of entries: sorting removes 9/10 of the difference."""
    if draws.ndim != 3 or draws.shape[2] < 2 or draws.dtype.kind != "f":
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        apart, of_sorted = (
            np.max(x.mean(axis=1).var(axis=0) / x.var(axis=1).mean(axis=0))
            for x in (draws, np.sort(draws))
        )
    return bool(apart > SWITCHED and of_sorted < apart / 10)


def _stand_still_apart(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether a chain stays at one log-density that another one never comes to.

    The arguments are the least and the largest log-densities, shape (chains,) or (chains, steps).
    """
    still = np.isclose(low, high)
    rounding = 1e-6 * (1 + np.abs(low))
    outside = (low[:, None] > high + rounding) | (high[:, None] < low - rounding)
    return bool((still & outside.any(axis=1)).any())


def _tell_of_hierarchies(result: DataTree, model: pm.Model, checked: bool, records: Any) -> None:
    """Log which variables to write in other coordinates, if NUTS diverged or chains mix slowly.

    Not the records: ``InterweaveStep`` moves these with their noise held fixed as they are. Where
    it can't, and parameters of their law are slow, the log says so instead.
    """
    stats = result["sample_stats"].dataset if "sample_stats" in result else {}
    if "diverging" not in stats:
        return
    number, (n_chains, n_draws) = int(stats["diverging"].sum()), stats["diverging"].shape[:2]
    continuous = [x for x in model.free_RVs if x.dtype.startswith("float") and x not in records]
    judged = checked and n_chains > 1 and n_draws >= 100
    for rv, movers, why in find_without_map(model, continuous, records) if judged else ():
        slow = sorted(_slow(result, [x.name for x in movers]))
        if slow:
            judged = False
            LOGGER.warning(
                "Chains mix slowly. InterweaveStep can't move %s with the records '%s': %s",
                *(_quoted(slow), rv.name, why),
            )
    for kinds, remedy in REMEDIES.items():
        followers, movers = find_hierarchy(model, continuous, kinds)
        names = [rv.name for rv in movers]
        if movers and (number or (judged and _slow(result, names))):
            LOGGER.warning(
                "%s. The law of %s depends on %s: where its scale is small, chains may be stuck. "
                "%s",
                f"NUTS diverged in {number} draws" if number else "Chains mix slowly",
                _quoted([rv.name for rv in followers]),
                _quoted(names),
                remedy,
            )


def _in_turn(steps: list[BlockedStep], model: pm.Model, thin: int | None) -> ThinnedStep:
    """Have steps taken in turn. Chains are judged by the parameters, or by records without any."""
    records = [x for s in steps if isinstance(s, DapperStep) for x in s.records_of_people()]
    moved = dict.fromkeys(x.name for step in steps for x in step.vars)
    of = {value.name: rv.name for rv, value in model.rvs_to_values.items()}
    judged = [x for x in moved if of[x] not in records] or [*moved]
    return ThinnedStep(steps, judged, thin)


def _tables(
    model: pm.Model,
    records: Variable | Sequence[Variable] | None,
    var_names: Sequence[str] | None,
    given: Mapping[str, Any],
) -> list[Table]:
    """Return the tables to sample in place of records; the last one's model has all of them."""
    if any(given.get(name) is not None for name in ("initvals", "idata_kwargs", "trace")):
        return []
    tables = tables_if_cheaper(model, records, var_names or ())
    for table in tables:
        tables_of = "a table" if table.n_tables == 1 else f"{table.n_tables} linked tables"
        how = f"sampled as {tables_of} of {table.n_cells} cells" if table.counts else "marginalised"
        LOGGER.info(
            "%s: %s by pmd.tabulate. The posterior is the same; tabulate=False samples the records",
            table.names,
            how,
        )
    return tables


def _latent(model: pm.Model, records: Any, counts: Any, tables: Sequence[Table]) -> Latent:
    if not tables:
        return find_latent(model, records, counts)
    written = tables[-1].model
    counted = [written[rv.name] for table in tables for rv in table.counts]
    if records is None:
        latent = find_latent(written, None, None, in_place_of_records=counted)
    else:
        left = {model.values_to_rvs[x].name for x in record_values(records, model)}
        rvs = [rv for rv in written.free_RVs if rv.name in left]
        latent = Latent(Readings(written), rvs, counted)
    return replace(latent, tabulated=frozenset(table.n for table in tables))


@searching_new_garbage_only()
def sample(
    draws: int | pm.Model = 1000,
    *,
    records: Variable | Sequence[Variable] | None = None,
    counts: Variable | Sequence[Variable] | None = None,
    keep_records: bool = False,
    conjugate: bool = True,
    interweave: bool = True,
    marginalise: bool = True,
    tabulate: bool = True,
    thin: int | None = None,
    dapper: Mapping[str, Any] | None = None,
    nuts: Mapping[str, Any] | None = None,
    model: pm.Model | None = None,
    var_names: Sequence[str] | None = None,
    **kwargs: Any,
) -> DataTree:
    """Sample the posterior of a model of latent confidential records.

    ``pm.sample`` with the steps of :func:`assign_steps`, and without the records in its result.

    Parameters
    ----------
    draws : int, default 1000
        Number of draws per chain after tuning. You may pass the model first instead:
        ``pmd.sample(model)``.
    records, counts : variable or sequence of variables, optional
        The latent records and counts; see :func:`assign_steps`.
    keep_records : bool, default False
        Whether draws of the records are kept. Recording 10,000 values costs more than sampling
        them. Counts are always kept: latent tables, and whole-number variables (other than
        categories) that a mechanism uses entry by entry. PyMC's log names the variables left out.
        PyMC's ``compute_log_likelihood`` and ``compute_log_prior`` need the records, too.
    conjugate : bool, default True
        Whether to draw conjugate parameters directly. Without, NUTS moves all continuous ones.
    interweave : bool, default True
        Whether to add an :class:`InterweaveStep`, which keeps chains mixing at small budgets. It is
        compiled in tuning, if a chain needs it; ``tune`` must be more than 40 for that.
    marginalise : bool, default True
        Whether to sum counts out of NUTS' log-density, if possible.
    tabulate : bool, default True
        Whether records with few values may be sampled as the table of their counts, if a sweep over
        its cells takes fewer operations: see :func:`tabulate`. Records are marginalised if only
        their own answers depend on them. PyMC's log says so. This is off if draws of the records
        are asked for, if their start is given, or with options of :class:`DapperStep`.
    thin : int, optional
        Iterations of these steps for each draw. By default, tuning of 200 draws or more chooses:
        as many as a chain needs for 200 effective draws of each variable other than the records,
        32 at most. PyMC's log says if there are several. Variables that PyMC moves by steps of its
        own are moved once for each draw, and don't count.
    dapper : dict, optional
        Options of :class:`DapperStep`, such as ``{"track_records": True}``.
    nuts : dict, optional
        Options of ``pm.NUTS``, such as ``{"target_accept": 0.99}``; ``target_accept=`` alone works,
        too.
    model : Model, optional
        The model. Taken from the context if not given.
    var_names : sequence of str, optional
        Variables to keep. By default all, except the records, and variables with an entry for each
        person on which marginalised records depend, such as abilities.
    **kwargs
        Passed on to ``pm.sample``: ``tune``, ``chains``, ``cores``, ``random_seed``, ``initvals``,
        ``progressbar`` ... Unless ``progressbar`` is False or ``quiet`` is True, a line (or PyMC's
        log, without a terminal or notebook) shows the stages before the first draw and their time.

    Returns
    -------
    DataTree
        As ``pm.sample`` returns it. Its attribute ``pymc_dapper_releases`` has the mechanisms'
        budgets, if known, for :func:`pymc_dapper.diagnostics.acceptance`.

    Raises
    ------
    TypeError, ValueError
        If steps are passed: use ``pm.sample``, with :func:`assign_steps` for a part of them. If
        another argument can't be used: the message names it.
    ReadingError
        See :func:`assign_steps`.

    Examples
    --------
    >>> with model:
    ...     idata = pmd.sample(random_seed=1)
    """
    if isinstance(draws, pm.Model) and model is None:
        draws, model = 1000, draws
    model = model_to_read(model)
    draws = _checked(draws, thin, kwargs, model)
    var_names = _kept(var_names, checks.flag(keep_records, "keep_records"), model)
    dapper, nuts = checks.options(dapper, "dapper"), checks.options(nuts, "nuts")
    if "target_accept" in kwargs:
        nuts["target_accept"] = kwargs.pop("target_accept")
    shown = bool(kwargs.get("progressbar", True)) and not kwargs.get("quiet", False)
    own_mode = any(x.get("compile_kwargs") is not None for x in (kwargs, nuts))
    with progress(show=shown), building(own_mode=own_mode):
        may = checks.flag(tabulate, "tabulate") and not (dapper or keep_records) and counts is None
        tables = _tables(model, records, var_names, kwargs) if may else []
        sampled = tables[-1].model if tables else model
        latent = _latent(model, records, counts, tables)
        steps = choose_steps(
            latent,
            conjugate=conjugate,
            interweave=interweave,
            marginalise=marginalise,
            dapper=dapper,
            nuts=nuts,
            compile_kwargs=kwargs.get("compile_kwargs"),
        )
    if var_names is None and not keep_records:
        var_names = _without_records(steps, tables, sampled)
    checked = kwargs.get("compute_convergence_checks", True)
    if var_names is not None:
        _check_log_densities(kwargs.get("idata_kwargs"), latent, var_names)
        # PyMC checks the chains of free variables, and fails if none is kept.
        any_free = any(x.name in var_names for x in sampled.free_RVs)
        kwargs["compute_convergence_checks"] = checked and any_free

    def sampling() -> Any:
        # PyMC compiles the recorded variables, too, at the first draw: as steps are.
        as_told = own_mode or not numba_by_default()
        with whole_graphs(unless=as_told), without_c_compiler(unless=as_told), without_traces():
            step = _in_turn(steps, sampled, thin)
            return pm.sample(draws, step=step, model=sampled, var_names=var_names, **kwargs)

    with telling_why("pm.sample", sampled.free_RVs), each_warning_once():
        result = once_more_without(sampling)
    if isinstance(result, DataTree):
        _tell_of_hierarchies(result, sampled, checked, latent.records)
        _check_chains(result, sampled, checked)
        result.attrs[ATTRIBUTE] = budgets_of_releases(model, _factors(steps, tables)).to_json()
    return result
