"""Names for readers: of attentions and arms, in figures, tables and sentences."""

import pytest

from orbits.runs import naming
from orbits.runs.naming import arm, display, heading, in_box, in_prose, sentence


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("softmax", "softmax"),
        ("lssar p=15", "LSSAR, p = 15"),
        ("lssar p=15, untrained", "LSSAR, p = 15, random weights"),
        ("lssar p=15, off to step 400", "LSSAR, p = 15, re-weighted from step 400"),
        ("softmax_neg", "softmax neg"),
        ("relu_wortsman", "ReLU over length"),
        ("lazy, pretrained", "Lazy, pre-trained"),
        ("itransformer", "iTransformer"),
        ("linear autoregression", "linear autoregression"),
        ("2-NN on the true state", "2-NN on the true state"),
        (
            "true force with the errors of lssar p=3, scratch, None labels",
            "true force + errors of LSSAR, p = 3, from scratch",
        ),
    ],
)
def test_a_label_is_shown_as_a_reader_knows_it(label, name):
    assert display(label) == name


def test_arms_have_names():
    assert arm("untrained") == "random weights"
    assert arm("force head") == "force head"
    assert arm("pretrained on newton") == "pre-trained on Newton's law"
    assert arm("trained on power_1_5") == "trained on r^-1.5"


def test_a_table_names_models_where_its_column_does():
    assert in_box("model", "lssar p=15") == "LSSAR, p = 15"
    assert in_box("trained", "pretrained, 5") == "pre-trained, 5"
    assert in_box("who", "lssar p=15, first stage first") == "LSSAR, p = 15, first stage first"
    assert in_box("who", "power_1_5") == "r^-1.5"
    assert in_box("variant", "sliding_window") == "sliding window"
    assert in_box("variant", "zeros_no_gate") == "ZeroS no gate"
    assert in_box("problem", "in_context_recall") == "in context recall"
    assert in_box("what", "a call of f_x(1), or --n_test 3") == "a call of f_x(1), or --n_test 3"
    assert in_box("exam", "lazy") == "lazy"
    assert in_box("pair", "lssar p=15 - softmax") == "LSSAR (p = 15) - softmax"
    assert in_box("row less column", "lssar p=15") == "LSSAR, p = 15"


def test_headings_of_columns_that_are_models_name_them():
    assert heading("lssar p=15") == "LSSAR (p = 15)"
    assert heading("gated_deltanet") == "gated DeltaNet"
    assert heading("r2_angular_momentum") == "R² angular momentum"


def test_a_whole_sentence_begins_with_a_capital_letter():
    assert sentence("softmax goes on by r^-2.") == "Softmax goes on by r^-2."
    assert sentence("radial_velocity, 12 steps") == "Radial velocity, 12 steps"
    for same in ("r^-2 goes on", "k-NN is ahead", "m1/r2 is one", "exp(x) grows", "12 steps", ""):
        assert sentence(same) == same


def test_a_sentence_names_models_and_keeps_words_and_commands():
    said = in_prose("lssar p=15's loss is 2.1, lssa and lazy have 2.0; 3 zeros, linear in d.")
    assert said == "LSSAR (p = 15)'s loss is 2.1, LSSA and Lazy have 2.0; 3 zeros, linear in d."
    for same in ("--attention=lssar", "--n_test 3", "newton/lssar_1.py", "softmax and sigmoid"):
        assert in_prose(same) == same
    assert in_prose("lazy, untrained 1") == "Lazy, random weights 1"
    said = in_prose("Trained under power_2_5, in star_heavier: no difference for zeros, zeros_sm.")
    assert said == "Trained under r^-2.5, in star heavier: no difference for ZeroS, ZeroS-SM."


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0887, "0.089"), (1e-6, "0.000001"), (9.96, "10"), (371.2, "370"),
                         (2.34e6, "2,300,000"), (1.0, "1")]
)  # fmt: skip
def test_two_digits_are_never_a_power_of_ten(value, shown):
    assert naming.two_digits(value) == shown
