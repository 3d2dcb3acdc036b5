"""Plug-ins from a folder of a stranger: found by every command, and judged like what is here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orbits.runs import plugins

ROOT = Path(__file__).parents[2]
TRAINED = "runs/pretrain/version_0/checkpoints/last.ckpt"
SMALL = (
    "--model.n_layer 1 --model.head_dim 8 --data.n_train 32 --data.n_val 8 "
    "--trainer.max_steps 2 --trainer.val_check_interval 2"
)
LAW = """
from orbits.laws import Law

LAW = Law(
    name="gentle",
    expression="k*m1*m2/r**1.9",
    potential="-k*m1*m2/(0.9*r**0.9)",
    parameters={"k": 39.5},
    units={"k": "AU^2.9 / (solar mass year^2)"},
    exponents={"r": -1.9, "m1": 1.0, "m2": 1.0},
    reference="a stranger",
)
"""
ATTENTION = """
from attention import AttnSpec

ATTENTION = AttnSpec(
    name="soft", phi="softplus", source="a stranger", formula="softplus(q.k/sqrt(d)) / sum",
    about="Softplus weights.",
)
"""
MIXER = """
import torch
from torch import nn

from attention.linear import Mixer


class Fading(Mixer):
    name, source, about, kept = "fading", "a stranger", "A sum that fades.", "H D"

    def __init__(self, n_head, head_dim, **args):
        super().__init__(n_head, head_dim, **args)
        self.rate = nn.Parameter(torch.zeros(self.width))
        self.project = nn.Linear(self.width, self.width)

    def _mix(self, x, cache, chunk):
        state, sums = cache.tensors.get("state", 0.0), []
        for now in x.unbind(1):
            state = self.rate.sigmoid() * state + now
            sums.append(state)
        cache.tensors = {"state": state}
        return self.project(torch.stack(sums, dim=1))


MIXER = Fading
"""
CORPUS = """
from worldmodel.text.corpora import PublishedCorpus

CORPUS = PublishedCorpus(
    name="letters", repository="stranger/letters", configuration="default",
    splits={"train": "train"}, n_tokens=1e5, reference="a stranger", license="CC0 1.0",
)
"""
ENGINE = """
from dataclasses import replace

from symreg.engines import powerlaw

ENGINE = replace(powerlaw.ENGINE, name="mine")
"""
STILL = """
class Still:
    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        return places
"""
LINES = """
import sys
from orrery.__main__ import main
for line in sys.argv[1:]:
    sys.argv, code = ["orrery", *line.split()], 0
    try:
        main()
    except SystemExit as stopped:
        code = stopped.code or 0
    for stream in (sys.stdout, sys.stderr):
        print(f"\x1e{code}", file=stream, flush=True)
"""
"""Runs command lines one after the other; what each has written ends with its exit code."""
FILES = {"law": LAW, "attention": ATTENTION, "mixer": MIXER, "corpus": CORPUS, "engine": ENGINE}


@pytest.fixture
def stranger(tmp_path):
    """Return what runs a command line of ``orrery`` in a folder with the plug-ins."""
    for name, text in FILES.items():
        (tmp_path / f"my_{name}.py").write_text(text, "utf-8")
    example = ROOT / "worldmodel" / "examples" / "flat_model.py"
    (tmp_path / "my_model.py").write_text(example.read_text("utf-8"), "utf-8")

    def start(*words):
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def run(line, code=0):
        ran = start("-m", "orrery", *line.split())
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stderr if code else ran.stdout

    def together(*lines, codes):
        """Run lines in one process, which imports torch once; return what each has written."""
        ran, found = start("-c", LINES, *lines), []
        assert ran.returncode == 0, ran.stdout + ran.stderr
        for stream in (ran.stdout, ran.stderr):
            texts, ends = zip(*re.findall(r"(?s)(.*?)\x1e(\d+)\n", stream), strict=True)
            assert tuple(map(int, ends)) == codes, ran.stdout + ran.stderr
            found.append(texts)
        return [err if code else out for code, out, err in zip(codes, *found, strict=True)]

    run.folder, run.together = tmp_path, together
    return run


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("data ls --plugin my_law.py", "law      gentle "),
        ("attention ls --plugin my_attention.py", "\nsoft  "),
        pytest.param("attention ls --plugin my_mixer.py", "\nfading  ", marks=pytest.mark.full),
        ("law ls --plugin=my_engine.py", "\n  mine "),
    ],
)
def test_a_catalogue_lists_what_a_file_adds(stranger, line, name):
    assert name in stranger(line)


def test_a_corpus_is_known_by_name(stranger):
    line = "shards --corpus leters --out shards --plugin my_corpus.py"
    assert "did you mean letters" in stranger(line, 2)


@pytest.mark.full
def test_a_model_without_a_force_takes_no_exam(stranger):
    (stranger.folder / "still.py").write_text(STILL, "utf-8")
    said = stranger("bench run exam --model still.py:Still --out examined", 2)
    assert said.endswith("still.py: Still has no force; add the method\n")
    assert not (stranger.folder / "examined").exists()


@pytest.mark.full
def test_a_file_that_fails_takes_nothing_else_down(stranger):
    (stranger.folder / "bad.py").write_text("LAW = 1 / 0", "utf-8")
    said = stranger("data ls --plugin bad.py --plugin my_law.py")
    assert "law      gentle " in said
    assert "no law: " in said
    assert "bad.py: ZeroDivisionError: division by zero" in said
    for fault, told in (("phi='expp'", "unknown phi 'expp' of odd;"), ("phy=1", "'phy'")):
        text = f"from attention import AttnSpec\n\nATTENTION = AttnSpec('odd', {fault})"
        (stranger.folder / "odd.py").write_text(text, "utf-8")
        (line,) = [x for x in stranger("attention ls --plugin odd.py").splitlines() if "left" in x]
        assert line.startswith(f"left out: {stranger.folder / 'odd.py'}: ")
        assert told in line
    said = stranger("train -c pretrain --plugin odd.py --model.attention=odd", 2)
    assert said.startswith(
        f"error: unknown attention 'odd' (left out: {stranger.folder / 'odd.py'}"
    )
    (stranger.folder / "none.py").write_text("x = 1", "utf-8")
    assert "none.py: defines none of LAW, ATTENTION" in stranger("data ls --plugin none.py", 2)


@pytest.mark.full
def test_a_model_from_a_file_is_probed_examined_and_ranked(stranger):
    model = "--model my_model.py:FlatModel --executor here"
    stranger.together(
        f"probe {model} --probes rollout,predictions --n-sequences 20 --seeds 0 --out probed",
        f"bench run exam {model} --preset tiny --out examined",
        "bench report examined --quiet",
        codes=(0, 0, 0),
    )
    (file,) = (stranger.folder / "probed").rglob("predictions.npz")
    said = stranger(
        f"law leaderboard {file} --seeds 1 --engine powerlaw --executor here --out board"
    )
    assert "flat network" in said
    assert "flat network" in (stranger.folder / "probed" / "report.md").read_text("utf-8")
    assert "flat network" in (stranger.folder / "examined" / "report.md").read_text("utf-8")


@pytest.mark.full
def test_a_mixer_that_leaks_the_future_is_refused_before_any_work(stranger):
    leaking = MIXER.replace("state + now", "state + x.mean(1)")
    (stranger.folder / "leaking.py").write_text(leaking, "utf-8")
    plugin = "--plugin leaking.py"
    error = (
        f"error: {stranger.folder / 'leaking.py'}: fading sees the future: outputs change "
        "with inputs after them\n"
    )
    said = stranger.together(
        f"bench run mqar --preset tiny --attention fading {plugin} --out recalled",
        f"train -c pretrain --model.attention fading {plugin}",
        codes=(2, 2),
    )
    assert said == [error] * 2
    assert {path.suffix for path in stranger.folder.iterdir()} <= {".py", ""}
    assert not (stranger.folder / "recalled").exists()


@pytest.mark.full
def test_a_mixer_from_a_file_is_trained_in_workers_and_probed(stranger):
    plugin = "--plugin my_mixer.py"
    recall = "bench run mqar --preset tiny --attention fading --seeds 0 --lrs 0.01"
    _, said = stranger.together(
        f"{recall} --workers 1 --out recalled {plugin}",
        f"train -c pretrain --model.attention fading {SMALL} {plugin}",
        codes=(0, 0),
    )
    (next_line,) = [line for line in said.splitlines() if line.startswith("next: ")]
    assert next_line.endswith(plugin)
    probe = f"probe {TRAINED} --probes rollout --n-sequences 20 --seeds 0 --executor here"
    missing = (
        f"error: {TRAINED}: unknown attention 'fading'; it was trained with {plugin}: add that\n"
    )
    lines = ("bench report recalled", probe, f"finetune -c force --pretrained {TRAINED}")
    _, *said = stranger.together(*lines, codes=(0, 2, 2))
    assert "fading" in (stranger.folder / "recalled" / "report.md").read_text("utf-8")
    assert all(each.endswith(missing) for each in said)
    stranger(f"{probe} --out probed {plugin}")
    assert "fading" in (stranger.folder / "probed" / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_a_model_of_an_attention_and_a_law_from_files_is_probed(stranger):
    plugins = "--plugin my_attention.py --plugin my_law.py"
    world = "--model.attention soft --data.protocol_args.law gentle"
    probe = f"probe {TRAINED} --probes rollout --n-sequences 12 --seeds 0 --executor here"
    stranger.together(
        f"train -c pretrain {world} {SMALL} {plugins}",
        f"{probe} --out probed {plugins}",
        codes=(0, 0),
    )
    report = (stranger.folder / "probed" / "report.md").read_text("utf-8")
    assert "soft" in report
    assert "gentle" in report


@pytest.mark.full
def test_attentions_and_a_law_from_files_pass_the_flagship_and_the_leaderboard(stranger):
    files = "--law my_law.py --plugin my_attention.py --plugin my_mixer.py --plugin my_engine.py"
    small = "--preset tiny --engine mine --attention soft,fading --shifts closer --n-test 40"
    small += " --pretrain-steps 4 --finetune-steps 4 --executor here --no-scratch"
    stranger(f"bench run newton {files} {small} --out run")
    lines = (stranger.folder / "run" / "results.jsonl").read_text("utf-8").splitlines()
    results = [json.loads(line) for line in lines]
    for name in ("soft", "fading"):
        of = {result["kind"] for result in results if result["variant"] == name}
        assert {"forces", "exam", "search"} <= of
    assert {result["status"] for result in results} == {"ok"}
    assert {result["law"] for result in results} == {"gentle"}
    (file, *_) = sorted((stranger.folder / "run").rglob("predictions.npz"))
    one = "--seeds 1 --engine mine --executor here --out board"
    said = stranger(
        f"law leaderboard {file} --law my_law.py --plugin my_engine.py "
        f"--plugin my_attention.py --plugin my_mixer.py {one}"
    )
    assert "gentle" in said


UNDERSCORED = """
from orbits.laws import Law

LAW = Law(
    name="soft_core",
    expression="k*m1*m2/(r**2 + core_length**2)**p",
    parameters={"k": 39.5, "core_length": 0.1, "p": 1.0},
    units={"k": "AU^3 / (solar mass year^2)", "core_length": "AU", "p": "1"},
    reference="a stranger",
)
"""


@pytest.mark.full
def test_a_law_from_a_file_with_a_parameter_changed_is_a_law_of_its_own(stranger):
    """It has exponents and a formula of its own, and is told by that formula in data."""
    power = LAW.replace("r**1.9", "r**n").replace('{"k": 39.5}', '{"k": 39.5, "n": 1.9}')
    power = power.replace('year^2)"}', 'year^2)", "n": "1"}')
    (stranger.folder / "power.py").write_text(power, "utf-8")
    said = stranger("law score 39.5*m1*m2/r**1.5 --law gentle_n_1.5 --plugin power.py")
    assert re.search(r"is the law\s+yes", said)
    small = "--n 4 --protocol identifiable --executor here"
    stranger(f"data generate --law gentle_n_1.5 --plugin power.py {small} --out data")
    assert "gentle_n_1.5: F = k*m1*m2/r**n, k = 39.5, n = 1.5" in stranger("data info data")
    (stranger.folder / "soft.py").write_text(UNDERSCORED, "utf-8")
    changed = "soft_core_core_length_0.3"
    stranger(f"data generate --law {changed} --plugin soft.py {small} --out soft")
    assert "core_length = 0.3" in stranger("data info soft")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('"r": -1.9', '"r": -3.0', "exponents has -3 for r, the formula -1.9"),
        ("/(0.9*", "/(0.8*", "the derivative of potential by r is not the formula"),
    ],
)
@pytest.mark.full
def test_a_law_from_a_file_that_contradicts_itself_is_refused(stranger, was, now, said):
    (stranger.folder / "wrong.py").write_text(LAW.replace(was, now), "utf-8")
    assert said in stranger("law score m1*m2/r**2 --law gentle --plugin wrong.py", 2)
    listed = stranger("data ls --plugin wrong.py")
    assert said in listed
    assert "newton" in listed, "it takes nothing else down"


def test_a_law_whose_name_is_taken_is_not_another_law(stranger):
    (stranger.folder / "taken.py").write_text(LAW.replace('"gentle"', '"newton"'), "utf-8")
    said = stranger("data generate --n 3 --out data/x --law taken.py", 2)
    assert "taken.py: law 'newton' is there already; name it otherwise" in said
    assert not (stranger.folder / "data").exists()


def test_next_commands_repeat_the_plug_in_and_quote_paths(stranger):
    made = stranger("data generate --n 3 --n-val 2 --n-test 2 --out data/x --law my_law.py")
    assert made.splitlines()[-1].endswith("data plot data/x --plugin my_law.py")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("data generate --n 3 --law= --out data/x", "unknown law ''"),
        ("bench run newton --dry-run --law=", "unknown law ''"),
    ],
)
def test_an_empty_law_is_no_law(stranger, line, said):
    assert said in stranger(line, 2)


def test_an_empty_law_takes_no_other_flag():
    assert plugins.take(["--law", "", "--n", "5"]) == ["--law=", "--n", "5"]
    assert plugins.take(["--n", "5", "--law"]) == ["--n", "5", "--law"]


def test_a_plug_in_has_the_name_of_a_module(stranger):
    (stranger.folder / "my law.py").write_text(LAW, "utf-8")
    with pytest.raises(ValueError, match="a plug-in's name has letters"):
        plugins.take(["--law", str(stranger.folder / "my law.py")])
