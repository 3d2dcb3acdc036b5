"""Settings of the law rates.

Apart from the study: the types of settings are looked up with all that their module may import.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.search import formulas
from orbits import laws
from orbits.runs.settings import check_at_least

LAWS = ("newton", "harmonic", "yukawa", "mond")
NOISE = (0.0, 0.01, 0.05, 0.2)


@dataclass(frozen=True)
class LawRatesSettings:
    """Laws, formulas, noises, engines and seeds of one run.

    Attributes:
        law: Names of laws whose forces are searched.
        formula: NewtonBench's formulas that are searched: ``all``, a version of each (``v0``), a
            domain (``gravity``) or one (``gravity_easy_0``).
        noise: Standard deviations of the relative noise.
        engine: Symbolic-regression engines, or ``auto``.
        first_seed: The first seed.
        seeds: Number of seeds.
        wrong_seeds: Number of these seeds, the first ones, in which wrong laws are searched too.
    """

    law: tuple[str, ...] = LAWS
    formula: tuple[str, ...] = ()
    noise: tuple[float, ...] = NOISE
    engine: tuple[str, ...] = ("operon", "operon_vafa")
    first_seed: int = 100
    seeds: int = 20
    wrong_seeds: int = 5

    def __post_init__(self) -> None:
        for name in ("law", "noise", "engine"):
            if not getattr(self, name) and not (name == "law" and self.formula):
                raise ValueError(f"{name} must not be empty")
        formulas.asked(self.formula)
        for law in self.law:
            laws.get(law)
        for noise in self.noise:
            if not 0 <= noise <= 1:
                raise ValueError(f"noise must be between 0 and 1, got {noise:g}")
        check_at_least(self, {"first_seed": 0, "seeds": 1, "wrong_seeds": 0})
