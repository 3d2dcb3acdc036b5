"""What holds for every variant of the catalogue, and for one that is registered here."""

import pytest
import torch

import attention
from attention import AttnSpec, attend, reference, stages, weights
from attention.spec import CHOICES
from tests.attention.conftest import CORNERS, COVER

HALF = [torch.float16, torch.bfloat16, torch.float32]


def visible(spec, length):
    """Return the keys that the mask of a variant leaves to each query."""
    rows, keys = torch.arange(length)[:, None], torch.arange(length)
    near = keys > rows - spec.window
    keep = {"causal": keys >= 0, "window": near, "streaming": near | (keys < spec.sinks)}
    return (keys <= rows) & keep[spec.mask]


def test_rows_sum_to_what_the_specification_says(name, tensors, variant):
    q, k, _ = tensors(17)
    these = variant(name, q)
    matrix = weights(q, k, name, **these.given)
    total = matrix.sum(-1)
    expected = {"1": 1.0, "0": 0.0, "0 (rows > 3)": 0.0, "-1": -1.0}
    rule = these.spec.row_sum
    if rule in expected:
        first = 3 if rule == "0 (rows > 3)" else 0
        wanted = torch.full_like(total, expected[rule])
        if "0" not in rule:
            wanted[(matrix == 0).all(-1)] = 0.0  # dead rows
        torch.testing.assert_close(total[..., first:], wanted[..., first:], rtol=0, atol=1e-12)
        torch.testing.assert_close(total[..., :first], torch.ones_like(total[..., :first]))
    elif rule == "<= 1":
        assert torch.all(total < 1 - 1e-6) or name == "elastic_head"
        assert torch.all(total >= 0)
    else:
        assert rule == "free"
        assert (total - 1).abs().max() > 1e-3


def test_signs_zeros_and_mask_are_as_the_specification_says(name, tensors, variant):
    q, k, _ = tensors(17)
    these = variant(name, q)
    matrix = weights(1.5 * q, k, name, **these.given)
    inside = visible(these.spec, 17)
    assert torch.all(matrix[..., ~inside] == 0)
    assert bool((matrix < 0).any()) is these.spec.signed
    inside[0] = False  # the first row of a zero-sum matrix is zero
    assert bool((matrix[..., inside] == 0).any()) is these.spec.sparse


def test_gradients_are_those_of_finite_differences(name, tensors, variant):
    for rule in ("zero", "last") if attention.get(name).bias == "learned" else ("zero",):
        check_gradients(name, tensors, variant, rule)


def check_gradients(name, tensors, variant, rule):
    q, k, v = tensors(6, batch=1, heads=2, dim=3, seed=3)
    these = variant(name, q, p=2.5, window=3, max_distance=4, beyond=rule)
    names, values = list(these.parameters), list(these.parameters.values())
    inputs = [x.requires_grad_() for x in (q, k, v, *values)]

    def call(backend):
        def output(q, k, v, *values):
            learned = dict(zip(names, values, strict=True))
            return attend(q, k, v, name, backend=backend, parameters=learned, **these.arguments)

        return output

    assert torch.autograd.gradcheck(call("reference"), inputs)
    if attention.explain(name, q, **these.arguments).chosen != "reference":
        assert torch.autograd.gradcheck(call("auto"), inputs)


def test_the_corners_hold_every_value_of_every_choice(added):
    chosen = [*CORNERS, *(attention.get(name) for name in COVER if name in attention.names())]
    for field, values in CHOICES.items():
        missing = {*values} - {getattr(spec, field) for spec in chosen} - {"refuse"}
        assert not missing, f"add a corner with {field} {missing}"
    assert {spec.sink for spec in chosen} == {spec.gated for spec in chosen} == {True, False}


@pytest.mark.parametrize(
    ("edited", "dtype"), [(1, torch.float64), (7, torch.float32), (15, torch.float64)], ids=str
)
def test_a_later_token_changes_no_earlier_output_by_a_bit(corner, tensors, variant, edited, dtype):
    q, k, v = tensors(16, dtype=dtype)
    these = variant(corner, q)
    before = attend(q, k, v, corner, **these.given)
    for x in (q, k, v):
        x[:, :, edited:] += 3 * torch.rand_like(x[:, :, edited:])
        x[:, :, 15] *= 1e4
    if "gates" in these.parameters:
        these.parameters["gates"][:, :, edited:] *= 0.5
    after = attend(q, k, v, corner, **these.given)
    assert torch.equal(before[:, :, :edited], after[:, :, :edited])
    assert not torch.equal(before[:, :, edited:], after[:, :, edited:])


def test_rows_in_chunks_equal_the_whole(name, tensors, variant):
    for queries in (13, 6):
        q, k, v = tensors(13, queries=queries)
        these = variant(name, q)
        call = (q, k, v, these.spec, these.parameters)
        whole = reference.attend(*call)
        for chunk in (1, 3, 5, queries, 100):
            torch.testing.assert_close(reference.attend(*call, chunk), whole, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="chunk must be a positive number of rows, got 0"):
        reference.attend(*call, 0)


def test_long_calls_on_a_cpu_run_in_chunks(name, tensors, variant, monkeypatch):
    q, k, v = tensors(13)
    these = variant(name, q)
    whole = attend(q, k, v, name, backend="reference", **these.given)
    sizes = []

    def counted(queries, *rest):
        sizes.append(queries.shape[-2])
        return original(queries, *rest)

    original = reference.stages
    monkeypatch.setattr(reference, "stages", counted)
    monkeypatch.setattr(attention.backends, "CPU_CHUNK", 5)
    for gradients in (False, True):
        sizes.clear()
        with torch.set_grad_enabled(gradients):
            found = attend(q, k, v, name, backend="reference", **these.given)
        assert sizes == [5, 5, 3]
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-12)


def test_stages_are_those_of_the_output(name, tensors, variant):
    q, k, v = tensors(12)
    these = variant(name, q)
    found = stages(q, k, name, **these.given)
    inside = visible(these.spec, 12)
    assert found.scores.isfinite().all()
    for matrix in (found.normalised, found.weights):
        assert matrix.shape == (2, 3, 12, 12)
        assert torch.all(matrix[..., ~inside] == 0)
    assert torch.equal(found.weights, weights(q, k, name, **these.given))
    out = attend(q, k, v, name, backend="reference", **these.given)
    torch.testing.assert_close(out, found.weights @ v, rtol=0, atol=1e-13)
    last = these.spec.modify == "none" and these.spec.sharpen == "none"
    assert torch.equal(found.weights, found.normalised) is last


def test_output_is_linear_in_the_values_and_takes_their_width(name, tensors, variant):
    q, k, v = tensors(8)
    wide = torch.cat([v, 2 * v[..., :1]], dim=-1)
    out = attend(q, k, wide, name, **variant(name, q).given)
    assert out.shape == (2, 3, 8, 9)
    torch.testing.assert_close(out[..., -1], 2 * out[..., 0], rtol=0, atol=1e-12)


def test_low_precision_is_near_and_keeps_its_type(name, tensors, variant):
    for dtype in HALF:
        check_low_precision(name, tensors, variant, dtype)


def check_low_precision(name, tensors, variant, dtype):
    q, k, v = tensors(40, dtype=dtype)
    these = variant(name, q, p=1)
    out = attend(q, k, v, name, **these.given)
    assert out.dtype == dtype
    exact = {key: value.double() for key, value in these.parameters.items()}
    exact = attend(q.double(), k.double(), v.double(), name, parameters=exact, **these.arguments)
    # A key at the mean weight amplifies rounding: i a - 1 is a difference of near numbers.
    tolerance = 8 * torch.finfo(dtype).eps if dtype != torch.float32 else 2e-5
    scale = max(v.abs().max(), exact.abs().max())
    assert (out.double() - exact).abs().max() < tolerance * scale


def test_autocast_does_not_lower_the_precision_of_weights(name, tensors, variant):
    q, k, _ = tensors(40, dtype=torch.bfloat16)
    these = variant(name, q, p=1)
    plain = stages(q, k, name, **these.given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = stages(q, k, name, **these.given)
    assert cast.scores.dtype == torch.float32
    assert torch.equal(cast.scores, plain.scores)
    assert torch.equal(cast.weights, plain.weights)


def special(tensors, case, length, dtype, heads=1):
    q, k, v = tensors(length, batch=1, heads=heads, dtype=dtype)
    if case == "identical tokens":
        q, k, v = (x[:, :, :1].expand(-1, -1, length, -1).clone() for x in (q, k, v))
    elif case == "zero query":
        q.zero_()
    elif case == "zero keys":
        k.zero_()
    return [x.requires_grad_() for x in (q, k, v)]


def finite(name, inputs, variant, length):
    these = variant(name, inputs[0], p=100, length=length, window=100)
    learned = [x.requires_grad_() for x in these.parameters.values()]
    out = attend(*inputs, name, **these.given)
    (out.float() / length).square().sum().backward()
    assert out.isfinite().all()
    for x in (*inputs, *learned):
        assert x.grad.isfinite().all()


@pytest.mark.parametrize(
    "case",
    [
        *("random", "identical tokens"),
        *(pytest.param(f"zero {what}", marks=pytest.mark.full) for what in ("query", "keys")),
    ],
)
def test_long_rows_stay_finite(corner, tensors, variant, case):
    for dtype in HALF:
        finite(corner, special(tensors, case, 512, dtype), variant, 512)


@pytest.mark.full
@pytest.mark.parametrize("case", ["random", "identical tokens", "zero query"])
@pytest.mark.parametrize(
    "long", ["lssar", "softmax_reweighted", "sparsemax", "entmax", "lazy", "zeros_sm", "l1"]
)
def test_very_long_rows_stay_finite(long, tensors, variant, case):
    length = 2560  # beyond 2048, where float16 cannot count rows
    for dtype in HALF:
        finite(long, special(tensors, case, length, dtype), variant, length)


@pytest.mark.parametrize(
    ("case", "p", "dtype"),
    [
        ("identical tokens", 0.5, torch.float16),
        ("identical tokens", 15, torch.bfloat16),
        ("identical tokens", 100, torch.float64),
        ("zero query", 0.5, torch.float64),
        ("zero query", 100, torch.float16),
        ("zero keys", 15, torch.float32),
        ("zero keys", 0.5, torch.bfloat16),
    ],
    ids=str,
)
def test_dead_rows_give_nothing(reweighted, tensors, variant, case, p, dtype):
    length = 300  # beyond 256, where bfloat16 cannot count rows
    q, k, v = special(tensors, case, length, dtype, heads=2)
    these = variant(reweighted, q, p=p)
    for parameter in these.parameters.values():
        parameter.zero_()
    out = attend(q, k, v, reweighted, **these.given)
    assert torch.all(out[:, :, 3:] == 0)
    assert out.isfinite().all()
    out[:, :, 3:].float().square().sum().backward()
    for x in (q, k, v):
        assert torch.all(x.grad == 0)


@pytest.mark.parametrize(
    ("dead", "case"),
    [
        *((f"phi_{phi}", "zero query") for phi in ("relu", "relu2", "relu6", "gelu", "mish")),
        *((f"relu_{who}", "zero keys") for who in ("li", "shen", "wortsman")),
        *(("l1", f"zero {what}") for what in ("query", "keys")),
        *(
            ("softmax_recentred_l1", case)
            for case in ("identical tokens", "zero query", "zero keys")
        ),
    ],
)
def test_rows_without_weights_give_nothing(dead, case, tensors, variant):
    for dtype in (torch.float16, torch.float32, torch.float64):
        q, k, v = special(tensors, case, 300, dtype, heads=2)
        out = attend(q, k, v, dead, **variant(dead, q).given)
        out[:, :, 3:].float().sum().backward()
        assert torch.all(out[:, :, 3:] == 0)
        gradients = (q, v) if dead in ("relu_shen", "relu_wortsman") else (q, k, v)
        assert all(torch.all(x.grad == 0) for x in gradients)


@pytest.mark.parametrize("scaled", ["lssa", "lssar", "cosine"])
def test_a_zero_vector_has_no_direction_and_no_gradient(scaled, tensors):
    q, k, v = tensors(9)
    q[:, :, 2] = 0
    k[:, :, 1] = 0
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = attend(q, k, v, scaled)
    out.square().sum().backward()
    assert torch.all(q.grad[:, :, 2] == 0)
    assert torch.all(k.grad[:, :, 1] == 0)
    assert q.grad[:, :, 3:].abs().sum() > 0
    assert max(x.grad.abs().max() for x in (q, k, v)) < 1e4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dead_rows_do_not_disturb_the_living(reweighted, tensors, variant, dtype):
    q, k, v = tensors(12, dtype=dtype)
    q[:, :, 6] = 0
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    these = variant(reweighted, q, p=3)
    for parameter in these.parameters.values():
        parameter.zero_()
    out = attend(q, k, v, reweighted, **these.given)
    assert torch.all(out[:, :, 6] == 0)
    assert torch.all(out[:, :, 7:].abs().sum(-1) > 0)
    out.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
    assert torch.all(q.grad[:, :, 6] == 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_not_scaled_up_to_weights(dtype):
    q, k = torch.ones(1, 1, 500, 4, dtype=dtype), torch.zeros(1, 1, 500, 4, dtype=dtype)
    k[:, :, 2] = 2.0
    for size, dead in ((2e-6, True), (1e-4, False)):
        q = torch.full_like(q, size).requires_grad_()
        matrix = weights(q, k, "softmax_recentred_l1")[0, 0, 3:]
        assert torch.all((matrix == 0).all(-1) == dead)
        wanted = torch.full((497,), 0.0 if dead else 1.0, dtype=dtype)
        # 500 weights in float32: 6e-7 measured, by the order of adding.
        torch.testing.assert_close(matrix.abs().sum(-1), wanted, rtol=0, atol=3e-6)
        matrix[:, 2].sum().backward()
        assert bool((q.grad == 0).all()) or not dead


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_is_dead_within_rounding_of_equal_scores_only(dtype):
    q, k = torch.ones(1, 1, 8, 4, dtype=dtype), torch.zeros(1, 1, 8, 4, dtype=dtype)
    k[:, :, 2] = 2.0  # the score of one key exceeds the others by the size of the query
    for size, dead in ((2e-6, True), (1e-4, False)):
        matrix = weights(size * q, k, "softmax_reweighted")[0, 0, 3:]
        assert torch.all((matrix == 0).all(-1) == dead)
        assert dead or torch.all(matrix[:, 2] == 1)


def test_gradients_of_a_root_stay_finite_where_keys_vanish(reweighted, tensors, variant):
    q, k, v = (x.requires_grad_() for x in tensors(12))
    matrix = weights(q, k, reweighted, **variant(reweighted, q, p=0.5).given)
    assert torch.any(matrix[..., 11, :] == 0)
    (matrix @ v).square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_catalogue_entry_is_complete(name, added):
    spec = attention.get(name)
    assert spec.name == name
    assert attention.names().count(name) == 1
    if name != added.name:
        assert spec.source
        assert spec.formula
        assert spec.about.endswith((".", "?"))


@pytest.mark.parametrize(
    ("choices", "row_sum", "signed"),
    [
        ({"phi": "gelu", "sharpen": "reweight"}, "1", False),
        ({"normalise": "none", "sharpen": "elastic"}, "free", False),
        ({"sink": True, "sharpen": "reweight"}, "1", False),
        ({"sink": True, "modify": "negate"}, "free", True),
        ({"modify": "recentre", "normalise": "entmax15"}, "0 (rows > 3)", True),
        ({"normalise": "sparsemax", "sharpen": "elastic_row"}, "<= 1", False),
    ],
)
def test_properties_follow_the_last_stage(choices, row_sum, signed):
    spec = AttnSpec("x", **choices)
    assert (spec.row_sum, spec.signed) == (row_sum, signed)
