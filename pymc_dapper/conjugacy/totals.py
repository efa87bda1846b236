"""Sums over the entries of a variable that share an entry of a parameter."""

from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.products import read_lookup
from pymc_dapper.graphs.rebuild import rebuild


def total(
    terms: TensorVariable, entries: TensorVariable, parameter: TensorVariable
) -> TensorVariable:
    """Add up terms by the entry of the parameter that they belong to, in its (static) shape.

    ``entries`` selects an entry of the parameter for each term; terms may have more axes, or be
    longer where ``entries`` has length 1.
    """
    # In double precision, whatever the model's: counts must not be rounded.
    terms = _sum_to(terms.astype("float64"), entries)
    if entries is parameter:
        return terms
    if parameter.type.ndim == 0:
        return terms.sum()
    shape = parameter.type.shape
    which = in_range(_numbers(entries, parameter).flatten(), prod(shape), "an index")
    return pt.zeros(prod(shape), dtype="float64")[which].inc(terms.flatten()).reshape(shape)


def total_by_category(
    categories: TensorVariable, entries: TensorVariable, parameter: TensorVariable
) -> TensorVariable:
    """Count categories by the entry of a vector of probabilities that they belong to.

    Categories are indices on the last axis of ``entries``, a selection of the parameter's entries,
    whose leading axes are broadcast to them. The counts have the parameter's static shape.
    """
    lookup, size = read_lookup(entries), prod(parameter.type.shape)
    if lookup is not None and lookup.table is parameter and lookup.indices:
        n_categories, row = parameter.type.shape[-1], pt.constant(0)
        inside = pt.ge(categories, 0) & pt.lt(categories, n_categories)
        for index, length in zip(lookup.indices, lookup.lengths, strict=True):
            # It may be of a type that is too short for numbers of entries.
            index = index.astype("int64")
            inside &= pt.ge(index + length, 0) & pt.lt(index, length)
            row = row * length + index % length
        which = row * n_categories + categories
    else:
        numbers = _numbers(entries, parameter)
        n_categories = numbers.shape[-1]
        inside = pt.ge(categories, 0) & pt.lt(categories, n_categories)
        known = pt.switch(inside, categories, 0).flatten()
        if all(numbers.type.broadcastable[:-1]):
            which = numbers.flatten()[known]
        else:
            rows = pt.broadcast_to(numbers, (*inside.shape, n_categories))
            rows = rows.reshape((-1, n_categories))
            which = rows[pt.arange(rows.shape[0]), known]
        inside = inside.flatten() & pt.ge(which, 0) & pt.lt(which, size)
    # Others are counted last, so that one loop checks and counts.
    counts = pt.zeros(size + 1, dtype="float64")[pt.switch(inside, which, size)].inc(1.0)
    counts = _refused("a category or an index")(counts[:-1], pt.eq(counts[-1], 0))
    return counts.reshape(parameter.type.shape)


def _sum_to(terms: TensorVariable, like: TensorVariable) -> TensorVariable:
    """Add up along the axes on which ``like`` is broadcast to ``terms``."""
    extra = terms.type.ndim - like.type.ndim
    if extra:
        terms = terms.sum(axis=tuple(range(extra)))
    ones = zip(like.type.broadcastable, terms.type.broadcastable, strict=True)
    repeated = tuple(k for k, (one, is_one) in enumerate(ones) if one and not is_one)
    return terms.sum(axis=repeated, keepdims=True) if repeated else terms


def _numbers(entries: TensorVariable, parameter: TensorVariable) -> TensorVariable:
    """Which entry of the parameter, counted in C order, each one of the selection is."""
    if entries is parameter and parameter.type.ndim == 1:
        return pt.arange(parameter.type.shape[0])
    shape = parameter.type.shape
    numbers = np.arange(prod(shape)).reshape(shape)
    [selected] = rebuild([entries], {parameter: pt.constant(numbers)})
    return selected


def in_range(index: TensorVariable, length: TensorVariable | int, what: str) -> TensorVariable:
    """Raise if an index is out of range: compiled code would read and write other memory."""
    return _refused(what)(index, pt.all(pt.ge(index, 0) & pt.lt(index, length)))


def _refused(what: str) -> Assert:
    return Assert(f"{what} in the data, or of a record, is out of range")
