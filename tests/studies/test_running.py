"""The same results from one process, from several and from a Dask cluster, whoever dies."""

import os
import subprocess
import sys
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from pymc_dapper.studies import running, study
from tests.preloaded import preloaded
from tests.studies import functions, runs
from tests.studies.runs import REPLICATES

ROOT = Path(__file__).parents[2]

# What is sampled isn't the matter: a model for which each process compiles little.
run = partial(runs.run, build=functions.build_light)


def run_here(simulate=functions.simulate, **options):
    with ThreadPoolExecutor(1) as executor:
        return run(simulate, executor=executor, **options)


@pytest.fixture(scope="module")
def expected():
    """From one process, in order."""
    return run_here()


@pytest.fixture(scope="module")
def cluster():
    """A worker process; no dashboard, and ports of the system's choice."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # which says once what to load, before we do
        preloaded()
        cluster = LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},
        )
        with cluster, Client(cluster) as client:
            yield client


def test_another_seed_gives_something_else(expected):
    """Else the comparisons below would show nothing."""
    assert (expected["status"] == "done").all()
    assert not functions.same(run_here(seed=2), expected)


@pytest.mark.long
def test_dask_gives_the_same(expected, cluster):
    """With functions that pickle can't send, but Dask can."""

    def simulate(rng, share):
        return functions.simulate(rng, share)

    assert functions.same(run(simulate, executor=cluster.get_executor()), expected)


@pytest.mark.long
def test_several_processes_give_the_same_with_records():
    """Which are compiled in each."""
    with ThreadPoolExecutor(1) as executor:
        expected = runs.run(executor=executor)
    assert functions.same(runs.run(executor=2), expected)


def begun_twice(folder):
    """How many cells were begun twice, where all others were begun once."""
    begun, _ = functions.notes(folder)
    assert len(begun) == 2 * REPLICATES
    assert set(begun.values()) <= {1, 2}
    return list(begun.values()).count(2)


@pytest.mark.long
def test_a_dask_worker_that_dies_loses_its_cell_only(expected, cluster, tmp_path):
    """Catches a study that holds on to Dask's futures: Dask then runs finished cells again."""
    store = tmp_path / "store"
    simulate = partial(functions.simulate_and_die, folder=tmp_path, store=store)
    assert functions.same(run(simulate, executor=cluster.get_executor(), store=store), expected)
    assert begun_twice(tmp_path) == 1


@pytest.mark.long
def test_a_process_that_dies_loses_its_cell_only(expected, tmp_path, monkeypatch):
    """Two processes, one of which dies, give the same results as one process."""
    new = partial(ProcessPoolExecutor, 1, preloaded(), initializer=running._die_with_parent)
    monkeypatch.setattr(running, "_one_process", new)
    store = tmp_path / "store"
    simulate = partial(functions.simulate_and_die, folder=tmp_path, store=store)
    assert functions.same(run(simulate, executor=2, store=store), expected)
    assert begun_twice(tmp_path) == 1


class Dies(Executor):
    """A process pool of one process, which dies in cells of share 0.7, or before it is ready."""

    def __init__(self, ready=True):
        self._ready = ready
        self._processes = {}

    def submit(self, function, *cell):
        future = Future()
        if (cell and cell[0].settings["share"] == 0.7) or not self._ready:
            future.set_exception(BrokenExecutor("the process died"))
        else:
            future.set_result(function(*cell))
        return future

    def shutdown(self, **options):
        pass


def test_a_cell_that_kills_each_process_is_given_up(monkeypatch):
    """Catches a study that would go on with such a cell for ever, or blame its neighbours."""
    started = []
    monkeypatch.setattr(running, "_one_process", lambda: started.append(1) or Dies())
    with pytest.warns(UserWarning, match="of 8 cells, 4 worker died"):
        result = run(functions.simulate, executor=2)
    assert (result["status"].sel(share=0.3) == "done").all()
    assert (result["status"].sel(share=0.7) == "worker died").all()
    assert (result["message"].sel(share=0.7).str.contains("3 times")).all()
    assert result["p/mean"].sel(share=0.7).isnull().all()
    # Each of four cells had three attempts, and each attempt cost a process.
    assert len(started) == 2 + 12


class DiesAfterwards(Dies):
    """A process pool whose process dies after its first cell, when it has nothing to do."""

    n_begun = 0

    def submit(self, function, *cell):
        if cell:
            self.n_begun += 1
        if self.n_begun > 1:
            raise BrokenExecutor("the process had died")
        return super().submit(function, *cell)


def test_a_process_that_dies_between_two_cells_is_replaced(monkeypatch):
    """Catches a study that ends since it can't hand out a cell, or that counts an attempt."""
    started = []
    monkeypatch.setattr(running, "_one_process", lambda: started.append(1) or DiesAfterwards())
    monkeypatch.setattr(running, "ATTEMPTS", 1)
    with pytest.warns(UserWarning, match="of 8 cells, 4 worker died"):
        result = run(functions.simulate, executor=1)
    assert (result["status"].sel(share=0.3) == "done").all()
    assert len(started) == REPLICATES + REPLICATES + 1


def test_processes_that_cannot_start_are_reported(monkeypatch):
    monkeypatch.setattr(running, "_one_process", lambda: Dies(ready=False))
    with pytest.raises(RuntimeError, match="under `if __name__ == '__main__':`"):
        run(executor=2)


class BreaksAfter(Executor):
    """An executor whose pool breaks, as a ProcessPoolExecutor's does if a worker dies."""

    def __init__(self, n_cells):
        self._n_left = n_cells

    def submit(self, function, *arguments):
        future = Future()
        self._n_left -= 1
        if self._n_left == -3:
            raise BrokenExecutor("broken before")
        if self._n_left < 0:
            future.set_exception(BrokenExecutor("broken"))
        else:
            future.set_result(function(*arguments))
        return future


def test_an_executor_that_breaks_leaves_cells_to_a_rerun(tmp_path):
    with pytest.warns(UserWarning, match="of 8 cells, 4 not run"):
        result = run(executor=BreaksAfter(4), store=tmp_path)
    assert (result["status"].sel(share=0.3) == "done").all()
    assert (result["status"].sel(share=0.7) == "not run").all()
    again = run(executor=BreaksAfter(4), store=tmp_path)
    assert functions.same(again, run_here())


class Cancels(Executor):
    """An executor that gives up what waits, as one does that is shut down."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_exception(CancelledError())
        return future


def test_cells_that_were_cancelled_are_not_run():
    with pytest.warns(UserWarning, match="of 8 cells, 8 not run.*cancelled the cell"):
        run(executor=Cancels())


def test_a_cell_that_raises_is_recorded_and_the_rest_goes_on(expected):
    with pytest.warns(UserWarning, match="of 8 cells, 4 failed. The first: share=0.7, replicate 0"):
        result = run_here(functions.simulate_and_fail)
    assert (result["status"].sel(share=0.7) == "failed").all()
    assert (result["message"].sel(share=0.7) == "simulate: ZeroDivisionError: no such share").all()
    done = expected["p"].dataset.sel(share=0.3).drop_vars("ess_per_second")
    assert result["p"].dataset.sel(share=0.3).drop_vars("ess_per_second").identical(done)


SCRIPT = """
import sys
from functools import partial

from tests.studies import functions
from tests.studies.runs import run

if __name__ == "__main__":
    simulate = partial(functions.simulate_and_wait, folder=sys.argv[1])
    run(simulate, functions.build_light, executor=1, store=sys.argv[2])
"""


def _is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.long
def test_a_study_whose_main_process_is_killed_is_finished_by_another(tmp_path):
    """Which doesn't run what was finished; the workers of the first end with it."""
    noted, store, script = (tmp_path / name for name in ("noted", "store", "script.py"))
    noted.mkdir()
    script.write_text(SCRIPT)
    main = subprocess.Popen(
        [sys.executable, str(script), str(noted), str(store)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )
    try:
        functions.wait_until(
            lambda: functions.notes(noted)[0].total() > REPLICATES or main.poll() is not None
        )
        assert len(list(store.glob("*.parquet"))) == REPLICATES
    finally:
        main.kill()
        main.wait()
    before, workers = functions.notes(noted)
    simulate = partial(functions.simulate_and_note, folder=noted)
    result = run_here(simulate, store=store, on_change="reuse")
    functions.wait_until(lambda: not any(_is_running(pid) for pid in workers))
    assert functions.same(result, run_here())
    after, _ = functions.notes(noted)
    assert len(after) == 2 * REPLICATES
    assert (after - before).total() == REPLICATES
    assert sorted(after.values())[-2:] == [1, 2]


def test_functions_that_cannot_be_sent_are_refused():
    with pytest.raises(ValueError, match=r"'build' can't be sent.*ThreadPoolExecutor"):
        run(build=lambda released, share: None)


@pytest.mark.long
def test_sample_kwargs_that_cannot_be_sent_are_refused():
    with pytest.raises(ValueError, match=r"'sample_kwargs' can't be sent"):
        study(
            functions.simulate,
            functions.build,
            functions.GRID,
            executor=1,
            sample_kwargs={"dapper": {"x": lambda: None}},
        )
