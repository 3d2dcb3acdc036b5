"""What one run of the flagship measures, checked before any work."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from benchmarks.presets import UNLIMITED, Preset
from benchmarks.variants import variants
from orbits import protocols
from orbits.motion import NEWTON
from symreg import engines
from symreg.result_rows import MINIMUM_SEEDS

FORCE_SEED_OFFSET = 1000
"""Fine-tuning starts from another random state than pre-training with the same seed."""
LARGEST_SEED = 2**32 - 1 - FORCE_SEED_OFFSET
"""What PyTorch, NumPy and Lightning take as a seed is below 2^32."""
UNDECIDING = ("about", "protocol", "jobs")
"""Fields of a preset that determine no result, or that an option repeats."""


@dataclass(frozen=True)
class Options:
    """What one run measures, resolved; it determines every cell.

    Attributes:
        protocol: What is observed.
        preset: Sizes and steps.
        sharpen_after: For each re-weighted variant, a further row whose pre-training starts
            without re-weighting up to this step; 0 for none.
        law: The force law of the world.
        elsewhere: Other laws. A backbone pre-trained in each of their worlds is fine-tuned in this
            one, and one with its force head from there is asked here without a label.
        law_labels: Label budgets of models whose predictions are searched for formulas, beside
            controls and models that need no label; None for all, read-outs too.
        label_leak: How many labels of every test sequence are among those that rows learn from:
            0, or 2 as published.
    """

    protocol: str
    preset: Preset
    sharpen_after: int = 0
    law: str = NEWTON
    elsewhere: tuple[str, ...] = ()
    law_labels: tuple[int | str, ...] | None = None
    label_leak: int = 0

    def __post_init__(self) -> None:
        preset = self.preset
        for law in (self.law, *self.elsewhere):
            world = self.world(law)
            world.systems(0, "test", range(300))  # refuses a law that does not bind these orbits
            if "force" not in world.populations:
                raise ValueError(
                    f"protocol {self.protocol!r} has no labelled forces; take identifiable, fixed "
                    "or paper"
                )
            if preset.images and world.n_points % 2:
                raise ValueError(f"images need an even n_points, got {world.n_points}")
        if len(preset.seeds) not in (0, 1) and len(preset.seeds) < MINIMUM_SEEDS:
            raise ValueError(
                f"an interval over seeds needs at least {MINIMUM_SEEDS} of them, got "
                f"{len(preset.seeds)}; give one or {MINIMUM_SEEDS}"
            )
        if max(preset.seeds, default=0) > LARGEST_SEED:
            raise ValueError(f"seeds must be at most {LARGEST_SEED}, got {max(preset.seeds)}")
        self.world().check_seeds([0, *preset.seeds])  # all share the held-out sequences of 0
        if self.law in self.elsewhere:
            raise ValueError(f"elsewhere must not name {self.law!r}, the law of the world itself")
        unknown = [x for x in self.law_labels or () if x not in preset.labels]
        if unknown:
            raise ValueError(f"law_labels must be among labels {preset.labels}, got {unknown[0]!r}")
        variants(preset.attentions, preset.exponents)  # refuses an unknown one, or an exponent
        for name in preset.engines:
            status = engines.get(name).status()
            if status.state != "ready":
                raise ValueError(f"engine {name!r} is {status.state}: {status.reason}")
        for budget in preset.labels:
            if budget != UNLIMITED and not (isinstance(budget, int) and budget >= 3):
                raise ValueError(f"a label budget is a number >= 3 or unlimited, got {budget!r}")
        for what, values in (
            ("labels", preset.labels),
            ("seeds", preset.seeds),
            ("attentions", preset.attentions),
            ("engines", preset.engines),
        ):
            if not values:
                raise ValueError(f"{what} must not be empty")
        if not 0 <= self.sharpen_after < preset.pretrain_steps:
            raise ValueError(
                f"sharpen_after must be in [0, {preset.pretrain_steps}), got {self.sharpen_after}"
            )
        if self.label_leak:
            self._check_leak()

    def _check_leak(self) -> None:
        """Refuse what labels cannot leak into."""
        self.world(population="force")  # refuses a number of labels that cannot leak
        if self.preset.images:
            raise ValueError("images do not go with label_leak; add --no-images")
        if UNLIMITED in self.preset.labels:
            raise ValueError("label_leak needs label budgets that are numbers, got unlimited")
        if self.elsewhere:  # heads of other worlds see no label of this one: theirs is honest
            raise ValueError("elsewhere does not go with label_leak; leave one of them out")

    def protocol_args(self, law: str | None = None, population: str = "pretrain") -> dict[str, Any]:
        """Return the overrides of the protocol at this size, in the world of a law.

        Labels leak into the population ``force`` alone: world models see none.
        """
        law = law or self.law
        other: dict[str, Any] = {} if law == NEWTON else {"law": law}
        if self.label_leak and population == "force":
            other["label_leak"] = self.label_leak
        return {**self.preset.protocol_args.get(self.protocol, {}), **other}

    def world(self, law: str | None = None, population: str = "pretrain") -> protocols.Protocol:
        """Return the world of a law; None for the law that rules here."""
        return protocols.get(self.protocol, self.protocol_args(law, population))

    def config(self) -> dict[str, Any]:
        """Return plain data for the results folder's claim."""
        return {
            "benchmark": "newton",
            "protocol": self.protocol,
            "law": self.law,
            "sharpen_after": self.sharpen_after,
            "elsewhere": list(self.elsewhere),
            "law_labels": None if self.law_labels is None else list(self.law_labels),
            # Absent without a leak, as in results from before there was one.
            **({"label_leak": self.label_leak} if self.label_leak else {}),
            "preset": {
                k: v for k, v in dataclasses.asdict(self.preset).items() if k not in UNDECIDING
            },
        }
