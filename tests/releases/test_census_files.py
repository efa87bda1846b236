import sys

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pymc_dapper.releases import (
    census_bounds,
    census_files,
    census_tables,
    census_totals,
    read_census,
)
from tests.releases.census_replica import made_up, noisy_rows

AREAS = {"056": ("056010001", "056010003"), "156": ("156010001",), "030": ("030010005",)}
"""Counties by state, in codes like those of the Bureau: first 0, or 1 for tribal areas."""
LEVELS = ["state", "County"]


def rows_of_level(codes, rng, wide):
    """Noisy measurements as one of the Bureau's files has them, and what they are of."""
    shapes = {"total": [1, 1, 1, 1], "hhinstlevels": [3, 1, 1, 1], "hispanic": [1, 1, 2, 1]}
    axis = {"hhinstlevels": "hhgq", "hispanic": "hispanic"}
    rows = {name: [] for name in ("geocode", "query_name", "query_shape", "value", "variance")}
    rows |= {name: [] for name in ("hhgq", "votingage", "hispanic", "cenrace")}
    for code in codes:
        for query, shape in shapes.items():
            values = rng.integers(-5, 100, int(np.prod(shape))).tolist()
            for name, cell in zip(rows, (code, f"{query}_dpq", shape, values, 4.0), strict=False):
                rows[name].append(cell)
            for name in ("hhgq", "votingage", "hispanic", "cenrace"):
                rows[name].append(query if axis.get(query) == name else "*")
    integers = pa.list_(pa.int64() if wide else pa.int32())
    table = pa.table(rows)
    for name in ("query_shape", "value"):
        table = table.set_column(
            table.column_names.index(name), name, table.column(name).cast(integers)
        )
    return table


@pytest.fixture
def directory(tmp_path):
    """The Bureau's directories. Files differ in the width of integers, and one lacks columns."""
    rng, expected = np.random.default_rng(1), {}
    for state, counties in AREAS.items():
        for level, codes in (("State", (state,)), ("County", counties)):
            table = rows_of_level(codes, rng, wide=state == "056")
            if state == "156":
                table = table.drop_columns(["cenrace"])
            for kind, suffix in (("DPQuery", "_dpq"), ("Constraint", "_con")):
                folder = tmp_path / f"{level}.parquet" / kind / f"State={state}"
                folder.mkdir(parents=True)
                names = [
                    f"{name.removesuffix('_dpq')}{suffix}"
                    for name in table["query_name"].to_pylist()
                ]
                own = table.set_column(1, "query_name", [names])
                parquet.write_table(own, folder / "part-0.parquet")
            for row in table.to_pylist():
                expected[level, row["query_name"], row["geocode"]] = row["value"]
    return tmp_path, expected


def test_the_directories_of_the_bureau_are_read_by_level_and_state(directory):
    path, expected = directory
    release = read_census(path, levels=LEVELS, geocodes=["056", "156"])
    assert release.coords["state"] == ("056", "156")
    assert release.coords["County"] == ("056010001", "056010003", "156010001")
    assert release["state: hhinstlevels"].dims == ("state", "hhinstlevels")
    for query in release:
        level, _, name = query.name.partition(": ")
        for code, values in zip(query.coords[level], query.values, strict=True):
            own = expected[level.capitalize(), f"{name}_dpq", code]
            assert np.ravel(values).tolist() == own
    assert len(read_census(path, levels={"County": 9}, queries=["total"]).queries[0].values) == 4


def test_an_object_store_is_read_through_fsspec(directory):
    path, _ = directory
    store = fsspec.filesystem("memory")
    store.put(str(path), "/census", recursive=True)
    try:
        found = read_census("memory://census", levels=LEVELS, geocodes=["030"])
        here = read_census(path, levels=LEVELS, geocodes=["030"])
        assert found.names == here.names
        for query in here:
            np.testing.assert_array_equal(found[query.name].values, query.values)
    finally:
        store.rm("/census", recursive=True)


@pytest.mark.parametrize("package", ["fsspec.core", "pyarrow"])
def test_what_is_missing_is_named(directory, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"install {package.split('.')[0]}"):
        read_census("memory://census", levels=LEVELS)


def test_only_wanted_files_and_rows_are_read(directory, monkeypatch):
    path, _ = directory
    read = []

    def watched(system, files, wanted):
        frame = original(system, files, wanted)
        assert all("County.parquet" in file for file in files)
        read.append(len(frame))
        return frame

    original = census_files._read
    monkeypatch.setattr(census_files, "_read", watched)
    read_census(path, levels=["county"], geocodes=["056010003", "156"])
    read_census(path, levels=["county"], geocodes=["056010003", "156"], queries=["hispanic"])
    assert read == [2 * 3, 2]
    _, files = census_files._files(str(path), {})
    wanted = census_files.Wanted({"county": None}, (), ("056010003",), "DPQuery")
    kept = census_files._by_level(files, wanted)
    assert [file.split("/")[-2] for file in kept["county"]] == ["State=056"]
    # Two digits can be the beginning of codes of several states, or of one with a digit before it.
    assert len(census_files._by_level(files, wanted._replace(geocodes=("05",)))["county"]) == 3


def test_a_table_of_arrow_is_what_its_lists_are():
    tracts = ["01001000100", "01003000100"]
    rows = noisy_rows(
        made_up(tracts, 50, np.random.default_rng(1)), tracts, np.random.default_rng(2)
    )
    lists = read_census(rows, levels={"county": 5, "tract": 11})
    arrow = read_census(pa.table(rows), levels={"county": 5, "tract": 11})
    for query in lists:
        np.testing.assert_array_equal(arrow[query.name].values, query.values)


def test_files_that_cannot_be_read_are_refused(directory, tmp_path):
    path, _ = directory
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no Parquet file at"):
        read_census(tmp_path / "empty", levels=LEVELS)
    with pytest.raises(ValueError, match="no geocode of level 'County'"):
        read_census(path, levels=["County"], geocodes=["0569"])
    with pytest.raises(ValueError, match="no geocode of level 'tract'"):
        read_census(path, levels=["tract"])
    with pytest.raises(ValueError, match="storage_options are those of fsspec"):
        read_census(path, levels=LEVELS, storage_options={"anon": True})
    one = path / "County.parquet" / "DPQuery" / "State=030" / "part-0.parquet"
    table = parquet.read_table(one)
    parquet.write_table(table.drop_columns(["geocode"]), tmp_path / "one.parquet")
    with pytest.raises(ValueError, match="no column 'geocode', but query_name"):
        read_census(tmp_path / "one.parquet", levels=LEVELS)
    names = {"variance": "value", "value": "variance"}
    parquet.write_table(table.rename_columns(names), tmp_path / "one.parquet")
    with pytest.raises(ValueError, match="must have 3 noisy counts, but not that of geocode '0300"):
        read_census(tmp_path / "one.parquet", levels={"county": 9}, queries=["hhinstlevels"])
    unnamed = table.set_column(1, "query_name", [pa.array([None, 1, 2], pa.int64())])
    parquet.write_table(unnamed, tmp_path / "one.parquet")
    with pytest.raises(TypeError, match="geocodes and names must be strings"):
        read_census(tmp_path / "one.parquet", levels={"county": 9}, queries=["total"])
    parquet.write_table(table, tmp_path / "one.parquet")
    with pytest.raises(ValueError, match=r"no directory tract.parquet. Give the lengths"):
        read_census(tmp_path / "one.parquet", levels=["tract"])


def constraints(codes, units):
    """What is exact of areas: how many housing units and group quarters of each kind they have."""
    rows = {name: [] for name in ("geocode", "query_name", "query_shape", "value", "sign")}
    for code, n in zip(codes, units, strict=True):
        for name, sign, value in (
            ("nurse_nva_0_con", "=", [0]),
            ("hhgq_total_lb_con", ">=", n),
            ("hhgq_total_ub_con", "<=", [99999 * each for each in n]),
        ):
            shape = [len(value), 1, 1, 1]
            for column, cell in zip(rows.values(), (code, name, shape, value, sign), strict=True):
                column.append(cell)
    return rows


def test_areas_without_units_have_no_people_and_totals_may_be_exact(directory):
    path, _ = directory
    units = [[0] * 7 + [2], [0] * 8]
    for state, codes in (("056", AREAS["056"]), ("156", AREAS["156"])):
        part = path / "County.parquet" / "Constraint" / f"State={state}" / "part-0.parquet"
        parquet.write_table(pa.table(constraints(codes, units[: len(codes)])), part)
    part = path / "State.parquet" / "Constraint" / "State=056" / "part-0.parquet"
    total = {"geocode": ["056"], "query_name": ["total_con"], "query_shape": [[1, 1, 1, 1]]}
    parquet.write_table(pa.table(total | {"value": [[5000]], "sign": ["="]}), part)
    known = census_totals(path, levels=LEVELS, geocodes=["056"])
    assert known == {"056": 5000, "056010003": 0}
    assert census_totals(path, levels=["County"], geocodes=["15"]) == {}
    tables = census_tables(read_census(path, levels=LEVELS, geocodes=["056"]), exact=known)
    np.testing.assert_equal(tables.queries["exact"].released, [[5000], [np.nan], [0]])


def test_constraints_that_cannot_be_read_are_refused():
    rows = constraints(["0560", "0561"], [[1] + [0] * 7, [0] * 8]) | {"variance": [0.0] * 6}
    assert census_totals(rows, levels={"county": 4}) == {"0561": 0}
    assert census_totals(pa.table(rows), levels={"county": 4}) == {"0561": 0}
    with pytest.raises(ValueError, match="Give the lengths of geocodes"):
        census_totals(rows, levels=["county"])
    for change, message in (
        ({"sign": [""] * 6}, "have a column 'sign', and none 'h1'"),
        ({"h1": ["*"] * 6}, "have a column 'sign', and none 'h1'"),
        ({"value": [[0], [1], [0] * 25] * 2}, "must have 8 numbers in each row, of housing units"),
        ({"value": [[0], [1], [0] * 8, [0], [0], [0]]}, "must have 8 numbers in each row"),
        ({"query_name": ["total_con"] * 6, "sign": ["="] * 6}, "as many numbers in each row"),
    ):
        with pytest.raises(ValueError, match=message):
            census_totals(rows | change, levels={"county": 4})
    rows["query_name"][0] = "total_con"
    rows["value"][0], rows["value"][2] = [7], [0] * 8
    with pytest.raises(ValueError, match="geocode '0560' has both 7 and 0 people"):
        census_totals(rows, levels={"county": 4})


def test_how_many_people_areas_have_at_least_and_at_most():
    units = [[3, 0, 0, 2, 0, 1, 0, 0], [0] * 8]
    rows = constraints(["0560", "0561"], units) | {"variance": [0.0] * 6}
    found = census_bounds(rows, levels={"county": 4})
    assert list(found) == ["0560", "0561"]
    for bounds, n in zip(found.values(), units, strict=True):
        np.testing.assert_array_equal(bounds, [n, 99999 * np.array(n)])
    assert census_bounds(rows, levels={"county": 3}) == {}
    rows["query_name"][1] = "another_con"
    with pytest.raises(ValueError, match="geocode '0560' must have both hhgq_total_lb_con and hhg"):
        census_bounds(rows, levels={"county": 4})
