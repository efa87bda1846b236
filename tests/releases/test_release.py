import json

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import norm

import pymc_dapper as pmd
from pymc_dapper import Query, Release

NOISE = pmd.LaplaceMechanism(2.0)
QUERIES = [
    pmd.Query("a<b", np.arange(8.0), NOISE, "cell"),
    pmd.Query("few", np.ma.masked_array([5.0, 0.0], [0, 1]), NOISE.published_if(">=", 3)),
    pmd.Query("total", 3.25, NOISE),
]


def test_a_release_is_shown_as_a_table():
    expected = """\
Release of 3 queries, PureDP(epsilon=1, one person changes)
query  dims  shape  values         mechanism
a<b    cell  8      0 to 7         LaplaceMechanism(scale=2)
few    -     2      5, suppressed  LaplaceMechanism(scale=2).published_if('>=', 3)
total  -     -      3.25           LaplaceMechanism(scale=2)"""
    assert repr(pmd.Release(QUERIES, pmd.PureDP(1.0))) == expected


def test_html_is_escaped():
    html = pmd.Release(QUERIES)._repr_html_()
    assert html.count("<tr>") == 4
    assert "<td>a&lt;b</td>" in html
    assert "&#x27;&gt;=&#x27;" in html


LAPLACE = pmd.LaplaceMechanism.calibrate(pmd.PureDP(0.5), sensitivity=1.0)
SEX = {"sex": ["m", "f"]}
PEOPLE = Query("people", [110.5, 131.25], LAPLACE, "sex", SEX)
INCOME = Query(
    "income", [[1e17, -3.5], [2.0, 0.1]], pmd.GaussianMechanism(2.0), ("sex", "kind"), SEX
)
HIDDEN = Query(
    "hidden",
    np.ma.masked_array([2**60 + 1, 12, 0], [0, 0, 1]),
    pmd.DiscreteLaplaceMechanism(2.0).published_if(">", 9),
)


def test_queries_are_found_by_name():
    release = Release([PEOPLE, INCOME])
    assert release.names == ("people", "income")
    assert release["income"] is INCOME
    assert list(release) == [PEOPLE, INCOME]
    assert release.coords == {"sex": ("m", "f")}
    with pytest.raises(KeyError, match="no query 'age', but people, income"):
        release["age"]


def test_the_budget_is_what_was_said_or_that_of_all_mechanisms():
    assert Release(PEOPLE).budget == pmd.PureDP(0.5)
    other = Query("other", 3.0, LAPLACE)
    assert Release([PEOPLE, other]).budget == pmd.PureDP(1.0)
    assert Release([PEOPLE, INCOME]).budget is None
    assert Release([PEOPLE, INCOME], pmd.ZCDP(0.1)).budget == pmd.ZCDP(0.1)
    mixed = Query("z", 1.0, pmd.GaussianMechanism.calibrate(pmd.ZCDP(0.1), sensitivity=1.0))
    assert Release([PEOPLE, mixed]).budget is None
    loose = pmd.GaussianMechanism(1.0, budget=pmd.ApproxDP(1.0, 0.6))
    assert Release([Query("a", 1.0, loose), Query("b", 1.0, loose)]).budget is None


@pytest.mark.parametrize("method", ["potential", "observe"])
def test_statistics_are_given_by_name(method):
    with pm.Model() as model:
        add = getattr(Release([PEOPLE, INCOME]), method)
        added = add({"income": pt.zeros((2, 2))})
        assert set(added) == {"income"}
        alone = getattr(Release(PEOPLE), method)(pt.zeros(2))
    assert {"income", "people"} <= set(model.named_vars)
    assert alone.name == "people"
    with pm.Model():
        with pytest.raises(TypeError, match="a dict of statistics by name"):
            add(pt.zeros(2))
        with pytest.raises(ValueError, match="no query 'age'"):
            add({"age": pt.zeros(2)})
        with pytest.raises(ValueError, match="got none"):
            add({})


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], "at least one"),
        ([PEOPLE, PEOPLE], "'people' is there twice"),
        ([PEOPLE, Query("b", [1.0, 2.0], LAPLACE, "sex", {"sex": ["f", "m"]})], "'b': dim 'sex'"),
        ([PEOPLE, Query("b", [1.0, 2.0, 3.0], LAPLACE, "sex")], "'b': dim 'sex'"),
    ],
)
def test_queries_that_do_not_go_together_are_refused(queries, message):
    with pytest.raises(ValueError, match=message):
        Release(queries)


def test_a_release_comes_back_from_json_to_the_last_digit(tmp_path):
    release = Release([PEOPLE, INCOME, HIDDEN], pmd.ZCDP(0.1))
    path = tmp_path / "release.json"
    written = release.to_json(path)
    for source in (written, path, str(path)):
        again = Release.from_json(source)
        assert repr(again) == repr(release)
        assert again.to_json() == written
        assert again.budget == release.budget
        for one, other in zip(again, release, strict=True):
            assert (one.dims, one.coords) == (other.dims, other.coords)
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(np.ma.getmask(one.values), np.ma.getmask(other.values))


def test_whole_numbers_stay_whole():
    whole = Query("n", [2**60 + 1, -3], pmd.DiscreteLaplaceMechanism(2.0))
    assert Release.from_json(Release(whole).to_json())["n"].values.tolist() == [2**60 + 1, -3]


def test_a_release_that_has_no_line_comes_back():
    line = Query("line", list(pmd.NoisyStats.NA), pmd.NoisyStats(1.0, 20))
    assert np.isinf(Release.from_json(Release(line).to_json())["line"].values).all()


def changed(**changes):
    content = json.loads(Release([PEOPLE]).to_json())
    for path, value in changes.items():
        *parts, last = path.split("__")
        inner = content
        for part in parts:
            inner = inner[int(part)] if isinstance(inner, list) else inner[part]
        if value is None:
            del inner[last]
        else:
            inner[last] = value
    return json.dumps(content)


QUERY = "queries__0__"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(version=2), "version 2 of the schema.*knows version 1"),
        (changed(schema="sdmx"), "'schema' must be"),
        (changed(budget=None), "'budget' of the release is missing"),
        (changed(author="x"), "'author', which isn't known"),
        (changed(budget={"kind": "f"}), "no budget of kind 'f'"),
        (changed(**{QUERY + "mechanism__scale": None}), "'people': 'scale' of Laplace"),
        (changed(**{QUERY + "mechanism__scale": -2}), "'people': .*scale"),
        (changed(**{QUERY + "mechanism__kind": "Magic"}), "'people': .*kind 'Magic'"),
        (changed(**{QUERY + "values": [1.0, [2.0]]}), "'people': values must be numbers"),
        (changed(**{QUERY + "values": [1.0, "2"]}), "'people': values must be numbers"),
        (changed(**{QUERY + "values": [1.0, True]}), "'people': values must be numbers"),
        (changed(**{QUERY + "values": [1.0]}), "'people': .*length 1 along 'sex'"),
        (changed(**{QUERY + "values": [1.0, float("nan")]}), "NaN"),
        (changed(**{QUERY + "dims": "sex"}), "'people': dims must be a list"),
        (changed(**{QUERY + "note": "x"}), "'people' has 'note'"),
        (changed(**{QUERY + "name": None}), "name of a query"),
        (changed(version=True), "version True of the schema"),
        (changed(coords={"sex": ["m", "f"], "age": [1]}), "'age', which is a dim of no query"),
        (
            changed().replace('"version": 1', '"version": 2, "version": 1'),
            "'version' is there twice",
        ),
        ("{", "isn't JSON"),
        ("{}", "'schema' must be"),
    ],
)
def test_what_is_no_release_is_refused_by_name(text, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Release.from_json(text)


def test_json_with_suppressed_values_needs_a_rule_for_them():
    text = Release(HIDDEN).to_json()
    content = json.loads(text)
    del content["queries"][0]["mechanism"]["rules"]
    with pytest.raises(ValueError, match=r"'hidden': .*masked"):
        Release.from_json(json.dumps(content))


def test_margins_go_by_name():
    release = Release([PEOPLE, Query("all", 5.0, LAPLACE)])
    table = np.arange(6).reshape(3, 2)
    margins = release.margins(table, ("age", "sex"))
    np.testing.assert_array_equal(margins["people"], table.sum(axis=0))
    assert margins["all"] == table.sum()


def laplace(epsilon, **neighbours):
    return pmd.LaplaceMechanism.calibrate(pmd.PureDP(epsilon, **neighbours), sensitivity=1)


@pytest.mark.parametrize(
    ("mechanisms", "budget", "message"),
    [
        (
            [laplace(0.5, neighbours="add_remove")],
            pmd.PureDP(0.5),
            r"one person changes\) is for other neighbours than that of 'q0'.*leave budget= out",
        ),
        ([laplace(0.5)], pmd.ZCDP(0.5, neighbours="add_remove"), "other neighbours"),
        ([laplace(0.5), laplace(0.5)], pmd.PureDP(0.9), r"together, PureDP\(epsilon=1,"),
        ([laplace(0.5), pmd.LaplaceMechanism(1.0)], pmd.PureDP(0.4), "below that of 'q0' alone"),
        (
            [pmd.GaussianMechanism.calibrate(pmd.ZCDP(0.1), sensitivity=1)] * 2,
            pmd.ZCDP(0.15),
            "together",
        ),
        (
            [pmd.GaussianMechanism.calibrate(pmd.ApproxDP(1, 1e-6), sensitivity=1)],
            pmd.ApproxDP(0.5, 1e-6),
            "below that of 'q0' alone",
        ),
        ([laplace(0.1), laplace(0.2)], pmd.PureDP(0.3), None),
        ([laplace(0.1), pmd.LaplaceMechanism(1.0)], pmd.PureDP(0.3), None),
        ([laplace(1)] * 2, pmd.ZCDP(0.2), None),
        # Composed as zCDP, two approximate budgets spend less than their sum.
        (
            [pmd.GaussianMechanism.calibrate(pmd.ApproxDP(1, 1e-6), sensitivity=1)] * 2,
            pmd.ApproxDP(1.5, 2e-6),
            None,
        ),
    ],
)
def test_a_budget_that_the_queries_contradict_is_refused(mechanisms, budget, message):
    queries = [Query(f"q{k}", 3.0, each) for k, each in enumerate(mechanisms)]
    if message is None:
        assert Release(queries, budget).budget == budget
    else:
        with pytest.raises(ValueError, match=message):
            Release(queries, budget)


def test_a_dim_whose_labels_come_in_another_order_is_told_so():
    noise = pmd.GaussianMechanism(1)
    one = Query("one", [1, 2], noise, ["sex"], {"sex": ["f", "m"]})
    with pytest.raises(ValueError, match=r"'two': .* its labels in another order than in 'one'"):
        Release([one, Query("two", [2, 1], noise, ["sex"], {"sex": ["m", "f"]})])
    for labels in ({"sex": ["f", "d"]}, None):
        with pytest.raises(ValueError, match=r"'two': .* other labels, or another length, than in"):
            Release([one, Query("two", [2, 1], noise, ["sex"], labels)])


def test_a_single_suppressed_count_is_used_beside_others():
    noise = pmd.GaussianMechanism(2.0)
    sex = Query("sexes", [11, 8], noise, ["sex"])
    few = Query("ill", np.ma.masked, noise.published_if(">=", 5))
    with pm.Model() as model:
        a, b = (pm.Bernoulli(name, 0.5, shape=20) for name in "ab")
        release = Release([sex, few])
        release["sexes"].potential(pt.stack([a.sum(), 20 - a.sum()]))
        release["ill"].potential((a * b).sum())
    at = {"a": np.ones(20, dtype=int), "b": np.arange(20) < 7}
    inputs = [model["a"], model["b"]]
    found = model.compile_fn(model["ill"], inputs=inputs, mode="FAST_COMPILE", point_fn=False)
    expected = norm.logcdf(5, loc=7, scale=2)
    np.testing.assert_allclose(found(at["a"], at["b"].astype(int)), expected)
