import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

from benchmarks.recall.automata import Automaton, Languages, allowed_symbols
from benchmarks.recall.measures import IGNORE, micro_accuracy
from benchmarks.recall.ngram import ngram_distributions
from benchmarks.recall.problem import SPLITS
from benchmarks.recall.regbench import RegBench

PUBLISHED = Languages(18, 4, 4, 12, max_edges=3)
SMALL = Languages(2, 1, 2, 4, max_edges=1)
DENSE = Languages(3, 2, 2, 4, max_edges=2)
SEPARATOR, PADDING = 18, 19


def follow(edges, state, string):
    for symbol in string:
        following = [to for s, to in edges[state] if s == symbol]
        if not following:
            return None
        (state,) = following
    return state


def language(edges, n_symbols, longest, state=0):
    return frozenset(
        string
        for length in range(longest + 1)
        for string in itertools.product(range(n_symbols), repeat=length)
        if follow(edges, state, string) is not None
    )


@pytest.mark.parametrize(("sampler", "n"), [(SMALL, 60), (DENSE, 60)])
def test_minimal_automata_are_those_of_the_language(sampler, n):
    # Strings of length 7 tell apart what automata of up to 4 states can tell apart.
    rng = np.random.default_rng(0)
    minimal_of = {}
    for _ in range(n):
        automaton = sampler.draw(rng)
        minimal = automaton.minimal()
        accepted = language(automaton.edges, sampler.n_symbols, 7)
        assert language(minimal.edges, sampler.n_symbols, 7) == accepted
        assert minimal_of.setdefault(accepted, minimal) == minimal
        states = range(len(minimal.edges))
        apart = {language(minimal.edges, sampler.n_symbols, 3, state) for state in states}
        assert len(apart) == len(states) <= len(automaton.edges)
    assert len(set(minimal_of.values())) == len(minimal_of) < n


def test_states_that_are_not_reached_or_named_otherwise_do_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(50):
        automaton = PUBLISHED.draw(rng)
        n = len(automaton.edges)
        name = [0, *(1 + rng.permutation(n - 1)).tolist()]
        renamed = [()] * n
        for state, edges in enumerate(automaton.edges):
            renamed[name[state]] = tuple((symbol, name[to]) for symbol, to in edges)
        renamed.append(((0, 1),))  # leads in, and nothing leads here
        assert Automaton(tuple(renamed)).minimal() == automaton.minimal()
        assert automaton.minimal().minimal() == automaton.minimal()


def test_minimisation_by_hand():
    # Two states that do the same become one: (ab)* over 3 states, and a* over 2.
    assert Automaton((((0, 1),), ((1, 2),), ((0, 1),))).minimal().edges == (((0, 1),), ((1, 0),))
    assert Automaton((((5, 1),), ((5, 0),))).minimal().edges == (((5, 0),),)


def test_random_automata_follow_the_rules():
    rng = np.random.default_rng(2)
    automata = [PUBLISHED.draw(rng).edges for _ in range(4000)]
    states, edges, shared = Counter(), Counter(), 0
    for automaton in automata:
        states[len(automaton)] += 1
        edges[len(automaton[0])] += 1
        shared += automaton[0][0][0] in [symbol for symbol, _ in automaton[1][:1]]
        for state, out in enumerate(automaton):
            symbols, targets = zip(*out, strict=True)
            assert len(set(symbols)) == len(symbols)
            assert len(set(targets)) == len(targets)
            assert state not in targets
            assert set(targets) <= set(range(len(automaton)))
            assert list(symbols) == sorted(symbols)
    assert set(states) == set(range(4, 13))
    assert stats.chisquare(list(states.values())).pvalue > 1e-3
    assert set(edges) == {1, 2, 3}
    assert stats.chisquare(list(edges.values())).pvalue > 1e-3
    targets = Counter(a[0][0][1] for a in automata if len(a) == 12 and len(a[0]) == 1)
    assert set(targets) == set(range(1, 12))
    # The alphabet has 4 to 18 symbols: two states with one edge share its symbol in E[1/size].
    single = [a for a in automata if len(a[0]) == len(a[1]) == 1]
    same = sum(a[0][0][0] == a[1][0][0] for a in single)
    p = np.mean([1 / size for size in range(4, 19)])
    assert abs(same - len(single) * p) < 4 * np.sqrt(len(single) * p * (1 - p))
    symbols = Counter(a[0][0][0] for a in automata if len(a[0]) == 1)
    assert stats.chisquare([symbols[s] for s in range(18)]).pvalue > 1e-3


def test_the_papers_four_edges_are_an_option():
    rng = np.random.default_rng(3)
    sampler = Languages(max_edges=4)
    automata = [sampler.draw(rng).edges for _ in range(600)]
    assert {len(a[0]) for a in automata if len(a) > 4} == {1, 2, 3, 4}
    assert {len(a[0]) for a in automata if len(a) == 4} == {1, 2, 3}  # only three other states


@pytest.mark.full
def test_no_language_is_in_two_splits_or_twice_in_one():
    problem = RegBench()
    split_of = {}
    for split in SPLITS:
        for seed in (0, 1):
            automata = problem.automata(split, seed, np.arange(300))
            assert len(set(automata)) == 300
            assert all(automaton.minimal() == automaton for automaton in automata)
            for automaton in automata:
                assert split_of.setdefault(automaton, split) == split
    # A tiny family, where the splits would collide at once without the rule.
    tiny = RegBench(n_symbols=3, min_symbols=2, min_states=2, max_states=3, max_edges=2)
    found = {split: set(tiny.automata(split, 0, np.arange(10))) for split in SPLITS}
    assert sum(map(len, found.values())) == len(set.union(*found.values())) == 30


def test_automata_do_not_depend_on_what_was_asked_before():
    problem = RegBench(n_symbols=5, min_symbols=4, max_states=6)
    backward = [problem.automata("val", 9, np.array([i]))[0] for i in (40, 3, 17)]
    twin = RegBench(n_symbols=5, min_symbols=4, max_states=7)
    assert twin.automata("val", 9, np.arange(41)) != problem.automata("val", 9, np.arange(41))
    whole = problem.automata("val", 9, np.arange(41))
    assert backward == [whole[i] for i in (40, 3, 17)]


def test_rows_are_strings_of_the_rows_automaton():
    problem = RegBench()
    indices = np.arange(400)
    made = problem.examples("train", 0, indices)
    numbers, lengths, choices = [], [], defaultdict(Counter)
    for tokens, targets, automaton in zip(
        made.tokens.tolist(), made.targets.tolist(), problem.automata("train", 0, indices),
        strict=True,
    ):  # fmt: skip
        read = [token for token in tokens if token != PADDING]
        assert tokens == read + [PADDING] * (problem.seq_len - len(read))
        text = [*read, targets[len(read) - 1]]
        for t in range(problem.seq_len):
            answer = text[t + 1] if t + 1 < len(text) else IGNORE
            assert targets[t] == (IGNORE if answer == SEPARATOR else answer)
        strings = [
            list(group)
            for is_string, group in itertools.groupby(text, lambda x: x != SEPARATOR)
            if is_string
        ]
        assert len(strings) == text.count(SEPARATOR) + 1
        numbers.append(len(strings))
        lengths += map(len, strings)
        for string in strings:
            state = 0
            for symbol in string:
                place = [s for s, _ in automaton.edges[state]].index(symbol)
                choices[len(automaton.edges[state])][place] += 1
                state = follow(automaton.edges, state, [symbol])
    assert set(numbers) == set(range(10, 20))
    assert stats.chisquare(np.bincount(numbers)[10:]).pvalue > 1e-3
    assert set(lengths) == set(range(1, 50))
    assert stats.chisquare(np.bincount(lengths)[1:]).pvalue > 1e-3
    for n_edges in (2, 3):
        count = choices[n_edges]
        assert stats.chisquare([count[place] for place in range(n_edges)]).pvalue > 1e-3


@pytest.mark.full
def test_dfa_accuracy():
    problem = RegBench()
    indices = np.arange(60)
    made = problem.examples("test", 0, indices)
    allowed = np.zeros((*made.tokens.shape, 20), bool)
    for row, automaton in enumerate(problem.automata("test", 0, indices)):
        string = []
        for t, token in enumerate(made.tokens[row].tolist()):
            if token == PADDING:
                break
            string = [] if token == SEPARATOR else [*string, token]
            state = follow(automaton.edges, 0, string)
            allowed[row, t, [symbol for symbol, _ in automaton.edges[state]]] = True

    def score(answers):
        return problem.measure(answers, "test", 0, "")["dfa_accuracy"].value / 100

    first, last = allowed.argmax(axis=2), 19 - allowed[..., ::-1].argmax(axis=2)
    last[~allowed.any(axis=2)] = 0
    assert score(first) == score(last) == 1
    assert score(np.where(made.targets == IGNORE, 0, made.targets)) == 1
    assert micro_accuracy(first, made.targets) < 0.8  # any allowed symbol counts, not the true one
    assert score(np.full_like(first, SEPARATOR)) == score(np.full_like(first, PADDING)) == 0
    asked = made.targets != IGNORE
    chance, n = allowed[asked].mean(), asked.sum()
    random = score(np.random.default_rng(0).integers(20, size=made.targets.shape))
    assert abs(random - chance) < 4 * np.sqrt(chance * (1 - chance) / n)
    with pytest.raises(ValueError, match=r"answers \(2, 3\) and targets \(2, 948\) differ"):
        score(np.zeros((2, 3), int))


def most_frequent_continuation(text, n):
    """Look through the strings so far, for each shorter context in turn."""
    strings = [[]]
    for token in text:
        strings = [*strings, []] if token == SEPARATOR else [*strings[:-1], [*strings[-1], token]]
    marked = [["^"] * (n - 1) + string for string in strings]
    for k in range(n - 1, -1, -1):
        context = marked[-1][len(marked[-1]) - k :]
        found = Counter(
            string[i]
            for string in marked
            for i in range(n - 1, len(string))
            if string[i - k : i] == context
        )
        if found:
            return min(symbol for symbol in found if found[symbol] == max(found.values()))
    raise AssertionError("nothing was read")


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_ngrams_answer_with_the_most_frequent_continuation(n):
    problem = RegBench(max_strings=10, max_length=9)
    tokens = problem.examples("test", 0, np.arange(6)).tokens
    answers = ngram_distributions(tokens, SEPARATOR, n).argmax(axis=-1)
    for row, text in enumerate(tokens.tolist()):
        for t, token in enumerate(text):
            if token != PADDING:
                assert answers[row, t] == most_frequent_continuation(text[: t + 1], n)


@pytest.mark.full
def test_longer_ngrams_come_nearer_to_the_automaton():
    problem = RegBench()
    tokens = problem.examples("test", 0, np.arange(100)).tokens
    one, two, three = (
        problem.measure(ngram_distributions(tokens, SEPARATOR, n).argmax(axis=-1), "test", 0, "")[
            "dfa_accuracy"
        ].value
        for n in (1, 2, 3)
    )
    assert 30 < one < two - 20 < three < 100


def test_ngrams_weigh_symbols_by_their_shares():
    tokens = np.array([[0, 1, 0, 1, 0, 2, 3, 0, 3, 4]])  # the separator is 3, the padding 4
    shares = ngram_distributions(tokens, 3, n=2)
    assert shares[0, 4].tolist() == [0, 1, 0]  # 1 twice after 0
    assert shares[0, 7].tolist() == pytest.approx([0, 2 / 3, 1 / 3])
    assert shares[0, 5].tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6])  # nothing followed 2
    assert shares[0, 8].tolist() == [1, 0, 0]  # both strings began with 0
    assert shares[0, 9].tolist() == [0, 0, 0]


def distance(problem, shares):
    (metric,) = problem.measure_distributions(shares, "test", 0, "").values()
    return metric.value


def test_the_distance_is_that_of_a_loop_over_what_is_asked():
    problem, rows = RegBench(max_strings=10, max_length=9), np.arange(5)
    examples, automata = problem.examples("test", 0, rows), problem.automata("test", 0, rows)
    shares = np.random.default_rng(0).dirichlet(np.ones(20), size=examples.tokens.shape)
    found, true = [], np.zeros_like(shares)
    for row, (text, targets) in enumerate(zip(examples.tokens, examples.targets, strict=True)):
        state = 0
        for position, token in enumerate(text):
            if token > SEPARATOR:
                break
            edges = dict(automata[row].edges[state])
            state = 0 if token == SEPARATOR else edges[token]
            following = dict(automata[row].edges[state])
            if targets[position] == IGNORE:
                continue
            for symbol in following:
                true[row, position, symbol] = 1 / len(following)
            gap = [max(0, true[row, position, x] - shares[row, position, x]) for x in range(20)]
            found.append(sum(gap))
    assert distance(problem, shares) == pytest.approx(np.mean(found))
    assert distance(problem, true) == pytest.approx(0)


def test_knowing_one_allowed_symbol_is_not_knowing_the_distribution():
    problem, rows = RegBench(max_strings=10, max_length=9), np.arange(50)
    examples, automata = problem.examples("test", 0, rows), problem.automata("test", 0, rows)
    allowed = allowed_symbols(examples.tokens, automata, SEPARATOR)
    first = np.eye(20)[allowed.argmax(axis=-1)]
    assert problem.measure(first.argmax(axis=-1), "test", 0, "")["dfa_accuracy"].value == 100
    edges = allowed[examples.targets != IGNORE].sum(axis=1)
    assert distance(problem, first) == pytest.approx(np.mean(1 - 1 / edges))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_edges": 0}, "max_edges must be at least 1, got 0"),
        ({"max_edges": 5}, r"min_symbols must be in \[max_edges 5, n_symbols 18\], got 4"),
        ({"min_symbols": 19}, r"min_symbols must be in \[max_edges 3, n_symbols 18\], got 19"),
        ({"min_states": 1}, r"min_states must be in \[2, max_states 12\], got 1"),
        ({"min_states": 13}, r"min_states must be in \[2, max_states 12\], got 13"),
        ({"min_strings": 0}, r"min_strings must be in \[1, max_strings 19\], got 0"),
        ({"max_strings": 9}, r"min_strings must be in \[1, max_strings 9\], got 10"),
        ({"max_length": 0}, "max_length must leave something to predict in 19 strings, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        RegBench(**settings)


def test_a_family_that_is_too_small_says_so():
    # One symbol and one edge: the only language is a*, and it is in one split.
    problem = RegBench(n_symbols=1, min_symbols=1, min_states=2, max_states=2, max_edges=1)
    owners = 0
    for split in SPLITS:
        for _ in range(2):  # asking again must say the same
            with pytest.raises(ValueError, match=rf"split {split} has [01] different automata"):
                problem.examples(split, 0, np.array([1]))
        try:
            owners += len(problem.examples(split, 0, np.array([0])).tokens)
        except ValueError:
            continue
    assert owners == 1
    with pytest.raises(ValueError, match="the order n must be at least 1, got 0"):
        ngram_distributions(np.zeros((1, 3), int), SEPARATOR, 0)
