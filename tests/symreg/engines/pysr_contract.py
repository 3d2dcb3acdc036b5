"""Run the PySR adapter against the real pysr package with a fake Julia, and print JSON.

A program, because pysr binds to Julia when it is imported: ``test_pysr.py`` starts it. The fake
returns a fixed hall of fame, so this tests how the adapter speaks to pysr, not what PySR finds.
It drives the adapter below ``fit``, which refuses a fake, as ``refused`` shows. Exits with 77
where pysr is not installed.
"""

import importlib.util
import json
import re
import sys
import types
import warnings
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

NAMES = ("r", "m1", "m2")
G = 39.4784176044
LOG_ROWS = [(1, 2.0, "-0.1"), (9, 1e-9, "log(m1 * m2 / square(r))"), (13, 0.9e-9, "log(m1) + 0.1")]
RAW_ROWS = [(1, 9.0, "m1"), (9, 1e-4, "39.4784f0 * m1 * m2 * inv(r * r)"), (13, 0.9e-4, "m1 + m2")]
CLUSTER = {
    "procs": 8,
    "cluster_manager": "slurm",
    "heap_size_hint_in_bytes": 10**9,
    "worker_timeout": 60.0,
    "worker_imports": ["LinearAlgebra"],
}


class Function:
    """A Julia function, as far as pysr looks at it."""

    def __init__(self, source):
        found = re.match(r"(\w+)\((.*?)\)\s*=", source)
        self.name = found[1] if found else source
        self.arguments = len(found[2].split(",")) if found else 1


class FakeJulia:
    """What pysr takes for juliacall.

    Attributes:
        searches: What every search was asked.
        halls: The rows that the next searches find; once they are used up, a usual hall of fame.
    """

    def __init__(self):
        self.searches = []
        self.halls = []
        julia = MagicMock()
        julia.VERSION.major, julia.VERSION.minor, julia.VERSION.patch = 1, 11, 0
        julia.seval = lambda source: None if source in ("nothing", "devnull") else Function(source)
        julia.isa = lambda value, kind: isinstance(value, Function)
        julia.Base.nameof = lambda function: function.name
        julia.applicable = lambda function, *arguments: function.arguments == len(arguments)
        julia.take_b = lambda buffer: np.zeros(1, np.uint8)
        julia.Symbol = lambda name: name
        julia.SymbolicRegression.Options = lambda **arguments: types.SimpleNamespace(**arguments)
        julia.SymbolicRegression.SearchUtilsModule.generate_run_id = self.run_id
        julia.SymbolicRegression.OperatorEnum = lambda operators: operators
        julia.SymbolicRegression.equation_search._jl_call_nogil = self.search
        self.module = types.ModuleType("juliacall")
        self.module.Main = julia
        self.module.AnyValue = type("AnyValue", (), {})
        self.module.VectorValue = type("VectorValue", (), {})
        self.module.JuliaError = type("JuliaError", (Exception,), {})
        self.module.convert = lambda kind, value: value

    def run_id(self):
        return f"run{len(self.searches)}"

    def search(self, X, y, *, options, run_id, addprocs_function, **rest):
        usual = LOG_ROWS if "square" in {op.name for op in options.operators[0]} else RAW_ROWS
        rows = self.halls.pop(0) if self.halls else usual
        passed = ("numprocs", "parallelism", *list(CLUSTER)[2:])
        self.searches.append(
            {
                "seed": int(options.seed),
                "deterministic": options.deterministic,
                "maxsize": options.maxsize,
                "addprocs": addprocs_function.name if addprocs_function else None,
                **{name: rest[name] for name in passed},
            }
        )
        table = Path(options.output_directory) / run_id / "hall_of_fame.csv"
        table.parent.mkdir(parents=True)
        lines = [f'{size},{loss},"{equation}"' for size, loss, equation in rows]
        table.write_text("\n".join(["Complexity,Loss,Equation", *lines]) + "\n")


def restarts(julia, search):
    """Return the sizes kept from three restarts each: one wins, two tie, none rises above 0."""

    def hall(*losses):
        return [(size, loss, "m1") for size, loss in enumerate(losses, start=len(julia.halls) + 1)]

    kept = []
    for halls in (
        [(1.0, 0.9), (1.0, 0.1), (1.0, 0.2)],
        [(1.0, 0.5), (1.0, 0.0), (1.0, 0.0)],
        [(1.0,), (1.0,), (1.0,)],
    ):
        julia.halls = []
        for losses in halls:
            julia.halls.append(hall(*losses))
        try:
            kept.append([equation.complexity for equation in search("pysr_vafa").equations])
        except RuntimeError as error:
            kept.append(str(error))
    return kept


def main():
    if importlib.util.find_spec("pysr") is None:
        print("pysr is not installed", file=sys.stderr)
        sys.exit(77)
    warnings.simplefilter("ignore")  # pysr's, that searches on several processes are not repeatable
    julia = FakeJulia()
    sys.modules["juliacall"] = julia.module
    from symreg import engines
    from symreg.engines import Status, pysr
    from symreg.search import run
    from symreg.search.targets import TARGETS

    pysr.julia_status = lambda: Status("ready", "a fake Julia")
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (50, 3))
    y = G * X[:, 1] * X[:, 2] / X[:, 0] ** 2
    try:
        engines.get("pysr").fit(X, y, NAMES, 0)
        refused = None
    except RuntimeError as error:
        refused = str(error)

    from pysr import PySRRegressor, sr

    given = []
    search_in_julia = PySRRegressor.fit
    PySRRegressor.fit = lambda self, *data, **names: (
        given.append(self.get_params()) or search_in_julia(self, *data, **names)
    )

    def search(name, seed=0, **arguments):
        engine = engines.get(name).configured(**arguments)
        target = TARGETS[engine.target].of(X, y, NAMES)
        rows = lambda: engine._search(PySRRegressor, target, seed)  # noqa: E731
        return run.run_search(engine, target, seed, rows)

    fronts = {name: search(name, seed) for name, seed in (("pysr", 3), ("pysr_vafa", 2))}
    searches = list(julia.searches)
    usual = PySRRegressor().get_params()
    vafa = {name: value for name, value in given[-1].items() if value != usual[name]}
    inverse = vafa.pop("extra_sympy_mappings")
    cluster = search("pysr", **CLUSTER)
    target = TARGETS["raw"].of(X, y, NAMES)
    table = engines.get("pysr_vafa")._hall_of_fame(PySRRegressor, target, 0)
    rules = ("best", "score", "accuracy")
    report = {
        **{name: front.record() for name, front in fronts.items()},
        "refused": refused,
        "searches": searches,
        "vafa": vafa,
        "inverse": {name: function(4.0) for name, function in inverse.items()},
        "cluster": {"search": julia.searches[4], "settings": dict(cluster.settings)},
        "restarts": restarts(julia, search),
        "theirs": {
            rule: int(table.loc[sr.idx_model_selection(table, rule), "complexity"])
            for rule in rules
        },
        "ours": {rule: fronts["pysr_vafa"].best(rule).complexity for rule in rules},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
