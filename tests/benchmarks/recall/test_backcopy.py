"""Bigram-backcopy: its rows, its least loss, what its attention does, and what is said of it."""

import numpy as np
import pytest
import torch

from benchmarks import training
from benchmarks.recall.backcopy import STUDY, Backcopy, BackcopySweep, transitions
from benchmarks.recall.backcopy_cells import cut, look
from benchmarks.recall.data import ProblemData
from benchmarks.recall.measures import IGNORE
from orbits.runs.result import Case, Metric, Result
from worldmodel.maps import layer_states
from worldmodel.models.text import TokenModel

SMALL = Backcopy(n_symbols=12, n_triggers=3, seq_len=40)


def best(problem, rows):
    """Return the distributions of a reader that knows the chain, [N, L, V]."""
    shares = np.zeros((*rows.tokens.shape, problem.vocab_size))
    for row, tokens in enumerate(rows.tokens):
        for place, token in enumerate(tokens):
            if token == problem.n_symbols:
                shares[row, place] = 1 / problem.vocab_size
            elif token < problem.n_triggers:
                shares[row, place, tokens[place - 1]] = 1
            else:
                shares[row, place, :-1] = transitions(problem.n_symbols, problem.chain)[token]
    return shares


@pytest.mark.parametrize("marker", [None, 0, 1, 7, 39])
def test_what_follows_a_trigger_is_what_came_before_it(marker):
    problem = Backcopy(12, 3, 40, marker)
    rows = problem.examples("test", 0, np.arange(200))
    assert ((rows.tokens == 12).sum(axis=1) == (marker is not None)).all()
    if marker is not None:
        assert (rows.tokens[:, marker] == 12).all()
    triggers = rows.tokens < 3
    before = np.roll(rows.tokens, 1, axis=1)
    assert not triggers[:, 0].any()
    assert ((before >= 3) & (before < 12))[triggers].all(), "no trigger follows another"
    copies = triggers & (rows.targets != IGNORE)
    np.testing.assert_array_equal(rows.targets[copies], before[copies])
    assert 0.1 < copies.mean() < 0.5
    # The first symbol of a chain and the marker are not asked for; all else is the next token.
    fresh = {None: set(), 0: {0}}.get(marker, {marker - 1 if marker else 0, marker})
    for place in range(39):
        expected = np.full(200, IGNORE) if place in fresh else rows.tokens[:, place + 1]
        np.testing.assert_array_equal(rows.targets[:, place], expected)


def test_ordinary_symbols_follow_the_chain_and_chains_differ():
    rows = SMALL.examples("train", 1, np.arange(3000))
    ordinary = (rows.tokens >= 3) & (rows.targets != IGNORE)
    counts = np.zeros((12, 12))
    np.add.at(counts, (rows.tokens[ordinary], rows.targets[ordinary]), 1)
    enough = counts.sum(axis=1) > 2000
    assert enough.sum() >= 4
    shares = counts[enough] / counts[enough].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, transitions(12, 0)[enough], atol=0.05)
    assert np.abs(shares - transitions(12, 1)[enough]).max() > 0.2


def test_knowing_the_chain_leaves_no_loss_above_the_least_and_not_knowing_it_does():
    rows = SMALL.examples("test", 0, np.arange(64))
    shares = best(SMALL, rows)
    known = SMALL.measure_distributions(shares, "test", 0, "")
    assert known["excess"].value == pytest.approx(0, abs=1e-12)
    assert known["excess_copy"].value == pytest.approx(0, abs=1e-12)
    answers = shares.argmax(axis=2)
    assert SMALL.measure(answers, "test", 0, "unmarked")["copied@unmarked"].value == 100
    uniform = np.full_like(shares, 1 / SMALL.vocab_size)
    unknown = SMALL.measure_distributions(uniform, "test", 0, "")
    assert unknown["excess_copy"].value == pytest.approx(np.log(SMALL.vocab_size))
    triggers = rows.tokens < SMALL.n_triggers
    shares[triggers, :-1] = transitions(12, 0)[rows.tokens[triggers]]  # knows all but copying
    blind = SMALL.measure_distributions(shares, "test", 0, "")
    assert blind["excess_copy"].value > blind["excess"].value > 0.1


def test_without_triggers_nothing_is_copied():
    problem = Backcopy(12, 0, 40)
    answers = np.zeros((4, 40), np.int64)
    assert problem.measure(answers, "test", 0, "") == {}
    shares = np.full((4, 40, 13), 1 / 13)
    assert set(problem.measure_distributions(shares, "test", 0, "")) == {"excess"}


def seen_by(attention):
    """Return what is seen of attention whose queries are zero, and the triggers of its rows."""
    torch.manual_seed(0)
    more = {"attention_args": {"length": 64}} if attention == "elastic_fixed" else {}
    model = TokenModel(13, attention=attention, n_layer=1, n_head=1, head_dim=8, **more).eval()
    with torch.no_grad():
        model.gpt.blocks[0].attention.query.weight.zero_()
    settings = {"n_symbols": 12, "n_triggers": 3, "seq_len": 64, "marker_at": 4}
    data = ProblemData("backcopy", settings, n_test=8)
    found = {name: metric.value for name, metric in look(model, data).items()}
    return found, data.problem.examples("test", 0, np.arange(8)).tokens < 3


def test_a_look_at_uniform_attention_sees_uniform_attention():
    found, copies = seen_by("softmax")
    assert found["sink"] == pytest.approx(found["uniform"], rel=1e-5)
    assert found["share"] == pytest.approx(found["uniform_share"], rel=1e-5)
    assert found["received"] == pytest.approx(found["uniform_received"], rel=1e-5)
    assert found["density"] == pytest.approx(100 - found["sink"], rel=1e-5)
    assert found["missing_idle"] == pytest.approx(0, abs=1e-4)
    assert "tau" not in found
    seen = 100 / np.broadcast_to(np.arange(1, 65), copies.shape)
    assert found["share_copying"] == pytest.approx(seen[copies].mean(), rel=1e-4)
    copies[:, 0] = True
    assert found["share_idle"] == pytest.approx(seen[~copies].mean(), rel=1e-4)


def test_rows_that_lack_mass_are_not_less_of_a_sink():
    # An offset of 1/L leaves of 1/i what is above it: the last row is empty, others are short.
    found, _ = seen_by("elastic_fixed")
    assert found["sink"] < 0.9 * found["uniform"]
    assert found["missing"] > 30
    shares = 100 * np.mean([1 / seen for seen in range(2, 64)])
    assert found["share"] == pytest.approx(shares, rel=0.02)
    found, _ = seen_by("elastic")
    assert found["tau"] == 1


def test_a_cut_softmax_has_the_weights_of_softmax_less_those_of_uniform_attention():
    settings = BackcopySweep(attention=("softmax",), seeds=(0,), head_dim=8, n_layer=2)
    exercise = next(settings.exercises())
    job = settings.job(next(settings.trials(exercise)), exercise)
    model = training.untrained(job, TokenModel)
    with torch.no_grad():
        for block in model.gpt.blocks:
            block.attention.query.weight.mul_(10)  # weights that are far from uniform
    tokens = torch.from_numpy(exercise.problem.examples("test", 0, np.arange(4)).tokens)
    own, cut_off = (next(layer_states(x, tokens)).weights for x in (model, cut(model, job)))
    rows = torch.arange(1, 65).reshape(-1, 1)
    torch.testing.assert_close(cut_off, (own - 1 / rows).relu(), atol=1e-5, rtol=1e-4)
    assert 0.05 < cut_off.sum(-1).mean() < 0.95


def test_controls_are_trained_on_every_chain_and_others_on_one():
    settings = BackcopySweep(attention=("softmax", "elastic"), seeds=(0,), lrs=(0.003,))
    asked = [
        (trial.label, *exercise.setting.values())
        for exercise in settings.exercises()
        for trial in settings.trials(exercise)
    ]
    assert asked == [
        ("softmax", 4, 0, 0),
        ("elastic", 4, 0, 0),
        ("softmax", 4, 0, 1),
        ("softmax", 0, 0, 0),
        ("softmax", 4, "none", 0),
        ("softmax", 4, 16, 0),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_triggers": 31}, "n_symbols must be at least n_triggers [+] 2, 33, got 32"),
        ({"n_triggers": 0}, "n_triggers must be at least 1, got 0"),
        ({"seq_len": 16}, "markers must be below seq_len 16, got 16"),
        ({"markers": (0,)}, "markers must be at least 1, got 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        BackcopySweep(**given)


def test_controls_that_are_not_trained_are_left_out_and_unknown_ones_refused():
    settings = STUDY.settings("small", attention=["lazy"], seeds=[0])
    assert [cell.case.variant for cell in STUDY.cells(settings)] == ["lazy"]
    settings = BackcopySweep(attention=("softmax",), controls=("sofmax",))
    with pytest.raises(ValueError, match="unknown attention 'sofmax'"):
        STUDY.cells(settings)


def test_a_linear_mixer_has_no_attention_to_look_at():
    settings = BackcopySweep(attention=("softmax", "gla"))
    with pytest.raises(ValueError, match="gla is a linear mixer"):
        STUDY.cells(settings)


def results(softmax=40.0, n_seeds=3):
    """Return results of a run of softmax and elastic, with a control and a softmax that is cut."""
    rows = {("softmax", "-", 4): softmax, ("elastic", "-", 4): 10.0}
    rows |= {("softmax", "-", 0): 8.0, ("softmax", "cut afterwards", 4): 30.0}
    return [
        Result(
            Case(
                "backcopy", "measurement", variant, arm, seed,
                setting={"triggers": triggers, "marker": 0, "chain": 0, "lr": 0.003},
            ),
            metrics={
                "sink": Metric(value + (seed - 1) * (1 + 0.1 * (variant == "elastic"))),
                "share_idle": Metric(value + 5 + (seed - 1)),
                "missing_idle": Metric(91.0 if variant == "elastic" else 0.0),
                "uniform": Metric(6.0),
                "excess": Metric(0.01 + 0.001 * (variant == "elastic") * seed),
            },
        )
        for (variant, arm, triggers), value in rows.items()
        for seed in range(n_seeds)
    ]  # fmt: skip


def test_a_sink_is_said_to_form_where_softmax_is_above_uniform_attention():
    first, weight, loss, empty, cut, without = STUDY.sentences(results())
    assert first.startswith("softmax puts 40.0% ")
    assert "uniform attention 6.0%: a sink; 45.0%" in first
    assert weight.startswith("Weight on the first token: lower than softmax: elastic (-30.0")
    assert loss == "Loss above the least: no difference from softmax is shown for elastic."
    assert empty == "Where nothing is copied, rows lack 90% of their mass or more in: elastic."
    assert cut.startswith("softmax with the elastic offset put in after its training keeps 30.0%")
    assert without.startswith("Without triggers the weight on the first token is softmax 8.0%")


def test_no_sink_is_said_where_none_is_shown():
    for found in (results(softmax=5.0), results(softmax=6.2), results(n_seeds=1)):
        assert "no sink is shown" in STUDY.sentences(found)[0]
    assert "nothing is compared by three seeds" in STUDY.sentences(results(n_seeds=1))[1]
    assert STUDY.sentences([x for x in results() if x.case.variant == "elastic"]) == []


def test_tables_keep_arms_and_controls_apart():
    learned, mass, shape, arms, controls = STUDY.tables(results())
    assert [len(table.rows) for table in (learned, mass, arms, controls)] == [2, 2, 1, 1]
    assert shape.title == "The shape of rows"
    assert controls.rows[0][0].text == "softmax"
    assert mass.rows[0][2].text == "45.0"  # a share has one decimal place
