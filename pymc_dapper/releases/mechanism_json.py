"""Mechanisms and their publication rules as JSON, and back."""

import math
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from pytensor.graph import Variable

from pymc_dapper import mechanisms
from pymc_dapper.budget.written import budget_from_dict, budget_to_dict, kind_of
from pymc_dapper.checks import about, is_a, known
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.mechanisms.published import PublishedByRules
from pymc_dapper.mechanisms.rules import Clamping, Ranges, Rounding, Rule, Scaling, Threshold

NOT_WRITTEN = ("CustomMechanism", "Mechanism", "published_rows")

KINDS: dict[str, Any] = {
    name: getattr(mechanisms, name) for name in mechanisms.__all__ if name not in NOT_WRITTEN
}

RULES: dict[str, type[Rule]] = {
    "rounded": Rounding,
    "clamped": Clamping,
    "published_if": Threshold,
    "times": Scaling,
    "in_ranges": Ranges,
}
"""Rules by the method that adds them to a mechanism."""

NONEMPTY = "nonempty"

INFINITE = {"inf": math.inf, "-inf": -math.inf}
"""How infinite numbers are written, which JSON doesn't have."""


def mechanism_to_dict(name: str, mechanism: Mechanism) -> dict[str, Any]:
    """Convert a mechanism to a dict: its kind, parameters, budget and rules.

    Raises
    ------
    TypeError
        If its kind can't be written, as a log-density of the user's own; the message begins with
        ``name``, the name of the query.
    """
    kind = type(mechanism).__name__
    if KINDS.get(kind) is not type(mechanism):
        raise TypeError(
            f"'{name}': a {kind} can't be written as JSON, but {', '.join(KINDS)} can. Publish its "
            "log-density in words, beside the file"
        )
    symbolic = [key for key in _names(mechanism) if isinstance(getattr(mechanism, key), Variable)]
    if symbolic:
        raise TypeError(
            f"'{name}': '{symbolic[0]}' of {kind} is a variable of a model, which can't be written "
            "as JSON"
        )
    content = {"kind": kind, **{key: number(getattr(mechanism, key)) for key in _names(mechanism)}}
    if mechanism.budget is not None:
        content["budget"] = budget_to_dict(mechanism.budget)
    if isinstance(mechanism, PublishedByRules):
        rules = [_rule_to_dict(rule) for rule in mechanism.publication.rules]
        rules = [{"kind": NONEMPTY}] * mechanism.publication.nonempty + rules
        if rules:
            content["rules"] = rules
    return content


def mechanism_from_dict(name: str, content: Any) -> Mechanism:
    """Read what :func:`mechanism_to_dict` wrote.

    Raises
    ------
    TypeError, ValueError
        If the content is something else: an unknown kind or rule, or a parameter that is missing,
        unknown or out of range. The message begins with ``name``, the name of the query.
    """
    with about(f"'{name}'"):
        return _read(content)


def _read(content: Any) -> Mechanism:
    kind, given = kind_of(content, KINDS, "mechanism")
    budget, rules = budget_from_dict(given.pop("budget", None)), given.pop("rules", [])
    mechanism: Mechanism = kind(budget=budget, **_arguments(kind, given))
    is_a(rules, list, "rules must be a list")
    if rules and not isinstance(mechanism, PublishedByRules):
        raise ValueError(f"{kind.__name__} takes no rules of publication")
    for rule in rules:
        assert isinstance(mechanism, PublishedByRules)
        mechanism = _with_rule(mechanism, rule)
    return mechanism


def _with_rule(mechanism: PublishedByRules, content: Any) -> PublishedByRules:
    if content == {"kind": NONEMPTY}:
        return mechanism.nonempty()
    rule, given = kind_of(content, RULES, "rule")
    return mechanism.following(rule(**_arguments(rule, given)))


def _rule_to_dict(rule: Rule) -> dict[str, Any]:
    [kind] = [name for name, each in RULES.items() if each is type(rule)]
    return {"kind": kind, **{key: number(getattr(rule, key)) for key in _names(rule)}}


def _names(of: Any) -> dict[str, bool]:
    """Return the parameters of a mechanism or a rule, and whether each is required."""
    return {f.name: f.default is MISSING for f in fields(of) if f.init and not f.kw_only}


def _arguments(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    names, of = _names(kind), kind.__name__
    known(given, names, f"{of} has no")
    missing = [key for key, must in names.items() if must and key not in given]
    if missing:
        raise ValueError(f"'{missing[0]}' of {of} is missing")
    return {key: as_given(value) for key, value in given.items()}


def number(value: Any) -> Any:
    """Convert a number, an array, a word or None to what JSON has for it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [number(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def as_given(value: Any) -> Any:
    """Read what :func:`number` wrote; lists as arrays."""
    if isinstance(value, list):
        return np.array([as_given(each) for each in value])
    return INFINITE.get(value, value) if isinstance(value, str) else value
