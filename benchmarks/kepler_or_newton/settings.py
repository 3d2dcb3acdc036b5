"""The knobs of the study, which are its flags; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from orbits.runs.settings import check_at_least, check_not_empty

HEADS = ("mixture", "gaussian", "bins")
LISTS = ("attention", "predicts", "noise", "windows", "seeds", "heads", "places")


@dataclass(frozen=True)
class KeplerOrNewton:
    """Values of the knobs; the first of each is the centre, and one knob at a time differs from it.

    Attributes:
        recipe: The preset of ``newton`` whose world, sizes and pre-training are taken.
        predicts: Heads: ``mixture`` or ``gaussian``, which are regression, or ``bins``.
        noise: Standard deviations in AU of the noise on the context in training.
        windows: Rows that each block attends to, beside the time step; 0 for all.
        attention: Attention variants, or linear mixers. The shortest window is tried with each
            variant.
        mixer_windows: Try it with linear mixers, too, which then run anew on the rows that they
            see (:class:`worldmodel.models.windowed.Windowed`).
        seeds: Seeds of trainings.
        n_test: Held-out sequences of each question.
        labels: Labelled sequences that read-outs are fitted to.
        heads: Label budgets of force heads on every world model, which are examined outside the
            training box; none for none.
        places: Last places, exact, that a control of the read-outs has in place of a model.
    """

    recipe: str = "small"
    predicts: tuple[str, ...] = HEADS
    noise: tuple[float, ...] = (0.01, 0.0, 0.03, 0.1)
    windows: tuple[int, ...] = (0, 3, 6, 11)
    attention: tuple[str, ...] = ("softmax", "lssar", "lazy", "gla")
    mixer_windows: bool = False
    seeds: tuple[int, ...] = (0, 1, 2)
    n_test: int = 500
    labels: int = 1000
    heads: tuple[int, ...] = ()
    places: tuple[int, ...] = (5, 8, 24)

    def __post_init__(self) -> None:
        check_not_empty(self, *(name for name in LISTS if name != "heads"))
        least = {"seeds": 0, "n_test": 2, "labels": 10, "windows": 0, "noise": 0, "places": 1}
        check_at_least(self, {**least, "heads": 1})
        for head in self.predicts:
            if head not in HEADS:
                raise ValueError(f"predicts must be among {', '.join(HEADS)}, got {head!r}")
