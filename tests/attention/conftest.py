import dataclasses

import pytest
import torch

import attention
from attention import AttnSpec, catalogue

ADDED = AttnSpec("added_by_this_test", phi="softplus", bias="learned", sharpen="reweight", p=2.0)
"""A new variant is one entry: softplus of biased scores, re-weighted."""

SMALL = {"length": 20, "window": 5, "sinks": 2, "max_distance": 7}
"""Arguments that matter at a few tokens; a bias for fewer distances than there are."""


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def added(monkeypatch):
    """Register the new variant."""
    monkeypatch.setattr(catalogue, "CATALOGUE", (*catalogue.CATALOGUE, ADDED))
    return ADDED


@pytest.fixture(params=[*attention.names(), ADDED.name])
def name(request):
    """Every variant of the catalogue, and one that is registered here."""
    if request.param == ADDED.name:
        request.getfixturevalue("added")
    return request.param


@pytest.fixture(
    params=[*(n for n in attention.names() if attention.get(n).reweights), ADDED.name],
)
def reweighted(request):
    if request.param == ADDED.name:
        request.getfixturevalue("added")
    return request.param


@pytest.fixture
def tensors():
    """Random q, k, v [B, H, L, D]; queries are the last Lq positions."""

    def make(length, *, seed=0, batch=2, heads=3, dim=8, queries=None, dtype=torch.float64):
        generator = torch.Generator().manual_seed(seed)
        shapes = [(batch, heads, queries or length, dim), *2 * [(batch, heads, length, dim)]]
        return tuple(
            torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in shapes
        )

    return make


@dataclasses.dataclass(frozen=True)
class Variant:
    """A variant with arguments and learned numbers for some queries."""

    spec: AttnSpec
    arguments: dict
    parameters: dict

    @property
    def given(self):
        return {"parameters": self.parameters, **self.arguments}

    def rows(self, rows):
        """Return what the call with these queries alone takes."""
        part = dict(self.parameters)
        if "gates" in part:
            part["gates"] = part["gates"][:, :, rows]
        return {"parameters": part, **self.arguments}


@pytest.fixture
def variant():
    """Give a variant its arguments and random learned numbers."""

    def make(name, q, tau=None, **changes):
        takes = attention.get(name).arguments
        arguments = {key: value for key, value in {**SMALL, **changes}.items() if key in takes}
        spec = attention.get(name, **arguments)
        generator = torch.Generator().manual_seed(7)
        heads = q.shape[1]

        def random(*shape):
            return torch.randn(shape, generator=generator, dtype=torch.float64).to(q.dtype)

        parameters = {}
        for key, dimensions in spec.learned.items():
            if key == "tau":  # in units of the offset: shares of a weight near 1 / 10
                size = {"elastic_row": 1.0, "elastic_length": 2.0, "elastic": 0.1}[spec.sharpen]
                low, high = (0.4, 1.3) if tau is None else tau
                parameters[key] = torch.linspace(low, high, heads).to(q.dtype) * size
            else:
                sizes = {"head": heads, "distance": spec.max_distance}
                parameters[key] = random(*(sizes[d] for d in dimensions))
        if spec.gated:
            parameters["gates"] = torch.sigmoid(random(*q.shape[:3], 2))
        return Variant(spec, arguments, parameters)

    return make
