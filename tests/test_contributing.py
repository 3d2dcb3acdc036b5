"""The examples of CONTRIBUTING.md, run as they are written in a copy of the packages."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orbits import laws
from orbits.__main__ import main
from orbits.dataset import OrbitDataset
from orbits.runs import flags, studies, study
from worldmodel.probes import command

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)


def block(word):
    """Return the one example that contains a word."""
    (found,) = (text for text in BLOCKS if word in text)
    return found


WORDS = ("_entry(", "LAW = Law(", "PROBE = ", "STUDY = ", "class Still", "ATTENTION = ", "MIXER = ")
ENTRY, LAW, PROBE, STUDY, MODEL, SPEC, MIXER = map(block, WORDS)
(PRESETS,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
VARIANT = re.search(r'"(\w+)"', ENTRY)[1]
NAME = re.search(r'name="(\w+)"', LAW)[1]


def test_every_example_is_tested():
    assert sorted(BLOCKS) == sorted([ENTRY, LAW, PROBE, STUDY, MODEL, SPEC, MIXER])


@pytest.mark.full
def test_an_added_variant_and_law_pass_the_tests_that_find_them(tmp_path):
    for part in ("attention", "orbits", "symreg", "worldmodel", "benchmarks", "tests"):
        shutil.copytree(
            ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "results")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    catalogue = tmp_path / "attention" / "catalogue.py"
    before, entries, after = catalogue.read_text("utf-8").partition("_ENTRIES = (\n")
    added = f"{before}{entries}{ENTRY.rstrip()},\n{after}"
    catalogue.write_text(added, "utf-8")
    (tmp_path / "orbits" / "laws" / f"{NAME}.py").write_text(LAW, "utf-8")

    def run(*arguments):
        ran = subprocess.run(
            [sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    page = run("attention", "ls", "--markdown")
    (tmp_path / "attention" / "VARIANTS.md").write_text(page, "utf-8")
    assert f"| {VARIANT} |" in page
    listed = run("orbits", "ls")
    assert f"law      {NAME}" in listed
    assert "no law" not in listed
    files = ("attention/test_contract.py", "attention/test_variants_page.py", "orbits/test_laws.py")
    said = run(
        *("pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{file}" for file in files)),
        *("-k", f"{VARIANT} or {NAME} or variants_page or test_the_catalogue"),
    )
    passed = int(re.search(r"(\d+) passed", said)[1])
    assert passed >= 20, said


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SPEC, re.search(r'"(\w+)"', SPEC)[1]),
        pytest.param(MIXER, re.search(r'name = "(\w+)"', MIXER)[1], marks=pytest.mark.full),
    ],
)
def test_what_is_from_outside_is_listed(text, name, tmp_path):
    (tmp_path / "mine.py").write_text(text, "utf-8")
    line = [sys.executable, "-m", "orrery", "attention", "ls", f"--plugin={tmp_path / 'mine.py'}"]
    told = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"\n{name}  " in told
    assert "left out" not in told


@pytest.mark.full
def test_the_world_model_is_probed(tmp_path, capsys):
    file = tmp_path / "still.py"
    file.write_text(MODEL, "utf-8")
    flags = ["--probes=rollout", "--n-sequences=20", "--seeds=0", f"--out={tmp_path / 'out'}"]
    command.main([f"--model={file}:Still", *flags])
    assert "Still" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_the_law_is_sampled_and_used(tmp_path, monkeypatch):
    folder = tmp_path / "laws"
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(LAW, "utf-8")
    monkeypatch.setattr(laws, "__path__", [*laws.__path__, str(folder)])
    laws._catalogue.cache_clear()
    try:
        assert laws.broken() == {}
        counts = ["--n", "3", "--n-val", "1", "--n-test", "1"]
        main(["generate", "--law", NAME, "--n-points", "20", *counts, "--out", str(tmp_path / "d")])
        row = OrbitDataset(tmp_path / "d")[0]
        state, force = row["state"][1::2], row["force"][1::2]  # the star has neither
        expected = laws.get(NAME).magnitude(np.hypot(*state[:, :2].T), state[:, 4], state[:, 5])
        assert np.hypot(*force.T) == pytest.approx(expected, rel=1e-4)
    finally:
        monkeypatch.undo()
        laws._catalogue.cache_clear()
        sys.modules.pop(f"{laws.__name__}.{NAME}", None)


def test_the_probe_is_found_and_evaluated(tmp_path, monkeypatch):
    from tests.worldmodel.probes.evaluation import evaluate
    from tests.worldmodel.trainings import save
    from worldmodel import probes
    from worldmodel.models.orbit import NextTokenModel
    from worldmodel.probes.settings import Settings

    name = re.search(r'name = "(\w+)"', PROBE)[1]
    args = {"n_points": 16, "n_bins": 32}
    model = NextTokenModel(protocol_args=args, n_layer=1, n_head=2, head_dim=8)
    path = save(model, tmp_path / "model.ckpt")
    (tmp_path / f"{name}.py").write_text(PROBE, "utf-8")
    monkeypatch.setattr(probes, "__path__", [*probes.__path__, str(tmp_path)])
    try:
        assert name in probes.names()
        results = evaluate(name, path, Settings(n_sequences=12), tmp_path / "out")
    finally:
        sys.modules.pop(f"{probes.__name__}.{name}", None)
        probes.get.cache_clear()
    assert [result.case.arm for result in results] == ["pretrained", "untrained"]
    for result in results:  # of 32 places along each axis, all about as likely
        assert result.value("nll") == pytest.approx(2 * np.log(32), rel=0.2)


def test_the_study_is_found_run_and_reported(tmp_path, monkeypatch):
    package = tmp_path / "coinbox"
    package.mkdir()
    for name, text in (("__init__.py", ""), ("coins.py", STUDY), ("coins.yaml", PRESETS)):
        (package / name).write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    coins = studies.get([importlib.import_module("coinbox")], "coins")
    arguments = ["--preset", "tiny", "--seeds", "0,1,2", "--executor", "here"]
    chosen = flags.parse_study(coins, [*arguments, "--out", str(tmp_path / "out")], "run coins")
    results = study.run(coins, chosen.settings, chosen.out, chosen.execution, preset=chosen.preset)
    assert [result.status for result in results] == ["ok"] * 9
    text = study.report(coins, chosen.out)
    assert "Is a coin fair?" in text
    assert all(coin in text for coin in ("penny", "dime", "euro"))
