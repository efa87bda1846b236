"""What DapperStep refuses, before sampling, with the variable's name and a way out."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

from pymc_dapper import DapperStep, ReadingError, UnknownOperationError


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
            lambda each, so_far: so_far + each,
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
    with pytest.raises(ReadingError, match="'x' was passed more than once"):
        DapperStep([x, x], model=model)
    with pytest.raises(ReadingError, match=r"'x' is a name: pass .* model\['x'\]"):
        DapperStep(["x"], model=model)
    with pytest.raises(TypeError, match="as in model=model"):
        DapperStep([x], model)


def test_a_full_evaluation_is_announced_with_its_cause_and_cost():
    with pm.Model() as model:
        x = pm.Normal("x", shape=5)
        pm.Potential("privacy", -pt.sort(x)[2])
    with pytest.warns(UserWarning, match=r"'privacy'.*SortOp.* A sweep over the 5 records takes"):
        DapperStep([x], model=model)


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
