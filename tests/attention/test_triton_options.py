"""Every option of the fused kernels: lengths, powers, tiles, layouts, biases, dead rows, memory."""

import pytest
import torch
from torch import library

from attention import attend, build, get, reference
from attention.triton import backend, tiles
from tests.attention.fused import (
    DEVICE,
    MARKS,
    ROUNDING,
    SHARPENED,
    check,
    errors,
    learned,
    run,
    specification,
    tau_of,
    tensors,
)

pytestmark = [*MARKS, pytest.mark.full]


@pytest.mark.parametrize(
    ("length", "p"), [(1, 15), (3, 2.5), (4, 50), (63, 3), (100, 1), (128, 15), (200, 2.5)]
)
def test_any_length_and_power(length, p):
    check(get("lssar", p=p), tensors(length, heads=1), allowed=rounding(p))


def rounding(p):
    """A power takes the rounding of its base p times: at most 7e-6 measured at 50."""
    return 3e-5 if p == 50 else ROUNDING


@pytest.mark.parametrize("p", [2.5, 50])
def test_many_blocks(p, monkeypatch):
    if DEVICE == "cpu":  # the interpreter's time goes by tiles
        monkeypatch.setattr(tiles, "tile", lambda *_: tiles.Tile(128, 128, 4, 1))
    check(get("lssar", p=p), tensors(513, heads=1), allowed=rounding(p))


def test_more_blocks_under_a_table_of_biases():
    check(specification("lazy"), tensors(200, heads=1))


@pytest.mark.parametrize(
    ("name", "p"),
    [("lssar", 0.5), ("softmax_reweighted", 0.5), ("softmax_reweighted", 1),
     ("sigmoid_reweighted", 0.5), ("sigmoid_reweighted", 2.5)],
)  # fmt: skip
def test_other_generators_with_low_powers(name, p):
    # Below 1 the slope r^(p - 1) is infinite at the threshold: 2.1e-5 measured.
    check(get(name, p=p), tensors(40, heads=1), allowed=ROUNDING if p >= 1 else 1e-4)


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("name", ["lssar", "elastic"])
def test_head_dims(name, dim):
    check(specification(name), tensors(40, heads=1, dim=dim))


@pytest.mark.parametrize(
    ("name", "tile", "heads", "batch"),
    [("lssar", (64, 16), 1, 2), ("lazy", (16, 64), 2, 1), ("softmax", (128, 128), 2, 2)],
)
def test_other_tiles_and_more_heads_and_sequences(name, tile, heads, batch, monkeypatch):
    if DEVICE == "cuda":
        pytest.skip("a GPU has its own tiles")
    monkeypatch.setattr(tiles, "tile", lambda *_: tiles.Tile(*tile, 4, 1))
    check(specification(name), tensors(65, 140, heads=heads, batch=batch))


@pytest.mark.parametrize("name", ["lssar", "lazy", "softmax", "sigmoid"])
def test_without_a_gradient_the_output_is_the_same(name):
    spec, (q, k, v, _) = specification(name), tensors(70)
    parameters = learned(spec)
    with torch.no_grad():
        alone = backend.attend(q, k, v, spec, parameters)
    assert torch.equal(alone, backend.attend(q.requires_grad_(), k, v, spec, parameters))


@pytest.mark.parametrize(("name", "bias"), [("lazy", 100.0), ("lazy_no_elastic", -100.0)])
def test_biases_beyond_the_range_of_exp(name, bias):
    spec, inputs = specification(name), tensors(70)
    parameters = {**learned(spec), "bias": torch.full_like(learned(spec)["bias"], bias)}
    expected = run(reference.attend, inputs, spec, parameters, torch.float64)
    found = run(backend.attend, inputs, spec, parameters, torch.float32)
    assert max(errors(found, expected, floor=1e-3)) <= 1e-4


@pytest.mark.parametrize("beyond", ["zero", "last"])
@pytest.mark.parametrize("longest", [5, 90])
def test_bias_past_its_table(beyond, longest):
    check(specification("lazy", beyond=beyond, max_distance=longest), tensors(70))


@pytest.mark.parametrize(
    ("name", "queries", "keys"),
    [("lssar", 17, 70), ("lssar", 1, 50), ("elastic", 17, 70), ("lazy", 17, 70), ("lazy", 1, 50),
     ("softmax", 1, 50), ("sigmoid_rowlen", 17, 70)],
)  # fmt: skip
def test_queries_are_the_last_positions(name, queries, keys):
    check(specification(name), tensors(queries, keys))


@pytest.mark.parametrize("name", SHARPENED)
def test_identical_tokens_give_dead_rows_and_no_gradient(name):
    spec, inputs = get(name), tensors(40, heads=1)
    same = [x[:, :, :1].expand_as(x) for x in inputs[:2]]
    out, dq, dk, dv = run(backend.attend, [*same, *inputs[2:]], spec, {}, torch.float32)
    assert torch.all(out[:, :, 3:] == 0)
    assert torch.all(out[:, :, :3] != 0)
    assert torch.all(dq[:, :, 3:] == 0)
    assert torch.all(dk[:, :, 3:] == 0)
    assert torch.all(dv[:, :, 3:] == 0)


@pytest.mark.parametrize(
    "name",
    ["softmax", "sigmoid_rowlen", "relu_li", "relu_shen", "phi_relu2", "phi_relu6", "lssar",
     "softmax_reweighted", "cosine", "elastic", "lazy"],
)  # fmt: skip
def test_zero_vectors(name):
    spec = specification(name)
    inputs = [torch.zeros_like(x) for x in tensors(40)[:2]] + tensors(40)[2:]
    expected = run(reference.attend, inputs, spec, learned(spec), torch.float64)
    found = run(backend.attend, inputs, spec, learned(spec), torch.float32)
    assert max(errors(found, expected)) <= 1e-5


@pytest.mark.parametrize(
    ("name", "p"), [("lssar", 15), ("softmax_reweighted", 15), ("sigmoid_reweighted", 3)]
)
def test_dead_rows_among_others(name, p):
    spec, inputs = get(name, p=p), tensors(40, heads=1)
    for x in inputs[:2]:
        x[:, :, :20] = x[:, :, :1]  # rows 4 to 20 see equal scores, later ones do not
    expected = run(reference.attend, inputs, spec, {}, torch.float64)
    assert torch.all(expected[0][:, :, 3:20] == 0)
    assert torch.all(expected[0][:, :, 20:] != 0)
    assert max(errors(run(backend.attend, inputs, spec, {}, torch.float32), expected)) <= 1e-5


@pytest.mark.parametrize("name", ["lssar", "elastic", "softmax"])
def test_a_later_token_changes_no_earlier_output_by_a_bit(name):
    q, k, v, _ = tensors(70)
    before = attend(q, k, v, name, backend="triton", parameters=tau_of(name))
    for x in (q, k, v):
        x[:, :, 40:] += 1
    after = attend(q, k, v, name, backend="triton", parameters=tau_of(name))
    assert torch.equal(before[:, :, :40], after[:, :, :40])
    assert not torch.equal(before[:, :, 40:], after[:, :, 40:])


def test_inputs_of_any_layout():
    spec, inputs = get("lssar"), tensors(40)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    assert not turned[0].is_contiguous()
    straight = run(backend.attend, inputs, spec, {}, torch.float32)
    for ours, theirs in zip(
        run(backend.attend, turned, spec, {}, torch.float32), straight, strict=True
    ):
        assert torch.equal(ours, theirs)


def saved(name, length, dtype=torch.float32):
    """Return the bytes that are kept for the backward pass."""
    kept = []
    q, k, v, _ = (x.requires_grad_() for x in tensors(length, heads=1, dim=64, dtype=dtype))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        backend.attend(q, k, v, get(name), learned(get(name), 1))
    return sum(
        {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in kept}.values()
    )


@pytest.mark.parametrize("name", ["lssar", "elastic", "softmax"])
def test_memory_for_the_backward_pass_is_linear(name):
    assert saved(name, 128) <= 2.1 * saved(name, 64)


@pytest.mark.parametrize(("name", "more"), [("lssa", 0), ("lssar", 1), ("elastic", 1)])
def test_a_second_stage_keeps_one_more_tensor_of_values(name, more):
    length = 128
    values, row = 64 * length * 2, 4 * length
    usual = saved("softmax", length, torch.bfloat16)  # q, k, v, the output and two numbers a row
    assert usual <= 4 * values + 2 * row
    assert saved(name, length, torch.bfloat16) <= usual + more * values + 4 * row


@pytest.mark.parametrize("name", ["softmax", "lssar", "lazy"])
def test_the_operators_are_registered_as_torch_expects(name):
    spec = specification(name)
    q, k, v, _ = (x.requires_grad_() for x in tensors(10, heads=1))
    plan = backend.plan.make(spec, 32)
    parameters = learned(spec, 1)
    tau = parameters["tau"].requires_grad_() if "tau" in parameters else None
    bias = backend.plan.bias_table(spec, q, parameters)
    given = (q, k, v, tau, bias, True, "split", *plan.choices)
    library.opcheck(backend.ops.attention_forward, given)
    results = [x.detach() for x in backend.ops.attention_forward(*given)]
    out, rows, extra, directions_q, inverse_q, directions_k, inverse_k = results
    keys = (directions_q, directions_k) if plan.unit else (q, k)
    read = [None if x is None else x.detach() for x in (*keys, v, tau, bias)]
    saved = (*read, out, rows, extra, inverse_q, inverse_k)
    last = (torch.randn_like(out), *saved, "split", *plan.choices)
    library.opcheck(backend.ops.attention_backward, last)


@pytest.mark.parametrize("name", ["lssar", "lazy"])
def test_it_compiles_as_one_graph(name):
    torch._dynamo.reset()
    spec, inputs = specification(name), tensors(20)
    compiled = torch.compile(backend.attend, fullgraph=True, backend="aot_eager")
    found = run(compiled, inputs, spec, learned(spec), torch.float32)
    plain = run(backend.attend, inputs, spec, learned(spec), torch.float32)
    assert max(errors(found, [x.double() for x in plain])) < 1e-6


@pytest.mark.parametrize("name", ["lssar", "alibi"])
def test_the_public_call_compiles_as_one_graph(name):
    torch._dynamo.reset()
    q, k, v, _ = tensors(20)
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    found = compiled(q, k, v, name, backend="triton")
    torch.testing.assert_close(found, attend(q, k, v, name, backend="triton"))


@pytest.mark.parametrize("name", ["lssar", "lazy", "elastic_head"])
def test_the_layer_trains_the_same_on_both_backends(name):
    layers = [build(name, n_head=2, head_dim=32, backend=b) for b in ("triton", "reference")]
    layers[1].load_state_dict(layers[0].state_dict())
    layers = [layer.to(DEVICE) for layer in layers]
    x = torch.randn(1, 50, 64, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    results = [layer(x) for layer in layers]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    for result in results:
        result.square().sum().backward()
    for ours, theirs in zip(*(layer.parameters() for layer in layers), strict=True):
        # Sums of 50 rows that are near 100: a third of this is what float32 makes of them here.
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=2e-3, atol=1e-3)
