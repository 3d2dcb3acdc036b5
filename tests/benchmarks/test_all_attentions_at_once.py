"""What RESULTS.md says of six attentions at once, computed again from the kept lines.

Pair by pair, after Holm's correction, five trainings tell little; all six at once they tell more.
"""

import json
import math
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import tukey_hsd

from orbits.runs.statistics import all_at_once

KEPT = Path(__file__).parents[2] / "benchmarks" / "results"
NEAR, FAR = ("lazy", "lssar p=3", "softmax"), ("lssa", "lssar p=15")


@cache
def lines(run, kind):
    """Return the kept lines of one kind."""
    text = (KEPT / run / "results.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines() if f'"kind": "{kind}"' in line]
    assert found
    return found


def table(found):
    """Return names and a value for each name and seed, [A, S]."""
    names = sorted(found)
    seeds = sorted(found[names[0]])
    return names, np.array([[found[name][seed] for seed in seeds] for name in names])


def exams(run, arm, labels):
    """Return ln of the exam by attention and seed."""
    found = defaultdict(dict)
    for line in lines(run, "exam"):
        if (line["arm"], line["setting"].get("labels")) == (arm, labels):
            shifts = [v for k, v in line["metrics"].items() if k.startswith("times_ceiling@")]
            assert len(shifts) == 8
            value = fmean(math.log(each["value"]) for each in shifts)
            found[line["variant"]][line["seed"]] = value
    return table(found)


def continuations(prompt, shift, metric):
    """Return a metric of continuations of the models of Newton's world by attention and seed."""
    found = defaultdict(dict)
    for line in lines("implied-attentions", "continuations"):
        setting = line["setting"]
        where = (setting.get("prompt"), setting.get("shift"))
        if (line["arm"], *where) == ("pretrained", prompt, shift):
            found[line["variant"]][line["seed"]] = line["metrics"][metric]["value"]
    return table(found)


def p_of_all(values):
    """Return the p value of no difference between the rows of [A, S]."""
    return all_at_once([dict(enumerate(row)) for row in values])


def apart(names, values):
    """Return the pairs that Tukey's test tells apart at 5%, the one with less first."""
    found, means = tukey_hsd(*values).pvalue, values.mean(axis=1)
    order = np.argsort(means)
    return {
        (names[i], names[j]): math.exp(means[i] - means[j])
        for n, i in enumerate(order)
        for j in order[n + 1 :]
        if found[i, j] < 0.05
    }


def test_pre_trained_attentions_differ_in_the_exam():
    names, values = exams("newton-exam", "pretrained", 1000)
    assert len(names) == 6
    assert values.shape == (6, 5)
    assert p_of_all(values) < 0.001
    pairs = apart(names, values)
    ratios = [pairs[one, other] for one in NEAR for other in FAR]
    assert [round(x, 2) for x in (min(ratios), max(ratios))] == [0.74, 0.8]
    means = np.exp(values.mean(axis=1))
    assert 1.3 < means.max() / means.min() < 1.35  # "by a third"


def test_attentions_from_scratch_are_not_shown_to_differ_in_the_exam():
    assert 0.3 < p_of_all(exams("newton-exam", "scratch", 1000)[1]) < 0.5


def test_with_a_tenth_of_the_labels_one_attention_makes_the_difference():
    names, values = exams("newton-exam-100", "pretrained", 100)
    assert p_of_all(values) < 0.02
    assert {other for _, other in apart(names, values)} == {"lssar p=15"}
    others = values[[name != "lssar p=15" for name in names]]
    assert p_of_all(others) > 0.4


@pytest.mark.parametrize("arm", ["pretrained", "scratch"])
def test_with_300_labels_they_differ_and_lazy_errs_least(arm):
    names, values = exams("newton-exam-300", arm, 300)
    assert p_of_all(values) < 0.02
    assert names[int(np.argmin(values.mean(axis=1)))] == "lazy"


@pytest.mark.full
@pytest.mark.parametrize("prompt", ["newton", "power_1_5", "power_2_5"])
def test_attentions_go_on_by_powers_that_differ_a_little(prompt):
    names, values = continuations(prompt, None, "exponent_within")
    assert p_of_all(values) < 0.05
    assert ("lssar p=15", "lssa") in apart(names, values)


def test_on_softened_orbits_their_powers_are_not_shown_to_differ():
    assert p_of_all(continuations("softened", None, "exponent_within")[1]) > 0.2


def test_on_closer_orbits_their_powers_are_not_shown_to_differ():
    assert p_of_all(continuations("newton", "closer", "exponent_within")[1]) > 0.5


def test_two_attentions_end_nearer_to_the_truth_than_the_four_others():
    names, values = continuations("newton", None, "last_error")
    pairs = apart(names, np.log(values))
    others = set(names) - {"lssa", "lazy"}
    assert {(one, other) for one in ("lssa", "lazy") for other in others} <= pairs.keys()
