"""Releases of OpenDP: queries on data frames, and measurements."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from pymc_dapper.budget import Budget
from pymc_dapper.checks import about, shown, text, whole_number
from pymc_dapper.mechanisms import Mechanism, QuantileMechanism, RandomizedResponse
from pymc_dapper.releases import choices
from pymc_dapper.releases.frames import Columns, column, columns_of
from pymc_dapper.releases.labels import Coords, as_coords, check_used
from pymc_dapper.releases.noise import NOISE
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.releases.tables import read_release

DISTRIBUTIONS: dict[str, Any] = {
    "Integer Laplace": NOISE["discrete laplace"],
    "Integer Gaussian": NOISE["discrete gaussian"],
    "Float Laplace": NOISE["laplace"],
    "Float Gaussian": NOISE["gaussian"],
}
"""Names of noise in a summary."""

FINE = 1e-6
"""If the grid is finer than this, in units of the scale, noise counts as continuous."""

TOLD = ("column", "aggregate", "distribution", "scale")
"""Columns of every summary."""


def read_opendp(
    query: Any,
    released: Any,
    *,
    coords: Coords | None = None,
    budget: Budget | None = None,
    quantiles: Mapping[str, tuple[Any, ...]] | None = None,
    max_length: int | None = None,
) -> Release:
    """Read a release that OpenDP made from a data frame.

    Parameters
    ----------
    query : LazyFrameQuery or DataFrame
        The query, or its ``query.summarize()``: a frame with the columns column, aggregate,
        distribution and scale, and threshold if small groups were left out.
    released : OnceFrame or DataFrame
        What ``query.release()`` returned, or a data frame of it. Columns that aren't in the summary
        are groups, and become dims.
    coords : mapping of str to sequence, optional
        Labels of the groups, all of them. Required if small groups were left out: the missing rows
        are information, too.
    budget : PureDP, ZCDP or ApproxDP, optional
        What the release spends. By OpenDP's ``unit_of(contributions=...)`` one person joins or
        leaves: give it ``neighbours="add_remove"``.
    quantiles : mapping of str to tuple, optional
        For each column that holds quantiles: the ``(alpha, candidates)`` that ``dp.quantile`` or
        ``dp.median`` was given, which the summary doesn't have. Candidates with decimals are for
        real numbers only, and ``(alpha, candidates, float)`` says so: in a column of whole numbers
        OpenDP cuts the decimals off before it scores candidates.
    max_length : int, optional
        The most records in a group, as the query's margin has it: OpenDP scores candidates in units
        that follow from it. Needed for quantiles, if ``query`` is a summary.

    Returns
    -------
    Release
        A query for each column. Counts of an unsigned type are read as clamped at 0. If there is a
        threshold, a group is published if it has records and its noisy count is above the
        threshold. Other columns say nothing about groups that were left out. If there are such
        groups, these columns get one dim of their own with the published groups: from the dims sex
        and race, the dim "sex_race_published" with labels such as "m, black".

    Raises
    ------
    TypeError, ValueError
        If a column's noise isn't told, or isn't known; if a column holds a ratio of two noisy
        numbers (as of a mean); if rows may be missing and ``coords`` aren't given; if quantiles
        aren't those of the summary. The message begins with the column's name.
    ImportError
        If ``query`` must be summarised and Polars isn't installed.

    References
    ----------
    The OpenDP library, `opendp.extras.polars.LazyFrameQuery.summarize`.
    """
    summary = columns_of(query.summarize() if _is_query(query) else query, "query")
    names = [text(name, "query: a column's name") for name in column(summary, "column", "query")]
    for needed in TOLD:
        column(summary, needed, "query")
    frame = released.collect() if hasattr(released, "collect") else released
    unsigned, table = _unsigned(frame), columns_of(frame, "released")
    groups = {name: values for name, values in table.items() if name not in names}
    labels = as_coords("the", coords)
    check_used(labels, groups, "the release isn't grouped by")
    given = summary.get("threshold", [None] * len(names))
    thresholds = [None if each is None or each != each else float(each) for each in given]
    by_count = next((k for k, each in enumerate(thresholds) if each is not None), None)
    if by_count is not None and (missing := [dim for dim in groups if dim not in labels]):
        raise ValueError(
            f"'{names[by_count]}': groups were left out whose noisy count isn't above the "
            f"threshold {thresholds[by_count]:g}. Give the labels of all groups that there may be: "
            f"coords={{'{missing[0]}': [...]}}"
        )
    asked = choices.asked_for(quantiles, names, summary["distribution"])
    if max_length is not None:
        whole_number(max_length, "max_length", at_least=1)
    if asked and _is_query(query):
        max_length = _max_length(query, groups, max_length)
    queries = []
    for k, name in enumerate(names):
        _check_alone(name, names, summary["aggregate"])
        mechanism = _of_summary(name, summary, k, asked.get(name), max_length)
        if thresholds[k] is not None:
            # OpenDP finds groups in the data, and publishes those with a noisy count above the
            # threshold.
            mechanism = mechanism.nonempty().published_if(">", thresholds[k])
        elif unsigned.get(name, False) and not isinstance(mechanism, QuantileMechanism):
            mechanism = mechanism.clamped(0, None)
        found = column(table, name, "released")
        if not groups:
            if len(found) > 1:
                raise ValueError(
                    f"'{name}': released has {len(found)} rows, and no column of groups that tells "
                    "them apart"
                )
            queries.append(Query(name, found[0], mechanism))
            continue
        keys, own = groups, labels
        left_out = thresholds[k] is None and by_count is not None
        if left_out and len(found) < prod(len(labels[dim]) for dim in groups):
            keys, own = _joined(groups), {}
        rows = {**keys, name: found}
        queries += read_release(rows, values=name, noise=mechanism, dims=list(keys), coords=own)
    return Release(queries, budget)


def opendp_mechanism(measurement: Any) -> Mechanism:
    """Read the noise of a measurement made by OpenDP's constructors.

    Parameters
    ----------
    measurement : Measurement
        ``make_laplace``, ``make_gaussian``, ``make_geometric``, ``make_randomized_response``,
        ``make_randomized_response_bool``, ``make_private_quantile``, ``make_noisy_max`` or
        ``make_noisy_top_k``, alone or chained after transformations of the data.

    Returns
    -------
    Mechanism
        For `Query` or `read_release`. Noise on whole numbers is discrete. Choices among candidates
        are a `QuantileMechanism`, or a `NoisyMaxMechanism`, whose statistic are the scores.

    Raises
    ------
    TypeError, ValueError
        If it isn't a measurement, or its noise can't be read: another constructor, bounds, a coarse
        grid, or a transformed output; or if it chooses among candidates in a way, or in a version
        of OpenDP, that isn't known.

    References
    ----------
    The OpenDP library, `opendp.measurements`.
    """
    told = getattr(measurement, "__opendp_dict__", None)
    if not isinstance(told, Mapping) or not isinstance(told.get("__kwargs__"), Mapping):
        raise TypeError(
            "measurement must be one of OpenDP's constructors, of version 0.12 or newer, which "
            f"tells how it was made, got {shown(measurement)}"
        )
    function, given = str(told.get("__function__")), told["__kwargs__"]
    try:
        return _of_constructor(function, given)
    except KeyError as missing:
        raise TypeError(f"measurement: {function} doesn't tell its {missing}") from None


def _of_constructor(function: str, given: Mapping[str, Any]) -> Mechanism:
    match function:
        case "make_chain_mt":
            return _of_chain(given["measurement1"], given.get("transformation0"))
        case "make_private_quantile":
            return choices.of_private_quantile(given)
        case "make_noisy_max" | "make_noisy_top_k":
            return choices.of_noisy_max(function, given)
        case "make_laplace" | "make_gaussian" | "make_geometric":
            return _of_noise(function, given)
        case "make_randomized_response":
            return RandomizedResponse(given["prob"], len(given["categories"]))
        case "make_randomized_response_bool":
            return RandomizedResponse(given["prob"], 2)
    raise ValueError(
        f"measurement: {function} can't be read. Known are make_laplace, make_gaussian, "
        "make_geometric, make_randomized_response, make_private_quantile, make_noisy_max and "
        "make_noisy_top_k, with transformations before them"
    )


def _of_chain(measurement: Any, transformation: Any) -> Mechanism:
    told = getattr(measurement, "__opendp_dict__", {})
    if told.get("__function__") == "make_noisy_max":
        choices.refuse_scores(transformation, told.get("__kwargs__", {}).get("scale", 1.0))
    return opendp_mechanism(measurement)


def _of_noise(function: str, given: Mapping[str, Any]) -> Mechanism:
    scale, domain = given["scale"], given["input_domain"]
    if given.get("bounds") is not None:
        raise ValueError(f"measurement: {function} with bounds, whose noise isn't known here")
    whole = re.search(r"\b[iu](\d+|size)\b", str(domain.carrier_type)) is not None
    grid = given.get("k")
    if grid is not None and not whole and 2.0**grid > FINE * scale:
        raise ValueError(f"measurement: {function} with noise on multiples of 2^{grid}")
    law = "gaussian" if function == "make_gaussian" else "laplace"
    return NOISE[f"discrete {law}" if whole else law](scale)


def _is_query(query: Any) -> bool:
    # A Polars frame has no such summary; OpenDP's query invents attributes that don't exist.
    return type(query).__module__.partition(".")[0] == "opendp"


def _max_length(query: Any, groups: Columns, given: int | None) -> Any:
    """Return the largest number of records in a group, as the query's margin has it."""
    told = query.resolve().input_domain.get_margin(list(groups)).max_length
    if given not in (None, told):
        raise ValueError(f"max_length is {given}, but the query's margin has {told}: leave it out")
    return told


def _joined(groups: Columns) -> Columns:
    """Join all dims into one, which has only the published groups."""
    rows = zip(*groups.values(), strict=True)
    joined = [row[0] if len(row) == 1 else ", ".join(map(str, row)) for row in rows]
    return {"_".join([*groups, "published"]): joined}


def _unsigned(frame: Any) -> dict[str, bool]:
    """Return, for each column of a frame, whether its type excludes negative numbers."""
    schema: Any = getattr(frame, "schema", None)
    if isinstance(schema, Mapping):
        types = {name: str(kind) for name, kind in schema.items()}
    elif hasattr(schema, "names"):
        types = {name: str(schema.field(name).type) for name in schema.names}
    elif hasattr(getattr(frame, "dtypes", None), "items"):
        types = {str(name): str(kind) for name, kind in frame.dtypes.items()}
    else:
        raise TypeError(
            "released must be what query.release() returned, or a data frame of it, which tells "
            f"the types of its columns, got {shown(frame)}"
        )
    return {name: kind.lower().startswith("uint") for name, kind in types.items()}


def _check_alone(name: str, names: Sequence[str], aggregates: Sequence[str]) -> None:
    parts = [each for other, each in zip(names, aggregates, strict=True) if other == name]
    if len(parts) > 1:
        raise ValueError(
            f"'{name}': a ratio of noisy numbers ({', '.join(parts)}), none of which was released. "
            "Release the sum and the count, as columns of their own"
        )


def _of_summary(name: str, summary: Columns, k: int, asked: Any, max_length: int | None) -> Any:
    distribution, scale = summary["distribution"][k], summary["scale"][k]
    of_quantiles = distribution in choices.NOISE_OF_SUMMARY
    if distribution not in DISTRIBUTIONS and not of_quantiles:
        raise ValueError(
            f"'{name}': noise of kind {distribution!r} isn't added to a statistic (it is of "
            f"'{summary['aggregate'][k]}'), or isn't known: there are {', '.join(DISTRIBUTIONS)}. "
            "Leave the column out of summary and release"
        )
    if scale is None or scale != scale:
        raise ValueError(f"'{name}': scale is missing in the summary")
    if of_quantiles:
        aggregate = summary["aggregate"][k]
        return choices.of_summary(name, aggregate, distribution, scale, asked, max_length)
    with about(f"'{name}'"):
        return DISTRIBUTIONS[distribution](scale)
