"""A pass that does not fit into the device's memory is divided; what cannot be is an error.

No accelerator is needed: the network raises what torch raises on one that is full.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from producer.errors import CuaTrainError
from producer.policy.learner import Trajectory
from producer.policy.torch_policy import update_passes
from producer.policy.torch_policy.device_memory import take_peak_bytes
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.logprobs import CompletionStates, completion_states
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefix_sharing import TokenRow, num_padded_tokens
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.training.metrics import _memory_metrics
from tests.support.turns import past_turn
from tests.support.update_settings import changed

from .conftest import SETTINGS, Play, are_equal, make_request, make_screen, trajectory, weights

FULL = "CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Padded tokens of every pass that is tried; `limits` says which of them fit."""
    tried: list[int] = []

    def counted(
        network: Network, encoder: ScreenEncoder, rows: Sequence[TokenRow]
    ) -> CompletionStates:
        tried.append(num_padded_tokens(network, rows))
        return completion_states(network, encoder, rows)

    monkeypatch.setattr(update_passes, "completion_states", counted)
    return tried


def fill_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """From now on a pass of more than `most` padded tokens does not fit."""
    tried: list[int] = []

    def limited(
        network: Network, encoder: ScreenEncoder, rows: Sequence[TokenRow]
    ) -> CompletionStates:
        tried.append(num_padded_tokens(network, rows))
        if tried[-1] > most:
            raise torch.OutOfMemoryError(FULL)
        return completion_states(network, encoder, rows)

    monkeypatch.setattr(update_passes, "completion_states", limited)
    return tried


def batch_of(play: Play, num: int) -> list[Trajectory]:
    return [trajectory(play(episode, 2), (-1.0) ** episode) for episode in range(1, num + 1)]


@pytest.mark.parametrize("aggregation", ["sum", "token_mean", "sequence_mean"])
def test_an_update_in_halves_is_the_update_of_the_whole(
    policy: InProcessPolicy,
    play: Play,
    passes: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    aggregation: str,
) -> None:
    batch = batch_of(play, 8)
    settings = changed(
        SETTINGS, learning_rate=0.0, loss_aggregation=aggregation, kl_penalty_coef=0.1
    )
    whole = policy.update(batch, settings)
    largest = max(passes)
    tried = fill_memory(monkeypatch, largest // 2)
    with caplog.at_level(logging.WARNING):
        halved = policy.update(batch, settings)
    assert halved.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-5)
    assert halved.loss == pytest.approx(whole.loss, rel=1e-5, abs=1e-7)
    assert halved.kl_sample_train_v1 == pytest.approx(whole.kl_sample_train_v1, abs=1e-7)
    assert halved.num_measured_tokens == whole.num_measured_tokens
    too_large = [size for size in tried if size > largest // 2]
    assert len(too_large) == 1, "the size that did not fit is not tried again"
    warnings = [record for record in caplog.records if "out of memory" in record.message]
    assert len(warnings) == 1
    assert f"{largest:,} tokens" in warnings[0].message


def test_a_row_that_does_not_fit_is_halved_and_goes_on_sharing(
    policy: InProcessPolicy, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = make_screen(1)
    completions = policy.sample([make_request(seed, screen) for seed in range(8)])
    turns = [past_turn(screen, item.text, item.tokens) for item in completions]
    batch = [trajectory([turn], (-1.0) ** number) for number, turn in enumerate(turns)]
    whole = policy.update(batch, changed(SETTINGS, learning_rate=0.0))
    (size,) = passes
    tried = fill_memory(monkeypatch, size - 1)
    halved = policy.update(batch, changed(SETTINGS, learning_rate=0.0))
    assert tried[0] == size
    assert len(tried) == 3
    assert halved.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-5)


def test_a_sequence_that_does_not_fit_alone_ends_the_step_with_the_settings_that_help(
    policy: InProcessPolicy, network: Network, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, before = batch_of(play, 2), weights(network)
    fill_memory(monkeypatch, 1)
    with pytest.raises(CuaTrainError, match="gradient_checkpointing on, dtype bfloat16") as raised:
        policy.update(batch, SETTINGS)
    assert FULL in str(raised.value)
    assert are_equal(weights(network), before)


def test_sampling_that_does_not_fit_names_how_many_rollouts_it_was_for(
    policy: InProcessPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(*_: Any) -> None:
        raise torch.OutOfMemoryError(FULL)

    monkeypatch.setattr(policy._decoder, "decode", decode)
    with pytest.raises(CuaTrainError, match=r"for 2 rollouts at once .* max_concurrent_rollouts"):
        policy.sample([make_request(episode, make_screen(episode)) for episode in (1, 2)])


def test_passes_of_sequences_that_share_no_row_leave_the_mask_to_the_attention_kernel(
    policy: InProcessPolicy, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlashAttention takes no mask: with one it falls back to a slower kernel."""
    batch = batch_of(play, 3)
    attend = torch.nn.functional.scaled_dot_product_attention
    masks: list[tuple[bool, bool]] = []

    def recorded(query: Tensor, key: Tensor, value: Tensor, **settings: Any) -> Tensor:
        if query.shape[-2] > 1:
            masks.append((settings.get("attn_mask") is None, bool(settings.get("is_causal"))))
        return attend(query, key, value, **settings)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", recorded)
    policy.update(batch, SETTINGS)
    assert masks
    assert set(masks) == {(True, True)}


def test_a_steps_peak_is_measured_from_the_update_before_and_is_a_metric_beside_the_estimate(
    policy: InProcessPolicy, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, reset = torch.device("cuda", 1), list[torch.device]()
    peaks = {gpu: 7}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", peaks.__getitem__)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    assert take_peak_bytes(gpu) == 7
    assert reset == [gpu]
    assert take_peak_bytes(torch.device("cpu")) is None
    result = policy.update(batch_of(play, 1), SETTINGS)
    assert _memory_metrics(result) == {}
    known = replace(result, peak_memory_bytes=7, estimated_memory_bytes=9)
    assert _memory_metrics(known) == {"memory/peak_bytes": 7, "memory/estimated_bytes": 9}
