"""Names that cannot be loaded as a policy: one clear error, at once."""

import json
import logging
import shutil
import time
from pathlib import Path

import pytest
from huggingface_hub import close_session

from producer.errors import CuaTrainError, NotFoundError, UsageError
from producer.policy.torch_policy import hub
from producer.policy.torch_policy.loading import load_base, load_network


def load_error(name: str) -> CuaTrainError:
    with pytest.raises(CuaTrainError) as caught:
        load_base(name)
    return caught.value


def test_a_folder_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    error = load_error(str(tmp_path / "nothing"))
    assert isinstance(error, NotFoundError)
    assert str(error) == f"policy folder {tmp_path}/nothing does not exist; check the path"


def test_a_folder_that_is_no_policy_is_not_found(tmp_path: Path) -> None:
    error = load_error(str(tmp_path))
    assert isinstance(error, NotFoundError)
    assert str(error).startswith(f"folder {tmp_path} is not a policy (")


def test_a_folder_without_weights_is_not_found(base_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(base_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").unlink()
    error = load_error(str(tmp_path))
    assert isinstance(error, NotFoundError)
    assert "model.safetensors" in str(error)


def test_another_architecture_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    error = load_error(str(tmp_path))
    assert isinstance(error, UsageError)
    assert "has the architecture 'gpt2'" in str(error)


def test_a_name_that_is_neither_a_folder_nor_a_hub_id_is_not_found() -> None:
    error = load_error("my policy")
    assert isinstance(error, NotFoundError)
    assert "neither an existing folder nor a Hugging Face id" in str(error)


def test_a_hub_id_without_network_fails_at_once_without_retries(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # A proxy on a closed port: no network, wherever this test runs.
    close_session()
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    load_error("cua-train/no-such-policy")  # imports what loading needs
    capfd.readouterr()
    began_s = time.monotonic()
    with caplog.at_level(logging.INFO):
        error = load_error("cua-train/no-such-policy")
    assert time.monotonic() - began_s < hub.HUB_TIMEOUT_S
    assert isinstance(error, NotFoundError)
    assert str(error).startswith(
        "policy 'cua-train/no-such-policy' is not in the local Hugging Face cache and the Hugging"
        " Face hub cannot be reached ("
    )
    assert str(error).endswith("); pass a folder, or connect and run again")
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_is_no_adapter_is_not_found(base_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="PEFT's layout"):
        load_network(str(base_folder), lora_rank=4, seed=0, adapter=tmp_path)
