"""Numbers of RESULTS.md and README.md that no kept report has, and the lines behind them."""

FOUND = "What was found"
PAIRED = "a difference paired by seed, of PAIRS"
FITTED = "a power of a part of a run's points, of POWERS"
DERIVED: dict[str, dict[str, str]] = {
    "Results": {"175 of 180": "sum of the column within 0.05 over the twelve rows of models"},
    "The five findings in detail": {"175 of 180": "as in Results"},
    FOUND: {"175 of 180": "as in Results"},
    "Softmax taken apart": {"0.068 [0.022, 0.115]": PAIRED},
    "Looking up in the row": dict.fromkeys(
        ("4.4 [3.3, 5.6]", "5.6 [1.0, 10.2]", "3.7 [2.3, 5.0]"), PAIRED
    ),
    "What more compute buys": {"-0.035 [-0.578, 0.509]": FITTED},
    "One step outside the training box": dict.fromkeys(
        ("0.10 [0.05, 0.15]", "0.037 [0.001, 0.072]", "0.81 [0.76, 0.86]", "0.62 [0.46, 0.78]"),
        PAIRED,
    ),
    "In worlds with drag, a changing G, a hidden body, unlike kinds": {
        "-0.004 [-0.068, 0.060]": PAIRED
    },
    "Three bodies of unlike kinds": dict.fromkeys(
        ("0.208 [0.149, 0.267]", "0.61 [0.33, 0.88]"), PAIRED
    ),
    "Length extrapolation": {"0.100 [0.058, 0.142]": PAIRED},
    "What the pilot found, and what came": {
        "2 of 2": "the pilot's searches",
        "0.179 [0.057, 0.301]": PAIRED,
        **dict.fromkeys(
            (
                "0.113 [0.076, 0.150]",
                "0.223 [0.104, 0.342]",
                "0.123 [-0.071, 0.317]",
                "0.049 [-0.073, 0.172]",
                "0.196 [0.167, 0.226]",
                "0.19 [0.06, 0.31]",
                "0.29 [0.08, 0.49]",
                "0.037 [0.001, 0.072]",
                "0.040 [0.016, 0.063]",
                "0.071 [0.058, 0.084]",
                "0.051 [-0.049, 0.152]",
            ),
            PAIRED,
        ),
        "0.058 [0.022, 0.094]": PAIRED,
    },
    "A law inferred from the prompt": {"0.058 [0.022, 0.094]": PAIRED},
    "What was expected, and what came": {
        "0 of 8": "shifts_in_which_attentions_vary_more, from scratch",
        "4 of 8": "shifts_in_which_attentions_vary_more, pre-trained",
    },
}
"""Numbers that no report has, by section, with what they are."""

_FAR = {"context": 64, "ntk": False}
_CORNER = "probe-next-point-without-corner-five", "probe-next-point-five"
_STAR = {"arm": "pretrained", "shift": "star_heavier"}
_BOX = {"arm": "pretrained", "shift": "none"}
_STEP = {"variant": "softmax", "arm": "pretrained", "asked": "one step", "prompt": "newton"}
_NEITHER = "exponent_expected_least_squares"
_ASKED = {"variant": "softmax", "arm": "pretrained", "shift": "corner"}
_RANGE = "probe-next-point-without-wide", "probe-next-point-wide"
_WIDE = {**_ASKED, "shift": "wide"}
_MANY = {"variant": "softmax", "arm": "mixture", "time step": None}
_LONGER = {"variant": "softmax", "arm": "pretrained", "prompt": "species", "trained_steps": 4400}
_SHORTER = {**_LONGER, "trained_steps": 1100}
_VELOCITY = {"horizon": 24, "series": "radial_velocity"}
PAIRS = {
    "0.068 [0.022, 0.115]": (
        "ablations-small", "loss@1x", {"variant": "exp"}, {"variant": "l1"}, 3
    ),
    "0.179 [0.057, 0.301]": (
        "scaling-equal-time", "nll", {"variant": "lssa", "steps": 1100},
        {"variant": "softmax", "steps": 1430}, 3,
    ),
    "4.4 [3.3, 5.6]": (
        "regbench-mixers", "dfa_accuracy", {"variant": "zeros"}, {"variant": "retnet"}, 1
    ),
    "5.6 [1.0, 10.2]": (
        "regbench-mixers", "dfa_accuracy", {"variant": "zeros"}, {"variant": "gla"}, 1
    ),
    "3.7 [2.3, 5.0]": (
        "regbench-mixers", "dfa_accuracy", {"variant": "rwkv4"}, {"variant": "zeros"}, 1
    ),
    "0.100 [0.058, 0.142]": (
        "extrapolation-exponents", "loss@16x", {"variant": "softmax", **_FAR},
        {"variant": "softmax_reweighted p=5", **_FAR}, 3,
    ),
    "0.052 [0.047, 0.057]": (
        "forecasting-small", "mse", {"variant": "gla", "lr": 0.003, **_VELOCITY},
        {"variant": "softmax", "lr": 0.003, **_VELOCITY}, 3,
    ),
    "0.10 [0.05, 0.15]": (_CORNER, "nll", _ASKED, _ASKED, 2),
    "0.037 [0.001, 0.072]": (_CORNER, "missed", _ASKED, _ASKED, 3),
    "0.001 [-0.015, 0.017]": (
        "probe-next-point-five", "nll", {"variant": "softmax", **_STAR},
        {"variant": "softmax", **_BOX}, 3,
    ),
    "0.040 [0.016, 0.063]": (
        "probe-next-point-five", "missed", {"variant": "softmax", **_STAR},
        {"variant": "softmax", **_BOX}, 3,
    ),
    "0.071 [0.058, 0.084]": (
        "probe-next-point-five", "missed", {"variant": "lssa", **_STAR},
        {"variant": "lssa", **_BOX}, 3,
    ),
    "0.051 [-0.049, 0.152]": (
        "probe-next-point-five", "nll", {"variant": "lssa", **_BOX},
        {"variant": "softmax", **_BOX}, 3,
    ),
    "0.039 [0.030, 0.047]": (
        "probe-next-point-five", "nll", {"variant": "lssa", **_STAR},
        {"variant": "lssa", **_BOX}, 3,
    ),
    **{
        text: (
            "probe-next-point-five", "nll", {"variant": "lssar p=15", **_BOX},
            {"variant": other, **_BOX}, 3,
        )
        for text, other in {
            "0.174 [0.127, 0.220]": "softmax", "0.122 [0.000, 0.244]": "lssa",
            "0.113 [0.076, 0.150]": "lssar p=3", "0.123 [-0.071, 0.317]": "sigmoid",
            "0.223 [0.104, 0.342]": "lazy",
        }.items()
    },
    "0.049 [-0.073, 0.172]": (
        "probe-next-point-five", "nll", {"variant": "softmax", **_BOX},
        {"variant": "lazy", **_BOX}, 3,
    ),
    "0.19 [0.06, 0.31]": (
        "probe-implied-law-one-step", (_NEITHER, "exponent_least_squares"), _STEP, _STEP, 2
    ),
    "0.29 [0.08, 0.49]": (
        "probe-implied-law-one-step", (_NEITHER, "exponent_expected"), _STEP, _STEP, 2
    ),
    "0.196 [0.167, 0.226]": (
        "probe-next-point-without-wide", "nll", {**_WIDE, "variant": "lssa"}, _WIDE, 3
    ),
    "0.81 [0.76, 0.86]": (_RANGE, "nll", _WIDE, _WIDE, 2),
    "0.62 [0.46, 0.78]": (_RANGE, "missed", _WIDE, _WIDE, 2),
    "0.058 [0.022, 0.094]": (
        "worlds-five", "S", {**_MANY, "prompt": 12}, {**_MANY, "prompt": 4}, 3
    ),
    "0.61 [0.33, 0.88]": (
        "probe-free-fall", "exponent_within", _SHORTER, _LONGER, 2
    ),
    "0.208 [0.149, 0.267]": ("probe-free-fall", "pull_met", _LONGER, _SHORTER, 3),
    "-0.004 [-0.068, 0.060]": (
        "probe-disturbed-drag", "drag_rate", {"arm": "pretrained", "prompt": "drag"},
        {"arm": "pretrained", "prompt": "identifiable"}, 3,
    ),
}  # fmt: skip
"""Differences of the text: run or runs, metric or metrics, the two cases, decimal places."""

POWERS = {
    # Text: the run, the metric, the case, and the heads of its points.
    "-0.035 [-0.578, 0.509]": ("scaling-exam-width", "exam", {"arm": "pretrained"}, (1, 2, 3, 4, 6))
}
