"""Attributes of people in the products of the 2020 Census, and the classes that queries take."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dapper.checks import choice, names, whole_number


def _runs(*lengths: int) -> tuple[int, ...]:
    """Return classes of values that follow each other: so many of class 0, of class 1, ..."""
    return tuple(np.repeat(np.arange(len(lengths)), lengths).tolist())


PRODUCTS = {
    "redistricting": {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63},
    "dhc": {"relgq": 42, "sex": 2, "age": 116, "hispanic": 2, "cenrace": 63},
}
"""Attributes in the order of the axes of all queries, and how many values each has."""

_SINGLE, _MAJOR_TYPES = (1,) * 18, (6, 3, 1, 5, 1, 2, 6)
_FROM_18 = (2, 5, 5, 5, 5, 5, 5, 5, 5, 2, 3, 2, 3, 5, 5, 5, 5, 5, 5, 5, 5, 6)
RECODES: dict[str, dict[str, tuple[int, ...]]] = {
    "hhgq": {"hhinstlevels": _runs(1, 4, 3)},
    "relgq": {
        "relgq_4_groups": _runs(2, 16, 15, 9),
        "popSehsdTargetsRelship": _runs(*_SINGLE, 24),
        "relship_and_eight_level_GQ": _runs(*_SINGLE, *_MAJOR_TYPES),
        # By the least age that a kind of group quarters admits.
        "gq_constr_groups": (*[0] * 18, *[2] * 5, 4, *[5] * 7, 4, 1, 3, 4, 4, 5, *[3] * 5),
    },
    "age": {
        "age_18_64_116": _runs(18, 47, 51),
        "age_10_groups": _runs(3, 12, 1, 1, 1, 2, 5, 5, 5, 81),
        "age_38_groups": _runs(*(1,) * 15, 3, *_FROM_18),
        "age_40_groups": _runs(*_SINGLE, *_FROM_18),
    },
}
"""The class of each value of an attribute, by the name that a query has for the classes."""

ZEROS = {"redistricting": [{"hhgq": 3, "votingage": 0}]}
"""Structural zeros: nobody under age lives in a nursing facility."""


def sizes_of(attributes: Any) -> dict[str, int | None]:
    """Return how many values each attribute has, None if not known: of a product, or as given."""
    if isinstance(attributes, str):
        return dict(PRODUCTS[choice(attributes, "attributes", PRODUCTS)])
    if not isinstance(attributes, Mapping):
        return dict.fromkeys(names(attributes, "attributes"))
    names(list(attributes), "attributes")
    return {name: whole_number(n, f"attributes[{name!r}]") for name, n in attributes.items()}


def classes_of(attribute: str, factor: str, n: int | None) -> np.ndarray | None:
    """Return the class of each value of an attribute in a query, or None if they aren't known.

    Of an attribute with an unknown number of values, ``n=None``, the array is empty.
    """
    if factor == attribute:
        return np.arange(n or 0)
    recode = RECODES.get(attribute, {}).get(factor)
    return None if recode is None else np.array(recode)
