import os
import platform
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from orbits import arithmetic, binaries, inverse_cdf, kepler, kernel, protocols, systems
from orbits.protocol import SAMPLERS
from orbits.tokens import bin_number
from tests.orbits.worlds import TIERED, WORLDS

pytestmark = pytest.mark.heavy  # the first test of a process compiles the kernel
every_world = pytest.mark.parametrize(("name", "population"), WORLDS)


@pytest.mark.parametrize(("name", "population"), TIERED)
def test_tokens_equal_those_of_the_numpy_path(name, population):
    protocol, indices = protocols.get(name), np.r_[0:150, 2**20]
    compiled = protocol.tokens_batch(3, "val", indices, population)
    assert compiled.dtype == np.uint16
    batch = protocol.batch(3, "val", indices, population)
    np.testing.assert_array_equal(compiled, batch["tokens"])


@pytest.mark.parametrize(
    ("n_points", "n_bins"),
    [(2, 65_000), (3, 2), (7, 100), (11, 65_000), (48, 2), (60, 100), (1001, 2), (1001, 65_000)],
)
def test_tokens_are_the_same_at_every_length_and_resolution(n_points, n_bins):
    for name in ("fixed", "identifiable"):
        protocol = protocols.get(name, {"n_points": n_points, "n_bins": n_bins})
        compiled = protocol.tokens_batch(1, "test", np.arange(40))
        np.testing.assert_array_equal(compiled, protocol.batch(1, "test", np.arange(40))["tokens"])


@pytest.mark.parametrize("name", sorted(kernel.SAMPLERS))
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_samplers_equal_their_namesakes(name, seed):
    dts = protocols.get("fixed" if name == "exoplanets" else name).dts
    address = (seed, 4, np.r_[0:500, 2**40], dts, 10 if name == "exoplanets" else 1)
    compiled, plain = kernel.SAMPLERS[name](*address), SAMPLERS[name](*address)
    for field in systems.Systems._fields:
        one, other = getattr(compiled, field), getattr(plain, field)
        assert one.dtype == other.dtype
        if one.ndim == 2 and one.shape[1] != 2:
            there = np.arange(one.shape[1]) < plain.n_planets[:, None]
            one, other = one[there], other[there]
        assert one.tobytes() == other.tobytes(), field


def test_three_thousand_trajectories_are_the_same_in_any_shards():
    protocol = protocols.get("fixed", {"n_points": 99})
    whole = protocol.tokens_batch(0, "train", np.arange(3000))
    shards = [protocol.tokens_batch(0, "train", np.arange(*ends)) for ends in
              ((0, 1), (1, 999), (999, 3000))]  # fmt: skip
    assert np.concatenate(shards).tobytes() == whole.tobytes()


@every_world
def test_an_empty_batch_and_bad_input(name, population):
    protocol = protocols.get(name)
    assert protocol.tokens_batch(0, "train", [], population).shape == (0, 1 + protocol.n_points, 2)
    for call in (
        lambda: protocol.tokens_batch(0, "train", [3, -2], population),
        lambda: protocol.tokens_batch(-2, "train", [3], population),
        lambda: protocol.tokens_batch(2**64, "train", [3], population),
    ):
        with pytest.raises(ValueError, match="must"):
            call()


RNG = np.random.default_rng(0)
TABLE = inverse_cdf.load()
N = 5000


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (arithmetic.exp, [RNG.uniform(-30, 30, N)]),
        (arithmetic.cos_sin, [RNG.uniform(-20, 20, N)]),
        (arithmetic.cbrt_estimate, [10.0 ** RNG.uniform(-30, 30, N)]),
        (kepler.solve, [RNG.uniform(0, np.pi, N), RNG.uniform(0, 1, N)]),
        (kepler.anomaly_cos_sin, [RNG.uniform(-2000, 2000, N), RNG.uniform(0, 1, N)]),
        (kepler.frequency, [RNG.uniform(0.3, 32, N), RNG.uniform(0.1, 5, N)]),
        (systems.star_mass, [RNG.uniform(0, 1, N)]),
        (systems.exoplanet, list(RNG.uniform(0, 1, (3, N)))),
        (binaries.binary, list(RNG.uniform(0, 1, (4, N)))),
        (bin_number, [RNG.normal(0, 40, N), *np.tile([[-50.0], [70.0], [6999.0]], N)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_compiled_scalars_have_the_bits_of_the_arrays(function, arguments):
    given = (TABLE,) if function in (systems.star_mass, systems.exoplanet) else ()

    @numba.njit(error_model="numpy")
    def one(*values):
        return function(*values)

    rows = [one(*given, *(float(x) for x in row)) for row in zip(*arguments, strict=True)]
    compiled = np.array(rows).reshape(N, -1).T
    plain = np.reshape(function(*given, *arguments), (-1, N))
    assert compiled.tobytes() == plain.astype(np.float64).tobytes()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
@pytest.mark.parametrize("loop", [kernel._planet_bins, kernel._two_body_bins])
def test_the_loop_over_time_is_vector_code_without_fused_operations(loop):
    protocols.get("fixed").tokens_batch(0, "train", np.arange(20))
    assembly = "".join(loop.inspect_asm().values())
    assert "divpd" in assembly  # divides several numbers at once
    assert "sqrtpd" in assembly
    assert "fmadd" not in assembly
    assert "fmsub" not in assembly


@pytest.mark.full
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
def test_tokens_are_the_same_on_the_oldest_processor():
    code = (
        "import hashlib; from orbits import protocols; p = protocols.get('fixed');"
        "made = p.tokens_batch(0, 'train', range(200)), p.batch(0, 'train', range(200))['tokens'];"
        "print(*(hashlib.sha256(tokens.tobytes()).hexdigest() for tokens in made))"
    )
    oldest = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3",
    }
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for settings in ({}, oldest)
    ]
    assert len({sha for pair in found for sha in pair}) == 1
