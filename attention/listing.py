"""Tables of all variants and linear mixers, made without importing torch."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention import catalogue
from attention.spec import FACTS

COLUMNS = (
    "name", "formula", "source", "rows sum to", "sparse", "signed", "learned", "arguments", "about"
)  # fmt: skip

HEADER = """# Attention variants

Made by `python -m attention ls --markdown`. Row i sees keys j = 1..i; d is the head dimension, L
the sequence length, l1 the division of a row by its sum of absolute values.

"""

MIXERS = ("linear mixer", "about", "state", "source", "arguments")
DIFFERS = ("linear mixer", "differs from the published layer")
DIFFERS_HEADER = """

Where a module is not the published one, beside what its formula shows:

"""

MIXERS_HEADER = """

# Linear mixers

Their time is linear in L and their state constant, so there are no weights to look at. The state is
how many numbers decoding keeps for a sequence, of H heads of D channels (N: the argument state).

"""

Row = tuple[str, ...]


def table(markdown: bool = False) -> str:
    """Return the catalogue and the linear mixers as aligned or as Markdown tables."""
    variants = [
        (
            spec.name,
            spec.formula,
            spec.source,
            spec.row_sum,
            "yes" if spec.sparse else "no",
            "yes" if spec.signed else "no",
            ", ".join([*spec.learned, *(["gates"] if spec.gated else [])]) or "-",
            ", ".join(spec.arguments) or "-",
            spec.about,
        )
        for spec in catalogue.CATALOGUE
    ]
    mixers, broken = mixer_rows()
    shown = [row[: len(MIXERS)] for row in mixers]
    if markdown:
        differing = [(row[0], row[-1]) for row in mixers if row[-1]]
        pages = HEADER + _markdown(COLUMNS, variants) + MIXERS_HEADER + _markdown(MIXERS, shown)
        return pages + DIFFERS_HEADER + _markdown(DIFFERS, differing)
    errors = [f"left out: {line}" for line in (*catalogue.BROKEN.values(), *broken)]
    return "\n".join([_aligned(COLUMNS, variants), "", _aligned(MIXERS, shown), *errors])


def check_name(name: str) -> None:
    """Refuse a name that is neither a variant's nor a mixer's."""
    mixers, broken = mixer_rows()
    choices = (*catalogue.names(), *(row[0] for row in mixers))
    if name not in choices and not broken and not catalogue.BROKEN:
        raise ValueError(unknown(name, choices))


def unknown(name: str, choices: Sequence[str]) -> str:
    """Return the error about a name that is not one of the choices."""
    near = difflib.get_close_matches(str(name), choices, n=3, cutoff=0.65)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"unknown attention {name!r}{hint}; choose from {', '.join(choices)}"


def mixer_rows() -> tuple[list[Row], list[str]]:
    """Return a row for each linear mixer, and a line for each file that fails to make one.

    The last column, how it differs from the published layer, is for the page alone.
    A mixer is described by constants of its class, which are read from its file; where that is
    impossible, the file is imported, which loads torch.
    """
    rows: list[Row] = []
    broken: list[str] = []
    if (package := sys.modules.get("attention.linear")) is not None:
        folders = package.__path__
    else:
        folders = [str(Path(__file__).parent / "linear")]
    modules = pkgutil.iter_modules(folders)
    for module in sorted(modules, key=lambda module: module.name):
        folder = Path(module.module_finder.path)  # type: ignore[union-attr]
        try:
            facts = None if module.ispkg else _described(folder / f"{module.name}.py")
        except (SyntaxError, ValueError, LookupError):
            from attention import linear  # loads torch, and says what is wrong with the file

            if line := linear.broken().get(module.name):
                broken.append(line)
                continue
            mixer = linear.get(module.name)
            facts = {field: getattr(mixer, field) for field in (*FACTS, "arguments", "differs")}
        if facts is not None:
            arguments = ", ".join(facts["arguments"]) or "-"
            texts = (facts[field] for field in ("name", "about", "kept", "source"))
            rows.append((*texts, arguments, facts["differs"]))
    return rows, broken


def _described(path: Path) -> dict[str, Any] | None:
    """Return the constants of a file's mixer or None, or raise an error if it takes an import."""
    tree = ast.parse(path.read_text("utf-8"))
    for statement in tree.body:
        for alias in statement.names if isinstance(statement, ast.Import) else ():
            if importlib.util.find_spec(alias.name.partition(".")[0]) is None:
                raise ValueError(f"{alias.name} is not installed")
    if "MIXER" not in (assigned := _assigned(tree.body)):
        return None
    (name,) = (node.id for node in ast.walk(assigned["MIXER"]) if isinstance(node, ast.Name))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    constants = _assigned(classes[name].body)
    facts = {field: ast.literal_eval(constants[field]) for field in FACTS}
    if facts["name"] != path.stem or not all(isinstance(text, str) for text in facts.values()):
        raise ValueError(f"{name} does not describe {path.stem}")
    more = {"arguments": ast.Dict([], []), "differs": ast.Constant("")}
    return facts | {
        field: ast.literal_eval(constants.get(field, empty)) for field, empty in more.items()
    }


def _assigned(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Return the expressions that are assigned to single names."""
    expressions = {}
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and (value := getattr(node, "value", None)) is not None:
            expressions[target.id] = value
    return expressions


def _markdown(columns: Row, rows: Sequence[Row]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _aligned(columns: Row, rows: Sequence[Row]) -> str:
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    )
