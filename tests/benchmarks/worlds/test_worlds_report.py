"""Tables, sentences and figure of worlds, from made-up results."""

import pytest

from benchmarks.worlds import names
from benchmarks.worlds.scores import TRUTH, find, leak, rows
from benchmarks.worlds.tables import SINGLE
from benchmarks.worlds.worlds import STUDY
from orbits.runs.result import Case, Metric, Result
from orbits.runs.study import with_units

WORLDS = (-2.5, -2.0, -1.5)


def result(variant, arm, share, prompt, half=0.0, seed=None, **more):
    """Return continuations that follow a share of the prompt's law, moved at half the step."""
    setting = {"prompt": prompt, **({"time step": "half"} if half else {})}
    metrics = {f"exponent@{x:g}": -2 + share * (x + 2) + half for x in WORLDS}
    metrics |= {"S": (share, share - 0.1, share + 0.1), "bias@-2": 0.01}
    metrics |= {"error@trained": 0.2, "error@held-out": 0.3, **more}
    kind = "truth" if variant == TRUTH else "worlds"
    case = Case("worlds", kind, variant, arm, seed, setting=setting)
    return with_units(STUDY, Result(case, metrics={k: Metric.of(x) for k, x in metrics.items()}))


def both(variant, arm, share, moved=0.01, seed=None, **more):
    yield result(variant, arm, share / 2, 4, seed=seed, **more)
    yield result(variant, arm, share, 12, seed=seed, **more)
    yield result(variant, arm, share, 12, half=moved, seed=seed)


@pytest.fixture
def results():
    read = {"log_score@trained": -0.5, "log_score@held-out": -0.7, "crps@trained": 0.3}
    read |= {"crps@held-out": 0.2, "coverage": 0.9, "nll@trained": 2.0, "nll@held-out": 2.1}
    found = [*both(TRUTH, "-", 1.0)]
    for seed in range(3):
        share = 0.3 + 0.01 * seed
        found += both("softmax", names.MIXTURE, share, moved=0.4, seed=seed, **read)
    found += both("softmax", names.TOLD, 0.9, seed=0)
    found += both("softmax", names.ALONE, 0.05, seed=0)
    found += both(names.TABLE, "control", 0.98)
    found += [x for x in both(names.CEILING, "ceiling", 0.95) if "time step" not in x.case.setting]
    return found


def test_the_verdict_comes_first_and_the_table_says_what_it_is_worth(results):
    verdict, meaning, memory, controls, growth, held, moved, read = STUDY.sentences(results)
    assert verdict.startswith(
        "softmax follows part of a change of the prompt's law: S = 0.31 [0.29, 0."
    )
    assert "fits orbits under every law has 0.95 [0.85, 1.05]" in verdict
    assert verdict.endswith("training orbits, which knows no law, has 0.98 [0.88, 1.08].")
    assert "so S does not tell an inferred law from remembered orbits" in meaning
    assert "table of training orbits 0.01 and 0.300 AU; softmax 0.01 and 0.300 AU" in memory
    assert "softmax, told the law 0.90" in controls
    assert growth == "softmax: S 0.15 after 4, 0.31 after 12 steps of prompt."
    assert "off the line through the others by 0.01" in held
    assert "moves the exponents of softmax by 0.39 [0.39, 0.39], towards shallower laws" in moved
    assert read.endswith("nats: softmax -0.50 and -0.70.")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (-0.5, "goes against a change of"),
        (-0.1, "follows nearly one law"),
        (0.1, "follows nearly one law"),
        (0.5, "follows part of"),
        (0.9, "follows the law of its"),
    ],
)
def test_the_verdict_follows_from_s(share, said):
    assert said in STUDY.sentences([*both("softmax", names.MIXTURE, share, seed=0)])[0]


def test_a_model_above_the_table_is_said_to_be(results):
    better = [*results, *both("lazy", names.MIXTURE, 1.2, seed=0)]
    said = STUDY.sentences(better)
    assert said[0].startswith("lazy follows the law"), "the best is the verdict"
    assert any("lazy has 0.22 more S than a table of training orbits" in x for x in said)


def test_what_attracts_by_no_power_has_no_verdict_on_laws():
    wild = [result("softmax", names.MIXTURE, 0.0, 12, seed=0, **{"exponent@-2": 0.9})]
    (said, *_) = STUDY.sentences(wild)
    assert "by no power law of an attraction" in said


def test_one_training_without_a_law_is_enough_to_say_so():
    found = [x for seed in range(3) for x in both("softmax", names.MIXTURE, 0.5, seed=seed)]
    found += both("lazy", names.MIXTURE, 0.9, seed=0)
    found += [result("lazy", names.MIXTURE, 0.9, 12, seed=1, **{"exponent@-2": -5.9})]
    first, second, *_ = STUDY.sentences([*found, *both(names.TABLE, "control", 0.7)])
    assert first.startswith("lazy goes on by no power law of an attraction")
    assert "a table of training orbits" in second, "beside the first whose S means something"


def test_laws_that_are_all_too_shallow_are_said_to_be(results):
    flat = {"exponent@-2.5": -1.2, "exponent@-2": -1.1, "exponent@-1.5": -1.0}
    said = STUDY.sentences([*results, result("lazy", names.MIXTURE, 0.2, 12, seed=0, **flat)])
    (line,) = (x for x in said if "are shallower than these worlds'" in x)
    assert line.startswith("lazy follows part of a change of the prompt's law: S = 0.20")
    assert "all its laws, r^-1.20 to r^-1.00," in line


def test_the_leak_is_what_moves_more_than_the_truth(results):
    found = rows(results)
    assert [x.value for x in leak(find(found, names.MIXTURE), found)] == [pytest.approx(0.39)] * 3
    assert leak(find(found, names.CEILING), found) == []


@pytest.mark.parametrize(
    ("moved", "meaning"),
    [
        ((0.3, 0.31, 0.32), "as if it read the law off the rate of sampling"),
        ((-0.1, 0.3, 0.4), "neither shown nor excluded"),
        ((0.05, 0.06, 0.2), "neither shown nor excluded"),
        ((-0.4, -0.3, -0.2), "towards steeper laws"),
        ((-0.03, 0.001, 0.02), "not towards shallower laws"),
    ],
)
def test_the_leak_is_judged_by_its_interval_over_trainings(moved, meaning):
    found = [*both(TRUTH, "-", 1.0, moved=0.01)]
    for seed, change in enumerate(moved):
        found += both("softmax", names.MIXTURE, 0.3, moved=change + 0.01, seed=seed)
    (line,) = (x for x in STUDY.sentences(found) if x.startswith("Leak test"))
    assert meaning in line


def test_tables_have_at_most_seven_columns(results):
    tables = [table for table in STUDY.tables(results) if table.rows]
    assert [len(table.columns) for table in tables] == [6, 4, 6, 3, 7]
    shares = [[value.text for value in row] for row in tables[0].rows]
    assert shares[0][:2] == ["true orbits in bins", "-"]
    assert ["softmax, mixture", "3", "0.15", "0.31", "0.31", "0.39"] in shares
    assert tables[1].columns[2].heading == "-2 (held out)"
    assert [x.text for x in tables[3].rows[1][1:]] == ["0.01"] * 2
    assert len(tables[4].rows) == 2, "one reading for each prompt"


def test_single_steps_have_a_table_and_a_sentence_of_their_own(results):
    metrics = {f"exponent@{x:g}": -2 + 0.2 * (x + 2) for x in WORLDS} | {"S": (0.2, 0.1, 0.3)}
    told = {k: Metric.of(x) for k, x in metrics.items()}
    for variant, arm, seed in (("softmax", names.MIXTURE, 0), (names.FILTER, "control", None)):
        case = Case("worlds", names.STEPS, variant, arm, seed)
        results.append(with_units(STUDY, Result(case, metrics=told)))
    table = next(table for table in STUDY.tables(results) if table.title == SINGLE)
    assert [x.text for x in table.rows[0]] == [
        "softmax, mixture",
        "0.20",
        "-2.10",
        "-2.00",
        "-1.90",
    ]
    (said,) = [x for x in STUDY.sentences(results) if x.startswith("S of single steps")]
    assert said.endswith("mixture 0.20 [0.10, 0.30]; linear autoregression 0.20 [0.10, 0.30].")


def test_the_figure_is_drawn(results, tmp_path):
    (picture,) = STUDY.figures(results, tmp_path)
    assert picture.images[0].is_file()


def test_failed_cells_leave_the_rest(results):
    case = Case("worlds", "worlds", "lazy", names.MIXTURE, 0)
    failed = Result(case, "failed", "NonFiniteLoss")
    assert STUDY.sentences([*results, failed]) == STUDY.sentences(results)


def test_nothing_is_said_of_nothing(tmp_path):
    assert STUDY.sentences([]) == STUDY.figures([], tmp_path) == []
    assert not any(table.rows for table in STUDY.tables([]))
