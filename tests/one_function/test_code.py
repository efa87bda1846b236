"""Lines of source in nested loops."""

from pymc_dapper.one_function.code import Code, Term


def test_expressions_stand_where_their_operands_are_known():
    code = Code()
    outside = Term("x")
    with code.loop("n") as i, code.loop(3) as j:
        code.add(f"use({code.evaluate('x + 1', outside).text})")
        code.add(f"use({code.evaluate(f'a[{i.text}]', i).text}, {j.text})")
        assert code.depth == 2
    assert [line.lstrip() for line in code.lines] == [
        "t3 = x + 1",
        "for i1 in range(n):",
        "t4 = a[i1]",
        "for i2 in range(3):",
        "use(t3)",
        "use(t4, i2)",
    ]


def test_an_expression_is_evaluated_once():
    code = Code()
    assert code.evaluate("x + 1") == code.evaluate("x + 1")
    code.once("check(x)")
    code.once("check(x)")
    assert len(code.lines) == 2


def test_one_can_write_ahead_of_open_loops():
    code = Code()
    with code.loop("n"):
        code.add("second")
        with code.outside():
            code.add("first")
    assert [line.strip() for line in code.lines if "range" not in line] == ["first", "second"]


def test_what_has_the_same_key_has_one_name():
    code = Code()
    assert code.refer("f", len, "key") == code.refer("f", len, "key")
    assert code.refer("f", max, None) != code.refer("f", max, None)
