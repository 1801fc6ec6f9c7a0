"""A policy's own weights are what is read, whatever lies beside them."""

import logging
import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from producer.fine_tuning.named_policy import policy_fields
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.state import merge_adapter
from tests.support.checkpoints import change_json, write_checkpoint


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    write_checkpoint(folder, "qwen2", seed=0)
    return folder


@pytest.fixture(scope="module")
def adapter(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA adapter of the policy that plain peft saved, with weights that change the output."""
    folder = tmp_path_factory.mktemp("adapter")
    network = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    adapted = get_peft_model(network, config)
    for name, weights in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.ones_(weights)
    adapted.save_pretrained(folder)
    return folder


ADAPTER = ("adapter_config.json", "adapter_model.safetensors")


@pytest.fixture(params=["config alone", "both", "of another policy", "damaged"])
def leftover(policy: Path, adapter: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The policy with an adapter's files beside its weights."""
    folder = tmp_path / "leftover"
    shutil.copytree(policy, folder)
    for name in ADAPTER[: 1 if request.param == "config alone" else 2]:
        shutil.copy(adapter / name, folder / name)
    if request.param == "of another policy":
        change_json(folder / ADAPTER[0], base_model_name_or_path="somebody/else")
    if request.param == "damaged":
        for name in ADAPTER:
            (folder / name).write_text("no adapter")
    return folder


def test_an_adapter_beside_the_weights_is_not_read_and_said(
    policy: Path, leftover: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = open_base(str(policy))
    with caplog.at_level(logging.WARNING, logger="producer"):
        found = open_base(str(leftover))
    assert "the adapter beside its weights (adapter_config.json) is not read" in caplog.text
    assert found.fingerprint == plain.fingerprint
    expected = plain.network.state_dict()
    weights = found.network.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_only_the_new_adapter_is_trained(leftover: Path) -> None:
    network = load_network(str(leftover), 2, 0, target_modules=("mlp",))
    trained = [name for name, one in network.adapted.named_parameters() if one.requires_grad]
    assert trained
    assert all(".mlp." in name for name in trained)
    assert not [
        name for name in network.adapted.state_dict() if "self_attn" in name and "lora" in name
    ]


def test_a_policy_made_of_it_is_merged_and_holds_no_adapter(
    policy: Path, leftover: Path, adapter: Path, tmp_path: Path
) -> None:
    for name, base in (("merged", leftover), ("expected", policy)):
        (tmp_path / name).mkdir()
        merge_adapter(str(base), adapter, tmp_path / name)
    files = {path.name for path in (tmp_path / "merged").iterdir()}
    assert not files & {*ADAPTER}
    merged, expected = (
        load_file(tmp_path / name / "model.safetensors") for name in ("merged", "expected")
    )
    assert all(torch.equal(merged[name], expected[name]) for name in expected)


def test_a_command_of_sql_takes_the_folder_as_a_policy(leftover: Path, adapter: Path) -> None:
    assert policy_fields(str(leftover)) == {"model_name": str(leftover)}
    assert "load_checkpoint_path" in policy_fields(str(adapter))


def test_of_weights_in_two_forms_the_fingerprint_is_of_those_that_are_read(
    policy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "both"
    shutil.copytree(policy, folder)
    whole = {
        name: tensor
        for file in policy.glob("model*.safetensors")
        for name, tensor in load_file(file).items()
    }
    name = min(whole)
    save_file({**whole, name: whole[name] + 1}, folder / "model.safetensors", {"format": "pt"})
    found = open_base(str(folder))
    assert found.fingerprint != open_base(str(policy)).fingerprint
    assert any(torch.equal(one, whole[name] + 1) for one in found.network.state_dict().values())
