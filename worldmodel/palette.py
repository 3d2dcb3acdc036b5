"""The colours and markers of every figure of models."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00")
"""Of series, told apart by the colour-blind: blue, vermilion, green, sky blue, purple, orange.

Okabe & Ito (2008), Color Universal Design, https://jfly.uni-koeln.de/color, without the yellow,
which is too light for a line on white, and the black, which is that of the truth.
"""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Of series, so that no colour is the only sign; one more, so that no pair soon comes again."""
CONTROL = "#5c6670"
"""Grey, of what no model answered."""
CONTROL_MARKERS = ("x", "+", "*", "1")
TRUTH, SUN = "#222222", COLOURS[5]
