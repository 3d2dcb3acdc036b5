"""The public in-context force predictions of language models, as prediction files.

Vafa et al. (2025, arXiv:2507.06952) showed language models the coordinates of a planet at 450
timesteps and the force on it at 10 of these, and asked for the force at all of them. Their
repository holds the answers (``llm-predictions/<model>/<planet>.json``) beside the true states
and forces (``llm-prompts/*.npy``).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs import artefact
from orbits.runs.manifest import manifest
from symreg.predictions.table import SCHEMA, UNITS

REPOSITORY = "https://github.com/keyonvafa/inductive-bias-probes"
PHYSICS = Path("inductivebiasprobes", "experiments", "physics")
ANSWERS, PROMPTS = "llm-predictions", "llm-prompts"
STEPS, GIVEN = 450, 10
ROW = {"protocol": "Vafa et al. in context", "arm": "in context", "labels": f"{GIVEN} per sequence"}

Array = npt.NDArray[Any]


def convert(folder: str | Path, out: str | Path) -> list[Path]:
    """Write one prediction file for each language model, with all of its planets; return the files.

    A planet is a sequence. The timesteps whose force was in the prompt are left out: repeating
    them is no prediction. A timestep without a number in the answer has the prediction NaN, so it
    counts as dropped; a planet whose answer could not be parsed at all (``null``) is left out and
    named in the manifest. ``folder`` is a clone of ``REPOSITORY``, or its folder ``PHYSICS``. A
    file that is there already is a FileExistsError, and none is written.
    """
    physics = Path(folder) / PHYSICS if (Path(folder) / PHYSICS).is_dir() else Path(folder)
    for needed in (ANSWERS, PROMPTS):
        if not (physics / needed).is_dir():
            raise ValueError(f"{physics}: no folder {needed}; git clone {REPOSITORY} and give it")
    models = sorted(path for path in (physics / ANSWERS).iterdir() if path.is_dir())
    if not models:
        raise ValueError(f"{physics / ANSWERS}: no folder of a model; git clone {REPOSITORY}")
    converted = {Path(out) / f"{model.name}.npz": _model(physics, model) for model in models}
    for path in converted:
        if path.exists():
            raise FileExistsError(f"{path} exists; give another folder")
    for path, (columns, record) in converted.items():
        artefact.save_arrays(path, columns, record)
    return list(converted)


def _model(physics: Path, folder: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the columns and the manifest of one model's file."""
    files = {int(path.stem): path for path in folder.glob("*.json") if path.stem.isdecimal()}
    answers = {planet: _answer(files[planet]) for planet in sorted(files)}
    parsed = {planet: answer for planet, answer in answers.items() if answer is not None}
    if not parsed:
        raise ValueError(f"{folder}: none of {len(answers)} answers could be parsed")
    inputs = {f"{folder.name}/{path.name}": artefact.sha256(path) for path in files.values()}
    parts = []
    for planet, answer in parsed.items():
        prompt, hashes = _prompt(physics / PROMPTS, planet)
        values = [answer.get(str(step)) for step in prompt["step"]]
        parts.append({**prompt, "force_predicted": np.array([_number(value) for value in values])})
        inputs |= hashes
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    row = {"model": folder.name, **ROW}
    config = {
        "source": REPOSITORY,
        "row": row,
        "planets": list(answers),
        "unparsed_planets": [planet for planet in answers if planet not in parsed],
        "given_timesteps_left_out": GIVEN * len(parsed),
        "asked_timesteps": len(columns["step"]),
        "timesteps_without_a_number": int(np.isnan(columns["force_predicted"]).sum()),
    }
    constants = {"units": UNITS, "schema": SCHEMA, **row}
    columns |= {name: np.array(value) for name, value in constants.items()}
    return columns, manifest(config, seed=None, inputs=inputs)


def _prompt(folder: Path, planet: int) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the truth at the timesteps that were asked for, and the hashes of the files."""
    names = ("true_state", "true_force", "unmasked_inds")
    paths = [folder / f"{name}_{planet}.npy" for name in names]
    state = _array(paths[0], (STEPS, 6)).astype(np.float64)
    force = _array(paths[1], (STEPS, 1), (STEPS,)).reshape(STEPS).astype(np.float64)
    prompted = _array(paths[2], (GIVEN,))
    steps = np.setdiff1d(np.arange(STEPS), prompted)
    if len(steps) != STEPS - GIVEN:
        raise ValueError(f"{paths[2]}: expected {GIVEN} different timesteps from 0 to {STEPS - 1}")
    position, (m1, m2) = state[:, :2], state[:, 4:].T
    r = np.hypot(*position.T)
    # The columns of a state carry no names; that they make the force shows that they are these.
    with np.errstate(all="ignore"):
        newton = GRAVITATIONAL_CONSTANT * m1 * m2 / r**2
    if not np.allclose(force, newton, rtol=1e-3, atol=0):
        raise ValueError(f"{paths[1]}: not Newton's force at {paths[0].name}")
    every = {"r": r, "m1": m1, "m2": m2, "force": force, "position": position}
    columns = {name: values[steps] for name, values in every.items()}
    columns |= {"sequence_id": np.full(len(steps), planet), "step": steps}
    return columns, {path.name: artefact.sha256(path) for path in paths}


def _array(path: Path, *shapes: tuple[int, ...]) -> Array:
    if not path.is_file():
        raise ValueError(f"{path}: missing; git clone {REPOSITORY} again")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: not a .npy array ({error})") from None
    if array.shape not in shapes or array.dtype.kind not in "iuf":
        raise ValueError(f"{path}: {array.dtype} of shape {array.shape}, expected {shapes[0]}")
    return array


def _answer(path: Path) -> dict[str, Any] | None:
    """Return the values by timestep, or None where the answer could not be parsed."""
    try:
        answer = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: not JSON; restore it from {REPOSITORY}") from None
    if answer is not None and not isinstance(answer, dict):
        raise ValueError(f"{path}: expected an object timestep -> force, or null")
    return answer


def _number(value: Any) -> float:
    """Return a predicted force, NaN where the model gave no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
