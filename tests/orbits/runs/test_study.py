"""Studies: presets, flags, a run and its report, and what a folder may be used for."""

import dataclasses
import json
import os
import shutil
import sys

import pytest

import tests.orbits.runs as package
from orbits.runs import artefact, flags, folder, reuse, studies, study
from orbits.runs.cell import Cell
from orbits.runs.executors import Execution
from orbits.runs.folder import Existing
from orbits.runs.result import Case
from tests.orbits.runs.tossing import STUDY, Settings, Throw, toss

HERE = Execution("here")


def parse(*arguments):
    return flags.parse_study(STUDY, arguments, "run tossing")


@pytest.fixture
def out(tmp_path):
    study.run(STUDY, STUDY.settings("small", seeds=[0, 1, 2]), tmp_path / "out", HERE)
    return tmp_path / "out"


def test_presets_extend_one_another_and_flags_change_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name / "cells").mkdir(parents=True)
    assert parse().settings == Settings(coins=("penny", "dime"), throw=Throw(2.0))
    tiny = parse("--preset", "tiny", "--coins", "euro,yen", "--tosses", "none", "--fair",
                 "--throw.height=3", "--workers", "2", "--reuse", "a,b", "--dry-run")  # fmt: skip
    assert tiny.settings == Settings(("euro", "yen"), (0,), None, True, Throw(3.0))
    assert parse("--no-fair", "--throw.height=2").settings.fair is False, "as the preset has it"
    assert (tiny.preset, tiny.dry_run, tiny.execution.workers) == ("tiny", True, 2)
    assert [str(path) for path in (tiny.out, *tiny.sources)] == ["runs/tossing-tiny", "a", "b"]
    assert STUDY.settings("tiny") == parse("--preset", "tiny").settings


def test_a_place_that_cannot_be_written_is_refused_before_any_cell_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    words = ["--out", str(tmp_path / "a" / "b")]
    with pytest.raises(PermissionError, match=f"{tmp_path} cannot be written to; choose another"):
        parse(*words)
    assert parse(*words, "--dry-run").dry_run, "which writes nothing"


def test_a_preset_may_say_how_many_cells_are_computed_at_once():
    assert parse("--preset", "many").execution.workers == 3
    assert parse("--preset", "many", "--workers", "1").execution.workers == 1
    assert parse().execution.workers is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "x"], "error: --seeds must be a whole number, got 'x'"),
        (["--seeds", "0,,1"], "error: --seeds has an empty item, got '0,,1'"),
        (["--minutes", "x"], "error: --minutes must be a finite number or none, got 'x'"),
        (["--toss", "1"], "unrecognized arguments: --toss 1"),
        (["--jobs", "1"], "unrecognized arguments: --jobs 1; use --workers"),
        (["--coins", "--seeds", "0"], "error: argument --coins: expected one argument"),
        (["--preset", "--seeds", "0"], "error: argument --preset: expected one argument"),
        (["--dry_run"], "unrecognized arguments: --dry_run; did you mean --dry-run?"),
    ],
)
def test_a_wrong_flag_is_one_line(arguments, message, refusal):
    assert message in refusal(parse, *arguments)


def test_a_list_that_is_given_twice_is_refused_and_another_value_is_not():
    with pytest.raises(ValueError, match=r"--coins is given twice; write --coins A,B"):
        parse("--coins", "euro", "--coins=yen")
    assert parse("--tosses", "3", "--tosses", "4").settings.tosses == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "huge"], "unknown preset 'huge'; choose from small, tiny, many"),
        (["--tosses", "0"], "tosses must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--no-fair", "--throw.height", "3"], "so --throw.height changes nothing"),
    ],
)
def test_a_wrong_value_is_a_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        parse(*arguments)


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="unknown setting 'coin'; choose from coins, seeds"):
        STUDY.settings("small", coin="euro")


def test_help_names_every_flag_and_survives_percent_signs(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse("--help")
    text = " ".join(capsys.readouterr().out.split())
    for word in ("--coins", "--throw.height", "Metres", "one toss, no claims", "100% fair"):
        assert word in text
    assert "_" not in "".join(word for word in text.split() if word.startswith("--"))


def test_flags_import_nothing_that_is_there_for_type_checking_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    assert parse("--preset", "tiny").settings.tosses == 1
    assert "wave" not in sys.modules


def test_studies_are_found_by_their_file():
    assert studies.names(package) == ("tossing",)
    assert studies.get([package], "tossing") is STUDY
    with pytest.raises(ValueError, match="unknown study 'tosing'; did you mean tossing"):
        studies.get([package], "tosing")


def test_a_run_is_recorded_reported_and_continued(out, capsys):
    results, manifest = folder.load(out)
    assert len(results) == 6
    assert {x.metrics["heads"].unit for x in results} == {"share"}
    assert results[0].metrics["heads@first"].unit == "share", "a name before @ stands for both"
    assert manifest["config"]["study"] == folder.study_name(out) == "tossing"
    text = study.report(STUDY, out)
    assert "6 series of tosses." in text
    assert "penny" in text
    page = (out / "report.html").read_text()
    assert "Is a coin 100% fair?" in page
    assert "data:image/png;base64," in page
    assert (out / "report.md").read_text().startswith("# Is a coin 100% fair?\n\ntossing, version")
    assert study.run(STUDY, STUDY.settings("small"), out, HERE) == results
    earlier = STUDY.config(STUDY.settings("small"), "small") | {"version": 0}
    assert STUDY.changes(earlier) == {}, "a version is no setting"
    words, code = study.summary(results, out)
    assert words == f"6 cells, 0 failed: {out / 'results.jsonl'}"
    assert code == 0
    run = folder.load(out)[1]
    assert run["device"] is None, "each result has its own"
    assert {result.manifest["device"] for result in results} == {"cpu"}


def test_timed_cells_run_one_after_the_other(tmp_path, monkeypatch):
    assert parse("--minutes", "1.5").execution == Execution(minutes=1.5)
    monkeypatch.setattr(type(STUDY), "execution", Execution("here", workers=1, minutes=5))
    monkeypatch.setattr(type(STUDY), "timed", True)
    chosen = parse("--preset", "tiny", "--minutes", "none")
    assert chosen.execution == Execution("here", workers=1)
    assert len(study.run(STUDY, chosen.settings, tmp_path / "out", chosen.execution)) == 2
    with pytest.raises(ValueError, match="--workers must be 1, got 2: cells of tossing are timed"):
        study.run(STUDY, chosen.settings, tmp_path / "two", Execution(workers=2))
    sources = [tmp_path / "out"]
    with pytest.raises(ValueError, match="--reuse would mix times of other machines with those"):
        study.run(STUDY, chosen.settings, tmp_path / "two", chosen.execution, sources=sources)
    assert not (tmp_path / "two").exists()


def test_a_report_removes_old_figures_but_none_that_it_cannot_draw_again(out):
    old = out / "figures" / "old.png"
    old.parent.mkdir()
    old.touch()
    shutil.copytree(out, out.parent / "kept", ignore=shutil.ignore_patterns("cells"))
    for folder_ in (out, out.parent / "kept"):
        study.report(STUDY, folder_)
    assert not old.exists()
    assert (out.parent / "kept" / "figures" / "old.png").exists()


def test_the_version_of_a_study_is_in_the_addresses_of_its_own_cells_alone(monkeypatch):
    own = Cell(toss, Case("tossing", "toss"), {"seed": 0, "tosses": 1, "fair": True})
    shared = Cell(toss, Case("coins", "toss"), {"seed": 0, "tosses": 1, "fair": True}, version=7)
    needing = dataclasses.replace(own, case=Case("tossing", "sum"), needs={"x": own, "y": shared})
    monkeypatch.setattr(STUDY, "cells", lambda settings: [own, shared, needing], raising=False)
    before = study.all_cells(STUDY, None)
    monkeypatch.setattr(type(STUDY), "version", 2)
    after = study.all_cells(STUDY, None)
    assert [a.key == b.key for a, b in zip(before, after, strict=True)] == [False, True, False]
    assert after[2].needs == {"x": after[0], "y": after[1]}
    assert after[1].key == shared.key


def test_what_determines_no_result_changes_no_folder(out):
    study.run(STUDY, STUDY.settings("small", watcher="me"), out, HERE)


def test_a_folder_of_other_settings_is_refused_resumed_or_overwritten(out):
    fewer = STUDY.settings("small", coins=["penny"])
    with pytest.raises(ValueError, match=r"other settings \(different: coins\); use --resume"):
        study.run(STUDY, fewer, out, HERE)
    assert len(study.run(STUDY, fewer, out, HERE, existing=Existing(resume=True))) == 3
    assert len(list((out / "cells").iterdir())) == 6
    study.run(STUDY, fewer, out, HERE, existing=Existing(overwrite=True))
    assert len(list((out / "cells").iterdir())) == 3


def test_a_folder_of_something_else_is_refused(tmp_path):
    settings = STUDY.settings("tiny")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        study.run(STUDY, settings, tmp_path / "file", HERE)
    with pytest.raises(ValueError, match="files that are not results"):
        study.run(STUDY, settings, tmp_path, HERE)
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".run.json.123.abc").touch()
    study.run(STUDY, settings, tmp_path / "killed", HERE)
    other = {"study": "another", "size": 1}
    folder.claim(tmp_path / "other", other, Existing())
    for existing in (Existing(), Existing(resume=True)):
        with pytest.raises(ValueError, match=r"another study \(another\)"):
            study.run(STUDY, settings, tmp_path / "other", HERE, existing=existing)
    with pytest.raises(FileNotFoundError, match="not finished"):
        folder.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="not a results folder"):
        folder.load(tmp_path / "none")


def test_an_older_schema_is_refused(out):
    claim = artefact.load_record(out / "run.json")
    artefact.save_record(out / "run.json", {**claim, "schema": 1})
    for use in (folder.load, folder.study_name, reuse.check):
        with pytest.raises(ValueError, match=r"schema 1, .*run it again"):
            use(out)


def test_a_record_that_names_a_file_elsewhere_is_refused(out):
    lines, manifest = artefact.load_lines(out / "results.jsonl")
    lines[0]["files"] = {"curves": "../outside"}
    artefact.save_lines(out / "results.jsonl", lines, manifest)
    with pytest.raises(artefact.CorruptArtefact, match=r"'\.\./outside' names no file below"):
        folder.load(out)


def test_an_invalid_record_is_named_by_its_line(out):
    lines, manifest = artefact.load_lines(out / "results.jsonl")
    lines[1]["metrics"] = {"heads": {"value": "many"}}
    artefact.save_lines(out / "results.jsonl", lines, manifest)
    with pytest.raises(ValueError, match=r"results.jsonl, line 2: metric 'heads': value must be"):
        folder.load(out)


def test_cells_and_kept_lines_are_reused(out, tmp_path, capsys):
    settings, expected = STUDY.settings("small"), folder.load(out)[0]
    study.run(STUDY, settings, tmp_path / "b", HERE, sources=[out])
    assert "6 of 6 cells are taken" in capsys.readouterr().out
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("run.json", "results.jsonl", "results.jsonl.json"):
        (kept / name).write_bytes((out / name).read_bytes())
    assert study.run(STUDY, settings, tmp_path / "c", HERE, sources=[kept]) == expected
    assert "6 of 6 cells are taken" in capsys.readouterr().out
    with pytest.raises(ValueError, match="kept results"):
        study.run(STUDY, settings, kept, HERE)
    with pytest.raises(ValueError, match="--overwrite would discard it"):
        study.run(STUDY, settings, kept, HERE, existing=Existing(overwrite=True), sources=[kept])
    assert folder.load(kept)[0] == expected
    with pytest.raises(ValueError, match="no results"):
        study.run(STUDY, settings, tmp_path / "d", HERE, sources=[tmp_path / "nowhere"])


def test_every_field_of_a_record_survives_its_json(out):
    for result in folder.load(out)[0]:
        assert type(result).from_json(json.loads(json.dumps(result.to_json()))) == result
