"""Trees in files: what comes out is that of the tree in memory, whoever works on them and dies."""

import json
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.counts.trees import streaming
from pymc_dapper.counts.trees.forest import Summaries

# A nation, two states; three counties, a file each, with blocks.
PARENT = np.array([-1, 0, 0, 1, 1, 2, 3, 3, 3, 4, 4, 5])
RELEASED = np.array([25, np.nan, 14, 8, 5, 11, 2, -1, 6, 3, 3, np.nan])
SCALE = np.array([0, 0, 2.0, 1.5, 1.5, 1.5, 3.0, 3.0, 3.0, 3.0, 3.0, 0])
FILES = {"_top": [0, 1, 2], "a": [3, 6, 7, 8], "b": [9, 4, 10], "c": [5, 11]}
NUMBERS = 100 + np.arange(12)
PRIOR = stats.poisson(4.0)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    numbers = np.append(NUMBERS, -1)
    for name, nodes in FILES.items():
        columns = {
            "node": NUMBERS[nodes],
            "parent": numbers[PARENT[nodes]],
            "released": pa.array(RELEASED[nodes], from_pandas=True),
            "scale": SCALE[nodes],
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def read(target):
    """All results, in the order of nodes."""
    tables = [pq.read_table(target / f"{name}.parquet") for name in FILES]
    whole = pa.concat_tables(tables).sort_by("node")
    return {name: np.array(whole[name].to_pylist(), dtype=float) for name in whole.column_names}


def solve(source, tmp_path, name="target", **options):
    return pmd.solve_tree_files(
        source, tmp_path / name, **{"prior": PRIOR, "draws": 4, "random_seed": 1, **options}
    )


def check(found, tmp_path, name="target"):
    tree = pmd.CountTree(PARENT, RELEASED, SCALE, prior=PRIOR)
    assert found.log_evidence == pytest.approx(tree.log_evidence(), abs=1e-12)
    assert found.tail_mass < 1e-11
    expected, results = tree.marginals(), read(tmp_path / name)
    np.testing.assert_allclose(results["mean"], expected.mean, atol=1e-10)
    np.testing.assert_allclose(results["sd"], expected.sd, atol=1e-7)
    np.testing.assert_array_equal(results["quantiles"], expected.quantiles)
    for node in range(6):
        children = results["draws"][node == PARENT]
        np.testing.assert_array_equal(results["draws"][node], children.sum(axis=0))
    return results


def test_without_draws_files_have_marginals_alone(source, tmp_path):
    solve(source, tmp_path, draws=0)
    results = read(tmp_path / "target")
    tree = pmd.CountTree(PARENT, RELEASED, SCALE, prior=PRIOR)
    np.testing.assert_allclose(results["mean"], tree.marginals().mean, atol=1e-10)
    assert "draws" not in results


def test_files_and_memory_say_the_same(source, tmp_path):
    first = check(solve(source, tmp_path), tmp_path)
    with ThreadPoolExecutor(2) as executor:
        found = solve(source, tmp_path, "by threads", executor=executor)
    np.testing.assert_array_equal(check(found, tmp_path, "by threads")["draws"], first["draws"])


def test_draws_have_the_marginals(source, tmp_path):
    solve(source, tmp_path, draws=4000)
    results = read(tmp_path / "target")
    error = results["sd"] / np.sqrt(4000)
    assert np.all(np.abs(results["draws"].mean(axis=1) - results["mean"]) <= 5 * error + 1e-9)


def test_what_is_finished_is_not_done_again(source, tmp_path, monkeypatch):
    done = []

    def fails(task, name, *rest, write):
        if name == "b.parquet" and not done.count("b.parquet"):
            done.append(name)
            raise OSError("the worker is gone")
        done.append(name)
        write(task, name, *rest)

    for function in ("write_root", "write_part"):
        write = partial(fails, write=getattr(streaming, function))
        monkeypatch.setattr(streaming, function, write)
        done.clear()
        with ThreadPoolExecutor(1) as executor:
            with pytest.raises(RuntimeError, match=r"1 of 3 files failed, b\.parquet"):
                solve(source, tmp_path, executor=executor)
            assert sorted(done) == ["a.parquet", "b.parquet", "c.parquet"]
            done.clear()
            done.append("b.parquet")
            if function == "write_root":
                monkeypatch.setattr(streaming, "write_part", lambda *task: None)
                solve(source, tmp_path, executor=executor)
                monkeypatch.undo()
            else:
                found = solve(source, tmp_path, executor=executor)
            assert done == ["b.parquet"] * 2
    check(found, tmp_path)


def test_results_of_other_settings_are_refused(source, tmp_path):
    solve(source, tmp_path)
    for changed in ({"draws": 5}, {"random_seed": 2}, {"prior": "flat"}, {"quantiles": [0.5]}):
        with pytest.raises(ValueError, match=r"of another tree or with other settings: .* is now"):
            solve(source, tmp_path, **changed)


def test_what_is_no_tree_is_refused(source, tmp_path):
    with pytest.raises(ValueError, match="must have _top"):
        solve(tmp_path, tmp_path)
    table = pq.read_table(source / "b.parquet")
    wrong = {
        "2 roots": {"parent": [-1, 101, 104]},
        "twice": {"node": [109, 109, 110]},
        "isn't in _top": {"parent": [104, 777, 104]},
        "at node 109": {"released": [90.0, 5.0, 90.0], "scale": [0.0, 0.0, 0.0]},
    }
    for k, (message, columns) in enumerate(wrong.items()):
        changed = {**table.to_pydict(), **columns}
        pq.write_table(pa.table(changed), source / "b.parquet")
        with pytest.raises(ValueError, match=message):
            solve(source, tmp_path, str(k))


def test_draws_are_written_some_nodes_after_the_other(tmp_path):
    """So a worker's memory doesn't grow with its file."""
    rng = np.random.default_rng(1)
    node, draws = np.arange(5) + 10, rng.integers(2**33, size=(5, 3))
    found = Summaries(rng.random(5), rng.random(5), draws[:, :2], np.zeros((0, 2)))
    places = [np.array([3, 0]), np.array([], dtype=int), np.array([4]), np.array([1, 2])]
    parts = [(at, draws[at]) for at in places]
    file = tmp_path / "a.parquet"
    streaming.write_results(pa, file, node, found, iter(parts), draws.max())
    assert pq.ParquetFile(file).num_row_groups == 3
    table = pq.read_table(file).sort_by("node")
    np.testing.assert_array_equal(table["draws"].to_pylist(), draws)
    np.testing.assert_array_equal(table["quantiles"].to_pylist(), draws[:, :2])
    np.testing.assert_array_equal(table["mean"], found.means)
    assert os.listdir(tmp_path) == ["a.parquet"]


def die_once(function, folder, task, name, *rest):
    """The first worker that comes to this file is killed."""
    note = Path(folder) / function
    if name == "b.parquet" and not note.exists():
        note.write_text(json.dumps(os.getpid()))
        os._exit(1)
    getattr(streaming, function)(task, name, *rest)


@pytest.fixture
def workers_die(tmp_path, monkeypatch):
    """Of both rounds, a worker is killed."""
    everywhere = streaming.everywhere

    def with_deaths(executor, function, tasks):
        everywhere(executor, partial(die_once, function.__name__, str(tmp_path)), tasks)

    monkeypatch.setattr(streaming, "everywhere", with_deaths)


@pytest.mark.long
def test_a_pool_of_processes_that_breaks_loses_what_it_was_doing_only(
    source, tmp_path, workers_die
):
    kept = []
    for done in ("_roots/*-a.npz", "a.parquet"):
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as executor,
            pytest.raises(RuntimeError, match="call again to go on"),
        ):
            solve(source, tmp_path, executor=executor)
        kept += (tmp_path / "target").glob(done)
    assert len(kept) == 2
    times = [file.stat().st_mtime_ns for file in kept]
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        found = solve(source, tmp_path, executor=executor)
        one = check(found, tmp_path)
        tree = pmd.CountTree(PARENT, RELEASED, SCALE, prior=PRIOR)
        np.testing.assert_array_equal(
            tree.draw(3, random_seed=1, executor=executor), tree.draw(3, random_seed=1)
        )
    assert times == [file.stat().st_mtime_ns for file in kept]
    found = solve(source, tmp_path, "here")
    np.testing.assert_array_equal(one["draws"], check(found, tmp_path, "here")["draws"])


@pytest.mark.long
def test_a_dask_worker_that_dies_loses_its_file_only(source, tmp_path, workers_die):
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        found = solve(source, tmp_path, executor=client.get_executor())
        tree = pmd.CountTree(PARENT, RELEASED, SCALE, prior=PRIOR)
        np.testing.assert_array_equal(
            tree.draw(3, random_seed=1, executor=client.get_executor()),
            tree.draw(3, random_seed=1),
        )
    assert (tmp_path / "write_root").exists()
    assert (tmp_path / "write_part").exists()
    check(found, tmp_path)
