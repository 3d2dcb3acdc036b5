"""The exchange probe: what is exchanged, what must follow from it exactly, results."""

import itertools

import numpy as np
import pytest
import torch

from orbits import protocols
from tests.worldmodel.probes.evaluation import evaluate
from worldmodel import probes
from worldmodel.controls.ridge import ridge_readout, with_ridge_head
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import CHANGED, OTHER, RANDOM
from worldmodel.probes.force.head import labelled
from worldmodel.probes.looks import own_setting
from worldmodel.probes.motion import exchange, response
from worldmodel.probes.motion.held_out import HeldOutSystems, tensors
from worldmodel.probes.motion.interventions import with_mass
from worldmodel.probes.motion.quantities import Force, Motion
from worldmodel.probes.motion.residual import (
    EVERY,
    PLANETS,
    STARS,
    donors,
    exchanged,
    rows_of,
    stages,
)
from worldmodel.probes.read_out import layers
from worldmodel.probes.settings import Settings

SHORT = {"n_points": 24, "n_bins": 256}
ARMS = tuple(itertools.product((STARS, PLANETS, EVERY), (CHANGED, OTHER, RANDOM)))
SETTINGS = Settings(n_sequences=6, seeds=(3,), labels=20)
KINDS = pytest.mark.parametrize("kind", [ForceModel, NextTokenModel])
ATTENTIONS = pytest.mark.parametrize(
    "attention",
    [{}, {"attention": "lssar", "attention_args": {"p": 3.0}}],
    ids=["softmax", "lssar"],
)


@pytest.fixture
def model(untrained):
    """Return a function that makes a random model of two blocks with a lively head."""

    def make(kind, **options):
        path = untrained(kind, head_std=0.3, protocol_args=SHORT, n_layer=2, **options)
        return load_model(path).eval()

    return make


@pytest.fixture(scope="module")
def pair():
    """Return a function that makes a world of 5 systems and the same with other star masses."""

    def make(quantity):
        protocol = protocols.get("identifiable", SHORT)
        world = protocol.systems(0, "test", np.arange(5), quantity.population)
        changed = with_mass(world, "m2", 1.5)
        return tuple(HeldOutSystems(protocol, w, quantity.labelled) for w in (world, changed))

    return make


def answers(model, quantity, worlds):
    """Return predictions by exchange, each as one array."""
    found = exchange._asked(model, quantity, worlds[0], ARMS, worlds[1])
    field = "log_force" if isinstance(quantity, Force) else "points"
    return {key: value[field] for key, value in found.items()}


@pytest.mark.full
@ATTENTIONS
@KINDS
def test_all_rows_are_the_other_system_and_no_rows_are_none(model, pair, kind, attention):
    quantity = Force() if kind is ForceModel else Motion()
    one = model(kind, **attention)
    worlds = pair(quantity)
    found = answers(one, quantity, worlds)
    own, other = found["-", "nothing", "-"], found["-", "-", CHANGED]
    assert np.abs(own - other).max() > 1e-3
    for stage in stages(one):
        np.testing.assert_allclose(found[stage, EVERY, CHANGED], other, rtol=1e-5, atol=1e-6)
        for donor in (OTHER, RANDOM):
            assert np.abs(found[stage, EVERY, donor] - other).max() > 1e-3
            assert np.abs(found[stage, EVERY, donor] - own).max() > 1e-3
    rows = slice(0, len(worlds[0].batch["body"]))
    ask = quantity.model(one, worlds[0], rows, worlds[0])
    np.testing.assert_array_equal(ask["log_force" if kind is ForceModel else "points"], own)
    assert not one.embedding._forward_hooks, "the model is left as it was"


@KINDS
def test_after_the_last_block_a_row_answers_for_itself_alone(model, pair, kind):
    """A head reads one row: a force the planet's, the next planet the star's before it."""
    quantity = Force() if kind is ForceModel else Motion()
    one = model(kind)
    found = answers(one, quantity, pair(quantity))
    own, other = found["-", "nothing", "-"], found["-", "-", CHANGED]
    stars, planets = (found["block 2", rows, CHANGED] for rows in (STARS, PLANETS))
    if kind is ForceModel:
        np.testing.assert_array_equal(stars, own)
        np.testing.assert_allclose(planets, other, rtol=1e-5, atol=1e-6)
        # One block earlier the star's rows reach the planet's.
        assert np.abs(found["block 1", STARS, CHANGED] - own).max() > 1e-4
    else:
        later = np.arange(3, own.shape[1])
        planet, star = later[later % 2 == 1], later[later % 2 == 0]
        np.testing.assert_allclose(stars[:, planet], other[:, planet], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(stars[:, star], own[:, star])
        np.testing.assert_allclose(planets[:, star], other[:, star], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(planets[:, planet], own[:, planet])


def test_what_is_exchanged_after_the_embedding_is_the_input(model, pair):
    one, (factual, changed) = model(ForceModel), pair(Force())
    found = answers(one, Force(), (factual, changed))
    mixed = HeldOutSystems(factual.protocol, factual.world, labelled=True)
    mask = rows_of(factual.batch["body"], STARS)[..., None]
    for name in ("tokens", "coordinates"):
        pieces = changed.batch[name], factual.batch[name]
        mixed.batch[name] = np.where(mask, *pieces)
    ask = Force().model(one, mixed, slice(0, 5), factual)["log_force"]
    np.testing.assert_allclose(found["embedding", STARS, CHANGED], ask, rtol=1e-5, atol=1e-6)


def test_donors_are_what_they_are_called(model, pair):
    one, (factual, changed) = model(ForceModel), pair(Force())
    read = {
        "own": tensors(one, factual.batch),
        CHANGED: tensors(one, changed.batch),
        OTHER: tensors(one, {k: np.roll(v, 1, axis=0) for k, v in factual.batch.items()}),
    }
    given = donors(one, read, torch.Generator().manual_seed(0))
    assert list(given) == ["embedding", "block 1", "block 2"]
    for number, stage in enumerate(given):
        own, new = (layers(one, read[name])[number] for name in ("own", CHANGED))
        torch.testing.assert_close(given[stage][CHANGED], new)
        torch.testing.assert_close(given[stage][OTHER], own.roll(1, 0))
        lengths = [(given[stage][name] - own).norm(dim=-1) for name in (RANDOM, CHANGED)]
        torch.testing.assert_close(*lengths, rtol=1e-4, atol=1e-4)
        cosine = torch.cosine_similarity(given[stage][RANDOM] - own, new - own, dim=-1)
        assert cosine[lengths[1] > 1e-3].abs().mean() < 0.5


def test_a_failure_inside_leaves_no_hook(model, pair):
    one, (factual, _) = model(ForceModel), pair(Force())
    read = tensors(one, factual.batch)
    stream = layers(one, read)[1]
    with (
        pytest.raises(RuntimeError, match="stop"),
        exchanged(one, "block 1", stream, torch.ones(stream.shape[:2], dtype=torch.bool)),
    ):
        raise RuntimeError("stop")
    assert not one.gpt.blocks[0]._forward_hooks


def test_responses_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    place, mass, noise = rng.standard_normal((3, 7, 5))
    mass += 0.5 * place
    predicted = 0.9 * place + 0.3 * mass + 0.1 * noise
    own = 2 * predicted
    found = response.metrics(response.sums(predicted, own, place, mass))
    design = np.column_stack([place.ravel(), mass.ravel()])
    expected = np.linalg.lstsq(design, predicted.ravel(), rcond=None)[0]
    np.testing.assert_allclose(
        [found["slope_place"].value, found["slope_mass"].value], expected, rtol=1e-9
    )
    true = (place + mass).ravel()
    assert found["slope"].value == pytest.approx(predicted.ravel() @ true / (true @ true))
    left = np.sum((predicted.ravel() - true) ** 2) / np.sum(true**2)
    assert found["agreement"].value == pytest.approx(1 - left)
    assert found["slope_own"].value == pytest.approx(0.5)
    assert found["agreement_own"].value == pytest.approx(0.75)
    assert found["slope_mass"].low < expected[1] < found["slope_mass"].high


def test_the_parts_of_the_truth_are_a_mass_and_a_place(pair):
    factual, changed = pair(Force())
    quantity = Force()
    truth = [quantity.truth(held) for held in (factual, changed)]
    changes = quantity.changes(*truth, factual, changed)
    ((of, place, mass),) = exchange._parts(quantity, changes, factual, changed)
    assert of == "force"
    np.testing.assert_allclose(place + mass, changes["force"][1])
    ratio = np.log(1.5 / factual.world.star_mass)[:, None]
    np.testing.assert_allclose(mass, np.broadcast_to(ratio, mass.shape), atol=1e-9)


def test_the_observer_takes_the_total_from_the_planet_and_the_shares_from_the_star(pair):
    factual, changed = pair(Force())
    found = {key[1]: x["log_force"] for key, x in exchange._observed(factual, changed).items()}
    truth = [Force().truth(held)["log_force"] for held in (factual, changed)]
    np.testing.assert_allclose(found["nothing"], truth[0], atol=1e-9)
    np.testing.assert_allclose(found[EVERY], truth[1], atol=1e-9)
    m1, m2 = factual.world.planet_mass[:, 0], factual.world.star_mass
    share = m1 / (m1 + 1.5)
    moved = np.log(share * (1 - share) * (m1 + m2) ** 2 / (m1 * m2))
    expected = truth[0] + moved[:, None]
    np.testing.assert_allclose(found[STARS], expected, atol=1e-9)
    # In sums of logarithms both exchanges together are the whole change.
    total = found[STARS] + found[PLANETS] - truth[0]
    np.testing.assert_allclose(total, truth[1], atol=1e-9)


def test_a_ridge_head_predicts_as_the_ridge_read_out(untrained):
    checkpoint = Checkpoint.load(untrained(ForceModel, protocol_args=SHORT))
    data = labelled(checkpoint, SETTINGS, 0, 0)
    test = data.labelled_dataloader()
    expected = ridge_readout(checkpoint.model, data.labelled_dataloader(), test)
    with_ridge_head(checkpoint.model, data.labelled_dataloader())
    batch = next(iter(test))
    with torch.no_grad():
        found = checkpoint.model.predict_step(batch, 0)
    for name in ("force_predicted", "force_vector_predicted"):
        n = len(found[name])
        torch.testing.assert_close(found[name], expected[name][:n], rtol=1e-3, atol=1e-3)
    assert found["force_predicted"].std() > 0.01


@pytest.mark.full
@KINDS
def test_results_of_a_run(untrained, tmp_path, kind):
    args = {"n_points": 48, "n_bins": 256}
    path = untrained(kind, head_std=0.3, protocol_args=args)
    results = evaluate("exchange", path, SETTINGS, tmp_path)
    arms = {
        ForceModel: ["untrained + ridge", "oracle"],
        NextTokenModel: ["untrained", "control"],
    }
    own = "pretrained" if kind is NextTokenModel else "force head, scratch"
    assert {x.case.arm for x in results} == {own, *arms[kind]}
    for result in results:
        setting = own_setting(result)
        assert all(np.isfinite(metric.value) for metric in result.metrics.values())
        if setting["rows"] == "nothing":
            assert result.value("slope") == 0
            assert result.value("agreement") == pytest.approx(0, abs=1e-12)
        if setting["rows"] == EVERY:
            assert result.value("agreement_own") == pytest.approx(1, abs=1e-4)
            assert result.value("slope_own") == pytest.approx(1, abs=1e-4)
    (picture,) = probes.get("exchange").draw(results, tmp_path)
    assert picture.images[0].stat().st_size > 10_000


def test_it_refuses_what_the_causal_probe_refuses(untrained):
    many = Checkpoint.load(untrained(protocol="nbody", protocol_args={"n_points": 48}))
    assert "pull on each other" in probes.get("exchange").refusal(many, SETTINGS)
