"""HGRN2: h_t = diag(f_t) h_{t-1} + (1 - f_t) i_t^T, y_t = o_t h_t."""

import pytest
import torch
from torch.nn.functional import silu

from attention import linear
from tests.attention.linear.published import built, cases, check, check_extremes


def published(mixer, x):
    """Loop over sequences, heads and positions."""
    bound, outputs = mixer.lower_bound, []
    for sequence in x:
        heads = []
        for h in range(mixer.n_head):
            part, state, rows = slice(4 * h, 4 * h + 4), x.new_zeros(4, 4), []
            for token in sequence:
                forget = torch.sigmoid(mixer.forget.weight[part] @ token)
                forget = bound + (1 - bound) * forget
                written = torch.outer(1 - forget, mixer.value.weight[part] @ token)
                state = torch.diag(forget) @ state + written
                rows.append(silu(mixer.query.weight[part] @ token) @ state)
            heads.append(torch.stack(rows))
        y = torch.cat(heads, dim=-1)
        y = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.norm.weight
        outputs.append(y @ mixer.project.weight.T)
    return torch.stack(outputs)


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("hgrn2", published, length, seen, lower_bound=0.7 if length == 33 else 0.0)


@pytest.mark.parametrize("lower_bound", [0.0, 0.01])
def test_gates_near_0_and_1(lower_bound):
    def extreme(mixer, sign):
        mixer.forget.weight.fill_(sign * 30.0)

    check_extremes(built("hgrn2", lower_bound=lower_bound).float(), extreme)


@pytest.mark.parametrize("bound", [-0.1, 1.0, float("nan"), "high", True, False])
def test_bad_lower_bound_is_refused(bound):
    with pytest.raises(ValueError, match=r"lower_bound of hgrn2 must be in \[0, 1\)"):
        linear.build("hgrn2", n_head=2, head_dim=4, lower_bound=bound)
