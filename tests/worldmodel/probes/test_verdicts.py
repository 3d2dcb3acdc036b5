"""Verdicts of probes: random weights and what learns nothing stand beside every number."""

from orbits.runs.result import Case, Metric, Result
from worldmodel.probes.linear import RECENT
from worldmodel.probes.read_out import recent_name
from worldmodel.probes.verdicts import speaks_of, verdict


def result(kind, variant, arm, seed, metric, value, **setting):
    case = Case("probe", kind, variant, arm, seed, setting=setting)
    details = {"checkpoint": {"trained_on": "newton"}}
    return Result(case, metrics={metric: Metric(value)}, details=details)


def rollout(variant, arm, values):
    return [
        result("rollout", variant, arm, seed, "planet_error", value, asked="next point")
        for seed, value in enumerate(values)
    ]


MODEL = rollout("softmax", "pretrained", (0.20, 0.21, 0.22))
LINE = rollout("linear extrapolation", "control", (0.1, 0.1, 0.1))


def test_a_model_that_a_line_beats_is_said_to_be():
    (said,) = verdict(
        "rollout", [*MODEL, *rollout("softmax", "untrained", (0.7, 0.71, 0.73)), *LINE]
    )
    assert "softmax 0.21 AU [0.185, 0.235] (random weights 0.713 AU, more)." in said
    assert said.endswith(" But linear extrapolation (without a network) does no worse: 0.1 AU.")


def test_random_weights_that_do_as_well_and_one_training_show_no_difference():
    (said,) = verdict("rollout", [*MODEL, *rollout("softmax", "untrained", (0.22, 0.2, 0.21))])
    assert ", no difference is shown)" in said
    (said,) = verdict("rollout", [*MODEL[:1], *rollout("softmax", "untrained", (0.7,))])
    assert ", too few trainings to compare)" in said


def test_a_model_from_outside_has_a_verdict():
    (said,) = verdict("rollout", [*rollout("mine", "outside", (0.2, 0.21, 0.22)), *LINE])
    assert "one step ahead? mine 0.21 AU [0.185, 0.235]. But linear extrapolation" in said


def read(variant, arm, values, layer):
    return [
        result("linear", variant, arm, seed, "r2_log_force", value, layer=layer)
        for seed, value in enumerate(values)
    ]


def test_a_read_out_stands_beside_one_of_the_places_which_no_layer_has():
    places = recent_name(RECENT)
    model = read("softmax", "pretrained", (0.04, 0.05, 0.06), "final norm")
    (said,) = verdict("linear", [*model, *read(places, "control", (0.6,), places)])
    assert said.endswith(" But last 24 places (without a network) does no worse: 0.6.")
    (said,) = verdict("linear", [*model, *read(places, "control", (0.6,), "final norm")])
    assert "places" not in said


def implied(variant, arm, exponents):
    return [
        result("implied_law", variant, arm, 0, "exponent_within", x, asked="rollout", prompt=prompt)
        for prompt, x in exponents.items()
    ]


def test_a_continuation_is_told_from_a_table_where_it_follows_its_prompt():
    table = implied("nearest training orbit", "control", {"power_1_5": -2.0, "power_2_5": -2.0})
    own = implied("softmax", "pretrained", {"power_1_5": -1.94, "power_2_5": -2.03})
    assert "tells no law from a table" in verdict("implied_law", [*own, *table])[0]
    follows = implied("softmax", "pretrained", {"power_1_5": -1.52, "power_2_5": -2.45})
    assert "table" not in verdict("implied_law", [*follows, *table])[0]


def exchange(variant, arm, values, after, rows):
    setting = {"changed": "m1", "of": "planet", "after": after, "rows": rows}
    return [
        result("exchange", variant, arm, seed, "slope_mass", x, donor="changed system", **setting)
        for seed, x in enumerate(values)
    ]


def test_exchanged_rows_stand_beside_random_weights_and_a_filter():
    found = [
        *exchange("softmax", "pretrained", (0.98, 1.0, 1.02), "block 1", "star"),
        *exchange("softmax", "untrained", (0.0, 0.01, 0.02), "block 1", "star"),
        *exchange("softmax", "pretrained", (0.9, 0.9, 0.9), "embedding", "planet"),
        *exchange("linear autoregression", "control", (0.95,) * 3, "embedding", "planet"),
    ]
    inside, at_first = verdict("exchange", found)
    assert "after block 1" in inside
    assert "softmax 1.00 [0.95, 1.05] (random weights 0.01, less)" in inside
    assert at_first.endswith("But linear autoregression (without a network) does no worse: 0.95.")


def test_a_probe_without_a_question_says_nothing():
    assert verdict("exchange", MODEL) == []


def test_the_rows_of_a_page_are_those_that_the_verdict_speaks_of():
    later = result("rollout", "softmax", "pretrained", 0, "planet_error", 1.0, asked="rollout")
    assert [x for x in [*LINE, later] if speaks_of("rollout", x)] == LINE
    assert not speaks_of("inductive_bias", later), "it is about no setting"
