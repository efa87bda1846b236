"""Makes the files in docs/data/ that `docs/releases.md` reads: releases of people who are made up.

What OpenDP releases can't be made again, as its randomness has no seed: such files are kept.
"""

import sys
from pathlib import Path

import numpy as np

import pymc_dapper as pmd

sys.path.insert(0, str(Path(__file__).parents[1]))

DATA = Path(__file__).parent / "data"


def admissions(rng):
    noisy = pmd.DiscreteGaussianMechanism(6.32).release([[118, 132], [40, 110]], rng)
    rows = ["sex,decision,applicants"]
    for sex, row in zip(("male", "female"), noisy, strict=True):
        for decision, n in zip(("admit", "reject"), row, strict=True):
            rows.append(f"{sex},{decision},{n}")
    return "\n".join(rows) + "\n"


def wards(rng):
    budget = pmd.PureDP(0.5)
    laplace = pmd.LaplaceMechanism.calibrate(budget, sensitivity=1.0)
    mechanism = laplace.rounded(5).published_if(">=", 10)
    cases = mechanism.release([3, 14, 41, 7, 25, 2], rng)
    wards = {"ward": ["A", "B", "C", "D", "E", "F"]}
    return pmd.Release([pmd.Query("cases", cases, mechanism, "ward", wards)], budget)


def trips(rng):
    report = """\
DPEngine method: aggregate
AggregateParams:
 metrics=['PRIVACY_ID_COUNT']
 noise_kind=laplace
 Partition selection: public partitions
Computation graph:
 1. Cross-partition contribution bounding: for each privacy_id randomly select 1 partitions
 2. Computed DP privacy_id_count with
     Laplace mechanism:  parameter=8.0  eps=0.125  l1_sensitivity=1.0
"""
    noisy = np.array([210, 96, 44]) + rng.laplace(0, 8, 3)
    rows = [f"{mode},{n:.4f}" for mode, n in zip(("car", "bus", "bike"), noisy, strict=True)]
    return report, "\n".join(["mode,privacy_id_count", *rows]) + "\n"


def opendp(summary_path, released_path):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    query = (
        dp.Context.compositor(
            data=pl.LazyFrame({"vote": ["yes"] * 61 + ["no"] * 34 + ["blank"] * 5}),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=0.2),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=["vote"], invariant="keys", max_length=100)],
        )
        .query()
        .group_by("vote")
        .agg(dp.len(signed=False))
    )
    query.summarize().write_parquet(summary_path)
    query.release().collect().sort("vote").write_parquet(released_path)


def census(path, rng):
    import pyarrow as pa
    from pyarrow import parquet

    from tests.releases.census_replica import made_up, noisy_rows

    tracts = [f"01{county}{tract:06d}" for county in ("001", "003") for tract in (100, 200)]
    people = made_up(tracts, 1500, rng)
    rows = noisy_rows(people, tracts, rng, ["total", "votingage", "hispanic"])
    parquet.write_table(pa.table(rows), path)


def main():
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(23)
    (DATA / "admissions.csv").write_text(admissions(rng))
    wards(rng).to_json(DATA / "wards.json")
    report, table = trips(rng)
    (DATA / "trips_report.txt").write_text(report)
    (DATA / "trips.csv").write_text(table)
    census(DATA / "noisy_measurements.parquet", rng)
    if not (DATA / "votes.parquet").exists():
        opendp(DATA / "votes_summary.parquet", DATA / "votes.parquet")


if __name__ == "__main__":
    main()
