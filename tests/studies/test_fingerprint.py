"""Which changes of a user's code are seen, and which don't count."""

import sys
from functools import lru_cache, partial
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from pymc_dapper.studies.fingerprint import differences, fingerprint

CODE = """
import numpy as np

N = 20


def mechanism(scale=1.0):
    return (lambda x: x + scale)(N)


def simulate(rng, share):
    return [mechanism() for _ in range(3)]


def build(released, share):
    return released["x"]
"""


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import code as a user's module would be: another file each time."""

    def imported(code=CODE):
        name = f"analysis_{len(list(tmp_path.iterdir()))}"
        file = tmp_path / f"{name}.py"
        file.write_text(code)
        spec = spec_from_file_location(name, file)
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return imported


def found(module):
    return fingerprint(module.simulate, module.build)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(3)", "range(4)"),
        ('released["x"]', 'released["y"]'),
        ("scale=1.0", "scale=2.0"),
        ("N = 20", "N = 21"),
    ],
)
def test_a_change_in_the_file_of_a_function_is_seen(old, new, imported):
    was = found(imported())
    assert old in CODE
    assert differences(was, found(imported(CODE.replace(old, new)))) == [
        "the code of 'simulate' has changed",
        "the code of 'build' has changed",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda code: code,
        lambda code: code.replace("N = 20", "\n\nN = 20  # people"),
        lambda code: code.replace("return released", "# released\n    return released"),
        lambda code: code.replace("mechanism() for", "mechanism(\n    ) for"),
    ],
)
def test_comments_and_layout_do_not_count(change, imported):
    assert differences(found(imported()), found(imported(change(CODE)))) == []


def test_arguments_that_were_filled_in_count(imported):
    simulate, build = imported().simulate, imported().build
    one, other = (fingerprint(partial(simulate, share=x), build) for x in (0.3, 0.4))
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def test_wrapped_functions_are_looked_into(imported):
    changed = imported(CODE.replace("N = 20", "N = 21"))
    one, same, other = (
        fingerprint(lru_cache(x.simulate), len) for x in (imported(), imported(), changed)
    )
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def test_objects_that_can_be_called_have_the_code_of_their_class(imported):
    code = "class Simulate:\n    def __call__(self, rng):\n        return 1"
    one, same, other = (
        fingerprint(imported(x).Simulate(), len) for x in (code, code, code.replace("1", "2"))
    )
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def test_a_function_without_a_file_is_none_of_another_name():
    """As typed into an interpreter that keeps no source."""
    names = {}
    exec("def simulate(rng): return 1\ndef other(rng): return 1", names)
    one, same, other = (fingerprint(names[x], len) for x in ("simulate", "simulate", "other"))
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def test_code_of_another_python_is_not_compared(imported):
    was = found(imported())
    was["versions"]["python"] = "3.1"
    [told] = differences(was, found(imported(CODE.replace("range(3)", "range(4)"))))
    assert told.startswith("python was 3.1, is now ")
