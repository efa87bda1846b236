"""The work for a cell: simulate a release, build the model, sample, summarise."""

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc import NUTS
from pymc.step_methods import BlockedStep, CompoundStep
from pymc.vartypes import discrete_types
from xarray import DataTree

from pymc_dapper.backend.internals import PointType
from pymc_dapper.budget.written import ATTRIBUTE, budgets_of_releases
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.counts.step import CountStep
from pymc_dapper.diagnostics import acceptance
from pymc_dapper.diagnostics.missing_information import fractions, sweeps_between_draws
from pymc_dapper.records.step import DapperStep
from pymc_dapper.steps.stats import ACCEPT_STAT
from pymc_dapper.studies.fields import CELL_FIELDS, DONE, FAILED, NUMBER_FIELDS, TIMED_OUT
from pymc_dapper.studies.grid import REPLICATE_DIM, Cell
from pymc_dapper.studies.messages import StudyError, error_message
from pymc_dapper.studies.models import ModelCache, PreparedModel, Structure
from pymc_dapper.studies.summaries import summarise

POINTS = 200
"""Number of draws at which the missing information is estimated."""

STEP_OPTIONS = (
    "records",
    "counts",
    "conjugate",
    "interweave",
    "marginalise",
    "dapper",
    "nuts",
    "target_accept",
    "compile_kwargs",
)
"""Arguments of ``pmd.sample`` that choose the steps."""

type Simulate = Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]]]
type Build = Callable[..., pm.Model]


@dataclass(frozen=True)
class CellResult:
    """The result of a cell: how it ended, and what went wrong, if anything.

    ``numbers`` have the names in ``NUMBER_FIELDS``; unknown ones may be missing. ``parameters`` has
    a dict of statistics for each entry of each parameter.
    """

    status: str
    message: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    parameters: list[dict[str, Any]] = field(default_factory=list)


class CellTimeout(Exception):
    """Sampling took too long."""


@dataclass(frozen=True)
class CellRunner:
    """Runs cells of one study, in whichever process it is called.

    The fields are arguments of :func:`pymc_dapper.study`.
    """

    simulate: Simulate
    build: Build
    seed: int
    var_names: tuple[str, ...] | None
    prob: float
    timeout: float | None
    missing_information: bool
    sample_kwargs: Mapping[str, Any]

    def __call__(self, cell: Cell) -> CellResult:
        """Run a cell; errors become part of the result."""
        with _one_at_a_time:  # in a process: models, steps and PyTensor aren't made for threads
            return _Run(self, cell).result()

    def ready(self) -> bool:
        """Do nothing: that a worker gets here shows that it could load the functions."""
        return True


_one_at_a_time = threading.Lock()
_models = ModelCache()


class _Run:
    """One cell on its way."""

    def __init__(self, runner: CellRunner, cell: Cell):
        self.runner, self.cell = runner, cell
        self.simulation, self.sampling, self.information = cell.seeds(runner.seed).spawn(3)
        self.stage = ""

    def result(self) -> CellResult:
        """Run the cell."""
        began = monotonic()
        try:
            with _quiet():
                numbers, parameters = self._run()
            found = CellResult(DONE, "", numbers, parameters)
        except CellTimeout as error:
            found = CellResult(TIMED_OUT, str(error))
        except (Exception, SystemExit) as error:
            found = CellResult(FAILED, error_message(self.stage, error))
        found.numbers["seconds"] = monotonic() - began
        return found

    def _run(self) -> tuple[dict[str, float], list[dict[str, Any]]]:
        runner, settings = self.runner, self.cell.settings
        self.stage = "simulate"
        rng = np.random.default_rng(self.simulation)
        released, truth = _checked(runner.simulate(rng, **settings))
        self.stage = "build"
        model = runner.build(released, **settings)
        if not isinstance(model, pm.Model):
            raise StudyError(f"build must return a pm.Model, got {type(model).__name__}")
        names = self._names(model, truth)
        began = monotonic()
        options = {k: v for k, v in runner.sample_kwargs.items() if k in STEP_OPTIONS}
        structure = Structure.of(model)
        prepared = _models.prepare(structure, options)
        build_seconds = monotonic() - began

        self.stage = "sample"
        watch = _Watch(runner.timeout, self._stride())
        idata = self._sample(prepared, names, watch)
        sample_seconds = watch.seconds()
        numbers = _sampler_numbers(idata, model, prepared)
        numbers |= {"build_seconds": build_seconds, "sample_seconds": sample_seconds}
        self.stage = "summarise"
        missing = {}
        if runner.missing_information:
            at = slice(None, None, self._stride())
            watched = {name: idata["posterior"].dataset[name].isel(draw=at) for name in names}
            missing = missing_information(prepared, watch, watched, self.information)
        parameters: list[dict[str, Any]] = []
        for name in names:
            draws = idata["posterior"].dataset[name]
            unknown = np.full(draws.shape[2:], np.nan)
            fraction, error = missing.get(name, (unknown, unknown))
            parameters += summarise(
                draws,
                truth=truth.get(name),
                prob=runner.prob,
                seconds=sample_seconds,
                information={"missing_information": fraction, "missing_information_mcse": error},
            )
        return numbers, parameters

    def _names(self, model: pm.Model, truth: Mapping[str, Any]) -> list[str]:
        """Names of the parameters to report."""
        known = [rv.name for rv in model.unobserved_RVs]
        names = self.runner.var_names
        if names is None:
            names = tuple(name for name in known if name in truth)
            if not names:
                raise StudyError(
                    f"none of the names in truth, {sorted(truth)}, is a variable of the model, "
                    f"which has {known}: pass var_names="
                )
        missing = [name for name in names if name not in known]
        if missing:
            raise StudyError(f"the model has no variables {missing}, only {known}")
        taken = {*self.cell.settings, *CELL_FIELDS, REPLICATE_DIM}
        if clashes := [name for name in names if name in taken]:
            raise StudyError(
                f"the names {clashes} are taken: the study's result uses them for other things. "
                "Rename these variables of the model, or the settings of the grid"
            )
        return list(names)

    def _stride(self) -> int:
        """Return the draws at which missing information is estimated, evenly spaced."""
        kept = self.runner.sample_kwargs["draws"] * self.runner.sample_kwargs["chains"]
        return max(1, kept // POINTS)

    def _sample(self, prepared: PreparedModel, names: list[str], watch: "_Watch") -> DataTree:
        options = {k: v for k, v in self.runner.sample_kwargs.items() if k not in STEP_OPTIONS}
        idata = pm.sample(
            model=prepared.model,
            step=list(prepared.steps),
            var_names=names,
            random_seed=np.random.default_rng(self.sampling),
            callback=watch,
            cores=1,
            progressbar=False,
            **options,
        )
        if idata["posterior"].sizes["draw"] < self.runner.sample_kwargs["draws"]:
            raise StudyError("sampling was interrupted")  # which PyMC takes as a wish to stop
        return idata


class _Watch:
    """Called by PyMC at each draw: keeps some of them, and stops the chain when time is up.

    Time is counted from the first call on: before, PyMC compiles functions of its own.
    """

    def __init__(self, timeout: float | None, stride: int):
        self._timeout, self._stride = timeout, stride
        self._began: float | None = None
        self.points: dict[int, list[PointType]] = defaultdict(list)
        self._draws: dict[int, int] = defaultdict(int)

    def __call__(self, trace: Any, draw: Any) -> None:
        self.check_time()
        if draw.tuning:
            return
        if self._draws[draw.chain] % self._stride == 0:
            point = {name: np.array(value) for name, value in draw.point.items()}
            self.points[draw.chain].append(point)
        self._draws[draw.chain] += 1

    def seconds(self) -> float:
        """Return the time since the first call, which may be this one."""
        if self._began is None:
            self._began = monotonic()
        return monotonic() - self._began

    def check_time(self) -> None:
        """Raise if time is up."""
        seconds = self.seconds()
        if self._timeout is not None and seconds > self._timeout:
            raise CellTimeout(f"sampling took longer than {self._timeout:g} s, the study's timeout")


def _checked(simulated: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Check the result of the user's ``simulate``."""
    parts = simulated if isinstance(simulated, tuple) else (simulated,)
    if len(parts) != 2 or not all(isinstance(part, Mapping) for part in parts):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise StudyError(f"simulate must return two dicts, released and truth, got {kinds}")
    return simulated


def _sampler_numbers(idata: DataTree, model: pm.Model, prepared: PreparedModel) -> dict[str, float]:
    """Summarise the sampler's statistics."""
    stats = idata["sample_stats"]
    numbers = dict.fromkeys(NUMBER_FIELDS, np.nan)
    if "diverging" in stats:
        numbers["divergences"] = float(stats["diverging"].sum())
    if ACCEPT_STAT in stats:
        of_records = (step for step in prepared.steps if isinstance(step, DapperStep))
        factors = [name for step in of_records for name in step.factors]
        idata.attrs[ATTRIBUTE] = budgets_of_releases(model, factors).to_json()
        found = acceptance(idata)
        numbers["record_acceptance"] = float(found.rates.mean())
        if found.floor is not None:
            numbers["acceptance_floor"] = found.floor
    return numbers


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress PyMC's messages about each cell's steps."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def missing_information(
    prepared: PreparedModel,
    watch: "_Watch",
    draws: Mapping[str, xr.DataArray],
    seed: np.random.SeedSequence,
) -> dict[str, np.ndarray]:
    """Estimate the fraction of missing information from points that chains came by.

    As :func:`pymc_dapper.diagnostics.missing_information`, with the steps that sampled; NUTS is
    tuned by then. The draws are of parameters at these points, those that were watched. Returns the
    fraction and its Monte Carlo error by name. Returns nothing if nothing is latent, or if a
    parameter is moved by other steps than conjugate draws and NUTS, such as a CountStep that
    marginalises it.
    """
    steps = _parameter_steps(prepared)
    if not steps:
        return {}
    step = CompoundStep(steps)
    points = list(chain.from_iterable(watch.points.values()))
    step.setup_chain(np.random.default_rng(seed), 0, len(points))

    def values(point: PointType) -> list[np.ndarray]:
        watch.check_time()
        return prepared.values(list(draws), point)

    with np.errstate(invalid="ignore"):  # nan for a variable without variance
        found = fractions(draws, points, step, sweeps_between_draws(steps), values)
    return {name: fraction.values for name, fraction in found.items()}


def _parameter_steps(prepared: PreparedModel) -> list[BlockedStep]:
    """Return the steps that draw all parameters given the latent variables, if there are any."""
    latent = {x for s in prepared.steps if isinstance(s, DapperStep) for x in s.vars}
    for step in prepared.steps:
        if isinstance(step, CountStep):  # its other variables are parameters that it draws itself
            latent |= {x for x in step.vars if x.dtype in discrete_types}
    steps = [step for step in prepared.steps if isinstance(step, ConjugateStep | NUTS)]
    moved = {x for step in steps for x in step.vars}
    return steps if latent and latent | moved == set(prepared.model.value_vars) else []
