"""Checks of the flagship's settings, made before any work."""

from __future__ import annotations

import math

from benchmarks.newton.settings import NewtonSettings
from benchmarks.newton.worlds import UNLIMITED, shifts, world
from benchmarks.variants import check_re_weighted, variants
from orbits.runs.choices import check_choice
from orbits.runs.settings import LARGEST_SEED, check_at_least, check_not_empty
from orbits.runs.statistics import MINIMUM_SEEDS
from orbits.visible import TRIED
from symreg import engines
from worldmodel.controls.baselines import BASELINES

PRECISIONS = ("float32", "float64")
"""Precisions of sequences that a device makes."""
LEAST = {
    **dict.fromkeys(("n_layer", "n_head", "batch_size", "n_test", "n_pretrain"), 1),
    **dict.fromkeys(("pretrain_steps", "finetune_steps"), 1),
    **dict.fromkeys(("weight_decay", "num_workers"), 0),
    "head_dim": 2,
}
"""Least values of sizes; None is allowed."""


def check(settings: NewtonSettings) -> None:
    """Refuse settings that cannot be met."""
    check_not_empty(settings, "labels", "seeds", "attention", "engine", "baseline_seeds")
    check_at_least(settings, LEAST)
    for name in ("lr", "finetune_lr"):
        if not 0 < (rate := getattr(settings, name)) < math.inf:
            raise ValueError(f"{name} must be positive, got {rate:g}")
    if settings.device_batches is not None:
        check_choice("precision of device_batches", settings.device_batches, PRECISIONS)
    _check_worlds(settings)
    shifts(settings)  # refuses those that there are not
    _check_seeds(settings)
    _check_labels(settings)
    for name in settings.baselines:
        check_choice("baseline", name, BASELINES)
    if settings.continued < 0 or settings.continued == 1:
        raise ValueError(
            f"--continued must be 0, or at least 2 for an interval, got {settings.continued}"
        )
    if settings.law_seeds < 1:
        raise ValueError(f"--law-seeds must be at least 1, got {settings.law_seeds}")
    for name in settings.engine:
        status = engines.get(name).status()
        if status.state != "ready":
            raise ValueError(f"engine {name!r} is {status.state}: {status.reason}")
    _check_attention(settings)  # last: it imports torch


def _check_worlds(settings: NewtonSettings) -> None:
    if settings.law in settings.elsewhere:
        raise ValueError(f"elsewhere must not name {settings.law!r}, the law of the world itself")
    for law in (settings.law, *settings.elsewhere):
        here = world(settings, law)
        here.systems(0, "test", range(TRIED))  # refuses a law that does not bind these orbits
        if "force" not in here.populations:
            raise ValueError(
                f"protocol {settings.protocol!r} has no labelled forces; take identifiable, fixed "
                "or paper"
            )
        if settings.images and here.n_points % 2:
            raise ValueError(f"images need an even n_points, got {here.n_points}")


def _check_seeds(settings: NewtonSettings) -> None:
    for name in ("seeds", "baseline_seeds"):
        seeds = getattr(settings, name)
        if 1 < len(seeds) < MINIMUM_SEEDS:
            raise ValueError(
                f"an interval over {name} needs at least {MINIMUM_SEEDS} of them, got "
                f"{len(seeds)}; give one or {MINIMUM_SEEDS}"
            )
        if max(seeds) > LARGEST_SEED or min(seeds) < 0:
            refused = next(seed for seed in seeds if not 0 <= seed <= LARGEST_SEED)
            raise ValueError(f"{name} must be at most {LARGEST_SEED} and at least 0, got {refused}")
        world(settings).check_seeds([0, *seeds])  # all share the held-out sequences of 0


def _check_labels(settings: NewtonSettings) -> None:
    for budget in settings.labels:
        if budget != UNLIMITED and not (isinstance(budget, int) and budget >= 3):
            raise ValueError(f"a label budget is a number >= 3 or unlimited, got {budget!r}")
    unknown = [x for x in settings.law_labels or () if x not in settings.labels]
    if unknown:
        raise ValueError(f"law_labels must be among labels {settings.labels}, got {unknown[0]!r}")
    if not settings.label_leak:
        return
    world(settings, population="force")  # refuses a number of labels that cannot leak
    if settings.images:
        raise ValueError("images do not go with label_leak; add --no-images")
    if UNLIMITED in settings.labels:
        raise ValueError("label_leak needs label budgets that are numbers, got unlimited")
    if settings.elsewhere:  # heads of other worlds see no label of this one: theirs is honest
        raise ValueError("elsewhere does not go with label_leak; leave one of them out")


def _check_attention(settings: NewtonSettings) -> None:
    for power in settings.exponents:
        if not 0 < power < math.inf:
            raise ValueError(f"--exponents takes positive numbers, got {power:g}")
    variants(settings.attention, settings.exponents)  # refuses an unknown one
    if not 0 <= settings.sharpen_after < settings.pretrain_steps:
        raise ValueError(
            f"sharpen_after must be in [0, {settings.pretrain_steps}), got {settings.sharpen_after}"
        )
    if settings.sharpen_after:
        check_re_weighted("--sharpen-after", settings.attention)
