"""Makes the files in docs/data/ that `docs/tutorials/noisy-tables.md` reads.

    .venv-libraries/private-pgm/bin/python docs/make_adult.py ../shared/data/adult.csv.gz CHECKOUT

In the environment of private-pgm (`tests/libraries/environments.py`), which has mbi 2.0.0. AIM is
private-pgm's own, `mechanisms/aim.py` of CHECKOUT: github.com/ryan112358/private-pgm at commit
4d2b3c5. `aim_of` replaces three of its names: the estimator, which has another name in mbi 2.0.0;
`LinearMeasurement`, to record measurements, rounded to two decimals, with which AIM goes on; and
the filter of tables by size, which all of these pass.
"""

import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import mbi
import numpy as np
import pandas as pd

import pymc_dapper as pmd

DATA = Path(__file__).parent / "data"
LABELS = {
    "age": ("under 30", "30 to 44", "45 to 59", "60 or more"),
    "school": ("no college", "some college", "degree"),
    "sex": ("female", "male"),
    "married": ("no", "yes"),
    "income": ("low", "high"),
}
EPSILON, DELTA = 0.1, 1e-6


def people(path):
    """Adults in five columns. Codes begin at 0: of ages with 16, of years of education with 1."""
    coded = pd.read_csv(path)
    return {
        "age": np.searchsorted([30, 45, 60], coded["age"] + 16, side="right"),
        "school": np.searchsorted([9, 12], coded["education-num"], side="right"),
        "sex": coded["sex"].to_numpy(),
        "married": (coded["marital-status"] == 0).astype(int).to_numpy(),
        "income": coded["income>50K"].to_numpy(),
    }


def aim_of(checkout, measured):
    """AIM as private-pgm has it; what it measures is added to a list."""
    sys.path.append(f"{checkout}/mechanisms")
    import aim

    def estimate(domain, measurements, iters, potentials=None, callback_fn=None):
        start = {"iters": iters, "warm_start": potentials}
        return mbi.estimation.MirrorDescent().estimate(domain, measurements, **start)

    def measurement(noisy, clique, stddev):
        rounded = np.round(np.asarray(noisy, dtype=float), 2)
        measured.append(mbi.LinearMeasurement(rounded, clique, float(stddev)))
        return measured[-1]

    aim.estimation = SimpleNamespace(mirror_descent=estimate)
    aim.LinearMeasurement = measurement
    # It leaves out what would make the model larger than 80 megabytes. All columns have 96 cells.
    aim.filter_candidates = lambda candidates, model, limit: candidates
    return aim.AIM(EPSILON, DELTA)


def main(path, checkout):
    domain = mbi.Domain(tuple(LABELS), tuple(map(len, LABELS.values())), tuple(LABELS.values()))
    data, measured = mbi.Dataset(people(path), domain), []
    aim = aim_of(checkout, measured)
    np.random.seed(7)  # noqa: NPY002  # AIM's own
    workload = [(triple, 1.0) for triple in combinations(LABELS, 3)]
    _, synthetic = aim.run(data, workload, num_synth_rows=data.records)
    pmd.releases.read_measurements(measured, domain).to_json(DATA / "adult.json")
    cells = pd.MultiIndex.from_product(LABELS.values(), names=LABELS).to_frame(index=False)
    cells["confidential"] = np.asarray(data.datavector(), dtype=int)
    cells["private_pgm"] = np.asarray(synthetic.project(tuple(LABELS)).datavector(), dtype=int)
    cells.to_csv(DATA / "adult.csv", index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
