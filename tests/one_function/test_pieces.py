"""Long functions are written as several short ones."""

import numpy as np

from pymc_dapper.one_function import pieces
from pymc_dapper.one_function.pieces import in_pieces


def evaluated(functions, *arguments):
    names = {"np": np}
    exec("\n\n".join(functions.values()), names)
    return names["whole"](*arguments)


LINES = [
    "a1 = np.empty(3)",
    "s2 = 0.0",
    "for i3 in range(3):",
    "    t4 = x0[i3]",
    "    s2 = s2 + t4",
    "    a1[i3] = s2",
    "t5 = s2 + 1.0",
    "if t5 < 0: raise ValueError('below zero')",
    "a6, a7 = np.divmod(x0, t5)",
]


def test_pieces_do_what_the_whole_does(monkeypatch):
    x, found = np.array([1.5, 4.0, 7.25]), []
    for longest in (1, 2, 4, 100):
        monkeypatch.setattr(pieces, "LONGEST", longest)
        functions = in_pieces("whole", ["x0"], LINES, "(a1, t5, a7)")
        found.append((len(functions), evaluated(functions, x)))
    # Loops stay whole: what is in one is counted with its first line.
    assert [n for n, _ in found] == [7, 5, 3, 1]
    for _, values in found:
        for mine, whole in zip(values, found[-1][1], strict=True):
            np.testing.assert_array_equal(mine, whole)


def test_each_is_given_and_gives_what_is_used_only(monkeypatch):
    monkeypatch.setattr(pieces, "LONGEST", 6)
    functions = in_pieces("whole", ["x0", "x1"], LINES, "t5")
    first, second, _ = functions.values()
    assert first.startswith("def whole_1(x0):")
    assert first.endswith("return s2")
    assert second.startswith("def whole_2(x0, s2):")
    assert second.endswith("return t5")
