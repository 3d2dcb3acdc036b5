import copy
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import attention
from attention import attend, build
from attention.parts.cache import KeyValueCache
from attention.positions import rope

ARGUMENTS = {"length": 20, "window": 5, "sinks": 2, "max_distance": 7}


def inputs(length=12, width=16, batch=2, seed=5):
    return torch.randn(batch, length, width, generator=torch.Generator().manual_seed(seed))


def arguments_of(name, **changes):
    takes = attention.get(name).arguments
    return {key: value for key, value in {**ARGUMENTS, **changes}.items() if key in takes}


def module_of(name, n_head=2, head_dim=8, seed=0, **changes):
    """Build a variant with random learned numbers; changes the variant does not take are left."""
    layer = {key: changes.pop(key) for key in list(changes) if key not in LAYERLESS}
    torch.manual_seed(seed)
    module = build(name, n_head=n_head, head_dim=head_dim, **layer, **arguments_of(name, **changes))
    with torch.no_grad():
        for parameter in module.learned.values():
            parameter += 0.1 * torch.randn_like(parameter)
    return module


LAYERLESS = ("p", "g", "gamma", "tau", "length", "window", "sinks", "max_distance", "beyond")


def twin(module, name, **arguments):
    """Return another variant with the same parameters."""
    other = build(name, n_head=module.n_head, head_dim=module.head_dim, **arguments)
    other.load_state_dict(module.state_dict())
    return other


def test_module_projects_rotates_attends_and_projects(name):
    module, x = module_of(name), inputs()

    def heads(layer):
        return torch.stack([(x @ layer.weight.T)[..., 8 * h : 8 * h + 8] for h in range(2)], dim=1)

    q, k, v = heads(module.query), heads(module.key), heads(module.value)
    if name != "alibi":
        q, k = rope(q, torch.arange(12)), rope(k, torch.arange(12))
    parameters = dict(module.learned)
    if module.spec.gated:
        gates = 1 / (1 + torch.exp(-(x @ module.gates.weight.T)))
        parameters["gates"] = torch.stack([gates[..., 2 * h : 2 * h + 2] for h in range(2)], dim=1)
    mixed = attend(q, k, v, name, parameters=parameters, **arguments_of(name))
    expected = torch.cat([mixed[:, 0], mixed[:, 1]], dim=-1) @ module.project.weight.T
    torch.testing.assert_close(module(x), expected, rtol=0, atol=1e-5)


def test_learned_numbers_are_where_the_specification_says(name):
    module = build(name, n_head=4, head_dim=6, **arguments_of(name, tau=0.3))
    spec = module.spec
    shapes = {"tau": (4,), "sink": (4,), "bias": (4, 7)}
    assert {key: tuple(x.shape) for key, x in module.learned.items()} == {
        key: shapes[key] for key in spec.learned
    }
    more = sum(x.numel() for x in module.learned.values()) + spec.gated * 24 * 8
    assert sum(p.numel() for p in module.parameters()) == 4 * 24 * 24 + more
    assert isinstance(module, nn.Module)
    starts = {"tau": 0.3, "sink": 0.0, "bias": 0.0}
    for key, x in module.learned.items():
        assert torch.all(x == starts[key])
        assert x.requires_grad


def test_every_parameter_learns(name):
    module = module_of(name, p=1, tau=-0.5)
    module(inputs()).square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().max() > 0


def test_decoding_with_a_cache_is_the_full_forward(name):
    module, x = module_of(name, n_kv_head=1), inputs()
    with torch.no_grad():
        whole = module(x)
        for steps in ([1] * 12, [5, 1, 1, 4, 1], [12], [1, 11]):
            cache, parts = KeyValueCache(), []
            assert cache.length == 0
            for part in x.split(steps, dim=1):
                parts.append(module(part, cache))
                assert cache.length == sum(part.shape[1] for part in parts)
            # A product of few rows is another kernel of the processor's: 8.2e-7 in float32.
            torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=4e-6)


def test_a_step_copies_the_new_positions_alone():
    k, v = torch.randn(2, 1, 2, 40, 4)
    cache = KeyValueCache()
    places = []
    for i in range(40):
        found = cache.append(k[:, :, i : i + 1], v[:, :, i : i + 1])
        places.append(found[0].data_ptr())
        for x, all_of_it in zip(found, (k, v), strict=True):
            assert torch.equal(x, all_of_it[:, :, : i + 1])
    assert len(set(places[32:])) == 1
    assert len(set(places)) <= 7  # 1, 2, 4, ..., 64


def test_an_empty_piece_may_come_first():
    module, x = module_of("softmax"), inputs()
    cache = module.new_cache()
    parts = [module(part, cache) for part in (x[:, :0], x[:, :5], x[:, 5:])]
    torch.testing.assert_close(torch.cat(parts, dim=1), module(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("held", "given"), [(4, 1), (1, 4)])
def test_a_cache_of_other_sequences_is_refused(held, given):
    module = module_of("softmax")
    with torch.no_grad():
        cache = module.new_cache()
        module(inputs(3, batch=held), cache)
        module(inputs(1, batch=held), cache)
        with pytest.raises(ValueError, match=rf"cache holds {held} sequences, x has {given}: use"):
            module(inputs(1, batch=given), cache)


def test_gradients_of_queries_alone_survive_decoding():
    module, x = module_of("softmax").double(), inputs().double()
    module.key.requires_grad_(False)
    module.value.requires_grad_(False)
    cache = module.new_cache()
    stepped = torch.cat([module(part, cache) for part in x.split(1, dim=1)], dim=1)
    found, wanted = (
        torch.autograd.grad(out.square().sum(), module.query.weight) for out in (stepped, module(x))
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["lssar", "softmax"])
def test_decoding_carries_gradients_and_may_stop_to(name):
    module, x = module_of(name, n_kv_head=1).double(), inputs().double()
    cache, parts = module.new_cache(), []
    for i, part in enumerate(x.split(3, dim=1)):
        with torch.set_grad_enabled(i < 2):
            parts.append(module(part, cache))
    torch.testing.assert_close(torch.cat(parts, dim=1), module(x), rtol=0, atol=1e-12)
    leaves = module.key.weight, module.query.weight
    whole = torch.autograd.grad(module(x)[:, :6].square().sum(), leaves)
    stepped = torch.autograd.grad(torch.cat(parts[:2], dim=1).square().sum(), leaves)
    torch.testing.assert_close(stepped, whole, rtol=0, atol=1e-12)


def test_cached_directions_lose_nothing_to_half_precision():
    module, x = module_of("lssar", p=3).bfloat16(), inputs().bfloat16()
    with torch.no_grad():
        cache = module.new_cache()
        parts = [module(part, cache) for part in x.split(1, dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), module(x), rtol=0, atol=4e-3)


def test_shared_keys_and_values_are_repeated_ones(name):
    shared = module_of(name, n_head=4, n_kv_head=2)
    assert shared.key.weight.shape == shared.value.weight.shape == (16, 32)
    full = module_of(name, n_head=4)
    state = shared.state_dict()
    for key in ("key.weight", "value.weight"):
        heads = state[key].unflatten(0, (2, 8))
        state[key] = torch.stack([heads[h // 2] for h in range(4)]).flatten(0, 1)
    full.load_state_dict(state)
    x = inputs(width=32)
    torch.testing.assert_close(shared(x), full(x), rtol=0, atol=1e-6)


def test_inputs_of_another_shape_are_refused(name):
    module, x = module_of(name), inputs()
    for wrong, shape in ((x[0], "12, 16"), (x[None], "1, 2, 12, 16"), (x[..., :8], "2, 12, 8")):
        for call in (module, module.weights):
            with pytest.raises(ValueError, match=rf"x must be \[B, L, 16\], got \[{shape}\]"):
                call(wrong)


def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    x = inputs()
    first, second = module_of(name, p=3), module_of(name, p=3, seed=1)
    first.set_sharpen(False)
    assert not torch.equal(first(x), second(x))
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert second.spec == first.spec
    assert torch.equal(first(x), second(x))
    assert first(x).shape == x.shape
    assert repr(name) in repr(first)
    for other in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert torch.equal(other(x), first(x))
        other.load_state_dict({**first.state_dict(), "sharpen": torch.tensor(True)})
        assert other._sharpen
        assert not first._sharpen


@pytest.mark.parametrize(("of", "first"), [("lssar", "lssa"), ("softmax_reweighted", "softmax")])
def test_switch_off_leaves_the_first_stage(of, first):
    module, x = build(of, n_head=2, head_dim=8, p=3), inputs()
    plain = twin(module, first)
    assert bool(module.sharpen)
    assert not torch.allclose(module(x), plain(x), atol=1e-4)
    module.set_sharpen(False)
    torch.testing.assert_close(module(x), plain(x), rtol=0, atol=1e-6)
    module.set_sharpen(True)
    assert not torch.allclose(module(x), plain(x), atol=1e-4)


def test_switch_matters_to_reweighted_variants_alone(name):
    module, x = module_of(name, p=3), inputs()
    on = module(x)
    module.set_sharpen(False)
    assert torch.equal(module(x), on) is not module.spec.reweights


def test_ramp_raises_the_exponent(reweighted):
    module, x = module_of(reweighted, p=9), inputs()
    for fraction, p in ((1.0, 9), (0.5, 5), (0.25, 3)):
        module.set_sharpen(fraction)
        by_hand = module_of(reweighted, p=p)
        assert torch.equal(module(x), by_hand(x))
        assert torch.equal(module.weights(x), by_hand.weights(x))
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=rf"sharpen must be in \[0, 1\], got {wrong}"):
            module.set_sharpen(wrong)
    assert float(module.sharpen) == 0.25


def test_module_gives_its_weights(name):
    module, x = module_of(name), inputs()
    matrix = module.weights(x)
    assert matrix.shape == (2, 2, 12, 12)
    v = (x @ module.value.weight.T).unflatten(-1, (2, 8)).transpose(1, 2)
    expected = (matrix @ v).transpose(1, 2).flatten(-2) @ module.project.weight.T
    torch.testing.assert_close(module(x), expected, rtol=0, atol=1e-5)


def test_arguments_and_backend_reach_the_call():
    module, x = build("lssar", n_head=2, head_dim=8, p=1), inputs()
    assert not torch.allclose(module(x), twin(module, "lssar", p=30)(x), atol=1e-4)
    forced = build("lssar", n_head=2, head_dim=8, backend="sdpa")
    with pytest.raises(ValueError, match="does not serve lssar"):
        forced(x)


def test_order_of_tokens_matters_because_of_rope():
    x = inputs(length=6)
    swapped = x[:, [1, 0, 2, 3, 4, 5]]
    module = module_of("softmax")
    assert not torch.allclose(module(x)[:, 5], module(swapped)[:, 5], atol=1e-5)
    without = module_of("softmax", rope_base=None)
    torch.testing.assert_close(without(x)[:, 5], without(swapped)[:, 5], rtol=0, atol=1e-6)


def test_the_base_grows_beyond_the_trained_length_alone():
    x = inputs(length=12)
    plain = module_of("softmax", rope_base=100.0)
    grown = module_of("softmax", rope_base=100.0, ntk_train_length=6)
    assert torch.equal(plain(x[:, :6]), grown(x[:, :6]))
    assert not torch.allclose(plain(x), grown(x), atol=1e-4)
    by_hand = module_of("softmax", rope_base=100.0 * 2 ** (8 / 6))
    torch.testing.assert_close(grown(x), by_hand(x), rtol=0, atol=1e-6)
    # Each step of decoding is the last row of the whole up to it, with the base of that length.
    cache = KeyValueCache()
    for i in range(12):
        step = grown(x[:, i : i + 1], cache)[:, 0]
        torch.testing.assert_close(step, grown(x[:, : i + 1])[:, -1], rtol=0, atol=1e-6)


def test_bad_modules_are_refused_when_built():
    for message, arguments in (
        ("even head_dim, got 7", {"head_dim": 7}),
        ("n_head 4 is not a multiple of n_kv_head 3", {"n_kv_head": 3}),
        ("n_kv_head must be at least 1, got 0", {"n_kv_head": 0}),
        ("n_head 4 is not a multiple of n_kv_head 8", {"n_kv_head": 8}),
        ("ntk_train_length must be at least 1, got 0", {"ntk_train_length": 0}),
        ("ntk_train_length must be a whole number, got 4.5", {"ntk_train_length": 4.5}),
        ("ntk_train_length must be", {"rope_base": None, "ntk_train_length": -3}),
        ("causal must be true or false, got 'False'", {"causal": "False"}),
        ("causal must be true or false, got None", {"causal": None}),
        ("head_dim > 2, got 2", {"ntk_train_length": 8, "head_dim": 2}),
        ("n_head must be at least 1, got 0", {"n_head": 0}),
        ("n_head must be a whole number, got 2.0", {"n_head": 2.0}),
        ("n_head must be a whole number, got True", {"n_head": True}),
        ("head_dim must be at least 1, got -4", {"head_dim": -4}),
        ("rope_base of softmax must be a positive number, got 0", {"rope_base": 0}),
        ("rope_base of softmax must be a positive number, got -1", {"rope_base": -1}),
        ("rope_base of softmax must be a positive number, got inf", {"rope_base": math.inf}),
        ("unknown backend 'cuda'; choose from auto, ", {"backend": "cuda"}),
    ):
        with pytest.raises(ValueError, match=message):
            build("softmax", **{"n_head": 4, "head_dim": 8, **arguments})
    with pytest.raises(TypeError, match=r"softmax has no p; lssar, .* take one"):
        build("softmax", n_head=2, head_dim=8, p=3)
    with pytest.raises(ValueError, match="log_scaled needs the sequence length: length="):
        build("log_scaled", n_head=2, head_dim=8)


def test_a_refused_distance_is_refused_in_decoding_too():
    module = module_of("lazy", max_distance=4, beyond="refuse")
    cache = KeyValueCache()
    for _ in range(4):
        module(inputs(length=1), cache)
    with pytest.raises(ValueError, match="set beyond to zero or last, or raise max_distance"):
        module(inputs(length=1), cache)


@pytest.mark.parametrize("name", ["softmax", "lssar", "gla"])
def test_a_copied_cache_is_continued_apart(name):
    torch.manual_seed(0)
    module, x = build(name, n_head=2, head_dim=8).eval(), inputs(length=14)
    one, two = x, torch.cat([x[:, :6], inputs(length=8, seed=6)], dim=1)
    with torch.no_grad():
        cache = module.new_cache()
        module(x[:, :6], cache)
        other = copy.copy(cache)
        for step in range(6, 14):
            for whole, kept in ((one, cache), (two, other)):
                told = module(whole[:, step : step + 1], kept)
                torch.testing.assert_close(told[:, 0], module(whole[:, : step + 1])[:, -1])


@pytest.mark.parametrize("name", ["lazy", "elastic", "sink_bias", "zeros_sm"])
def test_a_cached_rollout_trains_learned_numbers_alone(name):
    module, x = module_of(name), inputs(length=8)
    for label, parameter in module.named_parameters():
        parameter.requires_grad_("learned" in label or "gates" in label)
    trained = [x for x in module.parameters() if x.requires_grad]
    assert trained
    cache = module.new_cache()
    steps = torch.cat([module(x[:, t : t + 1], cache) for t in range(8)], dim=1)
    found = torch.autograd.grad(steps.square().sum(), trained)
    wanted = torch.autograd.grad(module(x).square().sum(), trained)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["lssar", "elastic", "relu_li", "zeros_sm", "gla", "rwkv7", "lru"])
def test_shapes_are_told_on_the_meta_device(name):
    with torch.device("meta"):
        module = build(name, n_head=2, head_dim=8)
        assert module(torch.empty(2, 12, 16)).shape == (2, 12, 16)


@pytest.mark.parametrize("name", ["sparsemax", "entmax", "lssar"])
def test_a_score_that_is_no_number_is_passed_on(name):
    q, k, v = (torch.randn(1, 1, 5, 4) for _ in range(3))
    q[0, 0, 2] = math.nan
    out = attend(q, k, v, name)
    assert out[0, 0, 2].isnan().all()
    assert not out[0, 0, [0, 1, 3, 4]].isnan().any()


@pytest.mark.parametrize("number", [np.int64(15), np.float32(15), 15])
def test_numbers_of_numpy_are_numbers(number):
    q, k, v = (torch.randn(1, 2, 9, 4) for _ in range(3))
    assert torch.equal(attend(q, k, v, "lssar", p=number), attend(q, k, v, "lssar", p=15.0))
    assert attention.get("elastic", tau=number).tau == 15
