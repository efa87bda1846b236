import numpy as np
import pytest

from pymc_dapper.releases.census_codes import PRODUCTS, RECODES, ZEROS, classes_of

FIRST = {
    "hhinstlevels": [0, 1, 5],
    "relgq_4_groups": [0, 2, 18, 33],
    "popSehsdTargetsRelship": list(range(19)),
    "relship_and_eight_level_GQ": [*range(19), 24, 27, 28, 33, 34, 36],
    "age_18_64_116": [0, 18, 65],
    "age_10_groups": [0, 3, 15, 16, 17, 18, 20, 25, 30, 35],
    "age_38_groups": [*range(16), 18, *range(20, 61, 5), 62, 65, 67, *range(70, 111, 5)],
    "age_40_groups": [*range(19), *range(20, 61, 5), 62, 65, 67, *range(70, 111, 5)],
}
"""The first value of each class, where classes are runs of values."""


@pytest.mark.parametrize("attribute", RECODES)
def test_classes_are_those_of_the_census_bureau(attribute):
    n = PRODUCTS["redistricting" if attribute == "hhgq" else "dhc"][attribute]
    for factor in RECODES[attribute]:
        classes = classes_of(attribute, factor, n)
        assert classes.size == n
        if factor != "gq_constr_groups":
            first = np.searchsorted(classes, np.arange(classes.max() + 1))
            assert first.tolist() == FIRST[factor]
            assert np.all(np.diff(classes) >= 0)


def test_group_quarters_with_a_least_age():
    """Residential schools; prisons; colleges and others; military ones; those with children."""
    classes = classes_of("relgq", "gq_constr_groups", 42)
    of = [np.flatnonzero(classes == k).tolist() for k in range(6)]
    assert of[0] == list(range(18))
    assert of[1:3] == [[32], [18, 19, 20, 21, 22]]
    assert of[3:5] == [[33, 37, 38, 39, 40, 41], [23, 31, 34, 35]]
    assert of[5] == [*range(24, 31), 36]


def test_an_attribute_is_its_own_finest_classes():
    assert classes_of("cenrace", "cenrace", 63).tolist() == list(range(63))
    assert classes_of("cenrace", "cenrace", None).size == 0
    assert classes_of("cenrace", "hhinstlevels", 63) is None
    for product, zeros in ZEROS.items():
        for zero in zeros:
            assert all(0 <= value < PRODUCTS[product][name] for name, value in zero.items())
