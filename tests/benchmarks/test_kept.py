"""The kept reports are what their results say, as the code is now."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.__main__ import main

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("undrawn")]
KEPT = Path(__file__).parents[2] / "benchmarks" / "results"
PLACES = sorted(path.parent for path in KEPT.rglob("run.json"))
assert len(PLACES) > 30
WORLDS = ("power-1-5", "from-power-1-5", "labels-power-1-5", "labels-from-power-1-5")
EXAMS = [f"newton-exam-{x}" for x in ("100", "300", "few-power-1-5", "few-power-2-5", *WORLDS)]
ALIKE = {*EXAMS, "newton-small-1000-mixers", "kepler-or-newton-attentions", "probe-exchange-law"}
"""Runs whose reports take longest, and are made as those of ``newton-exam`` and of probes are."""
assert {place.name for place in PLACES} >= ALIKE


def _marked(place):
    marks = [pytest.mark.slow] if place.name in ALIKE else []
    return pytest.param(place, marks=marks, id=str(place.relative_to(KEPT)))


@pytest.mark.parametrize("place", map(_marked, PLACES))
def test_a_kept_report_is_made_again_from_its_results(place, tmp_path):
    again = tmp_path / place.name
    shutil.copytree(place, again)
    (again / "report.md").unlink()
    main(["report", str(again)])
    assert (again / "report.md").read_text() == (place / "report.md").read_text()


def test_no_kept_run_names_a_folder_of_the_machine_that_made_it():
    for place in PLACES:
        argv = json.loads((place / "run.json").read_text())["manifest"]["argv"]
        named = [path for word in argv for path in word.split(",") if path.startswith(("/", "~"))]
        assert not named, place
