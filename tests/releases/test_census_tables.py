import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import census_codes, census_tables, read_census
from tests.monte_carlo import z_score_of_mean
from tests.releases.census_replica import SHAPE, made_up, noisy_rows
from tests.table_trees.small_table_trees import largest_z, log_prior
from tests.table_trees.tables_by_enumeration import Enumerated

TRACTS = [f"01{county}{tract:06d}" for county in ("001", "003") for tract in (100, 200, 300)]
LEVELS = {"state": 2, "county": 5, "tract": 11}
QUERIES = ("total", "votingage", "hispanic * cenrace", "votingage * hispanic", "detailed")
INSTITUTIONS = ([0], [1, 2, 3, 4], [5, 6, 7])


def exact_rows(people, queries, institutions=True):
    """The rows of a file whose noise is none, by sums of the people."""
    rows = noisy_rows(people, TRACTS, np.random.default_rng(1), queries, times=0)
    for length in LEVELS.values() if institutions else ():
        for code in sorted({tract[:length] for tract in TRACTS}):
            inside = people[[tract.startswith(code) for tract in TRACTS]]
            counts = [int(inside[:, of].sum()) for of in INSTITUTIONS]
            cells = (code, "hhinstlevels_dpq", [3, 1, 1, 1], counts, 9.0)
            for column, cell in zip(rows.values(), cells, strict=True):
                column.append(cell)
    return rows


def tables_of(tables, people):
    """Tables of all areas by the merged cells: tracts' are summed along the tree."""
    n = [each.max() + 1 for each in tables.values.values()]
    found = np.zeros((len(tables.geocodes), tables.impossible.size))
    classes = [tables.values.get(name, np.zeros(size, int)) for name, size in SHAPE.items()]
    index = np.meshgrid(*classes, indexing="ij")
    kept = [index[k] for k, name in enumerate(SHAPE) if name in tables.values]
    cell = np.ravel_multi_index(kept, n).ravel()
    for tract, table in zip(TRACTS, people, strict=True):
        at = tables.geocodes.index(tract)
        while at >= 0:
            np.add.at(found[at], cell, table.ravel())
            at = tables.parent[at]
    return found


def wrong(tables, people):
    """How many released counts aren't the sums of their classes' cells."""
    found, n = tables_of(tables, people), 0
    for query in tables.queries.values():
        sums = np.zeros(query.released.shape)
        np.add.at(sums.T, query.classes, found.T)
        known = ~np.isnan(query.released)
        n += np.count_nonzero(sums[known] != query.released[known])
    return n


@pytest.fixture(scope="module")
def people():
    found = made_up(TRACTS, 4000, np.random.default_rng(1))
    found[:, 3, 0] = 0  # under age in nursing facilities
    return found


@pytest.mark.parametrize("queries", [QUERIES, QUERIES[:4], ("total",), ("hispanic", "cenrace")])
def test_each_query_is_the_sum_of_the_cells_of_its_classes(people, queries):
    release = read_census(exact_rows(people, queries), levels=LEVELS)
    tables = census_tables(release, exact={"": people.sum()})
    assert wrong(tables, people) == 0
    first = next(iter(tables.queries.values()))
    assert np.count_nonzero(~np.isnan(first.released).any(axis=1)) == 9


@pytest.mark.parametrize("fault", ["another class", "cells in another order", "another parent"])
def test_a_wrong_map_is_seen(people, monkeypatch, fault):
    release = read_census(exact_rows(people, QUERIES), levels=LEVELS)
    if fault == "another class":
        recode = {"hhgq": {"hhinstlevels": (0, 1, 1, 1, 2, 2, 2, 2)}}
        monkeypatch.setattr(census_codes, "RECODES", recode)
    tables = census_tables(release)
    if fault == "cells in another order":
        classes = tables.queries["votingage * hispanic"].classes
        other = np.array([0, 2, 1, 3])[classes]
        tables.queries["votingage * hispanic"] = tables.queries["total"]._replace(
            classes=other, released=tables.queries["votingage * hispanic"].released
        )
    if fault == "another parent":
        tables.parent[tables.geocodes.index(TRACTS[0])] = tables.geocodes.index("01003")
    assert wrong(tables, people) > 0


def test_cells_that_no_query_tells_apart_are_merged(people):
    without = read_census(
        exact_rows(people, ("total", "votingage * hispanic * cenrace"), institutions=False),
        levels=LEVELS,
    )
    tables = census_tables(without)
    assert tables.impossible.size == 252
    assert not tables.impossible.any()
    assert list(tables.values) == ["votingage", "hispanic", "cenrace"]
    # Institutions are told apart, so three classes are left of eight; nursing homes aren't alone.
    some = census_tables(read_census(exact_rows(people, QUERIES[:3]), levels=LEVELS))
    assert some.impossible.size == 3 * 252
    assert not some.impossible.any()
    assert some.values["hhgq"].tolist() == [0, 1, 1, 1, 1, 2, 2, 2]


def test_structural_zeros_are_cells_without_people(people):
    tables = census_tables(read_census(exact_rows(people, ("total", "detailed")), levels=LEVELS))
    assert tables.impossible.size == 2016
    assert np.count_nonzero(tables.impossible) == 126
    assert not tables_of(tables, people)[:, tables.impossible].any()
    assert tables.impossible.reshape(8, 2, -1)[3, 0].all()


def test_areas_are_parts_of_those_with_which_their_geocodes_begin(people):
    rows = noisy_rows(people, TRACTS, np.random.default_rng(2), ("total",))
    release = read_census(rows, levels=LEVELS)
    tables = census_tables(release)
    assert tables.geocodes == ("01", "01001", "01003", *TRACTS)
    assert tables.parent.tolist() == [-1, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(tables.queries) == ["total"]
    scale = [release[f"{level}: total"].mechanism.sigma for level in LEVELS]
    assert tables.queries["total"].scale.tolist() == pytest.approx(np.repeat(scale, [1, 2, 6]))
    # Without the counties, tracts are parts of the state; and of an area that has no row.
    few = read_census(rows, levels={"state": 2, "tract": 11})
    assert census_tables(few).parent.tolist() == [-1] + [0] * 6
    regions = {"01001": "east", "01003": "west"}
    grouped = census_tables(
        read_census(rows, levels={"county": 5, "tract": 11}), exact={"west": 9}, parents=regions
    )
    assert grouped.geocodes[:2] == ("east", "west")
    assert grouped.parent[:8].tolist() == [-1, -1, 0, 1, 2, 2, 2, 3]
    assert np.flatnonzero(grouped.queries["exact"].released == 9).tolist() == [1]
    assert grouped.queries["exact"].scale.tolist() == [0] * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exact": {"02": 5}}, "geocode '02' has no part of the finest level, 'tract'"),
        ({"exact": {"01": -1}}, r"exact\['01'\] must be a whole number of at least 0"),
        ({"parents": {"7": "8"}}, "parents: there is no row of geocode '7'"),
        (
            {"attributes": "dhc"},
            "'votingage', with 2 classes, isn't known to be of the attributes relgq",
        ),
        ({"attributes": "P.L. 94"}, "attributes must be 'redistricting' or 'dhc'"),
    ],
)
def test_what_does_not_fit_is_refused(people, options, message):
    rows = noisy_rows(people, TRACTS, np.random.default_rng(2), ("total", "votingage"))
    with pytest.raises(ValueError, match=message):
        census_tables(read_census(rows, levels=LEVELS), **options)


def test_queries_that_read_census_did_not_make_are_refused():
    def query(name, values, *dims):
        noise = pmd.DiscreteGaussianMechanism(2.0)
        return pmd.Query(name, values, noise, dims, {dims[0]: ["1", "12"][: len(values)]})

    noise, codes = pmd.DiscreteGaussianMechanism(2.0), {"county": [""]}
    other_classes = pmd.Query("county: age", [[3, 4]], noise, ["county", "hispanic"], codes)
    ages = query("tract: age", [[3, 4]], "tract", "sex")
    for other, message in (
        (query("ages", [[3, 4]], "county", "sex"), "'ages': read_census calls queries"),
        (query("county: age", [[3, 4]], "county", "sex"), "geocode '1' is of 'tract' and of"),
        (other_classes, "'county: age': its classes are"),
    ):
        with pytest.raises(ValueError, match=message):
            census_tables(pmd.Release([ages, other]), attributes={"sex": 2, "hispanic": 2})


def test_more_cells_than_can_be_taken_are_refused():
    shape, noise = (1, 42, 2, 116, 2, 63), pmd.DiscreteGaussianMechanism(2.0)
    dims = ("county", "relgq", "sex", "age", "hispanic", "cenrace")
    query = pmd.Query("county: detailed", np.zeros(shape, int), noise, dims, {"county": ["1"]})
    with pytest.raises(ValueError, match="distinguish 1,227,744 cells, and 32,768 at most"):
        census_tables(pmd.Release([query]), attributes="dhc")


def test_tracts_without_blocks_are_missing_rows(people):
    rows = noisy_rows(people, TRACTS, np.random.default_rng(2), ("total",))
    kept = [k for k, code in enumerate(rows["geocode"]) if not code.startswith("010010")]
    rows = {name: [column[k] for k in kept] for name, column in rows.items()}
    with pytest.raises(ValueError, match="geocode '01001' has no part of the finest level"):
        census_tables(read_census(rows, levels=LEVELS))


def test_noise_of_another_kind_is_refused():
    def release(mechanism):
        return pmd.Release(
            [pmd.Query("tract: sex", [[3, 4]], mechanism, ["tract", "sex"], {"tract": ["1"]})]
        )

    taken = census_tables(release(pmd.DiscreteGaussianMechanism(2.0)), attributes={"sex": 2})
    assert taken.queries["sex"].classes.tolist() == [0, 1]
    with pytest.raises(TypeError, match="'tract: sex': noise must be discrete Gaussian"):
        census_tables(release(pmd.DiscreteLaplaceMechanism(2.0)), attributes={"sex": 2})
    with pytest.raises(ValueError, match="the same in all classes"):
        census_tables(release(pmd.DiscreteGaussianMechanism([[2.0, 3.0]])), attributes={"sex": 2})


@pytest.mark.long
def test_tree_of_tables_takes_them():
    """Where only totals were measured, they have the posterior of `CountTree`."""
    rng = np.random.default_rng(5)
    release = read_census(
        noisy_rows(made_up(TRACTS, 30, rng), TRACTS, rng, ("total",)), levels=LEVELS
    )
    tables, prior = census_tables(release), stats.nbinom(2, 0.05)
    tree = pmd.TableTree(
        tables.parent,
        tables.queries,
        impossible=tables.impossible,
        names=tables.geocodes,
        prior=prior,
    )
    drawn = tree.sample(2000, keep={"total": ("total", range(9))}, chains=1, random_seed=1)["total"]
    released = np.concatenate([release[f"{level}: total"].values for level in LEVELS])
    scale = np.repeat([release[f"{level}: total"].mechanism.sigma for level in LEVELS], [1, 2, 6])
    for times, is_right in ((1, True), (3, False)):
        sigma = np.where(np.arange(9) == 0, times * scale, scale)
        exact = pmd.CountTree(tables.parent, released, sigma, prior=prior).marginals([0.5])
        z = [z_score_of_mean(drawn[0, :, area, 0], exact.mean[area]) for area in range(9)]
        assert (np.max(np.abs(z)) < 4) == is_right


QUARTERS = {"hhgq": 8, "votingage": 2}
KIND, VOTING = np.indices((8, 2)).reshape(2, 16)
OF = {
    "total": 0 * KIND,
    "hhgq": KIND,
    "hhinstlevels": np.repeat([0, 1, 1, 1, 1, 2, 2, 2], 2),
    "detailed": 2 * KIND + VOTING,
}
"""The class of each of 16 cells: households, and a kind of group quarters after the other."""
AREAS = (("state", 0), ("block", 0), ("block", 1))
MOST = {"5601": [9, 0, 0, 9, 0, 0, 9, 0], "5602": [9, 9, 0, 0, 0, 0, 0, 0]}
"""One block has a nursing facility and a barracks, the other a prison; both have housing units."""


def quarters(rng):
    """The rows of a state with two blocks of two people and one, by kinds of group quarters."""
    people = {"5601": np.eye(16, dtype=int)[[0, 7]].sum(axis=0), "5602": np.eye(16, dtype=int)[3]}
    people["56"] = people["5601"] + people["5602"]
    rows = {name: [] for name in ("geocode", "query_name", "query_shape", "value", "variance")}
    shapes = {"total": [1, 1], "hhgq": [8, 1], "hhinstlevels": [3, 1], "detailed": [8, 2]}
    for code, table in people.items():
        for name, shape in shapes.items():
            true = np.bincount(OF[name], table).astype(int)
            noisy = pmd.DiscreteGaussianMechanism(1.5).release(true, rng)
            cells = (code, f"{name}_dpq", shape, noisy.tolist(), 2.25)
            for column, cell in zip(rows.values(), cells, strict=True):
                column.append(cell)
    return rows


@pytest.mark.long
def test_a_state_with_group_quarters_is_sampled():
    """All tables of three people listed; those of blocks with a kind that they don't have, too."""
    levels = {"state": 2, "block": 4}
    release = read_census(quarters(np.random.default_rng(2)), levels=levels, attributes=QUARTERS)
    bounds = {code: [[0] * 8, most] for code, most in MOST.items()}
    tables = census_tables(release, attributes=QUARTERS, exact={"56": 3}, bounds=bounds)
    prior = log_prior(3)
    tree = pmd.TableTree(
        tables.parent,
        tables.queries,
        impossible=tables.impossible,
        prior=prior,
        concentration=0.4,
        shared=1,
    )
    options = {"keep": {"all": (range(16), range(3))}, "chains": 1, "random_seed": 1}
    drawn = tree.sample(20_000, **options)["all"][0]
    released = {
        name: (of, [np.ravel(release[f"{level}: {name}"].values[k]) for level, k in AREAS], 1.5)
        for name, of in OF.items()
    }
    for is_right in (True, False):
        none = np.array(list(MOST.values()))[:, KIND] == 0
        alpha = np.where(none & is_right, 0, 0.4)
        posterior = Enumerated(
            [3], [[1, 1], [1, 0], [0, 1]], list(released.values()), prior, alpha, np.arange(2)
        )
        assert (largest_z(drawn, posterior) < 4.5) == is_right


def test_bounds_that_cannot_be_taken():
    levels = {"state": 2, "block": 4}
    release = read_census(quarters(np.random.default_rng(2)), levels=levels, attributes=QUARTERS)
    with pytest.warns(UserWarning, match="1 areas have at least some people in group quarters"):
        tables = census_tables(
            release, attributes=QUARTERS, bounds={"5601": [[0, 0, 0, 1, 0, 0, 0, 0], MOST["5601"]]}
        )
    assert tables.impossible.sum(axis=1).tolist() == [0, 10, 0]
    with pytest.raises(ValueError, match="impossible: area 1 has impossible cells of its own"):
        pmd.TableTree(
            tables.parent, tables.queries, prior=log_prior(3), impossible=tables.impossible
        )
    # Nobody is there: its exact total says so, and not that all its cells are impossible.
    empty = {"5602": np.zeros((2, 8))}
    assert not census_tables(release, attributes=QUARTERS, bounds=empty).impossible.any()
    for bounds, message in (
        ({"57": np.zeros((2, 8))}, "bounds: there is no row of geocode '57'"),
        ({"5601": np.zeros(8)}, r"bounds\['5601'\] must have shape \(2, 8\): least and most"),
    ):
        with pytest.raises(ValueError, match=message):
            census_tables(release, attributes=QUARTERS, bounds=bounds)
    few = read_census(
        quarters(np.random.default_rng(2)), levels=levels, attributes=QUARTERS, queries=["total"]
    )
    with pytest.raises(ValueError, match="no query tells kinds of group quarters apart"):
        census_tables(few, attributes=QUARTERS, bounds={})


def test_structural_zeros_beside_bounds_are_everywhere(people):
    """They are told of the largest area, and hold in all of its parts."""
    release = read_census(exact_rows(people, ("total", "detailed")), levels=LEVELS)
    bounds = {TRACTS[0]: [[0] * 8, [9, 9, 0, 9, 9, 9, 9, 9]]}
    found = census_tables(release, bounds=bounds).impossible.reshape(9, 8, 2, -1)
    assert found.any(axis=(2, 3)).nonzero()[0].tolist() == [0, 3]
    assert found[0, 3, 0].all()
    assert found[3, 2].all()
    assert np.count_nonzero(found) == 126 + 252
