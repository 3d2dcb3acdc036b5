"""The specification of a quadratic attention variant, as plain data.

Row i sees keys j = 1..i (i counts from 1). A variant is a sequence of choices:

1. ``scale``      s_ij = c_i q_i . k_j, the queries and keys l2-normalised or not;
2. ``bias``       s_ij minus a distance bias; ``shift``: plus a number that depends on the row;
3. ``phi``        f_ij = phi(s_ij), zero outside ``mask``;
4. ``normalise``  a_ij from f_ij: l1, a constant, a projection on the simplex, or nothing;
5. ``modify``     a simple change of the normalised row (Tab. A4 of the LSSAR paper);
6. ``sharpen``    a second stage: re-weighting ReLU(i a - o)^p, or an elastic offset.

The named variants are in :mod:`attention.catalogue`.
"""

from __future__ import annotations

import dataclasses
import math
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from attention.scalars import check_positive, check_size

CHOICES: dict[str, tuple[str, ...]] = {
    "phi": (
        "exp", "identity", "relu", "relu2", "relu6", "gelu", "sigmoid", "softplus", "mish",
    ),
    "scale": ("inverse_sqrt_dim", "log_length", "cosine", "log_dim_log_row"),
    "shift": ("none", "minus_log_length", "minus_log_row"),
    "bias": ("none", "alibi", "learned"),
    "mask": ("causal", "window", "streaming"),
    "normalise": ("l1", "none", "length", "sqrt_half_row", "sparsemax", "entmax15"),
    "modify": ("none", "negate", "recentre", "recentre_l1", "zero_sum"),
    "sharpen": ("none", "reweight", "elastic_row", "elastic_length", "elastic"),
    "beyond": ("zero", "last", "refuse"),
}  # fmt: skip

FACTS = ("name", "source", "about", "kept")
"""Constants by which the class of a linear mixer describes it, all texts."""
SIGNED_PHIS = ("identity", "gelu", "mish")


def mixer_files(folders: Iterable[str]) -> dict[str, tuple[Path, str]]:
    """Return the modules that may define a linear mixer, by name: file, and name in the package.

    Mixers of one kind share a folder; a folder whose name begins with an underscore has none.
    """
    files = {}
    for module in pkgutil.iter_modules(folders):
        folder = Path(module.module_finder.path)  # type: ignore[union-attr]
        if not module.ispkg:
            files[module.name] = (folder / f"{module.name}.py", module.name)
        elif not module.name.startswith("_"):
            for name, (file, inside) in mixer_files([str(folder / module.name)]).items():
                files[name] = (file, f"{module.name}.{inside}")
    return dict(sorted(files.items()))


@dataclass(frozen=True)
class AttnSpec:
    """One quadratic attention variant; every field but the name has a default (softmax).

    Attributes:
        name: The name used in the CLI, configs, result rows and test ids.
        phi: The function of the scores.
        scale: ``inverse_sqrt_dim``: 1 / sqrt(d). ``log_length``: log(L) / sqrt(d). ``cosine``: g
            on l2-normalised queries and keys. ``log_dim_log_row``: log(d) log(i), likewise.
        shift: Added to the scores: ``minus_log_length``: -log(L). ``minus_log_row``: -log(i).
        bias: Subtracted from the scores: ``alibi``: a fixed slope per head times the distance.
            ``learned``: one number per head and distance.
        mask: ``window``: the last ``window`` keys. ``streaming``: those and the first ``sinks``.
        normalise: ``l1``: divide by the row's sum of |f|. ``length``: by L. ``sqrt_half_row``: by
            gamma sqrt(i / 2). ``sparsemax``, ``entmax15``: project the scores on the simplex.
        modify: ``negate``: -a. ``recentre``: a minus the row's mean, rows 1 to 3 untouched;
            ``recentre_l1``: then l1. ``zero_sum``: gated zero-sum re-weighting (ZeroS-SM).
        sharpen: ``reweight``: ReLU(i a - o)^p and l1, o = 0 in rows 1 to 3 and 1 after.
            ``elastic_row``: ReLU(a - tau / i). ``elastic_length``: ReLU(a - tau / L).
            ``elastic``: ReLU(a - tau).
        sink: Whether each head has a learned logit that takes part in the denominator alone.
        p: Exponent of the re-weighting, p > 0.
        g: Scale of ``cosine``.
        gamma: Constant of ``sqrt_half_row``.
        tau: Initial (or fixed) elastic offset; a head subtracts it, so +1 removes the mean weight.
        learn_tau: Whether tau is one learned number per head.
        length: L, the sequence length, where a formula contains it.
        window: Keys that ``window`` and ``streaming`` keep.
        sinks: First keys that ``streaming`` keeps.
        max_distance: Distances with a learned bias of their own.
        beyond: Bias of larger distances: ``zero``, that of the ``last``, or ``refuse``.
        source: Paper and equation or table.
        formula: The weights in one line.
        about: One sentence.
    """

    name: str
    phi: str = "exp"
    scale: str = "inverse_sqrt_dim"
    shift: str = "none"
    bias: str = "none"
    mask: str = "causal"
    normalise: str = "l1"
    modify: str = "none"
    sharpen: str = "none"
    sink: bool = False
    p: float = 15.0
    g: float = 10.0
    gamma: float = 1.0
    tau: float = 1.0
    learn_tau: bool = True
    length: int | None = None
    window: int = 256
    sinks: int = 4
    max_distance: int = 512
    beyond: str = "zero"
    source: str = ""
    formula: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            value = getattr(self, field)
            if value not in choices:
                raise ValueError(
                    f"unknown {field} {value!r} of {self.name}; choose from {', '.join(choices)}"
                )
        for field in ("p", "g", "gamma", "length", "window", "sinks", "max_distance"):
            value = getattr(self, field)
            if value is None and field == "length":
                continue
            check_positive(f"{field} of {self.name}", value)
            if field in ("length", "window", "sinks", "max_distance"):
                check_size(f"{field} of {self.name}", value)  # 49.0 is none
        number = isinstance(self.tau, Real) and not isinstance(self.tau, bool)
        if not number or not math.isfinite(self.tau):
            raise ValueError(f"tau of {self.name} must be a finite number, got {self.tau}")
        if self.sink and (self.phi, self.normalise) != ("exp", "l1"):
            raise ValueError(f"sink of {self.name} needs phi exp and normalise l1")
        if self.normalise in ("sparsemax", "entmax15") and self.phi != "exp":
            raise ValueError(f"{self.normalise} of {self.name} replaces phi; leave phi out")
        if self.modify not in ("none", "negate") and self._first_sum != "1":
            raise ValueError(f"{self.modify} of {self.name} needs rows that sum to 1")

    @property
    def reweights(self) -> bool:
        """Whether the variant has the re-weighting stage, which can be scheduled."""
        return self.sharpen == "reweight"

    @property
    def label(self) -> str:
        """The name shown in tables: with its exponent, if it re-weights."""
        return f"{self.name} p={self.p:g}" if self.reweights else self.name

    @property
    def needs_length(self) -> bool:
        """Whether the formula contains the sequence length L."""
        return (
            self.scale == "log_length"
            or self.shift == "minus_log_length"
            or self.normalise == "length"
            or self.sharpen == "elastic_length"
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments a user may set."""
        used = {
            "p": self.reweights,
            "g": self.scale == "cosine",
            "gamma": self.normalise == "sqrt_half_row",
            "tau": self.sharpen.startswith("elastic"),
            "length": self.needs_length,
            "window": self.mask != "causal",
            "sinks": self.mask == "streaming",
            "max_distance": self.bias == "learned",
            "beyond": self.bias == "learned",
        }
        return tuple(name for name, takes in used.items() if takes)

    @property
    def learned(self) -> dict[str, tuple[str, ...]]:
        """Learned parameters by name, with their dimensions: heads and distances."""
        parameters: dict[str, tuple[str, ...]] = {}
        if self.sharpen.startswith("elastic") and self.learn_tau:
            parameters["tau"] = ("head",)
        if self.sink:
            parameters["sink"] = ("head",)
        if self.bias == "learned":
            parameters["bias"] = ("head", "distance")
        return parameters

    def shapes(self, batch: int, n_head: int, length: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of a call with queries [batch, n_head, length, D]."""
        sizes = {"head": n_head, "distance": self.max_distance}
        found = {name: tuple(sizes[d] for d in dims) for name, dims in self.learned.items()}
        if self.gated:
            found["gates"] = (batch, n_head, length, 2)
        return found

    @property
    def directional(self) -> bool:
        """Whether queries and keys count by their directions alone."""
        return self.scale in ("cosine", "log_dim_log_row")

    @property
    def gated(self) -> bool:
        """Whether the weights take two gates per row and head, made from the layer's input."""
        return self.modify == "zero_sum"

    @property
    def row_sum(self) -> str:
        """The sum of a row: ``1``, ``0``, ``0 (rows > 3)``, ``-1``, ``<= 1`` or ``free``.

        A dead row, in which no key survives, sums to 0. An elastic tau below 0 adds to the sum.
        """
        if self.sharpen == "reweight":
            return "1"
        if self.sharpen != "none":
            return "free" if self._first_sum == "free" else "<= 1"
        if self.modify == "negate":
            return "-1" if self._first_sum == "1" else "free"
        if self.modify != "none":
            return "0" if self.modify == "zero_sum" else "0 (rows > 3)"
        return self._first_sum

    @property
    def _first_sum(self) -> str:
        """The sum of a row after ``normalise``."""
        if self.normalise in ("none", "length", "sqrt_half_row") or self.phi in SIGNED_PHIS:
            return "free"
        return "<= 1" if self.sink else "1"

    @property
    def signed(self) -> bool:
        """Whether weights may be negative."""
        return self.sharpen == "none" and (self.phi in SIGNED_PHIS or self.modify != "none")

    @property
    def sparse(self) -> bool:
        """Whether weights inside the mask may be exactly zero."""
        exact = self.normalise in ("sparsemax", "entmax15") or self.sharpen != "none"
        return exact or self.phi in ("relu", "relu2", "relu6")

    def check_complete(self) -> None:
        """Refuse a variant whose formula contains a length that is missing, with a ValueError."""
        if self.needs_length and self.length is None:
            raise ValueError(
                f"{self.name} needs the sequence length: length= in attention_args, the number of "
                "rows of a sequence"
            )

    def check_keys(self, n_keys: int) -> None:
        """Refuse more keys than a table of biases holds, if that is its rule, with a ValueError."""
        if self.bias == "learned" and self.beyond == "refuse" and n_keys > self.max_distance:
            raise ValueError(
                f"{n_keys} keys are more than the max_distance {self.max_distance} of {self.name}; "
                "set beyond to zero or last, or raise max_distance"
            )

    def with_arguments(self, **arguments: Any) -> AttnSpec:
        """Return the variant with some of its arguments changed.

        Raises:
            TypeError: The variant takes no such argument.
            ValueError: A value is out of range.
        """
        for argument, value in arguments.items():
            if argument not in self.arguments:
                takes = ", ".join(self.arguments) or "no arguments"
                raise TypeError(f"{self.name} takes {takes}, not {argument!r}")
            if value is None:
                raise ValueError(f"{argument} of {self.name} must be a number, got None")
        plain = {name: _plain(value) for name, value in arguments.items()}
        return dataclasses.replace(self, **plain)

    def seen(self, rows: Any) -> Any:
        """Return how many keys rows see: what a formula counts by the number i of a row.

        Args:
            rows: Numbers of rows, from 1, a tensor of any shape.
        """
        if self.mask == "causal":
            return rows
        return rows.clamp(max=self.window + (self.sinks if self.mask == "streaming" else 0))

    def within(self, window: int, sinks: int) -> AttnSpec:
        """Return the variant with its keys limited to the last ``window`` and the first ``sinks``.

        A row is computed as if the keys that it sees were all there are (:meth:`seen`).

        Raises:
            ValueError: It has a window of its own, or a number is out of range.
        """
        if self.mask != "causal":
            raise ValueError(
                f"{self.name} has a window of its own: set attention_args.window, and no window"
            )
        return dataclasses.replace(self, mask="streaming", window=window, sinks=sinks)

    def without_reweighting(self) -> AttnSpec:
        """Return the variant's first stage alone (LSSAR becomes LSSA)."""
        return dataclasses.replace(self, sharpen="none")


def _plain(value: Any) -> Any:
    """Return a number, of numpy for example, as an int or a float of Python."""
    if isinstance(value, Real) and not isinstance(value, bool | int | float):
        return int(value) if isinstance(value, Integral) else float(value)
    return value
