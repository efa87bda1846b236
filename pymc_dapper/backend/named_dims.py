"""Detect tensors of named dimensions (`pymc.dims`) without importing anything."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph import Variable


def has_named_dims(variable: Any) -> bool:
    """Whether a variable is a tensor of named dimensions."""
    return isinstance(variable, Variable) and hasattr(variable.type, "dims")


def as_plain(variable: Any) -> Any:
    """Return a variable as a plain tensor, with its dimensions in order; others unchanged."""
    return variable.values if has_named_dims(variable) else variable


def same_named(variables: Sequence[Variable], wanted: Sequence[Variable]) -> list[Variable]:
    """Return those of some variables that have the names of those wanted, in their order."""
    by_name = {x.name: x for x in variables}
    return [by_name[x.name] for x in wanted]
