"""Rows that have ended are not computed further, and the others are answered as before."""

from pathlib import Path

import pytest
import torch

from producer.policy.torch_policy import sampling
from producer.policy.torch_policy.forward import (
    EpisodeCaches,
    NetworkInput,
    Segment,
    WorkingCache,
    hidden_states,
)
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefill import prefill
from producer.policy.torch_policy.sampling import (
    ComputedRows,
    DecodedBatch,
    SamplingParameters,
    decode,
)
from tests.support.checkpoints import write_checkpoint
from tests.support.rounding import rounding_of_forward

LIMITS = (2, 9, 1, 5, 3, 9, 2, 1)
"""Tokens of each row."""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Samples no token that ends a row: each ends at its limit."""
    monkeypatch.setattr(Network, "end_tokens", frozenset({-1}))
    write_checkpoint(tmp_path, "llama", tied=True)
    return load_network(str(tmp_path), lora_rank=4, seed=1)


def decoded(network: Network, limits: tuple[int, ...]) -> DecodedBatch:
    caches = EpisodeCaches(network.cache_shape, network.device, network.base.dtype)
    segments = [Segment([5 + number, 7, 11 + number], []) for number in range(len(limits))]
    with torch.no_grad():
        cache = caches.load([None] * len(limits), 3 + max(limits))
        prefilled = prefill(network, cache, segments, [0] * len(limits))
        parameters = [
            SamplingParameters(1.0, limit, seed=number) for number, limit in enumerate(limits)
        ]
        return decode(network, cache, prefilled, parameters)


def computed_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each step of decoding has computed."""
    found = []

    def counting(network: Network, batch: NetworkInput, *rest: object) -> torch.Tensor:
        found.append(len(batch.tokens_BT))
        return hidden_states(network, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(sampling, "hidden_states", counting)
    return found


def test_a_large_network_leaves_out_rows_once_half_of_those_computed_have_ended(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = computed_rows(monkeypatch)
    everything = decoded(network, LIMITS)
    assert whole == [8] * 8
    monkeypatch.setattr(sampling, "SMALL_WEIGHTS", 0)
    whole.clear()
    fewer = decoded(network, LIMITS)
    # After the first token 6 of 8 go on, after the second 4, the third 3, the fifth 2.
    assert whole == [8, 4, 4, 4, 2, 2, 2, 2]
    for one, other, limit in zip(fewer.completions, everything.completions, LIMITS, strict=True):
        assert one.tokens == other.tokens
        assert len(one.tokens) == limit
        bound = rounding_of_forward(network.base, max(map(abs, other.logprobs)))
        assert one.logprobs == pytest.approx(other.logprobs, rel=0, abs=bound)
    for row, limit in enumerate(LIMITS):
        ours, theirs = (
            batch.cache.kv_B2LHCD[row, ..., : 3 + limit - 1, :] for batch in (fewer, everything)
        )
        bound = rounding_of_forward(network.base, float(theirs.abs().max()))
        assert (ours - theirs).abs().max() <= bound


def test_caches_are_in_their_order_again_whatever_was_left_out_when() -> None:
    cache = WorkingCache(torch.arange(6.0)[:, None, None, None, None, None].clone())
    computed = ComputedRows(cache, 6)
    computed.keep(torch.tensor([False, True, False, True, True, False]))
    assert computed.rows_B.tolist() == [1, 3, 4]
    assert computed.cache.kv_B2LHCD.flatten().tolist() == [1, 3, 4]
    computed.keep(torch.tensor([False, False, False, False, True, False]))
    assert computed.rows_B.tolist() == [4]
    assert computed.cache.kv_B2LHCD.flatten().tolist() == [4]
    computed.put_back()
    assert cache.kv_B2LHCD.flatten().tolist() == [0, 1, 2, 3, 4, 5]
