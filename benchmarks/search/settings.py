"""Settings of the law rates.

Apart from the study: the types of settings are looked up with all that their module may import.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbits import laws

LAWS = ("newton", "harmonic", "yukawa", "mond")
NOISE = (0.0, 0.01, 0.05, 0.2)


@dataclass(frozen=True)
class LawRatesSettings:
    """Laws, noises, engines and seeds of one run.

    Attributes:
        law: Names of laws whose forces are searched.
        noise: Standard deviations of the relative noise.
        engine: Symbolic-regression engines, or ``auto``.
        first_seed: Where the seeds start.
        seeds: Number of seeds.
        wrong_seeds: Number of them that the wrong laws have too.
    """

    law: tuple[str, ...] = LAWS
    noise: tuple[float, ...] = NOISE
    engine: tuple[str, ...] = ("operon", "operon_vafa")
    first_seed: int = 100
    seeds: int = 20
    wrong_seeds: int = 5

    def __post_init__(self) -> None:
        for name in ("law", "noise", "engine"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        for law in self.law:
            laws.get(law)
        for noise in self.noise:
            if not 0 <= noise <= 1:
                raise ValueError(f"noise must be between 0 and 1, got {noise:g}")
        for name, lowest in (("first_seed", 0), ("seeds", 1), ("wrong_seeds", 0)):
            if (value := getattr(self, name)) < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")
