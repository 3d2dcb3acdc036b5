"""What a quadratic attention variant IS, as plain data, and the catalogue of variants.

Row i counts the keys it may see (i = 1 for the first token). With scores s_ij:

1. ``scale``      s = q k^T / sqrt(d), or with l2-normalised q, k and log(d) log(i) as the scale;
2. ``phi``        f = phi(s) under the causal mask;
3. l1             a_ij = f_ij / sum_j f_ij;
4. ``reweight``   x = ReLU(i a - o)^p, o = 0 in rows 1 to 3 and 1 after, then l1 again.

A new variant is one line in ``CATALOGUE``.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

PHIS = ("exp", "softplus")
SCALES = ("inverse_sqrt_dim", "log_dim_log_row")


@dataclass(frozen=True)
class AttnSpec:
    """One quadratic attention variant.

    Attributes:
        name: The name used in the CLI, configs, result rows and test ids.
        phi: The positive function of the scores.
        scale: ``inverse_sqrt_dim``: 1 / sqrt(d). ``log_dim_log_row``: log(d) log(i) on
            l2-normalised queries and keys (natural logarithms, d = head dimension).
        p: Exponent of the re-weighting, or None for no re-weighting.
        source: Paper and equation.
        about: One sentence.
    """

    name: str
    phi: str = "exp"
    scale: str = "inverse_sqrt_dim"
    p: float | None = None
    source: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        for value, choices, what in ((self.phi, PHIS, "phi"), (self.scale, SCALES, "scale")):
            if value not in choices:
                raise ValueError(f"unknown {what} {value!r}; choose from {', '.join(choices)}")
        if self.p is not None and not self.p > 0:
            raise ValueError(f"p must be positive, got {self.p}")

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments a user may set."""
        return () if self.p is None else ("p",)

    def with_arguments(self, **arguments: Any) -> AttnSpec:
        """Return the variant with some of its arguments changed.

        Raises:
            TypeError: The variant takes no such argument.
            ValueError: A value is out of range.
        """
        for argument in arguments:
            if argument not in self.arguments:
                takes = ", ".join(self.arguments) or "no arguments"
                raise TypeError(f"{self.name} takes {takes}, not {argument!r}")
            if arguments[argument] is None:
                raise ValueError(f"{argument} of {self.name} must be a number, got None")
        return dataclasses.replace(self, **arguments)

    def without_reweighting(self) -> AttnSpec:
        """Return the variant's first stage alone (LSSAR becomes LSSA)."""
        return dataclasses.replace(self, p=None)


_LSSAR = "LSSAR (2026)"
CATALOGUE = (
    AttnSpec("softmax", source="Vaswani et al. 2017, Eq. 1", about="Scaled dot-product attention."),
    AttnSpec(
        "lssa",
        phi="softplus",
        scale="log_dim_log_row",
        source=f"{_LSSAR}, Eq. 4",
        about="Softplus of length-scaled cosine scores, l1-normalised.",
    ),
    AttnSpec(
        "lssar",
        phi="softplus",
        scale="log_dim_log_row",
        p=15.0,
        source=f"{_LSSAR}, Eq. 4 and 5, Algorithm 1",
        about="LSSA, then re-weighted: keys below the row's mean weight vanish, the rest sharpen.",
    ),
    AttnSpec(
        "softmax_reweighted",
        p=15.0,
        source=f"{_LSSAR}, Eq. 5 on Eq. 1, Table 1",
        about="Softmax, then the re-weighting of LSSAR.",
    ),
)


def names() -> tuple[str, ...]:
    """Return the names of all variants."""
    return tuple(spec.name for spec in CATALOGUE)


def get(name: str, **arguments: Any) -> AttnSpec:
    """Return the variant called ``name`` with its arguments set.

    Raises:
        ValueError: There is no such variant, or an argument is out of range.
        TypeError: The variant takes no such argument.
    """
    for spec in CATALOGUE:
        if spec.name == name:
            return spec.with_arguments(**arguments)
    near = difflib.get_close_matches(str(name), names(), n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"unknown attention {name!r}{hint}; choose from {', '.join(names())}")
