"""The cells of implied: what is measured of continuations, and a whole run at a tiny size."""

import shutil

import numpy as np
import pytest
from PIL import Image

from benchmarks.__main__ import main
from benchmarks.implied.cells import measured
from orbits import protocols
from tests.benchmarks.runs import finished
from worldmodel.controls.names import BELIEVER
from worldmodel.probes.implied import references
from worldmodel.probes.implied.asked import own_prompts

PROTOCOL = protocols.get("identifiable")
FLAGS = ("--worlds", "newton,softened", "--prompts", "")


@pytest.mark.full
def test_a_law_that_is_no_power_has_one_exponent_near_and_another_far():
    found = {}
    for law in ("newton", "softened"):
        prompts = own_prompts(PROTOCOL, law, 0, 80)
        found[law] = measured(prompts, prompts.test.batch["coordinates"])
    for name in ("exponent_within", "exponent_near", "exponent_far"):
        assert found["newton"][name].value == pytest.approx(-2, abs=0.01)
    assert found["softened"]["exponent_near"].low > found["softened"]["exponent_far"].high


def test_the_distance_from_the_own_laws_orbit_is_that_at_the_end():
    prompts = own_prompts(PROTOCOL, "newton", 0, 20)
    true = prompts.test.batch["coordinates"]
    fitted = true[:8].copy()
    fitted[:, -2:] += [0.3, 0.4]
    assert measured(prompts, true, fitted)["own_law_error"].value == pytest.approx(0.5)
    assert "own_law_error" not in measured(prompts, true)


def test_few_sequences_have_no_exponent_near_or_far():
    prompts = own_prompts(PROTOCOL, "newton", 0, 2)
    found = measured(prompts, prompts.test.batch["coordinates"])
    assert {"exponent_near", "exponent_far"} - set(found)


def test_an_observer_goes_on_by_the_law_that_it_believes():
    prompts = own_prompts(PROTOCOL, "power_1_5", 0, 30)
    fitted = references.orbit_fit(prompts.test, believed="newton")
    np.testing.assert_array_equal(fitted[:, :25], prompts.test.observed[:, :25])
    assert prompts.measured(fitted)["exponent_within"].value == pytest.approx(-2, abs=0.05)


@pytest.fixture
def tiny(tiny_run):
    return tiny_run("implied", *FLAGS)


@pytest.mark.full
def test_everybody_is_asked_in_every_world_and_outside(tiny):
    results = finished(tiny)
    found = [x for x in results if x.case.kind == "continuations"]
    places = {
        (x.case.setting["prompt"], x.case.setting.get("shift"))
        for x in found
        if x.case.arm == "pretrained" and x.case.law == "softened"
    }
    assert places == {("newton", None), ("softened", None), ("softened", "closer")}
    names = {x.case.variant for x in found}
    assert {BELIEVER, "nearest training orbit", "linear autoregression", "cubic extrapolation",
            "true orbit", "true orbit in bins"} <= names  # fmt: skip
    (fit,) = [
        x for x in found
        if (x.case.variant, x.case.law, x.case.setting["prompt"]) == (BELIEVER, "newton", "newton")
        and "shift" not in x.case.setting
    ]  # fmt: skip
    assert fit.value("exponent_within") == pytest.approx(-2, abs=0.01)
    models = [x for x in found if x.case.arm == "pretrained"]
    assert all(0 < x.value("own_law_error") < 8 for x in models)


@pytest.mark.full
def test_a_run_ends_in_a_report_with_films_and_lends_its_cells(tiny, tiny_run, capsys):
    main(["report", str(tiny)])
    text = (tiny / "report.md").read_text()
    assert "softmax, trained in the world of r^-2 (1 training), continues orbits" in text
    assert (tiny / "figures" / "matrix.png").is_file()
    with Image.open(tiny / "figures" / "implied_law_film_softened.gif") as film:
        assert film.n_frames == 24
    capsys.readouterr()
    tiny_run("implied", *FLAGS, "--n-sequences", "8", "--reuse", str(tiny))
    assert "2 of 8 cells are taken" in capsys.readouterr().out


@pytest.mark.full
def test_kept_lines_and_weights_serve_a_later_run(tiny, tiny_run, capsys, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in tiny.glob("r*.json*"):
        shutil.copy(path, kept)
    main(["export", str(tiny), "--out", str(kept / "models")])
    names = {path.name for path in (kept / "models").iterdir()}
    assert names == {"softmax-world-model-0", "softmax-world-model-softened-0"}
    capsys.readouterr()
    tiny_run("implied", *FLAGS, "--n-sequences", "8", "--reuse", str(kept))
    assert "2 of 8 cells are taken" in capsys.readouterr().out
