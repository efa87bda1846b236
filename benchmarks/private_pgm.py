"""private-pgm's point estimates of joint tables, in an environment of its own.

The environment is the one in which its releases are read (`tests/libraries/environments.py`).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

ROOT = Path(__file__).parents[1]
ITERATIONS = 1_000


def estimates(sizes, releases, sigmas, wanted, n, iterations=ITERATIONS):
    """Shares of some sets of columns by private-pgm, and CPU seconds, for each of many releases.

    ``sizes`` is of each column; ``releases`` has noisy counts by columns joined by " * ", stacked
    along the first axis; ``sigmas`` the noise of each.
    """
    from tests.libraries.environments import python_with

    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        np.savez(at / "releases.npz", **releases)
        job = {"sizes": sizes, "sigmas": sigmas, "wanted": wanted, "n": n, "iterations": iterations}
        (at / "job.json").write_text(json.dumps(job), encoding="utf-8")
        command = [python_with("private-pgm"), "-m", "benchmarks.private_pgm", folder]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)
        with np.load(at / "estimates.npz") as found:
            return dict(found)


def main(folder):
    import mbi

    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    domain = mbi.Domain.fromdict(job["sizes"])
    found = {" * ".join(columns): [] for columns in job["wanted"]} | {"seconds": []}
    with np.load(folder / "releases.npz") as releases:
        given = {tuple(name.split(" * ")): values for name, values in releases.items()}
    for each in zip(*given.values(), strict=True):
        began = process_time()
        measured = [
            mbi.LinearMeasurement(values.ravel(), clique, job["sigmas"][" * ".join(clique)])
            for clique, values in zip(given, each, strict=True)
        ]
        fitted = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=job["n"], iters=job["iterations"]
        )
        for columns in job["wanted"]:
            table = np.asarray(fitted.project(tuple(columns)).datavector(flatten=False))
            found[" * ".join(columns)].append(table / table.sum())
        found["seconds"].append(process_time() - began)
    np.savez(folder / "estimates.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
