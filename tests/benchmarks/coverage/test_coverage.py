"""Every table and figure of the papers has an entry, and its state follows from results alone."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from benchmarks.__main__ import main, packages
from benchmarks.coverage import entries as listed
from benchmarks.coverage.entries import Claim, Entry
from benchmarks.coverage.judge import Source, answers, claim_outcomes, combined, state
from benchmarks.coverage.page import _hours, coverage
from benchmarks.published import tables as published
from benchmarks.published.compare import (
    CONTRADICTED,
    EQUIVALENT,
    INCONCLUSIVE,
    NOT_RUN,
    SAME_DIRECTION,
)
from benchmarks.recall.mad import STUDY as MAD
from benchmarks.recall.mqar import STUDY as MQAR
from orbits.runs import flags, studies
from orbits.runs.result import Case, Metric, Result

PAGE = Path(listed.FOLDER) / "COVERAGE.md"
INVENTORY = Path(listed.FOLDER) / "inventory.yaml"
ABOVE = Claim("mqar", "accuracy", "zeros", "linear", "higher")


def results(**values):
    """Return results of mqar: values by variant, one per seed."""
    return [
        Result(
            Case("mqar", "measurement", variant, seed=seed, setting={"load": "8/2", "lr": lr}),
            metrics={"accuracy@8/2": Metric(value), "val_accuracy": Metric(100 * lr)},
        )
        for variant, each in values.items()
        for seed, value in enumerate(each)
        for lr in (0.1, 0.2)
    ]


def test_the_hours_of_cells_that_runs_share_count_once():
    made = [
        dataclasses.replace(result, cell=result.case.variant, cpu_s=1800)
        for result in results(zeros=[90, 91], linear=[50, 52])
    ]
    one, other = (Source(name, MQAR, {}, made) for name in ("one", "other"))
    words = "Judged by 2 runs: 1.0 CPU hours in all, cells that they share counted once."
    assert _hours({"one", "other"}, [one, other]) == words
    assert _hours({"another"}, [one, other]) == ""


def test_every_table_and_figure_of_the_papers_has_an_entry():
    papers = yaml.safe_load(INVENTORY.read_text(encoding="utf-8"))
    names = [f"{paper}, {place}" for paper, places in papers.items() for place in places]
    assert list(listed.load()) == names


def test_a_row_of_mad_that_is_printed_twice_is_judged_once():
    judged = [
        row.row
        for entry in listed.load().values()
        for table in map(published.get, entry.tables)
        if table.study == "mad"
        for row in table.rows
        if row.row not in (table.baseline, *entry.repeats)
    ]
    assert {"zeros", "zeros_sm", "zeros_no_gate", "hawk"} <= set(judged)
    assert sorted(judged) == sorted(set(judged))


def test_every_published_table_is_an_answer_to_an_entry():
    named = [table for entry in listed.load().values() for table in entry.tables]
    assert sorted(named) == sorted(table.table for table in published.tables())


NO_ROWS = {"softmax_naive"}
"""Rows that no flag names: a backend of softmax."""
BY_ATTENTION = ("ablations", "extrapolation", "forecasting", "images", "mad", "mqar", "regbench")


@pytest.mark.full
def test_every_command_runs_the_rows_that_its_entry_judges(tmp_path):
    asked, elsewhere = {}, ["--out", str(tmp_path / "out")]  # what is run here may differ
    for name, entry in listed.load().items():
        if not entry.command.startswith("benchmarks run"):
            continue
        _, _, study, *words = entry.command.split()
        # Refuses an unknown study, preset, flag or attention.
        words += elsewhere
        settings = flags.parse_study(studies.get(packages(), study), words, "x").settings
        if study not in BY_ATTENTION:
            continue
        rows = {row.row for table in entry.tables for row in published.get(table).rows}
        rows |= {x for claim in entry.claims for x in (claim.row, claim.against)}
        named = {row.partition(" p=")[0] for row in rows} - NO_ROWS
        missing = named - {*settings.attention, *getattr(settings, "models", ())}
        asked[name] = sorted(missing)
        if study == "mad":
            skills = {x.name.partition("@")[2] for x in published.get(entry.tables[0]).metrics}
            assert set(settings.problems) == skills - {"average"}, name
    assert len(asked) >= 10
    assert not {name: missing for name, missing in asked.items() if missing}


def test_what_has_no_command_says_why():
    bare = [x for x in listed.load().values() if not (x.command or x.same_as)]
    assert all("nothing is measured" in x.why or "no command" in x.why for x in bare)


@pytest.mark.parametrize(
    ("agree", "against", "open_", "expected"),
    [
        (0, 0, 0, NOT_RUN),
        (1, 0, 0, "reproduced"),
        (1, 0, 2, INCONCLUSIVE),
        (0, 1, 0, CONTRADICTED),
        (20, 1, 9, "reproduced"),  # chance: one of 30 in half of all papers
        (20, 3, 8, CONTRADICTED),
    ],
)
def test_a_state_follows_from_the_number_of_checks(agree, against, open_, expected):
    counts = {SAME_DIRECTION: agree, CONTRADICTED: against, INCONCLUSIVE: open_, NOT_RUN: 7}
    assert state(counts) == expected


def test_a_claim_is_judged_at_the_best_rate_of_each_row():
    made = results(zeros=[90, 91, 92], linear=[50, 52, 51])
    worse = [x for x in made if x.case.get("lr") == 0.1 and x.case.variant == "zeros"]
    for result in worse:  # at the rate with the lower validation accuracy the sign is another
        result.metrics["accuracy@8/2"] = Metric(1.0)
    assert set(claim_outcomes(ABOVE, made).values()) == {SAME_DIRECTION}
    below = Claim("mqar", "accuracy", "zeros", "linear", "lower")
    assert set(claim_outcomes(below, made).values()) == {CONTRADICTED}
    assert not claim_outcomes(ABOVE, results(zeros=[1, 2, 3]))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([50, 51, 52], EQUIVALENT),
        ([10, 11, 12.5], CONTRADICTED),
        ([10, 90, 50], INCONCLUSIVE),
        ([50, 51], NOT_RUN),
    ],
)
def test_a_claim_of_no_difference_has_a_margin(other, expected):
    claim = Claim("mqar", "accuracy", "zeros", "linear", "equal", margin=5)
    made = results(zeros=[50.5, 51, 51.5], linear=other)
    assert set(claim_outcomes(claim, made).values()) == {expected}


def test_rows_that_differ_in_a_setting_are_compared_across_it():
    made = results(zeros=[90, 91, 92], linear=[50, 52, 51])
    for result in made:
        result.case.setting["of"] = result.case.variant
    assert not claim_outcomes(ABOVE, made)
    across = dataclasses.replace(ABOVE, across=["of"])
    assert set(claim_outcomes(across, made).values()) == {SAME_DIRECTION}


def test_two_results_of_one_seed_are_not_one(tmp_path):
    made = results(zeros=[90, 91, 92], linear=[50, 52, 51])
    for result in made:
        result.case.setting["of"] = result.case.variant
    twice = [*made, *results(zeros=[10, 11, 12])]
    with pytest.raises(ValueError, match="accuracy@8/2 of several settings; choose one with where"):
        claim_outcomes(dataclasses.replace(ABOVE, across=["of"]), twice)


def test_runs_that_disagree_leave_a_check_open():
    one, other, none = ({"a": x} for x in (SAME_DIRECTION, CONTRADICTED, NOT_RUN))
    assert combined({"x": one, "y": other}).state == INCONCLUSIVE
    assert combined({"x": one, "y": none}).state == "reproduced"
    assert combined({"x": one, "y": none}).runs == ("x",)


def test_checks_that_do_not_answer_a_figure_leave_it_inconclusive():
    made = results(zeros=[90, 91, 92], linear=[50, 52, 51])
    source = Source("r", MQAR, MQAR.config(MQAR.settings("tiny"), "tiny"), made)
    for unsettled, expected in (("", "reproduced"), ("too few steps", INCONCLUSIVE)):
        entry = Entry("P", "Figure 1", "x", claims=(ABOVE,), unsettled=unsettled)
        again = Entry("P", "Figure 2", "x", same_as=entry.name)
        found = answers({x.name: x for x in (entry, again)}, [source])
        assert {answer.state for answer in found.values()} == {expected}
        assert found[entry.name].counts == {SAME_DIRECTION: 1}
        assert answers({entry.name: entry}, [])[entry.name].state == NOT_RUN


def test_numbers_of_a_published_table_are_judged_as_in_its_report():
    made = [
        Result(
            Case(
                "mad", "measurement", variant, seed=seed,
                setting={"problem": "memorization", "changed": "baseline", "to": None},
            ),
            metrics={"acc@memorization": Metric(value), "val_accuracy": Metric(1.0)},
        )
        for variant, base in (("softmax", 90), ("linear", 50))
        for seed, value in enumerate((base, base + 1, base + 2))
    ]  # fmt: skip
    entry = Entry("ZeroS", "Table 1", "MAD", tables=("zeros_table_1",))
    again = Entry("ZeroS", "Table 9", "MAD", same_as=entry.name)
    repeated = Entry("ZeroS", "Table 8", "MAD", tables=("zeros_table_8",), repeats=("linear",))
    config = MAD.config(MAD.settings("tiny"), "tiny")
    known = {x.name: x for x in (entry, again, repeated)}
    found = answers(known, [Source("mad-run", MAD, config, made)])
    assert found[entry.name] == found[again.name]
    assert found[entry.name].state == "reproduced"  # the paper has 74.9 of linear, 85.2 of softmax
    assert found[entry.name].counts[SAME_DIRECTION] == 1
    assert found[entry.name].runs == ("mad-run",)
    assert found[repeated.name].state == NOT_RUN  # its only row that was run is Table 1's
    follows = dataclasses.replace(entry, dependent=("acc",))
    assert (
        answers({entry.name: follows}, [Source("mad-run", MAD, config, made)])[entry.name].counts
        == {}
    )


def test_a_row_that_no_run_judges_says_why():
    made = coverage([Source("r", MQAR, MQAR.config(MQAR.settings("tiny"), "tiny"), [])])
    rows = {row[0].text: row for table in made.tables for row in table.rows}
    assert all(row[2].text == NOT_RUN for row in rows.values())
    assert all(row[3].text for row in rows.values())
    own = [x for x in listed.load().values() if not x.same_as]
    assert made.summary.startswith(f"Of {len(own)} tables and figures, and ")
    assert made.summary.endswith(
        f": 0 reproduced, 0 contradicted, 0 inconclusive, {len(own)} not run."
    )
    told = made.record()["rows"]
    assert {(row["what"], row["state"]) for row in told} == {(name, NOT_RUN) for name in rows}
    assert len(told) == sum(len(table.rows) for table in made.tables)


def test_a_damaged_entry_is_one_line(tmp_path):
    path = tmp_path / "entries.yaml"
    for text, words in (
        ("P: {Table 1: {shows: x}}", "P, Table 1: nothing is judged"),
        ("P: {Table 1: {shows: x, tables: [nope]}}", "no table 'nope'"),
        ("P: {Table 1: {shows: x, same_as: 'P, Table 2'}}", "no entry 'P, Table 2'"),
        ("P: {Table 1: {shows: x, tables: [zeros_table_6], repeats: [gla]}}", "no row 'gla'"),
        (
            "P: {Table 1: {shows: x, tables: [zeros_table_6], dependent: [loss]}}",
            "no metric 'loss'",
        ),
        ("P: {Table 1: {shows: x, state: reproduced, why: y}}", "state"),
        ("P: {Table 1: {shows: x, why: y, unsettled: z}}", "unsettled: give tables or claims"),
        ("P: {Table 1: {shows: x, why: y, larger: z}}", "larger: give tables or claims"),
        (
            "P: {Table 1: {shows: x, claims: [{study: a, metric: b, row: c, against: d,"
            " expect: best}]}}",
            "unknown expect 'best'",
        ),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=words) as error:
            listed.load(path)
        assert "\n" not in str(error.value)


def test_a_folder_without_results_is_refused(tmp_path, refusal):
    assert "holds no results" in refusal(main, ["coverage", str(tmp_path), "--only"])


@pytest.mark.full
def test_the_kept_page_is_that_of_the_kept_results(capsys):
    main(["coverage", "--markdown"])
    assert capsys.readouterr().out == PAGE.read_text("utf-8"), (
        "run: python -m benchmarks coverage --markdown > benchmarks/coverage/COVERAGE.md"
    )
