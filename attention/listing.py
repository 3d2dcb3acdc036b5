"""Tables of all variants and linear mixers, made without importing torch.

Mixers from outside are tried before they are listed, which takes torch.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from attention import catalogue
from attention.parts.outside import MIXERS as FROM_OUTSIDE
from attention.spec import FACTS, mixer_files

COLUMNS = (
    "name", "formula", "source", "rows sum to", "sparse", "signed", "learned", "arguments", "about"
)  # fmt: skip

HEADER = """# Attention variants

Made by `python -m attention ls --markdown`. Row i sees keys j = 1..i; d is the head dimension, L
the sequence length, l1 the division of a row by its sum of absolute values.

"""

MIXERS = ("linear mixer", "about", "state", "source", "arguments")
MIXERS_HEADER = """

# Linear mixers

Their time is linear in the length of a sequence (times its logarithm for convolutions, times the
length itself for Synthesizers and gMLP, which keep what they have read) and their state constant,
so there are no weights to look at. The state is how many numbers decoding keeps for a sequence, of
H heads of D channels (N: the argument state, L: the argument length, max_length or segment). Those
with max_length refuse longer sequences.

"""

DEVIATIONS_HEADER = """

## Where they deviate from the papers

However a paper starts its own, in a model all linear layers start as those of its GPT do: weights
normal with a variance of 1 / inputs, those of a mixer's last layer smaller by the square root of
2 n_layer, and offsets as PyTorch's. What is not a linear layer (decays, steps, filters, maps of
features) keeps the start values of its file.

"""

OPTIONAL: dict[str, Any] = {"arguments": {}, "deviations": ""}
"""Constants that the class of a mixer may leave to its base class."""

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
    mixers, left_out = mixer_rows()
    if markdown:
        tables = HEADER + _markdown(COLUMNS, variants) + MIXERS_HEADER + _markdown(MIXERS, mixers)
        return tables + DEVIATIONS_HEADER + "\n".join(_deviations())
    errors = [f"left out: {line}" for line in left_out.values()]
    return "\n".join([_aligned(COLUMNS, variants), "", _aligned(MIXERS, mixers), *errors])


def brief(width: int) -> str:
    """Return names, a sentence and the arguments of each, in lines of a terminal's width.

    Args:
        width: Characters of a line.
    """
    variants = [(x.name, x.about, ", ".join(x.arguments)) for x in catalogue.CATALOGUE]
    mixers, left_out = mixer_rows()
    of_mixers = [(row[0], row[1], row[4].strip("-")) for row in mixers]
    tables = [
        _aligned(
            (head, "about (arguments)"),
            [(x[0], f"{x[1]} ({x[2]})" if x[2] else x[1]) for x in rows],
        )
        for head, rows in (("name", variants), ("linear mixer", of_mixers))
    ]
    text = "\n\n".join(tables)
    lines = [x if len(x) <= width else f"{x[: width - 3]}..." for x in text.split("\n")]
    lines += [f"left out: {line}" for line in left_out.values()]
    return "\n".join([*lines, "", "ls --markdown or --json has formulas, sources and facts too"])


def records() -> dict[str, Any]:
    """Return the catalogue and the linear mixers as plain data, by name."""
    variants = {
        spec.name: {
            "formula": spec.formula,
            "source": spec.source,
            "rows sum to": spec.row_sum,
            "sparse": spec.sparse,
            "signed": spec.signed,
            "learned": list(spec.learned),
            "gated": spec.gated,
            "arguments": list(spec.arguments),
            "about": spec.about,
        }
        for spec in catalogue.CATALOGUE
    }
    mixers, left_out = mixer_rows()
    return {
        "variants": variants,
        "mixers": {row[0]: dict(zip(MIXERS[1:], row[1:], strict=True)) for row in mixers},
        "broken": list(left_out.values()),
    }


def check_name(name: str, others: Sequence[str] = ()) -> None:
    """Refuse a name that is neither a variant's nor a mixer's, nor one of others."""
    mixers, left_out = mixer_rows()
    choices = (*catalogue.names(), *(row[0] for row in mixers), *others)
    if name not in choices:
        raise ValueError(left_out.get(name) or unknown(name, choices, left_out.values()))


def takes(name: str) -> tuple[str, ...]:
    """Return the names of the arguments that a known attention takes, beside sizes and layers."""
    if name not in catalogue.names():
        mixers, _ = _mixers()
        return (*next(x["arguments"] for x in mixers if x["name"] == name), "chunk")
    tree = _parsed(Path(__file__).with_name("layer.py").read_text("utf-8"))
    (module,) = (x for x in tree.body if isinstance(x, ast.ClassDef) and x.name == "Attention")
    functions = {x.name: x.args for x in module.body if isinstance(x, ast.FunctionDef)}
    given = functions["__init__"]
    of_module = [each.arg for each in given.args[-len(given.defaults) :]]  # with a default
    return (*catalogue.get(name).arguments, *of_module)


def unknown(name: str, choices: Sequence[str], left_out: Iterable[str] = ()) -> str:
    """Return the error about a name that is not one of the choices: near ones, or else all.

    What was left out is named too, since a plug-in that fails may have no name to be found by.
    """
    said = f"unknown attention {name!r}{''.join(f' (left out: {line})' for line in left_out)}"
    if near := difflib.get_close_matches(str(name), choices, n=3, cutoff=0.65):
        return f"{said}; did you mean {' or '.join(near)}? `{called()} ls` lists all"
    return f"{said}; choose from {', '.join(choices)}"


def called() -> str:
    """Return this package's command, spelled as the program was started."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.stem
    return "orrery attention" if name == "orrery" else "python -m attention"


def mixer_rows() -> tuple[list[Row], dict[str, str]]:
    """Return a row for each linear mixer, and a line for each variant or mixer that fails."""
    mixers, broken = _mixers()
    columns = ("name", "about", "kept", "source")
    return [
        (*(mixer[column] for column in columns), ", ".join(mixer["arguments"]) or "-")
        for mixer in mixers
    ], {**catalogue.BROKEN, **broken}


def _deviations() -> list[str]:
    """Return a line for each linear mixer that is not all as published."""
    mixers, _ = _mixers()
    return [f"- {m['name']}: {m['deviations']}" for m in mixers if m["deviations"]]


def _mixers() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the facts of each linear mixer, and by name a line for each that fails.

    A mixer is described by constants of its class, which are read from its file. Where that is
    impossible, or mixers come from outside, all are imported, which loads torch.
    """
    if (package := sys.modules.get("attention.linear")) is not None:
        folders = package.__path__
    else:
        folders = [str(Path(__file__).parent / "linear")]
    if not metadata.entry_points(group=FROM_OUTSIDE):
        try:
            described = [_described(file) for file, _ in mixer_files(folders).values()]
            return [facts for facts in described if facts is not None], {}
        except (SyntaxError, ValueError, LookupError):
            pass  # the import says what is wrong with which file
    from attention import linear

    mixers = map(linear.get, linear.names())
    fields = (*FACTS, *OPTIONAL)
    return [{field: getattr(x, field) for field in fields} for x in mixers], linear.broken()


def _described(path: Path) -> dict[str, Any] | None:
    """Return the constants of a file's mixer or None, or raise an error if it takes an import."""
    tree = _parsed(path.read_text("utf-8"))
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
    given = {field: constants[field] for field in OPTIONAL if field in constants}
    return {**OPTIONAL, **facts, **{field: ast.literal_eval(x) for field, x in given.items()}}


@functools.lru_cache(256)
def _parsed(text: str) -> ast.Module:
    """Return the tree of a file's text; one command may ask for the names of all mixers twice."""
    return ast.parse(text)


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
