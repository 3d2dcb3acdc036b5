"""The flagship: orbits -> world model -> force head -> law -> leaderboard.

The law is Newton's unless another one is asked for; a line's ``task`` names it, so that rows of
two worlds never share a table. With ``elsewhere``, models trained in worlds of other laws stand in
the table too: a model that knows Newton's law must not find it where it does not rule.

Every attention variant is pre-trained on orbits, then fine-tuned on a budget of labelled
sequences; a compute-matched model of the same variant learns the forces from scratch; controls
stand beside them. Every predictor's held-out force predictions go through symbolic regression.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.newton_options import Options
from benchmarks.observers import OBSERVERS, infers_mass
from benchmarks.presets import UNLIMITED
from benchmarks.variants import Variant, variants
from symreg.cells import Cell
from symreg.measure import search_config
from worldmodel.device_orbits import is_made_on_device

CLOSED_FORM_SEQUENCES = 4000
"""Labelled sequences of the k-NN oracle and the ridge read-out where the budget is unlimited."""

DIRECTION_WEIGHT = 0.3
"""Weight of the force's direction beside its standardised magnitude."""

UNTRAINED = "untrained + ridge"

LEAKED = "leaked labels"
"""Part of the name of a model that learnt from labels of the test sequences, and of its table's."""


def cells(options: Options) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    grid = _Grid(options)
    heads, transferred = grid.transfers()
    predictors = [*grid.models(), *transferred, *grid.controls()]
    trained = [*grid.pretraining.values(), *heads]
    return [*trained, *grid.next_points(), *predictors, *grid.laws(predictors)]


class _Grid:
    """Build the cells of a run."""

    def __init__(self, options: Options) -> None:
        self.options, self.preset = options, options.preset
        self.variants = variants(
            self.preset.attentions, self.preset.exponents, options.sharpen_after
        )
        self.pretraining = {
            (law, variant, seed): self._pretraining(law, variant, seed)
            for law in (options.law, *options.elsewhere)
            for variant in self.variants
            for seed in self.preset.seeds
        }

    def next_points(self) -> Iterable[Cell]:
        """Yield how well each world model of this world predicts, and what needs no model."""
        here = self.options.law
        asked = {
            "task": here,
            "line_kind": "next point",
            "data": self._data("pretrain", None, None),
            "world": self.options.world().config(),
        }
        for (law, variant, seed), cell in self.pretraining.items():
            if law == here:
                row = self._row(variant.label, "world model", None, seed)
                yield Cell(
                    "next_point",
                    {**asked, "row": row, "seed": seed, **self._training(one_device=True)},
                    needs={"pretrained": cell},
                    label=f"next points of {variant.label}, seed {seed}",
                )
        row = self._row("references", "control", None, None)
        yield Cell("next_point_references", {**asked, "row": row, "seed": None}, label="orbit fits")

    def models(self) -> Iterable[Cell]:
        """Yield pre-trained, scratch and untrained rows."""
        for seed in self.preset.seeds:
            for budget in self.preset.labels:
                for variant in self.variants:
                    yield self._pretrained(variant, seed, budget)
                    yield self._scratch(variant, seed, budget)
            for variant in self.variants:
                if not variant.sharpen_after:
                    row = self._row(variant.label, UNTRAINED, CLOSED_FORM_SEQUENCES, seed)
                    yield self._cell("ridge", row, model=self._model(variant, "force"))

    def transfers(self) -> tuple[list[Cell], list[Cell]]:
        """Return heads trained in other worlds, and the rows of models that come from there."""
        heads, rows = [], []
        largest = max(self.preset.labels, key=_size)
        for law in self.options.elsewhere:
            for seed in self.preset.seeds:
                for variant in self.variants:
                    for budget in self.preset.labels:
                        rows.append(self._pretrained(variant, seed, budget, law))
                    head = self._head_elsewhere(law, variant, seed, largest)
                    heads.append(head)
                    row = self._row(variant.label, f"trained on {law}", 0, seed)
                    rows.append(self._cell("transfer", row, needs={"head": head}))
        return heads, rows

    def controls(self) -> Iterable[Cell]:
        """Yield the rows that need no model."""
        yield self._cell("control", self._row("true force", "control", None, None))
        ceiling = self._row("ceiling", "control", None, None)
        yield self._cell("control", ceiling, observer=2)  # its version: what it answers changed
        budgets = [b if b != UNLIMITED else CLOSED_FORM_SEQUENCES for b in self.preset.labels]
        for budget in dict.fromkeys(budgets):
            yield self._cell("control", self._row("k-NN oracle", "control", budget, None))
        row = self._row("power law", "control", min(int(b) for b in budgets), None)
        yield self._cell("control", row)
        for law in self.options.elsewhere:
            row = self._row(f"k-NN oracle of {law}", "control", max(map(int, budgets)), None)
            yield self._cell("control", row, taught=self._data("force", row["labels"], None, law))
            for kind in OBSERVERS if infers_mass(law) else ():
                row = self._row(f"{kind}, by {law}", "control", None, None)
                yield self._cell("control", row, control=kind, believed=law)

    def laws(self, predictors: Iterable[Cell]) -> Iterable[Cell]:
        """Yield the symbolic searches of the predictors, at the chosen label budgets."""
        chosen = self.options.law_labels
        for seed in range(self.preset.law_seeds):
            for predictor in predictors:
                budget = predictor.config["row"]["labels"]
                control = predictor.config["row"]["arm"] == "control"
                if chosen is not None and budget not in (*chosen, 0) and not control:
                    continue
                for engine in self.preset.engines:
                    row = predictor.config["row"]
                    yield Cell(
                        "law",
                        {
                            "task": self.options.law,
                            "line_kind": "law",
                            "row": row,
                            **search_config(self.options.law, engine),
                            "seed": seed,
                        },
                        needs={"predictor": predictor},
                        label=f"{engine} {seed}: {row['model']}, {row['arm']}",
                    )

    def _pretraining(self, law: str, variant: Variant, seed: int) -> Cell:
        row = self._row(variant.label, "pretraining", None, seed)
        config = {
            "task": law,
            "line_kind": "pretraining",
            "row": row,
            "seed": seed,
            "model": self._model(variant, "pretrain", law),
            "lr": self.preset.lr,
            "steps": self.preset.pretrain_steps,
            "sharpen_after": variant.sharpen_after,
            "data": self._data("pretrain", None, seed, law),
            "world": self.options.world(law).config(),
            **self._training(one_device=False),
        }
        return Cell("pretrain", config, label=f"pretrain {variant.label}, {law}, seed {seed}")

    def _pretrained(
        self, variant: Variant, seed: int, budget: int | str, origin: str | None = None
    ) -> Cell:
        """Fine-tune in this world a backbone of the world of the law ``origin``; None for this."""
        config = self._fine_tuning()
        if origin is not None:
            config["any_law"] = True
        return self._cell(
            "force",
            self._row(
                variant.label,
                "pretrained" if origin is None else f"pretrained on {origin}",
                budget,
                seed,
            ),
            needs={"pretrained": self.pretraining[origin or self.options.law, variant, seed]},
            model=self._model(variant, "force"),
            **config,
        )

    def _scratch(self, variant: Variant, seed: int, budget: int | str) -> Cell:
        preset = self.preset
        return self._cell(
            "force",
            self._row(variant.label, "scratch", budget, seed),
            model=self._model(variant, "force"),
            direction_weight=DIRECTION_WEIGHT,
            sharpen_after=variant.sharpen_after,
            lr=preset.lr,
            # The scratch arm is matched in steps: it takes those of both phases.
            steps=preset.finetune_steps + preset.pretrain_steps,
            **self._training(one_device=False),
        )

    def _head_elsewhere(self, law: str, variant: Variant, seed: int, budget: int | str) -> Cell:
        """Train backbone and head in the world of ``law``; its line makes no row of this table."""
        return self._cell(
            "force",
            self._row(variant.label, f"head, {law}", budget, seed),
            needs={"pretrained": self.pretraining[law, variant, seed]},
            law=law,
            line_kind="pretraining",
            model=self._model(variant, "force", law),
            **self._fine_tuning(),
        )

    def _fine_tuning(self) -> dict[str, Any]:
        return {
            "direction_weight": DIRECTION_WEIGHT,
            "sharpen_after": 0,
            "lr": self.preset.finetune_lr,
            "steps": self.preset.finetune_steps,
            **self._training(one_device=True),
        }

    def _cell(
        self,
        kind: str,
        row: dict[str, Any],
        needs: Mapping[str, Cell] | None = None,
        law: str | None = None,
        **config: Any,
    ) -> Cell:
        """Return a cell on labelled sequences, of the world of ``law``; None for this one."""
        row = self._marked(row)
        # Neither unlimited labels nor none are a number of training sequences.
        budget = None if row["labels"] in (UNLIMITED, 0) else row["labels"]
        everything = {
            "task": law or self.options.law,
            "line_kind": "predictor",
            "row": row,
            "seed": row["seed"],
            "data": self._data("force", budget, row["seed"], law),
            "world": self.options.world(law, "force").config(),
            **config,
        }
        label = f"{row['model']}, {row['arm']}, {row['labels']} labels, seed {row['seed']}"
        return Cell(kind, everything, needs=needs or {}, label=label)

    def _marked(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row that says, in its table's name and in its model's, that labels leaked."""
        if not (leak := self.options.label_leak):
            return row
        # Protocols never share a table. Controls are no models, and asked for by their names.
        protocol = f"{row['protocol']}, {leak} {LEAKED} per test sequence"
        model = row["model"] if row["arm"] == "control" else f"{row['model']}, {LEAKED}"
        return {**row, "protocol": protocol, "model": model}

    def _row(self, model: str, arm: str, labels: Any, seed: int | None) -> dict[str, Any]:
        return {
            "protocol": self.options.protocol,
            "model": model,
            "arm": arm,
            "labels": labels,
            "seed": seed,
        }

    def _model(self, variant: Variant, population: str, law: str | None = None) -> dict[str, Any]:
        return {
            "protocol": self.options.protocol,
            "protocol_args": self.options.protocol_args(law, population) or None,
            "input": self.preset.input,
            "attention": variant.attention,
            "attention_args": variant.arguments(1 + self.options.world().n_points) or None,
            "n_layer": self.preset.n_layer,
            "n_head": self.preset.n_head,
            "head_dim": self.preset.head_dim,
            "optimizer": self.preset.optimizer,
            "weight_decay": self.preset.weight_decay,
        }

    def _data(
        self, population: str, n_train: int | None, seed: int | None, law: str | None = None
    ) -> dict[str, Any]:
        # A model seed draws its own training sequences; arms and variants share them, and all
        # seeds share the held-out ones.
        preset = self.preset
        more: dict[str, Any] = {}
        on_device = preset.device_batches and is_made_on_device(self.options.world(law))
        if population == "pretrain" and on_device:
            more["device_batches"] = preset.device_batches
        elif preset.num_workers:
            more["num_workers"] = preset.num_workers
        if population == "force" and preset.images:
            more["images"] = True
        return {
            "train_seed": seed,
            "protocol": self.options.protocol,
            "protocol_args": self.options.protocol_args(law, population) or None,
            "population": population,
            "n_train": preset.n_pretrain if population == "pretrain" else n_train,
            "n_test": preset.n_test,
            "batch_size": preset.batch_size,
            **more,
        }

    def _training(self, *, one_device: bool) -> dict[str, Any]:
        """Return how a cell is trained, if not as usual."""
        how = self.preset.training
        if one_device:
            how = dataclasses.replace(how, devices=1, strategy="auto")
        return {"training": changes} if (changes := how.changes()) else {}


def _size(budget: int | str) -> float:
    return math.inf if budget == UNLIMITED else float(budget)
