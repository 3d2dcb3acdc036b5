"""Commands of ``python -m symreg``: each module has a ``main``, of the parsed options."""
