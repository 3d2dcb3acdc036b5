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
from tests.early import refused_without_torch
from tests.tiers import corners

DIRECTIONS = {"higher", "lower", "none"}
STUDIES = sorted(name for package in packages() for name in studies.names(package))
HARNESS = "downstream"
"""The study whose cells need a library of its own."""

REFUSED = (
    (None, "--preset=huge", "unknown preset 'huge'; choose from "),
    (None, "--jobs=1", "use --workers"),
    (None, "--no-such-flag", "unrecognized arguments: --no-such-flag"),
    ("attention", "--attention=softmax,sofmax", "unknown attention 'sofmax'; did you mean softmax"),
    ("attention", "--attentions=softmax", "use --attention"),
    ("exponents", "--attention=softmax --exponents=3", "--exponents needs a re-weighted variant"),
    ("seeds", "--seeds=", "seeds must not be empty"),
    ("seeds", "--seeds=0 --seeds=1", "--seeds is given twice; write --seeds A,B"),
    ("seeds", "--seeds=5000000000", "seeds must be at most 4294966295"),
    ("recipe", "--recipe=huge", "unknown preset 'huge'; choose from "),
)
"""What every study refuses that has the setting, if one is named, and what it says."""


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


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(set(STUDIES) - {HARNESS}))
def test_cells_of_every_preset_are_plain_data_with_addresses_of_their_own(name):
    found = get(name)
    for preset in presets.of(found):
        settings = found.settings(preset)
        if getattr(settings, "shards", None):
            continue  # of text that is not here
        cells = study.all_cells(found, found.resolve(settings))
        assert len({cell.key for cell in cells}) == len(cells), preset
        json.dumps([dict(cell.arguments) for cell in cells])


@pytest.mark.parametrize("name", corners(STUDIES, "mqar", "extrapolation", "law_rates"))
def test_what_no_study_takes_is_one_line(name, refused_run):
    found = get(name)
    default = found.Settings()
    needed = ["word"] if found.words else []
    for setting, flag, message in REFUSED:
        if setting is None or isinstance(getattr(default, setting, None), tuple | str):
            assert message in refused_run(name, *needed, *flag.split())


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


@pytest.mark.parametrize(
    ("name", "changes"),
    [("mqar", {"lengths": (2048,)}), ("extrapolation", {"seq_len": 128})],
)
def test_a_mixer_that_is_built_for_so_many_rows_is_not_asked_longer_ones(name, changes):
    found = get(name)
    settings = found.settings("tiny", attention=["cosformer"], **changes)
    with pytest.raises(ValueError, match="cosformer reads at most 1024"):
        study.all_cells(found, settings)


def test_masked_models_have_the_exponents_of_the_others():
    found = get("sink")
    settings = found.settings("tiny", attention=["lssar"], exponents=[3], mask_attention="lssar")
    labels = {cell.case.variant for cell in study.all_cells(found, settings)}
    assert labels == {"lssar p=3"}


NO_RESULTS = "tests holds files that are not results; choose another --out"
EARLY = {
    "newton --labels x": "a label budget is a number >= 3 or unlimited, got 'x'",
    "newton --engine opron": "unknown engine 'opron'; did you mean operon",
    "newton --shifts closr": "unknown shift 'closr'; did you mean closer?",
    "newton --seeds -1": "seeds must be at most 4294966295 and at least 0, got -1",
    "newton --baselines knn": "unknown baseline 'knn'",
    "newton --preset tiny --attention softmax,sofmax": "unknown attention 'sofmax'",
    "mqar --attention softmax,sofmax": "unknown attention 'sofmax'; did you mean softmax",
    "implied --worlds newton,newtn": "unknown law 'newtn'; did you mean newton?",
    "exam --law newtn": "unknown law 'newtn'; did you mean newton?",
    "newton --device-batches foo": "unknown precision of device_batches 'foo'",
    "scaling --labels 100,1000": "labels must be one budget",
    "worlds --lr 0": "lr must be at least 1e-09, got 0",
    "worlds --batch-size 0": "batch_size must be at least 1, got 0",
    "images --n-train 20": "n_train must be at least 25, got 20",
    "exam --shifts closr": "unknown shift 'closr'; did you mean closer?",
    "forecasting --data nothere": "--data nothere: no such folder",
    "extrapolation --checkpoints missing.ckpt": "missing.ckpt: no such file",
    **{f"{x} --preset tiny --out tests": NO_RESULTS for x in ("newton", "mqar", "worlds")},
}
"""Runs, and what is said of each."""


@pytest.mark.full
def test_what_cannot_be_is_refused_before_torch_is_imported():
    said = refused_without_torch("benchmarks.__main__", [f"run {words}" for words in EARLY])
    for line, (words, message) in zip(said, EARLY.items(), strict=True):
        assert line.startswith("error: "), words
        assert message in line, words
