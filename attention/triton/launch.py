"""Launches of the kernels with little work on the host.

To find the binary of a launch, Triton looks at each argument and writes down what it saw: 15 to 20
microseconds a kernel, and LSSAR has six in a step. Short sequences are done sooner than that. So a
binary that Triton found is kept by what distinguishes it, and launched again directly.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from attention.triton.primitives import INTERPRETED

ALIGNED = 16
"""Alignment in bytes: Triton has a wider load for tensors that start at a multiple of it, and for
whole numbers that are one."""
WIDE = 2**31
"""Least whole number that is passed with 64 bits."""


class Launcher:
    """A kernel with its compile-time choices; one for each GPU, whose binaries it keeps.

    Args:
        kernel: A ``triton.jit`` function whose ``constexpr`` parameters come last.
        choices: Values of these parameters; others are left out.
        options: ``num_warps`` and ``num_stages``.
    """

    def __init__(self, kernel: Any, choices: Mapping[str, Any], options: Mapping[str, int]) -> None:
        self.kernel = kernel
        names = frozenset(kernel.arg_names)
        self.choices = {name: value for name, value in choices.items() if name in names}
        self.options = options
        if INTERPRETED:
            return
        self.exempt = [bool(parameter.do_not_specialize) for parameter in kernel.params]
        constants = [parameter.name for parameter in kernel.params if parameter.is_constexpr]
        self.constants = [self.choices[name] for name in constants]
        self.binaries: dict[tuple[object, ...], Any] = {}

    def __call__(self, grid: tuple[int, int, int], *arguments: Any) -> None:
        """Launch the kernel, on the current device and stream."""
        if INTERPRETED:
            self.kernel[grid](*arguments, **self.choices, **self.options)
            return
        key = tuple(map(_kind, arguments, self.exempt))
        binary = self.binaries.get(key)
        if binary is None:
            built = self.kernel[grid](*arguments, **self.choices, **self.options)
            # Of compilers that answer before they are done, what will be built.
            self.binaries[key] = built.result() if hasattr(built, "result") else built
        else:
            binary[grid](*arguments, *self.constants)


@functools.cache
def launcher(
    kernel: Any, device: int | None, *, num_warps: int, num_stages: int, **choices: Any
) -> Launcher:
    """Return the launcher of a kernel and its choices on a GPU, with its binaries."""
    return Launcher(kernel, choices, {"num_warps": num_warps, "num_stages": num_stages})


def _kind(argument: Any, exempt: bool) -> object:
    """Return the properties of an argument that Triton's binary depends on."""
    if isinstance(argument, Tensor):
        return argument.dtype, argument.data_ptr() % ALIGNED == 0
    if isinstance(argument, int):
        wide = argument >= WIDE
        return wide if exempt else (wide, argument == 1, argument % ALIGNED == 0)
    return type(argument)  # None, a float or a tuple of floats: their values change nothing
