"""Trainings of small policies in the hub's layout: whole ones train, others leave nothing."""

import json
from pathlib import Path

import pytest
from peft import PeftModel
from transformers import AutoModelForImageTextToText

from producer.config import read_config
from producer.errors import UsageError
from producer.training.run import run
from schemas.installation import Installation
from tests.support.checkpoints import change_json, write_checkpoint
from tests.support.reading import ReadLog, of_type
from tests.support.small_run import one_step


@pytest.mark.parametrize("model_type", ["qwen3_vl", "qwen3_vl_moe", "qwen2_5_vl"])
def test_every_architecture_with_a_tower_trains_and_its_adapter_loads_in_plain_peft(
    installation: Installation, read_log: ReadLog, tmp_path: Path, model_type: str
) -> None:
    write_checkpoint(tmp_path / "policy", model_type)
    summary = run(one_step(tmp_path / "policy"), installation=installation)
    assert (summary.status, summary.steps) == ("completed", 1)
    saved = of_type(read_log(), "checkpoint.saved")
    base = AutoModelForImageTextToText.from_pretrained(tmp_path / "policy")
    PeftModel.from_pretrained(base, saved[-1]["path"])
    created = next(event["data"] for event in read_log() if event["type"] == "cua.training.created")
    assert created["config"]["lora_alpha"] == 4.0


def test_a_policy_that_is_not_whole_leaves_no_event(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl_moe")
    (tmp_path / "policy" / "model-00001-of-00003.safetensors").unlink()
    with pytest.raises(UsageError, match=r"lacks model-00001-of-00003\.safetensors"):
        run(one_step(tmp_path / "policy"), installation=installation)
    assert read_log() == []


def test_a_policy_without_screens_leaves_no_event(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3")
    with pytest.raises(UsageError, match="sees no screens"):
        run(one_step(tmp_path / "policy"), installation=installation)
    assert read_log() == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        # The policy takes 4,096 tokens.
        ({"max_tokens": 4000}, r"takes 4,096 tokens, but the longest first prompt has 1,\d{3} and"),
        (
            {
                "tasks": {"source_type": "custom", "custom_tasks": ["word " * 4000]},
                "judge": "agent",
            },
            "takes 4,096 tokens",
        ),
        (
            {
                "tasks": {"source_type": "custom", "custom_tasks": ["Open <|image_pad|>"]},
                "judge": "agent",
            },
            "placeholder",
        ),
    ],
)
def test_a_first_prompt_that_the_policy_cannot_take_leaves_nothing(
    installation: Installation, tmp_path: Path, fields: dict[str, object], named: str
) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    with pytest.raises(UsageError, match=named):
        run(one_step(tmp_path / "policy", **fields), installation=installation)
    assert not installation.local_log_path.exists()
    assert not installation.runs_dir.exists()


def test_a_training_from_an_adapter_has_its_rank_and_continues_with_it(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    run(
        one_step(tmp_path / "policy", lora_alpha=3, target_modules="attention"),
        installation=installation,
    )
    adapter = next(
        event["data"]["path"] for event in read_log() if event["type"] == "cua.checkpoint.saved"
    )
    given = one_step(tmp_path / "policy", load_checkpoint_path=adapter, training_name="second")
    second = {name: value for name, value in given.recorded().items() if name in given.explicit}
    second.pop("lora_rank")
    run(read_config(second), installation=installation)
    created = of_type(read_log(), "training.created")[-1]
    assert created["recipe"]["lora_rank"] == 2
    assert created["config"]["lora_alpha"] == 3.0
    summary = run(read_config({**second, "num_steps": 2}), installation=installation)
    assert summary.steps == 2
    num_events = len(read_log())
    for changed in ({"target_modules": "mlp"}, {"lora_alpha": 8}):
        with pytest.raises(UsageError, match=f"begun with other settings|{next(iter(changed))}"):
            run(read_config({**second, **changed}), installation=installation)
    with pytest.raises(UsageError, match=r"lora_rank: the adapter .* has 2, not 8"):
        run(
            read_config({**second, "lora_rank": 8, "training_name": "third"}),
            installation=installation,
        )
    with pytest.raises(UsageError, match="adapts other weights than target_modules"):
        run(
            read_config({**second, "target_modules": "mlp", "training_name": "third"}),
            installation=installation,
        )
    assert len(read_log()) == num_events


def test_a_base_that_changed_since_is_not_continued(
    installation: Installation, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    run(one_step(tmp_path / "policy"), installation=installation)
    write_checkpoint(tmp_path / "policy", "qwen3_vl", seed=1)
    with pytest.raises(Exception, match="have changed since"):
        run(one_step(tmp_path / "policy", num_steps=2), installation=installation)


def test_weights_that_are_not_numbers_leave_no_event(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    import torch

    from tests.support.checkpoints import hub_weights, write_shards

    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    weights = hub_weights(tmp_path / "policy", "qwen3_vl")
    weights["model.language_model.norm.weight"][0] = torch.nan
    write_shards(tmp_path / "policy", weights)
    with pytest.raises(UsageError, match="not numbers"):
        run(one_step(tmp_path / "policy"), installation=installation)
    text = json.loads((tmp_path / "policy" / "config.json").read_text())["text_config"]
    text["rope_scaling"] |= {"mrope_section": [9, 9, 9]}
    change_json(tmp_path / "policy" / "config.json", text_config=text)
    with pytest.raises(UsageError):
        run(one_step(tmp_path / "policy"), installation=installation)
    assert read_log() == []
