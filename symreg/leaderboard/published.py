"""Published results, as printed: shown beside measured rows and never mixed with them."""

from __future__ import annotations

from dataclasses import dataclass

_LSSAR = 'Table 3 of "Softplus Attention with Re-weighting" (LSSAR)'
_VAFA = "Vafa et al. 2025 (arXiv:2507.06952), as quoted in section 3.4 of the LSSAR paper"


@dataclass(frozen=True)
class Published:
    """A result that was printed elsewhere, under the ``paper`` protocol and law Newton.

    Attributes:
        model: The model, as named there.
        formula: The recovered law, up to a constant where none was printed.
        constant: The printed constant; None where there is none.
        source: Place where the result was printed.
    """

    model: str
    formula: str
    constant: float | None
    source: str


ROWS = (
    Published("Ground truth", "m1*m2/r**2", 39.48, _LSSAR),
    Published("Oracle (k-NN)", "m1/r**2", 25.85, _LSSAR),
    Published("GPT, LSSAR", "m1/r**2", 27.02, _LSSAR),
    Published("GPT, softmax", "(sin(1/sin(r - 0.24)) + 1.45)/(1/r + m2)", None, _LSSAR),
    # The source names o3, Claude 4 Sonnet and Gemini 2.5 Pro, but not which of them gave which.
    Published("A language model in context", "m1", None, _VAFA),
    Published("A language model in context", "1/(m2 - 0.50)", None, _VAFA),
)
"""Published rows, printed without an interval or a number of trainings."""
