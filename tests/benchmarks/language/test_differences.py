"""Which language models extrapolate differently: pairs, signs, and the correction for them."""

from benchmarks.language.differences import WINDOW, differences
from benchmarks.language.extrapolation import STUDY, by_power
from orbits.runs.result import Case, Metric, Result

LATE = "lssar p=15, off to step 150"
RISES = {  # of three seeds: far lower than softmax, as softmax, and in between
    "softmax": (0.40, 0.50, 0.60),
    "alibi": (0.01, 0.12, 0.20),
    "lazy": (0.55, 0.45, 0.50),
    "lssar p=15": (0.10, 0.20, 0.31),
    LATE: (0.39, 0.52, 0.61),
}


def results(seeds=3):
    return [
        Result(
            Case("extrapolation", "measurement", name, seed=seed, setting={"ntk": ntk}),
            metrics={"rise@8x": Metric(rise + ntk * seed, n=1), "loss@1x": Metric(2.0, n=1)},
        )
        for name, rises in RISES.items()
        for seed, rise in enumerate(rises[:seeds])
        for ntk in (False, True)
        if not (ntk and name == "alibi")
    ]


def boxes(table):
    return {row[0].text: [f"{box.text} {box.detail}" for box in row[1:]] for row in table.rows}


def test_models_are_compared_with_softmax_and_late_ones_with_themselves():
    table = differences(results(), "off")
    assert [column.heading for column in table.columns] == ["pair", "loss@1x", "rise@8x", "loss@8x"]
    found = boxes(table)
    assert list(found) == [
        "alibi - softmax",
        "lazy - softmax",
        "lssar p=15 - softmax",
        f"{LATE} - softmax",
        f"{LATE} - lssar p=15",
    ]
    assert "the 5 pairs of a column" in table.caption
    same, rise, none = found["alibi - softmax"]
    assert same.startswith("+0.000 [+0.000, +0.000], p 1")
    assert none == "- "
    assert rise.startswith("-0.390 [")  # the mean of -0.39, -0.38 and -0.40
    p, corrected = (float(each.split()[-1]) for each in rise.split(",")[-2:])
    assert p < 0.001
    assert corrected > 3 * p, "Holm: times the number of pairs that are not smaller"


def test_each_state_is_its_own_family():
    table = differences(results(), "on")
    assert "alibi - softmax" not in boxes(table)
    assert "the 4 pairs of a column" in table.caption


def test_all_at_once_leaves_out_what_shares_a_training_with_another():
    more = [
        Result(
            Case("extrapolation", "measurement", WINDOW, seed=seed, setting={"ntk": False}),
            metrics={"rise@8x": Metric(0.0, n=1), "loss@1x": Metric(2.0, n=1)},
        )
        for seed in range(3)
    ]
    table, said = STUDY.all_at_once([*results(), *more])
    # Losses at the training length are equal, and NTK on has three models, too few beside others.
    assert [[box.text for box in row[:2]] for row in table.rows] == [
        ["rise of the loss to 8 times the training length, dynamic NTK off", "4"]
    ]
    (claim,) = said
    assert claim.startswith(
        "rise of the loss to 8 times the training length, dynamic NTK off: all 4"
    )


def test_two_seeds_are_not_compared():
    assert differences(results(seeds=2), "off").rows == []
    titles = [table.title for table in STUDY.tables(results(seeds=2)) if table.rows]
    assert not [title for title in titles if title.startswith("Differences")]


def lost(variant, at_8x, scatter=0.01):
    return [
        Result(
            Case("extrapolation", "measurement", variant, seed=seed, setting={"ntk": False}),
            metrics={"loss@8x": Metric(at_8x + scatter * seed, n=1), "rise@8x": Metric(0.5, n=1)},
        )
        for seed in range(3)
    ]


def test_the_verdict_names_what_needs_no_extrapolation():
    results = [*lost("softmax", 2.5), *lost("lssar p=15", 2.3, scatter=0.012)]
    said, compared = STUDY.sentences(results)
    assert said.startswith("At 8 times the training length the loss of softmax is 2.51 [")
    assert said.endswith("that of a model that ignores what is far away would stay flat.")
    assert compared.startswith("At 8 times: lower than softmax: lssar p=15 (-0.20 [")
    said, _ = STUDY.sentences([*results, *lost("sliding_window", 2.0)])
    assert "; within a window of its training length, which ignores what is far away" in said
    assert "it is 2.01 [" in said


def test_two_variants_of_many_powers_have_a_figure_each_with_the_plain_ones():
    powers = [f"lssar p={p}" for p in range(4)]
    few = {key: {1.0: [2.0]} for key in ["softmax", "lssa", *powers]}
    assert by_power(few) == {"": few}
    both = few | {key: {1.0: [3.0]} for key in [f"softmax_reweighted p={p}" for p in range(4)]}
    figures = by_power(both)
    assert list(figures) == ["lssar", "softmax_reweighted"]
    assert list(figures["lssar"]) == ["softmax", "lssa", *powers]
    assert len(figures["softmax_reweighted"]) == 6
    assert by_power({}) == {}


def test_a_figures_file_stays_in_its_folder_whatever_a_variant_is_called(tmp_path):
    results = [
        Result(
            Case("extrapolation", "measurement", f"{name} p={p}", seed=0, setting={"ntk": False}),
            metrics={"loss@1x": Metric(2.0, n=1), "loss@8x": Metric(2.0 + p, n=1)},
        )
        for name in ("lssar", "../../outside")
        for p in range(4)
    ]
    out = tmp_path / "run" / "figures"
    out.mkdir(parents=True)
    drawn = [path for each in STUDY.figures(results, out) for path in each.images]
    assert [path.name for path in drawn] == ["loss_ntk_off_lssar.png", "loss_ntk_off__outside.png"]
    assert {path.parent for path in tmp_path.rglob("*.png")} == {out}
