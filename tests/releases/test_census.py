from fractions import Fraction

import numpy as np
import pyarrow as pa
import pymc as pm
import pytest
from pyarrow import parquet

import pymc_dapper as pmd
from pymc_dapper.releases import read_census
from tests.releases.census_replica import (
    BUDGET,
    drawn,
    made_up,
    model_of,
    noisy_rows,
    sigma,
    state,
)

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
    one = read_census(rows, levels={"county": 5}, geocodes=["01001"])
    np.testing.assert_array_equal(one["county: detailed"].values, detailed.values[1:])
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
        ({"value": [True]}, "'state: total': .* counts, but not that of geocode '01'"),
        ({"value": ["1"]}, "'state: total': .* counts, but not that of geocode '01'"),
        ({"variance": True}, "'state: total': variance"),
        ({"variance": "4"}, "'state: total': variance"),
        ({"value": [1.5]}, "'state: total': .*releases integers"),
        ({"query_shape": [1, 2, 1, 1]}, "'state: total': its shape .* distinguishes 'votingage'"),
        ({"query_shape": [1, 1]}, "'state: total': its shape must have a length for each of"),
        ({"query_name": "hispanic_dpq"}, "'state: hispanic': its shape isn't the same in all rows"),
        ({"geocode": 1}, "must be strings"),
        ({"query_name": None}, "must be strings"),
    ],
)
def test_wrong_rows_are_refused_by_name(rows, cells, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_census(changed(rows, 0, **cells), levels=LEVELS)


def test_truth_values_among_numbers_are_refused(rows):
    at = rows["query_name"].index("total_dpq", 1)
    with pytest.raises(ValueError, match=r"'county: total': .* but not that of geocode '01001'"):
        read_census(changed(rows, at, value=[True]), levels=LEVELS)


def test_missing_input_is_reported(rows):
    short = {name: column[:-1] for name, column in rows.items()}
    with pytest.raises(
        ValueError, match=r"'tract: hispanic \* cenrace': there is no row of geocode"
    ):
        read_census(short, levels=LEVELS)
    again = {name: [*column, column[0]] for name, column in rows.items()}
    with pytest.raises(ValueError, match="'state: total': there are two rows of geocode '01'"):
        read_census(again, levels=LEVELS)
    with pytest.raises(ValueError, match="level 'state' has no query 'cenrace', but"):
        read_census(rows, levels=LEVELS, queries=["cenrace"])
    with pytest.raises(ValueError, match="labels of 'race', which is a dim of no query"):
        read_census(rows, levels=LEVELS, coords={"race": ["a"]})
    with pytest.raises(ValueError, match="no geocode of level 'block'"):
        read_census(rows, levels={"block": 16})


def dhc_rows(with_columns):
    """Two queries of people of the demographic and housing characteristics, as files name them.

    The order of their names isn't that of the axes: relations come before ages.
    """
    rows = {
        "geocode": ["05010007"] * 2,
        "query_name": ["hispanic * sex_dpq", "age_18_64_116 * relgq_4_groups_dpq"],
        "query_shape": [[1, 2, 1, 2, 1], [4, 1, 3, 1, 1]],
        "value": [list(range(4)), list(range(12))],
        "variance": [16.0, 16.0],
    }
    classes = {
        "relgq": ["*", "relgq_4_groups"],
        "sex": ["sex", "*"],
        "age": ["*", "age_18_64_116"],
        "hispanic": ["hispanic", "*"],
        "cenrace": ["*", "*"],
    }
    return rows | (classes if with_columns else {})


@pytest.mark.parametrize("with_columns", [False, True])
def test_classes_are_of_the_axis_of_their_attribute_whatever_the_order_of_names(with_columns):
    release = read_census(dhc_rows(with_columns), levels={"county": 8}, attributes="dhc")
    ages = release["county: age_18_64_116 * relgq_4_groups"]
    assert ages.dims == ("county", "relgq_4_groups", "age_18_64_116")
    assert ages.values[0, 3].tolist() == [9, 10, 11]
    assert release["county: hispanic * sex"].dims == ("county", "sex", "hispanic")


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({"query_shape": [3, 1, 4, 1, 1]}, "dhc", "'relgq_4_groups' has 4 classes, and its shape"),
        ({"relgq": "*"}, "dhc", "distinguishes 'relgq', but its name doesn't"),
        ({"relgq": "relgq"}, "dhc", "'relgq' has 42 classes"),
        ({"query_name": "a * b"}, list("vwxyz"), "isn't known which attributes 'a', 'b' are"),
        ({}, "P.L. 94-171", "attributes must be 'redistricting' or 'dhc'"),
    ],
)
def test_classes_that_do_not_fit_are_refused(change, attributes, message):
    rows = dhc_rows(with_columns=True)
    rows = {name: [change.get(name, column[1])] for name, column in rows.items()}
    with pytest.raises(ValueError, match=message):
        read_census(rows, levels={"county": 8}, attributes=attributes)


def test_rows_of_one_query_must_have_the_same_classes():
    rows = {name: column * 2 for name, column in dhc_rows(with_columns=True).items()}
    rows["geocode"] = ["05010007", "05010007", "05010009", "05010009"]
    rows["relgq"][3] = "gq_constr_groups"
    with pytest.raises(ValueError, match="the classes of an attribute aren't the same in all"):
        read_census(rows, levels={"county": 8}, attributes="dhc")


def posterior(model, step):
    """Draws of the tables of all tracts, one after the other."""
    idata = pm.sample(
        100,
        tune=100,
        chains=1,
        step=[step],
        model=model,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    return idata.posterior["table"].values[0]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*noise standard deviations from:UserWarning")
def test_a_state_with_its_counties_and_tracts_is_sampled_under_what_is_known_exactly():
    """Of people drawn from the model itself, squared errors are the posterior's variances.

    The broken twin is told a quarter of the noise's standard deviation.
    """
    tracts, rng = state(5, 12), np.random.default_rng(4)
    rate, people = drawn(tracts, 3000, rng, by_quarters=False)
    model = step = None
    for times, calibrated in ((1, True), (4, False)):
        release = read_census(noisy_rows(people, tracts, rng, times=times), levels=LEVELS)
        if model is None:
            model = model_of(release, tracts, rate, people.sum())
            step = pmd.CountStep([model["table"]], model=model)
        pm.set_data({f"{query.name}_released": query.values for query in release}, model=model)
        draws = posterior(model, step)
        assert np.all(draws.sum(axis=tuple(range(1, draws.ndim))) == people.sum())
        assert not np.any(draws[..., rate == 0])
        of_races, true = draws.sum(axis=(2, 3)), people.sum(axis=(1, 2))
        # As tracts hardly depend on each other, the mean over them has a standard error.
        excess = ((of_races.mean(axis=0) - true) ** 2 - of_races.var(axis=0)).sum(axis=(1, 2))
        in_errors = excess.mean() / (excess.std() / np.sqrt(excess.size))
        assert (abs(in_errors) < 4) == calibrated
