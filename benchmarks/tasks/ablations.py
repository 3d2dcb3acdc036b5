"""What of softmax is needed: its exponential, its normalisation, its sign?

LSSAR (2026), Tables A4 (modified weights), A5 (exponential and normalisation apart) and A6 (other
functions in the exponential's place), as one sweep of language models at the training length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from benchmarks.task import Line, Table, by_seed
from benchmarks.tasks import extrapolation
from benchmarks.tasks.extrapolation import ExtrapolationTask
from benchmarks.views import bars, interval_table

VARIANTS = (
    "softmax", "softmax_neg", "softmax_recentred", "softmax_recentred_l1", "raw", "exp", "l1",
    "phi_relu", "phi_relu2", "phi_relu6", "phi_gelu", "phi_sigmoid", "phi_softplus", "phi_mish",
)  # fmt: skip
PRESETS = {
    name: replace(
        preset,
        attentions=VARIANTS[:3] if name == "tiny" else VARIANTS,
        exponents=(),
        multiples=(1,),
        about=about,
    )
    for (name, preset), about in zip(
        extrapolation.PRESETS.items(),
        (
            "smoke test, a minute of CPU; no claims",
            "byte GPT of 0.1M, 64 bytes of context, Python source",
            "byte GPT of 11M, 512 bytes; one GPU",
            "GPT-2 124M, FineWeb, 18,865 steps on 8 GPUs; never run",
        ),
        strict=True,
    )
}


class AblationsTask(ExtrapolationTask):
    """Softmax taken apart."""

    name = "ablations"
    version = 1
    about = "Which parts of softmax does a language model need?"
    presets = PRESETS
    published: ClassVar = ("ablation",)
    same_scale: ClassVar = ("lssar_table_a4", "lssar_table_a5", "lssar_table_a6")
    ntk: ClassVar = (False,)  # nothing is longer than what was trained on

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return the loss of every variant."""
        return [interval_table("Loss, nats per token", lines, ("model",), ("loss@1x",))]

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw the loss of every variant beside softmax's."""
        found = by_seed(lines, "loss@1x", "model")
        values = {model: seeds for (model,), seeds in found.items()}
        known = values.get("softmax", {})
        level = sum(known.values()) / len(known) if known else float("nan")
        path = folder / "loss.png"
        caption = "Loss at the training length, beside softmax's."
        return {caption: bars(values, path, "nats per token", level, "softmax")}


TASK = AblationsTask()
