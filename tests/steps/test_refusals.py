"""What DapperStep refuses, before sampling, with the variable's name and a way out."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered, simplex

from pymc_dapper import DapperStep, ReadingError, UnknownOperationError
from tests.sweep_parts import take_apart


def refuse(build, message, error=ReadingError, **kwargs):
    with pm.Model() as model:
        records = build()
    with pytest.raises(error, match=message):
        DapperStep(records, model=model, **kwargs)


def with_mechanism(record):
    pm.Potential("privacy", -(record.sum() ** 2))
    return record


def random_walk():
    return with_mechanism(pm.GaussianRandomWalk("x", 0, 1, steps=5, init_dist=pm.Normal.dist(0, 1)))


def one_multivariate_draw():
    return with_mechanism(pm.MvNormal("x", np.zeros(5), np.eye(5)))


def zero_sum():
    return with_mechanism(pm.ZeroSumNormal("x", shape=5))


@pytest.mark.parametrize("build", [random_walk, one_multivariate_draw, zero_sum])
def test_a_prior_that_is_one_draw_of_all_records(build):
    refuse(build, "'x' has no record axis: its prior is one draw that ties all its entries")


def test_a_transform_that_ties_records():
    refuse(
        lambda: with_mechanism(pm.Normal("x", np.arange(5.0), 1, shape=5, transform=ordered)),
        r"the prior of 'x' ties records together \(transform Ordered",
    )


@pytest.mark.parametrize("of", [lambda x: x.mean(), lambda x: x[::-1], pt.cumsum])
def test_a_prior_that_depends_on_other_records(of):
    def build():
        x = pm.Normal("x", shape=5)
        y = pm.Normal("y", of(x), shape=5)
        return [with_mechanism(x), y]

    refuse(build, "the prior of 'y' ties records together")


def test_records_of_different_lengths():
    def build():
        x, y = pm.Normal("x", shape=5), pm.Normal("y", shape=4)
        pm.Potential("privacy", -((x.sum() + y.sum()) ** 2))
        return [x, y]

    refuse(build, "equally many.*'x' has 5, 'y' has 4")


def test_an_operation_without_a_rule():
    def build():
        x = pm.Normal("x", shape=5)
        total = pytensor.scan(
            lambda each, so_far: so_far * each,
            sequences=x,
            outputs_info=pt.zeros(()),
            return_updates=False,
        )
        pm.Potential("privacy", -(total[-1] ** 2))
        return x

    refuse(
        build,
        r"the records 'x' enter 'privacy': no rule .*Scan.*follow_records.register\(Scan\)",
        UnknownOperationError,
    )


def test_full_evaluation_for_many_records():
    def build():
        x = pm.Normal("x", shape=1000)
        pm.Potential("privacy", -x.max())
        return x

    refuse(build, r"'privacy' isn't a function of sums.*Max.*allow_full_evaluation=True")


def test_a_statistic_that_loses_its_digits_is_never_used():
    def build():
        x = pm.Normal("x", 1e6, 1, shape=50)
        pm.Potential("privacy", -((x.var() - 1) ** 2))
        return x

    refuse(build, "can't read the factor 'privacy' exactly.*subtract a public constant")


def test_shapes_that_do_not_fit():
    def build():
        released = pm.Data("released", np.zeros(3))
        x = pm.Categorical("x", np.ones(4) / 4, shape=9)
        pm.Potential("privacy", -((released - pt.eye(4)[x].sum(axis=0)) ** 2).sum())
        return x

    refuse(build, "'privacy' can't be evaluated at the initial point")


def test_calls_that_make_no_sense():
    with pm.Model() as model:
        x = with_mechanism(pm.Normal("x", shape=5))
    with pytest.raises(ReadingError, match="DapperStep was given an empty list"):
        DapperStep([], model=model)
    with pytest.raises(ReadingError, match="DapperStep was given None"):
        DapperStep(None, model=model)
    with pytest.raises(ReadingError, match="'x' was passed more than once"):
        DapperStep([x, x], model=model)
    with pytest.raises(ReadingError, match=r"'x' is a name: pass .* model\['x'\]"):
        DapperStep(["x"], model=model)
    with pytest.raises(TypeError, match="as in model=model"):
        DapperStep([x], model)


@pytest.mark.usefixtures("uncompiled")
def test_a_full_evaluation_is_announced_with_its_cause_and_cost():
    with pm.Model() as model:
        x = pm.Normal("x", shape=5)
        pm.Potential("privacy", -pt.sort(x)[2])
    with pytest.warns(UserWarning, match=r"'privacy'.*SortOp.* A sweep over the 5 records takes"):
        DapperStep([x], model=model)


@pytest.mark.usefixtures("uncompiled")
def test_full_evaluation_of_many_records_can_be_insisted_on():
    with pm.Model() as model:
        x = pm.Normal("x", shape=1000)
        pm.Potential("privacy", -x.max())
    with pytest.warns(UserWarning, match="1000 records"):
        DapperStep([x], model=model, allow_full_evaluation=True)


def test_no_records_at_all():
    refuse(lambda: with_mechanism(pm.Normal("x", shape=0)), "'x' has no records")


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Flat("x", shape=5),
        lambda: pm.CustomDist("x", logp=lambda value: -(value**2), shape=5),
    ],
)
def test_a_prior_that_cannot_be_drawn_from(prior):
    refuse(lambda: with_mechanism(prior()), "the prior of the records 'x' can't be drawn from")


def test_a_transform_that_the_prior_never_reaches():
    def build():
        start = np.full((6, 3), 1 / 3)
        return with_mechanism(pm.Gamma("x", 2, 1, shape=(6, 3), transform=simplex, initval=start))

    refuse(build, r"only 0\.00% of its draws .* can reach: 'x' \(ChainedTransform\)")


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Truncated("x", pm.DiscreteWeibull.dist(0.5, 0.8), lower=1, shape=5),
        lambda: pm.AR("x", rho=[0.5], init_dist=pm.Normal.dist(0, 1), shape=(5, 4)),
    ],
)
def test_a_prior_that_is_drawn_in_a_loop(prior):
    refuse(lambda: with_mechanism(prior()), r"records 'x' is drawn in a loop \(operation Scan")


@pytest.mark.usefixtures("uncompiled")  # but what proposes
@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Truncated("x", pm.Gamma.dist(2, 1), lower=1, upper=3, shape=5),
        # Its type is float64.
        lambda: pm.Binomial("x", n=pm.Data("trials", 3), p=0.4, shape=5),
    ],
)
def test_priors_that_were_refused_once(prior):
    with pm.Model() as model:
        x = with_mechanism(prior())
    step = DapperStep([x], model=model)
    propose = take_apart(step._reading).propose
    [drawn] = propose(np.random.default_rng(0), *step._given(model.initial_point()))
    assert np.all(np.isfinite(drawn))
    assert len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": 1.0}, "'mean' is not a value variable.*'mu', 'x'"),
        ({"x": 0.0}, r"'x' has shape \(\), where the model has \(5,\)"),
        ({"mu": "one"}, "'mu' is of type <U3"),
    ],
)
def test_a_malformed_initial_point(given, message):
    refuse(normal_with_a_mean, f"initial_point: {message}", ValueError, initial_point=given)


def normal_with_a_mean():
    return with_mechanism(pm.Normal("x", pm.Normal("mu"), 1, shape=5))


@pytest.mark.usefixtures("uncompiled")
def test_an_initial_point_of_some_variables_is_completed():
    with pm.Model() as model:
        x = normal_with_a_mean()
    DapperStep([x], model=model, initial_point={"mu": 3})


def test_a_compilation_option_that_does_not_exist():
    refuse(
        normal_with_a_mean,
        "compile_kwargs: PyMC's compile has no option 'foo'",
        TypeError,
        compile_kwargs={"foo": 1},
    )


def gram(x, y):
    xy = (x * y).sum()
    return pt.stacklists([[(x**2).sum(), xy], [xy, (y**2).sum()]])


def test_a_matrix_that_records_make_singular():
    def build():
        x, y = pm.Normal("x", shape=5), pm.Normal("y", shape=5)
        pm.Potential("privacy", -pt.abs(pt.linalg.inv(gram(x, y))[0, 0]))
        return [x, y]

    refuse(build, r"'privacy' can't be evaluated: Matrix is singular.*pt\.linalg\.solve")


@pytest.mark.usefixtures("uncompiled")  # but what decides
def test_a_singular_matrix_is_an_impossible_state_to_solve():
    # At small probabilities, the states that the reading is checked at are singular, too.
    with pm.Model() as model:
        x, y = pm.Bernoulli("x", 0.02, shape=5), pm.Bernoulli("y", 0.02, shape=5)
        pm.Potential("privacy", -pt.abs(pt.linalg.solve(gram(x, y), np.ones(2))[0]))
    step = DapperStep([x, y], model=model)
    decide = take_apart(step._reading).decide
    assert not np.isfinite(decide(*np.zeros((4, 5), dtype=int), np.zeros(5))[-1])
