"""Run the PySR adapter against the real pysr package with a fake Julia, and print JSON.

A program, because pysr binds to Julia when it is imported: ``test_pysr.py`` starts it. The fake
returns a fixed hall of fame, so this tests how the adapter speaks to pysr, not what PySR finds.
Exits with 77 where pysr is not installed.
"""

import importlib.util
import json
import re
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

G = 39.4784176044
LOG_ROWS = [(1, 2.0, "-0.1"), (9, 1e-9, "log(m1 * m2 / square(r))"), (13, 0.9e-9, "log(m1) + 0.1")]
RAW_ROWS = [(1, 9.0, "m1"), (9, 1e-4, "39.4784f0 * m1 * m2 * inv(r * r)"), (13, 0.9e-4, "m1 + m2")]


class Function:
    """A Julia function, as far as pysr looks at it."""

    def __init__(self, source):
        found = re.match(r"(\w+)\((.*?)\)\s*=", source)
        self.name = found[1] if found else source
        self.arguments = len(found[2].split(",")) if found else 1


def fake_julia(calls):
    """Return a module that pysr takes for juliacall; searches are recorded in ``calls``."""
    julia = MagicMock()
    julia.VERSION.major, julia.VERSION.minor, julia.VERSION.patch = 1, 11, 0
    julia.seval = lambda source: None if source in ("nothing", "devnull") else Function(source)
    julia.isa = lambda value, kind: isinstance(value, Function)
    julia.Base.nameof = lambda function: function.name
    julia.applicable = lambda function, *arguments: function.arguments == len(arguments)
    julia.take_b = lambda buffer: np.zeros(1, np.uint8)
    julia.Symbol = lambda name: name
    julia.SymbolicRegression.Options = lambda **arguments: types.SimpleNamespace(**arguments)
    julia.SymbolicRegression.SearchUtilsModule.generate_run_id = lambda: f"run{len(calls)}"

    def search(X, y, *, options, run_id, parallelism, **rest):
        rows = LOG_ROWS if "square" in {op.name for op in options.operators[0]} else RAW_ROWS
        calls.append(
            {
                "seed": int(options.seed),
                "deterministic": options.deterministic,
                "maxsize": options.maxsize,
                "parallelism": parallelism,
            }
        )
        table = Path(options.output_directory) / run_id / "hall_of_fame.csv"
        table.parent.mkdir(parents=True)
        lines = [f'{size},{loss},"{equation}"' for size, loss, equation in rows]
        table.write_text("\n".join(["Complexity,Loss,Equation", *lines]) + "\n")

    julia.SymbolicRegression.OperatorEnum = lambda operators: operators
    julia.SymbolicRegression.equation_search._jl_call_nogil = search
    module = types.ModuleType("juliacall")
    module.Main = julia
    module.AnyValue = type("AnyValue", (), {})
    module.VectorValue = type("VectorValue", (), {})
    module.JuliaError = type("JuliaError", (Exception,), {})
    module.convert = lambda kind, value: value
    return module


def main():
    if importlib.util.find_spec("pysr") is None:
        print("pysr is not installed", file=sys.stderr)
        sys.exit(77)
    calls = []
    sys.modules["juliacall"] = fake_julia(calls)
    from symreg import engines
    from symreg.engines import Status, pysr

    pysr.julia_status = lambda: Status("ready", "a fake Julia")
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (50, 3))
    y = G * X[:, 1] * X[:, 2] / X[:, 0] ** 2
    fronts = {
        name: engines.get(name).fit(X, y, ("r", "m1", "m2"), seed)
        for name, seed in (("pysr", 3), ("pysr_vafa", 2))
    }
    from pysr import sr

    table = engines.get("pysr_vafa")._search(X, y, ("r", "m1", "m2"), 0)
    rules = ("best", "score", "accuracy")
    report = {
        **{name: front.record() for name, front in fronts.items()},
        "options": calls[:4],
        "theirs": {
            rule: int(table.loc[sr.idx_model_selection(table, rule), "complexity"])
            for rule in rules
        },
        "ours": {rule: fronts["pysr_vafa"].best(rule).complexity for rule in rules},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
