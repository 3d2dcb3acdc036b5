"""The cells: the flagship's world models of every world, their tests, and controls."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from benchmarks.implied import cells as functions
from benchmarks.implied.implied import Implied
from benchmarks.newton.grid import Grid
from benchmarks.newton.recipe import as_flagship, flagship
from benchmarks.newton.worlds import world, world_arguments
from orbits import shifts
from orbits.protocols import Protocol
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.study import Study
from orbits.visible import check_shifted
from worldmodel.probes.implied.asked import refusal

NAME, KIND = "implied", "continuations"


def cells(study: Study, settings: Implied) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    first, *others = settings.worlds
    grid = Grid(flagship(settings, law=first, elsewhere=tuple(others)))
    laws = tuple(dict.fromkeys((*settings.worlds, *settings.prompts)))
    protocols = {law: world(grid.settings, law) for law in laws}
    _check(protocols, settings)
    trained = {key: as_flagship(cell) for key, cell in grid.world_models.items()}
    protocol = grid.settings.protocol

    def asked(outside: Sequence[str]) -> dict[str, Any]:
        """Return arguments of all cells; ``outside`` are laws of prompts outside the box."""
        question = {
            "protocol": protocol,
            "protocol_args": {law: world_arguments(grid.settings, law) for law in laws},
            "outside": list(outside),
            "shifts": list(settings.shifts),
            "n_sequences": settings.n_sequences,
        }
        return {"question": question, "worlds": {x: y.config() for x, y in protocols.items()}}

    def case(variant: str, arm: str, law: str | None = None, seed: int | None = None) -> Case:
        return Case(NAME, KIND, variant, arm, seed, law=law, protocol=protocol)

    everywhere = asked(settings.worlds)
    references = Cell(functions.truths, case("truth", "oracle"), everywhere)
    controls = {
        law: Cell(
            functions.controls, case("controls", "control", law), {**asked([law]), "law": law}
        )
        for law in settings.worlds
    }
    twins = [
        Cell(
            functions.untrained,
            case(variant.label, "untrained", seed=seed),
            {**everywhere, "model": cell.arguments["job"]["model"], "seed": seed},
        )
        for (law, variant, seed), cell in trained.items()
        if law == settings.worlds[0]
    ]
    models = [
        Cell(
            functions.ask,
            case(variant.label, "pretrained", law, seed),
            asked([law]),
            needs={"pretrained": cell, "fits": controls[law]},
        )
        for (law, variant, seed), cell in trained.items()
    ]
    return [*trained.values(), references, *controls.values(), *twins, *models]


def _check(protocols: dict[str, Protocol], settings: Implied) -> None:
    """Refuse worlds without prompts, and shifts that a world cannot make."""
    for law, protocol in protocols.items():
        if reason := refusal(protocol):
            raise ValueError(f"{law}: {reason}")
    for law in settings.worlds:
        for shift in settings.shifts:
            check_shifted(dataclasses.replace(protocols[law], shift=shifts.get(shift)))
