"""PyTensor's rewriters, looked up once for all graphs of a model.

For each graph, PyTensor asks its databases for the rewriters that a mode includes, and works out
anew which of them are for which operations: a tenth of the calls before a first draw, where all
that is compiled was compiled before. Most graphs ask for the same, or for what differs by tags that
only one of the databases knows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

from pytensor import config
from pytensor.graph.rewriting.db import (
    EquilibriumDB,
    RewriteDatabase,
    RewriteDatabaseQuery,
    SequenceDB,
)

from pymc_dapper.backend.flags import changed

KINDS = {kind: kind.query for kind in (EquilibriumDB, SequenceDB)}
"""What databases are, whose rewriters keep nothing of a graph, and how PyTensor asks them."""


class _Found:
    """What was looked up, and the tags that databases know."""

    def __init__(self) -> None:
        self.rewriters: dict[Any, Any] = {}
        self._tags: dict[RewriteDatabase, set[str]] = {}

    def tags(self, database: RewriteDatabase) -> set[str]:
        """Collect the tags of a database, and of those in it."""
        if database not in self._tags:
            known = {tag: rewriters for tag, rewriters in database.__db__.items() if rewriters}
            inner = [x for found in known.values() for x in found if isinstance(x, RewriteDatabase)]
            # Some are another one, under a name or an order of their own.
            tags = map(self.tags, {getattr(x, "db", x) for x in inner})
            self._tags[database] = set(known).union(*tags)
        return self._tags[database]

    def key(self, database: RewriteDatabase, query: RewriteDatabaseQuery) -> Any:
        """Say what tells this query from others to the same database."""
        known = self.tags(database).__contains__
        return (
            database,
            tuple(filter(known, query.include)),
            tuple(query.require),
            tuple(filter(known, query.exclude)),
            query.position_cutoff,
            config.optdb__max_use_ratio,
        )


_found: ContextVar[_Found | None] = ContextVar("found", default=None)


@contextmanager
def rewriters_found_once() -> Iterator[None]:
    """Keep what this thread looks up, until here is left: what is registered later is seen then."""
    if _found.get() is not None:
        yield
        return
    token = _found.set(_Found())
    try:
        with (
            changed(EquilibriumDB, "query", _in_equilibrium),
            changed(SequenceDB, "query", _in_turn),
        ):
            yield
    finally:
        _found.reset(token)


def _query(kind: type, database: Any, *query: Any, **options: Any) -> Any:
    found = _found.get()
    if found is None or options or not _is_plain(*query):
        return KINDS[kind](database, *query, **options)
    key = found.key(database, *query)
    if key not in found.rewriters:
        found.rewriters[key] = KINDS[kind](database, *query)
    return copy(found.rewriters[key])  # since whoever asks gives it a name


def _is_plain(query: Any, *others: Any) -> bool:
    """Whether all that is asked for is said by tags."""
    is_query = isinstance(query, RewriteDatabaseQuery) and not others
    return is_query and not (query.subquery or query.extra_rewrites)


def _in_equilibrium(database: Any, *query: Any, **options: Any) -> Any:
    return _query(EquilibriumDB, database, *query, **options)


def _in_turn(database: Any, *query: Any, **options: Any) -> Any:
    return _query(SequenceDB, database, *query, **options)
