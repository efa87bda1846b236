"""Compare the speed of this checkout with that of another one, in turns on the same machine.

    git worktree add ../before main
    python -m benchmarks.against ../before                 a table of ratios
    python -m benchmarks.against ../before --limit 1.2     fails if one is above 1.2

Each measurement runs in a process of its own with one thread, in both checkouts by turns; of each
the fastest counts, as other work on the machine can only slow it down. Only ratios are shown:
seconds differ between machines.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.run import ONE_THREAD, ROOT

JOBS = {
    "a sweep: randomised response": {"task": "sweep", "workload": "randomised_response"},
    "a sweep: 400 applicants": {"task": "sweep", "workload": "admissions", "n": 400},
    "a sweep: 10,000 applicants": {"task": "sweep", "workload": "admissions", "n": 10_000},
    "a sweep: regression of 500": {"task": "sweep", "workload": "regression", "n": 500},
    "a sweep: Poisson records": {"task": "sweep", "workload": "poisson"},
    "a sweep: logistic regression": {"task": "sweep", "workload": "logistic_regression"},
    **{
        f"sampling: {workload.replace('_', ' ')}": {
            "task": "sampling",
            "workload": workload,
            "way": "pymc_dapper",
            "n": n,
            "draws": 2_000,
            "tune": 500,
        }
        for workload, n in (("admissions", 400), ("regression", 50), ("poisson", None))
    },
}
"""What is measured, by what it is called."""

SECONDS = {"sweep": "ours", "sampling": "seconds_per_draw"}
"""By task, which of the results are compared: seconds, of a sweep or of all draws."""


def seconds(checkout, job):
    """Seconds of one job by the code of a checkout; None if it isn't measured there."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, "-m", "benchmarks.measure", json.dumps(job)]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{job} failed in {checkout}:\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1]).get(SECONDS[job["task"]])


def ratio(before, job, times):
    """How many times as long as before a job takes here; None if one of both can't run it."""
    checkouts = (before, ROOT)
    best: dict[Path, float] = {}
    for turn in range(times):
        for checkout in checkouts[:: 1 if turn % 2 == 0 else -1]:
            taken = seconds(checkout, job)
            if taken is None:
                return None
            best[checkout] = min(taken, best.get(checkout, taken))
    return best[ROOT] / best[before]


def table(ratios, limit):
    """Ratios as a table in Markdown; those above a limit are bold."""
    rows = ["| | time beside before |", "|:--|--:|"]
    for name, found in ratios.items():
        shown = "not measured" if found is None else f"{found:.2f}"
        rows.append(f"| {name} | {f'**{shown}**' if slower(found, limit) else shown} |")
    return "\n".join(rows)


def slower(found, limit):
    return found is None or found > limit


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="a checkout of what to compare with")
    parser.add_argument("--limit", type=float, default=float("inf"), help="fail above this ratio")
    parser.add_argument("--times", type=int, default=3, help="how often each is measured")
    parser.add_argument("--only", default="", help="only what has this in its name")
    arguments = parser.parse_args()
    before = arguments.before.resolve()
    ratios = {
        name: ratio(before, job, arguments.times)
        for name, job in JOBS.items()
        if arguments.only in name
    }
    print(table(ratios, arguments.limit))
    sys.exit(any(slower(found, arguments.limit) for found in ratios.values()))


if __name__ == "__main__":
    main()
