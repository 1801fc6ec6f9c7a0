"""Batches are divided by the bytes that a token takes, and what cannot fit is refused first."""

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from producer.errors import UsageError
from producer.fine_tuning.memory import FittingMemory
from producer.policy.memory_demand import NetworkSize, fitting_demand, pass_tokens
from producer.policy.torch_policy.placement import Placement
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.reading import installation_at

__all__ = ["cua_train"]
SMOLLM2 = NetworkSize(
    num_weights=134_515_008,
    weight_bytes=4,
    num_trained=4_884_480,
    layers=30,
    hidden=576,
    feed_forward=1536,
    query=576,
    key_value=192,
    vocabulary=49_152,
    deepstack=0,
)
KEPT = 30 * (16 * 576 + 16 * 1536 + 12 * 576 + 12 * 192)
"""Bytes of a token's activations: 1,290,240."""
LOGITS = 3 * 49_152 * 4
"""Of a token's logits, log-probs and gradient."""


def test_a_pass_has_as_many_tokens_as_take_a_gibibyte() -> None:
    assert pass_tokens(SMOLLM2, "cpu", has_logits=True, checkpointed=False) == 2**30 // (
        KEPT + LOGITS
    )
    assert pass_tokens(SMOLLM2, "cpu", has_logits=True, checkpointed=False) == 571
    assert pass_tokens(SMOLLM2, "cpu", has_logits=False, checkpointed=False) == 2**30 // KEPT == 832
    # With checkpointing the inputs of 30 layers and one layer: 30 x 576 x 4 + 43,008 bytes.
    assert pass_tokens(SMOLLM2, "cpu", has_logits=True, checkpointed=True) == 2**30 // (
        112_128 + LOGITS
    )


def test_small_policies_have_4096_tokens_as_before_and_the_largest_one() -> None:
    small = replace(SMOLLM2, layers=4, hidden=128, feed_forward=384, query=128, vocabulary=1000)
    assert pass_tokens(small, "cpu", has_logits=True, checkpointed=False) == 4096
    giant = replace(SMOLLM2, hidden=10**7)
    assert pass_tokens(giant, "cpu", has_logits=True, checkpointed=False) == 1


def test_the_terms_are_weights_optimiser_activations_and_logits() -> None:
    terms = fitting_demand(SMOLLM2, 571, 2, has_logits=True, checkpointed=False)
    # Of a trained weight: itself, its gradient in both passes and in sum, two moments.
    expected = [134_515_008 * 4, 4_884_480 * (16 + 2 * 4), 2 * 571 * KEPT, 2 * 571 * LOGITS]
    assert [term.num_bytes for term in terms] == expected
    scored = fitting_demand(SMOLLM2, 571, 2, has_logits=False, checkpointed=False)
    assert scored[-1].num_bytes == 0


def test_an_example_that_is_longer_than_a_pass_is_checked_by_its_own_length() -> None:
    cpu = torch.device("cpu")
    memory = FittingMemory("small", SMOLLM2, cpu, 1, has_logits=True, checkpointed=False)
    memory.check_longest(571)
    with pytest.raises(UsageError, match=r"1 x 1,000,000,000 tokens") as refused:
        memory.check_longest(10**9)
    assert "lower max_length, set gradient_checkpointing to true" in str(refused.value)
    assert "weights: 134" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "dtype", "weights"),
    [
        (("sft",), torch.float32, "3725.3 GiB  weights: 1,000,000,000,000 x 4 bytes"),
        (("reward-model",), torch.float32, "3725.3 GiB  weights: 1,000,000,000,000 x 4 bytes"),
        # As stored, on a GPU: an adapter's base; what is trained whole is float32.
        (("sft",), None, "1862.6 GiB  weights: 1,000,000,000,000 x 2 bytes"),
        (
            ("sft", "--train-type", "full"),
            None,
            "3725.3 GiB  weights: 1,000,000,000,000 x 4 bytes",
        ),
    ],
    ids=["sft", "reward-model", "as stored", "as stored, full"],
)
def test_a_training_that_cannot_fit_exits_with_2_and_leaves_nothing(
    policy: Path,
    tmp_path: Path,
    cua_train: CuaTrain,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    dtype: torch.dtype | None,
    weights: str,
) -> None:
    placement = Placement(torch.device("cpu"), dtype)
    monkeypatch.setattr("producer.fine_tuning.trainee.choose_placement", lambda _: placement)
    huge, home = tmp_path / "huge", tmp_path / "home"
    shutil.copytree(policy, huge)
    config = json.loads((huge / "config.json").read_text())
    (huge / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    tensor = {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]}
    header = json.dumps({"model.layers.0.self_attn.q_proj.weight": tensor}).encode()
    with (huge / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 4 * 10**12)
    examples = tmp_path / "examples.json"
    examples.write_text(
        json.dumps(
            [{"prompt": "a", "completion": "b", "input": "a и", "label": ["+"]}],
            ensure_ascii=False,
        )
    )
    monkeypatch.setenv("CUA_HOME", str(home))
    files = ("--model-name", str(huge), "--data-path", str(examples))
    done = cua_train("sql", *words, *files, expected=2)
    assert f"policy '{huge}' does not fit into memory: it needs" in done.stderr
    assert weights in done.stderr
    assert "lower max_length, set gradient_checkpointing to true or train_type" in done.stderr
    assert not installation_at(home).local_log_path.exists()
