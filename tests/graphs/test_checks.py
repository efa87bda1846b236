"""Checks of parameters, record by record."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import CheckParameterValue, ParameterValueError
from pytensor import scalar as ps
from pytensor.graph.replace import vectorize_graph
from pytensor.scalar.basic import ScalarConstant
from scipy.stats import binom, norm

import pymc_dapper as pmd
from pymc_dapper.graphs.checks import (
    checks_of_records,
    impossible_if_invalid,
    localise_checks,
    valid_parameters,
)
from pymc_dapper.graphs.errors import ReadingError

X, SIGMA = pt.vector("x"), pt.scalar("sigma")
OBSERVED = np.array([0.3, 0.4, 0.5])
OF_RECORDS = pm.logp(pm.Normal.dist(0, X), OBSERVED)
OF_A_PARAMETER = pm.logp(pm.Normal.dist(X, SIGMA), OBSERVED)
AT = np.array([2.0, -1.0, 1.0])


def test_a_check_of_records_fails_for_each_by_itself():
    with pytest.raises(ParameterValueError):
        OF_RECORDS.eval({X: AT}, mode="FAST_COMPILE")
    [local] = localise_checks([OF_RECORDS], [X])
    with np.errstate(invalid="ignore"):
        found = local.eval({X: AT}, mode="FAST_COMPILE")
    np.testing.assert_allclose(found[[0, 2]], norm.logpdf([0.3, 0.5], scale=[2, 1]))
    assert found[1] == -np.inf


def test_a_check_of_other_parameters_stays_one_for_all():
    [same] = localise_checks([OF_A_PARAMETER], [X])
    with pytest.raises(ParameterValueError):
        same.eval({X: AT, SIGMA: -1.0}, mode="FAST_COMPILE")


def test_checks_that_are_left_can_be_evaluated_at_many_values_at_once():
    p = pt.scalar("p")
    n = pt.lscalar("n")
    log_density = pm.logp(pm.Binomial.dist(n, p), 2)  # checks n, and two bounds of p
    [local] = localise_checks([log_density], [n])
    at_all = vectorize_graph(local, {n: pt.constant([-1, 2, 3])})
    found = at_all.eval({p: 0.3}, mode="FAST_COMPILE")
    np.testing.assert_allclose(found, [-np.inf, *binom.logpmf(2, [2, 3], 0.3)])
    with pytest.raises(ParameterValueError):
        at_all.eval({p: 1.3}, mode="FAST_COMPILE")


def test_the_conditions_on_records_are_told_apart_from_those_on_parameters():
    [condition] = checks_of_records(OF_RECORDS, [X])
    found = condition.eval({X: AT}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(found, [True, False, True])
    assert checks_of_records(OF_A_PARAMETER, [X]) == []


@pytest.mark.parametrize("sigma", [1.0, -1.0])
def test_all_checks_together_say_whether_parameters_are_valid(sigma):
    valid = valid_parameters([OF_A_PARAMETER, OF_RECORDS])
    for records, possible in ((np.ones(3), True), (AT, False)):
        found = valid.eval({X: records, SIGMA: sigma}, mode="FAST_COMPILE")
        assert found == (possible and sigma > 0)


def test_a_log_density_is_impossible_where_an_inverse_cdf_has_no_parameters():
    log_density = pm.icdf(pm.Beta.dist(SIGMA, 1.0), X).sum()
    at = {X: np.array([0.25, 0.5])}
    with pytest.raises(ParameterValueError):
        log_density.eval(at | {SIGMA: 0.0}, mode="FAST_COMPILE")
    rejected = impossible_if_invalid(log_density)
    assert rejected.eval(at | {SIGMA: 0.0}, mode="FAST_COMPILE") == -np.inf
    assert rejected.eval(at | {SIGMA: 2.0}, mode="FAST_COMPILE") == pytest.approx(0.5 + 0.5**0.5)


def test_checks_of_known_numbers_are_no_obstacle():
    """Of those, PyTensor makes scalars that aren't tensors."""
    check = CheckParameterValue("of both")
    graph = check(X, ScalarConstant(ps.bool, np.bool_(True)), pt.gt(SIGMA, 0))
    for sigma in (1.0, -1.0):
        valid = valid_parameters([graph])
        assert valid.eval({SIGMA: sigma}, mode="FAST_COMPILE") == (sigma > 0)
    [local] = localise_checks([graph], [SIGMA])
    assert np.all(local.eval({X: AT, SIGMA: -1.0}, mode="FAST_COMPILE") == -np.inf)


@pytest.mark.parametrize(
    ("records", "violated"),
    [
        (lambda: pm.Normal("x", 0, -1, shape=3), "sigma > 0"),
        (lambda: pm.Normal("x", 0, [1, 1, np.nan], shape=3), "sigma > 0"),
        (lambda: pm.Uniform("x", 2, 1, shape=3), "lower <= upper"),
        (lambda: pm.Bernoulli("x", pm.Data("share", 1.2), shape=3), "0 <= p <= 1"),
        (lambda: pm.Normal("x", pm.HalfNormal("spread"), -1, shape=3), "sigma > 0"),
        (lambda: pm.Binomial("x", -3, 0.5, shape=3), "n >= 0"),
        (lambda: pm.DiscreteUniform("x", 5, 2, shape=3), "lower <= upper"),
    ],
)
@pytest.mark.usefixtures("uncompiled")
def test_parameters_that_leave_a_variable_no_value_are_told(records, violated):
    with pm.Model() as model:
        pmd.LaplaceMechanism(1.0).potential("privacy", records().sum(), released=1.0)
    with pytest.raises(ReadingError, match=f"'x' has impossible parameters: not {violated}"):
        pmd.assign_steps(model=model, progressbar=False)


@pytest.mark.parametrize("law", [pm.Geometric.dist(0.4), pm.DiscreteUniform.dist(0, 9)])
@pytest.mark.usefixtures("uncompiled")
def test_whole_numbers_that_pymc_moves_as_real_ones_are_told(law):
    """The largest of them would be an infinite value, and others wouldn't equal themselves."""

    def model(**options):
        with pm.Model() as m:
            x = pm.Truncated("x", law, upper=5, shape=8, **options)
            pmd.LaplaceMechanism(1.0).potential("ones", pt.eq(x, 1).sum(), released=4.0)
        return m

    at = model()
    [value] = at.value_vars
    five = at.rvs_to_transforms[at["x"]].forward(5.0, *at["x"].owner.inputs).eval()
    assert not np.isfinite(at.compile_logp()({value.name: np.full(8, five)}))
    with pytest.raises(ReadingError, match=r"'x' takes whole numbers, .*default_transform=None"):
        pmd.assign_steps(model=at, progressbar=False)
    pmd.assign_steps(model=model(default_transform=None), progressbar=False)


@pytest.mark.usefixtures("uncompiled")
def test_parameters_that_other_values_make_possible_are_not():
    with pm.Model() as model:
        spread = pm.Normal("spread", -1, initval=1)
        x = pm.Normal("x", 0, spread, shape=3)
        pmd.LaplaceMechanism(1.0).potential("privacy", x.sum(), released=1.0)
    pmd.assign_steps(model=model, progressbar=False)


@pytest.mark.parametrize(
    "draw",
    [lambda: pm.Minibatch(np.arange(9.0), batch_size=3).sum(), lambda: pm.Normal.dist(0, 1)],
    ids=["minibatch", "without a name"],
)
def test_random_draws_that_are_no_variables_are_refused(draw):
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=5)
        pmd.LaplaceMechanism(1.0).potential("privacy", x.sum() + draw(), released=4.0)
    with pytest.raises(ReadingError, match="'privacy' depends on a random draw that is no var"):
        pmd.DapperStep(x, model=model)


@pytest.mark.parametrize("of", ["data", "covariate", "free"])
def test_minibatches_of_other_variables_are_refused_too(of):
    batch = pm.Minibatch(np.arange(9.0), batch_size=3)
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=5)
        pmd.LaplaceMechanism(1.0).potential("privacy", x.sum(), released=4.0)
        if of == "data":
            pm.Normal("y", x.sum(), 1, observed=batch, total_size=9)
        else:
            observed = np.ones(3) if of == "covariate" else None
            pm.Normal("y", x.sum() * batch, 1, observed=observed)
    with pytest.raises(ReadingError, match=r"'y' depends on a random draw .*pm\.Minibatch can't"):
        pmd.DapperStep(x, model=model)
