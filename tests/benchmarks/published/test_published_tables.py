"""The papers' tables: read, recomputed where they print averages, and checked number by number."""

import json
import re
from decimal import Decimal

import pytest

import attention
from benchmarks.attention_names import ABLATIONS
from benchmarks.published import tables as published
from benchmarks.variants import variants

FILES = sorted(published.FOLDER.glob("*.json"))
MADE_UP = {
    "table": "made_up",
    "paper": "A paper",
    "place": "Table 1",
    "study": "nothing",
    "setting": "small",
    "baseline": "softmax",
    "metrics": [
        {"name": "loss@1x", "column": "1K", "direction": "lower", "unit": "nats"},
        {"name": "loss@2x", "column": "2K", "direction": "lower", "unit": "nats"},
    ],
    "rows": [
        {"row": "softmax", "label": "Softmax", "values": {"loss@1x": 3.25, "loss@2x": 4}},
        {"row": "lssa", "label": "LSSA", "values": {"loss@1x": 3.5}},
    ],
}

# Rows of none of our variants and mixers: other models, tokens, contexts and noise.
OTHERS = {
    "dlinear", "itransformer", "patchtst", "softmax_naive",
    *(f"position {i}" for i in range(15)),
    *(f"{steps} steps" for steps in ("2.5", "5.5", "10.5", "24")),
    *(f"noise {sd}" for sd in ("0", "0.01", "0.03", "0.1")),
}  # fmt: skip

# Averages that are not those of their rows (printed, recomputed), as the papers have them.
WRONG_AVERAGES = {
    ("zeros_table_8", "linear"): ("62.3", 62.65),
    ("zeros_table_8", "hawk"): ("64.5", 69.2667),
    ("zeros_table_8", "hedgehog"): ("57.4", 57.4667),
    ("zeros_table_8_ablation", "zeros_radial_mean"): ("73.0", 72.8833),
    ("lazy_table_1_760m", "ttt_linear"): ("47.32", 49.3725),
}

# Typed from the papers, by hand.
SPOT_CHECKS = [
    ("lssar_table_1", "softmax", "loss@8x", "6.2823"),
    ("lssar_table_1", "lssar p=15", "loss@2x", "3.1930"),
    ("lssar_table_1", "sigmoid_reweighted p=3", "loss@2x", "3.7387"),
    ("lssar_table_1", "relu_shen", "loss@8x", "10.7266"),
    ("lssar_table_2", "lssar p=15", "rouge1@summscreen", "6.309"),
    ("lssar_table_a1_355m", "lssar p=15", "acc_norm@sciq", "84.00"),
    ("lssar_table_a2_124m", "softmax", "ppl@lambada_openai", "10720.58"),
    ("lssar_table_a4", "softmax_recentred", "loss@1x", "3.2008"),
    ("lssar_table_a5", "exp", "loss@1x", "3.247"),
    ("lssar_table_a6", "phi_relu2", "loss@1x", "3.2494"),
    ("lssar_table_a7", "lssar p=15", "memory@train", "16685.57"),
    ("lssar_figure_2", "lssar p=15", "acc@1.5x", "45"),
    ("lssar_figure_a3_124m", "lssar p=15", "acc@1x", "77"),
    ("zeros_table_1", "zeros_sm", "acc@noisy_recall", "96.6"),
    ("zeros_table_1", "linear", "acc@fuzzy_recall", "8.15"),
    ("zeros_table_2", "hgrn2", "ppl@test", "23.73"),
    ("zeros_table_3", "hgrn1", "params", "6.1"),
    ("zeros_table_4", "patchtst", "mae@etth2", "0.379"),
    ("zeros_table_5", "zeros_softmax", "ppl@val", "24.21"),
    ("zeros_table_6", "zeros_no_norm", "acc@in_context_recall", "89.0"),
    ("zeros_table_7", "rwkv7", "throughput@train", "31199.35"),
    ("zeros_table_8", "hawk", "acc@selective_copy", "77.0"),
    ("zeros_table_8_ablation", "zeros_no_position", "acc@selective_copy", "45.8"),
    ("lazy_table_1_340m", "lazy_no_elastic", "acc_n@hellaswag", "42.11"),
    ("lazy_table_1_340m", "streaming", "ppl@wikitext", "35.52"),
    ("lazy_table_1_760m", "lazy", "ppl@lambada_openai", "20.92"),
    ("lazy_table_2", "elastic_seqlen", "sink", "0.18"),
    ("lazy_table_2", "elastic_seqlen_from_zero", "density", "37.30"),
    ("lazy_table_4a", "position 8", "norm@q", "8.2036"),
    ("lazy_table_5b", "position 14", "norm@hidden", "7.1961"),
    ("lazy_table_6a", "position 10", "var@v", "1.1968"),
    ("lazy_table_7a", "position 14", "var@hidden", "1.9125"),
    ("kepler_newton_figure_6", "10.5 steps", "Fy", "0.9412"),
    ("kepler_newton_figure_6", "24 steps", "F", "0.9596"),
]


def write(folder, name="made_up", **changes):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**MADE_UP, **changes}))
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_a_table_with_sorted_keys(path):
    keys = []

    def in_order(pairs):
        names = [name for name, _ in pairs]
        keys.append(names)
        return dict(pairs)

    json.loads(path.read_text(), object_pairs_hook=in_order)
    assert all(names == sorted(names) for names in keys)
    assert published.get(path.stem) == published.load(path)


def test_tables_are_found_by_study():
    assert len(published.tables()) == len(FILES) > 30
    assert {t.table for t in published.tables("mad")} == {
        "zeros_table_1", "zeros_table_6", "zeros_table_8", "zeros_table_8_ablation",
    }  # fmt: skip
    assert published.tables("regbench") == ()  # figures alone
    with pytest.raises(ValueError, match=r"no table 'lssar_table_9'.*lssar_table_1,"):
        published.get("lssar_table_9")


@pytest.mark.parametrize(("table", "row", "metric", "number"), SPOT_CHECKS)
def test_numbers_are_those_of_the_page_with_their_digits(table, row, metric, number):
    assert str(published.get(table).row(row).values[metric]) == number


def test_printed_averages_recompute_but_for_the_known_ones():
    checked, wrong = 0, {}
    for table in published.tables():
        for row in table.rows:
            accuracies = {name: x for name, x in row.values.items() if name.startswith("acc")}
            printed = accuracies.pop("acc@average", None)
            if printed is None or not accuracies:
                continue
            checked += 1
            mean = sum(accuracies.values()) / len(accuracies)
            half_digit = Decimal("0.5") * Decimal(10) ** printed.as_tuple().exponent
            if abs(mean - printed) > half_digit:
                wrong[table.table, row.row] = (str(printed), pytest.approx(float(mean), abs=1e-4))
    assert checked == 9 + 6 + 8 + 9 + 8 + 8  # ZeroS Tables 1, 6, 8; Lazy Table 1
    assert wrong == WRONG_AVERAGES


def test_throughputs_are_those_of_the_latencies():
    tokens = 8 * 1024
    for row in published.get("zeros_table_7").rows:
        for way in ("forward", "train"):
            latency = float(row.values[f"latency@{way}"])
            assert float(row.values[f"throughput@{way}"]) == pytest.approx(
                tokens / latency, rel=0.5e-4 / latency
            )


def test_rows_are_called_as_in_our_tables():
    labels = {row.row for table in published.tables() for row in table.rows} - OTHERS
    known = (*attention.names("all"), *ABLATIONS)
    ours = {row.label for p in (3.0, 15.0) for row in variants(known, (p,))}
    assert labels <= ours
    assert not OTHERS & ours


def test_equal_systems_have_equal_numbers_wherever_they_are_printed():
    one, other = (published.get(f"zeros_table_{n}") for n in (1, 6))
    for row in ("zeros", "zeros_sm"):
        assert one.row(row).values == other.row(row).values
    assert published.get("lssar_table_a6").row("phi_relu").values["loss@1x"] == Decimal("3.2006")
    assert published.get("lssar_table_1").row("relu_li").values["loss@1x"] == Decimal("3.2006")


def test_a_rise_is_the_difference_of_its_columns():
    table = published.get("lssar_table_1")
    rise = table.metric("rise@8x")
    assert (rise.direction, rise.unit, rise.column) == ("lower", "nats per token", "")
    assert rise.read(table.row("softmax").values) == Decimal("3.0912")
    assert rise.read(table.row("lssar p=15").values) == Decimal("0.1266")
    assert rise.resolution(table.row("softmax").values) == Decimal("0.0001")
    assert rise.read({"loss@1x": 1.5, "loss@8x": 2.0}) == 0.5
    assert rise.read({"loss@8x": 2.0}) is None


def test_a_ratio_and_its_resolution(tmp_path):
    derived = [{"name": "growth", "of": ["loss@2x", "loss@1x"], "op": "ratio"}]
    table = published.load(write(tmp_path, derived=derived))
    growth, values = table.metric("growth"), table.row("softmax").values
    assert growth.unit == "1"
    assert float(growth.read(values)) == pytest.approx(4 / 3.25)
    # 4 and 3.25 stand for 3.5 to 4.5 and 3.245 to 3.255; to first order in the two errors
    assert float(growth.resolution(values)) == pytest.approx(0.5 / 3.25 + 4 * 0.005 / 3.25**2)
    assert growth.read(table.row("lssa").values) is None
    assert growth.read({"loss@1x": 0.0, "loss@2x": 1.0}) is None


def test_trailing_zeros_count(tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace("3.25", "3.2500"))
    table = published.load(path)
    assert table.metric("loss@1x").resolution(table.row("softmax").values) == Decimal("0.00005")
    assert table.metric("loss@2x").resolution(table.row("softmax").values) == Decimal("0.5")


def rows(*changed):
    return {"rows": [{**MADE_UP["rows"][0], **change} for change in changed]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"metrics": [{"name": "loss@1x", "direction": "down", "unit": "nats"}]},
            "unknown direction 'down' of loss@1x; choose from lower, higher, none",
        ),
        (rows({"values": {"loss@1x": "3.2"}}), "loss@1x of softmax must be a number, got '3.2'"),
        (rows({"values": {"loss@1x": True}}), "must be a number, got True"),
        (rows({"values": {"loss@1x": None}}), "must be a number, got None"),
        (rows({"values": {"loss@1x": float("nan")}}), "must be a number, got 'NaN'"),
        (rows({}, {}), "duplicate row softmax; keep one"),
        (rows({"values": {"loss@4x": 5.5}}), "softmax has values of no column: loss@4x"),
        ({"metrics": MADE_UP["metrics"] * 2}, "duplicate metric loss@1x, loss@2x"),
        ({"baseline": "lssar p=15"}, "no row 'lssar p=15' in made_up; choose from softmax, lssa"),
        ({"table": "other"}, "the table is called 'other'; give the file that name"),
        ({"year": 2026}, "unexpected keyword argument 'year'"),
        (rows({"lable": "Softmax"}), "unexpected keyword argument 'lable'"),
        (
            {"derived": [{"name": "rise", "of": ["loss@2x"], "op": "difference"}]},
            "rise must be derived of two columns",
        ),
        (
            {"derived": [{"name": "rise", "of": ["loss@2x", "loss@1x"], "op": "sum"}]},
            "unknown op 'sum' of rise; choose from difference, ratio",
        ),
        (
            {"derived": [{"name": "rise", "of": ["loss@4x", "loss@1x"], "op": "difference"}]},
            "no metric 'loss@4x' in rise",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=rf"^made_up\.json: .*{re.escape(message)}"):
        published.load(write(tmp_path, **changes))


def test_a_number_given_twice_is_refused(tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace('"loss@2x": 4', '"loss@1x": 4'))
    with pytest.raises(ValueError, match=r"made_up\.json: duplicate key loss@1x"):
        published.load(path)
