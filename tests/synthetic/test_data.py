"""Synthetic data sets: each from its own draw of the posterior."""

import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dapper as pmd
from pymc_dapper.synthetic import combine, synthetic_data

pytestmark = pytest.mark.usefixtures("in_python")

P = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
"""Draws of a probability, by which a set says from which draw it is."""

LABELS = {"answer": ["no", "yes"]}


def result(**draws):
    posterior = {
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(np.ndim(x) - 2))), np.asarray(x))
        for name, x in draws.items()
    }
    chains, n_draws = np.shape(next(iter(draws.values())))[:2]
    coords = {"chain": np.arange(chains), "draw": np.arange(n_draws)}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(posterior, coords=coords)})


@pytest.fixture(scope="module")
def answers():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        answer = pm.Bernoulli("answer", p, shape=5)
        pmd.LaplaceMechanism(1).potential("release", answer.sum(), released=3.0)
    return model


def test_a_set_is_drawn_by_its_own_draw(answers):
    made = synthetic_data(result(p=P), answers, sets=8, labels=LABELS, random_seed=1)
    assert [list(each.columns) for each in made] == [["answer"]] * 8
    for frame, p in zip(made, P.ravel(), strict=True):
        assert list(frame["answer"]) == ["yes" if p else "no"] * 5


@pytest.mark.filterwarnings("error")
def test_parameters_whose_prior_has_data_are_the_posteriors():
    """PyMC warns of them, as if the data had changed."""
    with pm.Model() as model:
        p = pm.Beta("p", pm.Data("prior", 1.0), 1)
        answer = pm.Bernoulli("answer", p, shape=5)
        pmd.LaplaceMechanism(1).potential("release", answer.sum(), released=3.0)
    made = synthetic_data(result(p=P), model, sets=8, random_seed=1)
    assert [set(frame["answer"]) for frame in made] == [{int(p)} for p in P.ravel()]


def test_a_set_of_another_size_is_all_of_one_draw(answers):
    made = synthetic_data(result(p=P), answers, sets=4, n=12, random_seed=1)
    chosen = P.ravel()[[0, 2, 5, 7]]
    for frame, p in zip(made, chosen, strict=True):
        assert list(frame["answer"]) == [p] * 12


def test_latent_records_are_those_of_the_draw(answers):
    records = np.random.default_rng(0).integers(0, 2, (2, 4, 5))
    made = synthetic_data(result(p=P, answer=records), answers, sets=8, latent=True)
    for frame, expected in zip(made, records.reshape(8, 5), strict=True):
        np.testing.assert_array_equal(frame["answer"], expected)


def test_records_that_were_kept_are_drawn_anew(answers):
    kept = np.broadcast_to(1 - P[:, :, None], (2, 4, 5)).astype(int)
    made = synthetic_data(result(p=P, answer=kept), answers, sets=8, random_seed=1)
    assert [set(frame["answer"]) for frame in made] == [{p} for p in P.ravel()]


def test_seeds_decide(answers):
    idata = result(p=np.full_like(P, 0.5))
    one, same, other = (
        synthetic_data(idata, answers, sets=2, n=40, random_seed=seed) for seed in (1, 1, 2)
    )
    assert one[0].equals(same[0])
    assert not one[0].equals(other[0])
    assert not one[0].equals(one[1])


def test_columns_of_several_variables():
    with pm.Model(coords={"item": ["a", "b"], "person": range(3)}) as model:
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1e-9, dims="person")
        y = pm.Normal("y", x[:, None] + np.array([10.0, 20.0]), 1e-9, dims=("person", "item"))
        pmd.LaplaceMechanism(1).potential("release", x.sum() + y.sum(), released=3.0)
    [frame, _] = synthetic_data(result(mu=P), model, sets=2, random_seed=1)
    assert list(frame.columns) == ["x", "y[a]", "y[b]"]
    np.testing.assert_allclose(frame.to_numpy(), np.tile([0.0, 10.0, 20.0], (3, 1)), atol=1e-7)


def test_labels_and_names_are_those_of_the_probabilities_dim():
    with pm.Model(coords={"sex": ["f", "m"], "ill": ["no", "yes"]}) as model:
        p_sex = pm.Dirichlet("p_sex", np.ones(2), dims="sex")
        p_ill = pm.Dirichlet("p_ill", np.ones((2, 2)), dims=("sex", "ill"))
        sex = pm.Categorical("person_sex", p_sex, shape=30)
        ill = pm.Categorical("person_ill", p_ill[sex], shape=30)
        pmd.LaplaceMechanism(1).potential("release", (sex + ill).sum(), released=30.0)
    draws = {
        "p_sex": (("chain", "draw", "sex"), np.full((1, 2, 2), 0.5)),
        "p_ill": (("chain", "draw", "sex", "ill"), np.tile(np.eye(2)[::-1], (1, 2, 1, 1))),
    }
    coords = {"chain": [0], "draw": [0, 1], "sex": ["f", "m"], "ill": ["no", "yes"]}
    idata = xr.DataTree.from_dict({"posterior": xr.Dataset(draws, coords=coords)})
    [frame, _] = synthetic_data(idata, model, sets=2, random_seed=1)
    assert set(zip(frame["sex"], frame["ill"], strict=True)) == {("f", "yes"), ("m", "no")}
    given = {"person_sex": [18, "65+"]}
    [frame, _] = synthetic_data(idata, model, sets=2, labels=given, random_seed=1)
    assert set(frame.columns) == {"person_sex", "ill"}
    assert set(frame["person_sex"]) == {18, "65+"}


def test_probabilities_whose_last_dims_differ_give_no_labels():
    coords = {"sex": ["f", "m"], "x": ["a", "b"], "y": ["c", "d"]}
    with pm.Model(coords=coords) as model:
        sex = pm.Categorical("person", np.ones(2) / 2, shape=30)
        both = [pm.Dirichlet(f"p_{d}", np.ones((2, 2)), dims=("sex", d)) for d in ("x", "y")]
        p = both[0][sex] * both[1][sex]
        answer = pm.Categorical("answer", p / p.sum(axis=-1, keepdims=True), shape=30)
        pmd.LaplaceMechanism(1).potential("release", (sex + answer).sum(), released=30.0)
    halves = np.full((1, 2, 2, 2), 0.5)
    [frame, _] = synthetic_data(result(p_x=halves, p_y=halves), model, sets=2, random_seed=1)
    assert set(frame["answer"]) == {0, 1}


def test_an_unknown_number_of_records():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 6)
        x = pm.Normal("x", shape=6)
        pmd.LaplaceMechanism(1).potential("release", (pmd.present(n, 6) * x).sum(), released=1.0)
    numbers = np.array([[0, 1, 2, 3], [4, 5, 6, 0]])
    made = synthetic_data(result(n=numbers), model, sets=8, random_seed=1)
    assert [len(frame) for frame in made] == list(numbers.ravel())
    made = synthetic_data(result(n=numbers), model, sets=2, n=20, random_seed=1)
    assert [len(frame) for frame in made] == [20, 20]


def test_an_analysis_of_the_sets_gives_the_posterior(answers):
    """Of a proportion, whose posterior is that of p."""
    p = np.random.default_rng(3).beta(30, 20, (2, 4000))
    made = synthetic_data(result(p=p), answers, sets=1000, n=20, random_seed=1)
    q = np.array([frame["answer"].mean() for frame in made])
    u = np.full(1000, np.mean(q * (1 - q)) / 19)
    combined = combine(q, u)
    error = np.sqrt(2 / 1000) * q.var()
    assert abs(combined.variance - p.var()) < 4 * error
    # The rule for latent records would have them as wide as two samplings' worth.
    assert abs(combine(q, u, rule="records").variance - p.var()) > 8 * error


def test_missing_input_is_reported(answers):
    with pytest.raises(ValueError, match="no draws of 'p': keep them"):
        synthetic_data(result(q=P), answers, sets=2)
    with pytest.raises(ValueError, match="no draws of 'answer': pass keep_records=True"):
        synthetic_data(result(p=P), answers, sets=2, latent=True)
    with pytest.raises(ValueError, match="sets must be 8 at most"):
        synthetic_data(result(p=P), answers, sets=9)
    with pytest.raises(ValueError, match="n is for new people"):
        synthetic_data(result(p=P), answers, sets=2, n=3, latent=True)
    with pytest.raises(ValueError, match="no records 'reply', but answer"):
        synthetic_data(result(p=P), answers, sets=2, labels={"reply": ["no"]})
    for few_or_many in (["no"], ["no", "yes", "perhaps"]):
        with pytest.raises(ValueError, match=r"'answer' has values 0 to 1, and . labels"):
            synthetic_data(result(p=P), answers, sets=8, labels={"answer": few_or_many})
    for unordered in ({1: "yes", 0: "no"}, {"no", "yes"}, "ny"):
        with pytest.raises(TypeError, match="labels of 'answer' must be a list of labels, got"):
            synthetic_data(result(p=P), answers, sets=8, labels={"answer": unordered})
    with pytest.raises(ValueError, match="records must be variables with an entry for each person"):
        synthetic_data(result(p=P), answers, records=answers["p"], sets=2)
    with pytest.raises(ValueError, match=r"another model: there, 'p' has shape \(3,\)"):
        synthetic_data(result(p=np.ones((2, 4, 3))), answers, sets=2)
    for chosen in ({"chain": 0}, {"draw": 0}):
        with pytest.raises(ValueError, match=r"no dims 'chain' and 'draw': keep both"):
            synthetic_data(result(p=P).sel(chosen), answers, sets=1)
    [frame] = synthetic_data(result(p=P), answers, sets=1, labels={"answer": None})
    assert frame["answer"].dtype.kind == "i"


def test_a_potential_that_may_be_part_of_their_distribution_warns(answers):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1, shape=3)
        pm.Potential("positive", pm.math.switch(x > 0, 0.0, -np.inf).sum())
        pmd.LaplaceMechanism(1).potential("release", x.sum(), released=3.0)
    with pytest.warns(UserWarning, match="'positive' is taken to be a release"):
        synthetic_data(result(mu=P), model, sets=1, random_seed=1)


def test_people_with_covariates_are_as_many_as_they_are():
    with pm.Model() as model:
        slope = pm.Normal("slope")
        x = pm.Normal("x", slope * np.array([1.0, 2.0, 3.0]), 1)
        pmd.LaplaceMechanism(1).potential("release", x.sum(), released=3.0)
    assert len(synthetic_data(result(slope=P), model, sets=1, random_seed=1)[0]) == 3
    with pytest.raises(ValueError, match="'x' has values other than 0 to 1, which have labels"):
        synthetic_data(result(slope=P), model, sets=1, labels={"x": ["no", "yes"]})
    with pytest.raises(ValueError, match="n can't be chosen: the prior of 'x'"):
        synthetic_data(result(slope=P), model, sets=1, n=5)


@pytest.mark.parametrize("missing", [False, True])
def test_public_columns_stay_with_their_rows(missing):
    public = np.array([0, 0, 0, 1, 1, 1])
    known = np.ma.masked_array(public, [missing, *[False] * 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        with pm.Model() as model:
            x = pm.Bernoulli("x", 0.5, observed=known)
            y = pm.Normal("y", 100.0 * x, 1, shape=6)
            pmd.LaplaceMechanism(1).potential("release", y.sum(), released=300.0)
    idata = result(x_unobserved=np.zeros((1, 2, 1), int), x=np.tile(public, (1, 2, 1)))
    (people,) = synthetic_data(idata, model, sets=1, records=[y], random_seed=1)
    assert (people["y"].round(-2) == 100 * public).all()


def test_a_table_has_no_people():
    with pm.Model() as model:
        counts = pm.Poisson("counts", 3.0, shape=2)
        pmd.LaplaceMechanism(1).potential("release", counts, released=[3.0, 4.0])
    with pytest.raises(ValueError, match="tables of counts"):
        synthetic_data(result(p=P), model, sets=1)
