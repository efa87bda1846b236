"""Measure the package and its peers, and write the pages on speed with their figures.

    python -m benchmarks.run            half an hour, on a machine with nothing else to do
    python -m benchmarks.run --short    a few minutes: small sizes, few draws; for trying out
    python -m benchmarks.run --page     write the page anew from the last results
    python -m benchmarks.run --only sweep    measure one task anew, and keep the other results
    python -m benchmarks.run --only first_draw --way pymc_dapper    and that one way only

One measurement after another, each in a process of its own with one thread. Peers that aren't
installed are skipped, with a note. Results are kept in benchmarks/results.json.
"""

import argparse
import compileall
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from benchmarks import page, r
from benchmarks.first_draws import USERS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
}
TASKS = ("overhead", "separable", "protocol", "sweep", "memory", "sampling", "first_draw")
TIME_LIMIT = 240
"""Seconds that a measurement may take."""
FIRST_DRAW_LIMIT = 1200
"""Seconds that a first draw may take."""
TIMES_WARM = 5
"""How often the first draw of the same model again is measured: of a second, noise is a part."""

EXAMPLES = ("randomised_response", "admissions", "regression")
OTHERS = ("poisson", "logistic_regression")
SIZES = {
    "admissions": (400, 10_000, 100_000, 1_000_000),
    "regression": (50, 500, 5_000, 50_000),
}


def first_draws():
    """With an empty cache; with what that left there; and with what all other models left there."""
    for caches in ("cold", "warm", "of others"):
        for way in ("pymc_dapper", "PyMC's defaults"):
            for workload in (*EXAMPLES, *OTHERS, *USERS):
                yield {"task": "first_draw", "workload": workload, "way": way, "caches": caches}


def cache_of(job, folder):
    """Where a model's compiled code is, or what all others measured so far left."""
    way = folder / re.sub(r"\W+", "_", job["way"])
    own = way / job["workload"]
    if job["caches"] != "of others":
        return own
    joined = way / f"without {job['workload']}"
    for other in sorted(way.iterdir()):
        if other != own and not other.name.startswith("without"):
            join_caches(other, joined)
    return joined


def join_caches(cache, joined):
    """Copy compiled code; of a function that is there already nothing, lest versions get mixed."""

    def function(file):
        """What the index of a function's versions and these are named by."""
        return re.sub(r"(\.\d+\.nbc|\.nbi)$", "", str(file))

    def files(cache):
        return [file.relative_to(cache) for file in sorted(cache.rglob("*")) if file.is_file()]

    there = {function(file) for file in files(joined)}
    for file in files(cache):
        if function(file) not in there:
            (joined / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(cache / file, joined / file)


def samplings(scale):
    """Every way to sample every workload: our own, by hand, and the peers that can."""
    for workload in (*EXAMPLES, *OTHERS):
        for n in SIZES.get(workload, (None,)):
            job = {"task": "sampling", "workload": workload, "n": n}
            # Some seconds each: fewer draws of more records.
            draws = 20_000 if n is None else min(20_000, max(300, 30_000_000 // n))
            draws = max(20, draws // scale)
            ours = {"draws": draws, "tune": min(1_000, draws)}
            yield {**job, "way": "pymc_dapper", **ours}
            yield {**job, "way": "by hand", **ours}
            small = n is None or n <= 500
            if small:
                few = max(20, 300 // scale)
                yield {**job, "way": "PyMC's defaults", "draws": few, "tune": few}
            if workload == "regression":
                some = max(20, min(10_000, 1_000_000 // n) // scale)
                for way in ("nutpie, centred", "nutpie, non-centred"):
                    yield {**job, "way": way, "draws": some, "tune": min(1_000, 2 * some)}


def in_r():
    """R's dapper, on the paper's examples: some minutes each, as slow as it is."""
    for workload, script, draws in (
        ("randomised_response", "randomised_response", 4_000),
        ("admissions", "admissions", 400),
        ("admissions", "admissions_plain", 4_000),
        ("regression", "regression", 10_000),
    ):
        job = {"task": "sampling", "workload": workload, "way": "R's dapper", "script": script}
        yield {**job, "draws": draws, "tune": draws // 10}


def jobs(short):
    """All measurements, in order."""
    limit = 5_000 if short else 10**9
    yield {"task": "overhead"}
    yield {"task": "separable", "n": min(limit, 100_000)}
    for workload in EXAMPLES:
        for n in (400, 50) if workload in SIZES else (None,):
            draws = 500 if short else 20_000
            yield {"task": "protocol", "workload": workload, "n": n, "draws": draws}
    for workload in (*EXAMPLES, *OTHERS):
        yield from (
            {"task": "sweep", "workload": workload, "n": n}
            for n in SIZES.get(workload, (None,))
            if n is None or n <= limit
        )
    for workload in ("admissions", "regression"):
        yield {"task": "memory", "workload": workload, "n": min(limit, 1_000_000)}
    for job in samplings(100 if short else 1):
        if job["n"] is None or job["n"] <= limit:
            yield job
    yield from in_r()
    yield from first_draws()


def why_not(job):
    """Why a measurement can't be made; None if it can."""
    way = job.get("way", "")
    if job["task"] == "memory" and not sys.platform.startswith("linux"):
        return "other systems than Linux don't say how much memory was in use at most"
    if way == "R's dapper":
        return r.why_not()
    if way.startswith("nutpie") and importlib.util.find_spec("nutpie") is None:
        return "nutpie isn't installed"
    return None


def measure(job, folder):
    """Run one job in a process of its own; a short one several times, for the median."""
    times = TIMES_WARM if job.get("caches") == "warm" else 1
    found = [measure_once(job, folder) for _ in range(times)]
    skipped = [result for result in found if "skipped" in result]
    if skipped:
        return skipped[0]
    return sorted(found, key=lambda result: result.get("seconds", 0))[times // 2]


def measure_once(job, folder):
    """Run one job in a process of its own."""
    reason = why_not(job)
    if reason is not None:
        return {"skipped": reason}
    arguments = {key: value for key, value in job.items() if key != "caches"}
    environment = os.environ | ONE_THREAD
    # As where the package is installed: its source isn't compiled to bytecode by each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if "caches" in job:
        flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={cache_of(job, folder)}"
        environment["PYTENSOR_FLAGS"] = flags.strip(",")
    limit = FIRST_DRAW_LIMIT if job["task"] == "first_draw" else TIME_LIMIT
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(arguments)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"it takes longer than {limit} s"}
    except subprocess.CalledProcessError as error:
        # One failure isn't to cost what the other measurements found.
        print(f"{job} failed:\n{error.stderr}", file=sys.stderr)
        return {"skipped": "its run failed"}
    return json.loads(done.stdout.splitlines()[-1])


def run(short, keep):
    """Measure everything; `keep` is called with all results so far, so that none can be lost."""
    began = perf_counter()
    packages = ("pymc-dapper", "pymc", "pytensor", "numba", "numpy", "nutpie")
    installed = [name for name in packages if importlib.util.find_spec(name.replace("-", "_"))]
    found = {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in installed},
        "cores": os.cpu_count(),
        "short": short,
        "measurements": [],
    }
    for entry in measured(jobs(short)):
        found["measurements"].append(entry)
        found["seconds"] = perf_counter() - began
        keep(found)
    return found


def measured(wanted):
    """Run jobs, one after another; yield each with its result."""
    compileall.compile_dir(ROOT / "pymc_dapper", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        for job in wanted:
            result = measure(job, Path(folder))
            print(f"{_shown(job)}: {_shown(result)}", flush=True)
            yield {"job": job, "result": result}


def anew(found, task, way, keep):
    """Measure one task anew, or one way of it; `keep` is called with all results, old and new."""
    wanted = [json.dumps(job) for job in jobs(False)]
    known = {json.dumps(entry["job"]): entry for entry in found["measurements"]}
    chosen = (job for job in jobs(False) if job["task"] == task and way in (None, job.get("way")))
    for entry in measured(chosen):
        known[json.dumps(entry["job"])] = entry
        found = {**found, "measurements": [known[job] for job in wanted if job in known]}
        keep(found)
    return found


def _shown(entries):
    def text(value):
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{key} {text(value)}" for key, value in entries.items() if value is not None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small sizes; leaves docs as they are")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--only", metavar="TASK", choices=TASKS, help="measure this task anew")
    parser.add_argument("--way", choices=page.WAYS, help="of that task, measure this way only")
    arguments = parser.parse_args()
    if arguments.page or arguments.only:
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
        if arguments.only:
            found = anew(found, arguments.only, arguments.way, _keep)
        page.write(found)
    elif arguments.short:
        print(page.text(run(True, keep=lambda found: None)))
    else:
        page.write(run(False, keep=_keep))


def _keep(found):
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
