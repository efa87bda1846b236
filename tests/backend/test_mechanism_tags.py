"""Tags of a copied model are of the copy, not of the model that it was made from."""

import numpy as np
import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt
import pytest
from pymc.model.fgraph import clone_model
from pymc.model.transform.optimization import freeze_dims_and_data
from pytensor.graph.traversal import ancestors

import pymc_dapper as pmd
from pymc_dapper.backend.mechanism_tags import tag_copies, tagged_graphs
from pymc_dapper.context import model_to_read
from tests.evaluated_in_python import evaluated_in_python


def model_of_all_kinds():
    with pm.Model(coords={"person": range(6)}) as model:
        mu = pm.Normal("mu")
        scale = pm.HalfNormal("scale")
        record = pm.Normal("record", mu, 1, dims="person")
        clipped = pt.clip(record, -3, 3)
        pmd.LaplaceMechanism(2.0).potential("sum", clipped.sum(), released=3.0)
        pmd.GaussianMechanism(2.0).observe("squares", (clipped**2).sum(), released=8.0)
        pmd.LaplaceMechanism(scale).potential("unknown", record.sum(), released=2.0)
    return model


COPIES = {
    "a clone": clone_model,
    "frozen": freeze_dims_and_data,
    "without one variable": lambda model: pm.do(model, {"mu": 0.5}),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_all_that_a_copy_tells_is_of_the_copy(copy):
    model = copy(model_of_all_kinds())
    own = {id(x) for x in model.named_vars.values()}

    def others():
        graphs = [x for name in ("sum", "squares", "unknown") for x in tagged_graphs(model[name])]
        return {
            x.name for x in ancestors(graphs) if x.name in model.named_vars and id(x) not in own
        }

    assert {"record", "scale"} <= others()
    tag_copies(model)
    assert not others()
    [scale] = model["unknown"].tag.mechanism.unknown
    assert scale is model["scale"]


def test_the_model_that_was_copied_tells_what_it_told():
    model = model_of_all_kinds()
    before = [tagged_graphs(model[name]) for name in ("sum", "squares", "unknown")]
    model_to_read(clone_model(model))
    model_to_read(model)
    assert [tagged_graphs(model[name]) for name in ("sum", "squares", "unknown")] == before


def test_the_data_that_are_checked_are_the_copys():
    model = model_of_all_kinds()
    copy = clone_model(model)
    with copy:
        pm.set_data({"sum_released": np.nan})
    model_to_read(copy)
    with pytest.raises(ValueError, match="'sum': the released values must be finite"):
        copy["sum"].tag.check_data()
    model["sum"].tag.check_data()
    with model:
        pm.set_data({"sum_released": np.nan})
    with copy:
        pm.set_data({"sum_released": 1.0})
    copy["sum"].tag.check_data()


def test_a_release_far_from_what_the_copy_can_give_is_noticed():
    """The statistic is the copy's, too: else no latent variable would be seen to enter it."""
    copy = clone_model(model_of_all_kinds())
    with copy:
        pm.set_data({"sum_released": 300.0})
    with evaluated_in_python(), pytest.warns(UserWarning, match="'sum': released 300 is"):
        pmd.DapperStep([copy["record"]], model=copy)


def test_a_copy_observed_as_something_else_tells_that():
    copy = pm.observe(model_of_all_kinds(), {"squares": 9.0})
    model_to_read(copy)
    assert copy["squares"].tag.released.data == 9.0
    model_to_read(pm.observe(copy, {"squares": 9.0}))


@pytest.mark.parametrize("copy", [lambda model: model, clone_model], ids=["itself", "a clone"])
@pytest.mark.parametrize("add", ["potential", "observe"])
def test_a_statistic_may_have_the_releases_name(add, copy):
    with pm.Model() as model:
        total = pm.Normal("record", shape=3).sum()
        total.name = "total"
        getattr(pmd.LaplaceMechanism(2.0), add)("total", total, released=3.0)
    model = model_to_read(copy(model))
    statistic = model["total"].tag.statistic
    assert model["record"] in ancestors([statistic])
    assert model["total"] not in ancestors([statistic])


def test_copies_with_named_dims_tell_of_themselves():
    with pm.Model(coords={"person": range(6)}) as model:
        mu = pmdims.Normal("mu")
        record = pmdims.Normal("record", mu, 1, dims="person")
        pmd.LaplaceMechanism(2.0).observe("known", record.sum("person"), released=3.0)
        pmd.LaplaceMechanism(2.0).generate("later", (record**2).sum("person"))
    observed = pm.observe(pm.do(model, {"mu": 0.5}), {"later": 2.0})
    plain = model_to_read(observed)
    for name in ("known", "later"):
        assert plain["record"] in ancestors([plain[name].tag.statistic])


# A release that isn't known yet -----------------------------------------------------------------


def generative():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu, 1, shape=6)
        pmd.LaplaceMechanism(2.0).generate("total", pt.clip(record, -3, 3).sum())
    return model


def sampled(model):
    options = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False}
    with evaluated_in_python(), model:
        return pmd.sample(random_seed=3, compute_convergence_checks=False, **options).posterior


def test_a_generative_model_given_a_release_is_the_model_of_that_release():
    model = generative()
    released = pm.draw(model["total"], random_seed=1, mode="FAST_COMPILE")
    observed = pm.observe(model, {"total": released})
    with pm.Model() as written:
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu, 1, shape=6)
        total = pt.clip(record, -3, 3).sum()
        pmd.LaplaceMechanism(2.0).observe("total", total, released=released)
    np.testing.assert_array_equal(sampled(observed)["mu"], sampled(written)["mu"])


def test_a_release_that_is_not_known_is_asked_for():
    with pytest.raises(pmd.ReadingError, match="'total' is a release that isn't known yet"):
        sampled(generative())


def test_a_release_given_later_is_checked():
    with pytest.raises(ValueError, match="'total': the released values must be finite"):
        sampled(pm.observe(generative(), {"total": np.inf}))


LOW = pmd.LaplaceMechanism(2.0).published_if(">=", 10)


@pytest.mark.parametrize(
    ("mechanism", "released", "message"),
    [
        (LOW, [12.0, 9.0, 11.0], "published only if >= 10, but 9 was released: 1 of 3"),
        (LOW, [-np.inf] * 3, "all 3 entries are suppressed"),
        (LOW, [12.0, np.nan, 11.0], r"must be -np\.inf, .*mechanism\.as_released\('table', rel"),
        (LOW, np.ma.masked_equal([12.0, 0, 11], 0), r"must be -np\.inf.*1 of 3"),
        (pmd.LaplaceMechanism(2.0), [1.0, np.nan, 2.0], "but nan was .* at index 1.*published_if"),
        (
            pmd.LaplaceMechanism(2.0),
            np.ma.masked_equal([12, 0, 11], 0),
            "but nan was .* at index 1",
        ),
        (pmd.LaplaceMechanism(2.0).rounded(5), [5, 12, 10], "multiples of 5, .*but 12 was"),
        (pmd.LaplaceMechanism(2.0).clamped(0, 9), [3.0, 10, 4], "from 0 to 9, .*but 10 was"),
        (pmd.NoisyMaxMechanism(2.0, 3), [3], "candidates are 0, ..., 2, but 3 was released"),
    ],
)
def test_what_can_not_have_been_released_is_refused_as_soon_as_it_is_read(
    mechanism, released, message
):
    with pm.Model() as model:
        mechanism.generate("table", pm.Poisson("count", 12, shape=3))
    with pytest.raises(ValueError, match=f"'table': .*{message}"):
        model_to_read(pm.observe(model, {"table": released}))


def test_suppressed_entries_are_given_later_as_the_mechanism_makes_them():
    with pm.Model() as model:
        LOW.generate("table", pm.Poisson("count", 12, shape=3))
    released = LOW.as_released("table", np.ma.masked_equal([12.0, 0, 11], 0))
    observed = model_to_read(pm.observe(model, {"table": released}))
    np.testing.assert_array_equal(observed["table"].tag.released.data, [12, -np.inf, 11])


def test_generated_releases_have_the_statistics_dims():
    with pm.Model(coords={"cell": ["a", "b"]}) as model:
        table = pm.Poisson("table", 5, dims="cell")
        mechanism = pmd.LaplaceMechanism(2.0)
        assert mechanism.generate("noisy", table).name == "noisy"
        with pytest.raises(TypeError, match="the name comes first"):
            mechanism.generate(table, "noisy")
        with pytest.raises(ValueError, match="the model's coords have no dim 'row'"):
            mechanism.generate("other", table, dims="row")
    assert model.named_vars_to_dims["noisy"] == ("cell",)


def test_a_release_may_have_a_name_that_pytensor_gives_means():
    with pm.Model() as model:
        record = pm.Normal("record", shape=6)
        pmd.GaussianMechanism(2.0).potential("mean", record.mean(), released=0.3)
        pmd.GaussianMechanism(2.0).potential("moments", record.var() + record.mean(), released=1.0)
    copy = clone_model(model)
    tag_copies(copy)
    assert copy["mean"] not in ancestors(tagged_graphs(copy["moments"]))
    assert copy["record"] in ancestors(tagged_graphs(copy["moments"]))
