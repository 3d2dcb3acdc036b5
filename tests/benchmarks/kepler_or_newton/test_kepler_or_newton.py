"""The study kepler_or_newton: its star of points, its verdicts, its refusals, and a tiny run."""

import dataclasses

import pytest

from benchmarks.__main__ import main
from benchmarks.kepler_or_newton import cells as functions
from benchmarks.kepler_or_newton.beside import CONTEXT, NOISE, ours, verdicts
from benchmarks.kepler_or_newton.kepler_or_newton import STUDY
from benchmarks.kepler_or_newton.points import ALL, RANDOM, TRAINED, observer_name
from benchmarks.kepler_or_newton.scores import FORCE, SHAPE, along, carried, twin
from benchmarks.kepler_or_newton.sentences import judged, sentences
from benchmarks.newton import cells as newton_cells
from benchmarks.newton import newton
from benchmarks.newton.export import export_models
from benchmarks.published import compare
from benchmarks.published import tables as published
from orbits import protocols
from orbits.runs import study
from orbits.runs.result import Case, Metric, Result
from tests.benchmarks.runs import finished
from worldmodel.models.backbone import reach

TINY = ("run", "kepler_or_newton", "--preset", "tiny", "--executor", "here")
STEPS = {ALL: 24.0, 3: 2.5}
RISES, FALLS = {ALL: 0.5, 3: 0.9}, {ALL: 0.9, 3: 0.5}
"""A score by window."""


@pytest.fixture(scope="module")
def small():
    return study.all_cells(STUDY, STUDY.resolve(STUDY.settings("small")))


def trainings(cells):
    return [cell for cell in cells if cell.function is newton_cells.world_model]


def test_small_is_a_star_of_seventeen_points_and_three_seeds(small):
    trained = trainings(small)
    assert len(trained) == 17 * 3
    own = [x.arguments["job"] for x in trained if x.case.study == STUDY.name]
    knobs = {
        (
            job["model"]["attention"],
            job["model"].get("predicts", "bins"),
            job["model"].get("window"),
            job["data"].get("context_noise", 0),
        )
        for job in own
    }
    centre = ("softmax", "mixture", None, 0.01)
    assert centre in knobs
    differs = [sum(a != b for a, b in zip(each, centre, strict=True)) for each in knobs]
    assert sorted(differs) == [0] + [1] * 11 + [2] * 3 + [3]
    assert {("softmax", "gaussian", window, 0.1) for window in (None, 3)} <= knobs
    assert {each[:3:2] for each in knobs if each[0] != "softmax" and each[2]} == {
        ("lssar", 3),
        ("lazy", 3),
    }
    assert all(job["model"]["input"] == "coordinates" for job in own)


def test_the_flagships_own_recipe_is_the_flagships_own_cell(small):
    flagship = newton.STUDY.settings("small", seeds=(0, 1, 2))
    known = {
        dataclasses.replace(cell, version=newton.STUDY.version).key
        for cell in newton.STUDY.cells(flagship)
        if cell.function is newton_cells.world_model and cell.case.variant == "softmax"
    }
    mine = {cell.key for cell in trainings(small) if cell.case.study != STUDY.name}
    assert mine == known
    assert len(mine) == 3


def test_heads_and_exams_are_the_flagships_on_every_point():
    cells = study.all_cells(STUDY, STUDY.settings("exam", seeds=(0,), attention=("softmax",)))
    heads = [x for x in cells if x.function is newton_cells.force]
    known = {cell.key: cell.case for cell in trainings(cells)}
    assert len(heads) == len(known)
    for head in heads:
        trained = head.needs["pretrained"]
        assert trained.key in known
        own, model = (x.arguments["job"]["model"] for x in (trained, head))
        assert model == {name: x for name, x in own.items() if name != "predicts"}
        assert "context_noise" not in head.arguments["job"]["data"]
    exams = [x for x in cells if x.case.kind == "exam" and x.case.arm == "pretrained"]
    assert {x.needs["head"].key for x in exams} == {x.key for x in heads}
    flagship = newton.STUDY.settings("small", seeds=(0,), labels=(1000,), attention=("softmax",))
    (same,) = {
        dataclasses.replace(cell, version=newton.STUDY.version).key
        for cell in newton.STUDY.cells(flagship)
        if cell.function is newton_cells.force and cell.case.arm == "pretrained"
    }
    assert same in {x.needs["head"].key for x in exams}, "the flagship's own head is one"


def test_twins_with_random_weights_are_told_by_attention_window_and_seed(small):
    cells = [x for x in small if x.case.kind == "carried" and x.case.arm == RANDOM]
    told = {(x.case.variant, x.case.get("window"), x.case.seed) for x in cells}
    assert len(told) == len(cells) == 3 * (4 + 3 + 2)
    assert not any(x.needs for x in cells)


def test_windows_are_matched_to_published_contexts_by_steps(small):
    seen = {x.case.get("window"): x.case.get("steps") for x in small if x.case.kind == "carried"}
    assert {seen[window] for window in (3, 6, 11, ALL)} == {2.5, 5.5, 10.5, 24}
    published_rows = {row.row: row.label for row in published.get(CONTEXT).rows}
    assert published_rows == {
        "2.5 steps": "context 2",
        "5.5 steps": "context 5",
        "10.5 steps": "context 10",
        "24 steps": "context 100",
    }
    assert seen[3] == reach(3, n_layer=2) / 2


@pytest.mark.parametrize(
    ("force", "shape", "expected"),
    [
        (1, -1, compare.SAME_DIRECTION),
        (-1, -1, compare.CONTRADICTED),
        (1, 1, compare.CONTRADICTED),
        (0, 1, compare.CONTRADICTED),
        (1, 0, compare.INCONCLUSIVE),
        (0, -1, compare.INCONCLUSIVE),
        (None, -1, compare.NOT_RUN),
        (1, None, compare.NOT_RUN),
    ],
)
def test_the_transition_is_judged_by_both_signs(force, shape, expected):
    assert judged(force, shape) == expected


def results(
    force, shape, arms=(TRAINED,), noise=0.01, error=0.1, seeds=(0, 1, 2), predicts="mixture"
):
    """Return results whose read-outs are those of a window, by window."""
    made = []
    for window in force:
        for arm in arms:
            for seed in seeds:
                setting = {
                    "predicts": predicts,
                    "input": "coordinates",
                    "noise": noise,
                    "window": window,
                    "steps": STEPS[window],
                }
                case = Case("kepler_or_newton", "carried", "softmax", arm, seed, setting=setting)
                jitter = 0.001 * seed * (1 + window)
                exponents = {"exponent_within": -2 + jitter, "rollout_error": error + jitter}
                for where in ("inside", "closer"):
                    made.append(_result(case, "carried", exponents, where=where))
                for layer, share in (("embedding", 0.5), ("block 1", 1.0)):
                    values = dict.fromkeys(FORCE, share * force[window] + jitter)
                    values |= dict.fromkeys(SHAPE, share * shape[window] + jitter)
                    made.append(_result(case, "read-outs", values, layer=layer, rows="planet"))
    return made


def _result(case, kind, values, **more):
    case = dataclasses.replace(case, kind=kind, setting={**case.setting, **more})
    return Result(case, "ok", metrics={name: Metric(value) for name, value in values.items()})


def test_the_published_transition_is_told_from_its_opposite():
    same, opposite = results(RISES, FALLS), results(FALLS, RISES)
    assert sentences(STUDY, same)[0].endswith("this says: same direction.")
    assert sentences(STUDY, opposite)[0].endswith("this says: contradicted.")
    for made, expected in (
        (same, compare.SAME_DIRECTION),
        (opposite, compare.CONTRADICTED),
    ):
        found = [x for x in verdicts(made, CONTEXT) if x.row == "2.5 steps"]
        assert {x.outcome for x in found} == {expected}
        assert [x.metric for x in found] == ["F", "Fx", "a", "b", "Ax"], "a vector counts once"
    one_seed = sentences(STUDY, results(RISES, FALLS, seeds=(0,)))[0]
    assert one_seed.endswith("this says: not run.")


def test_a_transition_of_random_weights_is_said_to_be_no_learnt_law():
    said = sentences(STUDY, results(RISES, FALLS, arms=(TRAINED, RANDOM)))
    assert "With random weights it goes for the force from 0.50 to 0.90" in said[1]
    assert "Training changes the force by +0.00 in all rows and by +0.00 in the window" in said[1]


def test_how_far_the_window_moves_attentions_is_compared_by_seed():
    made = results(RISES, FALLS)
    for each in results({0: 0.5, 3: 0.5}, FALLS):
        made.append(dataclasses.replace(each, case=dataclasses.replace(each.case, variant="lazy")))
    force, shape = sentences(STUDY, made)[-2:]
    assert "the force by 0.40 (softmax), 0.00 (lazy): softmax's less lazy's is 0.40" in force
    assert "0.40 [0.40, 0.40]" in force
    assert shape.endswith("that it moves one further than another is not shown.")


def test_windows_without_all_rows_are_named(monkeypatch):
    monkeypatch.setitem(STEPS, 11, 5.0)
    first = sentences(STUDY, results({11: 0.5, 3: 0.9}, {11: 0.9, 3: 0.5}))[0]
    assert first.startswith("From a window of 11 to a window of 3, mean R²")


def test_the_published_recipe_has_a_sentence_of_its_own():
    made = [*results(RISES, FALLS), *results(FALLS, RISES, predicts="gaussian", noise=0.1)]
    said = sentences(STUDY, made)
    assert said[0].endswith("this says: same direction.")
    (own,) = (x for x in said if x.startswith("By the published recipe, least squares and noise"))
    assert own.endswith("this says: contradicted.")


def test_an_observer_is_asked_where_noise_leaves_orbits_alike(small):
    names = {x.case.variant for x in small if x.case.arm == "control" and x.case.get("n_rows")}
    assert names == {observer_name(0.1, 5)}
    wide = STUDY.resolve(STUDY.settings("small", windows=(0, 13)))
    asked = [x for x in study.all_cells(STUDY, wide) if x.case.get("n_rows")]
    assert not asked, "its prompt shows no more than it sees"


def test_beside_the_published_recipe_stands_who_holds_the_law_and_sees_no_more():
    made = [*results(RISES, FALLS), *results(RISES, FALLS, predicts="gaussian", noise=0.1)]
    case = Case("kepler_or_newton", "carried", observer_name(0.1, 5), "control", None)
    for where, value in (("inside", -0.7), ("closer", -1.9)):
        values = {"exponent_within": value, "rollout_error": 0.4}
        made.append(_result(case, "carried", values, where=where, noise=0.1, n_rows=5))
    (own,) = (x for x in sentences(STUDY, made) if x.startswith("An observer who holds"))
    assert "goes on with window 3 (2.5 steps), by r^-0.70 (the model r^" in own
    assert "closer to the star by r^-1.90 (r^" in own


def test_read_outs_are_those_of_the_best_layer_and_twins_share_the_window():
    found = carried(results({ALL: 0.4, 3: 0.8}, {ALL: 0.9, 3: 0.2}, arms=(TRAINED, RANDOM)))
    line = along(found, "window")
    assert list(line) == [3, ALL], "all rows are more than any window"
    assert line[3].best("r2_log_force")[0] == 0.8
    assert twin(found, line[3].point).point.window == 3
    table = ours([], CONTEXT)
    assert table == {}


def test_errors_by_noise_are_compared_with_none():
    made = results({ALL: 0.4}, {ALL: 0.4}, error=0.1) + results(
        {ALL: 0.4}, {ALL: 0.4}, noise=0.0, error=0.3
    )
    found = {x.row: x.outcome for x in verdicts(made, NOISE)}
    assert found["noise 0.01"] == compare.SAME_DIRECTION
    assert found["noise 0.1"] == compare.NOT_RUN


def test_linear_mixers_have_a_window_where_it_is_asked_for():
    def windows(**changes):
        settings = STUDY.settings("tiny", attention=("softmax", "gla"), windows=(0, 3), **changes)
        cells = [cell for cell in STUDY.cells(settings) if cell.case.kind == "training"]
        return {cell.case.get("window") for cell in cells if cell.case.variant == "gla"}

    assert windows() == {0}
    assert windows(mixer_windows=True) == {0, 3}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"predicts": ("laplace",)}, "predicts must be among mixture, gaussian, bins"),
        ({"noise": (-0.1,)}, "noise must be at least 0"),
        ({"windows": (-1,)}, "windows must be at least 0"),
        ({"places": (30,)}, "places must be at most half of n_points, 24, got 30"),
    ],
)
def test_impossible_settings_are_refused_before_any_work(changes, words):
    with pytest.raises(ValueError, match=words):
        STUDY.cells(STUDY.settings("tiny", **changes))


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("identifiable", {"law": "power_1_5"}, "no Kepler's ellipses"),
        ("nbody", {}, "take identifiable"),
        ("identifiable", {"n_points": 22}, "multiple of 4"),
    ],
)
def test_a_world_without_the_questions_is_refused(name, args, words):
    with pytest.raises(ValueError, match=words):
        functions.check_world(protocols.get(name, args), (5,))


@pytest.mark.full
def test_a_tiny_run_ends_in_a_report(tmp_path, capsys):
    out = tmp_path / "out"
    more = ("--predicts", "mixture", "--attention", "softmax", "--n-test", "10", "--heads", "30")
    main([*TINY, *more, "--out", str(out)])
    found = finished(out)
    models = carried(found)
    trained = [each for each in models if each.arm == TRAINED]
    assert len(trained) == 3
    for each in trained:
        assert set(each.asked) == {"inside", "closer"}
        assert set(each.read) == {"planet", "star"}
        assert {"nll", "planet_error", "rollout_error"} <= set(each.asked["inside"][0].metrics)
    kept = {path.name for path in export_models(out, tmp_path / "models")}
    assert "softmax-world-model-0" in kept, "the flagship's own recipe"
    assert any("predicts-mixture" in x and "window-3" in x for x in kept)
    main(["report", str(out)])
    text = (out / "report.md").read_text()
    assert "nearest training orbit" in text
    assert "rows seen through noise" not in text, "of 0.01 AU he has one orbit left"
    assert "random weights" in text
    examined = [x for x in found if x.case.kind == "exam" and x.case.arm == "pretrained"]
    assert {(x.case.get("window"), x.case.get("input")) for x in examined} == {
        (ALL, "coordinates"),
        (3, "coordinates"),
        (ALL, "bin_centres"),
    }
    assert all(x.metrics["times_ceiling@closer"].value > 1 for x in examined)
    assert "## The exam: forces outside the training box" in text
    assert "softmax, mixture, noise 0.01 AU, window 3 (2.5 steps), pretrained, 30 labels" in text
    assert (out / "figures" / "knobs.png").stat().st_size > 10_000
