"""Searches in processes: what is timed, and the ratios."""

import pytest

from benchmarks.cost import search_speed
from orbits.runs import study
from orbits.runs.result import Case, Result

STUDY = search_speed.STUDY


@pytest.mark.full
def test_searches_are_timed_with_each_number_of_processes(tmp_path):
    settings = STUDY.settings("tiny")
    results = study.run(STUDY, settings, tmp_path, STUDY.execution, preset="tiny")
    assert [x.case.get("processes") for x in results] == [1, 2]
    for result in results:
        assert result.ok, result.error
        assert result.value("wall_s") == 2 * result.value("wall_s_per_search") > 0
        assert result.value("cpu_s_per_search") > 0
        assert result.details["load"] >= 0
    assert results[0].value("speed_up") == 1
    assert "efficiency" in study.report(STUDY, tmp_path)


def test_ratios_are_to_the_first_number_of_processes(tmp_path, monkeypatch):
    seconds = {2: (60.0, 100.0), 4: (40.0, 104.0)}
    monkeypatch.setattr(search_speed, "_run", lambda engine, searches, count: seconds[count])
    settings = STUDY.settings("tiny", processes=[2, 4], searches=10)
    results = study.run(STUDY, settings, tmp_path, STUDY.execution, preset="tiny")
    assert [x.value("wall_s_per_search") for x in results] == [6, 4]
    assert [x.value("cpu_s_per_search") for x in results] == [10, 10.4]
    assert [x.value("speed_up") for x in results] == [1, 1.5]
    (table,) = STUDY.tables(results)
    assert [[value.text for value in row[3:7]] for row in table.rows] == [
        ["10.0", "6.0", "1.00", "100%"], ["10.4", "4.0", "1.50", "75%"]
    ]  # fmt: skip


def test_a_search_that_fails_fails_the_measurement(monkeypatch):
    failed = Result(Case("law_rates", "search"), "failed", "no formula")
    monkeypatch.setattr(search_speed.schedule, "run", lambda cells, *_: [failed] * len(list(cells)))
    with pytest.raises(RuntimeError, match="2 of 2 searches failed: no formula"):
        search_speed.measure("powerlaw", 2, [1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"processes": [0]}, "processes must be at least 1, got 0"),
        ({"searches": 0}, "searches must be at least 1, got 0"),
        ({"engine": []}, "engine must not be empty"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        STUDY.settings("tiny", **changes)
