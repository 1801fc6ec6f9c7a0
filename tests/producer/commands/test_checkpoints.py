"""`cua-train checkpoints`: what is listed, what leaves the run's folder, and what is refused."""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from peft import PeftModel
from transformers import AutoModelForImageTextToText, AutoProcessor

from producer.commands.checkpoints import command
from producer.errors import CuaTrainError, MismatchError, NotFoundError, UsageError
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.state import save_checkpoint
from producer.training.run import run
from schemas.installation import Installation, read_installation
from tests.producer.policy.conftest import randomize_adapter
from tests.support.checkpoints import hub_weights, write_checkpoint, write_shards
from tests.support.small_run import one_step, small

WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(autouse=True)
def _home(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A home, to be left as it is, with the training `first` and the scripted one `small`."""
    folder = tmp_path_factory.mktemp("finished")
    installation = read_installation({"CUA_HOME": str(folder / "home")})
    write_checkpoint(folder / "policy", "qwen3_vl")
    run(one_step(folder / "policy"), installation=installation)
    run(small(num_steps=1), installation=installation)
    return installation


@pytest.fixture
def home(finished: Installation, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home `finished`, which the commands of a test use."""
    monkeypatch.setenv("CUA_HOME", str(finished.home))
    return finished.home


def call(*arguments: object) -> str:
    """What the command prints on stdout."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def listed(*names: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(call("list", *names, "--json"))
    return found


def refusal(kind: type[CuaTrainError], *arguments: object) -> str:
    with pytest.raises(kind) as caught:
        call(*arguments)
    return str(caught.value)


def adapter_of(base: Path, folder: Path) -> Path:
    """An adapter that changes the outputs, as after many steps."""
    network = load_network(str(base), lora_rank=2, seed=0)
    randomize_adapter(network)
    save_checkpoint(folder, network)
    return folder


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        output: torch.Tensor = model.eval()(input_ids=torch.arange(40)[None]).logits
    return output


def test_every_checkpoint_is_listed_with_its_step_success_and_verdict(
    installation: Installation,
) -> None:
    run(small(), installation=installation)
    rows = listed("small")
    assert [(row["generation"], row["step"], row["verified"]) for row in rows] == [
        (0, 0, "ok"),
        (0, 2, "ok"),
        (0, 3, "ok"),
    ]
    assert all(row["success"] is not None for row in rows)
    folder = Path(rows[1]["folder"])
    state = (folder / "scripted.json").read_bytes()
    assert rows[1]["adapter_sha256"] == sha256(state).hexdigest()
    (folder / "scripted.json").write_bytes(state + b" ")
    shutil.rmtree(rows[2]["folder"])
    assert [row["verified"] for row in listed()] == ["ok", "changed", "missing"]
    assert "missing" in call("list", "small")


def test_a_training_whose_folder_is_away_does_not_hide_the_others(
    installation: Installation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(small(num_steps=1), installation=installation)
    (installation.runs_dir / "away").symlink_to(tmp_path / "unmounted")
    assert {row["training_name"] for row in listed()} == {"small"}
    assert "unmounted, does not exist" in caplog.text
    assert "unmounted, does not exist" in refusal(NotFoundError, "list", "away")


def test_without_trainings_nothing_is_listed_and_nothing_is_made(
    installation: Installation,
) -> None:
    assert listed() == []
    assert not (installation.home / "log").exists()


@pytest.mark.usefixtures("home")
def test_a_training_that_does_not_exist_is_not_found() -> None:
    assert "Did you mean 'small'" in refusal(NotFoundError, "list", "smal")
    assert "Did you mean 'small'" in refusal(NotFoundError, "export", "smal", "--output", "x")


@pytest.mark.usefixtures("home")
def test_a_scripted_policy_has_no_adapter_to_export(tmp_path: Path) -> None:
    for name in ("export", "merge"):
        message = refusal(UsageError, name, "small", "--output", tmp_path / "out")
        assert "scripted policy" in message
        assert not (tmp_path / "out").exists()


def test_an_exported_adapter_is_the_saved_one_with_a_model_card(home: Path, tmp_path: Path) -> None:
    row = listed("first")[-1]
    output = tmp_path / "out"
    result = json.loads(call("export", "first", "--output", output, "--json"))
    assert result == {"output": str(output), "adapter_sha256": row["adapter_sha256"]}
    exported = (output / WEIGHTS).read_bytes()
    assert sha256(exported).hexdigest() == row["adapter_sha256"]
    assert exported == (Path(row["folder"]) / WEIGHTS).read_bytes()
    card = (output / "README.md").read_text()
    assert "training first, generation 0, step 1" in card
    assert row["adapter_sha256"] in card
    assert sorted(path.name for path in output.iterdir()) == [
        "README.md",
        "adapter_config.json",
        WEIGHTS,
        "base_policy.json",
    ]
    base = AutoModelForImageTextToText.from_pretrained(home.parent / "policy")
    PeftModel.from_pretrained(base, output)
    earlier = tmp_path / "earlier"
    call("export", "first", "--step", 0, "--output", earlier)
    assert "step 0" in (earlier / "README.md").read_text()
    assert "has those of step 0, 1" in refusal(
        NotFoundError, "export", "first", "--step", 7, "--output", tmp_path / "no"
    )


@pytest.mark.usefixtures("home")
def test_what_is_not_what_was_saved_is_not_exported(tmp_path: Path) -> None:
    weights = Path(listed("first")[-1]["folder"]) / WEIGHTS
    saved = weights.read_bytes()
    try:
        weights.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
        for name in ("export", "merge"):
            message = refusal(MismatchError, name, "first", "--output", tmp_path / "out")
            assert "are not those that were saved" in message
        weights.unlink()
        assert "is gone" in refusal(NotFoundError, "export", "first", "--output", tmp_path / "out")
    finally:
        weights.write_bytes(saved)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["export", "merge"])
def test_a_folder_with_files_is_never_written_over(tmp_path: Path, name: str) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    adapter = adapter_of(tmp_path / "policy", tmp_path / "adapter")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    for taken, problem in (
        ("full", "exists and is not empty"),
        ("file", "is a file, not a folder"),
    ):
        message = refusal(UsageError, name, adapter, "--output", tmp_path / taken)
        assert problem in message
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
    assert (tmp_path / "file").read_text() == "kept"
    (tmp_path / "empty").mkdir()
    call(name, adapter, "--output", tmp_path / "empty")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("model_type", ["qwen3_vl", "qwen3_vl_moe", "qwen2_5_vl"])
def test_a_merged_policy_loads_alone_and_gives_the_logits_of_base_and_adapter(
    tmp_path: Path, model_type: str
) -> None:
    base = tmp_path / "policy"
    write_checkpoint(base, model_type, tied=True)
    adapter = adapter_of(base, tmp_path / "adapter")
    output = tmp_path / "merged"
    call("merge", adapter, "--output", output)
    merged, info = AutoModelForImageTextToText.from_pretrained(output, output_loading_info=True)
    assert not any(info.values())
    alone = AutoModelForImageTextToText.from_pretrained(base)
    unadapted = logits(alone)
    expected = logits(PeftModel.from_pretrained(alone, adapter))
    assert torch.allclose(logits(merged), expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(unadapted, expected, rtol=1e-2, atol=1e-2)
    processor = AutoProcessor.from_pretrained(output)
    assert processor.chat_template == AutoProcessor.from_pretrained(base).chat_template
    # It is a policy like any other: it can be trained on.
    load_network(str(output), lora_rank=2, seed=0)
    assert output.stat().st_mode & 0o777 == 0o755


def test_a_merged_policy_keeps_the_type_of_the_bases_weights(tmp_path: Path) -> None:
    base = tmp_path / "policy"
    write_checkpoint(base, "qwen3_vl")
    halves = {key: one.bfloat16() for key, one in hub_weights(base, "qwen3_vl").items()}
    write_shards(base, halves)
    adapter = adapter_of(base, tmp_path / "adapter")
    call("merge", adapter, "--output", tmp_path / "merged")
    merged = AutoModelForImageTextToText.from_pretrained(tmp_path / "merged", dtype="auto")
    assert {parameter.dtype for parameter in merged.parameters()} == {torch.bfloat16}


def test_the_newest_checkpoint_of_a_training_is_merged_into_its_base(
    home: Path, tmp_path: Path
) -> None:
    result = json.loads(call("merge", "first", "--output", tmp_path / "merged", "--json"))
    assert result["base"] == str(home.parent / "policy")
    assert result["parameters"] > 0
    AutoModelForImageTextToText.from_pretrained(tmp_path / "merged")


def test_an_adapter_is_not_merged_into_other_weights(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "policy", "qwen3_vl")
    adapter = adapter_of(tmp_path / "policy", tmp_path / "adapter")
    write_checkpoint(tmp_path / "other", "qwen3_vl", seed=1)
    message = refusal(
        UsageError,
        *("merge", adapter, "--model-name", tmp_path / "other", "--output", tmp_path / "out"),
    )
    assert "was trained on other weights" in message
    shutil.rmtree(tmp_path / "policy")
    message = refusal(NotFoundError, "merge", adapter, "--output", tmp_path / "out")
    assert "pass --model-name" in message
    assert not (tmp_path / "out").exists()


def test_the_reward_model_of_prime_is_exported_beside_the_adapter(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "policy", "qwen2")
    saved = adapter_of(tmp_path / "policy", tmp_path / "saved")
    (saved / "prime").mkdir()
    for name in ("adapter_config.json", WEIGHTS):
        (saved / "prime" / name).write_bytes((saved / name).read_bytes()[::-1])
    call("export", saved, "--output", tmp_path / "out")
    for path in (saved / "prime").iterdir():
        assert (tmp_path / "out" / "prime" / path.name).read_bytes() == path.read_bytes()
