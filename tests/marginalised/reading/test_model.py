"""Which counts can be marginalised, and which are refused with a reason."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import NotMarginalisableError
from pymc_dapper.marginalised.reading.model import read_marginalised
from tests.surroundings import nothing_compiled


def read(model, parameters, counts=("x",)):
    values = [
        [model.rvs_to_values[model[name]] for name in names] for names in (parameters, counts)
    ]
    return read_marginalised(model, *values)


def test_what_is_read():
    with pm.Model() as model:
        effect = pm.Normal("effect", shape=2)
        apart = pm.Normal("apart")
        x = pm.Binomial("x", n=pm.Data("n", [9, 20]), p=pm.math.sigmoid(effect))
        y = pm.Poisson("y", pt.exp(effect[0]))
        pm.Normal("more", apart, observed=1.0)
        pm.Normal("x_released", x, 2.0, observed=[3.0, 4.0])
        pm.Normal("y_released", y, pm.Data("scale", 1.0), observed=2.0)
    reading = read(model, ["effect"], ["x", "y"])
    assert reading.factors == ["x_released", "y_released"]
    assert [x.name for x in reading.parameters] == ["effect"]
    assert {x.name for x in reading.data} == {"n", "scale"}
    effects = np.array([-0.3, 1.2])
    value = reading.view.values[model.rvs_to_values[model["effect"]]]
    naturals = reading.naturals.eval({value: effects}, mode="FAST_COMPILE")
    largest = reading.largest.eval({reading.data[model["n"]]: [9, 20]}, mode="FAST_COMPILE")
    np.testing.assert_allclose(naturals, [*effects, effects[0]], rtol=1e-14)
    np.testing.assert_array_equal(largest, [9, 20, np.inf])


def margins(x):
    pm.Normal("sums", x.sum(), 2.0, observed=3.0)


def windows(x):
    pm.Normal("windows", x[:-1] + x[1:], 2.0, observed=np.ones(2))


def unknown_noise(x):
    pm.Normal("released", x, pm.HalfNormal("sigma"), observed=np.ones(3))


def child(x):
    pm.Binomial("child", n=x, p=0.5)


def known(x):
    pmd.invariant("known", x[0] + x[1], 5)
    pm.Normal("released", x, 2.0, observed=np.ones(3))


def effect_seen(x):
    effect = pm.modelcontext(None)["effect"]
    pm.Normal("released", x + effect, 2.0, observed=np.ones(3))


def nothing(x):
    pass


@pytest.mark.parametrize(
    ("sees", "reason"),
    [
        (margins, r"'sums' depends on several of them at once"),
        (windows, r"'windows' depends on several of them at once"),
        (unknown_noise, r"'released' depends on 'sigma', too"),
        (child, r"the distribution of 'child' depends on them"),
        (effect_seen, r"'released' depends on 'effect', too"),
        (known, r"some of their sums are known exactly"),
        (nothing, r"nothing else in the model depends on them"),
    ],
)
def test_what_cannot_be_summed_out_is_refused_with_the_reason(sees, reason):
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Binomial("x", n=10, p=pm.math.sigmoid(effect), shape=3)
        sees(x)
    with pytest.raises(
        NotMarginalisableError, match=rf"^the counts 'x' can't .*: {reason}\. Use CountSt"
    ):
        read(model, ["effect"])


def test_counts_that_are_not_independent_are_refused():
    with pm.Model() as model:
        effect, n = pm.Normal("effect"), pm.Poisson("n", 9)
        p = pm.math.sigmoid(effect)
        table = pm.Multinomial("table", n=10, p=pt.stack([p, 1 - p]))
        x = pm.Binomial("x", n=n, p=p)
        y = pm.Poisson("y", 3.0)
        for count in (table, x, y):
            pm.Normal(f"{count.name}_released", count, 2.0, observed=np.ones(count.type.shape))
    with pytest.raises(
        NotMarginalisableError, match="'table' can't be marginalised: only Binomial and"
    ):
        read(model, ["effect"], ["table"])
    with pytest.raises(
        NotMarginalisableError, match="'x' can't be marginalised: its n isn't known"
    ):
        read(model, ["effect"])
    with pytest.raises(
        NotMarginalisableError, match="their distribution depends on none of the param"
    ):
        read(model, ["effect"], ["y"])


@pytest.mark.parametrize("law", ["poisson", "binomial"])
def test_a_cell_where_nobody_can_be_is_left_to_another_step(law):
    """Its natural parameter is infinite. PyMC's log-density of it isn't."""
    with pm.Model() as model:
        effect = pm.Normal("effect")
        if law == "poisson":
            x = pm.Poisson("x", np.array([9.0, 0.0, 5.0]) * pt.exp(effect), shape=3)
        else:
            share = np.array([1.0, 0.0, 0.5]) * pm.math.sigmoid(effect)
            x = pm.Binomial("x", n=10, p=share, shape=3)
        pmd.GaussianMechanism(2.0).potential("released", x, released=[8.0, 1.0, 4.0])
    with pytest.raises(
        NotMarginalisableError, match=r"'x' at \[1\] can't .* their rate is 0, or their prob"
    ):
        read(model, ["effect"])
    with nothing_compiled(), model:
        steps = pmd.assign_steps(interweave=False)
    assert [type(step).__name__ for step in steps] == ["CountStep", "NUTS"]


def mean_of_another(x, effect):
    return pm.Poisson("y", pt.exp(effect) * (1 + x), shape=3)


def probability_of_another(x, effect):
    return pm.Binomial("y", n=10, p=pm.math.sigmoid(effect - x), shape=3)


@pytest.mark.parametrize("of", [mean_of_another, probability_of_another])
def test_a_count_that_another_one_follows_is_not_summed_out_beside_it(of):
    """Each count has noise of its own, but one count is informative about the other."""
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Poisson("x", 2.0, shape=3)
        for count in (x, of(x, effect)):
            pm.Normal(f"{count.name}_released", count, 2.0, observed=np.ones(3))
    with pytest.raises(
        NotMarginalisableError, match=r"counts 'x' can't .*the distribution of 'y' depends"
    ):
        read(model, ["effect"], ["x", "y"])
    assert [x.name for x in read(model, ["effect"], ["y"]).counts] == ["y"]
