"""How often a symbolic search finds a law that is there: synthetic forces with noise, many seeds.

``python -m benchmarks.law_rates --out DIR``: every law, noise and engine gets one row, and every
seed draws its own points, noise and search. Forces of other laws stand beside Newton's: a search
on them must never be scored as Newton's law. Written for fresh seeds: whoever tunes an engine
does it on others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from orbits import artefacts, laws, locks
from orbits.manifest import manifest
from symreg import board, cells, controls, engines, leaderboard, results
from symreg.cells import Cell, Progress
from symreg.measure import POINTS, search_config, search_line
from symreg.points import NAMES
from symreg.predictions import Predictions

LAWS = ("newton", "harmonic", "yukawa", "mond")
NOISE = (0.0, 0.01, 0.05, 0.2)
WRONG = ("1/r", "m1/r^2", "m2/r^2", "Yukawa")
HELD_OUT = 2000
RANGES = {"r": (0.3, 32.0), "m1": (1e-4, 1e-2), "m2": (1e-4, 1e-2)}
"""Uniform, AU and solar masses: two-body systems of Vafa et al. (2025)."""


def synthetic(law: str, noise: float, seed: int, control: str | None = None) -> Predictions:
    """Return the true force of a law, or of a control, times 1 + noise * N(0, 1) at each point.

    Args:
        law: A name of :mod:`orbits.laws`.
        noise: Standard deviation of the relative noise.
        seed: Draws points and noise.
        control: A wrong law of :mod:`symreg.controls` that makes the answers instead.
    """
    rng, n = np.random.default_rng([seed, 1]), POINTS + HELD_OUT
    X = np.column_stack([rng.uniform(*RANGES[name], n) for name in NAMES])
    force = laws.get(law).magnitude(*X.T)
    data = Predictions(
        sequence_id=np.arange(n),
        step=np.zeros(n, np.int64),
        X=X,
        force=force,
        force_predicted=force,
        vectors={},
        manifest={},
        sha256="",
        row={},
    )
    answer = data if control is None else controls.answer(control, data)
    noisy = answer.force_predicted * (1 + noise * rng.standard_normal(n))
    return controls.replaced(data, noisy)


@dataclass(frozen=True)
class Options:
    """What one run measures; it determines every cell.

    Attributes:
        laws: Names of :mod:`orbits.laws`.
        noise: Standard deviations of the relative noise.
        engines: Names of engines that can run here; ``auto`` is resolved.
        first_seed: Where the seeds start.
        seeds: Number of seeds.
        wrong_seeds: Number of them that the wrong laws have too.
    """

    laws: tuple[str, ...]
    noise: tuple[float, ...]
    engines: tuple[str, ...]
    first_seed: int
    seeds: int
    wrong_seeds: int

    def __post_init__(self) -> None:
        for name in ("laws", "noise", "engines"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        for law in self.laws:
            laws.get(law)
        for noise in self.noise:
            if not 0 <= noise <= 1:
                raise ValueError(f"noise must be between 0 and 1, got {noise:g}")
        for name, lowest in (("first_seed", 0), ("seeds", 1), ("wrong_seeds", 0)):
            if (value := getattr(self, name)) < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
        chosen = (engines.resolve(name)[0].name for name in self.engines)
        object.__setattr__(self, "engines", tuple(dict.fromkeys(chosen)))

    def config(self) -> dict[str, Any]:
        """Return plain data for the results folder's claim."""
        return {
            "benchmark": "law rates",
            **asdict(self),
            "points": POINTS,
            "held_out": HELD_OUT,
            "rules": {name: engines.get(name).rule for name in self.engines},
        }

    def cells(self) -> Iterator[Cell]:
        """Yield one cell per law, noise, engine and seed, and those of the wrong laws."""
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            few = seed - self.first_seed < self.wrong_seeds
            for law, noise, engine in product(self.laws, self.noise, self.engines):
                for control in (None, *WRONG) if law == "newton" and few else (None,):
                    yield _cell(law, noise, engine, seed, control)


def _cell(law: str, noise: float, engine: str, seed: int, control: str | None) -> Cell:
    row = {
        "protocol": "synthetic, uniform",
        "model": f"{control or law}, {100 * noise:g}% noise",
        "arm": "control" if control else "true force",
        "labels": "-",
        "seed": None,
    }
    config = {
        **search_config(law, engine),
        "task": law,
        "line_kind": "law",
        "row": row,
        "noise": noise,
        "control": control,
        "definition": None if control is None else controls.definition(control),
        "ranges": {name: list(limits) for name, limits in RANGES.items()},
        "held_out": HELD_OUT,
        "seed": seed,
    }
    return Cell("search", config, label=f"{engine} {seed}: {row['model']}")


def search(
    config: dict[str, Any], folder: Path, given: dict[str, Path], progress: Progress
) -> dict[str, Any]:
    """Compute one cell."""
    data = synthetic(config["task"], config["noise"], config["seed"], config["control"])
    line = search_line(
        data,
        law=config["task"],
        engine=config["engine"],
        seed=config["seed"],
        n=config["points"],
        rule=config["rule"],
    )
    return {**line, "manifest": manifest(config, seed=config["seed"])}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad input is one line on stderr and exit code 2, a failed cell 1."""
    options = _parser().parse_args(arguments)
    try:
        failed = _run(options)
    except KeyboardInterrupt:
        print("law_rates: stopped; run the same command again to resume", file=sys.stderr)
        return 130
    except (ValueError, RuntimeError, OSError) as error:
        print(f"law_rates: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    # Without a usage, an error is one line.
    parser = argparse.ArgumentParser("law_rates", usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--noise", default=",".join(map(str, NOISE)))
    parser.add_argument("--engines", default="operon,operon_vafa")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--wrong-seeds", type=int, default=5, help="of them on each wrong law")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--resume", action="store_true", help="continue with a changed configuration"
    )
    parser.add_argument("--overwrite", action="store_true", help="discard the folder's results")
    return parser


def _run(options: argparse.Namespace) -> int:
    """Search, write the rates and return how many cells failed."""
    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    asked = Options(
        laws=_listed(options.laws),
        noise=tuple(_number(text) for text in _listed(options.noise)),
        engines=_listed(options.engines),
        first_seed=options.first_seed,
        seeds=options.seeds,
        wrong_seeds=options.wrong_seeds,
    )
    mode = {"resume": options.resume, "overwrite": options.overwrite}
    results.check(options.out, asked.config(), **mode)
    with locks.lock(options.out):
        results.claim(options.out, asked.config(), **mode)
        lines = cells.run(
            asked.cells(),
            options.out,
            {"search": search},
            jobs=options.jobs,
            initialise=board.initialise,
        )
        results.save(options.out, lines)
        text = "\n".join(_tables(asked.laws, lines))
        artefacts.write_bytes(options.out / "rates.md", text.encode())
    print(text)
    failed = sum(line["status"] == "failed" for line in lines)
    if failed:
        print(f"law_rates: {failed} of {len(lines)} cells failed", file=sys.stderr)
    return failed


def _tables(law_names: Sequence[str], lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    for law in law_names:
        of_law = [line for line in lines if line["task"] == law]
        yield leaderboard.to_markdown(leaderboard.rows(of_law, law), law, of_law)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--noise takes numbers separated by commas, got {text!r}") from None


if __name__ == "__main__":
    sys.exit(main())
