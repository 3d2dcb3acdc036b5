"""Mixers from outside: tried before they are listed, and named in one line where they fail."""

import re
import sys
from importlib import metadata

import pytest
import torch

import attention
from attention import linear
from attention.__main__ import main
from attention.linear import Mixer
from tests.attention.linear.by_name import inputs
from worldmodel.models.backbone import GPT

FADING = """
import torch
from torch import nn

from attention.linear import Mixer


class Fading(Mixer):
    name = "fading_sum"
    source = "a stranger"
    about = "A sum of all inputs so far that fades."
    kept = "H D"
    arguments = {"rate": 0.5}

    def __init__(self, n_head, head_dim, **args):
        super().__init__(n_head, head_dim, **args)
        self.project = nn.Linear(self.width, self.width, bias=False)
        nn.init.zeros_(self.project.weight)

    def _mix(self, x, cache, chunk):
        state, sums = cache.tensors.get("state", 0.0), []
        for now in x.unbind(1):
            state = self.args["rate"] * state + now
            sums.append(state)
        cache.tensors = {"state": state}
        return self.project(torch.stack(sums, dim=1))


MIXER = Fading
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return what installs a package of a stranger that defines a mixer by an entry point."""

    def install(text):
        (tmp_path / "strange_mixers.py").write_text(text, "utf-8")
        about = tmp_path / "strange-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[orrery.mixer]\nmine = strange_mixers:MIXER\n")
        monkeypatch.syspath_prepend(tmp_path)
        linear._catalogue.cache_clear()
        return str(tmp_path / "strange_mixers.py")

    yield install
    monkeypatch.undo()
    sys.modules.pop("strange_mixers", None)
    linear._catalogue.cache_clear()


def test_it_is_built_by_name_and_listed_as_ours_are(installed, capsys):
    installed(FADING)
    assert [point.name for point in metadata.entry_points(group="orrery.mixer")] == ["mine"]
    state = torch.get_rng_state()
    assert attention.names("linear")[-1] == "fading_sum"
    assert torch.equal(torch.get_rng_state(), state), "the trial draws nothing of the caller's"
    assert attention.arguments("fading_sum") == ("rate",)
    assert attention.label("fading_sum", rate=0.9) == "fading_sum rate=0.9"
    assert attention.explain("fading_sum", torch.zeros(1, 2, 3, 4)).chosen == "chunks"
    torch.manual_seed(0)
    gpt, x = GPT("fading_sum", {"rate": 0.9}, n_layer=2, n_head=2, head_dim=4).double(), inputs(6)
    caches = gpt.new_caches()
    parts = torch.cat([gpt(part, caches) for part in x.split([4, 1, 1], dim=1)], dim=1)
    torch.testing.assert_close(parts, gpt(x), rtol=0, atol=1e-9)
    with pytest.raises(TypeError, match=r"fading_sum has no causal; .* zeros take one"):
        GPT("fading_sum", None, n_layer=1, n_head=2, head_dim=4, causal=False)
    main(["ls"])
    assert "\nfading_sum" in (said := capsys.readouterr().out)
    assert "left out" not in said


NAMED = "fading_sum"
UNNAMED = "plug-in mine"
FAULTS = {
    "not a class": (("MIXER = Fading", "MIXER = 3"), UNNAMED, "MIXER must be a subclass of Mixer"),
    "not a mixer": (("(Mixer)", "(nn.Module)"), NAMED, "MIXER must be a subclass of Mixer, got"),
    "no constant": (('kept = "H D"', ""), NAMED, "Fading lacks kept, a text"),
    "no mapping": (('{"rate": 0.5}', '"rate"'), NAMED, "arguments of fading_sum must be a mapping"),
    "signature": ((", **args):", "):"), NAMED, "unexpected keyword argument 'chunk'"),
    "no forward": (("def _mix", "def _mixed"), NAMED, "abstract class Fading"),
    "taken": (('"fading_sum"', '"zeros"'), UNNAMED, "there is an attention 'zeros' already"),
    "a variant's": (('"fading_sum"', '"softmax"'), UNNAMED, "there is an attention 'softmax' alr"),
    "another shape": (("dim=1))", "dim=1))[..., :3]"), NAMED, "to finite numbers, got shape [2, 7"),
    "not finite": (("dim=1))", "dim=1)) / 0"), NAMED, "got numbers not finite"),
    "the future": (("state + now", "state + x.mean(1)"), NAMED, "sees the future: outputs change"),
    "forgets": (("cache.tensors =", "_ ="), NAMED, "read in two parts gives other outputs than at"),
    "forms": (("state + now", "state + now * (chunk or 1)"), NAMED, "read position by position"),
    "an exit": (("MIXER = Fading", "raise SystemExit"), UNNAMED, "SystemExit: SystemExit"),
}


@pytest.mark.parametrize(("change", "name", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_and_stops_nothing_else(change, name, message, installed, capsys):
    before = attention.names("all")
    assert change[0] in FADING
    file = installed(FADING.replace(*change))
    assert attention.names("all") == before
    line = linear.broken()[name]
    assert re.match(rf"{re.escape(file)}: .*{re.escape(message)}", line)
    assert len(line.splitlines()) == 1
    with pytest.raises(ValueError, match=re.escape(line)):
        attention.build("fading_sum", n_head=2, head_dim=4)
    main(["ls"])
    assert f"left out: {line}" in capsys.readouterr().out.splitlines()


def test_a_mixer_that_says_it_reads_ahead_is_left_to_encoders(installed):
    text = FADING.replace("state + now", "state + x.mean(1)")
    installed(text.replace("    def _mix", "    causal = False\n\n    def _mix"))
    assert issubclass(linear.get("fading_sum"), Mixer)
    with pytest.raises(ValueError, match="fading_sum sees what a GPT predicts"):
        GPT("fading_sum", None, n_layer=1, n_head=2, head_dim=4)
