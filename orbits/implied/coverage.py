"""Coverage of the intervals of implied laws: how often those of true orbits with errors hold it.

``python -m orbits.implied.coverage`` draws errors of Student's t with three degrees of freedom,
anew for each draw, on the places of one set of true orbits of Newton's world. Errors of places
shorten the near end of an orbit, so the exponent of a path is biased; its interval is judged by
whether it holds the mean over draws, as continuations are compared with true orbits in bins, which
have the same bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from orbits import protocols
from orbits.arithmetic import Array
from orbits.implied.one_step import OneStep
from orbits.implied.pulls import of_path
from orbits.implied.within import within
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs.cli import OneLineParser, one_line_errors
from orbits.runs.statistics import Interval, wilson
from orbits.runs.table import Column, Table, Value, interval, number

FIRST = 12
"""First step that is predicted, or continued."""
STEP_ERROR, PATH_ERROR = 0.005, 0.002
"""Scale of the errors in AU of predicted places, and of those of a path."""
TRUTHS = {
    "exponent_within": -2.0,
    "planet_r": -2.0,
    "star_r": -2.0,
    "planet_constant": GRAVITATIONAL_CONSTANT,
    "star_constant": GRAVITATIONAL_CONSTANT,
    "action_reaction": 1.0,
}
"""Values of one step on true places, by metric."""
PATH = "exponent_within of a path"


@dataclass(frozen=True)
class Coverage:
    """Intervals of one quantity over draws of errors.

    Attributes:
        truth: What it is without errors.
        found: Intervals, [draws, 3]: value, low, high.
    """

    truth: float
    found: Array

    @property
    def mean(self) -> float:
        """The mean of the values over draws; less the truth it is their bias."""
        return float(self.found[:, 0].mean())

    def holding(self, value: float) -> Interval:
        """Return the share of intervals that hold a value, with Wilson's interval."""
        held = (self.found[:, 1] <= value) & (value <= self.found[:, 2])
        return wilson(int(held.sum()), len(held))


def coverage(n: int = 80, draws: int = 400, seed: int = 0) -> dict[str, Coverage]:
    """Return the intervals of one step and of a path on errors of places, by quantity.

    Args:
        n: Orbits, of the test split of protocol ``identifiable``.
        draws: Draws of errors.
        seed: Seed of the errors.
    """
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(n))
    batch = protocol.observe(world)
    true, dt = batch["coordinates"], batch["dt"]
    steps, rng = OneStep(protocol, world, FIRST), np.random.default_rng(seed)
    each: list[Mapping[str, Interval]] = []
    for _ in tqdm(range(draws), desc="draws", disable=None, leave=False):
        step, path = (true + rng.standard_t(3, true.shape) * x for x in (STEP_ERROR, PATH_ERROR))
        found = steps.measured(step, true)
        along = within(of_path(path[:, 1::2] - path[:, 2::2], dt, FIRST))
        each.append({**found, PATH: along})
    return {
        name: Coverage(truth, np.array([found[name] for found in each]))
        for name, truth in {**TRUTHS, PATH: -2.0}.items()
    }


def table(found: Mapping[str, Coverage]) -> str:
    """Return a Markdown table: shares of intervals that hold the truth, and the mean over draws."""
    columns = [Column(x) for x in ("quantity", "truth", "mean", "hold truth", "hold mean")]
    rows = [
        [
            Value(name.replace("_", " "), kind="name"),
            number(each.truth, ".3f"),
            number(each.mean, ".3f"),
            interval(each.holding(each.truth), ".0%"),
            interval(each.holding(each.mean), ".0%"),
        ]
        for name, each in found.items()
    ]
    return Table("", columns, rows).to_markdown()


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = OneLineParser(prog="python -m orbits.implied.coverage")
    parser.add_argument("--n", type=int, default=80, help="orbits (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=400, help="of errors (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the errors (default: %(default)s)")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        if min(options.n, options.draws) < 2:
            raise ValueError(f"n and draws must be 2 or more, got {options.n} and {options.draws}")
        print(table(coverage(options.n, options.draws, options.seed)), end="")


if __name__ == "__main__":
    main()
