"""What every study of the suite owes its user; a new file is picked up by itself."""

import dataclasses
import json
import subprocess
import sys

import pytest

from benchmarks.__main__ import PROG, packages
from benchmarks.published import tables as published
from benchmarks.study import PaperStudy
from orbits.runs import cost, flags, presets, studies, study

DIRECTIONS = {"higher", "lower", "none"}
STUDIES = sorted(name for package in packages() for name in studies.names(package))
HARNESS = "downstream"
"""The study whose cells need a library of its own."""


def get(name):
    return studies.get(packages(), name)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_says_what_it_is(name):
    found = get(name)
    known = presets.of(found)
    of_a_paper = {"gpu", "paper"} if isinstance(found, PaperStudy) else set()
    assert {"tiny", "small"} | of_a_paper <= set(known)
    assert all(preset.about for preset in known.values())
    for preset in known:
        settings = found.settings(preset)
        assert not found.changes(found.config(settings, preset))
        found.check_changes(settings, {})
    assert found.metrics
    assert {quantity.direction for quantity in found.metrics.values()} <= DIRECTIONS
    assert all(quantity.about for quantity in found.metrics.values())


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_names_published_tables_that_there_are(name):
    found = get(name)
    named = getattr(found, "published", ())
    known = {table.table for key in named for table in published.tables(key)}
    assert all(published.tables(key) for key in named)
    assert set(getattr(found, "same_scale", ())) <= known


@pytest.mark.parametrize("name", STUDIES)
def test_cells_are_pure_and_have_addresses_of_their_own(name):
    if name == HARNESS:
        pytest.importorskip("lm_eval", reason="needs lm_eval: pip install -e '.[eval]'")
        pytest.importorskip("rouge_score", reason="needs rouge-score: pip install -e '.[eval]'")
    found = get(name)
    settings = found.resolve(found.settings("tiny"))
    cells, again = (study.all_cells(found, settings) for _ in range(2))
    assert [cell.key for cell in cells] == [cell.key for cell in again]
    assert len({cell.key for cell in cells}) == len(cells)
    json.dumps([dict(cell.arguments) for cell in cells])
    unknown = {cell.case.kind for cell in cells if cost.of(cell) is None}
    assert not unknown, "no cost is known of them: run one, and python -m orbits.runs.cost --add"


@pytest.mark.parametrize("name", STUDIES)
def test_every_setting_is_a_flag_with_its_documentation(name, capsys):
    found = get(name)
    with pytest.raises(SystemExit, match="0"):
        flags.parse_study(found, ["--help"], f"{PROG} run {name}")
    said = capsys.readouterr().out
    for field in dataclasses.fields(found.Settings):
        flag = f"--{field.name.replace('_', '-')}"
        assert (field.name if field.name == found.words else flag) in said
    assert "<default" not in said


def test_help_is_fast_for_every_study():
    heavy = ("torch", "lightning", "matplotlib", "pandas", "lm_eval", "sympy")
    code = (
        "import contextlib, io, sys; from benchmarks.__main__ import main\n"
        f"for name in {STUDIES}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        main(['run', name, '--help'])\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]", "help must not wait for heavy imports"


def test_a_missing_checkpoint_is_refused_before_torch_is_imported():
    code = (
        "import contextlib, sys; from benchmarks.__main__ import main\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main(['run', 'extrapolation', '--checkpoints', 'missing.ckpt'])\n"
        "print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == ("False\n", "error: missing.ckpt: no such file\n")
