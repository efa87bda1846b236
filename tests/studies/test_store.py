"""Finished cells on disk."""

import errno
import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow.parquet import read_schema

from pymc_dapper.studies import fingerprint, study
from pymc_dapper.studies import store as stores
from pymc_dapper.studies.cell import CellResult
from pymc_dapper.studies.fields import NUMBER_FIELDS, STATISTICS
from pymc_dapper.studies.grid import read_grid
from tests.studies import functions


def run(simulate=functions.simulate, grid=None, **options):
    # Tests run finished cells with other functions: what these say of a change isn't asked.
    options = {"on_change": "reuse", **options}
    settings = {"seed": 1, "replicates": 2, "sample_kwargs": functions.FAST, **options}
    with ThreadPoolExecutor(1) as executor:
        return study(
            simulate,
            functions.build_light,  # the model doesn't matter here
            functions.GRID if grid is None else grid,
            executor=executor,
            progressbar=False,
            **settings,
        )


@pytest.fixture(scope="module")
def expected():
    return run()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A finished study, to be copied or only read."""
    folder = tmp_path_factory.mktemp("filled")
    run(store=folder)
    return folder


@pytest.fixture
def store(filled, tmp_path):
    for file in filled.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def never(rng, share):
    raise AssertionError("a finished cell was run again")


def test_a_finished_study_is_read(store, expected):
    result = run(never, store=store)
    assert functions.same(result, expected)
    assert result["seconds"].notnull().all()


def test_a_study_can_be_given_more_cells(store, tmp_path):
    noted = tmp_path / "noted"
    noted.mkdir()
    simulate = partial(functions.simulate_and_note, folder=noted)
    grown = {"share": [0.5, 0.3, 0.7]}
    result = run(simulate, grown, replicates=3, store=store)
    assert functions.notes(noted)[0].total() == 9 - 4
    assert functions.same(result, run(grid=grown, replicates=3))


def test_all_files_are_one_table(filled, expected):
    table = pd.read_parquet(filled)
    assert len(table) == 4
    means = table.set_index(["share", "replicate"])["mean"].sort_index()
    np.testing.assert_array_equal(means, expected["p/mean"].values.ravel())


def test_whole_numbers_and_others_are_one_table(tmp_path):
    """Catches columns whose type depends on a grid's other values: pandas may refuse them."""
    for shares in ([0, 1], [0, 0.5, 1]):
        run(grid={"share": shares}, replicates=1, store=tmp_path)
    assert len({str(read_schema(file)) for file in tmp_path.glob("*.parquet")}) == 1
    assert sorted(pd.read_parquet(tmp_path)["share"]) == [0, 0.5, 1]


def test_any_message_can_be_written(tmp_path):
    def fail(rng, share):
        raise ValueError("no such file: \udcff")

    for _ in range(2):
        with pytest.warns(UserWarning, match="4 failed"):
            result = run(fail, store=tmp_path)
    assert result["message"].values[0, 0] == "simulate: ValueError: no such file: \\udcff"


def test_cells_that_took_too_long_can_be_run_again(tmp_path, expected):
    with pytest.warns(UserWarning, match="of 4 cells, 4 timed out. .* the study's timeout"):
        result = run(store=tmp_path, timeout=1e-9)
    assert (result["status"] == "timed out").all()
    assert result["sample_seconds"].isnull().all()
    assert (result["seconds"] > 0).all()
    with pytest.warns(UserWarning, match="4 timed out"):
        kept = run(never, store=tmp_path, timeout=3600)
    assert (kept["status"] == "timed out").all()
    again = run(store=tmp_path, timeout=3600, retry_failed=True)
    assert functions.same(again, expected)


def test_the_same_settings_in_other_words_are_the_same(store, expected):
    kwargs = {name: np.int64(value) for name, value in functions.FAST.items()}
    assert functions.same(run(never, store=store, sample_kwargs=kwargs), expected)


def test_settings_are_compared_without_addresses():
    assert stores._plain(never) == "<function never>"


def test_the_seed_is_taken_from_the_store(store, expected):
    assert functions.same(run(never, store=store, seed=None), expected)


def test_without_a_seed_one_is_drawn_and_kept(tmp_path):
    one, other = (run(store=tmp_path / name, seed=None, replicates=1) for name in "ab")
    assert one.attrs["seed"] != other.attrs["seed"]
    assert json.loads((tmp_path / "a" / "_study.json").read_text())["seed"] == one.attrs["seed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 2}, "seed was 1, is now 2"),
        ({"sample_kwargs": {"draws": 50}}, "sample_kwargs was"),
        ({"prob": 0.5}, "prob was 0.9, is now 0.5"),
        ({"var_names": ["p"]}, "var_names was None"),
        ({"grid": {"portion": [0.3]}}, "settings was \\['share'\\]"),
    ],
)
def test_other_settings_are_refused(options, message, filled):
    with pytest.raises(ValueError, match=message):
        run(never, store=filled, **options)


def test_failures_are_kept_unless_they_are_to_be_run_again(tmp_path, expected):
    with pytest.warns(UserWarning, match="2 failed"):
        run(functions.simulate_and_fail, store=tmp_path)
    assert len(list(tmp_path.glob("*.parquet"))) == 4
    with pytest.warns(UserWarning, match="2 failed"):
        kept = run(never, store=tmp_path)
    assert (kept["message"].sel(share=0.7) == "simulate: ZeroDivisionError: no such share").all()
    assert functions.same(run(store=tmp_path, retry_failed=True), expected)
    assert functions.same(run(never, store=tmp_path), expected)


def a_result(seed=1):
    """What a cell might have, without sampling."""
    rng = np.random.default_rng(seed)
    entries = [
        {"parameter": "p", "entry": entry, **{name: rng.normal() for name in STATISTICS}}
        for entry in ('{"k": "a"}', '{"k": "b"}')
    ]
    numbers = {name: rng.normal() for name in NUMBER_FIELDS if name != "acceptance_floor"}
    return CellResult("done", "", numbers, entries)


MADE_WITH = {"source": {}, "versions": {"python": "3"}}


@pytest.fixture
def place(tmp_path):
    """A store with one cell, and another cell."""
    place = stores.Store(tmp_path, MADE_WITH)
    place.take_over({"seed": 1})
    one, other = read_grid({"share": [0.3, 0.7], "name": ["abc"]}, 1).cells
    place.write(one, a_result())
    return place, one, other


def test_a_flipped_bit_is_noticed_or_does_nothing(place):
    """Page checksums cover neither headers nor the settings at a file's end."""
    place, cell, _ = place
    [file] = place.path.glob("*.parquet")
    content = file.read_bytes()
    [expected] = place.read([cell]).values()
    noticed = 0
    for bit in np.random.default_rng(1).choice(8 * len(content), 400, replace=False):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = place.read([cell])
        noticed += bool(caught)
        assert place.changed == {}
        assert bool(caught) == (found == {})
        assert caught or found == {cell: expected}, f"bit {bit} of {file}"
    assert noticed > 133


def test_each_cell_is_compared_with_its_settings(place):
    place, cell, other = place
    [file] = place.path.glob("*.parquet")
    file.with_name(f"{other.name}.parquet").write_bytes(file.read_bytes())
    with pytest.warns(UserWarning, match="share=0.7.*holds other settings than the cell's"):
        assert list(place.read([cell, other])) == [cell]


def test_a_cell_of_another_study_is_not_this_ones(place, tmp_path_factory):
    """Of the same settings, but another seed: catches files copied together from two stores."""
    place, cell, _ = place
    [file] = place.path.glob("*.parquet")
    elsewhere = stores.Store(tmp_path_factory.mktemp("elsewhere"), MADE_WITH)
    elsewhere.take_over({"seed": 2})
    (elsewhere.path / file.name).write_bytes(file.read_bytes())
    with pytest.warns(UserWarning, match="from a study with other settings"):
        assert elsewhere.read([cell]) == {}


def test_edited_numbers_are_noticed(place):
    place, cell, _ = place
    [file] = place.path.glob("*.parquet")
    table = pd.read_parquet(file)
    table["mean"] = 0.0
    table.to_parquet(file)
    with pytest.warns(UserWarning, match="isn't what was written"):
        assert place.read([cell]) == {}


@pytest.mark.parametrize("content", [b"", b"null", b"{}", b'{"seed": null}', b'{"seed": "1"}'])
@pytest.mark.parametrize("seed", [None, 1])
def test_damaged_settings_of_a_store_are_refused(content, seed, tmp_path):
    (tmp_path / "_study.json").write_bytes(content)
    with pytest.raises((TypeError, ValueError), match=r"is damaged|seed in _study.json|seed was"):
        run(never, store=tmp_path, seed=seed)


def test_a_cell_that_cannot_be_written_blocks_no_other(place):
    place, cell, other = place
    cells = read_grid({"share": [0.1, 0.2], "name": ["abc"]}, 1).cells
    (place.path / f"{cells[0].name}.parquet").mkdir()
    with pytest.warns(UserWarning, match=f"a cell can't be written to .*{cells[0].name}"):
        place.write(cells[0], a_result())
    for each in (cells[1], other):
        place.write(each, a_result())
    assert set(place.read([cell, other, cells[1]])) == {cell, other, cells[1]}


def test_other_code_is_told_or_refused(filled, expected):
    with pytest.warns(UserWarning, match="4 cells .* the code of 'simulate' has changed.*are used"):
        assert functions.same(run(never, store=filled, on_change="warn"), expected)
    with pytest.raises(ValueError, match=r"the code of 'simulate' has changed.*another store"):
        run(never, store=filled, on_change="raise")
    assert functions.same(run(store=filled, on_change="raise"), expected)


def test_other_versions_are_told(filled, expected, monkeypatch):
    monkeypatch.setattr(fingerprint, "version", lambda name: "0.0.1")
    with pytest.warns(UserWarning, match="numpy was .*, is now 0.0.1; .*pytensor was"):
        assert functions.same(run(store=filled, on_change="warn"), expected)


def test_what_on_change_may_be():
    with pytest.raises(ValueError, match=r"on_change must be .*'raise'"):
        run(never, on_change="ignore")


def test_processes_may_fill_a_store_with_a_part_of_the_grid_each(tmp_path, expected):
    """Also at the same time; the whole grid then has nothing left to run."""
    parts = [{"share": [share]} for share in functions.GRID["share"]]
    with ThreadPoolExecutor(len(parts)) as processes:
        each = list(processes.map(lambda part: run(grid=part, store=tmp_path), parts))
    for share, result in zip(functions.GRID["share"], each, strict=True):
        assert functions.same(result, run(grid={"share": [share]}))
    assert functions.same(run(never, store=tmp_path), expected)


def test_cells_that_two_processes_both_run_are_the_same(store, expected):
    """The second didn't see the first one's files."""
    files = {file.name: pd.read_parquet(file) for file in store.glob("*.parquet")}
    for name in files:
        (store / name).unlink()
    assert functions.same(run(store=store), expected)
    for name, before in files.items():
        again = pd.read_parquet(store / name)
        pd.testing.assert_frame_equal(
            *(x.drop(columns=[*functions.TIMINGS, "digest"]) for x in (before, again))
        )


@pytest.mark.parametrize("content", [b"", b"PAR1", None])
def test_a_broken_file_is_a_missing_cell(content, store, expected):
    file = sorted(store.glob("*.parquet"))[1]
    file.write_bytes(file.read_bytes()[:-100] if content is None else content)
    with pytest.warns(UserWarning, match=f"{file.name} .* is run again"):
        result = run(store=store)
    assert functions.same(result, expected)
    assert functions.same(run(never, store=store), expected)


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_store_that_cannot_be_written_to_is_refused(tmp_path):
    """Root may write everywhere, so not by permissions."""
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        with pytest.raises(OSError, match="can't be written to"):
            run(never, store=place)


def test_a_full_store_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(OSError, match="can't be written to: No space left"):
        run(never, store=tmp_path)


def test_a_directory_of_other_things_is_refused(tmp_path):
    (tmp_path / "mine.parquet").touch()
    with pytest.raises(ValueError, match="it is no store"):
        run(never, store=tmp_path)


def fill_disk(monkeypatch):
    """Let writing fail from the second cell on."""
    write, calls = Path.write_bytes, []

    def limited(path, content):
        if path.suffix == ".parquet":
            calls.append(path)
            if len(calls) > 1:
                _full()
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", limited)


def test_a_store_that_fills_up_loses_nothing_that_is_in_memory(tmp_path, monkeypatch, expected):
    fill_disk(monkeypatch)
    with pytest.warns(UserWarning, match=r"can't be written to .*No space left.* save it") as told:
        result = run(store=tmp_path)
    assert len(told) == 1
    assert functions.same(result, expected)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    monkeypatch.undo()
    assert functions.same(run(store=tmp_path), expected)


def test_without_pyarrow_a_store_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"store= needs pyarrow.*pip install pyarrow"):
        run(never, store=tmp_path)
