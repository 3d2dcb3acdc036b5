"""Differences between attentions: paired by seed, corrected for all pairs of a column."""

import pytest
from scipy.stats import ttest_rel

from benchmarks.implied import pairs
from benchmarks.implied.implied import STUDY
from benchmarks.implied.scores import rows
from orbits.runs.at_once import TITLE
from orbits.runs.result import Case, Metric, Result
from orbits.runs.study import with_units

NOISE = (0.01, -0.02, 0.03, -0.01, 0.0)
EXPONENTS = {"softmax": -1.93, "lssa": -1.93, "lazy": -1.70}


def made(variant, prompt, value, seed=None, arm="pretrained", shift=None):
    setting = {"asked": "rollout", "prompt": prompt} | ({"shift": shift} if shift else {})
    law = "newton" if arm == "pretrained" else None
    case = Case("implied", "continuations", variant, arm, seed, law, "identifiable", setting)
    return with_units(STUDY, Result(case, metrics={"exponent_within": Metric(value)}))


@pytest.fixture
def results():
    truth = {"newton": -1.96, "power_1_5": -1.49}
    found = [made("true orbit in bins", law, x, arm="oracle") for law, x in truth.items()]
    for number, (variant, value) in enumerate(EXPONENTS.items()):
        for seed in range(5):
            # Of a training: what its seed does to all attentions, and a little that is its own.
            there = value + 10 * NOISE[seed] + 0.3 * NOISE[seed - number]
            found.append(made(variant, "newton", there, seed))
            found.append(made(variant, "power_1_5", there + 0.05 * NOISE[seed], seed))
            found.append(made(variant, "newton", -1.4 + NOISE[seed - number], seed, shift="closer"))
    return found


def test_pairs_are_compared_seed_by_seed_as_scipy_does(results):
    table = pairs.table(rows(results))
    assert [x.heading for x in table.columns] == [
        "pair", "trained in", "r^-1.5", "r^-2", "closer", "S",
    ]  # fmt: skip
    names = [row[0].text for row in table.rows]
    assert names == ["softmax - lssa", "softmax - lazy", "lssa - lazy"]
    values = {
        name: [
            x.value("exponent_within")
            for x in results
            if x.case.variant == name and x.case.setting == {"asked": "rollout", "prompt": "newton"}
        ]
        for name in EXPONENTS
    }
    expected = ttest_rel(values["softmax"], values["lazy"])
    low, high = expected.confidence_interval(0.95)
    box = table.rows[1][3]
    assert box.text == f"{-1.93 + 1.70:+.3f}"
    assert box.detail.startswith(f"[{low:+.3f}, {high:+.3f}], p {expected.pvalue:.2g}, ")


def test_a_claim_survives_the_correction_for_all_pairs_of_its_column(results):
    (said,) = pairs.sentences(rows(results))
    assert said.startswith("Of 3 pairs of attentions, each in 4 measures, these differ")
    assert "softmax - lazy in the world of r^-2 on r^-2 prompts by -0.230 [" in said
    assert "softmax - lssa" not in said
    assert "closer" not in said
    assert said in STUDY.sentences(results)
    assert pairs.TITLE in [table.title for table in STUDY.tables(results)]


@pytest.mark.full
def test_all_attentions_at_once_end_the_report_and_are_compared_once(
    results, tmp_path, monkeypatch
):
    calls = []
    compared = pairs.at_once
    monkeypatch.setattr(pairs, "at_once", lambda *each: calls.append(1) or compared(*each))
    report = STUDY.report(results, {"preset": "small"}, tmp_path)
    assert calls == [1]
    start = "trained in the world of r^-2: all 3 at once differ in exponent on"
    assert report.sentences[-1].startswith(start)
    assert report.sentences[-2].startswith("Of 3 pairs of attentions")
    assert TITLE in [section.title for section in report.sections]


def test_of_one_attention_or_two_seeds_nothing_is_compared(results):
    alone = [x for x in results if x.case.variant in ("softmax", "true orbit in bins")]
    few = [x for x in results if x.case.seed in (0, 1, None)]
    for found in (alone, few):
        assert pairs.table(rows(found)).rows == []
        assert pairs.all_at_once(STUDY, found)[0].rows == []
        assert pairs.sentences(rows(found)) == []
    equal = [x for x in results if x.case.variant != "lazy"]
    assert "none is claimed to differ" in pairs.sentences(rows(equal))[-1]
