"""The exam: forces asked outside the training box, in units of a causal orbit fit's errors.

In the box a look-up table is right too. Outside it, where one element of the orbits is drawn from
another range (:mod:`orbits.shifts`), whoever knows the law still predicts the force as well as the
observations allow: an orbit fitted to what the model has seen. The score is how many times larger
the root mean square error of ln F is than that fit's, as a geometric mean over the shifts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.newton.controls import Columns
from benchmarks.newton.exam_rows import BOX, MEAN
from benchmarks.newton.log_errors import log_errors
from benchmarks.newton.medians import median_metrics
from orbits.causal_ceiling import causal_ceiling
from orbits.runs import artefact
from orbits.runs.statistics import Interval, mean, studentized
from symreg.exponents import fit_exponents
from symreg.points import NAMES
from worldmodel.data.orbits import OrbitData

Array = npt.NDArray[np.float64]


class Errors(NamedTuple):
    """Errors of ln F in each of N sequences.

    Attributes:
        squares: Sum of the squared errors, [N].
        counts: Number of forces, [N].
        dropped: Share of predictions without a logarithm, which the sums leave out. With any there
            is no score, or a model would gain by leaving out the answers in which it errs most.
    """

    squares: Array
    counts: Array
    dropped: float = 0.0

    @classmethod
    def of(cls, table: Array, points: int) -> Errors:
        """Sum a table of errors [N, forces], in which those without a logarithm are NaN.

        Args:
            table: Errors of ln F by sequence.
            points: Number of predictions, with those that the table lacks.
        """
        counts = np.isfinite(table).sum(axis=1).astype(np.float64)
        dropped = float(1 - counts.sum() / points) if points else 1.0
        return cls(np.nansum(table**2, axis=1), counts, dropped)

    @property
    def sums(self) -> Array:
        """Both sums of each sequence, [N, 2]."""
        return np.stack([self.squares, self.counts], axis=-1)


def errors(sequence_id: npt.NDArray[Any], predicted: Array, true: Array, n: int) -> Errors:
    """Return the errors of predicted forces [points], summed over the sequences 0 to n - 1."""
    return Errors.of(log_errors(sequence_id, predicted, true, n), len(predicted))


def ceiling_errors(data: OrbitData) -> Errors:
    """Return the errors of orbits fitted to the rows that a model sees of each test sequence."""
    n = data.hparams["n_test"]
    batch = data.protocol.batch(data.hparams["seed"], "test", np.arange(n), "force")
    fitted = causal_ceiling(data.protocol, data.hparams["seed"], "test", np.arange(n)).force
    sequence, row = np.isfinite(fitted).nonzero()
    true = np.linalg.norm(batch["force"], axis=-1)
    return errors(sequence, fitted[sequence, row], true[sequence, row], n)


def save(path: Path, each: Mapping[str, Errors], record: Mapping[str, Any]) -> None:
    """Write the errors of the box and of each shift, with a manifest."""
    artefact.save_arrays(path, {name: error.sums for name, error in each.items()}, record)


def load(path: Path) -> dict[str, Errors]:
    """Read a file that :func:`save` wrote."""
    arrays, _ = artefact.load_arrays(path)
    return {name: Errors(*sums.T) for name, sums in arrays.items()}


def ceiling_metrics(each: Mapping[str, Errors]) -> dict[str, Interval]:
    """Return the root mean square errors of ln F of the ceiling."""
    return {_named("rms_log_error", name): _rms(error) for name, error in each.items()}


def measure(
    columns: Mapping[str, Columns],
    ceiling: Mapping[str, Errors],
    subjects: Mapping[str, str | None],
) -> dict[str, float | Interval]:
    """Return the score of some predictions, and how each shift went.

    Args:
        columns: Columns of a prediction file, of the box and of each shift.
        ceiling: The ceiling's errors on the same sequences.
        subjects: The variable whose exponent is asked inside each shift, or None.

    Returns:
        ``exam``, the geometric mean over shifts of ``times_ceiling@SHIFT``, and
        ``median_exam``, that of ``median_log_error@SHIFT``, absent where a prediction of a
        part, the box among them, has no logarithm; and ``rms_log_error``, ``times_ceiling``,
        ``mean_log_error``, ``r2_log``, ``dropped``, ``exponent`` and ``law_exponent`` of each
        shift, without ``@`` in the box. Intervals resample the sequences, those of one index in all
        shifts together.
    """
    metrics: dict[str, float | Interval] = {}
    found: dict[str, Errors] = {}
    tables: dict[str, Array] = {}
    for name, column in columns.items():
        plain = {each: value.double().cpu().numpy() for each, value in column.items()}
        n = len(ceiling[name].counts)
        tables[name] = log_errors(plain["sequence_id"], plain["force_predicted"], plain["force"], n)
        own = found[name] = Errors.of(tables[name], len(plain["force"]))
        one = _one(plain["force"], tables[name], own, ceiling[name])
        metrics |= {_named(k, name): v for k, v in one.items()}
        if subject := subjects.get(name):
            metrics |= {_named(k, name): v for k, v in _exponents(plain, subject).items()}
    shifts = [name for name in columns if name != BOX]
    if shifts and not any(each.dropped for each in found.values()):
        metrics["exam"] = times_ceiling([(found[x], ceiling[x]) for x in shifts])
        metrics |= median_metrics(tables)
    return metrics


def _named(metric: str, shift: str) -> str:
    return metric if shift == BOX else f"{metric}@{shift}"


def _one(true: Array, table: Array, own: Errors, ceiling: Errors) -> dict[str, float | Interval]:
    metrics: dict[str, float | Interval] = {"dropped": own.dropped}
    if own.dropped:
        return metrics
    total = np.sum((np.log(true) - np.log(true).mean()) ** 2)
    return metrics | {
        "rms_log_error": _rms(own),
        "times_ceiling": times_ceiling([(own, ceiling)]),
        MEAN: mean(np.nansum(table, axis=1), own.counts),
        "r2_log": float(1 - own.squares.sum() / total),
    }


def _exponents(plain: Mapping[str, Array], subject: str) -> dict[str, Interval]:
    X = np.stack([plain[name] for name in NAMES], axis=-1)
    fits = {
        name: fit_exponents(X, plain[column], plain["sequence_id"], n_boot=n_boot)
        for name, column, n_boot in (
            ("exponent", "force_predicted", 500),
            ("law_exponent", "force", 0),
        )
    }
    return {name: fit.exponents[subject] for name, fit in fits.items()}


def _rms(own: Errors) -> Interval:
    return studentized(own.sums, lambda s: np.sqrt(s[..., 0] / s[..., 1]))


def times_ceiling(pairs: Sequence[tuple[Errors, Errors]]) -> Interval:
    """Return the geometric mean over parts of root mean square errors over the ceiling's.

    Args:
        pairs: Errors and the ceiling's, of the same N sequences in every part.
    """
    table = np.concatenate([x for own, ceiling in pairs for x in (own.sums, ceiling.sums)], axis=-1)

    def statistic(sums: Array) -> Array:
        squares, counts = sums[..., ::2], sums[..., 1::2]
        means = squares / counts
        return np.exp(np.mean(np.log(means[..., ::2] / means[..., 1::2]), axis=-1) / 2)

    with np.errstate(divide="ignore"):  # the true force has no error, and the score 0
        return studentized(table, statistic)
