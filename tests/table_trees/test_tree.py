"""TableTree: what it draws where CountTree knows the answer, the same draws again, and refusals."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.table_trees import chain as chain_module
from tests.table_trees.small_table_trees import CELLS, NAN, example, log_prior

KEEP = {"all": (CELLS, range(7)), "state": ("race", [0])}


def test_totals_alone_are_those_of_count_tree():
    """One query of all cells: whatever cells people are in."""
    released, scale = np.array([9.0, NAN, 4, 2, 5, -3]), np.array([0, 1.0, 2, 4, 4, 4])
    parent, prior = [-1, 0, 0, 1, 1, 2], log_prior(60)
    by_messages = pmd.CountTree(parent, released, scale, prior=prior)
    query = pmd.TableQuery([0, 0, 0], released[:, None], scale)
    tree = pmd.TableTree(parent, {"total": query}, prior=prior, concentration=0.4)
    drawn = tree.sample(8_000, keep={"total": ("total", range(6))}, random_seed=1)
    effective = drawn.summary("total").ess[1:, 0].min()
    x = drawn["total"].reshape(-1, 6)
    for node in range(6):
        lowest, pmf = by_messages.pmf(node)
        shares = np.bincount(x[:, node], minlength=lowest + len(pmf))[lowest:] / len(x)
        # Of several hundred shares, each with this standard error at most.
        assert np.abs(shares[: len(pmf)] - pmf).max() < 4.5 * np.sqrt(0.25 / effective)
        assert shares.sum() == pytest.approx(1)


def killed_after(n_writings, monkeypatch, sample):
    """Interrupt a run after its state was written so many times."""
    write, left = chain_module.write_state, [n_writings]

    def killed(*args):
        write(*args)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(chain_module, "write_state", killed)
        with pytest.raises(KeyboardInterrupt):
            sample()


def test_the_same_draws_in_threads_and_after_a_kill(tmp_path, monkeypatch):
    tree, _ = example(True)
    options = {"keep": KEEP, "random_seed": 3, "tune": 5, "every": 10}
    once = tree.sample(40, **options)
    with ThreadPoolExecutor(2) as threads:
        again = tree.sample(40, executor=threads, **options)
    np.testing.assert_array_equal(again["all"], once["all"])
    assert not np.array_equal(once["all"][0], once["all"][1])

    killed_after(3, monkeypatch, lambda: tree.sample(40, results=tmp_path, **options))
    with pytest.raises(ValueError, match="no draws yet of each chain"):  # the first was killed
        tree.so_far(tmp_path, keep=KEEP)
    resumed = tree.sample(40, results=tmp_path, **options)
    np.testing.assert_array_equal(resumed["all"], once["all"])
    np.testing.assert_array_equal(resumed["state"], once["state"])
    with pytest.raises(ValueError, match="other settings: draws was "):
        tree.sample(41, results=tmp_path, **options)


@pytest.mark.long
def test_the_same_draws_in_processes_and_by_dask(tmp_path):
    from distributed import Client, LocalCluster

    tree, _ = example(True)
    options = {"keep": KEEP, "random_seed": 3, "tune": 5}
    once = tree.sample(20, **options)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        again = tree.sample(20, executor=processes, results=tmp_path / "a", **options)
    np.testing.assert_array_equal(again["all"], once["all"])
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        again = tree.sample(20, executor=client.get_executor(), results=tmp_path / "b", **options)
    np.testing.assert_array_equal(again["all"], once["all"])


def test_what_is_drawn_until_now(tmp_path, monkeypatch):
    tree, _ = example(True)
    options = {"keep": KEEP, "random_seed": 3, "tune": 5, "every": 10, "results": tmp_path}
    with pytest.raises(ValueError, match="has no draws of tables"):
        tree.so_far(tmp_path, keep=KEEP)
    # 40 draws of one chain, 20 of the other.
    killed_after(8, monkeypatch, lambda: tree.sample(40, **options))
    found = tree.so_far(tmp_path, keep=KEEP)
    assert (tmp_path / "state.parquet").is_file()
    with pytest.raises(ValueError, match="another tree or of other margins"):
        tree.so_far(tmp_path, keep={"all": KEEP["all"]})
    whole = tree.sample(40, **options)
    np.testing.assert_array_equal(found["all"], whole["all"][:, :20])
    assert set(found.accepted) == set(whole.accepted)


def test_margins_of_all_levels_are_of_one_table():
    tree, _ = example(True)
    drawn = tree.sample(20, keep=KEEP, random_seed=1)
    x = drawn["all"]
    np.testing.assert_array_equal(x[:, :, 1], x[:, :, 3:5].sum(axis=2))
    np.testing.assert_array_equal(x[:, :, 0], x[:, :, 1:3].sum(axis=2))
    race = np.stack([x[:, :, :1, [0, 2]].sum(axis=-1), x[:, :, :1, 1]], axis=-1)
    np.testing.assert_array_equal(drawn["state"], race)
    assert (x[:, :, [2, 5, 6], 1] == 0).all()  # impossible
    assert (x[:, :, 0].sum(axis=-1) == 3).all()
    assert set(drawn.accepted) == {"recast", "give"}
    assert repr(tree) == "<TableTree: 7 areas, 4 of them blocks, of 4 cells>"


@pytest.mark.parametrize(
    ("keep", "error", "message"),
    [
        (None, TypeError, "keep must be a dict"),
        ({"a": ("age",)}, TypeError, "must be .query, areas."),
        ({"a": ("sex", [0])}, ValueError, "no query 'sex', but total, age, race"),
        ({"a": ([0, 1], [0])}, ValueError, r"'a'.: classes must have shape \(4,\), one for"),
        ({"a": ("age", [7])}, ValueError, "areas must be whole numbers from 0 to 6"),
        ({"a": ("age", [1, 1])}, ValueError, "an area is named twice"),
        ({"_a": ("age", [1])}, ValueError, "must not begin with '_'"),
    ],
)
def test_margins_that_cannot_be_kept(keep, error, message):
    tree, _ = example(True)
    with pytest.raises(error, match=message):
        tree.sample(10, keep=keep)


def test_totals_without_a_limit_are_refused():
    query = pmd.TableQuery([0, 1], [[3.0, NAN], [NAN, NAN]], 1.0)
    with pytest.raises(ValueError, match="totals of all cells: node 1 has no limit"):
        pmd.TableTree([-1, 0], {"age": query})
    pmd.TableTree([-1, 0], {"age": query}, prior=stats.poisson(3.0))


@pytest.mark.parametrize(
    ("released", "scale", "prior", "area"),
    [
        ([3, 4, NAN], 0, "flat", "east"),  # more people in a part
        ([9, 4, 4], 0, "flat", "state"),  # other parts than the total
        ([9, NAN, NAN], 0, np.log([0.3, 0.3, 0.4]), "state"),  # more than the prior admits
        ([3, NAN, NAN], 0, [np.log(0.5), -np.inf, np.log(0.5)], "state"),  # parts are even
        ([9, 800, 1], [0, 1.0, 1.0], "flat", "east"),  # noise of 791 sigma
    ],
)
def test_totals_that_do_not_fit_are_refused_when_the_tree_is_made(released, scale, prior, area):
    total = pmd.TableQuery([0, 0], np.array(released, dtype=float)[:, None], scale)
    with pytest.raises(
        ValueError, match=rf"totals of all cells \(exact: 'total'\): no counts fit .* node {area}"
    ):
        pmd.TableTree([-1, 0, 0], {"total": total}, prior=prior, names=["state", "east", "west"])


def segregated(shared):
    """40 blocks of 10 people each, all of them in one of two cells, and what is released."""
    counts = np.zeros((41, 2))
    counts[1:21, 0] = counts[21:, 1] = 10
    counts[0] = counts[1:].sum(axis=0)
    noise = np.random.default_rng(1).normal(0, 2.0, counts.shape).round()
    parent = [-1, *[0] * 40]
    queries = {
        "race": pmd.TableQuery([0, 1], counts + noise, 2.0),
        "total": pmd.TableQuery([0, 0], counts.sum(axis=1, keepdims=True), 0),
    }
    tree = pmd.TableTree(parent, queries, concentration=0.5, shared=shared)
    keep = {"blocks": ("race", range(1, 41))}
    return counts[1:], tree.sample(100, tune=50, keep=keep, random_seed=1).summary("blocks")


def test_blocks_unlike_the_others_they_share_proportions_with_are_told():
    with pytest.warns(UserWarning, match="give shared= a deeper level"):
        segregated(None)
    counts, found = segregated(1)
    low, high = found.quantiles[..., 0], found.quantiles[..., 2]
    assert ((low <= counts) & (counts <= high)).mean() > 0.8
