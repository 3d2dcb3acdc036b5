"""The result: one typed record for every measured cell, and its JSON line (schema 2)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

SCHEMA = 2
STATUSES = ("ok", "failed", "skipped")
Direction = Literal["higher", "lower", "none"]
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Quantity:
    """The meaning of a metric.

    Attributes:
        direction: Better values: ``higher`` or ``lower``; ``none`` where neither is better.
        unit: Unit of the value, for example ``nats per byte``; empty for a pure number.
        about: One sentence.
        bounds: Its least and largest possible value, where measured ones come near them; an
            interval of few is then no symmetric one, and tables show each. One may be infinite.
    """

    direction: Direction
    unit: str
    about: str
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class Metric:
    """One measured number.

    Attributes:
        value: The number.
        low: Lower end of its 95% interval; None without one.
        high: Upper end.
        n: Number of examples it is a mean of; None where it is not a mean.
        stderr: Standard error over these examples.
        unit: Unit of its :class:`Quantity`.
        direction: Direction of its :class:`Quantity`.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    stderr: float | None = None
    unit: str = ""
    direction: Direction = "none"

    @classmethod
    def of(cls, value: float | Sequence[float] | Metric) -> Metric:
        """Return a metric from a number, from (value, low, high), or as it is."""
        if isinstance(value, Metric):
            return value
        if isinstance(value, int | float | np.number):
            return cls(float(value))
        middle, low, high = value
        return cls(float(middle), float(low), float(high))

    @classmethod
    def mean(cls, values: npt.ArrayLike) -> Metric:
        """Return the mean of one number per example, with its standard error."""
        each = np.asarray(values, np.float64)
        n = len(each)
        stderr = float(each.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        return cls(float(each.mean()), n=n, stderr=stderr)

    def exp(self) -> Metric:
        """Return the exponential, its standard error to first order."""
        value = math.exp(self.value)
        stderr = None if self.stderr is None else value * self.stderr
        return Metric(value, n=self.n, stderr=stderr)

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Value, low and high; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.value, self.low, self.high

    def to_json(self) -> dict[str, Any]:
        """Return plain data without the fields that are not known."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in plain.items() if value is not None}


@dataclass(frozen=True)
class Case:
    """The subject of a result: the fields by which results are grouped and compared.

    Attributes:
        study: Name of the study.
        kind: Kind of the measurement, for example ``predictor`` or ``search``.
        variant: The attention, mixer or control, as tables call it.
        arm: Kind of the training; ``-`` where nothing was trained.
        seed: Seed of the training; None where nothing was trained.
        law: Force law of the world; None outside physics.
        protocol: Data protocol; results of two protocols never share a table.
        setting: Everything else that tells rows apart, for example ``labels`` or ``width``.
    """

    study: str
    kind: str
    variant: str = "-"
    arm: str = "-"
    seed: int | None = None
    law: str | None = None
    protocol: str | None = None
    setting: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """Return a field, or the setting's entry of a name; None if neither has it."""
        return getattr(self, name) if name in _FIELDS else self.setting.get(name)

    @property
    def label(self) -> str:
        """The case in words, for progress bars and messages."""
        words = [self.kind, self.variant, *([self.arm] if self.arm != "-" else [])]
        words += [f"{name} {value}" for name, value in self.setting.items() if value is not None]
        return ", ".join([*words, *([] if self.seed is None else [f"seed {self.seed}"])])

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {name: getattr(self, name) for name in _FIELDS} | {"setting": dict(self.setting)}


_FIELDS = tuple(f.name for f in dataclasses.fields(Case) if f.name != "setting")


@dataclass(frozen=True)
class Result:
    """One measured cell.

    Attributes:
        case: The subject of the result.
        status: ``ok``; ``failed``; or ``skipped``, where something could not be reached.
        error: Why there is no result; None for ``ok``.
        metrics: The measured numbers by name.
        details: Plain data that is no single number: a formula, a verdict, a curve.
        files: Files that it left, by role, relative to the results folder.
        cell: Address of the cell.
        cpu_s: CPU seconds of the cell, those of its children included.
        manifest: Provenance, see :mod:`orbits.runs.manifest`.
    """

    case: Case
    status: str = "ok"
    error: str | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    cell: str = ""
    cpu_s: float = 0.0
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status == "ok"

    def value(self, metric: str) -> float | None:
        """Return the value of a metric; None if it was not measured."""
        found = self.metrics.get(metric)
        return None if found is None else found.value

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {
            "schema": SCHEMA,
            **self.case.to_json(),
            "status": self.status,
            "error": self.error,
            "metrics": {name: metric.to_json() for name, metric in self.metrics.items()},
            "details": dict(self.details),
            "files": dict(self.files),
            "cell": self.cell,
            "cpu_s": self.cpu_s,
            "manifest": dict(self.manifest),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Result:
        """Read a record.

        Raises:
            ValueError: It is not one of this schema; the message names the field.
        """
        if not isinstance(record, Mapping):
            raise ValueError(f"a result is an object, got {type(record).__name__}")
        if record.get("schema") != SCHEMA:
            raise ValueError(f"schema must be {SCHEMA}, got {record.get('schema')!r}")
        for name, kinds in _TYPES.items():
            if not isinstance(record.get(name), kinds):
                raise ValueError(f"{name} has the wrong type: {record.get(name)!r:.80}")
        if is_too_large(record["cpu_s"]):
            raise ValueError("cpu_s is too large")
        git = record["manifest"].get("git")
        if git is not None and not (isinstance(git, Mapping) and "commit" in git):
            raise ValueError(f"manifest: git must be an object with a commit, got {git!r:.80}")
        if record["status"] not in STATUSES:
            raise ValueError(f"status must be {' | '.join(STATUSES)}, got {record['status']!r}")
        metrics = {name: _metric(name, each) for name, each in record["metrics"].items()}
        case = Case(**{name: record[name] for name in _FIELDS}, setting=record["setting"])
        rest = {name: record[name] for name in _REST}
        return cls(case=case, metrics=metrics, **rest)


_TEXT, _MAYBE_TEXT = (str,), (str, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("study", "kind", "variant", "arm", "status", "cell"), _TEXT),
    **dict.fromkeys(("law", "protocol", "error"), _MAYBE_TEXT),
    **dict.fromkeys(("setting", "metrics", "details", "files", "manifest"), (dict,)),
    "seed": (int, type(None)),
    "cpu_s": (int, float),
}
_REST = ("status", "error", "details", "files", "cell", "cpu_s", "manifest")
_NUMBER = (int, float)
_LARGEST = 10**300
_METRIC_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("value", "low", "high", "n", "stderr"), _NUMBER),
    **dict.fromkeys(("unit", "direction"), (str,)),
}


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return results, or rows made of them, in lists by a key, in the order of the first ones."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def is_too_large(value: object) -> bool:
    """Return whether a value is a whole number that no float holds, or nearly so."""
    return type(value) is int and abs(value) > _LARGEST


def _metric(name: str, record: Any) -> Metric:
    if not isinstance(record, dict) or "value" not in record:
        raise ValueError(f"metric {name!r} must have a value: {record!r:.80}")
    for key, value in record.items():  # a large folder has a million of them
        kinds = _METRIC_TYPES.get(key)
        if kinds is None:
            raise ValueError(f"metric {name!r} has the unknown field {key!r:.80}")
        if type(value) not in kinds:  # a bool is an int, and no number
            kind = "a number" if kinds is _NUMBER else "text"
            raise ValueError(f"metric {name!r}: {key} must be {kind}, got {value!r:.80}")
        if is_too_large(value):
            raise ValueError(f"metric {name!r}: {key} is too large")
    if record.get("direction", "none") not in ("higher", "lower", "none"):
        raise ValueError(f"metric {name!r}: unknown direction {record['direction']!r:.80}")
    return Metric(**record)
