"""Machine code on disk has a digest: damaged code raises an error and never runs."""

import re
from pathlib import Path

import pytest
from numba.core.caching import IndexDataCacheFile
from pytensor.link.numba import cache

from pymc_dapper.backend.accelerate.kept import WithDigest
from pymc_dapper.backend.accelerate.switch import SWITCH
from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.steps.building import telling_why
from tests.backend.test_jit import times


def test_what_is_saved_is_loaded_under_its_own_key(tmp_path):
    file = WithDigest(str(tmp_path), "function", 0)
    file.save("key", ["machine code"])
    assert file.load("key") == ["machine code"]
    assert file.load("another key") is None
    # What is kept with accelerations off lies beside it, and neither is taken for the other.
    plain = IndexDataCacheFile(str(tmp_path), "function", 0)
    assert plain.load("key") is None
    plain.save("key", "other machine code")
    assert (plain.load("key"), file.load("key")) == ("other machine code", ["machine code"])


def test_code_of_another_key_is_told(tmp_path, monkeypatch):
    """Two processes save at once: the other's index is the last, and this one's code."""
    file, other = (WithDigest(str(tmp_path), "function", 0) for _ in range(2))
    save = file._save_data

    def save_after_the_other(name, data):
        Path(file._index_path).unlink()  # as it read the index before this one wrote it
        other.save("other types", "other code")
        save(name, data)

    monkeypatch.setattr(file, "_save_data", save_after_the_other)
    file.save("types", "code")
    assert file.load("types") is None
    with pytest.raises(ValueError, match="another digest"):
        file.load("other types")


def test_code_for_types_of_another_version_is_not_there(tmp_path, monkeypatch):
    """A class in a signature was removed: what was kept can't be read, and is made anew."""
    file = WithDigest(str(tmp_path), "function", 0)
    file.save(Removed, "machine code")
    assert file.load(Removed) == "machine code"
    removed = Removed
    monkeypatch.delitem(globals(), "Removed")
    assert file.load(removed) is None


class Removed:
    """A type in a signature."""


def test_a_bit_that_flips_is_told(tmp_path, monkeypatch):
    """A bit of the machine code: numba by itself would run it, and so does the plain way."""
    monkeypatch.setattr(cache, "NUMBA_CACHE_PATH", tmp_path)
    assert kept_on_disk(times(2.5))(2.0) == 5.0
    [file] = tmp_path.glob("*.nbc")
    content = file.read_bytes()
    start = content.index(b"\x7fELF") if b"\x7fELF" in content else len(content) // 2
    for place in range(start, len(content), (len(content) - start) // 10):
        flipped = bytes([content[place] ^ 1])
        file.write_bytes(content[:place] + flipped + content[place + 1 :])
        with (
            pytest.raises(Exception, match=re.escape(str(tmp_path))),
            telling_why("DapperStep", ["x"]),
        ):
            kept_on_disk(times(2.5))(2.0)
    file.write_bytes(content)
    assert kept_on_disk(times(2.5))(2.0) == 5.0


def test_without_accelerations_files_are_numbas_own(monkeypatch):
    monkeypatch.setenv(SWITCH, "1")
    assert type(kept_on_disk(times(2.5))._cache._cache_file) is IndexDataCacheFile
    monkeypatch.delenv(SWITCH)
    assert type(kept_on_disk(times(2.5))._cache._cache_file) is WithDigest
