"""Names of prompts, as results and reports have them; they need no torch."""

from orbits import laws

WORLDS = ("power_1_5", "newton", "power_2_5")
"""Laws of the prompts, beside that of the training and that of the evaluation."""
ROLLOUT, ONE_STEP = "rollout", "one step"
STEPS_OF, TOKEN_OF, SHIFT = "time steps of", "token of", "shift"
"""Entries of prompts with time steps of another world, with its token alone, or with a shift."""
DRAWS, GIVEN = "draws", "given"
"""Entries of the number of rows drawn from a model's distribution, and of what is given to them."""


def in_words(law: str) -> str:
    """Return a law of m1 m2 as its power of the distance, and any other by its name."""
    exponents = laws.get(law).exponents
    if exponents is None or (exponents["m1"], exponents["m2"]) != (1, 1):
        return law
    return f"r^{exponents['r']:g}"
