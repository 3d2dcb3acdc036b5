"""Formula strings: their grammar, values and algebra, and the verdict on the law they state.

:mod:`~symreg.formula.evaluation` computes values and needs numpy alone;
:mod:`~symreg.formula.parsing` makes sympy expressions, :mod:`~symreg.formula.symbolic` compares
them, and :mod:`~symreg.formula.score` judges.
"""
