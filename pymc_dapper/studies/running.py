"""Cells handed to workers, and results as they come."""

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from multiprocessing.connection import wait as wait_for_any

from pymc_dapper.studies.cell import CellResult, CellRunner
from pymc_dapper.studies.fields import FAILED, NOT_RUN, WORKER_DIED
from pymc_dapper.studies.grid import Cell
from pymc_dapper.studies.messages import error_message

ATTEMPTS = 3
"""How often a cell is begun, if the worker process dies each time."""

type Run = Callable[[Cell], CellResult]
type Results = Iterator[tuple[Cell, CellResult]]


def check_picklable(runner: CellRunner) -> None:
    """Check that the user's objects can be sent to other processes."""
    interactive = not hasattr(sys.modules["__main__"], "__file__")
    for name in ("simulate", "build", "sample_kwargs"):
        given = getattr(runner, name)
        try:
            pickle.dumps(given)
            if interactive and getattr(given, "__module__", None) == "__main__":
                raise ValueError("it was defined in an interactive session")
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(
                f"'{name}' can't be sent to worker processes: {error}. Define functions at the top "
                "level of a module or a script: no lambda, no function inside a function or a "
                "notebook. Or run in this process, with "
                "executor=concurrent.futures.ThreadPoolExecutor(1); or on Dask, which can send "
                "such functions"
            ) from error


def run_in_executor(run: Run, cells: Iterable[Cell], executor: Executor) -> Results:
    """Run cells in an executor of the user's, which is left open, and yield results as they come.

    If the executor reports an error of a cell, the cell has failed; if the executor itself broke,
    or cancelled the cell, it wasn't run.
    """
    futures: dict[Future[CellResult], Cell] = {}
    try:
        for cell in cells:
            try:
                futures[executor.submit(run, cell)] = cell
            except BrokenExecutor as error:
                yield cell, _not_run(error)
        for future in as_completed(futures):
            try:
                result = future.result()
            except (BrokenExecutor, CancelledError) as error:
                result = _not_run(error)
            except Exception as error:
                result = _executor_failed(error)
            cell = futures.pop(future)
            del future  # while we hold it, Dask runs the cell again if its worker dies later
            yield cell, result
    finally:
        for future in futures:
            future.cancel()


def _not_run(error: Exception) -> CellResult:
    if isinstance(error, CancelledError):
        return CellResult(NOT_RUN, "the executor cancelled the cell")
    return CellResult(NOT_RUN, error_message("the executor broke", error))


def _executor_failed(error: Exception) -> CellResult:
    # Dask gives up a cell whose workers died several times.
    status = WORKER_DIED if type(error).__name__ == "KilledWorker" else FAILED
    return CellResult(status, error_message("executor", error))


def run_in_processes(runner: CellRunner, cells: Iterable[Cell], workers: int) -> Results:
    """Run cells in processes on this machine, and replace processes that die.

    Raises RuntimeError if processes can't be started.
    """
    processes = _Processes(runner, workers)
    with ThreadPoolExecutor(workers) as waiting:  # a thread for each process
        try:
            yield from run_in_executor(processes, cells, waiting)
        finally:
            processes.stop()


class _Processes:
    """Runs cells in processes.

    Each process has a pool of its own. So if it dies, we know in which cell, and only that is lost.
    """

    def __init__(self, runner: CellRunner, n: int):
        self._runner = runner
        self._pools = [_one_process() for _ in range(n)]
        self._idle = list(range(n))
        self._stopped = False
        _check_ready(self._pools[0], runner)

    def __call__(self, cell: Cell) -> CellResult:
        """Run a cell in an idle process; if that dies, in a new one."""
        k = self._idle.pop()
        try:
            for _ in range(ATTEMPTS):
                try:
                    return self._begin(k, cell).result()
                except BrokenExecutor:
                    if self._stopped:
                        raise
                    self._pools[k] = _one_process()
            message = f"the worker process died, {ATTEMPTS} times in a row, in this cell"
            return CellResult(WORKER_DIED, message)
        finally:
            self._idle.append(k)

    def _begin(self, k: int, cell: Cell) -> Future[CellResult]:
        """Begin a cell; in a new process if this one has died since its last cell."""
        try:
            return self._pools[k].submit(self._runner, cell)
        except BrokenExecutor:
            self._pools[k] = _one_process()
            return self._pools[k].submit(self._runner, cell)

    def stop(self) -> None:
        """End all processes; if the study is interrupted, in the middle of a cell."""
        self._stopped = True
        for pool in self._pools:
            processes = list(pool._processes.values())  # Python 3.14 has kill_workers for it
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()


def _one_process() -> ProcessPoolExecutor:
    # Not by fork: PyTensor and numba may have threads by now.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_die_with_parent)


def _die_with_parent() -> None:
    """End this worker if its parent is killed; otherwise it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for_any([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _check_ready(pool: ProcessPoolExecutor, runner: CellRunner) -> None:
    """Check that a process starts, imports the user's functions and responds."""
    try:
        pool.submit(runner.ready).result()
    except BrokenExecutor as error:
        raise RuntimeError(
            "no worker process could be started; its own output above says why. A script that "
            "starts a study must do so under `if __name__ == '__main__':`, since workers import "
            "the script"
        ) from error


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
