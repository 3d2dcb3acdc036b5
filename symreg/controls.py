"""Controls of a leaderboard: forces of a known law on the points of a prediction file.

Without them a row cannot be read: what the search finds in the true force, in the true force with
a model's errors, in a look-up of near forces, and in the answers of worlds with another law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from orbits import laws
from orbits.runs.choices import check_choice
from symreg.formula.evaluation import evaluate
from symreg.points import NAMES
from symreg.predictions import Predictions

Array = npt.NDArray[np.float64]

TRUTH, NOISE, NEAREST = "true force", "true force with the errors of", "k-NN on r, m1, m2"
FOLDS = 10
NEIGHBOURS = 2  # as in Vafa et al. (2025), fit_symbolic_regression.py
WRONG_LAWS: Mapping[str, str] = {
    "constant": "1",
    "1/r": "1/r",
    "m1/r^2": "m1/r**2",
    "m2/r^2": "m2/r**2",
    "m1*m2/r^2": "m1*m2/r**2",
    # Its length is the points' median distance, or it would be Newton's law on near points.
    "Yukawa": "m1*m2*(1 + r/length)*exp(-r/length)/r**2",
}


def names(law: str) -> tuple[str, ...]:
    """Return the controls that need no model, for points of a world under ``law``."""
    return TRUTH, NEAREST, *(name for name in WRONG_LAWS if not _is_same(name, law))


def _is_same(name: str, law: str) -> bool:
    """Tell whether a wrong law is ``law`` up to its constant, and so no wrong one there."""
    if name == "Yukawa":
        return law == "yukawa" or law.startswith("yukawa_length_")
    X = np.random.default_rng(0).uniform(0.5, 2, (20, len(NAMES)))
    ratio = laws.get(law).magnitude(*X.T) / evaluate(WRONG_LAWS[name], NAMES, X)
    return bool(np.allclose(ratio, ratio[0], rtol=1e-9))


def answer(name: str, data: Predictions) -> Predictions:
    """Return ``data`` with a control's answers in place of the predictions.

    ``NOISE`` is the true force times the errors of the file's own predictions, dealt out to the
    points at random: noise of the same size that depends on nothing.
    """
    answers: dict[str, Callable[[Predictions], Array]] = {
        TRUTH: lambda points: points.force,
        NEAREST: _nearest_forces,
        NOISE: _noisy,
    }
    if name in WRONG_LAWS:
        return replaced(data, _wrong(WRONG_LAWS[name], data))
    check_choice("control", name, (*answers, *WRONG_LAWS))
    return replaced(data, answers[name](data))


def definition(name: str) -> str:
    """Return the definition of a control, which with the points determines its answers."""
    return WRONG_LAWS.get(name, f"{name} 1, {NEIGHBOURS} neighbours, {FOLDS} folds")


def replaced(data: Predictions, answers: Array) -> Predictions:
    """Return ``data`` with other predicted magnitudes, shape [n], and without vectors."""
    return replace(data, force_predicted=answers, vectors={})


def _wrong(expression: str, data: Predictions) -> Array:
    """Evaluate another law, as strong as the true force in the median."""
    length = np.full((len(data), 1), np.median(data.X[:, 0]))
    values = evaluate(expression, (*NAMES, "length"), np.hstack([data.X, length]))
    return values * np.median(data.force / values)


def _noisy(data: Predictions) -> Array:
    with np.errstate(all="ignore"):
        errors = np.log(data.force_predicted / data.force)
    errors = errors[np.isfinite(errors)]
    return data.force * np.exp(np.random.default_rng(0).choice(errors, len(data)))


def _nearest_forces(data: Predictions) -> Array:
    """Return the mean force of the nearest points of other sequences, in standardised r, m1, m2.

    Not the oracle of Vafa et al. (2025) nor that of :mod:`worldmodel`, which see the whole state:
    this one sees just what the force depends on, and no force of the same sequence.
    """
    # Half a second, which help and listings do without.
    from sklearn import model_selection, neighbors, preprocessing

    inputs = preprocessing.StandardScaler().fit_transform(data.X)
    groups = np.unique(data.sequence_id, return_inverse=True)[1]
    folds = min(FOLDS, int(groups.max()) + 1)
    if folds < 2:
        raise ValueError("k-NN on r, m1, m2 needs at least two sequences")
    answers = np.empty(len(data))
    for train, test in model_selection.GroupKFold(folds).split(inputs, groups=groups):
        nearest = neighbors.KNeighborsRegressor(n_neighbors=min(NEIGHBOURS, len(train)))
        answers[test] = nearest.fit(inputs[train], data.force[train]).predict(inputs[test])
    return answers
