"""RESULTS.md, README.md: marked tables and the numbers of the text stand in the kept reports.

The reports are remade from their lines by ``test_kept.py``, so what is in them comes from lines.

Of the text, each number with a decimal point or a per cent sign, each bracket, and each count
"N of M" is looked for in the reports of the runs that its section links, rounded as it is printed.

What this does not see: other whole numbers, and a number that is right by the chance of another
row. Of digits that were changed at random it found 45% in numbers without a bracket, and 98% in a
bracket and its value, which are three numbers of one cell.
"""

import itertools
import json
import math
import re
from functools import cache
from pathlib import Path
from statistics import fmean, variance

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmarks.excerpts import KEPT, MARKER, filled, parsed
from orbits.runs.statistics import over_seeds
from orbits.runs.statistics.paired import paired
from tests.benchmarks.derived_numbers import DERIVED, FOUND, PAIRS, POWERS

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
TEXT, README = ((ROOT / x).read_text(encoding="utf-8") for x in ("RESULTS.md", "README.md"))


def parts(text):
    """Return the sections of a document by their headings."""
    found = [part for part in re.split(r"^(?=#+ )", text, flags=re.M) if part]
    return {part.splitlines()[0].strip("# "): part for part in found}


SECTIONS = parts(TEXT) | {FOUND: parts(README)[FOUND]}

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"
BRACKET = re.compile(rf"({NUMBER})%? \\?\[({NUMBER}), ({NUMBER})\\?\]")
SINGLE = re.compile(r"(?<![\w.^/])(?<!\^-)-?\d+(?:\.\d+|(?:\.\d+)?(?=%))(?![\w^])")
COUNT = re.compile(r"\b(\d+)(?:/| of )(\d+)\b")


def runs_of(section):
    """Return the kept runs that a section links and takes tables from."""
    runs = re.findall(r"\]\(benchmarks/results/([\w/-]+)\)", section)
    for match in MARKER.finditer(section):
        runs += [run for run, _ in parsed(match["body"]).tables]
    return runs


def text_of(section):
    """Return a section without its marked tables, code, comments and addresses."""
    text = MARKER.sub("", section)
    text = re.sub(r"```.*?```|`[^`]*`|!\[.*?\]\(.*?\)|\]\(.*?\)", " ", text, flags=re.S)
    return " ".join(text.split())


def printed(number, significant=None):
    """Return the lowest and the highest value that a printed number may stand for.

    Reports leave out zeros at the end, so that 2 is 2.00 there: of ``significant`` digits.
    """
    number = number.replace(",", "")
    mantissa, _, exponent = number.partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    value = float(number)
    if significant:
        size = math.floor(math.log10(abs(value))) if value else -1
        half = min(half, 0.5 * 10.0 ** (size + 1 - significant))
    # A hair less: of two neighbours in the last digit the ranges do not touch.
    return value - 0.999 * half, value + 0.999 * half


def reported(number):
    """Return the same of a number of a report."""
    return printed(number, significant=3)


def meets(one, other):
    """Return whether two ranges overlap."""
    return one[0] <= other[1] and other[0] <= one[1]


def told(value, low, high):
    """Return a bracket as it may be told: as it is, the other way round, as a ratio, in %."""
    around = [(-b, -a) for a, b in (value, high, low)]
    forms = [[value, low, high], around]
    for form in list(forms):
        if max(map(max, form)) < 20:  # a logarithm, and not a constant or a count
            forms.append([(math.exp(a), math.exp(b)) for a, b in form])
    return [*forms, [(100 * a, 100 * b) for a, b in (value, low, high)]]


@cache
def known(source):
    """Return the brackets of a source in all forms, its numbers without signs, and its counts."""
    brackets = [form for x in BRACKET.findall(source) for form in told(*map(reported, x))]
    singles = {reported(x.lstrip("-+")) for x in re.findall(rf"(?<![\w.]){NUMBER}", source)}
    return brackets, singles, set(COUNT.findall(source))


def missing(text, source):
    """Return the numbers of a text that its source does not have."""
    brackets, singles, counts = known(source)
    absent = []
    for match in BRACKET.finditer(text):
        ours = [printed(x) for x in match.groups()]
        if not any(all(map(meets, ours, form)) for form in brackets):
            absent.append(match[0])
    rest = BRACKET.sub(" ", text)
    for match in SINGLE.finditer(rest):
        low, high = printed(match[0].lstrip("-"))
        scales = (1, 100) if rest[match.end() : match.end() + 1] == "%" else (1,)
        if not any(meets((low / by, high / by), each) for each in singles for by in scales):
            absent.append(match[0])
    return absent + [x[0] for x in COUNT.finditer(rest) if x.groups() not in counts]


@cache
def source_of(name):
    """Return the reports of the runs that a section links and takes tables from."""
    runs = runs_of(SECTIONS[name])
    reports = {report for run in runs for report in (KEPT / run).rglob("report.md")}
    assert reports, runs
    return "\n".join(report.read_text(encoding="utf-8") for report in sorted(reports))


def test_marked_tables_are_those_of_the_reports():
    assert len(MARKER.findall(TEXT)) > 15
    assert filled(TEXT) == TEXT, "run python -m benchmarks excerpts RESULTS.md"
    assert filled(README) == README, "run python -m benchmarks excerpts README.md"


@pytest.mark.parametrize("name", [name for name, part in SECTIONS.items() if runs_of(part)])
def test_numbers_of_the_text_are_those_of_the_reports(name):
    absent = set(missing(text_of(SECTIONS[name]), source_of(name)))
    assert sorted(absent) == sorted(DERIVED.get(name, {}))


def test_a_bracket_with_a_changed_digit_is_missed():
    changed = [
        (name, f"{match[1][:-1]}{(int(match[1][-1]) + 4) % 10} [{match[2]}, {match[3]}]")
        for name, part in SECTIONS.items()
        if runs_of(part)
        for match in list(BRACKET.finditer(text_of(part)))[:3]
    ]
    missed = [text for name, text in changed if missing(text, source_of(name))]
    assert len(changed) > 30
    assert len(missed) > 0.9 * len(changed)


def shifts_in_which_attentions_vary_more(arm):
    """Return in which shifts the attentions' component of variance exceeds that of the seeds.

    A one-way layout of the logarithms of errors, with as many seeds for each attention.
    """
    errors = {}
    for line in (KEPT / "newton-exam" / "results.jsonl").read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        if (result["kind"], result["arm"]) == ("exam", arm):
            for name, metric in result["metrics"].items():
                if name.startswith("times_ceiling@"):
                    models = errors.setdefault(name.partition("@")[2], {})
                    models.setdefault(result["variant"], []).append(math.log(metric["value"]))
    found = set()
    for shift, models in errors.items():
        seeds = fmean(map(variance, models.values()))
        count = min(map(len, models.values()))
        if variance(map(fmean, models.values())) - seeds / count > seeds:
            found.add(shift)
    assert len(errors) == 8
    return found


def test_attentions_vary_more_than_seeds_where_it_says_so():
    assert len(shifts_in_which_attentions_vary_more("pretrained")) == 4
    assert len(shifts_in_which_attentions_vary_more("scratch")) == 0


def test_seeds_differ_by_as_much_of_what_attentions_do_as_it_says():
    attentions = ("softmax", "lssa", "lssar p=3", "lssar p=15", "sigmoid", "lazy")
    share = {}
    for shift in ("closer", "more_eccentric", "wide"):
        run = "probe-next-point-without-wide" if shift == "wide" else "probe-next-point"
        case = {"shift": shift, "arm": "pretrained"}
        nats = [values(run, "nll", {**case, "variant": x}) for x in attentions]
        each = [abs(a - b) for of in nats for a, b in itertools.combinations(of.values(), 2)]
        by_seed = zip(*(of.values() for of in nats), strict=True)
        share[shift] = fmean(each) / fmean(max(x) - min(x) for x in by_seed)
    assert min(share["closer"], share["more_eccentric"]) > 1 / 5
    assert max(share["closer"], share["more_eccentric"]) < 1 / 4
    assert share["wide"] == pytest.approx(0.5, abs=0.05)


def test_nats_and_paths_are_ranked_alike_over_attentions_and_not_within_as_it_says():
    attentions = ("softmax", "lssa", "lssar p=3", "lssar p=15", "sigmoid", "lazy")
    pairs = []
    for variant in attentions:
        case = {"variant": variant, "arm": "world model"}
        nats, power = (values("newton-exam", x, case) for x in ("nll", "exponent_within"))
        pairs.append(np.array([(nats[seed], power[seed]) for seed in nats]))
    assert [len(own) for own in pairs] == [5] * 6
    means = np.array([own.mean(axis=0) for own in pairs])
    apart = [own - mean for own, mean in zip(pairs, means, strict=True)]

    def ranked(points):
        return spearmanr(points).statistic

    found = [ranked(np.concatenate(pairs)), ranked(np.concatenate(apart)), ranked(means)]
    assert [f"{each:.2f}" for each in found] == ["-0.39", "0.03", "-0.54"]
    assert f"{spearmanr(means).pvalue:.2f}" == "0.27"
    rng = np.random.default_rng(0)
    moved = (
        [np.column_stack([own[:, 0], rng.permutation(own[:, 1])]) for own in apart]
        for _ in range(2000)
    )
    assert fmean(abs(ranked(np.concatenate(each))) >= found[1] for each in moved) > 0.8


def test_lssar_gains_less_by_width_than_softmax_with_each_seed_and_lazy_does_not():
    of = {"softmax": "worlds-scaling-width"}
    gains = {}
    for variant in ("softmax", "lssar p=15", "lazy"):
        run = of.get(variant, "worlds-scaling-width-attentions")
        case = {"variant": variant, "arm": "mixture", "prompt": 12, "time step": None}
        points = [values(run, "S", {**case, "heads": heads}) for heads in (1, 2, 4)]
        # Evenly spaced logarithms: a line's slope is its ends' difference.
        gains[variant] = {seed: (points[2][seed] - points[0][seed]) for seed in points[0]}
    assert all(gains["lssar p=15"][seed] < gains["softmax"][seed] for seed in (0, 1, 2))
    found = paired(gains["lazy"], gains["softmax"]).difference
    assert found.low < 0 < found.high


@pytest.mark.parametrize(("text", "fitted"), POWERS.items(), ids=POWERS)
def test_a_power_that_no_report_has_is_that_of_the_lines(text, fitted):
    run, metric, case, heads = fitted
    at = {each: values(run, metric, {**case, "heads": each}) for each in heads}
    x = np.log(heads)
    powers = [
        float(np.polyfit(x, np.log([at[each][seed] for each in heads]), 1)[0]) for seed in at[1]
    ]
    assert len(powers) > 2
    assert "{:.3f} [{:.3f}, {:.3f}]".format(*over_seeds(powers)) == text


def values(run, metric, case):
    """Return a metric by seed of the results of a kept run with this case and setting."""
    found = {}
    for line in (KEPT / run / "results.jsonl").read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        known = {
            "time step": None,
            **result["setting"],
            "variant": result["variant"],
            "arm": result["arm"],
        }
        if metric in result["metrics"] and case.items() <= known.items():
            assert result["seed"] not in found, (run, case)
            found[result["seed"]] = result["metrics"][metric]["value"]
    return found


@pytest.mark.parametrize(("text", "pair"), PAIRS.items(), ids=PAIRS)
def test_a_difference_that_no_report_has_is_that_of_the_lines(text, pair):
    run, metric, *cases, places = pair
    runs = (run, run) if isinstance(run, str) else run
    metrics = (metric, metric) if isinstance(metric, str) else metric
    more, less = map(values, runs, metrics, cases)
    assert len(more) > 2
    found = paired(more, less).difference
    assert "{:.{n}f} [{:.{n}f}, {:.{n}f}]".format(*found, n=places) == text


def test_each_section_with_numbers_names_its_runs():
    free = {"How to read the numbers", "Not run"}  # definitions, and what has no run
    assert {name for name, part in SECTIONS.items() if not runs_of(part)} == free


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.99 [0.98, 1.00] of it, or -0.99 [-1.00, -0.98] the other way round", []),
        ("0.98 [0.98, 1.00]", ["0.98 [0.98, 1.00]"]),
        ("2.68 [2.67, 2.71] times, 0.373 [0.369, 0.375] times, 99% [98, 100]", []),
        ("3 of 4 searches, 3/4", []),
        ("4 of 4 searches", ["4 of 4"]),
        ("an error of 12%, or 0.12, or 0.1", []),
        ("an error of 13%, 0.125", ["13", "0.125"]),
        ("m1 to the power 1.5 is r^1.5", ["1.5"]),
    ],
)
def test_a_number_that_the_source_does_not_have_is_missed(text, found):
    source = "| a | 0.987 [0.981, 0.998], p 0.01 | 3/4 [0.3, 0.9] | error 0.119 |"
    assert missing(text, source) == found
