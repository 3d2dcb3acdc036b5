"""Forecasts of time series: mixers beside DLinear, PatchTST and iTransformer, and floors.

ZeroS (2025), Table 4. Series are scaled by mean and deviation of their training part, and errors
are in that scale, as everywhere in the field. Floors need no training: the last value, the last
season, the mean, ridge regressions. Series of orbits have a further row: what their law gives
without noise, which no forecast can be better than in the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from benchmarks.published.compare import Ours
from benchmarks.rates import best
from benchmarks.study import PaperStudy
from benchmarks.training_options import Training
from orbits.runs.at_once import Compared, in_each
from orbits.runs.choices import check_choice
from orbits.runs.deferred import deferred
from orbits.runs.figure import figure_path
from orbits.runs.naming import in_prose
from orbits.runs.page import Picture
from orbits.runs.plots import bars
from orbits.runs.result import Quantity, Result, grouped
from orbits.runs.settings import check_at_least, check_not_empty
from orbits.runs.statistics import Seeds
from orbits.runs.table import Column, Table, Value, by_variant, number
from orbits.runs.verdict import against, beside, shown

check_installed = deferred("benchmarks.forecasting.neuralforecast:check_installed")
LINEAR, LAW, LAST = "dlinear", "true law", "last value"
RIDGE, BY_CHANNEL, OF_ALL = "ridge", "ridge by channel", "ridge of all channels"
ENCODER = ", encoder"
"""The end of the name of a row that is no causal model."""
PEERS = (LINEAR, "patchtst", "itransformer")
"""Models that are no mixers of this suite."""
THEIRS, ALIKE = ", neuralforecast", ", trained alike"
"""Ends of the names of a network of neuralforecast, and of ours trained as that is."""
HORIZONS = (96, 192, 336, 720)
"""The field's horizons, over which its tables take means."""
KEYS = ("series", "horizon", "variant", "lr")
ERRORS = ("mse", "mae")


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of series.

    Attributes:
        series: Names of series, or paths of CSV files: columns of numbers, and one of dates.
        data: The folder of published CSVs; None for this one.
        gaps: Treatment of missing values, and of rows that are missing by the dates of a file of
            one's own: ``refuse`` them, or ``carry`` the last value on in what
            models read; missing values are never scored. ``own`` carries in series that need no
            file, whose gaps are known, and refuses in others.
        drop: Columns that are left out; that of dates, to take the rows as they are.
        models: Models beside mixers: dlinear, patchtst, itransformer.
        neuralforecast: Whether that package trains these, too, on the CPU, and ours are trained as
            it trains those, at a rate of 0.001; of series without gaps.
        attention: Attention variants, linear mixers and the papers' ablations of both.
        encoders: Those that are trained as encoders, in which every piece sees all others.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        lookback: Steps that a model reads.
        horizons: Steps that it forecasts, a training each.
        patch: Steps of a piece of the look-back, which a mixer takes for a token.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        dropout: Dropout of PatchTST and iTransformer.
        seeds: Model seeds.
        lrs: Learning rates of the sweep; the validation part chooses.
        steps: Training steps.
        val_steps: Steps between validations; the best one's weights are tested.
        batch_size: Windows per step.
        n_val: Most validation windows, spread over their part.
        n_test: Most test windows, spread over their part.
        training: Device, precision and other options of training.
    """

    series: tuple[str, ...] = ("radial_velocity",)
    data: str | None = None
    gaps: str = "own"
    drop: tuple[str, ...] = ()
    models: tuple[str, ...] = PEERS
    neuralforecast: bool = False
    attention: tuple[str, ...] = ("softmax",)
    encoders: tuple[str, ...] = ()
    exponents: tuple[float, ...] = ()
    lookback: int = 96
    horizons: tuple[int, ...] = (24,)
    patch: int = 8
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    dropout: float = 0.1
    seeds: tuple[int, ...] = (0, 1, 2)
    lrs: tuple[float, ...] = (1e-3, 3e-3)
    steps: int = 600
    val_steps: int = 50
    batch_size: int = 32
    n_val: int = 256
    n_test: int = 1000
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        check_not_empty(self, "series", "horizons", "seeds", "lrs")
        sizes = ("lookback", "horizons", "patch", "n_layer", "n_head", "head_dim", "steps")
        more = ("val_steps", "batch_size", "n_val", "n_test")
        check_at_least(self, dict.fromkeys((*sizes, *more), 1))
        check_at_least(self, {"seeds": 0, "lrs": 1e-9, "exponents": 1e-9, "dropout": 0})
        check_choice("gaps", self.gaps, ("own", "refuse", "carry"))
        for name in self.models:
            check_choice("model", name, PEERS, ", or name it as --attention")
        if self.neuralforecast and not self.models:
            raise ValueError("--neuralforecast trains models: give --models")
        if not (self.models or self.attention or self.encoders):
            raise ValueError("nothing to train: give --models, --attention or --encoders")
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, got {self.dropout}")


class Forecasting(PaperStudy):
    """Forecasts of time series."""

    name = "forecasting"
    version = 2
    about = "Does attention forecast a series better than a linear map, and how near to the law?"
    Settings = Forecasts
    once = ("series", "models", "attention", "encoders", "horizons", "lrs", "seeds")
    undeciding = ("data",)
    metrics: ClassVar[Mapping[str, Quantity]] = {
        "mse": Quantity("lower", "training variances", "mean squared error of the test windows"),
        "mae": Quantity("lower", "training deviations", "mean absolute error of the test windows"),
        "val_mse": Quantity("lower", "training variances", "mean squared error of validation"),
    }
    published: ClassVar = ("time_series",)
    only_if_run = True
    cells = deferred("benchmarks.forecasting.cells:cells")

    def check(self, settings: Forecasts) -> None:
        """Refuse missing devices, and a folder of series that is not there."""
        if settings.data is not None and not Path(settings.data).is_dir():
            raise ValueError(f"--data {settings.data}: no such folder")
        if settings.neuralforecast:
            check_installed()
        super().check(settings)

    def ours(self, results: Sequence[Result], table: str) -> Ours:
        """Return means over the field's four horizons, by row, seed and series."""
        found: dict[tuple[str, int | None, str], dict[int, Result]] = {}
        for result in best(results):
            case = result.case
            rows = found.setdefault((case.variant, case.seed, case.get("series")), {})
            rows[case.get("horizon")] = result
        ours: dict[str, dict[int | None, dict[str, float]]] = {}
        for (variant, seed, series), rows in found.items():
            if set(HORIZONS) <= rows.keys():
                values = ours.setdefault(variant, {}).setdefault(seed, {})
                for metric in ERRORS:
                    means = [rows[horizon].metrics[metric].value for horizon in HORIZONS]
                    values[f"{metric}@{series}"] = fmean(means)
        return ours

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return errors at the best rate of each row, those without training, and the sweep.

        Where neuralforecast's networks were trained, a table has them beside ours.
        """
        beside_it = [result for result in results if _is_of_package(result)]
        results = [result for result in results if not _is_of_package(result)]
        trained = [result for result in results if result.case.seed is not None]
        title = "At the learning rate with the lowest validation error"
        compared = self.seed_table("Beside neuralforecast", beside_it, KEYS, ERRORS)
        return [
            *([compared] if beside_it else []),
            self.seed_table(title, best(trained), KEYS, ERRORS),
            _without_training(results),
            self.seed_table("The sweep", trained, KEYS, ("val_mse",)),
        ]

    def sentences(self, results: Sequence[Result]) -> list[str]:
        """Compare the rows of each task with DLinear, and with baselines without training."""
        said = []
        for (series, horizon), found in _by_task(results).items():
            values = by_variant(found, "mse")
            task = f"{series}, {horizon} steps ahead, mean squared error"
            if beside_package := _beside_package(results, series, horizon):
                said.append(f"{task}, means in units of neuralforecast's: {beside_package}.")
            rows = {variant: seeds for variant, seeds in values.items() if None not in seeds}
            floors = {name: seeds[None] for name, seeds in values.items() if None in seeds}
            if LINEAR not in rows:
                continue
            compared = beside(against(rows, LINEAR), LINEAR, ".3f")
            said.append(
                f"{task}: {LINEAR} {shown(rows[LINEAR], '.3f')}; "
                f"{compared or 'nothing is compared by three seeds'}."
            )
            if set(floors) - {LAW}:
                said.append(f"{task} without gradient steps: {_least(floors, rows)}.")
        return said

    def all_at_once(self, results: Sequence[Result]) -> Compared:
        """Compare mixers of each task at once, each at its best rate; peers are other networks."""
        return in_each(
            {
                f"{series}, {horizon} steps ahead, mean squared error of mixers": {
                    name: seeds
                    for name, seeds in by_variant(found, "mse").items()
                    if name not in PEERS and None not in seeds
                }
                for (series, horizon), found in _by_task(results).items()
            }
        )

    def figures(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the error of each row, a figure per series and horizon."""
        pictures = []
        for (series, horizon), found in _by_task(results).items():
            values = by_variant(found, "mse")
            level = values.pop(LAW, {}).get(None)
            path = figure_path(out, f"mse_{series}_{horizon}")
            caption = in_prose(f"Forecasts of {series}, {horizon} steps ahead.")
            title = caption.rstrip(".")
            error, floor = "mean squared error", "noise alone"
            bars(values, path, error, level, floor, title=title, log=True)
            pictures.append(Picture(caption, [path]))
        return pictures


def _without_training(results: Sequence[Result]) -> Table:
    """Return the errors of floors, of the ridge regression and of the law."""
    rows = [
        [
            *(Value(str(result.case.get(key)), kind="name") for key in KEYS[:-1]),
            *(number(result.value(metric), ".3f") for metric in ERRORS),
        ]
        for result in results
        if result.ok and result.case.seed is None
    ]
    columns = [Column(name) for name in (*KEYS[:-1], *ERRORS)]
    return Table("Without gradient steps", columns, rows)


def _least(floors: Mapping[str, float], rows: Mapping[str, Seeds]) -> str:
    """Name the best of the floors, and the trained rows that are always below it, in a clause."""
    given = {name: value for name, value in floors.items() if name != LAW}
    best_of = min(given, key=given.__getitem__)
    law = f"; {LAW} {floors[LAW]:.3f}" if LAW in floors else ""
    below = [name for name, seeds in rows.items() if max(seeds.values()) < given[best_of]]
    count = f"{len(below)} of {len(rows)} models are" if len(below) != 1 else f"{below[0]} alone is"
    return (
        f"{best_of} {given[best_of]:.3f}, the least of {len(given)}{law}; "
        f"{count} below it in every training"
    )


def _by_task(results: Sequence[Result]) -> dict[tuple[str, int], list[Result]]:
    own = [result for result in best(results) if not _is_of_package(result)]
    return grouped(own, lambda x: (x.case.get("series"), x.case.get("horizon")))


def _is_of_package(result: Result) -> bool:
    return result.case.variant.endswith((THEIRS, ALIKE))


def _beside_package(results: Sequence[Result], series: str, horizon: int) -> str:
    """Return our networks' errors in units of those of neuralforecast's, in a clause."""
    task = {"series": series, "horizon": horizon}
    here = [x for x in results if all(x.case.get(name) == value for name, value in task.items())]
    errors = by_variant(best(here), "mse")
    said = []
    for kind in PEERS:
        theirs = errors.get(f"{kind}{THEIRS}")
        for name, words in ((f"{kind}{ALIKE}", "trained alike"), (kind, "by our recipe")):
            if theirs and name in errors:
                ratio = fmean(errors[name].values()) / fmean(theirs.values())
                said.append(f"{kind} {ratio:.3f} {words}")
    return "; ".join(said)


STUDY = Forecasting()
