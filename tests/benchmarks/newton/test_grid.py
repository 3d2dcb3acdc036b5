"""The flagship's grid: which cells a run has, and what its settings refuse."""

import json
from typing import get_args

import pytest

import attention
from benchmarks import training
from benchmarks.newton import control_names, sentences
from benchmarks.newton.checks import PRECISIONS
from benchmarks.newton.newton import STUDY
from benchmarks.training_options import Training
from orbits import laws, shifts
from orbits.runs import flags, presets
from orbits.runs.cell import fail
from orbits.runs.result import Result
from symreg import engines
from tests.benchmarks.newton.small import cells, function, jobs, row, settings
from tests.tiers import corners
from worldmodel.data.orbits import DeviceBatches
from worldmodel.models.orbit import NextTokenModel


def test_every_model_stands_beside_its_controls():
    rows = {row(cell) for cell in cells() if cell.case.kind == "forces"}
    for model in ("softmax", "lssar p=15"):
        for arm in ("pretrained", "scratch"):
            assert {(model, arm, 300), (model, arm, "unlimited")} <= rows
        assert (model, "untrained + ridge", 4000) in rows
    names = {model for model, arm, _ in rows if arm == "control"}
    assert names == {*control_names.KNOWING, *settings().baselines}


def test_the_scratch_arm_is_compute_matched_and_budgets_reach_the_data():
    grid = [(cell, job) for cell, job in jobs() if cell.case.kind == "forces"]
    steps = {cell.case.arm: job["steps"] for cell, job in grid}
    assert steps["scratch"] == steps["pretrained"] + settings().pretrain_steps
    for cell, job in grid:
        budget = cell.case.get("labels")
        assert job["data"]["n_train"] == (None if budget == "unlimited" else budget)
        assert bool(cell.needs) == (cell.case.arm == "pretrained")


def test_a_run_can_do_without_the_scratch_arm():
    left_out = {row(cell) for cell in cells()} - {row(cell) for cell in cells(scratch=False)}
    assert {arm for _, arm, _ in left_out} == {"scratch"}


def test_every_predictor_is_searched_by_every_engine_and_seed():
    grid = cells(seeds=(0, 1, 2), law_seeds=4)
    forces = [cell for cell in grid if cell.case.kind == "forces"]
    searches = [cell for cell in grid if cell.case.kind == "search"]
    assert len(searches) == len(forces) * 2 * 4
    assert len({cell.key for cell in grid}) == len(grid)


def test_every_world_model_continues_orbits_where_there_are_two_bodies():
    asked = [x for x in cells(seeds=(0, 1, 2)) if x.case.kind == "continued orbits"]
    models = [x for x in asked if x.case.arm == "world model"]
    assert {(x.case.variant, x.case.seed) for x in models} == {
        (name, seed) for name in ("softmax", "lssar p=15") for seed in range(3)
    }
    assert all(function(x.needs["pretrained"]) == "world_model" for x in models)
    assert {x.case.variant for x in asked if x.case.arm == "control"} == {
        *("softmax, untrained", "lssar p=15, untrained", "references"),
    }  # fmt: skip
    for more in ({"continued": 0}, {"protocol": "paper"}):
        assert not [x for x in cells(**more) if x.case.kind == "continued orbits"]
    with pytest.raises(ValueError, match="--continued must be 0, or at least 2"):
        cells(continued=1)


def test_a_schedule_adds_a_row_for_reweighted_variants_alone():
    added = {c.case.variant for c in cells(sharpen_after=100)} - {c.case.variant for c in cells()}
    assert added == {"lssar p=15, off to step 100"}


def away(**changes):
    return cells(attention=("softmax",), law="power_1_5", elsewhere=("newton",), **changes)


def test_models_from_elsewhere_keep_their_world_until_they_are_tested_here():
    grid = away(labels=(300,))
    by_arm = {cell.case.arm: cell for cell in grid if function(cell) in ("force", "transfer")}
    tuned, tested, head = (
        by_arm[arm] for arm in ("pretrained on newton", "trained on newton", "head, newton")
    )
    for cell, law in ((tuned, "power_1_5"), (tested, "power_1_5"), (head, "newton")):
        data = cell.arguments.get("job", cell.arguments)["data"]
        assert cell.arguments["world"]["law"] == law
        assert (data["protocol_args"] or {}).get("law", "newton") == law
        assert cell.case.law == law, "a head of another world makes no row of this world's table"
    assert tuned.needs["pretrained"] == head.needs["pretrained"]
    assert tuned.needs["pretrained"].arguments["world"]["law"] == "newton"
    assert tested.needs == {"head": head}
    assert tested.case.get("labels") == 0
    searched = {cell.case.arm for cell in grid if cell.case.kind == "search"}
    assert {"pretrained", "pretrained on newton", "trained on newton"} <= searched
    assert "head, newton" not in searched


def test_controls_of_another_world_have_plain_names():
    names = {cell.case.variant for cell in away() if cell.case.arm == "control"}
    added = names - {cell.case.variant for cell in cells() if cell.case.arm == "control"}
    assert added - {"references"} == {
        "k-NN of Newton's world",
        "Newtonian observer",
        "Newtonian observer, averaged over the past",
    }


def test_every_predictor_is_examined_beside_the_causal_ceiling():
    grid = cells(seeds=(0, 1, 2))
    exams = [cell for cell in grid if cell.case.kind == "exam"]
    forces = [cell for cell in grid if cell.case.kind == "forces"]
    ceiling = next(cell for cell in exams if cell.case.variant == "causal ceiling")
    assert {row(cell) for cell in exams if cell != ceiling} == {row(cell) for cell in forces}
    assert len(exams) == 1 + len(forces)
    for cell in exams:
        assert set(cell.arguments["shifts"]) == set(shifts.names())
        assert cell == ceiling or cell.needs["ceiling"] == ceiling
    heads = {cell.needs["head"].case.arm for cell in exams if "head" in cell.needs}
    assert heads == {"pretrained", "scratch"}
    examined = [c for c in away() if c.case.kind == "exam" and c.case.arm == "trained on newton"]
    assert {cell.needs["head"].case.arm for cell in examined} == {"head, newton"}


def test_an_exam_has_the_shifts_that_are_asked_for_and_those_of_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("- {name: tiny_star, redraw: {star_mass: [0.02, 0.1]}, exponent: m2}\n")
    grid = cells(shifts=("closer", "tiny_star"), shift_file=str(file))
    (names,) = {tuple(c.arguments["shifts"]) for c in grid if c.case.kind == "exam"}
    assert names == ("closer", "tiny_star")
    assert not [cell for cell in cells(shifts=()) if cell.case.kind == "exam"]
    assert not [cell for cell in cells(protocol="paper") if cell.case.kind == "exam"]


def test_all_shifts_are_those_that_can_be_made_and_a_file_is_there_to_be_used(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("- {name: tiny_star, redraw: {star_mass: [0.02, 0.1]}, exponent: m2}\n")
    names = {tuple(c.arguments["shifts"]) for c in cells(shift_file=str(file)) if "shifts" in
             c.arguments}  # fmt: skip
    assert names == {(*shifts.names(), "tiny_star")}
    with pytest.raises(ValueError, match="'paper' has no single planet"):
        cells(shift_file=str(file), protocol="paper")
    file.write_text("- {name: far, dt_octaves: 5, redraw: {semi_major_axis: [5, 6]}}\n")
    with pytest.raises(ValueError, match="time step of system 0 cannot be moved by \\+5 octaves"):
        cells(shift_file=str(file))


def test_shifts_too_fast_for_the_time_steps_are_left_out():
    law = "product_squared_times_r2"
    names = {tuple(c.arguments["shifts"]) for c in cells(law=law) if "shifts" in c.arguments}
    assert names == {tuple(name for name in shifts.names() if name != "both_heavier")}
    with pytest.raises(ValueError, match="'both_heavier': under law 'product_squared_times_r2'"):
        cells(law=law, shifts=("both_heavier",))


def test_baselines_are_fitted_to_the_label_sets_of_models():
    seeds = (0, 1, 2)
    grid = cells(seeds=seeds, baseline_seeds=seeds, labels=(300,))
    alone = {cell.key for cell in cells(seeds=seeds, labels=(300,))}
    added = [cell for cell in grid if cell.key not in alone]
    assert alone <= {cell.key for cell in grid}, "what is there keeps its address"
    baselines = settings().baselines
    assert {(c.case.kind, c.case.variant, c.case.seed) for c in added} == {
        (kind, name, seed) for kind in ("forces", "exam") for name in baselines for seed in (1, 2)
    }
    models = {c.case.seed: job["data"] for c, job in jobs(seeds=seeds, labels=(300,))
              if c.case.kind == "forces"}  # fmt: skip
    for cell in added:
        fitted = cell.arguments["arguments"]
        assert fitted["seed"] == cell.case.seed
        assert fitted["labelled"] == models[cell.case.seed]
    searched = {c.case.seed for c in cells(baseline_seeds=(5, 6, 0)) if c.case.kind == "search"
                and c.case.variant in baselines}  # fmt: skip
    assert searched == {5}, "one set of predictions per baseline is searched"


def test_searches_can_be_kept_to_some_budgets():
    rows = [row(cell) for cell in cells(law_labels=(300,)) if cell.case.kind == "search"]
    assert {labels for _, arm, labels in rows if arm != "control"} == {300}
    names = {model for model, arm, _ in rows if arm == "control"}
    assert names == {*control_names.KNOWING, *settings().baselines}


def test_the_precisions_of_a_device_are_those_of_the_data():
    assert set(PRECISIONS) == set(get_args(DeviceBatches))


def test_a_budget_as_large_as_that_of_closed_forms_is_searched_as_any_other():
    few, many = (
        sorted(
            c.case.variant
            for c in cells(labels=(n,), law_labels=(n,))
            if (c.case.kind, c.case.arm) == ("search", "control")
        )
        for n in (3000, 4000)
    )
    assert few == many
    assert set(few) == {*control_names.KNOWING, *settings().baselines}


@pytest.mark.parametrize("labels", [(300, "unlimited"), ("unlimited", 300)])
def test_heads_elsewhere_learn_from_the_largest_budget_wherever_it_stands(labels):
    grid = away(labels=labels)
    heads = [cell for cell in grid if cell.case.arm == "head, newton"]
    found = [(c.case.get("labels"), c.arguments["job"]["data"]["n_train"]) for c in heads]
    assert found == [("unlimited", None)]
    (sentence,) = sentences.heads_elsewhere([Result(cell.case) for cell in grid])
    assert sentence.startswith("Rows trained on newton: their heads learnt from unlimited labels")


def test_another_law_is_another_world_and_another_answer():
    ours, theirs = cells(law="harmonic"), cells()
    assert not {cell.key for cell in ours} & {cell.key for cell in theirs}
    for cell in ours:
        assert cell.case.law == "harmonic", "rows of two laws must not share a table"
        given = cell.arguments.get("job", cell.arguments)
        for part in ("data", "model"):
            if part in given:
                assert given[part]["protocol_args"]["law"] == "harmonic"
    for grid, law in ((ours, "harmonic"), (theirs, "newton")):
        searches = [cell.arguments["config"] for cell in grid if cell.case.kind == "search"]
        assert {config["law"]["expression"] for config in searches} == {laws.get(law).expression}


@pytest.mark.parametrize("law", ["harmonic", "power_2_5"])
def test_controls_answer_by_the_law_of_their_world(law, tmp_path):
    grid = [cell for cell in cells("tiny", law=law, n_test=60) if cell.case.kind == "forces"]
    truth = laws.get(law)
    for name, tolerance in (("true force", 1e-3), ("ceiling", 0.1)):
        (tmp_path / name).mkdir()
        control = next(cell for cell in grid if cell.case.variant == name)
        found = control.function(**control.arguments, folder=tmp_path / name).metrics
        fitted = {x: found[f"exponent_{x}"].value for x in ("r", "m1", "m2")}
        assert fitted == pytest.approx(dict(truth.exponents), abs=tolerance)
        assert found["constant"].value == pytest.approx(39.4784, rel=tolerance)


@pytest.mark.full
def test_the_causal_ceiling_is_a_row_by_the_law_of_its_world(tmp_path):
    grid = cells("tiny", law="power_2_5", n_test=60)
    row = next(c for c in grid if (c.case.kind, c.case.variant) == ("forces", "ceiling, causal"))
    found = row.function(**row.arguments, folder=tmp_path).metrics
    assert found["exponent_r"].value == pytest.approx(-2.5, abs=0.1)
    assert found["r2_log"] > 0.9
    assert not [c for c in cells(shifts=()) if c.case.variant == "ceiling, causal"]


def test_a_cell_refuses_a_world_or_an_engine_that_is_not_that_of_its_address(tmp_path):
    grid = cells("tiny", n_test=60)
    truth = next(cell for cell in grid if cell.case.variant == "true force")
    other = {**truth.arguments["world"], "n_bins": 7}
    with pytest.raises(ValueError, match="is not that of the cell's address"):
        truth.function(**{**truth.arguments, "world": other}, folder=tmp_path)
    search = next(cell for cell in grid if function(cell) == "search")
    newer = {**search.arguments["config"], "engine_version": "operon@99"}
    with pytest.raises(ValueError, match="operon is not that of the cell's address"):
        search.function(**{**search.arguments, "config": newer}, predictor=tmp_path)


@pytest.mark.parametrize(
    "name", corners(attention.names("all"), "softmax", "lssar", "lazy", "zeros", "mamba2")
)
def test_every_variant_can_be_benchmarked(name):
    (_, job), *_ = jobs("tiny", attention=(name,))
    assert repr(name) in repr(NextTokenModel(**job["model"]).gpt.blocks[0].attention)


@pytest.mark.parametrize("preset", presets.of(STUDY))
@pytest.mark.parametrize("protocol", corners(["identifiable", "paper"], "identifiable"))
def test_every_preset_describes_a_run(preset, protocol):
    json.dumps([dict(cell.arguments) for cell in cells(preset, protocol=protocol)])


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nwton"], "unknown study 'nwton'; did you mean newton?"),
        (["newton", "--protocol", "fixd"], "identifiable, free_step"),
        (["newton", "--engine", "eureqa"], "unknown engine 'eureqa'; choose from auto, "),
        (["newton", "--engines", "operon"], "use --engine"),
        (["newton", "--labels", "300,many"], "a number >= 3 or unlimited, got 'many'"),
        (["newton", "--labels", "2"], "a number >= 3 or unlimited, got 2"),
        (["newton", "--seeds", "0,-1,2"], "at least 0, got -1"),
        (["newton", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["newton", "--law-seeds", "0"], "--law-seeds must be at least 1, got 0"),
        (["newton", "--sharpen-after", "1100"], "sharpen_after must be in [0, 1100), got 1"),
        (["newton", "--elsewhere", "newton"], "elsewhere must not name 'newton'"),
        (["newton", "--elsewhere", "newtonian"], "did you mean newton"),
        (["newton", "--law-labels", "77"], "must be among labels"),
        (["newton", "--label-leak", "1"], "label_leak must be 0 or 2, got 1"),
        (["newton", "--label-leak", "2"], "add --no-images"),
        (["newton", "--seeds", "0,1"], "needs at least 3 of them, got 2"),
        (["newton", "--baseline-seeds", "0,1"], "interval over baseline_seeds needs at least 3"),
        (["newton", "--baseline-seeds", "-1"], "baseline_seeds must be at most 4294966295 and at"),
        (["newton", "--baseline-seeds", ""], "baseline_seeds must not be empty"),
        (["newton", "--protocol", "nbody"], "'nbody' has no labelled forces"),
        (["newton", "--seeds", "4294967000"], "seeds must be at most 4294966295"),
        (["newton", "--protocol", "paper", "--seeds", "600000000"], "seed must be at most"),
        (["newton", "--protocol", "paper", "--seeds", "1,2,21"], "seeds 1 and 21 share"),
        (["newton", "--protocol", "paper", "--seeds", "20"], "seeds 0 and 20 share"),
        (["newton", "--exponents", "0"], "--exponents takes positive numbers, got 0"),
        (["newton", "--law", "hook"], "harmonic, inverse_cube"),
        (["newton", "--law", "inverse_cube"], "does not bind"),
        (["newton", "--protocol", "fixed", "--law", "yukawa"], "does not bind"),
        (["newton", "--baselines", "3-NN"], "unknown baseline '3-NN'; choose from log-linear"),
        (["newton", "--shifts", "closr"], "unknown shift 'closr'; did you mean closer?"),
        (["newton", "--shifts", "closer", "--protocol", "paper"], "'paper' has no single planet"),
        (["newton", "--shift-file", "no.yaml"], "no.yaml: No such file"),
        (["newton", "--tflops", "0", "--dry-run"], "positive, got 0"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(refused_run, arguments, message):
    assert message in refused_run(*arguments)


def test_flags_have_hyphens_and_values_count_once():
    given = flags.parse_study(
        STUDY,
        ["--preset", "tiny", "--seeds", "0,0", "--attention", "lssar,softmax,lssar", "--exponents",
         "3,15", "--labels", "300,unlimited,300", "--law-labels", "none", "--images", "--law",
         "power_1_5", "--elsewhere", "newton", "--sharpen-after", "5", "--workers", "2"],
        "run newton",
    )  # fmt: skip
    found = given.settings
    assert (found.seeds, found.attention) == ((0,), ("lssar", "softmax"))
    assert (found.labels, found.exponents) == ((300, "unlimited"), (3.0, 15.0))
    assert (found.law_labels, found.images, found.sharpen_after) == (None, True, 5)
    assert (str(given.out), given.execution.workers) == (
        "runs/newton-tiny-identifiable-power_1_5",
        2,
    )


def test_auto_names_the_engine_that_it_takes(capsys):
    resolved = STUDY.resolve(settings(engine=("auto", "powerlaw")))
    name = engines.resolve("auto")[0].name
    assert resolved.engine == (name, "powerlaw")
    assert capsys.readouterr().out.startswith(f"engine: {name} (")


def test_a_failed_search_counts_under_the_version_of_its_engine(tmp_path):
    search = next(cell for cell in cells("tiny") if cell.case.kind == "search")
    (result,) = fail(search, tmp_path, "ValueError: none")["results"]
    assert result["setting"]["engine"] == f"operon@{engines.get('operon').version()}"
    assert result["manifest"]["config"] == dict(search.arguments)


def test_seeds_draw_their_own_labels_and_share_the_test_set():
    grid = [(cell, job) for cell, job in jobs(seeds=(0, 5, 7)) if cell.case.kind == "forces"]
    assert {(c.case.seed, job["data"]["train_seed"]) for c, job in grid} == {(0, 0), (5, 5), (7, 7)}
    assert {(c.case.seed, job["seed"]) for c, job in grid} == {(0, 1000), (5, 1005), (7, 1007)}
    assert not any("seed" in job["data"] for _, job in grid)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head_dim": 0}, "head_dim must be at least 2, got 0"),
        ({"head_dim": 3}, "RoPE needs an even head_dim, got 3"),
        ({"batch_size": -2}, "batch_size must be at least 1, got -2"),
        ({"lr": -1.0}, "lr must be positive, got -1"),
        ({"optimizer": "adan"}, "unknown optimizer 'adan'"),
    ],
)
def test_sizes_that_no_model_has_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cells(**change)


def test_a_head_answers_the_exam_on_the_device_of_its_training():
    how = {"accelerator": "cpu"}
    for more, expected in (({}, None), ({"training": how}, how)):
        made = cells("tiny", elsewhere=("power_1_5",), **more)
        asked = [c for c in made if c.case.kind == "exam" and "head" in c.needs]
        moved = [c for c in made if function(c) == "transfer"]
        assert {bool(asked), bool(moved)} == {True}
        assert all(c.arguments.get("training") == expected for c in (*asked, *moved))
        controls = [c for c in made if c.case.kind == "exam" and "head" not in c.needs]
        assert not any("training" in c.arguments for c in controls)
    two = Training(accelerator="cpu", devices=2)
    assert (training.device_name(two), training.torch_device(two).type) == ("2 x cpu", "cpu")
