"""Which variables of a record are counted together: cliques of a graph in which all are connected.

A variable is counted with those that its probabilities depend on, and with those that something
sees together with it. Let j be the last of these. The others must be in the table of j, too: then
how many records have these values is a margin of that table. So the graph is triangulated, and the
tables are those of a hidden tree (running intersection; Lauritzen 1996, Graphical models).
"""

from collections.abc import Collection, Iterable

Given = tuple[tuple[int, ...], ...]
"""For each variable, the numbers of the earlier ones that it is counted together with."""


def given_of(n_variables: int, together: Iterable[Collection[int]]) -> Given:
    """Say which earlier variables each is counted with.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    together : iterable of collections of int
        Numbers of variables that have to be in one table.
    """
    given: list[set[int]] = [set() for _ in range(n_variables)]
    for numbers in together:
        given[max(numbers)].update(set(numbers) - {max(numbers)})
    for each in reversed(given):
        if each:
            given[max(each)] |= each - {max(each)}
    return tuple(tuple(sorted(each)) for each in given)


def all_earlier(n_variables: int) -> Given:
    """Say that each variable is counted with all earlier ones: in the end, all in one table."""
    return tuple(tuple(range(k)) for k in range(n_variables))


def cliques(given: Given) -> list[tuple[int, ...]]:
    """Return the variables of each table that isn't a margin of a later one."""
    tables = [(*earlier, k) for k, earlier in enumerate(given)]
    return [x for x in tables if not any(set(x) <= set(y) for y in given[x[-1] + 1 :])]
