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


def elsewhere(python, module, job, tables):
    """Run a benchmark by another Python: it is handed a job and arrays, and hands back arrays."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        np.savez(at / "tables.npz", **tables)
        (at / "job.json").write_text(json.dumps(job), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [python, "-m", f"benchmarks.{module}", folder]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)
        with np.load(at / "found.npz") as found:
            return dict(found)


def handed_over(folder):
    """The job, and the tables by their columns."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    with np.load(folder / "tables.npz") as tables:
        return job, {tuple(name.split(" * ")): values for name, values in tables.items()}


def estimates(sizes, releases, sigmas, wanted, n, iterations=ITERATIONS, way=None):
    """Shares of some sets of columns by private-pgm, and CPU seconds, for each of many releases.

    ``sizes`` is of each column; ``releases`` has noisy counts by columns joined by " * ", stacked
    along the first axis; ``sigmas`` the noise of each. A ``way`` is the most megabytes of a
    model, to which tables are added in turn while it stays below, or "mixture".
    """
    from tests.libraries.environments import python_with

    job = {"sizes": sizes, "sigmas": sigmas, "wanted": wanted, "n": n}
    job |= {"iterations": iterations, "way": way}
    return elsewhere(python_with("private-pgm"), "private_pgm", job, releases)


def fitting(domain, cliques, megabytes):
    """The first tables whose model has at most so many megabytes; what exceeds is left out."""
    from mbi.junction_tree import hypothetical_model_size

    kept = []
    for clique in cliques:
        if hypothetical_model_size(domain, [*kept, clique]) <= megabytes:
            kept.append(clique)
    return kept


def main(folder):
    import mbi
    import optax

    job, given = handed_over(folder)
    domain, estimator = mbi.Domain.fromdict(job["sizes"]), mbi.estimation.MirrorDescent()
    if job["way"] == "mixture":
        estimator = mbi.extensions.MixtureOfProductsEstimator(optimizer=optax.adam(0.1))
    elif job["way"] is not None:
        given = {clique: given[clique] for clique in fitting(domain, given, job["way"])}
    mbi.estimation.CALLBACK_EVERY = min(mbi.estimation.CALLBACK_EVERY, job["iterations"])
    found = {" * ".join(columns): [] for columns in job["wanted"]} | {"seconds": []}
    for each in zip(*given.values(), strict=True):
        began = process_time()
        measured = [
            mbi.LinearMeasurement(values.ravel(), clique, job["sigmas"][" * ".join(clique)])
            for clique, values in zip(given, each, strict=True)
        ]
        fitted = estimator.estimate(domain, measured, known_total=job["n"], iters=job["iterations"])
        for columns in job["wanted"]:
            table = np.asarray(fitted.project(tuple(columns)).datavector(flatten=False))
            found[" * ".join(columns)].append(table / table.sum())
        found["seconds"].append(process_time() - began)
    np.savez(folder / "found.npz", used=len(given), **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
