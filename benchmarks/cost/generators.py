"""The cells of the study ``orbit_speed``: generators of the same orbit sequences.

All make sequences of the protocol ``fixed``, population ``pretrain``: 1000 rows, 1 to 10 planets.
A peer solves the orbits; draws, frame, bins and interleaving around it are our numpy path.
"""

from __future__ import annotations

import importlib.metadata
import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from scipy.integrate import solve_ivp

from benchmarks.cost.orbit_speed import MEMORY, GeneratorSettings, OrbitSpeed
from orbits import kepler, protocols
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.runs.cell import Cell, Outcome, Skipped
from orbits.runs.choices import check_choice
from orbits.runs.result import Case
from worldmodel.data.device import DeviceOrbits

Array = npt.NDArray[np.float64]
Orbit = Callable[..., tuple[Array, Array | None]]
Generate = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.uint16]]

PROTOCOL = protocols.get("fixed")
COMPARED = 6  # trajectories whose tokens are compared before the clock runs


class Generator(NamedTuple):
    """A generator of the sequences.

    Attributes:
        what: Description of its work, and of what it leaves out.
        package: The distribution it needs.
        load: Imports what it needs and returns the function to be timed.
        batch: Trajectories per call.
        clock: Returns the seconds that count.
    """

    what: str
    package: str
    load: Callable[[], Generate]
    batch: int
    clock: Callable[[], float] = time.process_time


def cells(study: OrbitSpeed, settings: GeneratorSettings) -> Iterator[Cell]:
    """Yield a cell per generator, and one for the speed of memory."""
    for name in settings.generators:
        check_choice("generator", name, GENERATORS)
        case = Case(study.name, "timing", name, law="newton", protocol="fixed")
        yield Cell(measure, case, {"name": name, "seconds": settings.seconds})
    yield Cell(write_memory, Case(study.name, "timing", MEMORY))


def measure(name: str, seconds: float) -> Outcome:
    """Time a generator and the compiled one in turns, under the same load of the machine.

    Time is CPU time of one core, on a GPU the time that passes; compiling and importing are not
    counted.
    """
    generator = GENERATORS[name]
    try:
        version = importlib.metadata.version(generator.package)
        generate = generator.load()
    except ImportError:
        raise Skipped(f"{generator.package} is not installed") from None
    reference = PROTOCOL.tokens_batch(0, "train", np.arange(COMPARED))
    differing = np.sum(generate(np.arange(COMPARED)) != reference)
    timed = Stopwatch(generator, generate)
    compiled = GENERATORS["compiled"]
    ours = timed if name == "compiled" else Stopwatch(compiled, compiled.load())
    while (next_one := min(timed, ours, key=lambda each: each.spent)).spent < seconds:
        next_one.run_batch()
    return Outcome(
        metrics={
            "trajectories_per_s": timed.rate,
            "points_per_s": timed.rate * PROTOCOL.n_points,
            "compiled_is": ours.rate / timed.rate,
            "differing_tokens": int(differing),
        },
        details={
            "what": generator.what,
            "package": f"{generator.package} {version}",
            "batch_rates": [min(timed.rates), statistics.median(timed.rates), max(timed.rates)],
            "trajectories": timed.done,
            "cpu_seconds": timed.spent,
            "compared_tokens": int(reference.size),
        },
        manifest={"protocol": PROTOCOL.config()},
    )


class Stopwatch:
    """Accumulated time of a generator.

    Attributes:
        done: Trajectories.
        spent: Seconds.
        rates: Trajectories per second of each batch.
    """

    def __init__(self, generator: Generator, generate: Generate) -> None:
        self.generator, self.generate = generator, generate
        self.done, self.spent = 0, 0.0
        self.rates: list[float] = []

    @property
    def rate(self) -> float:
        """Trajectories per second."""
        return self.done / self.spent

    def run_batch(self) -> None:
        """Time the next batch."""
        indices = np.arange(self.done, self.done + self.generator.batch)
        start = self.generator.clock()
        self.generate(indices)
        elapsed = self.generator.clock() - start
        self.rates.append(len(indices) / elapsed)
        self.done, self.spent = self.done + len(indices), self.spent + elapsed


def write_memory() -> Outcome:
    """Measure the bytes per CPU-second of overwriting memory, the bound of any generator."""
    memory = np.ones(2**28, np.uint8)
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        memory.fill(7)
        best = min(best, time.process_time() - start)
    return Outcome(metrics={"bytes_per_s": memory.nbytes / best})


def _compiled() -> Generate:
    return lambda indices: PROTOCOL.tokens_batch(0, "train", indices)


def _numpy() -> Generate:
    return lambda indices: PROTOCOL.batch(0, "train", indices)["tokens"]


def _gpu() -> Generate:
    if not torch.cuda.is_available():
        raise Skipped("needs a CUDA device")
    orbits = DeviceOrbits(PROTOCOL, "pretrain", "train", 0, "cuda")

    def generate(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
        made = orbits.batch(torch.as_tensor(indices, device="cuda"))["tokens"]
        return made.cpu().numpy().astype(np.uint16)

    return generate


def _around(orbit: Orbit) -> Generate:
    """Return the numpy path with another ``kepler.relative_orbit``."""

    def generate(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
        with mock.patch.object(kepler, "relative_orbit", orbit):
            return PROTOCOL.batch(0, "train", indices)["tokens"]

    return generate


def _kepler_py() -> Generate:
    import kepler as kepler_py

    def orbit(a, e, periapsis, mean_anomaly, total_mass, times):
        a, e, periapsis, mean_anomaly, total_mass = (
            np.asarray(x)[:, None] for x in (a, e, periapsis, mean_anomaly, total_mass)
        )
        motion = np.sqrt(GRAVITATIONAL_CONSTANT * total_mass / a**3)
        mean = np.remainder(mean_anomaly + motion * times, 2 * np.pi)
        _, cosine, sine = kepler_py.kepler(mean, np.broadcast_to(e, mean.shape))
        distance = a * (1 - e**2) / (1 + e * cosine)
        x, y, c, s = distance * cosine, distance * sine, np.cos(periapsis), np.sin(periapsis)
        return np.stack([c * x - s * y, s * x + c * y], axis=-1), None

    return _around(orbit)


def _rebound() -> Generate:
    import rebound

    def orbit(a, e, periapsis, mean_anomaly, total_mass, times):
        position = np.empty((*np.shape(times), 2))
        for i in range(len(a)):
            simulation = rebound.Simulation()
            simulation.G = GRAVITATIONAL_CONSTANT
            simulation.integrator = "whfast"
            simulation.add(m=total_mass[i])
            simulation.add(m=0.0, a=a[i], e=e[i], omega=periapsis[i], M=mean_anomaly[i])
            star, planet = simulation.particles
            for j in range(times.shape[1]):
                if j > 0:
                    simulation.dt = times[i, 1]
                    simulation.steps(1)
                position[i, j] = planet.x - star.x, planet.y - star.y
        return position, None

    return _around(orbit)


def _scipy() -> Generate:
    closed_form = kepler.relative_orbit

    def pull(_, y, mu):
        distance = np.sqrt(y[0] * y[0] + y[1] * y[1])
        strength = -mu / (distance * distance * distance)
        return [y[2], y[3], strength * y[0], strength * y[1]]

    def orbit(a, e, periapsis, mean_anomaly, total_mass, times):
        start = closed_form(a, e, periapsis, mean_anomaly, total_mass, times[:, :1])
        states = np.concatenate([part[:, 0] for part in start], axis=1)
        position = np.repeat(states[:, None, :2], times.shape[1], axis=1)
        for i in range(len(a)):
            if times.shape[1] > 1:
                position[i] = (
                    solve_ivp(
                        pull,
                        (0.0, times[i, -1]),
                        states[i],
                        method="DOP853",
                        t_eval=times[i],
                        args=(GRAVITATIONAL_CONSTANT * total_mass[i],),
                        rtol=1e-11,
                        atol=1e-12,
                    )
                    .y[:2]
                    .T
                )
        return position, None

    return _around(orbit)


GENERATORS = {
    "compiled": Generator(
        "Protocol.tokens_batch: draws, orbits, bins and tokens in numba, strict IEEE arithmetic",
        "orrery",
        _compiled,
        2000,
    ),
    "numpy": Generator(
        "Protocol.batch: the same in vectorised numpy; also keeps coordinates, computes velocities",
        "orrery",
        _numpy,
        500,
    ),
    "gpu": Generator(
        "DeviceOrbits: the same in torch on a CUDA device, float64, with the copy to the host",
        "orrery",
        _gpu,
        2000,
        time.perf_counter,
    ),
    "kepler.py": Generator(
        "the numpy path, Kepler's equation by kepler.py's vectorised C solver, libm cos and sin",
        "kepler.py",
        _kepler_py,
        500,
    ),
    "rebound": Generator(
        "the numpy path, each planet a WHFast simulation stepped from Python at the time step",
        "rebound",
        _rebound,
        20,
    ),
    "scipy": Generator(
        "the numpy path, each planet integrated by solve_ivp DOP853 at rtol 1e-11, dense output",
        "scipy",
        _scipy,
        5,
    ),
}
