"""``python -m symreg fit``: search for a formula and score it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from orbits.runs import artefact, folder, output
from orbits.runs.cli import next_line
from orbits.runs.manifest import manifest
from symreg import engines, predictions
from symreg.formula.law_score import LawScore
from symreg.law_fit import law_fit
from symreg.measure import predictor_metrics, search_config, search_line
from symreg.search.run import SearchFailed


def main(options: argparse.Namespace) -> None:
    """Search for a formula and score it; exit with 1 where the search failed."""
    arguments = _search_arguments(options)
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative, got {options.seed}")
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise ValueError(f"{options.out} exists; give another --out or --overwrite")
    if options.out is not None:
        folder.check_writable(options.out)  # the search takes longer
    engine, why = engines.resolve(options.engine)
    config = search_config(options.law, engine.name, arguments, options.points, options.rule)
    data = predictions.read(options.predictions, options.law)

    measured = predictor_metrics(data, options.law)
    with output.on_the_way(options):
        print(f"{'engine':<11} {why}")
    try:
        line = search_line(
            data,
            law=options.law,
            engine=engine.name,
            seed=options.seed,
            arguments=arguments,
            n=options.points,
            rule=options.rule,
        )
    except SearchFailed as error:
        sys.exit(f"error: {error}")

    def text() -> str:
        of = "of the predictions, 95% over sequences"
        exponents = measured["exponents"].items()
        lines = [f"{name:<11} exponent {_triple(triple)} {of}" for name, triple in exponents]
        lines.append(f"{'c':<11} {_triple(measured['constant'])}")
        fit = law_fit(data.X, data.force_predicted, options.law)
        return "\n".join([*lines, str(LawScore(**line["metrics"], predictions=fit))])

    output.say(
        options,
        text,
        lambda: {**line, "engine": why, "forces": measured},
        lambda: line["metrics"]["expression"],
    )
    if options.out is not None:
        inputs = {"predictions": data.sha256}
        record = manifest(config, seed=options.seed, inputs=inputs)
        artefact.save_record(options.out, {**line, "forces": measured, "manifest": record})
        with output.on_the_way(options):
            print(f"{'written':<11} {options.out}")
    if not (options.json or options.quiet):
        law = "" if options.law == "newton" else f" --law {shlex.quote(options.law)}"
        print(next_line(f"symreg leaderboard {shlex.quote(str(options.predictions))}{law}"))


def _search_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the engine's arguments, or refuse text that is no JSON object."""
    try:
        arguments = json.loads(options.engine_args)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ValueError(f"--engine-args must be a JSON object, got {options.engine_args}")
    return arguments


def _triple(triple: Sequence[float]) -> str:
    """Return a value and its interval; a small constant keeps its digits."""
    form = ".4f" if abs(triple[0]) >= 0.1 else ".4g"
    value, low, high = (format(x, form) for x in triple)
    return f"{value} [{low}, {high}]"
