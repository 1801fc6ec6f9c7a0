"""Device, dtype, gradient checkpointing and bounds of memory: each does what it says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from producer.errors import UsageError
from producer.policy.compute_settings import ComputeSettings, Dtype, Switch
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import Turn
from producer.policy.torch_policy import device_memory
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import choose_placement
from producer.policy.torch_policy.prefill import prefill
from tests.support.rounding import rounding_of_forward
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME, changed

from .conftest import SETTINGS as SETTINGS_OF_ONE_SUBSTEP
from .conftest import ClickOnly, make_request, make_screen, make_task, randomize_adapter

SETTINGS = changed(SETTINGS_OF_ONE_SUBSTEP, num_substeps=2, kl_penalty_coef=0.5)


def update(
    folder: Path, batch: list[Trajectory], switch: Switch
) -> tuple[UpdateResult, list[torch.Tensor], InProcessPolicy]:
    network = load_network(str(folder), lora_rank=4, seed=1)
    randomize_adapter(network)
    policy = InProcessPolicy(
        network, ClickOnly(), None, ComputeSettings(gradient_checkpointing=switch)
    )
    result = policy.update(batch, SETTINGS)
    return (
        replace(result, seconds=0.0),
        [parameter.detach() for parameter in network.trainable()],
        policy,
    )


def count_layer_passes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each pass of a layer was checkpointed."""
    passes: list[bool] = []
    call = GradientCheckpointingLayer.__call__

    def counted(self: GradientCheckpointingLayer, *args: object, **kwargs: object) -> object:
        passes.append(self.gradient_checkpointing and self.training)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(GradientCheckpointingLayer, "__call__", counted)
    return passes


def test_checkpointing_changes_no_bit_of_an_update(
    base_folder: Path, batch: list[Trajectory]
) -> None:
    plain, plain_weights, _ = update(base_folder, batch, "off")
    checkpointed, weights, _ = update(base_folder, batch, "on")
    assert checkpointed == plain
    assert all(torch.equal(one, other) for one, other in zip(weights, plain_weights, strict=True))


@pytest.mark.parametrize(
    ("switch", "available", "expected"),
    [("on", 2**60, True), ("off", 0, False), ("auto", 0, True), ("auto", 2**60, False)],
)
def test_layers_are_checkpointed_in_the_backward_passes_alone_and_as_the_field_says(
    base_folder: Path,
    batch: list[Trajectory],
    monkeypatch: pytest.MonkeyPatch,
    switch: Switch,
    available: int,
    *,
    expected: bool,
) -> None:
    monkeypatch.setattr(device_memory, "available_bytes", lambda _device: available)
    passes = count_layer_passes(monkeypatch)
    *_, policy = update(base_folder, batch, switch)
    assert any(passes) == expected
    passes.clear()
    policy.sample([make_request(1, make_screen(1))])
    assert not any(passes)


def test_checkpointed_layers_keep_less_for_the_backward_pass(network: Network) -> None:
    def kept_elements(*, enabled: bool) -> int:
        sizes: dict[int, int] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        embeddings = torch.randn(1, 64, 32)
        positions = torch.arange(64).expand(3, 1, -1)
        with (
            device_memory.checkpointed_layers(network.language_model, enabled=enabled),
            torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        ):
            network.language_model(inputs_embeds=embeddings, position_ids=positions)
        return sum(sizes.values())

    assert kept_elements(enabled=True) < kept_elements(enabled=False) / 3


def test_what_is_inside_a_checkpointed_layer_stays_in_evaluation_mode(network: Network) -> None:
    with device_memory.checkpointed_layers(network.language_model, enabled=True):
        layer: Any = next(network.language_model.layers.children())  # type: ignore[union-attr]
        assert layer.training
        assert not layer.self_attn.training
    assert not layer.training
    assert not layer.gradient_checkpointing


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("auto", torch.float32), ("float32", torch.float32), ("bfloat16", torch.bfloat16)],
)
def test_weights_have_the_dtype_and_the_adapter_float32(
    base_folder: Path, dtype: Dtype, expected: torch.dtype
) -> None:
    network = load_network(str(base_folder), 4, 1, None, choose_placement("cpu", dtype))
    frozen = {
        parameter.dtype for parameter in network.base.parameters() if not parameter.requires_grad
    }
    assert frozen == {expected}
    assert {parameter.dtype for parameter in network.trainable()} == {torch.float32}


def test_a_policy_in_bfloat16_samples_and_learns(base_folder: Path) -> None:
    network = load_network(str(base_folder), 4, 1, None, choose_placement("cpu", "bfloat16"))
    randomize_adapter(network)
    policy = InProcessPolicy(network, ClickOnly())
    tokens = policy.sample([make_request(1, make_screen(1))])[0].tokens
    assert tokens is not None
    turn = trained_turn(make_screen(1), tokens)
    before = [parameter.detach().clone() for parameter in network.trainable()]
    trained = Trajectory(make_task("Turn on Wi-Fi"), (turn,), 1.0, NO_OUTCOME)
    result = policy.update([trained], SETTINGS)
    # Sampled with a cache and scored without: both round every layer to 8 bits.
    steps = torch.finfo(torch.bfloat16).eps / torch.finfo(torch.float32).eps
    largest = max(map(abs, tokens.completion_logprobs))
    assert abs(result.kl_sample_train_v1) <= rounding_of_forward(network.base, largest) * steps
    assert any(
        not torch.equal(one, other) for one, other in zip(network.trainable(), before, strict=True)
    )


def test_auto_is_the_processor_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_placement().device == torch.device("cpu")
    assert choose_placement().dtype == torch.float32


def test_auto_is_the_first_gpu_and_the_stored_dtype_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_placement().device.type == "cuda"
    assert choose_placement().dtype is None
    assert choose_placement("cuda:1").device == torch.device("cuda:1")
    with pytest.raises(UsageError, match=r"cuda:2 is not on this machine.* cpu, cuda:0, cuda:1$"):
        choose_placement("cuda:2")


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_device_that_is_not_there_is_refused_with_what_is(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"device: {device} is not on this machine.* cpu$"):
        choose_placement(device)


def three_turns(
    network: Network, kv_cache_bytes: int | None
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Tokens of three episodes of three turns, and the bytes of the caches after each."""
    policy = InProcessPolicy(
        network, ClickOnly(), None, ComputeSettings(kv_cache_bytes=kv_cache_bytes)
    )
    histories: list[tuple[Turn, ...]] = [()] * 3
    sizes, drawn = [], []
    for turn in range(3):
        requests = [
            make_request(one, make_screen(10 * one + turn), history, seed=10 * one + turn)
            for one, history in enumerate(histories)
        ]
        completions = policy.sample(requests)
        histories = [
            (*history, past_turn(request.screenshot, completion.text, completion.tokens))
            for history, request, completion in zip(histories, requests, completions, strict=True)
        ]
        sizes.append(policy._caches.num_bytes)
        drawn += [
            completion.tokens.completion_tokens for completion in completions if completion.tokens
        ]
    return drawn, sizes


def test_caches_keep_within_their_bytes_and_what_was_dropped_is_computed_again(
    network: Network,
) -> None:
    everything, sizes = three_turns(network, None)
    shape = network.cache_shape
    position = 2 * shape.num_layers * shape.num_heads * shape.head_dim * 4
    # As long as its tokens: a first turn has 70, of which the last one sampled is not cached.
    assert 3 * 70 * position <= sizes[0] <= 3 * (70 + 5) * position
    assert sizes[0] < sizes[1] < sizes[2]
    bound = sizes[0] // 2
    bounded, bounded_sizes = three_turns(network, bound)
    assert bounded == everything
    assert 0 < bounded_sizes[0] <= bound
    assert max(bounded_sizes) <= bound
    nothing, nothing_sizes = three_turns(network, 0)
    assert nothing == everything
    assert nothing_sizes == [0, 0, 0]


def test_a_prefill_in_parts_gives_the_logits_of_one_pass(network: Network) -> None:
    policy = InProcessPolicy(network, ClickOnly())
    requests = [make_request(index, make_screen(index)) for index in range(5)]
    prompts = [
        policy._episodes.prompt(request, policy._encoder.encode([request.screen])[0])
        for request in requests
    ]
    results = []
    for max_bytes in (2**30, 1):
        with torch.no_grad():
            cache = policy._caches.load([None] * 5, 100)
            part = prefill(
                network, cache, [prompt.segment for prompt in prompts], [0] * 5, max_bytes
            )
        results.append((part, cache.kv_B2LHCD))
    (one, kv), (other, other_kv) = results
    assert (one.num_cached, one.next_positions) == (other.num_cached, other.next_positions)
    bound = rounding_of_forward(network.base, float(one.logits_BV.abs().max()))
    assert (one.logits_BV - other.logits_BV).abs().max() <= bound
    assert (kv - other_kv).abs().max() <= rounding_of_forward(network.base, float(kv.abs().max()))
