"""The tables of the kept results are what their lines say, as the code is now."""

import shutil
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from symreg import results
from symreg.__main__ import main as symreg
from worldmodel.probe_report import report

KEPT = Path(results.__file__).parents[1] / "benchmarks" / "results"
TABLES = {
    path.parent.name: path
    for name in ("leaderboard.md", "report.md")
    for path in sorted(KEPT.glob(f"*/{name}"))
    if (path.parent / results.CLAIM).is_file()
}


@pytest.mark.parametrize("name", TABLES)
def test_a_kept_table_is_made_again_from_its_lines(name, tmp_path):
    table = TABLES[name]
    for file in (results.CLAIM, results.LINES, f"{results.LINES}.json"):
        shutil.copy(table.parent / file, tmp_path)
    main(["report", str(tmp_path)])
    assert (tmp_path / table.name).read_text() == table.read_text()


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in KEPT.glob("law-layer/*/leaderboard.md"))
)
def test_a_kept_leaderboard_of_the_law_layer_is_made_again_from_its_lines(name, capsys):
    folder = KEPT / "law-layer" / name
    symreg(["show", str(folder), "--markdown"])
    assert capsys.readouterr().out == (folder / "leaderboard.md").read_text()


@pytest.mark.parametrize("name", sorted(path.parent.name for path in KEPT.glob("*/probe.json")))
def test_a_kept_probe_report_is_made_again_from_its_lines_and_files(name, tmp_path):
    again = tmp_path / name
    shutil.copytree(KEPT / name, again)
    report(again)
    assert (again / "report.md").read_text() == (KEPT / name / "report.md").read_text()
