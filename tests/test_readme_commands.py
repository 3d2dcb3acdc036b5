"""The command lines of the READMEs, run in small in one folder, in the order of the pages.

Flags behind a line make it small; a later flag counts. Lines of :data:`PARSED` are not run, with
the reason: :mod:`tests.test_readme` compares their flags with the help of their command.
"""

import importlib
import re
import shlex
import shutil
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from orbits.runs import artefact
from tests.test_readme import COMMANDS, ROOT

LAST = "runs/pretrain/version_0/checkpoints/last.ckpt"
STEPS = "--trainer.max_steps=2 --trainer.val_check_interval=2 --trainer.accelerator=cpu"
PAGE = (ROOT / "orrery" / "README.md").read_text("utf-8")
ORRERY = re.findall(r"^(orrery [^#\n]+?) *(?:#.*)?$", PAGE, re.MULTILINE)
"""Lines of the console command."""
SMALL = (
    f"{STEPS} --data.batch_size=4 --data.n_val=4 --model.n_layer=1 --model.head_dim=8 "
    "--data.protocol_args.n_points=24 --data.protocol_args.n_bins=64"
)
PROBED = "--preset tiny --n-sequences 12 --seeds 0 --executor here"
SHRUNK = {
    "orbits generate --shift": "--n-test 20",
    "orbits generate": "--n 20",
    "orrery data generate": "--n 20",
    "orrery train": SMALL,
    "worldmodel fit -c worldmodel/configs/text": f"{STEPS} --data.batch_size=2 --data.n_val=2",
    "worldmodel fit": SMALL,
    "worldmodel finetune": f"{STEPS} --data.batch_size=4 --data.n_val=4 --data.n_train=8",
    "worldmodel predict": "--data.n_test=40",
    "worldmodel probe CKPT --probes implied_law --cells": f"{PROBED} --cells 25 --out runs/p1",
    "worldmodel probe": PROBED,
    "worldmodel bpe": "--vocab-size 300",
    "symreg leaderboard": "--seeds 1 --engine powerlaw --executor here --out runs/board",
    "symreg fit": "--engine powerlaw",
    "benchmarks run mqar": "",
    "benchmarks run": "--dry-run",
}
"""Flags behind lines by how these begin, of which the first counts."""
PARSED = {
    "worldmodel probe CKPT [": "it stands for lines below it",
    "worldmodel probe CKPT --law": "every probe, for minutes",
    "worldmodel shards": "it needs the network",
    "worldmodel fit -c worldmodel/configs/lm_124m": "it needs the shards",
    "attention aot": "it compiles for minutes; tests of the kernels do",
    "attention tune": "it needs a GPU",
    "benchmarks run kernels": "it needs a GPU",
    "benchmarks run sink": "it needs a run of minutes",
    "benchmarks run extrapolation --checkpoints": "it needs the network",
    "benchmarks run submissions": "it needs answers; tests of the study run it",
    "benchmarks report": "it needs a run; tests of every study report one",
    "benchmarks export": "it needs a run; tests of the flagship export one",
    "benchmarks site": "it draws all kept results for a minute; tests of the site build one",
    "benchmarks coverage": "it reads all kept results; tests of the coverage do",
    "pytest": "it is not a command of ours",
}
"""Reasons why lines are not run, by how these begin."""


def begins(line, known):
    """Return the first key that a line begins with, or None."""
    return next((key for key in known if line.startswith(key)), None)


def lines():
    """Return the lines that are run, each once; those that read answers are the last."""
    every = dict.fromkeys([*map(shlex.join, COMMANDS), *ORRERY])
    here = [line for line in every if begins(line.replace("'", ""), PARSED) is None]
    return sorted(here, key=lambda line: line.startswith("symreg"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder in which the configurations lie where the READMEs have them."""
    made = tmp_path_factory.mktemp("readme")
    for name in ("worldmodel/configs", "benchmarks/results", "orbits/dataset/cards"):
        (made / name).parent.mkdir(parents=True)
        (made / name).symlink_to(ROOT / name)
    return made


def test_every_reason_and_every_flag_is_of_a_line():
    every = [*(shlex.join(words).replace("'", "") for words in COMMANDS), *ORRERY]
    assert all(any(line.startswith(key) for line in every) for key in (*PARSED, *SHRUNK))
    assert len(lines()) > 25


@pytest.mark.full
@pytest.mark.parametrize("line", lines())
def test_a_line_runs(line, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    if line.startswith("symreg") and not Path("mine.npz").exists():
        answers("runs/force/version_0/predictions.npz")
    package, *words = shlex.split(line.replace("CKPT", LAST))
    key = begins(line.replace("'", ""), SHRUNK)
    code = 0
    try:
        importlib.import_module(f"{package}.__main__").main([*words, *SHRUNK.get(key, "").split()])
    except SystemExit as stopped:
        code = stopped.code
    assert not code, capsys.readouterr().err


def answers(source):
    """Write predictions in the two files that the pages name."""
    shutil.copy(source, "mine.npz")
    columns, _ = artefact.load_arrays(Path(source))
    kept = {name: columns[name] for name in ("sequence_id", "r", "m1", "m2", "force_predicted")}
    parquet.write_table(pyarrow.table(kept), "theirs.parquet")
