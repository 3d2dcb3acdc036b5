"""The cells: trainings on the mixture and in one world, and what each is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import learners
from benchmarks.training_options import Job
from benchmarks.variants import Variant, variants
from benchmarks.worlds import cells as functions
from benchmarks.worlds import exchange, readout, steps
from benchmarks.worlds.families import FAMILIES, OneParameter
from benchmarks.worlds.names import (
    ALONE,
    CEILING,
    CONTROLS,
    EXCHANGE,
    FAMILY,
    FILTER,
    MIXTURE,
    NEAREST_MEAN,
    PIECES,
    STEPS,
    TABLE,
    TABLE_WITH_FAMILIES,
    TOLD,
    UNTRAINED,
    WITH_FAMILIES,
)
from benchmarks.worlds.worlds import Worlds
from orbits import law_posterior, protocols
from orbits.laws.family import power_name
from orbits.mixture import Mixture, is_held_out, spread
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.study import Study
from worldmodel.controls.orbit_pieces import STEPS as COMPARED
from worldmodel.probes.implied import asked as implied

MOST_ORBITS = 200_000
"""Orbits that the mean of the nearest is taken of, where a training has more."""


def cells(study: Study, settings: Worlds) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    return list(_Grid(settings).cells())


class _Grid:
    def __init__(self, settings: Worlds) -> None:
        self.settings = settings
        laws_of_training = spread(settings.low, settings.high, settings.held_out, settings.n_laws)
        self.arguments = {"n_bins": settings.n_bins}
        self.protocol = protocols.get(settings.protocol, self.arguments)
        self.mixture = Mixture(self.protocol, laws_of_training)
        self.tested = [
            {"exponent": x, "held_out": is_held_out(x, settings.held_out)} for x in settings.tested
        ]
        self._check()
        self.families = {name: FAMILIES[name] for name in settings.families}
        self.further = tuple(
            law for each in self.families.values() for law in each.trained(settings.n_family_laws)
        )

    def cells(self) -> Iterator[Cell]:
        settings = self.settings
        truths = Cell(functions.truths, self._case("truth", "true orbits"), self._asked())
        yield truths
        found = variants(settings.attention, settings.exponents)
        first = settings.seeds[0]
        alone = (settings.single,)
        trained = [
            (v, MIXTURE, s, self.mixture.exponents, False) for s in settings.seeds for v in found
        ]
        if self.families:
            trained += [(v, WITH_FAMILIES, s, laws, told) for v, _, s, laws, told in trained]
        for seed in settings.seeds[: settings.control_trainings]:
            trained.append((found[0], ALONE, seed, alone, False))
            trained.append((found[0], TOLD, seed, self.mixture.exponents, True))
        models = []
        for variant, arm, seed, exponents, told in trained:
            job = self._job(variant, seed, exponents, told)
            if arm == WITH_FAMILIES:
                job["data"]["further"] = list(self.further)
            learners.check(job)
            arguments = {"job": job, "world": self.protocol.config()}
            training = Cell(
                functions.world_model,
                self._case("world model", variant.label, arm, seed),
                arguments,
            )
            models.append(training)
            yield training
            yield self._asking(functions.ask_model, variant.label, arm, seed, truths, training)
            case = dataclasses.replace(training.case, kind=STEPS)
            yield Cell(steps.of_model, case, self._steps(), needs={"pretrained": training})
        job = self._job(found[0], first, self.mixture.exponents, False)
        asked = {**self._asked(), **self._read(), "job": job}
        case = self._case("worlds", found[0].label, UNTRAINED, first)
        needs = {"truths": truths}
        yield Cell(functions.ask_random_weights, case, asked, needs=needs, version=readout.VERSION)
        case = dataclasses.replace(case, kind=STEPS)
        yield Cell(steps.of_model, case, {**self._steps(), "job": job})
        filtered = {"mixture": list(self.mixture.exponents), "steps": max(settings.prompts)}
        case = self._case(STEPS, FILTER, "control")
        yield Cell(steps.of_filter, case, {**self._steps(), **filtered})
        table = {**self._asked(), **self._read(), "n_table": settings.n_table}
        seen = settings.sequences or settings.steps * settings.batch_size
        for name in CONTROLS:
            if name == PIECES and max(settings.prompts) < COMPARED:
                continue  # no prompt has as many steps as a piece
            asked = {**table, "control": name}
            if name == NEAREST_MEAN:
                asked["n_table"] = min(seen, MOST_ORBITS)
            case = self._case("worlds", name, "control")
            yield Cell(functions.ask_control, case, asked, needs=needs, version=readout.VERSION)
        fitted = {
            **self._asked(),
            "n_fitted": settings.n_fitted,
            "fitted": np.linspace(settings.low, settings.high, settings.n_fits).round(4).tolist(),
        }
        case = self._case("worlds", CEILING, "ceiling")
        yield Cell(functions.ask_ceiling, case, fitted, needs=needs, version=law_posterior.VERSION)
        asked_of = [model for model in models if model.case.arm != TOLD]
        for name, family in self.families.items():
            yield from self._of_family(name, family, asked_of, job)
        if settings.exchanged:
            yield from self._exchanges(models, job)

    def _exchanges(self, models: Sequence[Cell], job: Job) -> Iterator[Cell]:
        """Yield exchanges of residuals between laws, in models and in what has none."""
        settings, first = self.settings, models[0].case
        asked = {
            "world": self.protocol.config(),
            "exponents": list(settings.exchanged),
            "n": settings.n_exchanged,
        }
        for model in models:
            case = dataclasses.replace(model.case, kind=EXCHANGE)
            yield Cell(exchange.exchange, case, asked, needs={"pretrained": model})
        case = self._case(EXCHANGE, first.variant, UNTRAINED, first.seed)
        yield Cell(exchange.exchange, case, {**asked, "job": job})
        more = {**asked, "mixture": list(self.mixture.exponents)}
        yield Cell(exchange.references, self._case(EXCHANGE, "references", "control"), more)

    def _of_family(
        self, name: str, family: OneParameter, models: Sequence[Cell], job: Job
    ) -> Iterator[Cell]:
        """Yield what models, controls and the ceiling are asked of a family of laws."""

        def case(variant: str, arm: str, seed: int | None = None) -> Case:
            found = self._case(FAMILY, variant, arm, seed)
            return dataclasses.replace(found, setting={**found.setting, FAMILY: name})

        settings = self.settings
        asked = {**self._asked(), "tested": list(family.worlds())}
        truths = Cell(functions.truths, case("true orbits", "-"), asked)
        yield truths
        needs = {"truths": truths}
        for model in models:
            of = case(model.case.variant, model.case.arm, model.case.seed)
            yield Cell(functions.ask_family, of, asked, needs={**needs, "pretrained": model})
        first = models[0].case
        of = case(first.variant, UNTRAINED, first.seed)
        yield Cell(functions.ask_family, of, {**asked, "job": job}, needs=needs)
        for control, named, further in (
            (TABLE, TABLE, ()),
            (TABLE, TABLE_WITH_FAMILIES, self.further),
            (FILTER, FILTER, self.further),
        ):
            more = {
                "control": control,
                "mixture": list(self.mixture.exponents),
                "further": list(further),
                "n_table": settings.n_table,
            }
            of = case(named, "control")
            yield Cell(functions.ask_family_control, of, {**asked, **more}, needs=needs)
        powers = np.log10(family.tested)
        fitted = {
            **asked,
            "family": name,
            "n_fitted": settings.n_fitted,
            "fitted": np.linspace(powers[0], powers[-1], settings.n_fits).round(4).tolist(),
        }
        of = case(CEILING, "ceiling")
        yield Cell(functions.ask_ceiling, of, fitted, needs=needs, version=law_posterior.VERSION)

    def _asking(
        self, function: Any, variant: str, arm: str, seed: int, truths: Cell, training: Cell
    ) -> Cell:
        needs = {"truths": truths, "pretrained": training}
        arguments = {**self._asked(), **self._read()}
        case = self._case("worlds", variant, arm, seed)
        return Cell(function, case, arguments, needs=needs, version=readout.VERSION)

    def _asked(self) -> dict[str, Any]:
        """Return what is asked, as plain data."""
        return {
            "world": self.protocol.config(),
            "tested": self.tested,
            "prompts": list(self.settings.prompts),
            "n_test": self.settings.n_test,
        }

    def _steps(self) -> dict[str, Any]:
        """Return what single steps are asked of, as plain data."""
        return {name: value for name, value in self._asked().items() if name != "prompts"}

    def _read(self) -> dict[str, Any]:
        """Return what controls and read-outs are fitted to, as plain data."""
        return {
            "mixture": list(self.mixture.exponents),
            "span": [self.settings.low, self.settings.high],
            "n_read": self.settings.n_read,
        }

    def _job(self, variant: Variant, seed: int, exponents: tuple[float, ...], told: bool) -> Job:
        settings = self.settings
        return {
            "learner": "worlds",
            "model": {
                "protocol": settings.protocol,
                "protocol_args": self.arguments,
                "attention": variant.attention,
                "attention_args": variant.arguments(1 + self.protocol.n_points) or None,
                "n_layer": settings.n_layer,
                "n_head": settings.n_head,
                "head_dim": settings.head_dim,
            },
            "data": {
                "train_seed": seed,
                "protocol": settings.protocol,
                "protocol_args": self.arguments,
                "exponents": list(exponents),
                "told": told,
                "batch_size": settings.batch_size,
                **({"n_train": settings.sequences} if settings.sequences else {}),
            },
            "seed": seed,
            "lr": settings.lr,
            "steps": settings.steps,
            "training": settings.training.changes(),
        }

    def _case(self, kind: str, variant: str, arm: str = "-", seed: int | None = None) -> Case:
        setting = {"single": self.settings.single} if arm == ALONE else {}
        protocol = self.settings.protocol
        return Case("worlds", kind, variant, arm, seed, protocol=protocol, setting=setting)

    def _check(self) -> None:
        """Refuse laws and test worlds that cannot be, and machines with too few devices."""
        settings = self.settings
        for name in settings.families:
            if name not in FAMILIES:
                raise ValueError(f"families must be among {', '.join(FAMILIES)}, got {name!r}")
        seen = [each["exponent"] for each in self.tested if not each["held_out"]]
        if len(settings.tested) < 3 or len(seen) < 2:
            raise ValueError(
                "tested needs three worlds or more, two or more of them not held out; got "
                f"{', '.join(f'{x:g}' for x in settings.tested)}"
            )
        outside = [x for x in settings.tested if not settings.low <= x <= settings.high]
        if outside:
            raise ValueError(
                f"tested must lie from low {settings.low:g} to high {settings.high:g}, got "
                f"{outside[0]:g}"
            )
        # Powers in between bind what the least and the largest exponent bind, and are seen as well.
        for exponent in (settings.low, settings.high, settings.single, *settings.tested):
            name = power_name(-exponent)
            world = protocols.get(settings.protocol, {**self.arguments, "law": name})
            if why := implied.refusal(world):
                raise ValueError(why)
        if settings.exchanged:
            exchange.check(self.protocol, settings.exchanged, settings.n_exchanged)
