"""study(): simulated releases over a grid, each analysed, on one machine or many."""

import inspect
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pymc as pm
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from xarray import DataTree

from pymc_dapper import checks
from pymc_dapper.studies import running
from pymc_dapper.studies.cell import STEP_OPTIONS, Build, CellResult, CellRunner, Simulate
from pymc_dapper.studies.fields import DONE, NOT_RUN
from pymc_dapper.studies.fingerprint import fingerprint
from pymc_dapper.studies.grid import Cell, read_grid
from pymc_dapper.studies.result import collect
from pymc_dapper.studies.store import Store

DEFAULTS = {"draws": 1000, "tune": 1000, "chains": 2, "compute_convergence_checks": False}
"""Arguments of ``pmd.sample``, if not given."""

OWN = ("model", "step", "random_seed", "var_names", "callback", "cores", "progressbar")
UNSUITED = (*OWN, "keep_records", "trace", "return_inferencedata", "discard_tuned_samples")
"""Arguments of ``pmd.sample`` that a study chooses itself, or that make no sense here."""

OnChange = Literal["warn", "raise", "reuse"]


def study(
    simulate: Simulate,
    build: Build,
    grid: Any,
    *,
    replicates: int = 1,
    var_names: Sequence[str] | None = None,
    seed: int | None = None,
    executor: Executor | int | None = None,
    store: str | PathLike[str] | None = None,
    on_change: OnChange = "warn",
    timeout: float | None = None,
    sample_kwargs: Mapping[str, Any] | None = None,
    prob: float = 0.9,
    missing_information: bool = True,
    retry_failed: bool = False,
    progressbar: bool = True,
) -> DataTree:
    """Study the cost of privacy: simulate releases over a grid of settings, and analyse each.

    Parameters
    ----------
    simulate : callable
        ``simulate(rng, **cell)`` returns two dicts: the released values, and the true values of
        parameters, in the shapes of the model's variables of the same names.
    build : callable
        ``build(released, **cell)`` returns the ``pm.Model`` of an analysis. If the released values
        are ``pm.Data``, a worker compiles once for all models that differ only in them.
    grid : mapping of str to list, DataFrame, or list of dicts
        Settings, which ``simulate`` and ``build`` are called with by name: all combinations of the
        lists' values, or a table with one row for each setting. Values are numbers, bools or
        strings.
    replicates : int, default 1
        Number of simulated releases for each setting.
    var_names : sequence of str, optional
        Parameters to report, ``pm.Deterministic`` among them. By default, those that have a true
        value.
    seed : int, optional
        Seed of the study. By default drawn, or taken from ``store``. The seed of a cell depends on
        it, on the cell's settings and on the replicate: not on the workers, the order, or the rest
        of the grid.
    executor : concurrent.futures.Executor or int, optional
        Where cells run: a number of processes on this machine, by default the number of cores; or
        an executor, such as Dask's ``client.get_executor()``, which is left open.
    store : path, optional
        Directory in which each finished cell is written at once, as a Parquet file. Cells that are
        there already aren't run again. Several processes with the same ``seed`` may fill a store at
        the same time, each with its own part of the grid. Needs pyarrow:
        ``pip install 'pymc-dapper[studies]'``.
    on_change : {"warn", "raise", "reuse"}, default "warn"
        What to do if cells in the store were computed with other code (of ``simulate``, ``build``
        and what they use of your own modules) or other versions of Python, NumPy, SciPy, numba,
        PyTensor or PyMC. Use them and warn; raise an error before anything is run; or use them
        silently.
    timeout : float, optional
        Seconds that sampling a cell may take, from its first draw on. Simulating, building the
        model and compiling don't count, and aren't stopped.
    sample_kwargs : dict, optional
        Passed on to :func:`pymc_dapper.sample`: ``draws``, ``tune`` (both 1000 if not given),
        ``chains`` (2), ``nuts`` ... ``records`` and ``counts`` are given by name.
    prob : float, default 0.9
        Probability of the equal-tailed posterior intervals.
    missing_information : bool, default True
        Whether to estimate the fraction of missing information of each parameter, from about 200
        draws. If NUTS moves parameters, that costs 2,000 of its draws. Unknown if parameters are
        marginalised above a table of counts.
    retry_failed : bool, default False
        Whether to run cells again that the store has as failed.
    progressbar : bool, default True
        Whether to show how many cells are finished, and the time left.

    Returns
    -------
    DataTree
        Its root has the grid's settings and ``replicate`` as dims; or ``cell`` and ``replicate``,
        if a table doesn't have all combinations of settings:

        - ``status``: "done", "failed", "timed out", "worker died" or "not run", with a ``message``;
        - ``record_acceptance``, its ``acceptance_floor`` under a pure budget, ``divergences``;
        - ``build_seconds`` for steps and compiling, ``sample_seconds`` from the first draw on, and
          ``seconds`` for all.

        Below, a group for each parameter, with the parameter's own dims as well:

        - ``truth``; ``mean``, ``median``, ``sd``; ``lower``, ``upper`` and ``width`` of the
          interval; ``error``, the mean less the truth; ``covered``, 1 if the interval has the truth
          in it, else 0; ``ess_bulk``, ``ess_per_second``, ``r_hat``; ``missing_information`` with
          its Monte Carlo error ``missing_information_mcse``;
        - over finished replicates: ``bias`` and ``coverage``, with their Monte Carlo errors
          ``bias_mcse`` and ``coverage_mcse`` (the latter computed as if one more interval held the
          truth and one more missed it, so that it is never 0).

        Unknown values are nan. Attributes: ``seed`` and ``prob``.

    Raises
    ------
    TypeError, ValueError
        If an argument can't be used, if it can't be sent to worker processes, or if
        the store holds results of other settings, of other code with ``on_change="raise"``, or
        is damaged.
    OSError
        If the store can't be written to.
    RuntimeError
        If no worker process can be started.

    Warns
    -----
    UserWarning
        If a cell isn't done; if a file of the store can't be read, or results can't be written to
        it; if code or versions have changed since its cells were computed.

    Notes
    -----
    Each cell is sampled in one process, which runs one cell at a time. With the same seed all
    results but timings are the same to the bit, on machines of one kind.

    A cell that raises is recorded with its error, and the rest goes on. If a process of the study's
    own dies, it is replaced and its cell run again, three times at most; other executors decide for
    themselves.

    Examples
    --------
    >>> result = pmd.study(
    ...     simulate, build, {"epsilon": [0.1, 1.0, 10.0]}, replicates=100, seed=1, store="results"
    ... )
    >>> result["mu"]["coverage"]
    """
    read = read_grid(grid, replicates)
    kwargs = _sample_kwargs(checks.options(sample_kwargs, "sample_kwargs"))
    _check(executor, store, on_change, retry_failed=retry_failed, progressbar=progressbar)
    executor = running.available_cores() if executor is None else executor
    runner = CellRunner(
        simulate=checks.function(simulate, "simulate", "simulate(rng, **cell)"),
        build=checks.function(build, "build", "build(released, **cell)"),
        seed=int(np.random.SeedSequence().generate_state(1)[0])
        if seed is None
        else checks.whole_number(seed, "seed", at_least=0),
        var_names=None if var_names is None else checks.names(var_names, "var_names"),
        prob=checks.finite_number(prob, "prob", above=0, below=1),
        timeout=None if timeout is None else checks.finite_number(timeout, "timeout", above=0),
        missing_information=checks.flag(missing_information, "missing_information"),
        sample_kwargs=kwargs,
    )
    if isinstance(executor, int | ProcessPoolExecutor):
        running.check_picklable(runner)

    results: dict[Cell, CellResult] = {}
    place = None if store is None else Store(Path(store), fingerprint(simulate, build))
    if place is not None:
        if seed is None and (found := place.seed()) is not None:
            runner = replace(runner, seed=found)
        place.take_over(_identity(runner, read.names))
        results = place.read(read.cells)
        if retry_failed:
            results = {cell: x for cell, x in results.items() if x.status == DONE}
        _tell_changes(place, results, on_change)
    missing = [cell for cell in read.cells if cell not in results]
    in_processes = isinstance(executor, int)
    run: Any = running.run_in_processes if in_processes else running.run_in_executor
    with _progress(len(read.cells), len(results), show=progressbar) as report:
        for cell, result in run(runner, missing, executor):
            results[cell] = result
            if place is not None and result.status != NOT_RUN:
                place.write(cell, result)
            report(result)
    _warn_of_missing(results)
    return collect(read, results, {"seed": runner.seed, "prob": runner.prob})


def _sample_kwargs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the sampler's arguments, and fill in defaults."""
    there = {*STEP_OPTIONS, *inspect.signature(pm.sample).parameters} - {"kwargs", *UNSUITED}
    rule = "sample_kwargs: a study chooses steps and seeds itself, keeps no draws, and takes no"
    checks.known(given, sorted(there), rule)
    return {**DEFAULTS, **given}


def _check(executor: Any, store: Any, on_change: Any, **flags: Any) -> None:
    for name, value in flags.items():
        checks.flag(value, name)
    if executor is not None and not isinstance(executor, Executor):
        rule = "executor must be a number of processes or an Executor (Dask: client.get_executor())"
        checks.is_a(executor, int, rule)
        checks.whole_number(executor, "executor", at_least=1)
    if store is not None:
        checks.is_a(store, str | PathLike, "store must be the path of a folder")
        checks.text(str(store), "store")  # "" would be the current folder
    checks.choice(on_change, "on_change", get_args(OnChange))


def _identity(runner: CellRunner, names: Sequence[str]) -> dict[str, Any]:
    """All settings that results depend on, except those that a cell has for itself."""
    return {
        "pymc_dapper": version("pymc-dapper"),
        "seed": runner.seed,
        "settings": sorted(names),
        "var_names": runner.var_names,
        "prob": runner.prob,
        "missing_information": runner.missing_information,
        "sample_kwargs": dict(runner.sample_kwargs),
    }


@contextmanager
def _progress(total: int, finished: int, *, show: bool) -> Iterator[Callable[[CellResult], None]]:
    """Show a progress bar while the context lasts."""
    columns = (
        TextColumn("Study"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    # From all cells: the last 30 s alone would give no estimate if a cell takes longer.
    with Progress(*columns, disable=not show, speed_estimate_period=math.inf) as bar:
        task = bar.add_task("", total=total, completed=finished, note="")
        statuses: Counter[str] = Counter()

        def report(result: CellResult) -> None:
            statuses[result.status] += 1
            bar.update(task, advance=1, note="".join(f", {x}" for x in _not_done(statuses)))

        yield report


def _not_done(statuses: Counter[str]) -> list[str]:
    return [f"{count} {status}" for status, count in statuses.items() if status != DONE]


def _tell_changes(store: Store, cells: Iterable[Cell], on_change: OnChange) -> None:
    """Report whether other code or versions computed some cells of a store."""
    changed = [cell for cell in cells if cell in store.changed]
    if changed and on_change != "reuse":
        listed = dict.fromkeys(change for cell in changed for change in store.changed[cell])
        message = (
            f"{len(changed)} cells in store={str(store.path)!r} were computed with other code or "
            f"versions: {'; '.join(listed)}. Give another store to compute them anew, or "
            "on_change='reuse' if the change doesn't matter"
        )
        if on_change == "raise":
            raise ValueError(message)
        warnings.warn(f"{message}. They are used", stacklevel=3)


def _warn_of_missing(results: Mapping[Cell, CellResult]) -> None:
    listed = _not_done(Counter(result.status for result in results.values()))
    if listed:
        example = next(f"{cell}: {x.message}" for cell, x in results.items() if x.status != DONE)
        warnings.warn(
            f"of {len(results)} cells, {' and '.join(listed)}. The first: {example}. See 'status' "
            "and 'message' of the result",
            stacklevel=3,
        )
