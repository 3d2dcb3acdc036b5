"""Attention sinks of trained language models.

Lazy Attention, Table 2 (loss, density, sink of the offset forms), Tables 4 to 7 (norm and
variance of queries, keys, values and hidden states by position, on a story and on a repeated
token) and Figure 2a (a fixed token at one place of every training window). A sink is judged
beside what uniform attention has: at short lengths the first key gets much by arithmetic alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.presets import Training
from benchmarks.task import Line, Measured, Metric, Table, Task, by_seed
from benchmarks.tasks import _language_model as language_model
from benchmarks.tasks._asked import Asked, Model, check_text, models_of, to_train, training_cells
from benchmarks.tasks._language_model import AskedText
from benchmarks.views import bars, interval_table, panels
from symreg import results
from symreg.cells import Cell, Compute, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from worldmodel.text_task import TextTask

STORY = "Once upon a time, in a land far far away, there lived"
TEXTS = ("natural", "repeated", "story")
"""Held-out windows; a window of one token, its first one, again and again; the papers' sentence."""
STATISTICS = "positions.npz"
KINDS = ("q", "k", "v", "hidden")
FIRST = tuple(f"{statistic}_{kind}" for statistic in ("norm", "var") for kind in KINDS)
"""What is measured by position, and shown at the first one by the mean of the others."""

FIRST_TITLE = "The first position by the mean of the others"
FIRST_ABOUT = (
    "Norm and variance of queries, keys, values and hidden states; means over layers, heads and "
    "windows, then over seeds with a 95% interval. The last rows are computed from Lazy Attention, "
    "Tables 4 to 7, of models of billions of weights."
)
PAPER_MODELS = {
    ("Qwen3-4B", "story"): ("lazy_table_4a", "lazy_table_5a"),
    ("Qwen3-4B", "repeated"): ("lazy_table_4b", "lazy_table_5b"),
    ("BLOOM", "story"): ("lazy_table_6a", "lazy_table_7a"),
    ("BLOOM", "repeated"): ("lazy_table_6b", "lazy_table_7b"),
}
"""Tables of these statistics by position, by model and text."""


@dataclass(frozen=True)
class Sinks(AskedText):
    """Language models and what their attention is asked.

    Attributes:
        n_windows: Held-out windows.
        mask_at: Places of a fixed token in every training window, from 0: a further training of
            ``mask_attention`` for each.
        mask_attention: The variant of these trainings.
    """

    n_windows: int = 256
    mask_at: tuple[int, ...] = (0, 1, 4, 16, 48)
    mask_attention: str = "softmax"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check({"n_windows": 1, "mask_at": 0})
        if self.mask_at and self.shards is not None:
            raise ValueError(
                f"with shards, mask_at must be empty (--mask-at ''): got {self.mask_at}"
            )
        for place in self.mask_at:
            if not 0 <= place < self.seq_len:
                raise ValueError(f"mask_at must be in [0, {self.seq_len}), got {place}")

    def check_given(self, preset: Any) -> None:
        """Refuse trainings beside checkpoints."""
        super().check_given(preset)
        if self.checkpoints and self.mask_at not in ((), preset.mask_at):
            raise ValueError("with checkpoints nothing is trained, so mask_at changes nothing")


SMALL = Sinks(
    preset="small",
    about="the models of extrapolation's small preset, and the offset forms; 11 minutes of CPU",
    attentions=(
        "softmax", "lssa", "lssar", "elastic", "elastic_head", "elastic_seqlen", "elastic_fixed",
        "lazy", "sink_bias",
    ),
    exponents=(15.0,),
    mask_at=(0, 4, 48),
)  # fmt: skip
TABLE_2 = (*SMALL.attentions, "elastic_seqlen_from_zero")
PRESETS = {
    "tiny": replace(
        SMALL, preset="tiny", about="smoke test, a minute of CPU; no claims", n_layer=1,
        head_dim=8, seq_len=16, steps=20, seeds=(0,), attentions=("softmax", "lssar"),
        exponents=(), n_windows=8, mask_at=(4,),
    ),
    "small": SMALL,
    "gpu": replace(
        SMALL, preset="gpu", about="byte GPT of 11M, 512 bytes, 10,000 steps; one GPU",
        attentions=TABLE_2, n_layer=6, n_head=6, head_dim=64, seq_len=512, batch_size=64,
        steps=10_000, lr=1e-3, n_windows=256, mask_at=(0, 1, 4, 16, 64, 256),
        training=Training(accelerator="cuda", precision="bf16-mixed"),
    ),
    "paper": replace(
        SMALL, preset="paper", about="340M, 10B tokens of FineWeb-Edu, 512 tokens; never run",
        attentions=TABLE_2, n_layer=24, n_head=16, head_dim=64, seq_len=512, batch_size=128,
        steps=20_000, lr=4e-4, tokenizer="gpt2", shards="shards/fineweb_edu", n_windows=64,
        weight_decay=0.01, mask_at=(),
        training=Training(
            accelerator="cuda", devices=8, strategy="ddp", precision="bf16-mixed", warmup_steps=1024
        ),
    ),
}  # fmt: skip
METRICS = {
    "loss@1x": Metric("lower", "nats per token", "loss at the training length"),
    "sink": Metric("lower", "%", "mean weight on the first key"),
    "uniform": Metric("none", "%", "the same of uniform attention"),
    "density": Metric("lower", "%", "mean mass on the other keys"),
    "missing": Metric("none", "%", "mass that rows lack: 100 less sink and density"),
    "zeros": Metric("none", "%", "share of visible keys whose weight is exactly 0"),
    "entropy": Metric("none", "nats", "mean entropy of a row"),
    "received": Metric("none", "%", "mean weight on the fixed token, of the rows after it"),
    "uniform_received": Metric("none", "%", "the same of uniform attention"),
    **{
        name: Metric("none", "1", f"{name} at the first position by the mean of the others")
        for name in FIRST
    },
}


class SinkTask(Task):
    """Attention sinks."""

    name = "sink"
    version = 3
    about = "Does attention gather on the first token, and does an elastic softmax prevent it?"
    metrics = METRICS
    presets = PRESETS
    published = ("offsets",)

    def cells(self, settings: Sinks) -> list[Cell]:
        """Return trainings and the measurements of each on every text.

        Raises:
            ValueError: There is no such attention, it has no weights, or there are not so many
                held-out windows.
        """
        import attention
        from benchmarks.variants import Variant
        from worldmodel.tokenizer import load_tokenizer

        models: list[tuple[Asked, int | None]] = [(m, None) for m in models_of(settings)]
        if not settings.checkpoints:
            masked = Variant(settings.mask_attention)
            models += [
                (to_train(settings, masked, seed, place), place)
                for place in settings.mask_at
                for seed in settings.seeds
            ]
        how = {"n_windows": settings.n_windows, **settings.other_text()}
        questions = []
        for model, mask_at in models:
            attention.get(model.attention)  # refuses a linear mixer
            model.check_length(len(load_tokenizer(model.tokenizer).encode(STORY)))
            for text in TEXTS if mask_at is None else TEXTS[:1]:
                row = {"text": text, "mask_at": mask_at}
                label = f"ask {model.label} on {text} text, seed {model.seed}"
                questions.append(model.question(self, "attention", row, how, label))
        every = [model for model, _ in models]
        for context in {model.context for model in every}:
            same = [model for model in every if model.context == context]
            check_text(same, 1, context * settings.n_windows, how.get("text"))
        return [*training_cells(every), *questions]

    def compute(self) -> Mapping[str, Compute]:
        """Return how models are trained and asked."""
        return {"language_model": language_model.train, "attention": self.attention}

    @language_model.skipping()
    def attention(
        self, config: dict[str, Any], folder: Path, needs: dict[str, Path], progress: Progress
    ) -> dict[str, Any]:
        """Measure all layers of a model on one text."""
        import torch

        from attention import metrics
        from orbits import artefacts
        from worldmodel import extrapolate
        from worldmodel.attention_statistics import by_position, layer_states

        model = Model.needed(needs, config)
        task = model.load()
        windows, other = _windows(config, model, task)
        length, place = windows.shape[1] - 1, config["row"]["mask_at"]
        shares: dict[str, list[float]] = {}
        statistics: dict[str, list[torch.Tensor]] = {}
        with extrapolate.at_length(task, length, None):
            losses = extrapolate.losses(task, windows).mean(dim=1)
            for state in layer_states(task, windows[:, :-1]):
                sink = 100 * float(metrics.sink_ratio(state.weights).mean())
                density = 100 * float(metrics.density(state.weights).mean())
                values = {
                    "sink": sink,
                    "density": density,
                    "missing": 100 - sink - density,
                    "zeros": 100 * float(metrics.zero_share(state.weights).mean()),
                    "entropy": float(metrics.row_entropy(state.weights).mean()),
                }
                if place is not None and place + 1 < length:
                    after = state.weights[..., place + 1 :, place]
                    values["received"] = 100 * float(after.double().mean())
                for name, value in values.items():
                    shares.setdefault(name, []).append(value)
                kinds = zip(KINDS, (state.query, state.key, state.value, state.hidden), strict=True)
                for kind, tensor in kinds:
                    for name, table in by_position(tensor).items():
                        statistics.setdefault(f"{name}_{kind}", []).append(table.cpu())
        n = len(windows)
        found = {name: Measured(sum(v) / len(v), n) for name, v in shares.items()}
        found["loss@1x"] = Measured.mean(losses.numpy())
        found["uniform"] = Measured(100 * metrics.uniform_sink_ratio(length), n)
        if "received" in found:
            rows = range(place + 2, length + 1)  # keys that each row after the token sees
            found["uniform_received"] = Measured(100 * fmean(1 / seen for seen in rows), n)
        tables = {name: torch.stack(values) for name, values in statistics.items()}
        for name in FIRST:
            mean = tables[name].mean(dim=0)
            found[name] = Measured(float(mean[0] / mean[1:].mean()), n)
        line = model.line(self, config, found, other)
        arrays = {name: table.numpy() for name, table in tables.items()}
        artefacts.save_arrays(folder / STATISTICS, arrays, line["manifest"])
        return {**line, "files": {"statistics": f"cells/{folder.name}/{STATISTICS}"}}

    def tables(self, lines: Sequence[Line]) -> list[Table]:
        """Return one table per text, one of the first position and one of the fixed token's."""
        found = []
        shares = [name for name in self.metrics if name not in FIRST]
        for text in TEXTS:
            chosen = [x for x in lines if _is(x, text)]
            found.append(interval_table(f"On {text} text", chosen, ("model",), shares))
        whole = [x for x in lines if x["row"]["mask_at"] is None]
        found.append(
            _beside_papers(
                interval_table(FIRST_TITLE, whole, ("model", "text"), FIRST, FIRST_ABOUT)
            )
        )
        masked = [x for x in lines if x["row"]["mask_at"] is not None]
        compared = {x["row"]["model"] for x in masked}
        plain = [x for x in lines if _is(x, "natural") and x["row"]["model"] in compared]
        columns = ("received", "uniform_received", "sink", "uniform", "loss@1x", "var_v")
        title = "A fixed token at one place of every window, or none"
        return [*found, interval_table(title, [*plain, *masked], ("model", "mask_at"), columns)]

    def ours(
        self, lines: Sequence[Line], table: str = ""
    ) -> dict[str, dict[int, dict[str, float]]]:
        """Return what natural text gives."""
        return super().ours([line for line in lines if _is(line, "natural")])

    def draw(self, lines: Sequence[Line], folder: Path) -> dict[str, Path]:
        """Draw every model's sink beside uniform attention's, and its states by position."""
        chosen = [line for line in lines if _is(line, "natural")]
        values = {model: seeds for (model,), seeds in by_seed(chosen, "sink", "model").items()}
        if not chosen:
            return {}
        uniform = chosen[0]["metrics"]["uniform"]["value"]
        caption = "Mean weight on the first key on held-out text, beside that of uniform attention."
        path = folder / "sink.png"
        found = {caption: bars(values, path, "weight on the first key, %", uniform, "uniform")}
        told = {
            file: line["row"]["model"]
            for line in lines
            if _is(line, "story") and (file := results.file(folder.parent, line, "statistics"))
        }
        if told:
            series = {name: _by_position(told, name) for name in ("norm_v", "norm_hidden")}
            caption = "Norms by position on the papers' sentence: means over layers and seeds."
            found[caption] = panels(series, folder / "positions.png", "position")
        return found


def _by_position(told: Mapping[Path, str], name: str) -> dict[str, Any]:
    """Return a statistic by position for every model, from the files of its seeds."""
    from orbits import artefacts

    found: dict[str, list[Any]] = {}
    for path, model in told.items():
        arrays, _ = artefacts.load_arrays(path)
        found.setdefault(model, []).append(arrays[name].mean(axis=0))
    return {model: sum(tables) / len(tables) for model, tables in found.items()}


def _beside_papers(ours: Table) -> Table:
    """Return a table of first positions with those of the papers' models below."""
    from benchmarks import published

    cells = list(ours.cells)
    for (model, text), names in PAPER_MODELS.items():
        values = {}
        for table in map(published.get, names):
            for metric in table.metrics:
                first, *others = (float(row.values[metric.name]) for row in table.rows)
                values[metric.name.replace("@", "_")] = first / fmean(others)
        cells.append([f"{model} (paper)", text, *(f"{values[name]:.3f}" for name in FIRST)])
    return Table(ours.title, ours.caption, cells)


def _is(line: Line, text: str) -> bool:
    return line["row"]["text"] == text and line["row"]["mask_at"] is None


def _windows(
    config: Mapping[str, Any], model: Model, task: TextTask
) -> tuple[Tensor, dict[str, Any] | None]:
    """Return the windows a model is asked, int64 [N, L + 1], and another text than its own."""
    import numpy as np
    import torch

    if config["row"]["text"] == "story":
        return torch.from_numpy(task.tokenizer.encode(STORY).astype(np.int64))[None], None
    n_tokens, other = model.context * config["n_windows"], None
    if text := config.get("text"):
        stream, other = language_model.stream(task.tokenizer, **text)
        windows = language_model.cut(stream, model.context, n_tokens)
    else:
        windows = model.held_out(model.context, n_tokens)
    if config["row"]["text"] == "repeated":
        windows = windows[:, :1].expand(-1, windows.shape[1]).contiguous()
    return windows, other


TASK = SinkTask()
