"""The defaults a user wants: which step takes which variable, and sampling with them."""

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import pymc as pm
from pymc import sample as pymc_sample
from pymc.model import Model
from pymc.step_methods import STEP_METHODS, BlockedStep
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable
from xarray import DataTree

from pymc_dapper.checks import flag, names, random_generator, whole_number
from pymc_dapper.checks import options as options_of
from pymc_dapper.conjugacy.conditional import Conditional, read_conditionals
from pymc_dapper.conjugacy.gaussian import NORMAL
from pymc_dapper.conjugacy.marginal import integrable_parameters
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.context import the_model
from pymc_dapper.counts.reading import read_counts
from pymc_dapper.counts.step import CountStep, can_be_counted, count_values
from pymc_dapper.graphs.dependence import records_seen
from pymc_dapper.graphs.errors import NotConjugateError, ReadingError
from pymc_dapper.interweaving.reading import can_interweave
from pymc_dapper.interweaving.step import InterweaveStep
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.step import DapperStep
from pymc_dapper.releases.budgets import ATTRIBUTE, read_releases
from pymc_dapper.steps.building import telling_of_damage
from pymc_dapper.steps.lean_nuts import lean_nuts
from pymc_dapper.steps.variables import record_values

LOGGER = logging.getLogger("pymc.dapper")
"""A part of PyMC's log, which shows what ``pm.sample`` does."""

JOINT_NORMAL_LIMIT = 100
"""Normal parameters are drawn jointly up to this many entries: the cost is their number's cube."""


def assign_steps(
    records: Variable | Sequence[Variable] | None = None,
    model: Model | None = None,
    *,
    counts: Variable | Sequence[Variable] | None = None,
    conjugate: bool = True,
    interweave: bool = True,
    dapper: Mapping[str, Any] | None = None,
    nuts: Mapping[str, Any] | None = None,
    compile_kwargs: Mapping[str, Any] | None = None,
) -> list[BlockedStep]:
    """Choose the steps for a model of latent confidential records, or of latent counts of them.

    :class:`DapperStep` takes the records, :class:`CountStep` the counts and the parameters above
    them that can be integrated out, :class:`ConjugateStep` the parameters whose conditional
    distribution it can draw from, and NUTS the other continuous ones. What is left, discrete
    parameters, gets PyMC's choice from ``pm.sample``.
    :class:`InterweaveStep` moves the continuous parameters that the records follow once more,
    together with the records: at a small privacy budget the chain would crawl without.

    Parameters
    ----------
    records : variable or sequence of variables, optional
        The latent records. If neither they nor counts are given, they are found where the model
        leaves no doubt: the free variables that a mechanism sees and that aren't counts, if all
        have the same number of entries along their first axis.
    model : Model, optional
        The model. Taken from the context if not given.
    counts : variable or sequence of variables, optional
        Latent counts, such as the cells of a table. If neither they nor records are given, they
        are found among what the mechanism sees: Multinomial and DirichletMultinomial variables,
        scalar counts, and vectors of counts that the mechanism sees in another way than by sums
        over their first axis; and the latent counts that are the totals of these.
    conjugate : bool, default True
        Whether to look for conjugate parameters. Without, NUTS moves all continuous parameters
        together: better where a conjugate one depends strongly on one that isn't.
    interweave : bool, default True
        Whether to add an :class:`InterweaveStep` where the records' distribution has a map that it
        knows. It chooses in tuning how many moves are worth their cost, none at a large budget.
    dapper : dict, optional
        Passed on to :class:`DapperStep`, such as ``{"track_records": True}``.
    nuts : dict, optional
        Passed on to ``pm.NUTS``, such as ``{"target_accept": 0.9}``.
    compile_kwargs : dict, optional
        Passed on to all steps.

    Returns
    -------
    list of steps
        For ``pm.sample(step=...)``.

    Raises
    ------
    ReadingError
        If records aren't given and the model leaves doubt about which they are, or if the model
        can't be read (see :class:`DapperStep`).

    Notes
    -----
    The privacy mechanism is left out of what NUTS evaluates at each leapfrog step, where it doesn't
    depend on what NUTS moves. Its stat ``lp`` is then the log-density without the mechanism.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmd.assign_steps([record]))
    """
    if isinstance(records, Model) and model is None:
        records, model = None, records
    model = the_model(model)
    conjugate, interweave = flag(conjugate, "conjugate"), flag(interweave, "interweave")
    dapper, nuts = options_of(dapper, "dapper"), options_of(nuts, "nuts")
    options = {"model": model, "compile_kwargs": options_of(compile_kwargs, "compile_kwargs")}
    latent = _latent(model, records, counts)
    steps: list[BlockedStep] = []
    if latent.records:
        steps.append(DapperStep(latent.records, **options, **dapper))
    elif dapper:
        raise ValueError("dapper was given, but the model has counts only: leave it out")
    integrated_out: list[TensorVariable] = []
    if latent.counts:
        if conjugate:
            tables = [model.values_to_rvs[value] for value in latent.counts]
            integrated_out = integrable_parameters(model, tables)
        steps.append(CountStep(latent.counts, integrate=integrated_out, **options))
    steps += assign_parameter_steps(
        [*latent.all, *(model.rvs_to_values[rv] for rv in integrated_out)],
        model,
        conjugate=conjugate,
        nuts=nuts,
        compile_kwargs=compile_kwargs,
    )
    if interweave:
        followers, moved = _movable(model, latent, integrated_out)
        if moved:
            steps.append(InterweaveStep(moved, records=followers, **options))
    return steps


@dataclass(frozen=True)
class _Latent:
    """Value variables of latent records and of latent counts."""

    records: list[TensorVariable]
    counts: list[TensorVariable]

    @property
    def all(self) -> list[TensorVariable]:
        """Both."""
        return [*self.records, *self.counts]


def _latent(
    model: Model,
    records: Variable | Sequence[Variable] | None,
    counts: Variable | Sequence[Variable] | None,
) -> _Latent:
    """Find latent records and counts where neither are given."""
    if records is None and counts is None:
        counts = _tables(model)
        all_seen = counts and not set(records_seen(model)) - set(counts)
        records = [] if all_seen else find_records(model)
    latent = _Latent(
        [] if records is None else record_values(records, model),
        [] if counts is None else count_values(counts, model),
    )
    if not latent.all:
        raise ReadingError(
            "records and counts are empty: leave both out to have them found, or pass the latent "
            "records, as in assign_steps([x])"
        )
    return latent


def _tables(model: Model) -> list[TensorVariable]:
    """Find the tables of counts that a mechanism sees, and the latent totals above them."""
    tables = [rv for rv in records_seen(model) if _is_table(model, rv)]
    while tables:
        values = [model.rvs_to_values[rv] for rv in tables]
        unknown = read_counts(model, values, model.initial_point()).unknown_totals
        names = {x.name for x in unknown} - {rv.name for rv in tables}
        totals = [
            rv
            for rv in model.free_RVs
            if model.rvs_to_values[rv].name in names and can_be_counted(model, rv)
        ]
        if not totals:
            break
        tables += totals
    return tables


def _is_table(model: Model, rv: TensorVariable) -> bool:
    """Whether a variable is a table of counts, and not one count for each record."""
    if not can_be_counted(model, rv):
        return False
    if rv.type.ndim == 0 or rv.owner.op.ndim_supp > 0:
        return True
    try:
        reading = read_model(model, [model.rvs_to_values[rv]], model.initial_point())
    except ReadingError:
        return True
    return len(reading.additive_factors) < len(reading.factors)


def assign_parameter_steps(
    values: Sequence[TensorVariable],
    model: Model,
    *,
    conjugate: bool = True,
    nuts: Mapping[str, Any] | None = None,
    compile_kwargs: Mapping[str, Any] | None = None,
) -> list[BlockedStep]:
    """Choose the steps for the parameters of a model, as :func:`assign_steps` does.

    Parameters
    ----------
    values : sequence of TensorVariable
        Value variables of the records: what is not to be moved.
    model : Model
        The model.
    conjugate, nuts, compile_kwargs
        See :func:`assign_steps`.

    Returns
    -------
    list of steps
        Steps for all continuous parameters, and for conjugate ones.
    """
    options = {"model": model, "compile_kwargs": dict(compile_kwargs or {})}
    steps: list[BlockedStep] = []
    left = [x for x in model.value_vars if x not in values]
    if conjugate:
        for block in _conjugate_blocks(model, [model.values_to_rvs[x] for x in left]):
            steps.append(ConjugateStep(block, **options))
            left = [x for x in left if model.values_to_rvs[x] not in block]
    continuous = [x for x in left if x.dtype in ("float32", "float64")]
    if continuous:
        steps.append(lean_nuts(continuous, **options, **(nuts or {})))
    elif nuts:
        raise ValueError(
            "nuts was given, but NUTS has no variable to move: all parameters are drawn from "
            "their conditional distributions. Leave nuts out, or pass conjugate=False"
        )
    return steps


def _movable(
    model: Model, latent: _Latent, integrated_out: Sequence[TensorVariable]
) -> tuple[list[TensorVariable], list[TensorVariable]]:
    """Find the continuous parameters that latent variables can follow, and these variables."""
    rvs = [model.values_to_rvs[value] for value in latent.all]
    settled = [*rvs, *integrated_out]
    parameters = [
        rv for rv in model.free_RVs if rv not in settled and rv.dtype in ("float32", "float64")
    ]
    records = [model.values_to_rvs[value] for value in latent.records]
    for followers in (rvs, records):
        moved = can_interweave(model, parameters, followers) if followers and parameters else []
        if moved:
            return followers, list(moved)
    return [], []


def find_records(model: Model) -> list[TensorVariable]:
    """Find the latent records of a model.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    list of TensorVariable
        The free random variables that a mechanism sees and that aren't tables of counts, where all
        have a first axis of the same length.

    Raises
    ------
    ReadingError
        If there are none, or if they aren't equally long.
    """
    tables = _tables(model)
    seen = [rv for rv in records_seen(model) if rv not in tables]
    if not seen:
        raise ReadingError(
            "no latent records were found: no Potential, and no release added by a mechanism's "
            "observe(), depends on a free variable. Pass the records, as in assign_steps([x])"
        )
    lengths = {rv.name: _length(model, rv) for rv in seen}
    if None in lengths.values() or len(set(lengths.values())) > 1:
        listed = ", ".join(
            f"'{name}' ({'a scalar' if n is None else f'{n} along its first axis'})"
            for name, n in lengths.items()
        )
        raise ReadingError(
            "which variables are the latent records isn't clear: the mechanisms, or other "
            f"Potentials, depend on {listed}. Pass the records, as in assign_steps([x])"
        )
    for rv in model.free_RVs:
        parents = [x.name for x in seen if x in ancestors(rv.owner.inputs)]
        if parents and rv not in seen:
            raise ReadingError(
                f"which variables are the latent records isn't clear: a mechanism, or another "
                f"Potential, depends on '{parents[0]}', and so does the distribution of "
                f"'{rv.name}', which is free, too. Pass the records, as in assign_steps([x])"
            )
    return seen


def _length(model: Model, rv: TensorVariable) -> int | None:
    if rv.type.ndim == 0 or rv.type.ndim == rv.owner.op.ndim_supp:
        return None
    return int(rv.shape[0].eval(mode="FAST_COMPILE"))


def _conjugate_blocks(model: Model, rvs: Sequence[TensorVariable]) -> list[list[TensorVariable]]:
    """Group the parameters that can be drawn from their conditionals by what is drawn together."""
    single = [rv for rv in rvs if _conditionals(model, [rv])]
    normal = [rv for rv in single if isinstance(rv.owner.op, NORMAL)]
    blocks = [[rv] for rv in single if rv not in normal]
    # Each may be linear in a mean without being so jointly: then they are drawn apart.
    joint = _conditionals(model, normal) or _each(model, normal)
    for conditional in joint:
        size = sum(prod(shape) for shape in conditional.shapes)
        together = list(conditional.rvs)
        blocks += [together] if size <= JOINT_NORMAL_LIMIT else [[rv] for rv in together]
    return blocks


def _conditionals(model: Model, rvs: Sequence[TensorVariable]) -> list[Conditional]:
    """Read the conditionals of parameters; empty where there are none to draw from."""
    try:
        return list(read_conditionals(model, rvs)) if rvs else []
    except NotConjugateError:
        return []


def _each(model: Model, rvs: Sequence[TensorVariable]) -> list[Conditional]:
    return [conditional for rv in rvs for conditional in _conditionals(model, [rv])]


def _check_passed_on(given: Mapping[str, Any]) -> None:
    """Check before anything is compiled what ``pm.sample`` looks at after that, or never."""
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
    for name, least in (("chains", 1), ("cores", 1), ("tune", 0)):
        if given.get(name) is not None:
            whole_number(given[name], name, at_least=least)
    random_generator(given.get("random_seed"), "random_seed")


def _kept(var_names: Any, model: Model) -> list[str]:
    """Check the names of variables to keep."""
    known = [rv.name for rv in model.unobserved_RVs]
    kept = names(var_names, "var_names")
    for name in kept:
        if name not in known:
            listed = ", ".join(f"'{each}'" for each in known)
            raise ValueError(f"var_names: the model has no variable '{name}' to keep, but {listed}")
    return list(kept)


def _left_out(steps: Sequence[BlockedStep]) -> list[str]:
    """Name the records: what is latent and not a count that something sees by itself."""
    names: list[str] = []
    for step in steps:
        if isinstance(step, DapperStep):
            names += step.records_of_people()
    return names


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _check_log_densities(
    idata_kwargs: Mapping[str, Any] | None, latent: _Latent, model: Model, var_names: Sequence[str]
) -> None:
    """Refuse log-densities in the result that need draws which it won't have."""
    asked = [x for x in ("log_likelihood", "log_prior") if (idata_kwargs or {}).get(x)]
    names = [model.values_to_rvs[x].name for x in latent.all]
    missing = [name for name in names if name not in var_names]
    if asked and missing:
        raise ValueError(
            f"idata_kwargs asks for the {asked[0]}, which depends on {_quoted(missing)}, and the "
            "result leaves that out: pass keep_records=True"
        )


def sample(
    draws: int | Model = 1000,
    *,
    records: Variable | Sequence[Variable] | None = None,
    counts: Variable | Sequence[Variable] | None = None,
    keep_records: bool = False,
    conjugate: bool = True,
    interweave: bool = True,
    dapper: Mapping[str, Any] | None = None,
    nuts: Mapping[str, Any] | None = None,
    model: Model | None = None,
    var_names: Sequence[str] | None = None,
    **kwargs: Any,
) -> DataTree:
    """Sample the posterior of a model of latent confidential records.

    ``pm.sample`` with the steps of :func:`assign_steps`, and without the records in its result.

    Parameters
    ----------
    draws : int, default 1000
        Number of draws per chain after tuning. A model in its place, ``pmd.sample(model)``, is
        taken for ``model``.
    records, counts : variable or sequence of variables, optional
        The latent records and counts; see :func:`assign_steps`.
    keep_records : bool, default False
        Whether draws of the records are kept. Recording 10,000 values costs more than sampling
        them. Counts are always kept: latent tables, and any variable of whole numbers (but for
        categories) that a mechanism sees entry by entry and not by sums only, whichever step
        takes it. What is left out is told in PyMC's log. PyMC's ``compute_log_likelihood`` and
        ``compute_log_prior`` need the records, too.
    conjugate, interweave, dapper, nuts
        See :func:`assign_steps`. ``target_accept`` is taken as a part of ``nuts``.
    model : Model, optional
        The model. Taken from the context if not given.
    var_names : sequence of str, optional
        Variables to keep. All but the records if not given.
    **kwargs
        Passed on to ``pm.sample``: ``tune``, ``chains``, ``cores``, ``random_seed``, ``initvals``,
        ``progressbar`` ...

    Returns
    -------
    DataTree
        As ``pm.sample`` returns it. Its attribute ``pymc_dapper_releases`` says what is known of
        the mechanisms' budgets, for :func:`pymc_dapper.diagnostics.acceptance`.

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
    if isinstance(draws, Model):
        if model is not None:
            raise TypeError("the model was passed twice, by position and as model=...")
        draws, model = 1000, draws
    model = the_model(model)
    whole_number(draws, "draws", at_least=1)
    _check_passed_on(kwargs)
    if flag(keep_records, "keep_records") and var_names is not None:
        raise TypeError("pass either var_names or keep_records: var_names says what is kept")
    if var_names is not None:
        var_names = _kept(var_names, model)
    nuts = options_of(nuts, "nuts")
    if "target_accept" in kwargs:
        nuts["target_accept"] = kwargs.pop("target_accept")
    latent = _latent(model, records, counts)
    steps = assign_steps(
        latent.records,
        model,
        counts=latent.counts,
        conjugate=conjugate,
        interweave=interweave,
        dapper=dapper,
        nuts=nuts,
        compile_kwargs=kwargs.get("compile_kwargs"),
    )
    if var_names is None and not keep_records:
        left_out = _left_out(steps)
        # Of a model without parameters, the records are all there is to keep.
        others = [rv.name for rv in model.unobserved_RVs if rv.name not in left_out]
        var_names = others or None
        if others and left_out:
            LOGGER.info(
                "Left out of the result: %s. keep_records=True keeps them, "
                "as pm.compute_log_likelihood needs",
                _quoted(left_out),
            )
    if var_names is not None:
        _check_log_densities(kwargs.get("idata_kwargs"), latent, model, var_names)
    with telling_of_damage():
        result = pm.sample(draws, step=steps, model=model, var_names=var_names, **kwargs)
    if isinstance(result, DataTree):
        factors = [
            factor for step in steps if isinstance(step, DapperStep) for factor in step.factors
        ]
        result.attrs[ATTRIBUTE] = read_releases(model, factors).to_json()
    return result
