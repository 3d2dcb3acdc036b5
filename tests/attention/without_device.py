"""The path from a call to compiled kernels, with a driver that has no device.

Neither the interpreter nor ``aot`` binds arguments as a launch does: sizes of 1, None, unaligned
storage, what is compiled again for which shape. Run as a program, outside the interpreter, it
calls the kernels as a GPU's user would and compiles them for one; nothing is launched. It prints
a JSON object of each call's launches: the kernel's name and a number for its binary.
"""

import json
import sys

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from attention import get
from attention.linear import _zeros_triton
from attention.linear._zeros_forms import ScanState
from attention.positions import rotation
from attention.triton import backend, passes, rope, tiles
from attention.triton.launch import Launcher

ARCHITECTURE = 90


class NoDevice:
    """What Triton asks of a driver until it launches."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", ARCHITECTURE, 32)


def pretend(tile=None):
    """Bind and compile on every launch, and return the list that launches are added to.

    Args:
        tile: The tile of all kernels; None for the shipped ones.
    """
    triton.runtime.driver.set_active(NoDevice())
    launches, binaries, run, launch = [], {}, JITFunction.run, Launcher.__call__

    def bind(self, *arguments, grid, warmup, **options):
        assert all(isinstance(n, int) and n > 0 for n in grid)
        built = run(self, *arguments, grid=grid, warmup=True, **options)
        if not warmup and not listing:
            launches.append((self.fn.__name__, binaries.setdefault(id(built), len(binaries))))
        return built

    def again(binary, grid):
        """What a launcher kept is what Triton would find, and takes all its parameters."""
        return lambda *arguments: again_launched.append((binary, len(arguments)))

    def listed(self, grid, *arguments):
        again_launched.clear()
        listing.append(self)
        launch(self, grid, *arguments)
        built = bind(
            self.kernel, *arguments, grid=grid, warmup=True, **self.choices, **self.options
        )
        listing.clear()
        number = binaries.setdefault(id(built), len(binaries))
        launches.append((self.kernel.fn.__name__, number))
        assert again_launched in ([], [(built, len(self.kernel.params))])
        assert bool(again_launched) == ((self, number) in known)
        known.add((self, number))

    again_launched, known, listing = [], set(), []
    JITFunction.run, CompiledKernel.__getitem__, Launcher.__call__ = bind, again, listed
    passes.architecture = lambda device: f"sm_{ARCHITECTURE}"
    if tile is not None:
        tiles.tile = lambda *_: tile
    return launches


def call(name, queries, keys=None, *, dtype=torch.bfloat16, batch=1, heads=1, dim=32, offset=0,
         gradient=True, gradients="split", turned=False, **arguments):  # fmt: skip
    """Call a variant forward and, with ``gradient``, backward, on storage that is ``offset``."""
    spec = get(name, **arguments)
    lengths = (queries, keys or queries, keys or queries)
    q, k, v = (
        torch.zeros(batch * heads * n * dim + offset, dtype=dtype)[offset:]
        .view(batch, heads, n, dim)
        .requires_grad_(gradient)
        for n in lengths
    )
    sizes = {"head": heads, "distance": spec.max_distance}
    numbers = {
        parameter: torch.zeros([sizes[d] for d in dimensions], requires_grad=gradient)
        for parameter, dimensions in spec.learned.items()
    }
    angles = rotation(torch.arange(queries), dim, 10_000.0, torch.float32) if turned else None
    out = backend.attend(q, k, v, spec, numbers, angles, gradients)
    assert out.shape == (batch, heads, queries, dim)
    if gradient:
        leaves = [q, k, v, *numbers.values()]
        found = torch.autograd.grad(out.sum(), leaves)
        assert [x.shape for x in found] == [x.shape for x in leaves]


def turn(length, dim=64, heads=2, dtype=torch.bfloat16):
    """Turn heads as a projection leaves them, and back."""
    x = torch.zeros(2, length, heads, dim, dtype=dtype).transpose(1, 2).requires_grad_()
    out = rope.rotated(x, *rotation(torch.arange(length), dim, 10_000.0, torch.float32))
    assert torch.autograd.grad(out.sum(), x)[0].shape == x.shape


def sum_up(length, dim=32, chunk=16):
    """Call the kernels of ZeroS forward and backward."""
    shapes = [(length, dim)] * 3 + [(length,), (length, 3)]
    given = [torch.zeros(1, 2, *shape, requires_grad=True) for shape in shapes]
    q, k, v, s, radial = given
    state = ScanState.empty(k, v)
    out, _ = _zeros_triton.chunked(q, k, v, s, radial, state, chunk)
    assert out.shape == v.shape
    found = torch.autograd.grad(out.sum(), given)
    assert [x.shape for x in found] == [x.shape for x in given]


HALF, SINGLE = torch.float16, torch.float32
CALLS = {
    "lssar of one token": ("lssar", 1),
    "lssar of 16": ("lssar", 16),
    "lssar of more heads": ("lssar", 33, {"batch": 2, "heads": 3}),
    "lssar of one query": ("lssar", 1, 50),
    "lssar without a gradient": ("lssar", 8, {"gradient": False}),
    "lssar of a token of a cache": ("lssar", 1, 50, {"gradient": False}),
    "lssar of the next token": ("lssar", 1, 51, {"gradient": False}),
    "lssar off alignment": ("lssar", 5, {"offset": 1}),
    "lssar with all gradients in one pass": ("lssar", 5, {"gradients": "atomic"}),
    "lssar with exact means": ("lssar", 5, {"gradients": "exact"}),
    "lssar turned on its way": ("lssar", 5, {"turned": True}),
    "lssar of 16 turned on its way": ("lssar", 16, {"turned": True}),
    "lssar in float16": ("lssar", 5, {"dtype": HALF}),
    "lssar in float32": ("lssar", 5, {"dtype": SINGLE}),
    "lssar of a head dim between": ("lssar", 5, {"dim": 24}),
    "lssa": ("lssa", 1),
    "softmax": ("softmax", 1, 7),
    "alibi": ("alibi", 16),
    "sigmoid": ("sigmoid_rowlen", 1),
    "relu": ("relu_li", 1),
    "softmax with re-weighting": ("softmax_reweighted", 5),
    "sigmoid with re-weighting": ("sigmoid_reweighted", 5),
    "elastic": ("elastic", 1),
    "elastic with a fixed offset": ("elastic_fixed", 16, {"length": 16}),
    "lazy with one distance": ("lazy", 9, {"max_distance": 1}),
    "lazy, the last bias beyond": ("lazy", 1, 9, {"beyond": "last"}),
    "a bias alone": ("lazy_no_elastic", 1),
}


def main(names):
    """Make the named calls, all without a name, and print their launches."""
    launches, found = pretend(tiles.Tile(16, 16, 1, 1)), {}
    for length in (1, 16, 33):
        before = len(launches)
        turn(length)
        found[f"rotation of {length}"] = launches[before:]
    for length in (1, 16, 33):
        before = len(launches)
        sum_up(length)
        found[f"zeros of {length}"] = launches[before:]
    for name in names or CALLS:
        *given, last = CALLS[name]
        given, options = (given, last) if isinstance(last, dict) else ((*given, last), {})
        before = len(launches)
        call(*given, **options)
        found[name] = launches[before:]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
