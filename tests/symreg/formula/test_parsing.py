import ast
import builtins
import contextlib
import functools
import os

import numpy as np
import pytest
import sympy

from symreg.formula import bounded, parsing
from symreg.formula.evaluation import evaluate
from symreg.formula.parsing import parse
from tests.tiers import corners

NAMES = ("r", "m1", "m2")
AT = np.array([[2.0, 0.5, 3.0]])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("39.5*m1*m2/r**2", 39.5 * 0.5 * 3 / 4),
        ("-m1 + +m2 - 1", 1.5),
        ("r**-2.0", 0.25),
        ("r**(1/2)", 2**0.5),
        ("m2**m1", 3**0.5),
        ("square(m2) + inv(r)", 9.5),
        ("abs(m1 - m2) + Abs(m1)", 3.0),
        ("sin(r) + cos(r) + tan(r)", np.sin(2) + np.cos(2) + np.tan(2)),
        ("exp(log(m1) - sqrt(r))", 0.5 * np.exp(-(2**0.5))),
        ("2 ** 3", 8.0),
        ("1e-3", 1e-3),
    ],
)
def test_value_by_hand(text, value):
    assert evaluate(text, NAMES, AT) == pytest.approx([value], rel=1e-14)


HOSTILE = [
    # not Python's expression grammar, or not ours
    ("", "empty"),
    ("   ", "empty"),
    ("\n\t ", "empty"),
    ("r +", "not a formula"),
    ("(r", "not a formula"),
    ("r***2", "not a formula"),
    ("01*r", "not a formula"),
    ("lambda", "not a formula"),
    ("r = 1", "not allowed in a formula: '= 1'"),
    ("r := 1", "':= 1'"),
    ("r; m1", "'; m1'"),
    ("r ^ 2", "'^ 2'; a power is written **"),
    ("r // m1", "not allowed in a formula: 'r // m1'"),
    ("r @ m1", "'@ m1'"),
    ("~r", "'~r'"),
    ("r == m1 == m2", "'== m1 == m2'"),
    ("r is m1", "not allowed in a formula: 'r is m1'"),
    ("r if m1 else m2", "not allowed in a formula: 'r if m1 else m2'"),
    ("r, m1", "not allowed in a formula: '(r, m1)'"),
    # code
    ("__import__('os').system('true')", "not allowed in a formula"),
    ("__import__(r)", "unknown function '__import__'"),
    ("eval(r)", "unknown function 'eval'; choose from sin, cos"),
    ("canary()", "unknown function 'canary'"),
    ("r(m1)", "unknown function 'r'"),
    ("exp(r)(m1)", "not allowed in a formula"),
    ("(lambda: 1)()", "': 1)()'"),
    ("r.__class__", "'.__class__'"),
    ("[r for r in m1]", "'[r for r in m1]'"),
    ("r[0]", "'[0]'"),
    ("'r'", "not allowed in a formula"),
    ("f'{canary()}'", "not allowed in a formula"),
    ("r!", "not allowed in a formula"),
    ("r # type: int", "'# type: int'"),
    ("r\n+ m1", "'\\n+ m1'"),
    ("r \\\n+ m1", "not allowed in a formula"),
    ("r\0", "'\\x00'"),
    ("\0" * 3000, "not allowed in a formula"),
    # what looks like something else
    ("ⅿ1*r", "'\\u217f' (SMALL ROMAN NUMERAL ONE THOUSAND)"),
    ("ｒ", "(FULLWIDTH LATIN SMALL LETTER R)"),
    ("２*r", "(FULLWIDTH DIGIT TWO)"),
    ("r²", "(SUPERSCRIPT TWO)"),
    ("r\u200b", "(ZERO WIDTH SPACE)"),
    ("\u202er", "(RIGHT-TO-LEFT OVERRIDE)"),
    ("\ud800", "(U+D800)"),
    ("\ufeffr", "(ZERO WIDTH NO-BREAK SPACE)"),
    # numbers and names
    ("True", "True"),
    ("None", "None"),
    ("1j", "'1j'"),
    ("1_000*r", "'1_000*r'"),
    ("0x10*r", "'0x10*r'"),
    ("1..2", "'1..2'"),
    ("1e", "'1e'"),
    ("1if r else m1", "not allowed in a formula"),
    ("1e999*r", "a number is too large"),
    ("9" * 400 + "*r", "a number is too large"),
    ("9" * 3999, "a number is too large"),
    ("9" * 3999 + "_", "not allowed in a formula"),
    ("inf", "unknown name 'inf'"),
    ("I", "unknown name 'I'; the variables are r, m1, m2"),
    ("exp", "unknown name 'exp'"),
    ("q" * 3999, "unknown name 'qqqq"),
    # calls
    ("sin()", "not allowed in a formula: 'sin()'"),
    ("sin(r, m1)", "not allowed in a formula: 'sin(r, m1)'"),
    ("sin(*r)", "not allowed in a formula: '*r'"),
    ("sin(x=r)", "'=r)'"),
    ("sin(**r)", "not allowed in a formula: 'sin(**r)'"),
    # not a finite real formula
    ("9.0**199*9.0**199*9.0**199 + exp(9.0**199*9.0**199)", "not a finite real number near"),
    ("exp(exp(exp(100)))", "not a finite"),
    ("1e308*10*r", "not a finite"),
    ("m1/0", "division by zero"),
    ("m1/(r - r)", "division by zero"),
    ("1/1e-400", "division by zero"),
    ("0**(-1)", "not a finite"),
    ("inv(r - r)", "not a finite"),
    ("log(0)", "not a finite"),
    ("sqrt(-2)", "not a finite"),
    ("(-2)**0.5", "not a finite"),
    ("sqrt(-r)", "not a real number"),
    ("r*(-2*m1)**(1/3)", "not a real number"),
    ("exp(0.5*log(-r))", "not a real number: 'log(-r)'"),
    ("sqrt(-2*" * 29 + "r" + ")" * 29, "not a real number"),
    # too large for computer algebra
    ("9.0**9.0**9.0**9.0", "a power inside an exponent"),
    ("2**(r**2)", "a power inside an exponent"),
    ("(((9*r)**99)**99)**99", "too large"),
    ("r**1e9", "exponent '1000000000.0' is too large; at most 200"),
    ("r**-999999999999999", "too large"),
    ("square(" * 12 + "r" + ")" * 12, "multiply to more than 200"),
    ("exp(99999999999999*log(3*r))", "too large"),
    ("r**(99999999999999*log(3*m1)/log(r))", "too large"),
    ("exp(1e300*log(2.5*r))", "too large"),
    # too large to read
    ("-" * 100 + "r", "nested more than 60 deep"),
    ("-" * 3999 + "r", "not a formula"),
    ("sin(" * 61 + "r" + ")" * 61, "nested more than 60 deep"),
    ("not " * 900 + "r", "nodes"),
    ("r**" * 1300 + "r", "nodes"),
    ("r if r else " * 300 + "r", "nodes"),
    ("+".join(["r"] * 900), "nodes"),
    ("(" * 300 + "r" + ")" * 300, "not a formula"),
    ("(" * 3999, "not a formula"),
    ("*" * 3999, "not a formula"),
    ("(" * 3000 + "r" + ")" * 3000, "the formula has 6001 characters; at most 4000"),
    ("r" * 10**6, "1000000 characters"),
    ("ⅿ" * 10**6, "1000000 characters"),
    (" " * 10**6 + "r", "1000001 characters"),
    ("r + log(-r)", "not a real number: 'log(-r)'"),
]


@pytest.fixture
def nothing_runs(monkeypatch):
    """Make any execution of a formula's text a failure."""

    def fail(*arguments, **keywords):
        pytest.fail(f"ran {arguments}")

    for name in ("eval", "canary"):
        monkeypatch.setattr(builtins, name, fail, raising=False)
    monkeypatch.setattr(os, "system", fail)


@pytest.mark.usefixtures("nothing_runs")
def test_hostile_text_is_refused_with_the_piece_named():
    for text, named in HOSTILE:
        try:
            found = parse(text, NAMES)
        except ValueError as error:
            message = str(error)
        else:
            pytest.fail(f"{text!r} was read as {found}")
        assert named in message, text
        assert len(message) < 160, text
        assert message.isprintable(), text
        # Evaluation needs no bound on numbers and powers, but refuses the same text otherwise.
        with contextlib.suppress(ValueError):
            assert evaluate(text, NAMES, AT).shape == (1,), text


@pytest.mark.parametrize("text", [None, 3, b"r", ["r"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ValueError, match="the formula is empty"):
        parse(text)


def test_a_megabyte_is_refused_unread(monkeypatch):
    monkeypatch.setattr(ast, "parse", lambda *_, **__: pytest.fail("it was read"))
    for text in ("r+" * 500_000, "9" * 10**6, "(" * 10**6, "\0" * 10**6, "é" * 10**6):
        with pytest.raises(ValueError, match="characters; at most 4000"):
            parse(text)


def test_a_long_sum_is_not_deep():
    assert evaluate("+".join(["r"] * 120), NAMES, AT) == [240.0]
    assert str(parse("*".join(["r"] * 120))) == "r**120"
    assert evaluate("/".join(["1"] + ["r"] * 70), NAMES, AT) == [2.0**-70]


BIG = "999999999999989"
HARD = [
    "+".join(f"{BIG}*r*m1**{i % 7}" for i in range(30)),
    "(" + "*".join([BIG + "*r"] * 20) + ")**199",
    "(((" + "*".join([BIG + "*r"] * 20) + ")**99)**2)**(1/3)",
    "exp(" + "+".join(f"{170 + i}*log({BIG[:12]}{i}*r)" for i in range(10, 30)) + ")",
    "abs(sqrt(r-m1)*" + "*".join(f"(r+{i}*m1+m2**{i})" for i in range(1, 22)) + ")",
    "1/(" + "+".join(f"1/(r+{i})" for i in range(40)) + ")",
    "sqrt(" + "*".join(f"(r-{i}*m1)" for i in range(40)) + ")",
    "(r/(" * 25 + "1" + " - 2.5))" * 25,
    "tan(r - m1*" * 18 + "r" + ")" * 18,
    "(r - " * 25 + "m1" + ")**(m2 - r)" * 25,
    "r**(sqrt(2*r)/sqrt(r) + sqrt(3*r)/sqrt(r) - sqrt(5*r)/sqrt(r))",
]


@pytest.mark.full
@pytest.mark.parametrize("text", corners(HARD, *HARD[1::3]), ids=lambda text: text[:30])
def test_reading_a_hard_formula_is_bounded_in_time(text, monkeypatch):
    with monkeypatch.context() as patch:  # numbers alone need no algebra
        patch.setattr(parsing, "_Builder", lambda *_: pytest.fail("algebra"))
        assert evaluate(text, NAMES, np.tile(AT, (1000, 1))).shape == (1000,)
    monkeypatch.setattr(bounded, "call", functools.partial(bounded.call, seconds=1.0))
    try:
        parse(text, NAMES)
    except ValueError as refusal:
        assert "sympy needs more than 1 s" in str(refusal)  # noqa: PT017


def test_a_function_name_cannot_be_a_variable():
    with pytest.raises(ValueError, match="exp is a function"):
        parse("exp", ("exp",))


def test_evaluation_is_nan_where_not_real():
    X = np.array([[0.5, 1.0, 1.0], [2.0, 1.0, 1.0]])
    values = evaluate("log(r - 1)", NAMES, X)
    assert np.isnan(values[0])
    assert values[1] == 0.0
    assert evaluate("3", NAMES, X).tolist() == [3.0, 3.0]


def test_evaluation_out_of_range_is_nan_or_infinite_not_an_exception():
    value = evaluate("(999*r)**200", NAMES, AT)
    assert not np.isfinite(value).any()


def test_an_expression_is_evaluated_as_it_prints():
    r, m1, _ = sympy.symbols(NAMES, positive=True)
    assert evaluate(39.5 * m1 * sympy.exp(-r) / r**2, NAMES, AT) == pytest.approx(
        [39.5 * 0.5 * np.exp(-2) / 4], rel=1e-14
    )
    assert np.isnan(evaluate(sympy.sqrt(-r), NAMES, AT)).all()


def test_whole_numbers_stay_exact():
    assert parse("r**2.0") == parse("r**2")
    assert parse("abs(m1)*r**(6/3)") == parse("m1*r*r")
    assert parse("0.5*4*r") == parse("2*r")


def test_evaluation_checks_the_shape():
    with pytest.raises(ValueError, match=r"\[n, 3\]"):
        evaluate("r", NAMES, np.ones((4, 2)))
