"""One measurement, in a process of its own, on one core: prints its results as JSON.

    python -m benchmarks.measure '{"task": "sampling", "workload": "admissions", "n": 400, ...}'

`benchmarks.run` calls this; `TASKS` says what there is.
"""

import json
import logging
import resource
import sys
from multiprocessing import Value
from time import perf_counter, process_time

if __name__ == "__main__":
    # Installed for tests. xarray imports it where it is, with the first result: 0.1 to 0.3 s.
    sys.modules["dask"] = None

began = perf_counter()
import pymc as pm  # noqa: E402

seconds_pymc, began, began_cpu = perf_counter() - began, perf_counter(), process_time()
import pymc_dapper as pmd  # noqa: E402

seconds_pymc_dapper, cpu_pymc_dapper = perf_counter() - began, process_time() - began_cpu

import ctypes  # noqa: E402
import gc  # noqa: E402
from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from numba.core import event  # noqa: E402
from pymc.initial_point import make_initial_point_fn  # noqa: E402
from pymc.step_methods.compound import BlockedStep  # noqa: E402

from benchmarks import first_draws  # noqa: E402
from benchmarks.parts import IMPORT, cpu_seconds, parts  # noqa: E402
from benchmarks.peers import PEERS, QUIET  # noqa: E402
from benchmarks.workloads import WORKLOADS  # noqa: E402

SECONDS = 1.0
"""How long a piece of work is repeated for, to time it."""


def peak_memory():
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made(workload, n=None):
    return WORKLOADS[workload]() if n is None else WORKLOADS[workload](n)


def seconds_of(*works, at_least=5):
    """CPU seconds of each work, the best of many times: in turns, as machines have slow phases."""
    for work in works:
        work()
    best, until, times = [np.inf] * len(works), process_time() + SECONDS * len(works), 0
    while process_time() < until or times < at_least:
        for k, work in enumerate(works):
            began = process_time()
            work()
            best[k] = min(best[k], process_time() - began)
        times += 1
    return best if len(works) > 1 else best[0]


# Time to first draw -------------------------------------------------------------------------------


class Compilations(event.Listener):
    """Counts what numba compiles, in this process and those forked from it."""

    def __init__(self):
        self._number = Value("q", 0)

    @property
    def number(self):
        return self._number.value

    def on_start(self, event):
        with self._number:
            self._number.value += 1

    def on_end(self, event):
        pass


def first_draw(workload, way):
    """From the call of `pmd.sample`, or of `pm.sample` with its own or idle steps, to one draw.

    With where the CPU time goes, the import of `pymc_dapper` among it. What it imports only when it
    is asked for counts there, or is part of the seconds in which the model is written. What all
    need, and some examples import when they are written, counts for none: `pmd.sample` itself, and
    ArviZ, by which PyMC returns draws.
    """
    began = perf_counter()
    model = first_draws.build(workload)
    import_module("arviz_base")
    assert pmd.sample
    seconds_writing = perf_counter() - began
    options = {"tune": 0, "chains": 1, "random_seed": 1, **QUIET}
    compilations = Compilations()
    event.register("numba:compile", compilations)
    began, began_cpu = perf_counter(), cpu_seconds()
    with parts() as found:
        if way == "pymc_dapper":
            pmd.sample(1, model=model, **options)
        elif way == "idle":
            pm.sample(1, model=model, step=[NoOpStep(model.value_vars, model=model)], **options)
        else:
            pm.sample(1, model=model, nuts_sampler="pymc", **options)
    seconds, of_cpu = perf_counter() - began, cpu_seconds() - began_cpu
    if way == "pymc_dapper":
        found[IMPORT] += cpu_pymc_dapper
    return {
        "seconds": seconds,
        "cpu_seconds": of_cpu,
        "parts": found,
        "compilations": compilations.number,
        "writing": seconds_writing,
        "import_pymc": seconds_pymc,
        "import_pymc_dapper": seconds_pymc_dapper,
    }


# Sampling -----------------------------------------------------------------------------------------


def sampling(workload, way, n=None, draws=1000, tune=1000, **options):
    """Time per draw, effective draws a second, and the process's largest memory."""
    return {**PEERS[way](made(workload, n), draws, tune, **options), "peak_memory": peak_memory()}


# Sweeps -------------------------------------------------------------------------------------------


def start(model, workload):
    """A point with the workload's values of the parameters, and initial records."""
    overrides = {model[name]: value for name, value in workload.parameters.items()}
    at = make_initial_point_fn(model=model, overrides=overrides, return_transformed=True)
    return at(0)


def sweep(workload, n=None):
    """Seconds of a sweep of DapperStep, proposals and step protocol included, and by hand."""
    work = made(workload, n)
    model = work.build()
    step = pmd.DapperStep([model[name] for name in work.records], model=model)
    step.setup_chain(np.random.default_rng(1), 0, 10)
    point, settled = start(model, work), 30
    for _ in range(settled):
        point, _ = step.step(point)

    def ours():
        nonlocal point
        for _ in range(times):
            point, _ = step.step(point)

    rng, times = np.random.default_rng(1), max(1, 100_000 // work.n)
    work.sweep(rng, settled)
    seconds, by_hand = seconds_of(ours, lambda: work.sweep(rng, times))
    return {"ours": seconds / times, "by hand": by_hand / times}


def separable(n=100_000):
    """Records that don't interact: a sweep, and one vectorised pass of NumPy with the same draws.

    Of few values: cells, each with one randomised answer. Of many: normal, each with Laplace noise.
    """
    rng = np.random.default_rng(1)
    answers = rng.integers(4, size=n)
    with pm.Model() as cells:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=n)
        pmd.RandomizedResponse(0.7, categories=4).observe("answer", record, released=answers)
    noisy = rng.normal(0, 1, n) + rng.laplace(0, 1, n)
    with pm.Model() as numbers:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=n)
        pm.Laplace("noisy", x, 1, observed=noisy)

    channel = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    state = rng.normal(0, 1, n)

    def pass_over_cells():
        weights = 0.25 * channel
        table = np.cumsum(weights / weights.sum(axis=0), axis=0).T
        return (rng.random(n)[:, None] >= table[answers, :3]).sum(axis=1)

    def pass_over_numbers():
        proposed = rng.standard_normal(n)
        gain = np.abs(noisy - state) - np.abs(noisy - proposed)
        accepted = -rng.standard_exponential(n) < gain
        state[:] = np.where(accepted, proposed, state)

    found = {}
    for name, model, records, by_numpy in (
        ("few values", cells, record, pass_over_cells),
        ("many values", numbers, x, pass_over_numbers),
    ):
        step = pmd.DapperStep([records], model=model)
        step.setup_chain(np.random.default_rng(1), 0, 10)
        point = model.initial_point()
        ours, numpy = seconds_of(lambda step=step, point=point: step.step(point), by_numpy)
        found[name] = {"ours": ours, "by NumPy": numpy, "n": n}
    return found


# What steps cost beyond their kernels -------------------------------------------------------------


def overhead():
    """Seconds of each step on one record: nearly all of it is overhead, not the kernel."""
    with pm.Model() as one:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=1)
        pm.Potential("privacy", -((x.sum() - 0.3) ** 2))
    with pm.Model() as of_counts:
        total = pm.Poisson("total", 3.0)
        pm.Potential("privacy", -((total - 2.5) ** 2))
    with pm.Model() as of_events:
        events = pm.Poisson("events", 3.0, shape=1)
        pm.Potential("privacy", -((events.sum() - 2.5) ** 2))
    steps = {
        "`DapperStep`": (one, pmd.DapperStep([x], model=one)),
        "`DapperStep`, Poisson record": (of_events, pmd.DapperStep([events], model=of_events)),
        "`ConjugateStep`": (one, pmd.ConjugateStep([p], model=one)),
        "`InterweaveStep`": (one, pmd.InterweaveStep([p], records=[x], moves=1, model=one)),
        "`CountStep`": (of_counts, pmd.CountStep([total], model=of_counts)),
    }
    found = {}
    for name, (model, step) in steps.items():
        point = model.initial_point()
        step.setup_chain(np.random.default_rng(1), 0, 10)

        def repeated(step=step, point=point):
            for _ in range(1000):
                step.step(point)

        found[name] = seconds_of(repeated) / 1000
    return found


class NoOpStep(BlockedStep):
    """A step that leaves its variables as they are."""

    name = "no_op"

    def __init__(self, vars, *, model=None, rng=None, blocked=True):
        self.vars = vars
        self.blocked = blocked
        self.rng = np.random.default_rng(rng)

    def step(self, point):
        return {**point}, [{}]


def protocol(workload, n=None, draws=20_000):
    """Seconds a draw of `pmd.sample` without interweaving, and what it consists of.

    The loop by hand, and `pm.sample` with as many steps that do nothing. The time is what PyMC
    reports of all draws, the median of five runs.
    """
    work = made(workload, n)
    model = work.build()
    parameters = list(work.parameters)
    no_ops = [
        NoOpStep([model.rvs_to_values[model[name]] for name in names], model=model)
        for names in (parameters, work.records)
    ]
    options = {"tune": 0, "chains": 1, "cores": 1, "random_seed": 1, "model": model, **QUIET}

    def per_draw(sample, **more):
        idata = sample(draws, var_names=parameters, **options, **more)
        return float(idata.posterior.attrs["sampling_time"]) / draws

    ways = {
        "pmd.sample": lambda: per_draw(pmd.sample, interweave=False, tabulate=False),
        "by hand": lambda: seconds_of(lambda: work.loop(np.random.default_rng(1), draws)) / draws,
        "pm.sample": lambda: per_draw(pm.sample, step=no_ops),
    }
    # In turns, since a machine may be slow for seconds at a time.
    rounds = [{way: measured() for way, measured in ways.items()} for _ in range(5)]
    return {way: float(np.median([each[way] for each in rounds])) for way in ways}


# Memory -------------------------------------------------------------------------------------------


def memory(workload, n):
    """Largest memory of each phase, in copies of the records, beyond what there was before.

    Everything is compiled first, for a smaller model. Linux only.
    """
    options = {"tune": 2, "chains": 1, "cores": 1, "random_seed": 1, **QUIET}
    small = made(workload, min(n, 10_000)).build()
    pmd.sample(2, model=small, **options)
    work = made(workload, n)
    model = work.build()
    copy = sum(model.initial_point()[name].nbytes for name in work.records)
    found = {}

    def of(phase, run):
        before = _reset_peak()
        result = run()
        found[phase] = (_memory("VmHWM") - before) / copy
        return result

    steps = of("building the steps", lambda: pmd.assign_steps(model=model))
    of("sampling with these steps", lambda: _sample(model, steps, work, options))
    point = model.initial_point()
    steps[0].setup_chain(np.random.default_rng(1), 0, 10)
    of("a sweep of `DapperStep`", lambda: steps[0].step(point))
    return {"bytes_of_records": copy, "copies": found}


def _sample(model, steps, work, options):
    return pm.sample(5, step=steps, model=model, var_names=list(work.parameters), **options)


def _reset_peak():
    """Give freed memory back and forget the peak; bytes in use."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def _memory(entry):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith(entry)]
    return 1024 * int(line.split()[1])


TASKS = {
    task.__name__: task
    for task in (first_draw, sampling, sweep, separable, overhead, protocol, memory)
}


def main(job):
    """Run a task: `job` holds its name and its arguments."""
    job = dict(job)
    return TASKS[job.pop("task")](**job)


if __name__ == "__main__":
    logging.getLogger("pymc").setLevel(logging.CRITICAL)
    print(json.dumps(main(json.loads(sys.argv[1]))))
