"""Claims of cells, between processes and between threads of one."""

import errno
import subprocess
import sys
import threading

import pytest

from pymc_dapper.studies import claims
from pymc_dapper.studies.claims import Claims

# The module alone: a process that imports the whole package takes seconds.
HOLD = """
import runpy, sys
claims = runpy.run_path(sys.argv[1])["Claims"](__import__("pathlib").Path(sys.argv[2]))
print([claims.take(name) for name in sys.argv[3:]], flush=True)
sys.stdin.read()
"""


def another_process(path, *names):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, claims.__file__, str(path), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def test_what_another_process_claimed_is_free_when_it_is_killed(tmp_path):
    mine = Claims(tmp_path / "claims")
    assert mine.take("c")
    process, took = another_process(tmp_path / "claims", "a", "b", "c")
    try:
        assert took == "[True, True, False]"
        assert not mine.take("a")
        assert mine.take("d")
    finally:
        process.kill()
        process.communicate()
    assert mine.take("a")
    assert mine.take("b")


def test_what_was_released_is_free(tmp_path):
    mine = Claims(tmp_path / "claims")
    for name in "abc":
        assert mine.take(name)
    mine.release("b")
    mine.release("b")
    process, took = another_process(tmp_path / "claims", "a", "b", "c")
    process.communicate("")
    assert took == "[False, True, False]"
    mine.close()
    process, took = another_process(tmp_path / "claims", "a", "b", "c")
    process.communicate("")
    assert took == "[True, True, True]"


def test_two_studies_of_one_process_do_not_share_claims(tmp_path):
    """Catches locks that a second study gives up for the first, by closing the file."""
    first, second = (Claims(tmp_path / "claims") for _ in range(2))
    taken = []
    threads = [
        threading.Thread(target=lambda x=x: taken.extend(k for k in range(500) if x.take(str(k))))
        for x in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(500))
    assert first.take("a")
    second.close()
    process, took = another_process(tmp_path / "claims", "a")
    process.communicate("")
    assert took == "[False]"


def test_a_new_file_at_the_same_place_has_claims_of_its_own(tmp_path):
    old = Claims(tmp_path / "claims")
    assert old.take("a")
    (tmp_path / "claims").unlink()
    assert Claims(tmp_path / "claims").take("a")


def test_a_file_system_without_locks_is_told_once(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(claims.fcntl, "lockf", refuse)
    mine = Claims(tmp_path / "claims")
    with pytest.warns(UserWarning, match="without locks .No locks available.*same time") as caught:
        assert mine.take("a")
    assert mine.take("b")
    assert len(caught) == 1
    mine.close()
