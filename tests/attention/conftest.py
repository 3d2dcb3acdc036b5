import dataclasses
import importlib.util

import pytest
import torch

import tests.with_torch  # noqa: F401  # isort: skip
import attention
from attention import AttnSpec, catalogue

collect_ignore_glob = (
    [] if importlib.util.find_spec("triton") else ["*_aot.py", "*_tune.py", "*_passes.py"]
)
"""Tests that import triton, which exists for Linux only."""

ADDED = AttnSpec("added_by_this_test", phi="softplus", bias="learned", sharpen="reweight", p=2.0)
"""A new variant is one entry: softplus of biased scores, re-weighted."""

CORNERS = (
    AttnSpec("corner_identity", phi="identity", modify="negate"),
    AttnSpec("corner_relu", phi="relu", scale="log_length", normalise="sqrt_half_row"),
    AttnSpec("corner_relu2", phi="relu2", normalise="length", mask="window"),
    AttnSpec("corner_relu6", phi="relu6", normalise="none", sharpen="elastic"),
    AttnSpec("corner_gelu", phi="gelu", bias="alibi", mask="streaming"),
    AttnSpec("corner_sigmoid", phi="sigmoid", shift="minus_log_length", normalise="none"),
    AttnSpec("corner_mish", phi="mish", scale="cosine", shift="minus_log_row"),
    AttnSpec("corner_sparsemax", normalise="sparsemax", sharpen="elastic_length"),
    AttnSpec("corner_entmax", normalise="entmax15", modify="recentre"),
    AttnSpec("corner_sink", sink=True, bias="learned", beyond="last", sharpen="reweight"),
)
"""With the variants of ``COVER`` they hold every value of every choice of a specification."""

COVER = ("lssar", "lazy", "zeros_sm", "softmax_recentred_l1", *(spec.name for spec in CORNERS))

SMALL = {"length": 20, "window": 5, "sinks": 2, "max_distance": 7}
"""Arguments that matter at a few tokens; a bias for fewer distances than there are."""


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


@pytest.fixture(params=COVER)
def corner(request, monkeypatch):
    """Few variants that between them hold every value of every choice."""
    monkeypatch.setattr(catalogue, "CATALOGUE", (*catalogue.CATALOGUE, *CORNERS))
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
