"""The exam as a sheet: the sequences that a model is asked on, without their answers.

A key says which exam it is: protocol, law, number of sequences and the seed of the data. That of
the public exam is part of the suite, so that its rows stand beside the kept ones; whoever has the
suite can make its answers too. A held-back exam has a seed that its host alone knows. The signature
is the hash of all that is asked, and binds a prediction to it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits import protocols, shifts
from orbits.protocols import Protocol
from orbits.runs import artefact

SCHEMA = 1
PUBLIC = Path(__file__).with_name("public.json")
"""The key of the public exam."""
MANUAL = Path(__file__).with_name("SUBMITTING.md")
SHEET, BOX = "exam.json", "box"
ANSWER = ("sequence_id", "step", "force_predicted")
"""Columns of an answer: those of symreg/PREDICTIONS.md that do not tell the truth."""
LARGEST = 100_000
"""Most bytes of a key, and most sequences of a part."""
LEAST_SECRET = 2**32
"""Least seed of a held-back exam: signatures and checksums tell a smaller one to who tries all."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Exam:
    """The questions: the training box and every shift of the exam, the same systems in each.

    Attributes:
        protocol: Name of the data protocol.
        law: The force law of the world.
        n_test: Test sequences of each part.
        seed: Seed of the data; who knows it can make the answers.
        held_back: Whether the seed is the host's secret.
    """

    protocol: str
    law: str
    n_test: int
    seed: int
    held_back: bool

    @cached_property
    def parts(self) -> dict[str, Protocol]:
        """The protocol of the training box and of each shift, by name."""
        arguments: dict[str, Any] = {} if self.law == "newton" else {"law": self.law}
        parts = {BOX: arguments}
        for name, shift in shifts.catalogue().items():
            parts[name] = {**arguments, "shift": shift.as_plain()}
        return {name: protocols.get(self.protocol, each or None) for name, each in parts.items()}

    @property
    def steps(self) -> list[int]:
        """The steps whose forces are asked: those of the second half, in which models answer."""
        n_points = self.parts[BOX].n_points
        first = 1 + (1 + n_points) // 2  # of the rows, of which the first tells the time step
        return [row // 2 for row in range(1, 1 + n_points, 2) if row >= first]

    @cached_property
    def tokens(self) -> dict[str, npt.NDArray[np.uint16]]:
        """The sequences of each part, [n_test, 1 + n_points, 2]."""
        indices = np.arange(self.n_test)
        return {
            name: part.batch(self.seed, "test", indices, "force")["tokens"]
            for name, part in self.parts.items()
        }

    @cached_property
    def signature(self) -> str:
        """The sha256 of the questions, 64 hex digits; the seed is no part of it."""
        asked = hashlib.sha256(json.dumps(self.definition, sort_keys=True).encode())
        for name, tokens in self.tokens.items():
            asked.update(name.encode() + b"\0" + np.ascontiguousarray(tokens, "<u2").tobytes())
        return asked.hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """The public settings of the exam, as plain data."""
        known = {"protocol": self.protocol, "law": self.law, "n_test": self.n_test}
        return known | ({} if self.held_back else {"seed": self.seed})

    def data(self, part: str) -> dict[str, Any]:
        """Return the arguments of :class:`worldmodel.data.orbits.OrbitData` for a part."""
        arguments: dict[str, Any] = {} if self.law == "newton" else {"law": self.law}
        if (shift := self.parts[part].shift) is not None:
            arguments["shift"] = shift.as_plain()
        return {
            "protocol": self.protocol,
            "protocol_args": arguments or None,
            "population": "force",
            "n_test": self.n_test,
            "seed": self.seed,
        }


def read_key(path: Path) -> Exam:
    """Read the key of an exam."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError
        record = json.loads(path.read_text(encoding="utf-8"))
        version = record.pop("schema")
        exam = Exam(**record)
    except (ValueError, KeyError, TypeError, AttributeError):  # JSON, and the fields of an exam
        raise ValueError(
            f"{path} is no key of an exam; make one by "
            f"python -m benchmarks questions OUT --key {path}"
        ) from None
    if version != SCHEMA:
        raise ValueError(f"{path}: schema must be {SCHEMA}, got {version!r}")
    for name, largest in (("n_test", LARGEST), ("seed", 2**64 - 1)):
        value = getattr(exam, name)
        if type(value) is not int or not 0 <= value <= largest:
            raise ValueError(f"{path}: {name} must be a whole number up to {largest}")
    if type(exam.held_back) is not bool or not exam.n_test:
        raise ValueError(f"{path}: held_back must be true or false, n_test more than 0")
    if exam.held_back and exam.seed < LEAST_SECRET:
        raise ValueError(
            f"{path}: the seed of a held-back exam must be at least {LEAST_SECRET}, since smaller "
            "ones can be tried; let questions make the key"
        )
    try:
        if exam.parts[BOX].n_points % 2:
            raise ValueError(f"protocol {exam.protocol!r} has no exam; take identifiable")
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    return exam


def new_key(path: Path) -> Exam:
    """Write the key of a new exam, the public one with a seed that nobody has seen; return it."""
    public = read_key(PUBLIC)
    exam = Exam(**{**asdict(public), "seed": secrets.randbits(64), "held_back": True})
    with artefact.replacing(path, exclusive=True) as file:
        file.write(json.dumps({"schema": SCHEMA, **asdict(exam)}).encode() + b"\n")
    return exam


def make_sheet(out: Path, key: Path | None) -> tuple[str, str]:
    """Write the sheet of the public exam, or of that of a key, which is made if it is not there."""
    _refuse_files(out)
    if key is None:
        exam, which = read_key(PUBLIC), "the public exam"
    else:
        if key.resolve().is_relative_to(out.resolve()):
            raise ValueError(
                f"--key {key} lies in {out}, which you give away; choose another place"
            )
        exam = read_key(key) if key.exists() else new_key(key)
        if not exam.held_back:
            raise ValueError(
                f"--key {key} is no held-back exam: its sheet tells the seed; leave out --key for "
                "the public exam, or name a new file"
            )
        which = f"the held-back exam of {key}, which you keep to yourself"
    signature = write_sheet(exam, out)
    return signature, f"{len(exam.parts)} parts of {exam.n_test} sequences of {which}"


def write_sheet(exam: Exam, out: Path) -> str:
    """Write the questions to a folder, without an answer; return the signature.

    ``exam.json`` says what is there, and a file of each part has ``tokens`` uint16
    [N, 1 + n_points, 2], ``time_step`` [N] in years and ``places`` [N, steps, 2, 2] in AU: those of
    planet and star, x and y, the centres of their bins.
    """
    _refuse_files(out)
    layout = exam.parts[BOX].tokens
    files = {name: f"{name}.npz" for name in exam.parts}
    signature = exam.signature
    for name, tokens in exam.tokens.items():
        artefact.save_arrays(out / files[name], _observed(exam.parts[name], tokens), {})
    record = {
        "schema": SCHEMA,
        "signature": signature,
        **exam.definition,
        "held_back": exam.held_back,
        "parts": {name: {"file": files[name], "about": _about(name)} for name in files},
        "steps": exam.steps,
        "answer": list(ANSWER),
        "bins": {"low": layout.low, "high": layout.high, "n_bins": layout.n_bins},
    }
    artefact.write_bytes(out / SHEET, json.dumps(record, indent=1).encode() + b"\n")
    shutil.copyfile(MANUAL, out / "README.md")
    return signature


def _refuse_files(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} has files; choose another folder")


def _observed(protocol: Protocol, tokens: Array) -> Mapping[str, Array]:
    layout = protocol.tokens
    planet_and_star = tokens[:, 1:].reshape(len(tokens), -1, 2, 2)
    return {
        "tokens": tokens,
        "time_step": np.asarray(layout.dts)[tokens[:, 0, 0].astype(np.int64) - layout.n_bins],
        "places": layout.decode(planet_and_star),
    }


def _about(part: str) -> str:
    return "systems like those of training" if part == BOX else shifts.get(part).about
