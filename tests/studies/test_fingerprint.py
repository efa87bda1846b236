"""Which changes of a user's code are seen, and which don't count."""

import sys
from functools import lru_cache, partial
from types import ModuleType

import numpy as np
import pytest

from pymc_dapper.studies.fingerprint import differences, fingerprint

CODE = '''
import numpy as np
import helpers

N = 20
TABLE = {"small": [1, 2], "large": [3, 4]}
WEIGHTS = np.arange(2000.0)


class Office:
    def __init__(self, scale):
        self.scale = scale

    def release(self, x):
        return x + self.scale


OFFICE = Office(2.0)


def mechanism(scale=1.0):
    return (lambda x: x + scale)(N)


def simulate(rng, share):
    """Simulate."""
    inner = [mechanism() for _ in range(3)]
    return OFFICE.release(TABLE["small"][0]), helpers.shifted(WEIGHTS), {"a", "b", "c"}


def build(released, share):
    return released["x"]


def unused():
    return 1
'''
HELPERS = "def shifted(x):\n    return x + 1\n\n\ndef other(x):\n    return x"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import code as a user's modules would be."""

    def imported(code=CODE, helpers=HELPERS):
        modules = {}
        for name, text in (("helpers", helpers), ("analysis", code)):
            modules[name] = module = ModuleType(name)
            module.__file__ = str(tmp_path / f"{name}.py")
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile(text, module.__file__, "exec"), vars(module))
        return modules["analysis"]

    return imported


def found(module):
    return fingerprint(module.simulate, module.build)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("range(3)", "range(4)", "simulate"),
        ('released["x"]', 'released["y"]', "build"),
        ("scale=1.0", "scale=2.0", "mechanism"),
        ("x + scale)", "x - scale)", "mechanism"),
        ("N = 20", "N = 21", "N"),
        ("[3, 4]", "[3, 5]", "TABLE"),
        ("Office(2.0)", "Office(3.0)", "OFFICE"),
        ("x + self.scale", "x * self.scale", "OFFICE"),
        ("np.arange(2000.0)", "np.arange(2000.0) + (np.arange(2000) == 999)", "WEIGHTS"),
        ('"c"}', '"d"}', "simulate"),
    ],
)
def test_a_change_of_what_is_used_is_seen(old, new, name, imported):
    was = found(imported())
    assert old in CODE
    assert f"the code of '{name}' has changed" in differences(
        was, found(imported(CODE.replace(old, new)))
    )


def test_a_change_in_another_module_is_seen(imported):
    changed = imported(helpers=HELPERS.replace("x + 1", "x + 2"))
    assert differences(found(imported()), found(changed)) == ["the code of 'shifted' has changed"]


@pytest.mark.parametrize(
    "change",
    [
        lambda code: code,
        lambda code: code.replace("N = 20", "\n\nN = 20  # people"),
        lambda code: code.replace("return OFFICE", "# released\n    return OFFICE"),
        lambda code: code.replace("return 1", "return 2"),
        lambda code: code.replace("shifted(WEIGHTS)", "shifted(\n        WEIGHTS\n    )"),
    ],
)
def test_what_does_not_matter_is_not_seen(change, imported):
    assert differences(found(imported()), found(imported(change(CODE)))) == []


def test_constants_of_sets_are_the_same_in_each_process(imported):
    """Catches an order by hashes, which differ from one process to the next."""
    code = CODE.replace('{"a", "b", "c"}', 'share in {"a", "b", "c"}')
    orders = [frozenset(x) for x in (["a", "b", "c"], ["c", "b", "a"])]
    fingerprints = []
    for order in orders:
        module = imported(code)
        function = module.simulate
        consts = [order if isinstance(x, frozenset) else x for x in function.__code__.co_consts]
        function.__code__ = function.__code__.replace(co_consts=tuple(consts))
        fingerprints.append(found(module))
    assert fingerprints[0] == fingerprints[1]


def test_arguments_that_were_filled_in_count(imported):
    simulate, build = imported().simulate, imported().build
    one, other = (fingerprint(partial(simulate, share=x), build) for x in (0.3, 0.4))
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def closure(n, wrap=lambda f: f):
    @wrap
    def simulate(rng):
        return n

    return simulate


def test_what_a_function_encloses_counts():
    one, same, other = (fingerprint(closure(n), len) for n in (1, 1, 2))
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'n' has changed"]


def test_wrapped_functions_are_looked_into():
    one, same, other = (fingerprint(closure(n, lru_cache), len) for n in (1, 1, 2))
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'n' has changed"]


class Recursive:
    """Holds itself, and a table that shows a few of its rows only."""

    def __init__(self, last):
        self.me = [self]
        self.table = np.array([*range(5000), last], dtype=object)

    def __call__(self, rng):
        return self.me


def test_objects_that_can_be_called_are_looked_into():
    one, same, other = (fingerprint(Recursive(n), len) for n in (1, 1, 2))
    assert differences(one, same) == []
    assert differences(one, other) == ["the code of 'simulate' has changed"]


def test_code_of_another_python_is_not_compared(imported):
    was = found(imported())
    was["versions"]["python"] = "3.1"
    [told] = differences(was, found(imported(CODE.replace("range(3)", "range(4)"))))
    assert told.startswith("python was 3.1, is now ")
