"""The grid: every cell of a run of the flagship, each after those it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks import learners
from benchmarks.newton import cells, continued, control_names, controls
from benchmarks.newton.checks import check
from benchmarks.newton.controls import Predictor
from benchmarks.newton.exam_rows import CAUSAL
from benchmarks.newton.observers import infers_mass
from benchmarks.newton.settings import NewtonSettings
from benchmarks.newton.world_models import CONTINUED
from benchmarks.newton.worlds import UNLIMITED, as_number, shifts, world, world_arguments
from benchmarks.training_options import Job
from benchmarks.variants import Variant, variants
from orbits.runs.cell import Cell, Function
from orbits.runs.result import Case
from orbits.runs.settings import HEAD_OFFSET
from symreg.measure import search_config
from worldmodel.data.device import is_made_on_device
from worldmodel.probes.implied.asked import refusal

CLOSED_FORM_SEQUENCES = 4000
"""Labelled sequences of nearest neighbours and ridge read-outs where the budget is unlimited."""
DIRECTION_WEIGHT = 0.3
"""Weight of the force's direction beside its standardised magnitude."""
UNTRAINED = "untrained + ridge"
LEAKED = "leaked labels"
"""Part of the name of a model that learnt labels of the test sequences, and of its table."""


class Grid:
    """Build the cells of a run."""

    def __init__(self, settings: NewtonSettings) -> None:
        check(settings)
        self.settings = settings
        self.shifts = shifts(settings)
        self.variants = variants(settings.attention, settings.exponents, settings.sharpen_after)
        self.world_models = {
            (law, variant, seed): self._world_model(law, variant, seed)
            for law in (settings.law, *settings.elsewhere)
            for variant in self.variants
            for seed in settings.seeds
        }
        for cell in self.world_models.values():
            learners.check(cell.arguments["job"])

    def cells(self) -> list[Cell]:
        """Return every cell of the run."""
        heads, transferred = self.transfers()
        forces = [*self.models(), *transferred, *self.controls()]
        trained = [*self.world_models.values(), *heads]
        examined = [*self.exams(forces)]
        asked = [*self.next_points(), *self.continuations()]
        return [*trained, *asked, *forces, *examined, *self.searches(forces)]

    def next_points(self) -> Iterable[Cell]:
        """Yield the next-point errors of each world model of this world, and of references."""
        arguments = {"data": self._data("pretrain", None, None), "world": self._world()}
        training = self._training(one_device=True)
        for (law, variant, seed), cell in self.world_models.items():
            if law == self.settings.law:
                case = self._case("next point", variant.label, "world model", None, seed)
                more = {**arguments, "training": training}
                yield Cell(cells.next_point, case, more, needs={"pretrained": cell})
        case = self._case("next point", "references", "control", None, None)
        yield Cell(cells.next_point_references, case, arguments)

    def continuations(self) -> Iterable[Cell]:
        """Yield the laws by which each world model of this world continues orbits, and controls."""
        settings, here = self.settings, world(self.settings)
        if not settings.continued or refusal(here) is not None:
            return
        data = {**self._data("pretrain", None, None), "n_test": settings.continued}
        asked = {"data": data, "world": self._world(), "n": settings.continued}
        training = self._training(one_device=True)
        for (law, variant, seed), cell in self.world_models.items():
            if law == settings.law:
                case = self._case(CONTINUED, variant.label, "world model", None, seed)
                more = {**asked, "training": training}
                yield Cell(continued.ask, case, more, needs={"pretrained": cell})
        seed = settings.seeds[0]
        for variant in self.variants:
            if variant.sharpen_after:  # before any step it is the variant itself
                continue
            case = self._case(CONTINUED, f"{variant.label}, untrained", "control", None, None)
            model = self._model(variant, "pretrain")
            more = {**asked, "model": model, "seed": seed}
            yield Cell(continued.ask_random_weights, case, more)
        case = self._case(CONTINUED, "references", "control", None, None)
        yield Cell(continued.ask_references, case, asked)

    def models(self) -> Iterable[Cell]:
        """Yield pre-trained, scratch and untrained rows."""
        for seed in self.settings.seeds:
            for budget in self.settings.labels:
                for variant in self.variants:
                    yield self._pretrained(variant, seed, budget)
                    if self.settings.scratch:
                        yield self._scratch(variant, seed, budget)
            for variant in self.variants:
                if not variant.sharpen_after:
                    case = self._case(
                        "forces", variant.label, UNTRAINED, CLOSED_FORM_SEQUENCES, seed
                    )
                    model = self._model(variant, "force")
                    seeded = {"model": model, "seed": seed + HEAD_OFFSET}
                    yield self._control(case, controls.untrained, self._labelled(case), **seeded)

    def transfers(self) -> tuple[list[Cell], list[Cell]]:
        """Return heads trained in other worlds, and the rows of models that come from there."""
        heads, rows = [], []
        largest = max(self.settings.labels, key=as_number)
        for law in self.settings.elsewhere:
            for seed in self.settings.seeds:
                for variant in self.variants:
                    for budget in self.settings.labels:
                        rows.append(self._pretrained(variant, seed, budget, law))
                    head = self._head_elsewhere(law, variant, seed, largest)
                    heads.append(head)
                    case = self._case("forces", variant.label, f"trained on {law}", 0, seed)
                    needs = {"head": head}
                    rows.append(self._forces(cells.transfer, case, needs=needs, **self.how()))
        return heads, rows

    def controls(self) -> Iterable[Cell]:
        """Yield the rows that need no model."""
        yield self._control(self.control_case(control_names.TRUE_FORCE), controls.true_force)
        yield self._control(self.control_case(control_names.CEILING), controls.ceiling)
        if self.shifts:  # what a model could have had in the exam, and in the box
            yield self._control(
                self.control_case(control_names.CAUSAL_CEILING), controls.causal_ceiling
            )
        labels = self.settings.labels
        budgets = [int(x) if x != UNLIMITED else CLOSED_FORM_SEQUENCES for x in labels]
        for budget in dict.fromkeys(budgets):
            for name in self.settings.baselines:
                for seed in self.settings.baseline_seeds:
                    # The sequences of seed 0 are those of the data's own seed.
                    case = dataclasses.replace(self.control_case(name, budget), seed=seed or None)
                    more = {"seed": seed} if seed else {}
                    labelled = self._labelled(case)
                    yield self._control(case, controls.baseline, labelled, name=name, **more)
        case = self.control_case(control_names.POWER_LAW, min(budgets))
        yield self._control(case, controls.power_law, self._labelled(case))
        for law in self.settings.elsewhere:
            most = max(budgets)
            case = self.control_case(control_names.nearest_elsewhere(law), most)
            labelled = self._data("force", most, None, law)
            yield self._control(case, controls.baseline, labelled, name=control_names.NEAREST)
            for past in (False, True) if infers_mass(law) else ():
                case = self.control_case(control_names.observer_name(law, past))
                yield self._control(case, controls.observer, believed=law, past=past)

    def exams(self, forces: Iterable[Cell]) -> Iterable[Cell]:
        """Yield the causal ceiling, and the exam of all that predicts forces of this world."""
        if not (shifts := self.shifts):
            return
        data, world = self._data("force", None, None), self._world(None, "force")
        asked = {"data": data, "world": world, "shifts": shifts}
        case = dataclasses.replace(self._marked(self.control_case(CAUSAL)), kind="exam")
        ceiling = Cell(cells.causal_ceiling, case, asked)
        yield ceiling
        for cell in forces:
            case = dataclasses.replace(cell.case, kind="exam")
            own = {x: cell.arguments[x] for x in ("control", "arguments") if x in cell.arguments}
            # A head that was trained elsewhere is that of its training.
            head = {} if own else {"head": cell.needs.get("head", cell)}
            own |= self.how() if head else {}
            yield Cell(cells.examine, case, {**asked, **own}, needs={"ceiling": ceiling, **head})

    def searches(self, forces: Iterable[Cell]) -> Iterable[Cell]:
        """Yield the symbolic searches on force predictions, at the chosen label budgets."""
        chosen = self.settings.law_labels
        repeated = {seed or None for seed in self.settings.baseline_seeds[1:]}
        for seed in range(self.settings.law_seeds):
            for cell in forces:
                budget = cell.case.get("labels")
                names = {budget}
                if cell.case.arm == "control" and budget == CLOSED_FORM_SEQUENCES:
                    names.add(UNLIMITED)
                if chosen is not None and not names & {*chosen, 0, None}:
                    continue
                if cell.case.variant in self.settings.baselines and cell.case.seed in repeated:
                    continue
                for engine in self.settings.engine:
                    yield self._search(cell, engine, seed)

    def _search(self, cell: Cell, engine: str, seed: int) -> Cell:
        law = self.settings.law
        config = search_config(law, engine)
        setting = {**cell.case.setting, "engine": config["engine_version"], "search": seed}
        case = dataclasses.replace(cell.case, kind="search", setting=setting)
        arguments = {"law": law, "engine": engine, "seed": seed, "config": config}
        return Cell(cells.search, case, arguments, needs={"predictor": cell})

    def _world_model(self, law: str, variant: Variant, seed: int) -> Cell:
        job: Job = {
            "learner": "orbits",
            "model": self._model(variant, "pretrain", law),
            "data": self._data("pretrain", None, seed, law),
            "seed": seed,
            "lr": self.settings.lr,
            "steps": self.settings.pretrain_steps,
            "sharpen_after": variant.sharpen_after,
            "training": self._training(one_device=False),
        }
        case = self._case("world model", variant.label, "pretraining", None, seed, law)
        return Cell(cells.world_model, case, {"job": job, "world": self._world(law)})

    def _pretrained(
        self, variant: Variant, seed: int, budget: int | str, origin: str | None = None
    ) -> Cell:
        """Fine-tune in this world a backbone of the world of the law ``origin``; None for this."""
        arm = "pretrained" if origin is None else f"pretrained on {origin}"
        case = self._case("forces", variant.label, arm, budget, seed)
        job = self._fine_tuning(variant, case)
        if origin is not None:
            job["any_law"] = True
        pretrained = self.world_models[origin or self.settings.law, variant, seed]
        return self._trained(case, job, needs={"pretrained": pretrained})

    def _scratch(self, variant: Variant, seed: int, budget: int | str) -> Cell:
        settings = self.settings
        case = self._case("forces", variant.label, "scratch", budget, seed)
        job: Job = {
            **self._force_job(variant, case),
            "sharpen_after": variant.sharpen_after,
            "lr": settings.lr,
            # The scratch arm is matched in steps: it takes those of both phases.
            "steps": settings.finetune_steps + settings.pretrain_steps,
            "training": self._training(one_device=False),
        }
        return self._trained(case, job)

    def _head_elsewhere(self, law: str, variant: Variant, seed: int, budget: int | str) -> Cell:
        """Train backbone and head in the world of ``law``; its result makes no row here."""
        case = self._case("forces", variant.label, f"head, {law}", budget, seed, law)
        job = self._fine_tuning(variant, case)
        return self._trained(case, job, needs={"pretrained": self.world_models[law, variant, seed]})

    def _fine_tuning(self, variant: Variant, case: Case) -> Job:
        return {
            **self._force_job(variant, case),
            "lr": self.settings.finetune_lr,
            "steps": self.settings.finetune_steps,
            "training": self._training(one_device=True),
        }

    def _force_job(self, variant: Variant, case: Case) -> Job:
        """Return the job of a force head, of which rate and steps are still to be said."""
        assert case.seed is not None
        return {
            "learner": "orbits",
            "model": self._model(variant, "force", case.law),
            "data": self._labelled(case),
            "seed": case.seed + HEAD_OFFSET,
            "lr": 0.0,
            "steps": 0,
            "direction_weight": DIRECTION_WEIGHT,
        }

    def _trained(self, case: Case, job: Job, needs: Mapping[str, Cell] | None = None) -> Cell:
        arguments = {"job": job, "world": self._world(case.law, "force")}
        return Cell(cells.force, self._marked(case), arguments, needs=needs or {})

    def control_case(self, name: str, labels: int | None = None) -> Case:
        """Return the case of a control, as :meth:`controls` has it."""
        return self._case("forces", name, "control", labels, None)

    def _control(
        self,
        case: Case,
        control: Callable[..., Predictor],
        labelled: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Cell:
        """Return a cell that predicts forces of this world by a control."""
        if labelled is not None:
            arguments["labelled"] = labelled
        return self._forces(cells.control, case, control=control.__name__, arguments=arguments)

    def _forces(
        self,
        function: Function,
        case: Case,
        needs: Mapping[str, Cell] | None = None,
        **arguments: Any,
    ) -> Cell:
        """Return a cell that predicts forces of this world without a training."""
        here = {"data": self._labelled(case), "world": self._world(case.law, "force")}
        return Cell(function, self._marked(case), {**here, **arguments}, needs=needs or {})

    def _case(
        self,
        kind: str,
        variant: str,
        arm: str,
        labels: int | str | None,
        seed: int | None,
        law: str | None = None,
    ) -> Case:
        """Return a case of the world of a law; None for the law here."""
        return Case(
            study="newton",
            kind=kind,
            variant=variant,
            arm=arm,
            seed=seed,
            law=law or self.settings.law,
            protocol=self.settings.protocol,
            setting={"labels": labels},
        )

    def _marked(self, case: Case) -> Case:
        """Return a case that says, in its table's name and in its model's, that labels leaked."""
        if not (leak := self.settings.label_leak):
            return case
        # Protocols never share a table. Controls are no models, and known by their names.
        protocol = f"{case.protocol}, {leak} {LEAKED} per test sequence"
        variant = case.variant if case.arm == "control" else f"{case.variant}, {LEAKED}"
        return dataclasses.replace(case, protocol=protocol, variant=variant)

    def _world(self, law: str | None = None, population: str = "pretrain") -> dict[str, Any]:
        return world(self.settings, law, population).config()

    def _model(self, variant: Variant, population: str, law: str | None = None) -> dict[str, Any]:
        settings = self.settings
        return {
            "protocol": settings.protocol,
            "protocol_args": world_arguments(settings, law, population) or None,
            "input": settings.input,
            "attention": variant.attention,
            "attention_args": variant.arguments(1 + world(settings).n_points) or None,
            "n_layer": settings.n_layer,
            "n_head": settings.n_head,
            "head_dim": settings.head_dim,
            "optimizer": settings.optimizer,
            "weight_decay": settings.weight_decay,
        }

    def _labelled(self, case: Case) -> dict[str, Any]:
        """Return the labelled sequences of a row."""
        # Neither unlimited labels nor none are a number of training sequences.
        labels = case.get("labels")
        n_train = None if labels in (UNLIMITED, 0) else labels
        return self._data("force", n_train, case.seed, case.law)

    def _data(
        self, population: str, n_train: int | None, seed: int | None, law: str | None = None
    ) -> dict[str, Any]:
        # A model seed draws its own training sequences; arms and variants share them, and all
        # seeds share the held-out ones.
        settings = self.settings
        more: dict[str, Any] = {}
        on_device = settings.device_batches and is_made_on_device(world(settings, law))
        if population == "pretrain" and on_device:
            more["device_batches"] = settings.device_batches
        elif settings.num_workers:
            more["num_workers"] = settings.num_workers
        if population == "force" and settings.images:
            more["images"] = True
        return {
            "train_seed": seed,
            "protocol": settings.protocol,
            "protocol_args": world_arguments(settings, law, population) or None,
            "population": population,
            "n_train": settings.n_pretrain if population == "pretrain" else n_train,
            "n_test": settings.n_test,
            "batch_size": settings.batch_size,
            **more,
        }

    def _training(self, *, one_device: bool) -> dict[str, Any]:
        """Return the options of a cell's training, if not as usual."""
        how = self.settings.training
        if one_device:
            how = dataclasses.replace(how, devices=1, strategy="auto")
        return how.changes()

    def how(self) -> dict[str, Any]:
        """Return the same for a cell whose model answers alone; nothing if it is as usual."""
        changes = self._training(one_device=True)
        return {"training": changes} if changes else {}
