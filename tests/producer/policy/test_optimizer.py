"""An optimiser step changes weights by a finite gradient alone."""

import math

import pytest
import torch
from torch import nn

from producer.errors import CuaTrainError
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_a_gradient_that_is_not_finite_is_refused_and_changes_no_weight(
    bad: float, max_norm: float | None
) -> None:
    weights = [nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([3.0]))]
    optimizer = make_optimizer(weights)
    weights[0].grad = torch.tensor([0.5, bad])
    weights[1].grad = torch.tensor([0.5])
    with pytest.raises(CuaTrainError, match=f"the update's gradient is {bad}, which is not finite"):
        optimizer_step(optimizer, 0.1, max_norm)
    assert [weight.tolist() for weight in weights] == [[1.0, 2.0], [3.0]]
    assert not optimizer.state


def test_the_norm_is_that_before_clipping_and_the_first_step_is_the_learning_rate() -> None:
    """Adam's first step is the learning rate against the gradient's sign, whatever its size."""
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = make_optimizer([weight])
    weight.grad = torch.tensor([3.0, -4.0])
    assert optimizer_step(optimizer, 0.25, 1.0) == 5.0
    assert weight.tolist() == pytest.approx([0.75, 2.25])
    assert math.hypot(*weight.grad.tolist()) == pytest.approx(1.0, abs=1e-5)
