"""Arguments of models, of their data and of the trainer, read from their sources.

They are not imported: that takes seconds.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orbits.runs.cli import called
from worldmodel.models.renamed import RENAMED

FOLDERS = {"model": "models", "data": "data"}
"""Folder of the classes of each group."""
CLASSES = {
    "model": ("NextTokenModel", "ForceModel", "StateModel", "TextModel"),
    "data": ("OrbitData", "TextData", "ShardData"),
}
"""Classes that a command line chooses from, the default first."""
LINKED = ("protocol", "protocol_args", "tokenizer")
"""Arguments of the data that the model takes from them."""
OURS = "worldmodel."
TRAINER = ("trainer/trainer.py", "trainer/connectors/accelerator_connector.py")
PRECISION = "plugins/precision/precision.py"
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Key:
    """An argument of a class, as its source writes it.

    Attributes:
        annotation: Type of the argument.
        default: Default of the argument; None if it must be given.
        about: The first sentence of what the docstring says of it.
    """

    annotation: ast.expr | None
    default: ast.expr | None
    about: str


def class_of(group: str, chosen: str) -> str | None:
    """Return the name of a class of this package that was chosen by name or path, else None."""
    path, _, name = RENAMED.get(chosen, chosen).rpartition(".")
    return name if name in _sources(group)[0] and f"{path}.".startswith((".", OURS)) else None


@functools.cache
def keys(group: str, name: str) -> Mapping[str, Key]:
    """Return the arguments of a class, its bases' arguments last.

    Args:
        group: model, data or trainer.
        name: The class, of :func:`class_of`, or Trainer; nothing is known of another.
    """
    node = _sources(group)[0].get(name)
    if node is None:
        return {}
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    inherited = {key: each for base in bases for key, each in keys(group, base).items()}
    functions = (each for each in node.body if isinstance(each, ast.FunctionDef))
    made = next((each for each in functions if each.name == "__init__"), None)
    if made is None:
        return inherited
    own = _own(made, ast.get_docstring(node) or "")
    if made.args.kwarg is None:
        return own
    hidden = {*own, *_passed(made, list(inherited))}
    return own | {key: each for key, each in inherited.items() if key not in hidden}


def summary(group: str, name: str) -> str:
    """Return the first sentence of a class's docstring."""
    return _sentence(ast.get_docstring(_sources(group)[0][name]) or "")


@functools.cache
def known(group: str) -> frozenset[str]:
    """Return the arguments of all classes of a group; none of a group that has no such sources."""
    return frozenset(key for name in _sources(group)[0] for key in keys(group, name))


def aliases(group: str) -> Mapping[str, ast.expr]:
    """Return the types that the sources of a group give a name."""
    return _sources(group)[1]


@functools.cache
def _sources(group: str) -> tuple[dict[str, ast.ClassDef], dict[str, ast.expr]]:
    """Return the classes and the named types of a group."""
    classes: dict[str, ast.ClassDef] = {}
    types: dict[str, ast.expr] = {}
    for path in _files(group):
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.ClassDef):
                classes[each.name] = each
            elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Subscript):
                types |= {x.id: each.value for x in each.targets if isinstance(x, ast.Name)}
    return classes, types


def _files(group: str) -> Iterator[Path]:
    if group in FOLDERS:
        yield from (Path(__file__).parents[1] / FOLDERS[group]).glob("*.py")
    lightning = importlib.util.find_spec("lightning")  # found, not imported
    if group == "trainer" and lightning is not None and lightning.origin is not None:
        folder = Path(lightning.origin).parent
        files = (*(folder / "pytorch" / name for name in TRAINER), folder / "fabric" / PRECISION)
        yield from filter(Path.is_file, files)


def _passed(made: ast.FunctionDef, inherited: list[str]) -> set[str]:
    """Return the arguments of the base that a constructor gives itself."""
    for node in ast.walk(made):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__":
            return {*inherited[: len(node.args)], *(each.arg or "" for each in node.keywords)}
    return set()


def _own(made: ast.FunctionDef, docstring: str) -> dict[str, Key]:
    """Return the arguments of a constructor, by name."""
    about = {name: _sentence(text) for name, text in _ARGUMENT.findall(inspect.cleandoc(docstring))}
    plain, named = made.args.args, made.args.kwonlyargs
    missing = [None] * (len(plain) - len(made.args.defaults))
    given = zip(
        (*plain, *named), (*missing, *made.args.defaults, *made.args.kw_defaults), strict=True
    )
    return {
        each.arg: Key(each.annotation, default, about.get(each.arg, ""))
        for each, default in given
        if each is not plain[0]
    }


def _sentence(text: str) -> str:
    """Return the first sentence of a text, without the markup of docstrings."""
    first = re.split(r"(?<=\.) (?=[A-Z`])", " ".join(text.split()))[0]
    first = re.sub(r"``python -m ([^`]*)``", lambda words: f"`{called(words[1])}`", first)
    return re.sub(r":\w+:`([^`]*)`", r"\1", first).replace("``", "")
