"""Names of arms, controls and settings, as results have them."""

MIXTURE, TOLD, ALONE, UNTRAINED = "mixture", "told the law", "one world", "untrained"
"""Arms of models: trained on all laws; the same, told each law; trained in one world; untrained."""
CEILING = "orbit fits over the laws"
TABLE, FILTER, PLACES = "table of training orbits", "linear autoregression", "read-out of places"
CONTROLS = (TABLE, FILTER, PLACES)
HALF = "half"
"""The time step of the leak test, under the setting ``time step``."""
TRAINED, HELD_OUT = "trained", "held-out"
"""Endings of metrics: over test worlds whose law lies in the training, and over the others."""
