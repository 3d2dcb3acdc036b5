"""Which rows are said to differ: paired by seed, corrected for all pairs of a table."""

import json
import math
from pathlib import Path

import pytest

from benchmarks.newton.differences import differences
from orbits.runs.result import Case, Metric, Result
from symreg.leaderboard import rows

KEPT = Path(__file__).parents[3] / "benchmarks" / "results"
SPREAD = (0.0, 0.3, -0.2)
"""What a seed brings to every row: far more than the rows differ by."""


def result(seed, value, variant="softmax", arm="pretrained", labels=300, status="ok", **more):
    case = Case("newton", "forces", variant, arm, seed, "newton", "fixed", {"labels": labels})
    names = ("exponent_m1", "exponent_m2", "exponent_r", "constant")
    metrics = {name: Metric(value, value - 1, value + 1) for name in names}
    metrics |= {"r2_log": Metric(0.99), "rms_log_error": Metric(math.exp(value))}
    error = None if status == "ok" else "ValueError: none"
    return Result(case, status, error, metrics if status == "ok" else {}, cell=f"{more}{case}")


def trained(shift=0.0, noise=(0.0, 0.0, 0.0), **what):
    return [
        result(i, shift + a + b, **what) for i, (a, b) in enumerate(zip(SPREAD, noise, strict=True))
    ]


def compared(results):
    return differences(rows(results), results)


def test_arms_and_attentions_are_compared_seed_by_seed():
    noise = (0.001, -0.001, 0.0)
    found = [*trained(), *trained(-0.1, noise, arm="scratch"), *trained(variant="lssa")]
    found += [*trained(5.0, arm="control"), *trained(5.0, labels=100)]
    (forces,) = compared(found)
    pairs = [row[0].text for row in forces.table.rows]
    assert pairs == [
        "softmax, 300 labels: pretrained - scratch",
        "pretrained, 300 labels: lssa - softmax",
    ]
    first, second = forces.table.rows
    # The half-width is 4.3027 * 0.001 / sqrt(3); t = 173.2, p = 1 - t / sqrt(2 + t^2), doubled.
    assert first[1].text == "+0.1"
    assert first[1].detail == "[+0.0975, +0.102], p 3.3e-05, corrected 6.7e-05"
    assert second[1].detail == "[+0, +0], p 1, corrected 1"
    assert len(forces.claims) == 5
    assert forces.claims[-1].startswith(
        "softmax, 300 labels: pretrained - scratch: ln rms error differs by +0.1 [+0.0975"
    )


def test_claims_stand_in_a_matrix_of_models_with_arms_on_the_diagonal():
    noise = (0.001, -0.001, 0.0)
    found = [*trained(), *trained(-0.1, noise, arm="scratch"), *trained(variant="lssa")]
    found += trained(0.2, noise, variant="sigmoid")
    (forces,) = compared(found)
    assert [column.heading for column in forces.matrix.columns][1:] == [
        "lssa",
        "sigmoid",
        "softmax",
    ]
    lssa, sigmoid, softmax = ([value.text for value in row[1:]] for row in forces.matrix.rows)
    assert lssa[0] == "·"
    assert lssa[1].startswith("pretrained, 300 labels: m1 -0.2 [-0.202")
    assert lssa[2] == "·"
    assert sigmoid[0] == "", "below the diagonal stands nothing"
    assert sigmoid[2].startswith("pretrained, 300 labels: m1 +0.2 [")
    assert softmax[2].startswith("300 labels: m1 +0.1 [+0.0975")
    claims = [text for row in (lssa, sigmoid, softmax) for text in row if "[" in text]
    assert sum(text.count("[") for text in claims) == len(forces.claims)


def test_models_of_one_arm_and_budget_are_compared_all_at_once():
    found = [*trained(), *trained(1.0, variant="lssa"), *trained(2.0, variant="sigmoid")]
    found += [*trained(9.0, arm="scratch"), *trained(9.0, variant="lssa", arm="scratch")]
    (forces,) = compared(found)
    (row,) = forces.at_once.rows  # two rows of an arm are a pair
    # The same order in each of three seeds: 6 of 6^3 permutations spread the means as far.
    assert [value.text for value in row[:3]] == ["pretrained, 300 labels", "3", "p 0.028"]
    assert forces.claims[0].startswith("pretrained, 300 labels: all 3 at once differ in m1 (p 0.02")
    broken = [*found, *trained(3.0, variant="lazy", status="failed")]
    (forces,) = compared(broken)
    assert not forces.at_once.rows, "trainings that did not fail are no sample of all"


def test_one_of_many_pairs_has_to_differ_by_more():
    noise = (0.012, -0.012, 0.0)
    alone = [*trained(0.1, noise), *trained(variant="lssa")]
    (forces,) = compared(alone)
    assert len(forces.claims) == 5
    others = [trained(0.0, (0.1 * k, -0.1, 0.1), variant=f"v{k}") for k in range(5)]
    (forces,) = compared([*alone, *(x for each in others for x in each)])
    assert forces.claims == [
        "Differences, seed by seed: forces: none is claimed of 21 pairs in 5 metrics."
    ]
    assert forces.matrix is None


@pytest.mark.parametrize("few", ["failed", "two seeds", "other seeds"])
def test_nothing_is_claimed_of_the_trainings_that_there_are(few):
    one, other = trained(), trained(-0.1, arm="scratch")
    if few == "failed":
        other.append(result(3, 0.0, arm="scratch", status="failed"))
    elif few == "two seeds":
        other.pop()
    else:
        other = [result(i + 7, 0.0, arm="scratch") for i in range(3)]
    (forces,) = compared([*one, *other])
    assert [value.text for value in forces.table.rows[0][1:]] == ["-"] * 5
    assert forces.claims == [
        "Differences, seed by seed: forces: no claim, for want of 3 common seeds without failures."
    ]


def kept(folder):
    lines = (KEPT / folder / "results.jsonl").read_text().splitlines()
    return [Result.from_json(json.loads(line)) for line in lines]


def box(results, pair, heading):
    tables = [each.table for each in compared(results)]
    for table in tables:
        names = [column.heading for column in table.columns]
        for row in table.rows:
            if row[0].text == pair and heading in names:
                value = row[names.index(heading)]
                return f"{value.text} {value.detail}"
    raise AssertionError(f"no {pair}")


@pytest.mark.full
def test_kept_lines_show_what_overlapping_brackets_hid():
    attentions, mixers = kept("newton-exam"), kept("newton-small-1000-mixers")
    nll = box(attentions, "world model: lssar p=15 - softmax", "nats per point")
    assert nll.startswith("+0.173 [+0.133, +0.214], p 0.00029")
    m1 = box(mixers, "pretrained, 1000 labels: softmax - zeros", "m1")
    assert m1.startswith("+0.00898 [+0.00358, +0.0144], p 0.019")
    rms = box(mixers, "pretrained, 1000 labels: softmax - zeros", "ln rms error")
    assert rms.startswith("-0.32 [-0.375, -0.264]")
    arms = box(mixers, "zeros, 1000 labels: pretrained - scratch", "m2")
    assert arms.startswith("+0.0217 [+0.0125, +0.031]")
