"""Names for nodes of a graph that a user would recognise."""

from pytensor.graph.basic import Apply


def describe(node: Apply) -> str:
    """Name an operation by its op and by a variable near it that has a name."""
    named = [f"'{variable.name}'" for variable in (*node.outputs, *node.inputs) if variable.name]
    return f"{node.op} (at {named[0]})" if named else str(node.op)


def how_to_teach(node: Apply) -> str:
    """Say how an operation is taught that no reader knows."""
    name = type(getattr(node.op, "core_op", node.op)).__name__
    return f"teach all samplers this one with `pymc_dapper.action_of.register({name})`"
