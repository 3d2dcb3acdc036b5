"""Tables of probes: seeds of one model in one row, and intervals that say over what they are."""

from types import MappingProxyType, SimpleNamespace

from orbits.runs import page
from tests.worldmodel.probes.evaluation import result
from worldmodel import probes
from worldmodel.probes.report import _words, report, table

HOSTILE = "<script>alert(1)</script>|[x](http://x) `c\\| \u202eback\x1b[31m\n# $x^{$"


def made(results):
    """Return headings and texts of a table."""
    found = table(results)
    rows = [[f"{value.text} {value.detail}".strip() for value in row] for row in found.rows]
    return [column.heading for column in found.columns], rows


def test_three_seeds_make_an_interval_and_fewer_do_not():
    def one(seed, value):
        metrics = {"exponent_r": [value, value - 0.1, value + 0.1]}
        return result(seed=seed, setting={"layer": 1}, metrics=metrics)

    header, rows = made([one(0, 0.5), one(1, 0.7)])
    assert header == ["layer", "variant", "arm", "seeds", "exponent_r"]
    assert rows == [["1", "softmax", "pretrained", "2", "0.5 [0.4, 0.6]; 0.7 [0.6, 0.8]"]]
    _, rows = made([one(0, 0.5), one(1, 0.6), one(2, 0.7)])
    half = 4.302653 * 0.1 / 3**0.5  # Student's t, two degrees of freedom
    assert rows[0][-1] == f"0.6 [{0.6 - half:.3g}, {0.6 + half:.3g}]"


def test_the_interval_of_a_row_says_over_what_it_is():
    results = [
        result(
            seed=seed,
            setting={"interval": "over 9 datasets"},
            metrics={"r_ib": [0.1 * seed, 0.0, 1.0], "r_ib_standard_error": 0.1 * seed},
        )
        for seed in range(3)
    ]
    header, rows = made(results[:2])
    assert header[0] == "interval"
    assert rows[0][0] == "over 9 datasets"
    header, rows = made(results)
    assert rows[0][0] == "t, checkpoints"
    assert rows[0][-1] == "0.1", "a standard error has no interval"
    metrics = {"r_ib": [0.1, 0.0, 1.0]}
    oracle = [
        result(seed=seed, setting={"interval": "over 9 datasets"}, metrics=metrics)
        for seed in range(3)
    ]
    assert made(oracle)[1][0][0] == "over 9 datasets", "no training changes an oracle"


def test_three_results_of_one_seed_make_no_interval_over_seeds():
    values = ((10, 0.1), (20, 0.5), (30, 0.9))
    results = [result(steps=steps, metrics={"r2": [r2, 0, 1]}) for steps, r2 in values]
    header, rows = made(results)
    assert header == ["steps", "variant", "arm", "seeds", "r2"]
    assert [row[0] for row in rows] == ["10", "20", "30"], "another training is another row"
    same = [result(seed=seed, metrics={"r2": [0.1, 0, 1]}) for seed in range(3)]
    assert made(same)[1][0][-1] == "0.1 [0, 1]", "what no training changes keeps its interval"


def test_steps_of_a_probe_are_not_those_of_its_checkpoint():
    results = [
        result(arm=arm, setting=setting, steps=1000, metrics={"r2": 0.5})
        for arm, setting in (("pretrained", {"steps": 1000}), ("untrained + ridge", {}))
    ]
    header, rows = made(results)
    assert header == ["steps", "variant", "arm", "seeds", "r2"]
    assert [row[0] for row in rows] == ["1000", ""]


def test_hostile_names_are_text_in_the_report(tmp_path, monkeypatch):
    one = SimpleNamespace(
        about="Counts.",
        draw=lambda results, out: (),
        answers=lambda results: (),
        is_in_front=lambda result: False,
        parts=lambda results: {"": results},
    )
    monkeypatch.setattr(probes, "names", lambda: ("counting",))
    monkeypatch.setattr(probes, "get", MappingProxyType({"counting": one}).__getitem__)
    results = [result(HOSTILE, HOSTILE, setting={HOSTILE: HOSTILE}, metrics={HOSTILE: 1.0})]
    made = report(results, "Why?", "probe.", tmp_path)
    page.write(made, results, {}, tmp_path)
    markdown, html = ((tmp_path / f"report.{kind}").read_text() for kind in ("md", "html"))
    for text in (markdown, html, made.to_text()):
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert html.count("<script>") == 1
    assert "<script>" not in markdown
    assert "[x](http" not in markdown


def test_a_law_is_named_by_its_power_of_the_distance():
    shown = [
        _words("law", "power_a1_n1.5"),
        _words("prompt", "newton"),
        _words("world", "a law from elsewhere"),
        _words("asked", "newton"),
    ]
    assert shown == ["r^-1.5", "r^-2", "a law from elsewhere", "newton"]
