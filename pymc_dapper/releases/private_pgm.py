"""Measurements of private-pgm: noisy marginals of a table."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from pymc_dapper.budget import Budget
from pymc_dapper.checks import as_array, choice, finite_number, is_a, known, shown, whole_number
from pymc_dapper.releases.labels import Coords, as_coords, check_used
from pymc_dapper.releases.noise import NOISE
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release


def read_measurements(
    measurements: Any,
    domain: Any,
    *,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    coords: Coords | None = None,
    budget: Budget | None = None,
) -> Release:
    """Read noisy marginals of private-pgm.

    Parameters
    ----------
    measurements : sequence of LinearMeasurement
        Each with its ``noisy_measurement``, ``clique``, ``stddev`` and ``query``.
    domain : Domain or mapping of str to int
        The size of each attribute, and its labels if a `Domain` has them.
    noise : {"gaussian", "laplace"}
        The law of the noise, which measurements don't contain. ``stddev`` is its standard
        deviation.
    coords : mapping of str to sequence, optional
        Labels of attributes; if not given, those of the domain, or numbers from 0.
    budget : PureDP, ZCDP or ApproxDP, optional
        What they spend.

    Returns
    -------
    Release
        A query for each measurement. Its name and dims are its attributes, as in ``"age * sex"``
        (``"age * sex (2)"`` if they were measured again). `Release.margins` computes the
        statistics.

    Raises
    ------
    TypeError, ValueError
        If a measurement isn't of a marginal itself but of another linear function, or if its size
        isn't the domain's. The message begins with the query's name.

    References
    ----------
    McKenna, R., Sheldon, D. and Miklau, G. (2019). Graphical-model based estimation and inference
    for differential privacy. International Conference on Machine Learning 36. As of version 2.0.0
    of the package mbi, and of older versions, whose queries are functions.
    """
    choice(noise, "noise", ("gaussian", "laplace"))
    sizes = _sizes(domain)
    given = as_coords("the", coords)
    check_used(given, sizes, "the domain hasn't")
    labels = {**_labels(domain), **given}
    is_a(measurements, list | tuple, "measurements must be a list")
    queries: list[Query] = []
    for each in measurements:
        if not all(hasattr(each, x) for x in ("noisy_measurement", "clique", "stddev", "query")):
            raise TypeError(f"measurements must be LinearMeasurements, got {shown(each)}")
        is_a(each.clique, str | list | tuple, "a measurement's clique must be a tuple")
        clique = (each.clique,) if isinstance(each.clique, str) else tuple(each.clique)
        name = " * ".join(map(str, clique)) or "total"
        again = sum(query.name.partition(" (")[0] == name for query in queries)
        name = f"{name} ({again + 1})" if again else name
        known(clique, sizes, f"'{name}': the domain has no attribute")
        if not _is_marginal(each.query):
            raise ValueError(
                f"'{name}': its query is another function of the marginal, not the marginal "
                "itself: make a Query of it, with that function as its statistic"
            )
        shape = tuple(sizes[attribute] for attribute in clique)
        values = _noisy_counts(f"'{name}': the domain says", each.noisy_measurement, shape)
        stddev = finite_number(each.stddev, f"'{name}': stddev", above=0)
        mechanism = NOISE[noise](stddev if noise == "gaussian" else stddev / np.sqrt(2))
        own = {a: labels.get(a, tuple(range(sizes[a]))) for a in clique}
        queries.append(Query(name, values.astype(np.float64), mechanism, clique, own))
    if not queries:
        raise ValueError("measurements must hold at least one, got none")
    return Release(queries, budget)


def _noisy_counts(what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Check that there is one number for each cell, and return them in the table's shape."""
    counts, flat = as_array(values), (np.prod(shape, dtype=int),)
    if counts.dtype.kind not in "iuf" or counts.shape not in (shape, flat):
        raise ValueError(f"{what} {flat[0]} noisy counts, flat or {shape}, got {shown(values)}")
    return counts.reshape(shape)


def _is_marginal(query: Any) -> bool:
    """Whether a measurement's query is the marginal itself."""
    # In versions before 2, the query is a method of factors.
    is_method = getattr(query, "__name__", None) == "datavector"
    return is_method or type(query).__name__ == "DatavectorQuery"


def _labels(domain: Any) -> dict[str, tuple[Any, ...]]:
    """Return labels by attribute, if a domain has them."""
    labels = getattr(domain, "labels", None)
    return as_coords("the", dict(zip(domain.attributes, labels, strict=True)) if labels else None)


def _sizes(domain: Any) -> dict[str, int]:
    """Return the size of each attribute."""
    attributes = getattr(domain, "attributes", getattr(domain, "attrs", None))
    if attributes is not None and hasattr(domain, "shape"):
        domain = dict(zip(attributes, domain.shape, strict=True))
    if not isinstance(domain, Mapping) or not all(isinstance(a, str) and a for a in domain):
        raise TypeError(f"domain must be a dict of sizes by attribute, got {shown(domain)}")
    return {a: whole_number(n, f"domain: size of '{a}'", at_least=1) for a, n in domain.items()}
