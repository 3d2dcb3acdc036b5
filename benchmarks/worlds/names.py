"""Names of arms, controls and settings, as results have them."""

from worldmodel.controls.names import PIECES

NEUTRAL, TELLING = "neutral_step", "identifiable"
"""Protocols whose time step tells nothing of the law, and tells it."""
MIXTURE, TOLD, ALONE, UNTRAINED = "mixture", "told the law", "one world", "untrained"
"""Arms of models: trained on all laws; the same, told each law; trained in one world; untrained."""
WITH_FAMILIES = "mixture with families"
"""The arm of models that are trained on laws of other families, too."""
TABLE_WITH_FAMILIES = "table of training orbits, families too"
EXCHANGE = "exchange"
STEPS = "single steps"
FAMILY = "family"
"""The kind of results in worlds of another family, and the name of that family in a setting."""
CEILING = "orbit fits over the laws"
TABLE, FILTER, PLACES = "table of training orbits", "linear autoregression", "read-out of places"
NEAREST_MEAN = "mean of nearest training orbits"
"""The control that remembers as many orbits as a training has, and takes the mean of several."""
MEMORIES = (TABLE, NEAREST_MEAN, PIECES)
"""Controls that paste what they remember of training orbits, and know no law."""
CONTROLS = (*MEMORIES, FILTER, PLACES)
HALF = "half"
"""The time step of the leak test, under the setting ``time step``."""
TRAINED, HELD_OUT = "trained", "held-out"
"""Endings of metrics: over test worlds whose law lies in the training, and over the others."""
