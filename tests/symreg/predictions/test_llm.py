"""On small files in the format of the public repository; the real ones are not needed."""

import json
import shutil

import numpy as np
import pytest

from orbits.runs import artefact
from symreg import predictions
from symreg.exponents import fit_exponents
from symreg.predictions.llm import PHYSICS, convert

G = 39.4784176044
GIVEN = np.array([3, 7, 21, 30, 31, 100, 150, 198, 207, 224])
ASKED = [step for step in range(450) if step not in GIVEN]


@pytest.fixture
def clone(tmp_path):
    """A repository with three planets and two models: o1 says F = 2 m1 / r, o2 says little."""
    folder = tmp_path / "clone"
    physics = folder / PHYSICS
    for name in ("llm-prompts", "llm-predictions/o1", "llm-predictions/o2"):
        (physics / name).mkdir(parents=True)
    for planet in range(3):
        state, force = orbit(planet)
        prompts = physics / "llm-prompts"
        np.save(prompts / f"true_state_{planet}.npy", state.astype(np.float32))
        shape = (450, 1) if planet < 2 else (450,)
        np.save(prompts / f"true_force_{planet}.npy", force.reshape(shape).astype(np.float32))
        np.save(prompts / f"unmasked_inds_{planet}.npy", GIVEN)
        answer = dict(enumerate((2 * state[:, 4] / np.hypot(*state[:, :2].T)).tolist()))
        answer_of(folder, "o1", planet).write_text(json.dumps(answer))
    answer_of(folder, "o2", 0).write_text("null")
    answer_of(folder, "o2", 1).write_text("null")
    words = {"0": 0, "1": "3e-05", "2": "about 3e-05", "4": None, "5": True, "6": [1], "8": -1.5}
    words |= {"9": float("nan"), "10": float("inf"), "450": 7.0, "x": 7.0, "11": 10**400}
    words |= {str(step): 1e-5 for step in (7, *range(400, 450))}
    answer_of(folder, "o2", 2).write_text(json.dumps(words))
    return folder


def orbit(planet):
    """An ellipse about the star, and Newton's force along it; float32 in the repository."""
    angle = np.linspace(0, 2 + planet, 450)
    r = (5 + 5 * planet) / (1 + 0.3 * np.cos(angle))
    m1, m2 = np.full(450, 1e-3 * (planet + 1)), np.full(450, 0.01 * (planet + 2) ** 2)
    position = (r * np.cos(angle), r * np.sin(angle))
    state = np.column_stack([*position, 0 * r, 0 * r, m1, m2])
    return state, G * m1 * m2 / r**2


def answer_of(folder, model, planet):
    return folder / PHYSICS / "llm-predictions" / model / f"{planet}.json"


def prompt_of(folder, name):
    return folder / PHYSICS / "llm-prompts" / name


def test_each_model_is_one_file_with_its_planets_as_sequences(clone, tmp_path):
    out = tmp_path / "out"
    assert convert(clone, out) == [out / "o1.npz", out / "o2.npz"]
    data = predictions.read(out / "o1.npz")
    assert data.row == {
        "model": "o1",
        "protocol": "Vafa et al. in context",
        "arm": "in context",
        "labels": "10 per sequence",
        "seed": 0,
    }
    np.testing.assert_array_equal(data.sequence_id, np.repeat([0, 1, 2], 440))
    np.testing.assert_array_equal(data.step, ASKED * 3)
    true = [orbit(planet) for planet in range(3)]
    state = np.concatenate([state[ASKED] for state, _ in true])
    r, m1, m2 = data.X.T
    np.testing.assert_allclose(r, np.hypot(state[:, 0], state[:, 1]), rtol=1e-6)
    np.testing.assert_allclose(m1, state[:, 4], rtol=1e-6)
    np.testing.assert_allclose(m2, state[:, 5], rtol=1e-6)
    np.testing.assert_allclose(data.vectors["position"], state[:, :2], rtol=1e-6)
    np.testing.assert_allclose(data.force, np.concatenate([f[ASKED] for _, f in true]), rtol=1e-6)
    np.testing.assert_allclose(data.force_predicted, 2 * m1 / r, rtol=1e-6)
    fitted = fit_exponents(data.X, data.force_predicted, data.sequence_id, n_boot=2).exponents
    assert [round(fitted[name][0], 4) for name in ("r", "m1", "m2")] == [-1, 1, 0]


def test_what_is_no_number_is_a_dropped_point_and_what_was_given_is_left_out(clone, tmp_path):
    _, path = convert(clone / PHYSICS, tmp_path)
    data = predictions.read(path)
    np.testing.assert_array_equal(data.step, ASKED)
    expected = np.full(450, np.nan)
    expected[[0, 1, 8, 10]] = 0, 3e-5, -1.5, np.inf
    expected[400:] = 1e-5
    np.testing.assert_array_equal(data.force_predicted, expected[ASKED])
    assert data.dropped == pytest.approx(1 - 51 / 440)
    config = data.manifest["config"]
    assert config["planets"] == [0, 1, 2]
    assert config["unparsed_planets"] == [0, 1]
    assert config["given_timesteps_left_out"] == 10
    assert config["asked_timesteps"] == 440
    assert config["timesteps_without_a_number"] == 440 - 54


def test_the_manifest_names_every_file_that_was_read(clone, tmp_path):
    _, path = convert(clone, tmp_path)
    inputs = predictions.read(path).manifest["inputs"]
    assert set(inputs) == {
        "o2/0.json", "o2/1.json", "o2/2.json",
        "true_state_2.npy", "true_force_2.npy", "unmasked_inds_2.npy",
    }  # fmt: skip
    state = prompt_of(clone, "true_state_2.npy")
    assert inputs["true_state_2.npy"] == artefact.sha256(state)


def test_nothing_is_overwritten_or_half_done(clone, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "o2.npz").write_text("precious")
    with pytest.raises(FileExistsError, match=r"o2\.npz exists"):
        convert(clone, out)
    assert [path.name for path in out.iterdir()] == ["o2.npz"]
    assert (out / "o2.npz").read_text() == "precious"


def remove(name):
    return lambda clone: shutil.rmtree(clone / PHYSICS / name)


def saved(name, array):
    return lambda clone: np.save(prompt_of(clone, name), array)


def said(text):
    return lambda clone: answer_of(clone, "o1", 1).write_text(text)


def only_null(clone):
    answer_of(clone, "o2", 2).write_text("null")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove("llm-predictions"), "no folder llm-predictions; git clone https://github.com/"),
        (remove("llm-prompts"), "no folder llm-prompts; git clone https://github.com/"),
        (
            lambda clone: [remove(f"llm-predictions/{model}")(clone) for model in ("o1", "o2")],
            "no folder of a model; git clone https://github.com/",
        ),
        (remove(""), r"clone: no folder llm-predictions; git clone https://github.com/"),
        (
            lambda clone: prompt_of(clone, "true_force_1.npy").unlink(),
            r"true_force_1\.npy: missing; git clone https://github.com/",
        ),
        (only_null, "o2: none of 3 answers could be parsed"),
        (said("{"), r"o1.1\.json: not JSON"),
        (said("[" * 100_000), r"1\.json: not JSON"),
        (said("[1, 2]"), r"1\.json: expected an object"),
        (saved("true_state_0.npy", np.ones((450, 5))), r"float64 of shape \(450, 5\), expected"),
        (saved("true_state_0.npy", np.ones((449, 6))), r"expected \(450, 6\)"),
        (saved("true_state_0.npy", np.zeros((450, 6))), "not Newton's force at true_state_0"),
        (saved("true_state_0.npy", np.full((450, 6), None)), r"true_state_0\.npy: not a \.npy"),
        (saved("true_force_0.npy", np.ones(450)), "not Newton's force"),
        (saved("true_force_0.npy", np.ones((450, 2))), r"expected \(450, 1\)"),
        (saved("true_force_0.npy", np.full(450, "1")), "<U1 of shape"),
        (saved("unmasked_inds_0.npy", np.arange(9)), r"shape \(9,\), expected \(10,\)"),
        (saved("unmasked_inds_0.npy", np.zeros(10)), "expected 10 different timesteps"),
        (saved("unmasked_inds_0.npy", np.arange(10) + 441), "timesteps from 0 to 449"),
        (
            lambda clone: prompt_of(clone, "unmasked_inds_0.npy").write_bytes(b""),
            r"unmasked_inds_0\.npy: not a \.npy array",
        ),
    ],
)
def test_a_missing_or_damaged_piece_is_one_line_and_nothing_is_written(
    clone, tmp_path, damage, message
):
    damage(clone)
    with pytest.raises(ValueError, match=message) as caught:
        convert(clone, tmp_path / "out")
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "out").exists()
