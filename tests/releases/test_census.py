from fractions import Fraction

import numpy as np
import pyarrow as pa
import pymc as pm
import pytest
from pyarrow import parquet

import pymc_dapper as pmd
from pymc_dapper.releases import read_census
from tests.releases.census_replica import BUDGET, made_up, noisy_rows, sigma

TRACTS = [f"01{county}{tract:06d}" for county in ("001", "003") for tract in (100, 200, 300)]
LEVELS = {"state": 2, "county": 5, "tract": 11}
WITHIN = {
    "county": ("tract", [code[:5] for code in TRACTS]),
    "state": ("tract", [code[:2] for code in TRACTS]),
}
DIMS = ("tract", "hhgq", "votingage", "hispanic", "cenrace")


@pytest.fixture(scope="module")
def people():
    return made_up(TRACTS, 4000, np.random.default_rng(1))


@pytest.fixture(scope="module")
def rows(people):
    return noisy_rows(people, TRACTS, np.random.default_rng(2))


def test_a_file_becomes_margins_of_one_table(people, rows, tmp_path):
    path = tmp_path / "nmf.parquet"
    parquet.write_table(pa.table(rows), path)
    release = read_census(path, levels=LEVELS)
    assert len(release) == 12
    assert release["tract: hispanic * cenrace"].values.shape == (6, 2, 63)
    assert release["tract: hispanic * cenrace"].dims == ("tract", "hispanic", "cenrace")
    assert release["county: total"].dims == ("county",)
    margins = release.margins(people, DIMS, within=WITHIN)
    for query in release:
        level, _, name = query.name.partition(": ")
        scale = query.mechanism.sigma
        assert scale == pytest.approx(sigma(level.capitalize(), name))
        # The noise is that of the mechanism: its mean square, in units of its standard error.
        squares = (query.values - margins[query.name]) ** 2 / scale**2
        assert abs(squares.mean() - 1) < 4 * np.sqrt(2 / squares.size) + 1e-3


def test_the_shares_of_the_budget_add_up():
    for level, shares in BUDGET["query_share"].items():
        spent = sum(1 / sigma(level, query) ** 2 for query in shares)
        shares_of = Fraction(BUDGET["level_share"][level]) / Fraction(BUDGET["global_scale"]) ** 2
        assert spent == pytest.approx(float(shares_of), rel=1e-6)


def test_queries_and_levels_can_be_chosen(people):
    queries = ("total", "hhgq", "votingage * cenrace", "detailed")
    rows = noisy_rows(people, TRACTS, np.random.default_rng(3), queries)
    release = read_census(
        rows,
        levels={"county": 5},
        queries=["detailed", "votingage*cenrace"],
        coords={"votingage": ["under 18", "18 and over"], "county": ["01003", "01001"]},
    )
    assert release.names == ("county: votingage * cenrace", "county: detailed")
    detailed = release["county: detailed"]
    assert detailed.values.shape == (2, 8, 2, 2, 63)
    assert detailed.coords["county"] == ("01003", "01001")
    near = np.abs(detailed.values[0] - people[3:].sum(axis=0)).mean()
    assert near < 3 * sigma("County", "detailed")


def changed(rows, k, **cells):
    columns = {name: list(column) for name, column in rows.items()}
    for name, cell in cells.items():
        columns[name][k] = cell
    return columns


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"variance": 0.0}, "'state: total': variance"),
        ({"variance": None}, "'state: total': variance"),
        ({"value": [1, 2]}, "'state: total': a row must have 1 noisy counts"),
        ({"value": [1.5]}, "'state: total': .*releases integers"),
        ({"query_shape": [1, 2, 1, 1]}, "'state: total': its shape .* tells 'votingage' apart"),
        ({"query_shape": [1, 1]}, "'state: total': its shape must have a length for each of"),
        ({"query_name": "hispanic_dpq"}, "two rows of geocode '01'"),
        ({"geocode": 1}, "must be strings"),
    ],
)
def test_wrong_rows_are_refused_by_name(rows, cells, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_census(changed(rows, 0, **cells), levels=LEVELS)


def test_what_is_missing_is_told(rows):
    short = {name: column[:-1] for name, column in rows.items()}
    with pytest.raises(
        ValueError, match=r"'tract: hispanic \* cenrace': there is no row of geocode"
    ):
        read_census(short, levels=LEVELS)
    with pytest.raises(ValueError, match="no query 'cenrace' of level 'state'"):
        read_census(rows, levels=LEVELS, queries=["cenrace"])
    with pytest.raises(ValueError, match="labels of 'race', which is a dim of no query"):
        read_census(rows, levels=LEVELS, coords={"race": ["a"]})
    with pytest.raises(ValueError, match="no geocode of level 'block'"):
        read_census(rows, levels={"block": 16})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*noise standard deviations from:UserWarning")
def test_counts_are_sampled_under_what_is_known_exactly():
    """A state, its counties, a tract in each: the total is exact, and cells without people are."""
    tracts, rng = ["01001000100", "01003000100"], np.random.default_rng(4)
    people = made_up(tracts, 3000, rng)
    release = read_census(noisy_rows(people, tracts, rng), levels=LEVELS)
    truth = people.sum(axis=1)
    rate = np.where(truth.sum(axis=0) == 0, 0.0, truth.mean(axis=0) + 1)
    within = {
        "county": ("tract", [code[:5] for code in tracts]),
        "state": ("tract", [code[:2] for code in tracts]),
    }
    with pm.Model(coords=release.coords):
        table = pm.Poisson("table", rate, shape=truth.shape)
        pmd.invariant("state population", table.sum(), truth.sum())
        release.potential(
            release.margins(table, ("tract", "votingage", "hispanic", "cenrace"), within=within)
        )
        idata = pm.sample(
            200,
            tune=200,
            chains=1,
            step=[pmd.CountStep([table])],
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = idata.posterior["table"].values[0]
    assert np.all(draws.sum(axis=(1, 2, 3, 4)) == truth.sum())
    assert np.all(draws[:, :, rate == 0] == 0)
    totals = draws.sum(axis=(2, 3, 4))
    off = (totals.mean(axis=0) - truth.sum(axis=(1, 2, 3))) / totals.std(axis=0)
    assert np.all(np.abs(off) < 4)
