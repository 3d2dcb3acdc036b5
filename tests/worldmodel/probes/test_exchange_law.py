"""The exchange-law probe: its pairs, its exchanges against a twin, its unit, words and refusals."""

import dataclasses

import numpy as np
import pytest
import torch

from orbits import laws, protocols
from tests.worldmodel.probes.evaluation import evaluate, found, result
from worldmodel import probes
from worldmodel.models.load import load_model
from worldmodel.models.rollout import rollout_with_places
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import (
    CONTROLS,
    EVERY,
    LAST_STEP,
    NO_DONOR,
    OTHER_LAW,
    PARTNERS,
    SAME_LAW,
    WHOLE,
)
from worldmodel.probes.motion.held_out import rolled_out, tensors
from worldmodel.probes.motion.residual import exchanged, stages
from worldmodel.probes.read_out import layers
from worldmodel.probes.same_state import words
from worldmodel.probes.same_state.exchange import ask, whole
from worldmodel.probes.same_state.exchange_law import others
from worldmodel.probes.same_state.law_change import LawChange
from worldmodel.probes.same_state.pairs import of_laws
from worldmodel.probes.settings import Settings

SHORT = {"n_points": 24, "n_bins": 256}
SETTINGS = Settings(n_sequences=60, seeds=(3,))
PROBE = "exchange_law"


@pytest.fixture(scope="module")
def pair():
    """Return pairs of Newton's world and the r^-1.5 world."""
    return of_laws(protocols.get("identifiable", SHORT), "newton", "power_a1_n1.5", 0, 60)


@pytest.fixture
def model(untrained):
    """Return a random model of two blocks with a lively head."""
    return load_model(untrained(head_std=0.3, protocol_args=SHORT, n_layer=2)).eval()


def test_pairs_meet_where_the_prompt_ends_and_not_before(pair):
    last, (own, *partners) = pair.own.n_prompt, (pair.own, *pair.partners.values())
    for partner in partners:
        far = np.abs(partner.batch["coordinates"] - own.batch["coordinates"]).max(axis=2)
        assert far[:, last - 2 : last].max() < 1e-6
        assert np.median(far[:, 1]) > 1e-3, "the past differs"
        assert np.median(far[:, -1]) > 1e-2, "and so does what follows"
        np.testing.assert_array_equal(partner.batch["dt"], own.batch["dt"])
    masses = [(x.world.planet_mass, x.world.star_mass) for x in (own, pair.other)]
    np.testing.assert_array_equal(masses[0][0], masses[1][0])
    np.testing.assert_array_equal(masses[0][1], masses[1][1])


def test_the_partner_of_the_own_law_pulls_as_hard_where_they_meet(pair):
    last = pair.own.n_prompt
    rows = pair.own.batch["coordinates"][:, last - 2 : last]
    distance = np.linalg.norm(rows[:, 0] - rows[:, 1], axis=-1)
    pulls = [
        laws.get(x.protocol.law).relative_acceleration(
            distance, x.world.planet_mass[:, 0], x.world.star_mass
        )
        for x in pair.partners.values()
    ]
    np.testing.assert_allclose(pulls[0], pulls[1], rtol=1e-9)
    assert pair.partners[SAME_LAW].protocol.law == "newton"


def test_the_truth_is_the_unit_and_another_mass_is_no_law(pair):
    outcomes = whole(pair, lambda test: test.observed, LawChange(pair))
    whole_change, same = found(outcomes, donor=OTHER_LAW), found(outcomes, donor=SAME_LAW)
    assert whole_change["share_path"].value == pytest.approx(1)
    assert whole_change["share_exponent"].value == pytest.approx(1)
    assert abs(same["share_exponent"].value) < 0.4, "few short orbits in coarse bins"
    assert whole_change["share_law"].low > 0.3
    nothing = found(outcomes, donor=NO_DONOR)
    assert nothing["share_path"].value == nothing["share_exponent"].value == 0
    halfway = (pair.own.observed + pair.other.observed) / 2
    half = LawChange(pair).share(pair.own.observed, halfway)
    assert half["share_path"].value == pytest.approx(0.5)


@pytest.mark.full
def test_all_rows_of_the_input_are_the_other_prompt_and_its_last_step_is_none(model, pair):
    outcomes = ask(model, pair, LawChange(pair), only=(LAST_STEP, EVERY))
    for donor in (OTHER_LAW, SAME_LAW):
        shown = found(outcomes, after=WHOLE, donor=donor)
        every = found(outcomes, after="embedding", rows=EVERY, donor=donor)
        for name, metric in every.items():
            np.testing.assert_allclose(metric, shown[name], rtol=1e-6, atol=1e-9)
        step = found(outcomes, after="embedding", rows=LAST_STEP, donor=donor)
        assert step["share_path"].value == 0, "the same places, in the same bins"
        assert found(outcomes, after="block 1", rows=LAST_STEP, donor=donor)["share_path"].value
    assert not model.embedding._forward_hooks, "the model is left as it was"


@pytest.mark.parametrize("stage", ["embedding", "block 1", "block 2"])
def test_an_exchange_lasts_as_long_as_a_rollout_without_a_cache_says(model, pair, stage):
    """The cache keeps what the exchanged rows made; its twin exchanges them at every step."""
    n, batch = pair.own.n_prompt, pair.own.batch
    read = {k: v[:, :n] for k, v in tensors(model, pair.other.batch).items()}
    donor = layers(model, read)[list(stages(model)).index(stage)]
    where = torch.zeros(donor.shape[:2], dtype=torch.bool)
    where[:, n - 4 : n] = True
    prompt = {k: v[:, :n] for k, v in tensors(model, batch).items()}
    n_rows = batch["tokens"].shape[1] - n
    with exchanged(model, stage, donor, where):
        rolled = rolled_out(model, batch, n)[:, n:]
        _, twin = rollout_with_places(model, prompt, n_rows, use_cache=False)
    own = rolled_out(model, batch, n)[:, n:]
    assert np.abs(rolled - own).max() > 0.01
    # Rounding may choose another one of two bins that are as likely, and all that follows differs.
    same = np.abs(rolled - twin.numpy()).max(axis=(1, 2)) < 1e-9
    assert same.mean() > 0.9


def test_words_say_what_exceeds_the_strength():
    def results(law):
        shares = {OTHER_LAW: (0.3, 0.5, (law, law - 0.1, law + 0.1)), SAME_LAW: (0.2, 0.1, None)}
        for place, (donor, (path, exponent, beyond)) in (
            (place, each)
            for place in ((WHOLE, WHOLE), ("block 1", LAST_STEP))
            for each in shares.items()
        ):
            metrics = {"share_path": path, "share_exponent": exponent}
            if beyond:
                metrics["share_law"] = beyond
            setting = {"law": "power_a1_n1.5", "after": place[0], "rows": place[1], "donor": donor}
            yield result(metrics=metrics, setting=setting, kind=PROBE)

    assert [words.is_past(x) for x in results(0.4)] == [True, False, False, False]
    overall, said, _ = words.answers(list(results(0.4)))
    assert "a past of another law (r^-1.5) that ends in the same state, softmax of 1 is" in overall
    assert "a past of r^-1.5" in said
    assert "0.50 [0.50, 0.50] of the change of the exponent (0.10)" in said
    assert "takes some of the law from the past: 0.40 [0.30, 0.50]" in said
    overall, said, _ = words.answers(list(results(0.05)))
    assert "no model of 1 is shown to take that law over: 0.05 to 0.05 of" in overall
    assert "is not shown: 0.05" in said


def test_two_trainings_show_nothing():
    def of(seed, law):
        for place, donor in ((WHOLE, OTHER_LAW), (WHOLE, SAME_LAW)):
            metrics = {"share_path": 0.3, "share_exponent": 0.2, "share_law": (law, -0.5, 0.5)}
            setting = {"law": "power_a1_n1.5", "after": place, "rows": place, "donor": donor}
            yield result(metrics=metrics, setting=setting, kind=PROBE, seed=seed)

    overall, said, _ = words.answers([*of(0, 0.01), *of(1, 0.02)])
    assert "no model of 1 is shown to take that law over" in overall
    assert "is not shown: 0.01 (0.01, 0.02)" in said or "is not shown: 0.02 (0.01, 0.02)" in said


def test_it_refuses_what_has_no_such_pair(untrained):
    refusal = probes.get(PROBE).refusal
    newton = Checkpoint.load(untrained(protocol_args=SHORT))
    assert refusal(newton, SETTINGS) is None
    few = dataclasses.replace(SETTINGS, n_sequences=2)
    assert "of 2 systems" in refusal(newton, few)
    yukawa = Checkpoint.load(untrained(protocol_args=SHORT), law="yukawa")
    assert "no power of the distance" in refusal(yukawa, SETTINGS)
    assert others("power_a0.5_n2") == ()
    assert others("power_2_5") == ("power_a1_n2",)


@pytest.mark.full
def test_results_of_a_run(untrained, tmp_path):
    path = untrained(head_std=0.3, protocol_args={"n_points": 48, "n_bins": 256})
    results = evaluate(PROBE, path, SETTINGS, tmp_path)
    assert {x.case.arm for x in results} == {"pretrained", "untrained", "oracle", "control"}
    assert all(np.isfinite(m.value) for x in results for m in x.metrics.values())
    settings = [x.case.setting for x in results if x.case.arm == "pretrained"]
    assert {x["law"] for x in settings} == set(others("newton"))
    for rows in (LAST_STEP, EVERY):
        donors = {x["donor"] for x in settings if (x["after"], x["rows"]) == ("block 1", rows)}
        assert donors == {*PARTNERS, *CONTROLS}
    (picture,) = probes.get(PROBE).draw(results, tmp_path)
    assert picture.images[0].stat().st_size > 10_000
    assert len(probes.get(PROBE).answers(results)) == 4
