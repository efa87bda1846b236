"""Whether two states of steps are the same, whatever they hold."""

from dataclasses import asdict

from pymc.step_methods.state import equal_dataclass_values


def same_states(one, other):
    return equal_dataclass_values(asdict(one), asdict(other))
