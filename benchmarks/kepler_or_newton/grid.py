"""The cells: a training of each point and seed, its tests, and controls without training."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attention
from benchmarks import learners
from benchmarks.kepler_or_newton import cells as functions
from benchmarks.kepler_or_newton import exam
from benchmarks.kepler_or_newton.points import (
    ALL,
    PUBLISHED,
    RANDOM,
    TRAINED,
    Point,
    observer_name,
    star,
)
from benchmarks.kepler_or_newton.settings import KeplerOrNewton
from benchmarks.newton import newton
from benchmarks.newton.grid import Grid
from benchmarks.newton.settings import NewtonSettings
from benchmarks.newton.worlds import world
from benchmarks.training_options import Job
from orbits.runs.cell import Cell
from orbits.runs.result import Case
from orbits.runs.study import Study
from worldmodel.models.backbone import reach
from worldmodel.probes.quantities import BODIES
from worldmodel.probes.read_out import recent_name

NAME = "kepler_or_newton"


def cells(study: Study, settings: KeplerOrNewton) -> list[Cell]:
    """Return every cell of a run, each after those it needs."""
    flagship = newton.STUDY.settings(
        settings.recipe,
        attention=settings.attention,
        seeds=settings.seeds,
        engine=("powerlaw",),  # always there; nothing is searched
        shifts=("all",) if settings.heads else (),
        **({"labels": settings.heads} if settings.heads else {}),
    )
    functions.check_world(world(flagship), settings.places)
    grid = Grid(flagship)
    found: list[Cell] = []
    trained: dict[tuple[Point, int], Cell] = {}
    attentions = _attentions(grid, settings.mixer_windows)
    for point in star(settings, *attentions, partial(_steps, flagship)):
        for seed in settings.seeds:
            trained[point, seed] = own = _trained(point, seed, grid)
            found += _of(point, seed, own, settings)
    examined = exam.cells(NAME, trained, grid) if settings.heads else ()
    references = _references(flagship, settings, [point for point, _ in trained])
    return [*found, *references, *examined]


def _steps(flagship: NewtonSettings, window: int) -> float:
    """Return the number of time steps of both bodies that a model with a window sees."""
    n_points = world(flagship).n_points
    rows = n_points if window == ALL else reach(window, flagship.n_layer)
    return min(rows, n_points) / 2


def _attentions(grid: Grid, mixers: bool) -> tuple[dict[str, str], set[str]]:
    """Return the labels of attentions by name, and the names of those that have a window."""
    labels = {variant.name: variant.label for variant in grid.variants}
    windowed = {
        variant.name
        for variant in grid.variants
        if (
            attention.get(variant.attention).mask == "causal"
            if variant.attention in attention.names()
            else mixers
        )
    }
    return labels, windowed


def _of(point: Point, seed: int, own: Cell, settings: KeplerOrNewton) -> Iterator[Cell]:
    """Yield the training of a point, its questions, and those of a twin that is not trained."""
    job = own.arguments["job"]
    yield own
    asked = {**_asked(own.arguments["world"], job["data"]), "n": settings.n_test}
    twins: list[tuple[str, dict[str, Cell], dict[str, Any]]] = [(TRAINED, {"pretrained": own}, {})]
    # Noise and the learned head are of the training: random weights have neither.
    if point.input == "coordinates" and point == _untold(point, settings):
        twins.append((RANDOM, {}, {"job": job}))
    for arm, needs, more in twins:
        case = _case(point, arm, seed, own.case)
        carried = dataclasses.replace(case, kind="carried")
        yield Cell(functions.carried, carried, {**asked, **more}, needs)
        for body in BODIES:
            setting = {**case.setting, "rows": body}
            read = dataclasses.replace(case, kind="read-outs", setting=setting)
            arguments = {**asked, **more, "labels": settings.labels, "body": body}
            yield Cell(functions.read_outs, read, arguments, needs)


def _untold(point: Point, settings: KeplerOrNewton) -> Point:
    """Return the point whose twin with random weights stands for those that share its backbone."""
    return dataclasses.replace(point, noise=settings.noise[0], predicts=settings.predicts[0])


def _trained(point: Point, seed: int, grid: Grid) -> Cell:
    """Return the training of a point; that of the flagship's recipe is the flagship's own cell."""
    variant = next(each for each in grid.variants if each.label == point.attention)
    cell = grid.world_models[grid.settings.law, variant, seed]
    if point.input != "coordinates":
        return dataclasses.replace(cell, version=newton.STUDY.version)
    job: Job = cell.arguments["job"]
    model: dict[str, Any] = {**job["model"], "input": point.input}
    if point.predicts != "bins":
        model["predicts"] = point.predicts
    if point.window != ALL:
        model["window"] = point.window
    data = {**job["data"], **({"context_noise": point.noise} if point.noise else {})}
    changed: Job = {**job, "model": model, "data": data}
    learners.check(changed)  # refuses a window where there is none
    case = dataclasses.replace(_case(point, TRAINED, seed, cell.case), kind="training")
    return dataclasses.replace(cell, case=case, arguments={**cell.arguments, "job": changed})


def _asked(world: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the world in which a model is asked, as arguments of a cell."""
    protocol = {name: data[name] for name in ("protocol", "protocol_args")}
    return {"data": protocol, "world": world}


def _case(point: Point, arm: str, seed: int | None, like: Case) -> Case:
    return Case(
        study=NAME,
        kind="",
        variant=point.attention,
        arm=arm,
        seed=seed,
        law=like.law,
        protocol=like.protocol,
        setting=point.setting,
    )


def _references(
    flagship: NewtonSettings, settings: KeplerOrNewton, points: Sequence[Point]
) -> Iterator[Cell]:
    """Yield the continuations without a model, and the read-outs of places alone."""
    arguments = dict(flagship.protocol_args.get(flagship.protocol, {})) or None
    data = {"protocol": flagship.protocol, "protocol_args": arguments}
    asked = {**_asked(world(flagship).config(), data), "n": settings.n_test}
    case = Case(
        NAME, "carried", "references", "control", law=flagship.law, protocol=flagship.protocol
    )
    yield Cell(functions.references, case, asked)
    for noise, n_rows in dict.fromkeys(point.view for point in points):
        # With less noise the nearest of some thousand orbits is all that he has, and with a prompt
        # that shows no more than his window there is nothing to go on from.
        if noise != PUBLISHED["noise"] or n_rows >= world(flagship).n_points // 2:
            continue
        seen = {"noise": noise, "n_rows": n_rows}
        named = dataclasses.replace(case, variant=observer_name(noise, n_rows), setting=seen)
        yield Cell(functions.observed, named, {**asked, **seen})
    for n_rows in settings.places:
        for body in BODIES:
            named = dataclasses.replace(
                case, kind="read-outs", variant=recent_name(n_rows), setting={"rows": body}
            )
            more = {"labels": settings.labels, "body": body, "n_rows": n_rows}
            yield Cell(functions.read_places, named, {**asked, **more})
