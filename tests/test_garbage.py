"""Garbage collection skips old objects, and its settings are restored afterwards."""

import gc

import pytest

from pymc_dapper.garbage import SEARCHED, searching_new_garbage_only


def nothing_is_searched():
    """Whether all that is old is left out: to count that takes a second."""
    return not gc.get_objects(generation=2)


@pytest.mark.usefixtures("searches_as_users_have_them")
def test_settings_of_garbage_collection_are_always_restored():
    with searching_new_garbage_only():
        with searching_new_garbage_only():
            pass
        assert nothing_is_searched()
        assert gc.get_threshold() == (SEARCHED, 10, 10)
    assert gc.get_freeze_count() == 0
    with pytest.raises(MemoryError), searching_new_garbage_only():
        raise MemoryError
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == (2000, 10, 10)
    for rarely in (0, 2 * SEARCHED):  # as somebody decided already
        gc.set_threshold(rarely, 10, 10)
        with searching_new_garbage_only():
            assert gc.get_threshold() == (rarely, 10, 10)
        assert gc.get_threshold() == (rarely, 10, 10)


@pytest.mark.usefixtures("searches_as_users_have_them")
def test_what_somebody_else_left_out_of_searches_stays_out():
    gc.freeze()
    try:
        with searching_new_garbage_only():
            pass
        assert nothing_is_searched()
    finally:
        gc.unfreeze()
