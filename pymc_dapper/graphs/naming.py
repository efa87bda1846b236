"""Names of graph nodes that a user recognises."""

from pytensor.graph import Apply


def describe(node: Apply) -> str:
    """Name an operation by its op and by a named variable near it."""
    named = [f"'{variable.name}'" for variable in (*node.outputs, *node.inputs) if variable.name]
    return f"{node.op} (at {named[0]})" if named else str(node.op)


def how_to_teach(node: Apply) -> str:
    """Say how to teach the samplers an unknown operation."""
    name = type(getattr(node.op, "core_op", node.op)).__name__
    return f"teach all samplers this one with `pymc_dapper.action_of.register({name})`"


def counted(n: int, what: str) -> str:
    """Write a number of things, such as "1 cell" and "2 cells"."""
    return f"{n} {what}" + ("" if n == 1 else "s")
