"""Makes the files in docs/data/ that `docs/tutorials/noisy-tables.md` reads.

    .venv-libraries/private-pgm/bin/python docs/make_adult.py ../shared/data/adult.csv.gz

In the environment of private-pgm (`tests/libraries/environments.py`), which measures and estimates.
"""

import sys
from pathlib import Path

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
MEASURED = (("school", "sex", "income"), ("age", "married", "income"), ("sex", "married"))
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


def main(path):
    rng = np.random.default_rng(7)
    domain = mbi.Domain(tuple(LABELS), tuple(map(len, LABELS.values())), tuple(LABELS.values()))
    data = mbi.Dataset(people(path), domain)
    log = np.log(1 / DELTA)
    rho = (np.sqrt(log + EPSILON) - np.sqrt(log)) ** 2 / len(MEASURED)
    sigma = np.sqrt(2) / np.sqrt(2 * rho)  # who is another person changes two counts
    measurements = []
    for clique in MEASURED:
        marginal = np.asarray(data.project(clique).datavector(), dtype=float)
        noisy = marginal + rng.normal(0, sigma, marginal.size)
        measurements.append(mbi.LinearMeasurement(np.round(noisy, 2), clique, sigma))
    pmd.releases.read_measurements(measurements, domain).to_json(DATA / "adult.json")
    n = data.records
    estimated = mbi.estimation.MirrorDescent().estimate(domain, measurements, known_total=n)
    np.random.seed(7)  # noqa: NPY002  # mbi's own
    synthetic = estimated.synthetic_data(rows=n)
    cells = pd.MultiIndex.from_product(LABELS.values(), names=LABELS).to_frame(index=False)
    cells["confidential"] = np.asarray(data.datavector(), dtype=int)
    cells["private_pgm"] = np.asarray(synthetic.project(tuple(LABELS)).datavector(), dtype=int)
    cells.to_csv(DATA / "adult.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1])
