"""Linear-time sequence mixers: one file each; a new file is found automatically.

Files lie here or in a folder of their kind: ``state_space``, ``recurrent``, ``convolution``,
``positional``, ``fast_weights``. A mixer's file is called like the mixer and defines ``MIXER``, a
subclass of :class:`attention.linear.mixer.Mixer`. Files without ``MIXER`` hold what mixers share.
Mixers from outside come by the entry points ``orrery.mixer``, each tried before it is listed. A
file that fails is left out of :func:`names`, is named by :func:`broken` and by :func:`get`, and
stops nothing else.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch
from torch import Tensor

from attention import catalogue
from attention.backends import Explanation
from attention.linear import _contract
from attention.linear.mixer import Mixer, RecurrentState
from attention.parts.outside import MIXERS, from_outside
from attention.spec import mixer_files

__all__ = ["Mixer", "RecurrentState", "build", "explain", "get", "names"]


@functools.cache
def _catalogue() -> dict[str, type[Mixer] | str]:
    """Return each mixer by its name, or the error of a file that makes none."""
    mixers: dict[str, type[Mixer] | str] = {}
    for file, (_, module) in mixer_files(__path__).items():
        try:
            mixer = getattr(importlib.import_module(f"{__name__}.{module}"), "MIXER", None)
            if mixer is None:
                continue
            if not (isinstance(mixer, type) and issubclass(mixer, Mixer)):
                raise ValueError(f"MIXER must be a subclass of Mixer, got {mixer!r}")
            _contract.check_described(mixer)
            if mixer.name != file:
                raise ValueError(f"names its mixer {mixer.name!r}; a file is called like its mixer")
            mixers[file] = mixer
        except Exception as error:  # whatever a file does wrong is said of that file alone
            what = str(error) or type(error).__name__
            mixers[file] = f"attention/linear/{module.replace('.', '/')}.py: {what.splitlines()[0]}"
    others, faults = from_outside(MIXERS, {*catalogue.names(), *mixers}, _contract.check)
    return {**mixers, **others, **faults}


def names() -> tuple[str, ...]:
    """Return the names of all mixers."""
    return tuple(name for name, mixer in _catalogue().items() if not isinstance(mixer, str))


def broken() -> dict[str, str]:
    """Return the error of each file that makes no mixer, by name."""
    return {name: line for name, line in _catalogue().items() if isinstance(line, str)}


def get(name: str) -> type[Mixer]:
    """Return the class of the mixer called ``name``."""
    mixer = _catalogue().get(str(name))
    if mixer is None:
        raise ValueError(f"unknown mixer {name!r}; choose from {', '.join(names())}")
    if isinstance(mixer, str):
        raise ValueError(mixer)
    return mixer


def explain(name: str, q: Tensor, **args: Any) -> Explanation:
    """Say which kernels sum a mixer's chunks for queries [B, H, L, D], and why others do not.

    Where none serves, ``chunks`` are products of matrices in PyTorch; one position is one step of
    the ``recurrence``.

    Raises:
        ValueError: There is no such mixer, or a bad argument.
        TypeError: An argument the mixer does not take.
    """
    mixer = get(name)
    args.pop("chunk", None)
    channels = mixer.channels(q.shape[-1], mixer.checked(args))
    # States are at least float32, whatever the layer's input is.
    one = q.new_empty([1], dtype=torch.promote_types(q.dtype, torch.float32))
    k, v = (
        each.expand(*q.shape[:3], count)
        for each, count in zip((one, q.new_empty([1])), channels, strict=True)
    )
    step = "one position is a step of the recurrence" if q.shape[2] == 1 else None
    reasons = {kernel: step or refusal(k, v) for kernel, refusal in mixer.kernels.items()}
    reasons |= {"chunks": step, "recurrence": None}
    chosen = next(kernel for kernel, why in reasons.items() if why is None)
    return Explanation(
        chosen, {n: why or "not needed" for n, why in reasons.items() if n != chosen}
    )


def build(name: str, *, n_head: int, head_dim: int, **args: Any) -> Mixer:
    """Return the module of a mixer; arguments and errors are those of its class."""
    return get(name)(n_head, head_dim, **args)
