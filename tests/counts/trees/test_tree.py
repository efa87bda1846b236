"""CountTree: what it refuses, special cases in closed form, and the whole by simulation."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.counts.trees.forest import Forest

NAN = np.nan


def test_multinomial_counts_are_poisson_counts_given_their_total():
    """And the evidence is that of the multinomial times the probability of the total."""
    p, total = np.array([0.2, 0.5, 0.3]), 12
    released, sigma = np.array([4.0, NAN, 2.0]), 1.5
    tree = pmd.CountTree(
        [-1, 0, 0, 0], [total, *released], [0, 1.5, 1, 1.5], prior=stats.poisson(total * p)
    )
    x = np.arange(total + 1)
    a, c = np.meshgrid(x, x, indexing="ij")
    b = total - a - c
    logs = stats.multinomial.logpmf(np.stack([a, b, c], axis=-1), total, p)
    normaliser = np.log(np.exp(-0.5 * (np.arange(-40, 41) / sigma) ** 2).sum())
    for value, count in ((4.0, a), (2.0, c)):
        logs = logs - 0.5 * ((value - count) / sigma) ** 2 - normaliser
    weights = np.where(b < 0, 0, np.exp(logs))
    expected = np.log(weights.sum()) + stats.poisson.logpmf(total, total)
    assert tree.log_evidence() == pytest.approx(expected, abs=1e-12)
    lowest, pmf = tree.pmf(1)
    expected = weights.sum(axis=1) / weights.sum()
    np.testing.assert_allclose(pmf, expected[lowest : lowest + len(pmf)], atol=1e-13)


def test_several_releases_of_a_count_are_a_chain():
    tree = pmd.CountTree(
        [-1, 0, 1], [5, 7, 3], [2.0, 3.0, 1.0], noise=["laplace", "gaussian", "gaussian"]
    )
    x = np.arange(60)
    logs = stats.laplace.logpdf(5, x, 2) + stats.norm.logpdf(7, x, 3) + stats.norm.logpdf(3, x, 1)
    assert tree.log_evidence() == pytest.approx(np.log(np.exp(logs).sum()), abs=1e-12)


def forest_of(rng, n_trees):
    """Trees of a state, two counties and five blocks, with all that a user may know of them."""
    one = np.array([-1, 0, 0, 1, 1, 2, 2, 2])
    parent = np.where(one < 0, -1, one + 8 * np.arange(n_trees)[:, None])
    truth = np.zeros((n_trees, 8))
    truth[:, 3:] = rng.poisson([3.0, 0.3, 8.0, 1.0, 0.0], (n_trees, 5))
    truth[:, 1], truth[:, 2] = truth[:, 3:5].sum(axis=1), truth[:, 5:].sum(axis=1)
    truth[:, 0] = truth[:, 1:3].sum(axis=1)
    scale = np.array([0, 1.3, 2.0, 6.0, 2.0, 3.0, 1.0, 1.0])
    noise = np.array(["discrete_gaussian"] * 2 + ["gaussian", "laplace"] * 3)
    released = (
        truth
        + np.where(noise == "laplace", rng.laplace(size=truth.shape), rng.normal(size=truth.shape))
        * scale
    )
    released[:, 1] = truth[:, 1] + stats.dlaplace.rvs(1 / 1.3, size=n_trees, random_state=rng)
    released[:, 5] = NAN
    noise[1] = "discrete_laplace"
    prior = stats.poisson(np.tile([3.0, 0.3, 8.0, 1.0, 0.0], n_trees))
    options = {"scale": np.tile(scale, n_trees), "noise": np.tile(noise, n_trees), "prior": prior}
    return parent.ravel(), released.ravel(), options, truth.ravel().astype(int)


def uniformity(u):
    """P-value of numbers being uniform."""
    return stats.kstest(u, "uniform").pvalue


def ranks(tree, truth, rng):
    """Where the truth lies in its marginal, and among draws; ties broken at random."""
    found = tree.marginals(at=truth)
    u = found.below + rng.random(truth.size) * (found.up_to - found.below)
    draws = tree.draw(19, random_seed=rng)
    below, ties = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return u, below + rng.integers(0, ties + 1)


def test_simulated_truths_lie_anywhere_in_their_posteriors():
    """Simulation-based calibration of marginals and draws; a wrong scale is found out."""
    rng = np.random.default_rng(1)
    parent, released, options, truth = forest_of(rng, 500)
    u, rank = ranks(pmd.CountTree(parent, released, **options), truth, rng)
    for node in (1, 2, 3, 4, 5, 6):
        assert uniformity(u.reshape(-1, 8)[:, node]) > 1e-3
        observed = np.bincount(rank.reshape(-1, 8)[:, node], minlength=20)
        assert stats.chisquare(observed).pvalue > 1e-3
    wrong = {**options, "scale": options["scale"] * 0.4}
    u, _ = ranks(pmd.CountTree(parent, released, **wrong), truth, rng)
    assert min(uniformity(u.reshape(-1, 8)[:, node]) for node in range(1, 8)) < 1e-6


def test_executors_change_nothing_and_the_seed_is_all():
    parent, released, options, _ = forest_of(np.random.default_rng(2), 3)
    trees = [pmd.CountTree(parent, released, **options) for _ in range(2)]
    first = trees[0].draw(5, random_seed=3)
    with ThreadPoolExecutor(2) as executor:
        np.testing.assert_array_equal(trees[1].draw(5, random_seed=3, executor=executor), first)
        marginals = trees[1].marginals(executor=executor)
    np.testing.assert_array_equal(trees[0].marginals().mean, marginals.mean)
    assert not np.array_equal(trees[0].draw(5, random_seed=4), first)


GOOD = {"parent": [-1, 0, 0], "released": [9, 4, NAN], "scale": [0, 1.0, 1.0]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"parent": [-1, 0, 3]}, "from 0 to 2, got 3"),
        ({"parent": [-1, 2, 1]}, "circle"),
        ({"released": [9, 4]}, "shape"),
        ({"released": [9, 4.5, NAN]}, "node 1 has a released value that isn't whole"),
        ({"released": [-9, 4, NAN]}, "node 0 has a negative exact count"),
        ({"released": [9, np.inf, NAN]}, "node 1 has an infinite"),
        ({"scale": [0, -1.0, 1.0]}, "node 1 has a scale"),
        ({"noise": "uniform"}, "must be one of"),
        ({"released": [NAN, 4, NAN]}, "node 2 has no limit"),
        ({"names": ["a", "b"]}, r"names must have shape \(3,\), one for each node"),
    ],
)
def test_what_is_no_tree_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        pmd.CountTree(**{**GOOD, **changed})


@pytest.mark.parametrize(
    ("released", "scale"),
    [
        ([9, 10, 1], [0, 0, 1.0]),  # a part that is larger than the whole
        ([9, 4, 4], [0, 0, 0]),
        ([2, 3000, 1], [0, 1.0, 1.0]),  # possible, but not in float64
    ],
)
def test_unreachable_releases_are_refused_by_name(released, scale):
    tree = pmd.CountTree([-1, 0, 0], released, scale, names=["state", "east", "west"])
    with pytest.raises(ValueError, match=r"the release at node (state|east), above it"):
        tree.log_evidence()


def test_wrong_arguments_are_refused():
    tree = pmd.CountTree(**GOOD)
    with pytest.raises(ValueError, match="ascending"):
        tree.marginals([0.9, 0.1])
    with pytest.raises(ValueError, match="shape"):
        tree.marginals(at=[1, 2])
    with pytest.raises(ValueError, match="node"):
        tree.pmf(3)
    assert repr(tree) == "<CountTree: 3 nodes>"
    assert tree.tail_mass < 1e-11


@pytest.mark.parametrize("method", ["log_evidence", "marginals", "draw", "pmf"])
def test_trees_that_do_not_fit_into_memory(method, monkeypatch):
    def no_memory(*arguments, **options):
        raise MemoryError("Unable to allocate 7.45 GiB")

    built = pmd.CountTree([-1, 0, 0], [5, 7, 3], 2.0)
    monkeypatch.setattr(Forest, "solve", no_memory)
    said = "for a tree of 3 nodes: Unable to allocate 7.45 GiB. Keep it in files.*solve_tree_files"
    with pytest.raises(MemoryError, match=said):
        getattr(built, method)(*([1] if method == "pmf" else []))
    monkeypatch.setattr(Forest, "__init__", no_memory)
    with pytest.raises(MemoryError, match=said):
        pmd.CountTree([-1, 0, 0], [5, 7, 3], 2.0)
