"""Loss of language models at 1x to 16x of their training length.

LSSAR (2026), Table 1 and Figures A2 and A3; Lazy Attention, Figure 6. Every length reads the same
text, cut into windows that do not overlap. ``loss`` is the mean over all tokens of a window and
``tail`` over its last ones: a model that ignores what is far away can keep its loss flat and
still have no use for a longer context, which the tail shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.presets import Training
from benchmarks.task import Line, Measured, Metric, Table, Task
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._asked import Model, check_text, models_of, training_cells
from benchmarks.tasks._language_model import AskedText
from benchmarks.views import curves, interval_table
from symreg.cells import Cell, Compute, Progress

MULTIPLES = (1, 2, 4, 8, 16)
POSITIONS = "positions.npz"
PAPER = (
    "softmax", "sigmoid", "sigmoid_rowlen", "sigmoid_rowlen_l1", "phi_sigmoid", "relu_wortsman",
    "relu_li", "relu_shen", "lssa", "softmax_reweighted", "sigmoid_reweighted", "lssar",
)  # fmt: skip


@dataclass(frozen=True)
class Extrapolation(AskedText):
    """Language models and the lengths they are asked at.

    Attributes:
        multiples: Lengths as multiples of the training length.
        tail: Last tokens of a window that ``tail`` is the mean of.
        eval_tokens: Tokens of held-out text, the same at every length: whole windows of the
            longest.
    """

    multiples: tuple[int, ...] = MULTIPLES
    tail: int = 32
    eval_tokens: int = 2**14

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_not_empty("multiples")
        for multiple in self.multiples:
            if multiple not in MULTIPLES:
                raise ValueError(f"multiples must be among {MULTIPLES}, got {multiple}")
        object.__setattr__(self, "multiples", tuple(sorted(self.multiples)))
        if not self.checkpoints:
            self.check_lengths(self.seq_len)

    def check_lengths(self, context: int) -> None:
        """Refuse what models of a training length cannot be asked.

        Raises:
            ValueError: The tail is longer, or the text is not whole windows of every length.
        """
        if not 1 <= self.tail <= context:
            raise ValueError(f"tail must be in [1, {context}], got {self.tail}")
        longest = context * max(self.multiples)
        if self.eval_tokens < 2 * longest or self.eval_tokens % longest:
            # Whole windows of every length then begin and end at the same tokens.
            raise ValueError(
                f"eval_tokens must be a multiple of {longest}, the longest window, and at least "
                f"two of them, got {self.eval_tokens}"
            )


SMALL = Extrapolation(
    preset="small",
    about="byte GPT of 0.1M, 64 bytes of context, Python source; 19 minutes of CPU",
    attentions=(
        "softmax", "lssa", "lssar", "softmax_reweighted", "sigmoid_reweighted", "sigmoid",
        "relu_wortsman", "lazy", "alibi",
    ),
    exponents=(3.0, 15.0),
)  # fmt: skip


PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims", n_layer=1,
        head_dim=8, seq_len=16, tail=8, steps=20, eval_tokens=2**12, seeds=(0,),
        attentions=("softmax", "lssar"), exponents=(),
    ),
    "small": SMALL,
    "gpu": replace(
        SMALL, preset="gpu", about="byte GPT of 11M, 512 bytes, every row of Table 1; one GPU",
        attentions=(*PAPER, "lazy", "elastic", "lazy_no_elastic", "alibi"), n_layer=6,
        n_head=6, head_dim=64, seq_len=512, tail=256, batch_size=64, steps=3000, lr=1e-3,
        eval_tokens=2**19, training=Training(accelerator="cuda", precision="bf16-mixed"),
    ),
    "paper": replace(
        SMALL, preset="paper", about="GPT-2 124M, FineWeb, 18,865 steps on 8 GPUs; never run",
        attentions=PAPER, n_layer=12, n_head=12, head_dim=64, seq_len=1024, tail=256,
        batch_size=64, steps=18_865, lr=6e-4, tokenizer="gpt2", shards="shards/fineweb",
        eval_tokens=10 * 2**20,
        training=Training(
            accelerator="cuda", devices=8, strategy="ddp", precision="bf16-mixed", warmup_steps=700
        ),
    ),
}  # fmt: skip


class ExtrapolationTask(Task):
    """Length extrapolation."""

    name = "extrapolation"
    version = 1
    about = "Does the loss of a language model stay flat beyond its training length?"
    metrics = (
        {
            f"{name}@{m}x": Metric(
                "lower", "nats per token", f"{about} at {m}x the training length"
            )
            for m in MULTIPLES
            for name, about in (
                ("loss", "mean loss of all tokens of a window"),
                ("tail", "mean loss of a window's last tokens"),
            )
        }
        | {
            f"ppl@{m}x": Metric("lower", "1", f"perplexity at {m}x: the exponential of that loss")
            for m in MULTIPLES
        }
        | {
            f"{name}@{m}x": Metric("lower", "nats per token", f"{about} at {m}x less that at 1x")
            for m in MULTIPLES[1:]
            for name, about in (("rise", "loss"), ("tail_rise", "loss of the same last tokens"))
        }
    )
    presets = PRESETS
    published: ClassVar[tuple[str, ...]] = ("extrapolation",)
    same_scale: ClassVar[tuple[str, ...]] = ("lssar_table_1",)
    ntk: ClassVar[tuple[bool, ...]] = (False, True)

    def cells(self, settings: Extrapolation) -> list[Cell]:
        """Return trainings, then a measurement of each with dynamic NTK off and, if any, on.

        Raises:
            ValueError: There is not so much held-out text.
        """
        models, longest = models_of(settings), max(settings.multiples)
        how = {
            "multiples": list(settings.multiples),
            "tail": settings.tail,
            "eval_tokens": settings.eval_tokens,
            **settings.other_text(),
        }
        questions = []
        for model in models:
            settings.check_lengths(model.context)
            model.check_length(longest * model.context)
            for ntk in self.ntk if model.stretches else (False,):
                row = {"ntk": ntk, "context": model.context}
                label = f"ask {model.label}, NTK {'on' if ntk else 'off'}, seed {model.seed}"
                questions.append(model.question(self, "losses", row, how, label))
        check_text(models, longest, settings.eval_tokens, how.get("text"))
        return [*training_cells(models), *questions]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and asked."""
        return {"language_model": language_model.train, "losses": self.losses}

    @language_model.skipping()
    def losses(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Ask a model at every length."""
        import numpy as np

        from orbits import artefacts
        from worldmodel import extrapolate

        model = Model.needed(needs, config)
        task, context, short = model.load(), model.context, None
        metrics, kept, other = {}, {}, None
        if text := config.get("text"):
            stream, other = language_model.stream(task.tokenizer, **text)
        for done, multiple in enumerate(config["multiples"]):
            length = multiple * context
            n = config["eval_tokens"]
            windows = language_model.cut(stream, length, n) if text else model.held_out(length, n)
            ntk = context if config["row"]["ntk"] else None
            with extrapolate.at_length(task, length, ntk):
                found = extrapolate.losses(task, windows).double().numpy()
            tails = found[:, -config["tail"] :].mean(axis=1)
            metrics[f"loss@{multiple}x"] = loss = Measured.mean(found.mean(axis=1))
            metrics[f"ppl@{multiple}x"] = loss.exp()
            metrics[f"tail@{multiple}x"] = Measured.mean(tails)
            kept[f"x{multiple}"] = found.mean(axis=0)
            if multiple == 1:
                short = tails
            elif short is not None:
                # The same tokens, at the end of a training length: text is not equally hard.
                same = short[multiple - 1 :: multiple][: len(tails)]
                metrics[f"tail_rise@{multiple}x"] = Measured.mean(tails - same)
            progress(done + 1, len(config["multiples"]))
        for multiple in config["multiples"]:
            if multiple > 1 and 1 in config["multiples"]:
                rise = metrics[f"loss@{multiple}x"].value - metrics["loss@1x"].value
                metrics[f"rise@{multiple}x"] = Measured(rise, metrics[f"loss@{multiple}x"].n)
        line = model.line(self, config, metrics, other)
        artefacts.save_arrays(
            folder / POSITIONS,
            {name: values.astype(np.float32) for name, values in kept.items()},
            line["manifest"],
        )
        return {**line, "files": {"positions": f"cells/{folder.name}/{POSITIONS}"}}

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return losses, their rises, perplexities and the tails, with NTK off and on."""
        tables = []
        for metric, title in (
            ("loss", "Loss, mean over the window, nats per token"),
            ("rise", "Rise of the loss over that at the training length, nats per token"),
            ("ppl", "Perplexity, over the window"),
            ("tail", "Loss of the window's last tokens, nats per token"),
            ("tail_rise", "Rise of the last tokens' loss, nats per token"),
        ):
            known = {name for line in lines for name in line["metrics"]}
            columns = [name for name in self.metrics if name.startswith(f"{metric}@")]
            if not known & set(columns):
                continue
            tables.append(interval_table(title, lines, ("model", "ntk"), columns))
        return tables

    def ours(
        self, lines: Sequence[Line], table: str = ""
    ) -> dict[str, dict[int, dict[str, float]]]:
        """Return losses with dynamic NTK off, as the paper's second version has it."""
        return super().ours([line for line in lines if not line["row"]["ntk"]])

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw loss against length, NTK off and on."""
        paths = {}
        for state, ntk in (("off", False), ("on", True)):
            caption = (
                f"Loss against length, dynamic NTK {state}: means over seeds, bars from the "
                "smallest to the largest."
            )
            asked = [x for x in lines if x["row"].get("ntk") is ntk]
            path = folder / f"loss_ntk_{state}.png"
            paths[caption] = curves(
                asked, "loss@", path, "length / training length", "nats per token"
            )
        return paths


TASK = ExtrapolationTask()
