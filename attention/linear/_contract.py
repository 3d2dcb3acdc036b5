"""The check of a mixer from outside: what the tests ask of every mixer here, in brief."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attention.linear.mixer import Mixer
from attention.spec import FACTS

HEADS, CHANNELS, LENGTH, SEEN = 2, 16, 7, 4
"""Sizes of the trial; the first ``SEEN`` of its positions are those that must not see the rest."""
TOLERANCE = 1e-5
"""Largest difference, as a share of the largest output, or of 1: that of float32 and its sums."""


def check_described(mixer: type[Mixer]) -> None:
    """Refuse a class whose constants do not describe it, with a ValueError."""
    for field in FACTS:
        if not isinstance(getattr(mixer, field, None), str):
            raise ValueError(f"{mixer.__name__} lacks {field}, a text")


def check(attribute: str, mixer: Any) -> None:
    """Refuse what is no mixer, cannot be built, leaks the future or has forms that differ.

    The trial is two heads of sixteen channels in float64, with weights moved away from where they
    start: a projection that starts at zero would hide what is before it. No random number is drawn
    from the generator of the caller.

    Args:
        attribute: The name of what the mixer is assigned to.
        mixer: What a plug-in defines.

    Raises:
        ValueError: The fault, in one line. What the mixer itself raises passes through.
    """
    if not (isinstance(mixer, type) and issubclass(mixer, Mixer)):
        raise ValueError(f"{attribute} must be a subclass of Mixer, got {mixer!r:.60}")
    check_described(mixer)
    if not isinstance(mixer.arguments, Mapping):
        raise ValueError(f"arguments of {mixer.name} must be a mapping of names to defaults")
    with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.device("cpu"):
        torch.manual_seed(0)
        built = mixer(HEADS, CHANNELS, chunk=3, layer=0, n_layer=2).double().eval()
        for parameter in built.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        x = torch.randn(2, LENGTH, HEADS * CHANNELS, dtype=torch.float64)
        _check_forms(built, x)


def _check_forms(mixer: Mixer, x: Tensor) -> None:
    """Compare a mixer's outputs with those of its other forms and of other later inputs."""
    whole = mixer(x)
    wanted = f"{mixer.name} must map {list(x.shape)} to finite numbers"
    if whole.shape != x.shape:
        raise ValueError(f"{wanted}, got shape {list(whole.shape)}")
    if not whole.isfinite().all():
        raise ValueError(f"{wanted}, got numbers not finite")
    if not mixer.causal:
        return
    changed = mixer(torch.cat([x[:, :SEEN], -x[:, SEEN:]], dim=1))
    if _differ(changed[:, :SEEN], whole[:, :SEEN]):
        raise ValueError(f"{mixer.name} sees the future: outputs change with inputs after them")
    cache = mixer.new_cache()
    parts = torch.cat([mixer(part, cache) for part in (x[:, :SEEN], x[:, SEEN:])], dim=1)
    for how, found in (("position by position", mixer.recurrent(x)), ("in two parts", parts)):
        if _differ(found, whole):
            raise ValueError(f"{mixer.name} read {how} gives other outputs than at once")


def _differ(found: Tensor, expected: Tensor) -> bool:
    if found.shape != expected.shape:
        return True
    return bool((found - expected).abs().max() > TOLERANCE * max(1.0, float(expected.abs().max())))
