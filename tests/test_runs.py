"""Files come as a whole, and a directory has results of one run."""

import errno
import os

import pytest

from pymc_dapper.runs import claim, claimed, whole

THERE = "target='x' has results"


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "cell.parquet"
    with whole(file) as beside:
        assert beside.suffix == ".parquet"
        beside.write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(OSError, match="No space left"), whole(file) as beside:
        beside.write_bytes(b"after")
    with pytest.raises(TypeError), whole(file) as beside:
        beside.write_bytes("not bytes")
    assert [path.name for path in tmp_path.iterdir()] == ["cell.parquet"]
    assert file.read_bytes() == b"before"


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_processes_of_the_same_number_write_different_unfinished_files(tmp_path, monkeypatch):
    """Those of two machines may have the same; this one stands for both."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    file = tmp_path / "part.npz"
    with whole(file) as one, whole(file) as other:
        assert one != other
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert [path.name for path in tmp_path.iterdir()] == ["part.npz"]
    assert file.read_bytes() == b"one"


def test_the_first_run_is_written_down_and_others_are_compared_with_it(tmp_path):
    file = tmp_path / "_run.json"
    assert claimed(file, THERE) is None
    mine = {"seed": 1, "draws": 5, "keep": ["a"], "fast": False}
    assert claim(file, mine, THERE) == mine
    assert claimed(file, THERE) == mine
    # As it was written, so that digests of it stay.
    assert str(claim(file, {**mine, "fast": 0}, THERE)) == str(mine)
    with pytest.raises(
        ValueError,
        match=f"{THERE} with other settings: seed was 1, is now 2; draws was 5, is now 6",
    ):
        claim(file, {**mine, "seed": 2, "draws": 6}, THERE)
    with pytest.raises(ValueError, match=r"chains was None, is now 4. .* give another directory"):
        claim(file, {**mine, "chains": 4}, THERE)
    assert claimed(file, THERE) == mine


@pytest.mark.parametrize("content", [b"", b"\xff", b'{"seed"', b"null", b"[1]"])
def test_what_is_damaged_is_refused(content, tmp_path):
    file = tmp_path / "_run.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{THERE}, but .*_run.json.* is damaged \(\w+Error\)"):
        claim(file, {"seed": 1}, THERE)
    assert file.read_bytes() == content
