"""A mechanism of the user's own: the staircase of the documentation, run as it is printed there."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests.evaluated_in_python import evaluated_in_python

PAGE = Path(__file__).parents[2] / "docs" / "your-own-mechanism.md"
EPSILON = 1.0


@pytest.fixture(scope="module")
def page():
    """What the page's code defines."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names = {}
    with evaluated_in_python():
        exec(compile(code, str(PAGE), "exec"), names)
    return names


def density(mechanism, released, statistic):
    return np.exp(mechanism.logp(released, statistic).eval(mode="FAST_COMPILE"))


def test_the_page_shows_what_its_code_prints(page):
    [printed] = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(), flags=re.DOTALL)
    assert repr(page["step"]) == printed


def test_the_staircase_is_a_density_that_keeps_its_promise(page):
    step = 1e-3
    x = np.arange(-40, 40, step) + step / 2
    at_zero, at_one = (density(page["mechanism"], x, float(s)) for s in (0, 1))
    # Its steps lie within cells of the grid: the error is at most the top times a cell's length.
    assert at_zero.sum() * step == pytest.approx(1, abs=2 * step * at_zero.max())
    assert np.abs(np.log(at_zero / at_one)).max() <= EPSILON + 1e-9
    weaker = page["staircase"](epsilon=1.3, sensitivity=1.0)
    ratio = density(weaker, x, 0.0) / density(weaker, x, 1.0)
    assert np.log(ratio).max() > EPSILON + 0.2


def test_its_releases_follow_its_density(page):
    draws = 20_000

    def z(mechanism):
        noise = np.abs(page["mechanism"].release(np.zeros(draws), random_seed=4))
        step = 1e-3
        worst = 0.0
        for limit in (0.25, 0.5, 1.0, 2.0):
            grid = np.arange(0, limit, step) + step / 2
            p = 2 * density(mechanism, grid, 0.0).sum() * step
            worst = max(worst, abs((noise <= limit).mean() - p) / np.sqrt(p * (1 - p) / draws))
        return worst

    assert z(page["mechanism"]) < 4
    assert z(page["staircase"](epsilon=EPSILON, sensitivity=1.3)) > 6


# PyTensor says so of every distribution that is drawn from by a Python function.
@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
@pytest.mark.usefixtures("uncompiled")
def test_it_can_be_observed_and_predicted(page):
    with pm.Model() as model:
        record = pm.Bernoulli("record", 0.5, shape=10)
        page["mechanism"].observe("privacy", record.sum(), released=3.2)
        prior = pm.sample_prior_predictive(50, random_seed=1)
    assert prior.prior_predictive["privacy"].shape == (1, 50)
    assert "privacy (function of sums)" in repr(pmd.DapperStep([record], model=model))


def test_without_a_function_to_draw_with_it_says_so(page):
    mechanism = pmd.CustomMechanism(page["mechanism"].log_density)
    with pytest.raises(ValueError, match="give CustomMechanism a function as draw="):
        mechanism.release(np.zeros(3))
