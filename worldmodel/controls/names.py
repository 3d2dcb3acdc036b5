"""Names, in results, of controls that continue orbits without a model; they need no torch."""

TRUE, IN_BINS = "true orbit", "true orbit in bins"
FIT, CUBIC = "orbit fit", "cubic extrapolation"
QUADRATIC, STRAIGHT = "quadratic extrapolation", "straight on"
BELIEVER = "orbit fit by the training's law"
FILTER = "linear autoregression"
TABLE = "nearest training orbit"
PIECES = "nearest pieces of orbits"
