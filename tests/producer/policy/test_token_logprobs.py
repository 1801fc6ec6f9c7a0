"""Log-probs in chunks: the numbers of the plain computation, in bounded memory."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from producer.policy.torch_policy.logprobs import token_logprobs
from tests.support.created_tensors import created_tensors

EPS = torch.finfo(torch.float32).eps
N, D, V = 37, 24, 1300


@pytest.fixture
def layer() -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(D, V, bias=False)


@pytest.fixture
def hidden_ND() -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(4))


@pytest.fixture
def tokens_N() -> Tensor:
    return torch.randint(V, (N,), generator=torch.Generator().manual_seed(5))


def plain(layer: nn.Linear, hidden_ND: Tensor, tokens_N: Tensor, temperature: float) -> Tensor:
    """All logits at once, in float64."""
    logits_NV = hidden_ND.double() @ layer.weight.double().T / temperature
    return torch.log_softmax(logits_NV, dim=-1)[torch.arange(len(tokens_N)), tokens_N]


def logit_rounding(layer: nn.Linear, hidden_ND: Tensor) -> float:
    """Of a logit in float32: D eps sum |term| (Higham 2002, eq. 3.5), of the worst logit."""
    return D * EPS * float((hidden_ND.abs() @ layer.weight.detach().abs().T).max())


@pytest.mark.parametrize("positions_per_chunk", [1, 5, 36, 37, 1000])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_chunks_give_values_and_gradients_of_the_plain_computation(
    layer: nn.Linear,
    hidden_ND: Tensor,
    tokens_N: Tensor,
    positions_per_chunk: int,
    temperature: float,
) -> None:
    weights_N = torch.linspace(-1, 1, N)
    inputs = (hidden_ND.requires_grad_(), layer.weight)
    expected_N = plain(layer, hidden_ND, tokens_N, temperature)
    expected = torch.autograd.grad((expected_N * weights_N).sum(), inputs)
    ours_N = token_logprobs(
        layer,
        hidden_ND,
        tokens_N,
        vocabulary=V,
        temperature=temperature,
        logit_bytes=positions_per_chunk * V * 4,
    )
    ours = torch.autograd.grad((ours_N * weights_N).sum(), inputs)
    of_logits = logit_rounding(layer, hidden_ND.detach()) / temperature
    # A log-prob is a logit less a mean of logits, and has V exponentials' sum in it.
    assert (ours_N - expected_N).abs().max() <= 2 * of_logits + V * EPS
    # Gradients add up (one-hot - softmax) times a weight or a hidden state: of a row those factors
    # add up to at most 2, and each errs by what its logits and its sum of V exponentials err.
    of_factor = 2 * of_logits + V * EPS
    largest = float(layer.weight.detach().abs().max()), float(hidden_ND.detach().abs().max())
    bounds = (
        2 / temperature * largest[0] * (V * EPS + of_factor),
        N / temperature * largest[1] * (N * EPS + of_factor),
    )
    for gradient, oracle, bound in zip(ours, expected, bounds, strict=True):
        assert (gradient - oracle).abs().max() <= bound


def test_what_fits_into_one_chunk_has_the_bits_of_the_plain_computation(
    layer: nn.Linear, hidden_ND: Tensor, tokens_N: Tensor
) -> None:
    ours_N = token_logprobs(layer, hidden_ND, tokens_N, vocabulary=V, temperature=0.7)
    logprobs_NV = torch.log_softmax(layer(hidden_ND) / 0.7, dim=-1)
    assert torch.equal(ours_N, logprobs_NV[torch.arange(N), tokens_N])


@pytest.mark.parametrize("backward", [False, True])
def test_no_tensor_holds_the_logits_of_more_positions_than_a_chunk(
    layer: nn.Linear, hidden_ND: Tensor, tokens_N: Tensor, *, backward: bool
) -> None:
    layer.requires_grad_(requires_grad=False)
    hidden_ND.requires_grad_()

    def compute(logit_bytes: int) -> int:
        with created_tensors() as created:
            logprobs_N = token_logprobs(
                layer,
                hidden_ND,
                tokens_N,
                vocabulary=V,
                temperature=1.0,
                logit_bytes=logit_bytes,
            )
            if backward:
                torch.autograd.backward(logprobs_N.sum())
        return created.largest(torch.float32)

    assert compute(3 * V * 4) <= max(3 * V, D * V)
    assert compute(N * V * 4) == N * V


def test_between_forward_and_backward_no_logits_are_kept(
    layer: nn.Linear, hidden_ND: Tensor, tokens_N: Tensor
) -> None:
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    def unpack(tensor: Tensor) -> Tensor:
        return tensor

    hidden_ND.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, unpack):
        token_logprobs(layer, hidden_ND, tokens_N, vocabulary=V, temperature=1.0, logit_bytes=V * 4)
    assert max(kept, default=0) < V


def test_half_precision_logits_become_float32_before_the_softmax(
    hidden_ND: Tensor, tokens_N: Tensor
) -> None:
    layer: Callable[[Tensor], Tensor] = nn.Linear(D, V, bias=False, dtype=torch.bfloat16)
    half_ND = hidden_ND.bfloat16()
    ours_N = token_logprobs(
        layer, half_ND, tokens_N, vocabulary=V, temperature=1.0, logit_bytes=N * V * 4
    )
    assert ours_N.dtype == torch.float32
    expected_NV = torch.log_softmax(layer(half_ND).float(), dim=-1)
    assert torch.equal(ours_N, expected_NV[torch.arange(N), tokens_N])
