"""Formulas that each selection rule picks from the fronts of searches, beside the exponents.

``python -m benchmarks.search.law_picks DIR`` reads results of searches alone. The fronts are the
same for all rules, so what differs between the columns is the rule, and what differs within one is
the points drawn and the engine's seed. The exponents are measured without any formula.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from orbits.runs.cli import OneLineParser, one_line_errors
from orbits.runs.deferred import deferred
from orbits.runs.result import Result
from orbits.runs.table import Column, Table, Value, interval
from symreg.leaderboard import FORCES, SEARCH
from symreg.leaderboard.read import read
from symreg.leaderboard.row import row_key
from symreg.points import NAMES
from symreg.search.front import RULES, Equation, Front

parse = deferred("symreg.formula.parsing:parse")
shape_of = deferred("symreg.formula.symbolic:shape")


def picks(searches: Iterable[Result], rule: str) -> Counter[str]:
    """Return how often ``rule`` picks each shape of formula from the fronts of searches."""
    shapes: Counter[str] = Counter()
    for search in searches:
        equations = tuple(Equation(**row) for row in search.details["front"])
        front = Front(equations, "", "", settings={}, seed=0, seconds=0.0)
        shapes[shape_of(parse(front.best(rule).expression))] += 1
    return shapes


def table(results: Iterable[Result]) -> str:
    """Return a Markdown table: one line per row of the leaderboard, engine and rule."""
    exponents: dict[str, str] = {}
    searches: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in (x for x in results if x.ok):
        seed = result.case.seed
        name = ", ".join([*row_key(result.case), *([] if seed is None else [str(seed)])])
        if result.case.kind == FORCES:
            fits = (interval(result.metrics[f"exponent_{x}"].interval, ".3f") for x in NAMES)
            exponents[name] = ", ".join(fit.words for fit in fits)
        elif result.case.kind == SEARCH and "front" in result.details:
            searches[name, str(result.case.get("engine"))].append(result)
    columns = ("row", f"exponents {', '.join(NAMES)}", "engine", "rule", "searches", "shapes")
    body = []
    for (name, engine), members in searches.items():
        for rule in RULES:
            shapes = picks(members, rule)
            shape, count = min(shapes.items(), key=lambda item: (-item[1], item[0]))
            body.append(
                [
                    Value(name, kind="name"),
                    Value(exponents.get(name, "-")),
                    Value(engine, kind="formula"),
                    Value(rule),
                    Value(str(len(members))),
                    Value(str(len(shapes))),
                    Value(shape, f"({count})", kind="formula"),
                ]
            )
    return Table("", [Column(name) for name in (*columns, "most often")], body).to_markdown()


def main(arguments: list[str] | None = None) -> None:
    """Print the table of a results folder."""
    parser = OneLineParser(prog="python -m benchmarks.search.law_picks")
    parser.add_argument("folder", type=Path, help="results folder of searches")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        print(table(read(options.folder)), end="")


if __name__ == "__main__":
    main()
