"""The sum by hand, and the refusal that shows it."""

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import Qwen3VLConfig

from producer.errors import UsageError
from producer.policy.compute_settings import ComputeSettings, PolicySettings
from producer.policy.memory_demand import (
    NetworkSize,
    RunExtent,
    Workload,
    memory_demand,
    pass_tokens,
    total_bytes,
)
from producer.policy.torch_policy.memory_check import check_memory, size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import Placement
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.reading import installation_at

__all__ = ["cua_train"]  # the fixture

CPU = Placement(torch.device("cpu"), torch.float32)
QWEN_2B = NetworkSize(
    num_weights=2_000_000_000,
    weight_bytes=4,
    num_trained=1_000_000,
    layers=28,
    hidden=2048,
    feed_forward=6144,
    query=2048,
    key_value=1024,
    vocabulary=151_936,
    deepstack=3,
)
PHONE = RunExtent(
    concurrent_rollouts=8,
    batch_size=40,
    max_turns=20,
    max_tokens=386,
    is_training=True,
)
# 1080 x 2400 pixels become 34 x 75 tokens of 32 x 32; with 64 of text and 386 sampled a turn has
# 3,000 tokens.
WORK = Workload(PHONE, PolicySettings("a policy", 4), screen_tokens=2550, num_lanes=1)


def computed(work: Workload, compute: ComputeSettings) -> Workload:
    return replace(work, settings=replace(work.settings, compute=compute))


def by_name(size: NetworkSize, work: Workload, *, checkpointed: bool = True) -> dict[str, int]:
    """First words of each term -> bytes."""
    return {
        term.what.split(":")[0].split(",")[0]: term.num_bytes
        for term in memory_demand(size, work, checkpointed=checkpointed)
    }


def test_weights_adapter_and_screens_are_there_all_the_time() -> None:
    terms = by_name(QWEN_2B, WORK)
    assert terms["weights"] == 8_000_000_000
    assert terms["adapter"] == 16_000_000
    # 2,550 tokens x 2,048 floats x 4 layers x 4 bytes = 83.6 MB a screen; 800 screens pass 2 GiB.
    assert terms["features of screens"] == 2**31
    each = 2550 * 2048 * 4 * 4
    bounded = computed(WORK, ComputeSettings(screen_cache_bytes=0))
    assert by_name(QWEN_2B, bounded)["features of screens"] == 8 * each


def test_sampling_holds_every_episode_at_its_full_length_twice() -> None:
    terms = by_name(QWEN_2B, replace(WORK, extent=replace(PHONE, is_training=False)))
    # A token takes 2 x 28 layers x 1,024 floats x 4 bytes.
    of_episode = 20 * 3000 * 229_376
    assert terms["KV cache"] == 8 * of_episode
    assert terms["working copy of the KV cache for the episodes being sampled"] == 8 * of_episode
    assert "adapter" not in terms


def test_a_bound_on_the_caches_leaves_one_episode_at_least() -> None:
    work = replace(WORK, extent=replace(PHONE, is_training=False))
    terms = by_name(QWEN_2B, computed(work, ComputeSettings(kv_cache_bytes=2**30)))
    assert terms["KV cache"] == 2**30
    assert (
        terms["working copy of the KV cache for the episodes being sampled"] == 20 * 3000 * 229_376
    )


@pytest.mark.parametrize(
    ("max_recent_turns", "turns", "new_turns"),
    # Of 20 turns a prompt shows 2N - 1 past ones and its own; re-anchored it begins N turns back.
    [(None, 20, 1), (5, 10, 6), (1, 2, 2), (0, 1, 1), (10, 20, 1), (50, 20, 1)],
)
def test_a_prompt_is_as_long_as_the_recent_turns_that_it_shows(
    max_recent_turns: int | None, turns: int, new_turns: int
) -> None:
    settings = replace(WORK.settings, max_recent_turns=max_recent_turns)
    extent = replace(PHONE, is_training=False)
    terms = by_name(QWEN_2B, replace(WORK, extent=extent, settings=settings))
    assert terms["KV cache"] == 8 * turns * 3000 * 229_376
    # One prompt of past turns of 3,000 tokens and 2,614 of its own, or several in 1 GiB; and three
    # copies of the logits of 8 rows.
    new_tokens = (new_turns - 1) * 3000 + 2614
    one = new_tokens * QWEN_2B.passing_bytes
    assert terms["activations of a prefill"] == (
        max(one, min(2**30, 8 * one)) + 3 * 8 * 151_936 * 4
    )
    assert terms["features of screens"] == 2**31


def test_an_update_takes_the_longest_prompt_of_recent_turns() -> None:
    extent = replace(PHONE, concurrent_rollouts=1)
    settings = replace(WORK.settings, max_recent_turns=2)
    work = replace(WORK, extent=extent, settings=settings)
    terms = by_name(QWEN_2B, work, checkpointed=False)
    # Layers, the features of its four screens, and three chunks of logits.
    assert terms["activations of an update without gradient checkpointing"] == (
        4 * 3000 * 28 * 167_936 + 4 * 2550 * 2048 * 4 * 4 + 3 * 2**26
    )


def test_the_larger_of_sampling_and_updating_counts() -> None:
    assert "KV cache" in by_name(QWEN_2B, WORK)
    small = replace(WORK, extent=replace(PHONE, concurrent_rollouts=1))
    terms = by_name(QWEN_2B, small, checkpointed=False)
    # A token keeps 28 x (16 x 2,048 + 16 x 6,144 + 12 x 2,048 + 12 x 1,024) bytes.
    assert terms["activations of an update without gradient checkpointing"] == (
        60_000 * 28 * 167_936 + 20 * 2550 * 2048 * 4 * 4 + 3 * 2**26
    )


def test_an_update_has_passes_of_as_many_tokens_as_fit_into_the_bound() -> None:
    # A rollout has 3,000 tokens. A pass takes 5,000 of several; one of 500 takes a row of up to
    # twice 3,000, at most 4,096.
    short = replace(PHONE, max_turns=1, concurrent_rollouts=1)
    kept = 28 * 167_936
    for pass_size, num_tokens in ((5_000, 5_000), (500, 4_096)):
        work = replace(WORK, extent=short, pass_tokens=pass_size)
        terms = by_name(QWEN_2B, work, checkpointed=False)
        name = "activations of an update without gradient checkpointing"
        # Layers, the features of one screen, and three chunks of logits.
        assert terms[name] == num_tokens * kept + 2550 * 2048 * 4 * 4 + 3 * 2**26
    assert pass_tokens(QWEN_2B, "cpu") == 2**30 // kept == 228
    assert pass_tokens(QWEN_2B, "cuda") == 4096


def test_checkpointing_keeps_each_layer_s_input_and_one_layer() -> None:
    assert QWEN_2B.activation_bytes(10, checkpointed=True) == 10 * (28 * 2048 * 4 + 167_936)


def test_the_size_is_read_from_the_configuration_and_the_shapes() -> None:
    config = Qwen3VLConfig(
        text_config={"num_hidden_layers": 3, "num_experts_per_tok": 0},
        vision_config={"deepstack_visual_indexes": [1, 2]},
    )
    text = config.get_text_config()
    shapes = {
        "model.language_model.layers.0.self_attn.q_proj.weight": (6, 4),
        "model.language_model.layers.0.input_layernorm.weight": (4,),
        "model.language_model.layers.0.mlp.experts.gate_up_proj": (5, 4, 8),
        "model.visual.blocks.0.attn.proj.weight": (9, 9),
        "lm_head.weight": (100, 4),
    }
    size = size_of_network(config, torch.bfloat16, shapes, lora_rank=2)
    assert size.num_weights == 24 + 4 + 160 + 81 + 400
    # Rank 2 of a 6 x 4 matrix has 2 x 10 weights; of 5 experts of 4 x 8 each 2 x 12.
    assert size.num_trained == 20 + 5 * 24
    assert (size.weight_bytes, size.layers, size.deepstack) == (2, 3, 2)
    assert size.query == text.num_attention_heads * text.head_dim


@pytest.mark.parametrize(
    ("target_modules", "num_trained"),
    # Rank 1: q_proj of 6 x 4 has 10 weights, down_proj of 4 x 8 has 12, five experts 5 x 12.
    [
        (None, 82),
        (("all",), 82),
        (("attention",), 10),
        (("mlp",), 72),
        (("attention", "down_proj"), 22),
        (("q_proj",), 10),
        (("gate_up_proj",), 60),
        ((r".*\.layers\.0\..*",), 82),
    ],
)
def test_an_adapter_is_counted_by_what_it_targets(
    target_modules: tuple[str, ...] | None, num_trained: int
) -> None:
    shapes = {
        "model.layers.0.self_attn.q_proj.weight": (6, 4),
        "model.layers.0.mlp.down_proj.weight": (4, 8),
        "model.layers.1.mlp.experts.gate_up_proj": (5, 4, 8),
        "model.layers.1.mlp.gate.weight": (5, 4),
        "visual.blocks.0.mlp.down_proj.weight": (9, 9),
    }
    size = size_of_network(Qwen3VLConfig(), torch.float32, shapes, 1, target_modules)
    assert size.num_trained == num_trained


def test_the_activations_counted_are_those_that_the_network_keeps(network: Network) -> None:
    """A network of another shape than that which the factors were counted from."""
    kept: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.adapted.parameters()}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
            held.append(tensor)
        return tensor

    held: list[torch.Tensor] = []
    tokens = 512
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        network.language_model(
            inputs_embeds=torch.randn(1, tokens, 32),
            position_ids=torch.arange(tokens).expand(3, 1, -1),
            use_cache=False,
        )
    counted = size_of_network(network.base.config, torch.float32).activation_bytes(
        tokens, checkpointed=False
    )
    assert 0.8 * sum(kept.values()) <= counted <= 1.2 * sum(kept.values())


def huge_policy(base_folder: Path, folder: Path) -> Path:
    """The tiny policy with weights of 2 TB: a header, and a file with nothing in it."""
    shutil.copytree(base_folder, folder)
    num_bytes = 2 * 10**12
    header = json.dumps(
        {
            "model.language_model.layers.0.self_attn.q_proj.weight": {
                "dtype": "BF16",
                "shape": [10**6, 10**6],
                "data_offsets": [0, num_bytes],
            }
        }
    ).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + num_bytes)
    return folder


def test_a_policy_that_cannot_fit_is_refused_with_every_term_of_the_sum(
    base_folder: Path, tmp_path: Path
) -> None:
    folder = huge_policy(base_folder, tmp_path / "huge")
    with pytest.raises(UsageError) as caught:
        check_memory(PolicySettings(str(folder), 4), PHONE, CPU)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"policy '{folder}' does not fit into memory: it needs ")
    assert lines[1] == "    3725.3 GiB  weights: 1,000,000,000,000 x 4 bytes"
    # Rank 4 of a matrix of 10^6 x 10^6.
    assert lines[2] == (
        "     122.1 MiB  adapter, its gradient and Adam's moments: 8,000,000 x 16 bytes"
    )
    assert lines[-1].startswith("lower max_turns, max_tokens, max_concurrent_rollouts")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"concurrent_rollouts": 10**6, "batch_size": 10**6}, "1,000,000 episodes"),
        # A token takes 2 x 2 layers x 32 floats x 4 bytes of cache.
        ({"max_turns": 10**6}, "tokens x 512 bytes"),
        ({"max_tokens": 10**9}, "tokens x 512 bytes"),
    ],
)
def test_rollouts_turns_tokens_and_screens_count(
    base_folder: Path, change: dict[str, object], named: str
) -> None:
    with pytest.raises(UsageError, match="does not fit into memory") as caught:
        check_memory(PolicySettings(str(base_folder), 4), replace(PHONE, **change), CPU)  # type: ignore[arg-type]
    assert named in str(caught.value)


def test_what_fits_is_not_refused(base_folder: Path) -> None:
    check_memory(PolicySettings(str(base_folder), 4), PHONE, CPU)
    work = replace(WORK, screen_tokens=60)
    tiny = replace(QWEN_2B, num_weights=10**6, layers=4, hidden=128, feed_forward=384)
    assert total_bytes(memory_demand(tiny, work, checkpointed=False)) > 0


def test_weights_that_would_not_be_loaded_do_not_count(base_folder: Path, tmp_path: Path) -> None:
    """Some policies of the hub hold their weights again in another layout."""
    folder = huge_policy(base_folder, tmp_path / "huge")
    (folder / "model.safetensors").rename(folder / "consolidated.safetensors")
    shutil.copy(base_folder / "model.safetensors", folder)
    check_memory(PolicySettings(str(folder), 4), PHONE, CPU)


@pytest.mark.parametrize("name", ["no-such-policy", "/no/such", "a/b/c", "~nobody/x", ""])
def test_a_policy_that_is_not_here_is_left_to_loading(name: str) -> None:
    check_memory(PolicySettings(name, 4), PHONE, CPU)


def test_a_run_that_cannot_fit_exits_with_2_before_its_first_event(
    base_folder: Path, tmp_path: Path, cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = huge_policy(base_folder, tmp_path / "huge")
    home = tmp_path / "home"
    monkeypatch.setenv("CUA_HOME", str(home))
    tasks = '{"source_type": "demo_training", "limit": 2}'
    words = ["--model-name", str(folder), "--no-monitor", "--tasks", tasks, "--num-steps", "1"]
    done = cua_train("run", *words, expected=2)
    assert done.stdout == ""
    assert "does not fit into memory: it needs" in done.stderr
    assert "weights: 1,000,000,000,000 x 4 bytes" in done.stderr
    assert "Traceback" not in done.stderr
    assert not installation_at(home).local_log_path.exists()


def test_episodes_that_are_collected_ahead_keep_their_caches_during_an_update() -> None:
    # 128 episodes of one turn, so that the update takes most. KV: 28 layers x 2 x 1024 x 4 bytes.
    extent = replace(PHONE, batch_size=128, max_turns=1)
    alone = memory_demand(QWEN_2B, replace(WORK, extent=extent), checkpointed=False)
    ahead = memory_demand(
        QWEN_2B, replace(WORK, extent=replace(extent, batches_ahead=1)), checkpointed=False
    )
    names = [term.what.split(":")[0] for term in ahead]
    assert "activations of an update without gradient checkpointing" in names
    cache = next(term for term in ahead if term.what.startswith("KV cache"))
    assert cache.num_bytes == 8 * 3000 * 28 * 2 * 1024 * 4
    assert not any(term.what.startswith("KV cache") for term in alone)
    screens = [term for term in ahead if term.what.startswith("features of screens")]
    assert [term for term in alone if term.what.startswith("features of screens")] == screens
    assert total_bytes(ahead) == total_bytes(alone) + cache.num_bytes
