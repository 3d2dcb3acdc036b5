"""The law rates: their cells, refusals before any work, and what a cell depends on."""

import dataclasses

import pytest

from benchmarks.__main__ import main
from benchmarks.search import law_rates
from benchmarks.search.law_rates import STUDY, WRONG
from benchmarks.search.settings import LawRatesSettings
from orbits import laws
from orbits.runs import folder
from orbits.runs.result import Case, Result
from symreg import engines
from symreg.leaderboard import SEARCH

ENGINES = ("operon", "powerlaw")
SMALL = ["--law=newton,harmonic", "--noise=0.01", "--engine=powerlaw", "--executor=here"]


def settings(**changes):
    asked = {"law": ("newton", "mond"), "noise": (0.0, 0.005), "engine": ("operon", "powerlaw")}
    return STUDY.resolve(LawRatesSettings(**{**asked, "seeds": 3, "wrong_seeds": 2, **changes}))


def test_every_engine_has_every_law_and_the_wrong_laws():
    grid = list(STUDY.cells(settings()))
    for engine in ("operon", "powerlaw"):
        own = [cell.arguments for cell in grid if cell.arguments["engine"] == engine]
        assert sum(each["control"] is None for each in own) == 2 * 2 * 3
        assert sum(each["control"] is not None for each in own) == len(WRONG) * 2 * 2
    names = {cell.case.variant for cell in grid if cell.arguments["control"] is None}
    assert names == {f"{law}, {noise}% noise" for law in ("newton", "mond") for noise in (0, 0.5)}


def test_auto_is_resolved_once():
    resolved = engines.resolve("auto")[0].name
    assert settings(engine=("auto", resolved)).engine == (resolved,)


def test_a_cell_follows_the_law_and_the_engines_rule(monkeypatch):
    def keys():
        return {cell.key for cell in STUDY.cells(settings(law=("mond",), engine=("powerlaw",)))}

    before = keys()
    assert keys() == before
    mond = laws.get("mond")
    other = dataclasses.replace(mond, parameters={**mond.parameters, "a0": 123.0})
    monkeypatch.setattr(law_rates.laws, "get", lambda name: other)
    assert not keys() & before
    monkeypatch.undo()
    searcher = dataclasses.replace(engines.get("powerlaw"), rule="best")
    monkeypatch.setattr(law_rates.engines, "get", lambda name: searcher)
    assert not keys() & before


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--law=newtom", "unknown law 'newtom'; did you mean newton"),
        ("--law=", "law must not be empty"),
        ("--noise=0.1,high", "--noise must be a finite number, got 'high'"),
        ("--noise=-0.1", "noise must be between 0 and 1, got -0.1"),
        ("--noise=.nan", "noise must be between 0 and 1, got nan"),
        ("--engine=operom", "unknown engine 'operom'"),
        ("--seeds=0", "seeds must be at least 1, got 0"),
        ("--first-seed=-1", "first_seed must be at least 0, got -1"),
        ("--engines=operon", "use --engine"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(refused_run, flag, message):
    rest = [x for x in SMALL if x.partition("=")[0] != flag.partition("=")[0]]
    assert message in refused_run("law_rates", *rest, flag)


@pytest.mark.full
def test_a_run_is_resumed_and_another_one_needs_overwrite(tmp_path, capsys, monkeypatch, refusal):
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "out"
    command = ["run", "law_rates", "--out", str(out), *SMALL, "--seeds", "1", "--wrong-seeds", "1"]
    main(command)
    results, record = folder.load(out)
    assert [each.status for each in results] == ["ok"] * (2 + len(WRONG))
    found = {each.case.variant: each.details["verdict"] for each in results}
    assert found["newton, 1% noise"] == "law"
    assert found["1/r, 1% noise"] == "another law"
    config = record["config"]
    assert (config["points"], config["held_out"]) == (1000, 2000)
    assert config["rules"] == {"powerlaw": "knee"}
    main(["report", str(out), "--full"])
    assert "1/1 [0.21, 1.00]" in capsys.readouterr().out
    assert "harmonic, protocol synthetic" in (out / "report.md").read_text()
    main(command)
    assert folder.load(out)[0] == results
    other = [*command, "--first-seed", "7"]
    assert "different: first_seed" in refusal(main, other, alone=False)
    main([*other, "--overwrite"])
    assert {each.case.get("search") for each in folder.load(out)[0]} == {7}


def test_every_engine_answers_for_its_own_finds_and_a_law_may_have_a_comma():
    def searched(law, engine, found, arm="-"):
        case = Case(
            "law_rates", SEARCH, f"{law}, 5% noise", arm, 0, setting={"engine": engine}
        )  # fmt: skip
        return Result(case, "ok", details={"verdict": "law" if found else "other"})

    law = "k*m1*m2/Max(r, 0.1)**2"
    results = [searched(law, "operon", True), searched("newton", "operon", True)]
    results += [searched("newton", engine, engine == "powerlaw", "control") for engine in ENGINES]
    failed = dataclasses.replace(searched(law, "operon", False), status="failed", details={})
    said = law_rates._verdict([*results, failed])
    assert f"the law {law} are found on its true forces by operon: 1 of 2" in said[0]
    assert said[0].startswith("Formulas with exponents within 0.05 of those of the law")
    assert said[0].endswith("at 5% noise.")
    assert "operon finds it in 0 of 1 searches." in said[-2]
    assert "powerlaw finds it in 1 of 1 searches." in said[-1]
