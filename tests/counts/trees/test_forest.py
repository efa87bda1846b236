"""Small trees against enumeration, cut into subtrees in many ways; and twins."""

import numpy as np
import pytest
from scipy import special, stats

from pymc_dapper.counts.trees import compiled, weights
from pymc_dapper.counts.trees import forest as module
from pymc_dapper.counts.trees.forest import Asked, Forest, Releases
from pymc_dapper.counts.trees.priors import NO_TABLES, Prior, to_tables
from pymc_dapper.counts.trees.tree import CountTree
from tests.counts.trees.trees_by_enumeration import enumerate_tree

PARENT = np.array([-1, 0, 0, 0, 1, 1, 2, 0])
RELEASED = np.array([7, 4, 2.3, np.nan, 1, 2.2, np.nan, -1])
SCALE = np.array([0, 1.2, 0.8, 0, 0.9, 1.1, 0, 1.5])
NOISE = ["discrete_gaussian", "discrete_gaussian", "gaussian", "", "discrete_laplace", "laplace"]
NOISE += ["", "discrete_gaussian"]
KINDS = np.array([1, 2, 4, 0, 3, 5, 0, 2])
LAWS = [stats.poisson(2.5), stats.nbinom(1.5, 0.4), None, stats.poisson(1.2), stats.poisson(0.5)]
LARGEST = 7
TABLE = np.array([np.log(0.5), -np.inf, -1.5, -2.0])


def forest(most=1024):
    prior = np.array([0, 0, 0, weights.POISSON, weights.NEGATIVE_BINOMIAL, weights.OF_TABLE])
    prior = np.append(prior, [weights.POISSON, weights.POISSON])
    first = np.array([0, 0, 0, 2.5, 1.5, 0, 1.2, 0.5])
    second = np.array([0, 0, 0, 0, 0.4, 0, 0, 0])
    released = np.nan_to_num(RELEASED)
    tables = to_tables([TABLE], [0])
    return Forest(
        PARENT, Releases(KINDS, released, SCALE), Prior(prior, first, second, tables), most
    )


@pytest.fixture(scope="module")
def enumerated():
    x = np.arange(LARGEST + 1)
    rows = [np.full(LARGEST + 1, -np.inf) if law is None else law.logpmf(x) for law in LAWS]
    rows[2][: len(TABLE)] = TABLE
    return enumerate_tree(PARENT.tolist(), RELEASED, SCALE, NOISE, rows, LARGEST)


def differences(made, enumerated, drop=None):
    """Largest differences of the log-evidence and of marginals."""
    solved = made.solve() if drop is None else made.solve_with(drop)
    log_evidence, pmfs = enumerated
    apart = [abs(solved.log_evidence - log_evidence)]
    for node, expected in enumerate(pmfs):
        lowest, pmf = made.pmf(solved, node)
        both = np.zeros((2, 40))
        both[0, lowest : lowest + len(pmf)], both[1, : len(expected)] = pmf, expected
        apart.append(np.abs(both[0] - both[1]).max())
    return max(apart)


@pytest.mark.parametrize("most", [1024, 3, 1])
def test_all_that_is_known_is_that_of_all_tables(enumerated, most):
    """All noise kinds, an exact total, negative noisy counts and nodes without a release."""
    made = forest(most)
    assert differences(made, enumerated) < 1e-12
    solved = made.solve()
    assert solved.total < 1e-12
    found = made.summarise(solved, Asked(np.array([0.1, 0.5]), np.full(8, 2.0)))
    for node, pmf in enumerate(enumerated[1]):
        x, cdf = np.arange(len(pmf)), pmf.cumsum()
        mean = pmf @ x
        assert found.means[node] == pytest.approx(mean, abs=1e-12)
        assert found.sds[node] == pytest.approx(np.sqrt(pmf @ (x - mean) ** 2), abs=1e-7)
        assert found.quantiles[node].tolist() == np.searchsorted(cdf, [0.1, 0.5]).tolist()
        np.testing.assert_allclose(found.below[node], [pmf[:2].sum(), pmf[:3].sum()], atol=1e-12)


@pytest.mark.parametrize("most", [1024, 1])
def test_draws_have_these_marginals_and_add_up(enumerated, most):
    made, n = forest(most), 40_000
    drawn = made.draw(made.solve(), n, np.random.default_rng(1))
    for node in (0, 1, 2):
        np.testing.assert_array_equal(drawn[:, node], drawn[:, node == PARENT].sum(axis=1))
    for node, pmf in enumerate(enumerated[1]):
        shares = np.bincount(drawn[:, node], minlength=len(pmf)) / n
        assert np.all(np.abs(shares - pmf) <= 5 * np.sqrt(pmf / n) + 1e-12)


def flat_groups(most):
    """A noisy total of groups of flat counts with much noise."""
    parent = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    kinds, scale = np.where(np.arange(10) < 4, 2, 0), np.full(10, 20.0)
    released = np.array([500.0, 130, 170, 210, *np.zeros(6)])
    return Forest(
        parent, Releases(kinds, released, scale), Prior(*np.zeros((3, 10)), NO_TABLES), most
    )


def by_place(self, lowest, width):
    """As if both windows began at the same count."""
    return np.resize(self.values, width)


@pytest.mark.parametrize("fault", [False, True])
def test_statements_about_roots_are_about_the_same_counts(fault, monkeypatch):
    """Where ends of windows hold much more than the rest above lets them keep."""
    if fault:
        monkeypatch.setattr(module.DownwardMessage, "on", by_place)
    asked, means = Asked(np.array([0.5]), np.zeros(0)), []
    for most in (1024, 3):
        made = flat_groups(most)
        means.append(made.summarise(made.solve(), asked).means)
    assert np.allclose(means[1], means[0], rtol=1e-10) is not fault


CHAINS = {
    "a flat count": ("flat", -999.0, 100.0),
    "counts of which the likely ones are unlikely above": (
        np.append(np.full(10, -np.inf), [np.log(1e-9), np.log1p(-1e-9)]),
        0.0,
        1.0,
    ),
}


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_a_count_cut_at_the_window_of_its_sum_is_not_taken_as_whole(name, fault):
    """A sum of one count. Were counts cut at the edge of the sum's window, none would be beyond."""
    prior, released, scale = CHAINS[name]
    made = CountTree([-1, 0], [released, np.nan], [scale, 1.0], noise="gaussian", prior=prior)
    if fault:
        weights.limit.py_func(made._forest.nodes, module.DROP)
    x = np.arange(3_000) if name == "a flat count" else np.arange(len(prior))
    logs = stats.norm.logpdf(released, x, scale) + (0 if name == "a flat count" else prior)
    right = abs(made.log_evidence() - special.logsumexp(logs)) < 1e-11
    assert right is not fault
    assert made.tail_mass < 1e-12


def test_the_truncation_error_of_the_widest_windows_is_known_too():
    """Here a count of 2 lies just beyond them, with 2e-9 of the posterior: that is refused."""
    made = CountTree([-1, 0], [-110, np.nan], [3.0, 1.0], prior=stats.poisson(20))
    with pytest.raises(ValueError, match="no counts fit the release"):
        made.log_evidence()


def a_message_twice(made):
    """One child's message instead of both."""
    both = made.nodes.right >= 0
    made.nodes.right[both] = made.nodes.left[both]


def an_invariant_ignored(made):
    made.nodes.noise[made.nodes.noise == weights.EXACT] = weights.NONE


@pytest.mark.parametrize("fault", [a_message_twice, an_invariant_ignored])
def test_broken_twins_are_found(enumerated, fault):
    made = forest()
    fault(made)
    assert not differences(made, enumerated) < 1e-3


def test_windows_of_2_sd_are_found(enumerated):
    assert differences(forest(), enumerated, 2.0) > 1e-3


def test_windows_are_widened_where_releases_contradict_each_other():
    """The posterior is 30 sd off what was released of the sum: in no window of the first try."""
    parent = np.array([-1, 0, 0])
    arrays = [np.array([2, 2, 2]), np.array([300.0, 20, 10]), np.array([9.0, 1, 1])]
    made = Forest(parent, Releases(*arrays), Prior(*np.zeros((3, 3)), NO_TABLES))
    solved = made.solve()
    assert solved.drop > module.DROP
    assert solved.most <= np.log(module.TAIL_MASS)
    x = np.arange(200)
    logs = [-(((a[None, :] - z) / s) ** 2) / 2 for a, z, s in ((x, 20, 1), (x, 10, 1))]
    joint = logs[0].T + logs[1] - ((x[:, None] + x - 300) / 9) ** 2 / 2
    p = np.exp(joint - joint.max())
    expected = p.sum(axis=1) @ x / p.sum()
    found = made.summarise(solved, Asked(np.array([0.5]), np.zeros(0)))
    assert found.means[1] == pytest.approx(expected, abs=1e-10)


def family(released):
    """A noisy total of 24 counts that are less certain than their total."""
    n = 25
    parent, prior = np.full(n, 0), np.full(n, weights.NEGATIVE_BINOMIAL)
    parent[0], prior[0] = -1, weights.FLAT
    noisy = np.append(released, np.random.default_rng(1).normal(30, 60, n - 1).round())
    scale = np.append(1.5, np.full(n - 1, 60.0))
    laws = np.full(n, 0.6), np.full(n, 0.02)
    return Forest(parent, Releases(np.full(n, 2), noisy, scale), Prior(prior, *laws, NO_TABLES))


def in_tails():
    """Noisy totals of many counts, some far below what these are expected to be; one is exact."""
    n, released = 76, np.zeros(76)
    parent = np.concatenate([[-1], np.zeros(5, dtype=int), np.repeat(np.arange(1, 6), 14)])
    released[:6] = 1918, 761, 687, 112, 36, 304
    kinds = np.append([1, 2, 2, 2, 2, 2], np.zeros(70, dtype=int))
    scale, leaf = np.append([0.0], np.full(n - 1, 30.0)), np.arange(n) > 5
    prior, rates = np.where(leaf, weights.POISSON, weights.FLAT), np.where(leaf, 34.0, 0.0)
    law = Prior(prior, rates, np.zeros(n), NO_TABLES)
    return Forest(parent, Releases(kinds, released, scale), law)


@pytest.mark.parametrize("drop", [module.DROP, 57.5, 80.0])
def test_the_bound_holds_in_tails_too(drop):
    """What is cut counts for the more the less likely the sum is."""
    made = in_tails()
    exact, solved = (made.solve_with(each) for each in (600.0, drop))
    assert abs(np.expm1(solved.log_evidence - exact.log_evidence)) <= solved.total + 2e-12
    assert made.solve().most <= np.log(module.TAIL_MASS)
    assert made.solve_with(module.DROP).most > 0


def test_windows_are_wide_enough_to_draw():
    """Of a total that is less likely than what is cut, windows are wider."""
    made = family(500.0)
    [part], drop = made._parts(), made.solve().drop
    known, unlikely = (module.to_draw(part, drop, np.array([n])) for n in (500, 550))
    assert known.widths[-1] < unlikely.widths[-1]
    [part], drop = in_tails()._parts(), in_tails().solve().drop
    for root in (None, np.array([1918, 1918])):
        messages = module.to_draw(part, drop, root)
        assert compiled.bound_neglected(part, messages)[1] <= np.log(module.TAIL_MASS)


@pytest.mark.long
@pytest.mark.parametrize("fault", [False, True])
def test_draws_of_families(fault):
    """With one part's message tilted, they are others."""
    made, n = family(500.0), 20_000
    solved, [part] = made.solve(), made._parts()
    messages = module.to_draw(part, solved.drop)
    leaf = int(np.flatnonzero(made.origin == 7)[0])
    if fault:
        width = messages.widths[leaf]
        messages.values[messages.starts[leaf] :][:width] *= np.exp(0.01 * np.arange(width))
    counts = np.empty((part.left.size, n), dtype=np.int64)
    rng = np.random.default_rng(2)
    compiled.draw_roots(rng, np.array([part.left.size - 1]), messages, counts)
    compiled.split_draws(rng, part, messages, counts)
    leaves = made.origin > 0
    np.testing.assert_array_equal(counts[leaves].sum(axis=0), counts[-1])
    found = made.summarise(solved, Asked(np.array([0.5]), np.zeros(0)))
    off = counts[leaf].mean() - found.means[7]
    assert (abs(off) < 4 * found.sds[7] / n**0.5) is not fault
