"""World models from outside: a class in a file of the user's, or in an installed package.

``path/to/file.py:MyModel`` or ``my_pkg.module:MyModel``, as the user types it. A file of results or
a checkpoint never names one. What such a class is, says :mod:`worldmodel.world_model`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orbits import protocols
from orbits.protocols import Protocol
from orbits.runs.choices import did_you_mean
from worldmodel.world_model import Prediction, Seen, can, forces, is_exact, memory, predicted, seen

ABILITIES = ("predict_next", "force", "hidden")
TRIED = 4
"""Sequences of the trial of a model, before it is used."""
FEW = 64
"""Rows up to which the trial changes what follows each of them."""
MAGNITUDE, NATS = "magnitude of force", "nats of predict_next"
CLOSE = 1e-3
"""Largest rounding error, as a share of an answer's size."""
_NAMED = re.compile(r"(?P<place>.+):(?P<model>[^\W\d]\w*)")


class Source(NamedTuple):
    """File and class of a model from outside.

    Attributes:
        path: The file that defines it.
        model: Class in that file, or ``package.module:Class``.
    """

    path: Path
    model: str


def source(text: str) -> Source | None:
    """Return the file and class of a model that a user typed; None where the text is no such name.

    Nothing is imported, but the packages around a module.

    Raises:
        FileNotFoundError: There is no such file or module.
        ValueError: It defines no such class; the message names those that it has.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    place, name = match["place"], match["model"]
    if place.endswith(".py"):
        found = Source(Path(place), name)
        if not found.path.is_file():
            raise FileNotFoundError(f"{place}: no such file")
    elif all(part.isidentifier() for part in place.split(".")):
        try:
            spec = importlib.util.find_spec(place)
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise FileNotFoundError(f"{text}: Python finds no module {place}; install it, or name "
                                    "its file: path/to/file.py:Class")  # fmt: skip
        found = Source(Path(spec.origin), text)
    else:
        return None
    _check_defines(found.path, name)
    return found


def _check_defines(path: Path, name: str) -> None:
    """Refuse a file that cannot be read as Python, or defines no such class."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path}: not Python: {error}") from None
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if name not in (*classes, *imported):
        hint = did_you_mean(name, classes) or f"; it has {', '.join(classes) or 'none'}"
        raise ValueError(f"{path}: defines no class {name}{hint}")


class Outside:
    """A model from outside with the vocabulary of its sequences.

    Its further methods and attributes are those of the model.

    Args:
        model: An object with the methods of :class:`worldmodel.world_model.WorldModel`.
    """

    def __init__(self, model: Any) -> None:
        name, arguments = getattr(model, "protocol", "identifiable"), None
        arguments = dict(getattr(model, "protocol_args", None) or {})
        self.model, self.trained_on = model, protocols.get(name, arguments)
        self.layout = self.trained_on.tokens

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not there yet, as in a copy
            raise AttributeError(name)
        return getattr(self.model, name)

    @property
    def own_name(self) -> str:
        """Name of the model in tables."""
        return str(getattr(self.model, "name", type(self.model).__name__))

    def untrained(self, seed: int) -> Outside | None:
        """Return the same model with random weights, if it knows how to make one."""
        return Outside(self.model.untrained(seed)) if can(self.model, "untrained") else None


def load(place: Source) -> Outside:
    """Return a model from outside.

    Raises:
        ValueError: Its file or class fails; one line names the file and what is wrong.
    """
    try:
        return Outside(getattr(_module(place), place.model.rpartition(":")[2])())
    except Exception as error:  # whatever the user's code trips over
        reason = " ".join(str(error).split()) or type(error).__name__
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{place.path}: {place.model} cannot be made: {kind}{reason}") from error


@functools.cache
def tried(place: Source) -> Outside:
    """Return a model that is made and tried on a few sequences once in a process, without torch.

    Raises:
        ValueError: It cannot be made, or is no world model; one line names the file and says why.
    """
    model = load(place)
    if (reason := fault(model)) is not None:
        raise ValueError(f"{place.path}: {model.own_name} is no world model: {reason}")
    return model


def files(place: Source) -> list[Path]:
    """Return the files beside its own that a model names; results depend on their contents."""
    kind = getattr(_module(place), place.model.rpartition(":")[2])
    found = [place.path.parent / name for name in getattr(kind, "files", ())]
    for path in found:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file; {place.model} names it in files")
    return found


def _module(place: Source) -> Any:
    """Return the module of a model, which is imported once."""
    package = place.model.rpartition(":")[0]
    if package:
        return importlib.import_module(package)
    path = place.path.resolve()
    name = f"orrery_outside_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def fault(model: Outside) -> str | None:
    """Return the fault of a model's answers on a few sequences; None if there is none.

    Answers must have their shapes, be finite, and not change when later rows do.
    """
    world, able = model.trained_on, [name for name in ABILITIES if can(model, name)]
    if not can(model, "observe"):
        return "it has no method observe(seen)"
    if not able:
        return f"it has none of the methods {', '.join(ABILITIES)}"
    observed = world.observe(_systems(world), labelled=False)
    read = seen(observed, model.layout, is_exact(model))
    rows = read.tokens.shape[1]
    # Every row, where they are few: a model may look ahead from some rows alone.
    cuts = (
        [*range(1, rows)] if rows <= FEW else [*range(rows // 2, rows // 2 + 4), rows - 2, rows - 1]
    )
    try:
        told = _answers(model, able, read)
        others = _answers(model, able, _later_changed(read, cuts))
        changed = {name: x.reshape(len(cuts), TRIED, *x.shape[1:]) for name, x in others.items()}
    except Exception as error:  # whatever the user's code trips over
        reason = " ".join(str(error).split())
        return f"it fails on {TRIED} sequences: {type(error).__name__}: {reason}"
    for name, answer in told.items():
        needed = _shape(name, rows)
        if len(answer.shape) != len(needed) or any(
            n not in (size, "k") for n, size in zip(needed, answer.shape, strict=True)
        ):
            return (
                f"{name} has shape {list(answer.shape)} where {TRIED} sequences of {rows} rows "
                f"need [{', '.join(map(str, needed))}]"
            )
        if not np.isfinite(answer[:, 1:]).all():
            return f"{name} is not finite"
        ahead = int(name == NATS)  # they are of the row after, and may know it
        near = _near(answer)
        for cut, other in zip(cuts, changed[name], strict=True):
            kept, again = answer[:, : cut - ahead], other[:, : cut - ahead]
            silent = np.isnan(kept) & np.isnan(again)  # in row 0 there may be nothing to tell
            change = np.where(silent, 0, np.abs(kept - again))
            if not (change <= near[:, : cut - ahead]).all():
                moved = np.max(change, initial=0)
                return (
                    f"{name} of rows 0 to {cut - 1} changes by {moved:.2g} when later rows do: what"
                    " it answers for a row must follow from that row and those before"
                )
    return None


def _near(answer: npt.NDArray) -> npt.NDArray:
    """Return how far answers [B, T, ...] may move by rounding, [1, T, ...].

    By the size of each row's and channel's own answers: one that is large hides no other.
    """
    size = np.nan_to_num(np.abs(answer)).max(axis=0, keepdims=True)
    return CLOSE * size + 1e-2 * CLOSE * np.median(size, axis=1, keepdims=True) + 1e-12


def _shape(name: str, rows: int) -> tuple[int | str, ...]:
    """Return the shape that an answer must have; ``k`` stands for any number."""
    if name == MAGNITUDE:
        return TRIED, rows
    if name == NATS:
        return TRIED, rows - 1, 2
    return TRIED, rows, "k" if name.startswith("hidden") else 2


def _systems(world: Protocol) -> Any:
    return world.systems(0, "test", np.arange(TRIED))


def _later_changed(read: Seen, cuts: Sequence[int]) -> Seen:
    """Return the sequences with the rows from a cut on of another one each, cut after cut."""

    def mixed(values: npt.NDArray) -> npt.NDArray:
        other = np.roll(values, 1, axis=0)
        each = [np.concatenate([values[:, :cut], other[:, cut:]], axis=1) for cut in cuts]
        return np.concatenate(each)

    return Seen(mixed(read.tokens), mixed(read.places), read.layout)


def _answers(model: Outside, able: list[str], read: Seen) -> dict[str, npt.NDArray]:
    """Return every answer of a model by name."""
    return dict(_each(model, able, read))


def _each(model: Outside, able: list[str], read: Seen) -> Iterator[tuple[str, npt.NDArray]]:
    if "predict_next" in able:
        prediction = predicted(model, read)
        yield "predict_next", np.asarray(prediction.expected())
        if type(prediction) is not Prediction:  # of a single place all are the same
            yield "median of predict_next", np.asarray(prediction.median())
            yield "likeliest place of predict_next", np.asarray(prediction.likeliest())
        if (nats := prediction.nats(read)) is not None:
            yield NATS, np.asarray(nats)
    if "force" in able:
        force = forces(model, read)
        yield "force", force.vector
        yield MAGNITUDE, np.asarray(force.magnitude)
    if "hidden" in able:
        for layer, states in model.hidden(memory(model, read)).items():
            yield f"hidden {layer!r}", np.asarray(states)
