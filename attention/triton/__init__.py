"""The two-stage variants as one family of fused Triton kernels: exact, O(L) memory, with gradients.

``plan`` turns a specification into the kernels' choices, ``stats``, ``forward`` and ``backward``
are the kernels, ``primitives`` what they share, ``passes`` launches them by ``launch``, ``ops``
is their registration with torch, ``tiles`` the tile sizes per architecture, ``rope`` turns heads
before them. In ``tools``, ``aot`` checks that they build for a GPU that is not
there, and ``tune`` searches for better tiles on one that is.
"""
