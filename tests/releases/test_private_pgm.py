from types import SimpleNamespace

import numpy as np
import pytest

from pymc_dapper.releases import read_measurements

DOMAIN = {"age": 3, "sex": 2}
TABLE = np.arange(6).reshape(3, 2)


class Factor:
    def datavector(self):
        raise NotImplementedError

    def other(self):
        raise NotImplementedError


def measurement(values, clique, stddev=2.0, query=Factor.datavector):
    return SimpleNamespace(
        noisy_measurement=np.asarray(values), clique=clique, stddev=stddev, query=query
    )


def test_marginals_become_queries():
    given = [
        measurement(TABLE.ravel(), ("age", "sex")),
        measurement(TABLE.sum(axis=0), ("sex",), 3.0),
        measurement(TABLE.sum(axis=0), ("sex",), 4.0),
        measurement([15.0], ()),
    ]
    mbi = SimpleNamespace(attributes=("age", "sex"), shape=(3, 2))
    for domain in (DOMAIN, mbi):
        release = read_measurements(given, domain, coords={"sex": ["m", "f"]})
        assert release.names == ("age * sex", "sex", "sex (2)", "total")
        margins = release.margins(TABLE, ("age", "sex"))
        for query in release:
            np.testing.assert_array_equal(query.values, margins[query.name])
        assert [q.mechanism.sigma for q in release] == [2.0, 3.0, 4.0, 2.0]
        assert release.coords == {"age": (0, 1, 2), "sex": ("m", "f")}
    laplace = read_measurements(given[:1], DOMAIN, noise="laplace")["age * sex"].mechanism
    assert laplace.scale == pytest.approx(2 / np.sqrt(2))


def test_labels_are_those_of_the_domain():
    labels = (("young", "middle", "old"), ("m", "f"))
    mbi = SimpleNamespace(attributes=("age", "sex"), shape=(3, 2), labels=labels)
    given = [measurement(TABLE.ravel(), ("age", "sex"))]
    assert read_measurements(given, mbi).coords == {"age": labels[0], "sex": labels[1]}
    told = read_measurements(given, mbi, coords={"sex": ["a", "b"]}).coords
    assert told == {"age": labels[0], "sex": ("a", "b")}


def test_a_clique_may_be_a_name():
    assert read_measurements([measurement([1, 2, 3], "age")], DOMAIN)["age"].dims == ("age",)


def test_a_query_may_be_an_object():
    class DatavectorQuery:
        pass

    given = measurement(TABLE.ravel(), ("age", "sex"), query=DatavectorQuery())
    assert read_measurements([given], DOMAIN).names == ("age * sex",)


def test_labels_that_the_domain_lacks_are_refused():
    with pytest.raises(ValueError, match="labels of 'race', which the domain hasn't"):
        read_measurements([measurement([1.0, 2.0], ("sex",))], DOMAIN, coords={"race": ["a"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (measurement([1.0, 2.0], ("race",)), "'race': the domain has no attribute"),
        (measurement([1.0, 2.0], ("age",)), "'age': the domain says 3 noisy counts"),
        (
            measurement(TABLE.T, ("age", "sex")),
            "6 noisy counts, flat or .3, 2., got",
        ),
        (measurement(TABLE, frozenset(DOMAIN)), "clique must be a tuple, got a frozenset"),
        (measurement([1.0, 2.0], ("sex",), -1.0), "'sex': stddev"),
        (measurement([1.0, np.nan], ("sex",)), "'sex': .*finite"),
        (measurement([1.0, 2.0], ("sex",), query=Factor.other), "'sex': its query is another"),
        ((None, [1.0], 2.0, ("sex",)), "must be LinearMeasurements"),
    ],
)
def test_wrong_or_incomplete_metadata_is_refused_by_name(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_measurements([given], DOMAIN)
