"""Laws by formula: what is refused, and what keeps nobody busy."""

import pytest

from orbits import laws


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("k*m1*m2/r**1e400", "holds a number that is too large"),
        ("k*m1*m2/r**2*exp(exp(exp(exp(9.0))))", "no finite real value"),
        ("k*m1*m2/r**2*exp(10**100)", "numbers that are too large"),
        ("k*m1*m2/r**2*sqrt(-1)", "has no real value"),
        ("k*m1*m2/r**2*asin(2)", "no finite real value"),
        ("k*\u217f1*m1*m2/r**2", "holds '\u217f', which no formula does"),
        ("k*m1*m2/r**2 # x", "holds '#'"),
        ("k*m1*m2/r**1_0", "holds '1_'"),
        ("k*m1*m2/r**2\n", "holds '\\n'"),
    ],
)
def test_a_formula_without_a_value_or_of_odd_letters_is_refused(formula, fault):
    with pytest.raises(ValueError, match="law ") as error:
        laws.get(formula)
    assert fault in str(error.value)


def test_a_constant_may_end_in_a_digit_and_a_word():
    law = laws.Law(
        name="mine",
        expression="k*m1*m2/(r**2+r0_soft**2)",
        reference="-",
        parameters={"k": 2.0, "r0_soft": 1.0},
        units={"k": "-", "r0_soft": "AU"},
    )
    assert law.magnitude(1.0, 1.0, 1.0) == 1
    with pytest.raises(ValueError, match="'\u03bb', which cannot name a constant"):
        laws.Law("mine", "r*m1*m2*\u03bb", "-", {"\u03bb": 1.0}, {"\u03bb": "-"})


def test_a_formula_of_several_forms_has_no_exponents_and_keeps_nobody_busy():
    nested = "r"
    for _ in range(15):
        nested = f"Max(1,Min(2,{nested})*r)"
    assert laws.get(f"m1*m2*{nested}").exponents is None
