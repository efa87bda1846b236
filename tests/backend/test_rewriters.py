"""Rewriters that were looked up before are those that PyTensor would look up again."""

import threading
from itertools import combinations, product

import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import FAST_COMPILE, get_mode, optdb
from pytensor.graph import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.rewriting.db import (
    EquilibriumDB,
    ProxyDB,
    RewriteDatabaseQuery,
    SequenceDB,
    TopoDB,
)

from pymc_dapper.backend.one_function.linker import ONE_FUNCTION
from pymc_dapper.backend.rewriters import KINDS, rewriters_found_once

MODES = {"ours": ONE_FUNCTION, "numba": get_mode("NUMBA"), "compile": FAST_COMPILE}
CHANGES = {
    "as it is": lambda mode: mode,
    "including": lambda mode: mode.including("local_remove_check_parameter"),
    "excluding": lambda mode: mode.excluding("inplace"),
    "without a database": lambda mode: mode.excluding("canonicalize"),
    "without a rewriter": lambda mode: mode.excluding("local_mul_canonizer"),
}
QUERIES = {
    names: CHANGES[names[1]](MODES[names[0]])._optimizer for names in product(MODES, CHANGES)
}


def flat(rewriter):
    """List what a rewriter is made of, by name, in its order."""
    parts = [type(rewriter).__name__, rewriter.name]
    inner = []
    if hasattr(rewriter, "node_tracker"):
        inner += rewriter.node_tracker.get_rewriters()
        inner += rewriter.global_rewriters + rewriter.final_rewriters + rewriter.cleanup_rewriters
        parts.append(rewriter.max_use_ratio)
    elif hasattr(rewriter, "data"):
        inner += rewriter.data
    elif hasattr(rewriter, "node_rewriter"):
        inner.append(rewriter.node_rewriter)
    elif hasattr(rewriter, "rewrites"):
        inner += rewriter.rewrites
    return [*parts, *(flat(x) for x in inner)]


def test_all_that_is_looked_up_is_what_pytensor_looks_up():
    expected = {names: flat(optdb.query(query)) for names, query in QUERIES.items()}
    # It differs by what is asked for.
    assert all(expected["ours", a] != expected["ours", b] for a, b in combinations(CHANGES, 2))
    with rewriters_found_once():
        for names, query in [*QUERIES.items(), *reversed(QUERIES.items())]:
            assert flat(optdb.query(query)) == expected[names], names


def test_a_setting_changed_meanwhile_is_heeded():
    query = QUERIES["numba", "as it is"]
    with rewriters_found_once():
        usual = flat(optdb.query(query))
        with pytensor.config.change_flags(optdb__max_use_ratio=17.0):
            changed = flat(optdb.query(query))
            assert changed != usual
        assert flat(optdb.query(query)) == usual
    with pytensor.config.change_flags(optdb__max_use_ratio=17.0):
        assert flat(optdb.query(query)) == changed


def trackers(rewriter):
    return [x.node_tracker for x in rewriter.data if hasattr(x, "node_tracker")]


def test_what_rewriters_are_for_is_worked_out_once():
    query, other = QUERIES["ours", "as it is"], QUERIES["ours", "excluding"]
    with rewriters_found_once():
        first = trackers(optdb.query(query))
        with rewriters_found_once():
            assert trackers(optdb.query(query)) == first
        # What a tag leaves out changes one database, and no other.
        assert set(first) & set(trackers(optdb.query(other)))
    assert not set(first) & set(trackers(optdb.query(query)))


def test_pytensor_asks_as_before_afterwards_and_in_other_threads():
    def other():
        found.extend(trackers(optdb.query(query)))

    query, found = QUERIES["ours", "as it is"], []
    with rewriters_found_once():
        first, thread = trackers(optdb.query(query)), threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(found) == len(first)
    assert not set(first) & set(found)
    assert {kind: kind.query for kind in KINDS} == KINDS
    with pytest.raises(KeyboardInterrupt), rewriters_found_once():
        raise KeyboardInterrupt
    assert {kind: kind.query for kind in KINDS} == KINDS
    assert not set(first) & set(trackers(optdb.query(query)))


def test_a_database_in_two_places_stays_in_both():
    inner, outer = EquilibriumDB(), SequenceDB()
    inner.register("merge", MergeOptimizer(), "all")
    outer.register("first", ProxyDB(inner), "all", position=1)
    outer.register("second", ProxyDB(inner), "all", position=2)
    outer.register("third", TopoDB(inner), "all", position=3)
    query = RewriteDatabaseQuery(include=["all"])
    expected = flat(outer.query(query))
    assert [x[1] for x in expected[2:]] == ["first", "second", "third"]
    with rewriters_found_once():
        for _ in range(2):
            assert flat(outer.query(query)) == expected


def test_what_isnt_said_by_tags_is_asked_anew():
    inner, outer = EquilibriumDB(), SequenceDB()
    inner.register("merge", MergeOptimizer(), "all")
    outer.register("inner", inner, "all", position=1)
    query = RewriteDatabaseQuery(include=["all"])
    none = RewriteDatabaseQuery(include=["all"], subquery={"inner": query.excluding("merge")})
    more = query.register((MergeOptimizer(), 2.0))
    with rewriters_found_once():
        usual = flat(outer.query(query))
        assert flat(outer.query(none)) != usual
        assert len(flat(outer.query(more))) == len(usual) + 1
        assert flat(outer.query("+all")) == usual
        assert len(flat(outer.query("+all", position_cutoff=0.5))) < len(usual)


def test_what_is_registered_later_is_seen_next_time():
    database, query = EquilibriumDB(), RewriteDatabaseQuery(include=["all"])
    database.register("first", MergeOptimizer(), "all")
    with rewriters_found_once():
        assert len(database.query(query).global_rewriters) == 1
    database.register("second", MergeOptimizer(), "all")
    with rewriters_found_once():
        assert len(database.query(query).global_rewriters) == 2


def test_graphs_are_rewritten_alike():
    def rewritten():
        x, y = pt.vectors("x", "y")
        logp = pm.logp(pm.Normal.dist(x, pt.exp(y)), x * y).sum() + pt.log(pt.exp(x) / y).sum()
        graph = FunctionGraph([x, y], [logp, *pt.grad(logp, [x, y])])
        ONE_FUNCTION.optimizer.rewrite(graph)
        return pytensor.dprint(graph, file="str")

    expected = rewritten()
    with rewriters_found_once():
        assert [rewritten() for _ in range(2)] == [expected] * 2
