"""What Tinker cannot do, or refuses, is said before the first event, with its exit code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from producer.config import read_config
from producer.errors import UsageError
from tests.support.cua_train import CuaTrain, cua_train
from tests.support.reading import installation_at
from tests.support.tinker_key import KEY
from tests.support.tinker_server import TinkerServer

__all__ = ["cua_train"]  # the fixture

TASKS = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}
WRONG_KEY = "tml-another-secret"
ASKED = {"provider": "tinker", "model_name": "some/policy", "tasks": TASKS}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model_name": "demo"}, "model_name: give the name of a base model that Tinker trains"),
        ({"model_name": "oracle"}, "model_name: give the name of a base model that Tinker trains"),
        ({"base_url": "http://localhost:1/v1"}, "base_url: is for OpenAI-compatible servers"),
        ({"load_checkpoint_path": "/adapter"}, "load_checkpoint_path: Tinker cannot load a folder"),
        ({"train_type": "full"}, "train_type: Tinker trains adapters only"),
        ({"lora_alpha": 4.0}, "lora_alpha: Tinker scales its adapters itself"),
        ({"lora_dropout": 0.1}, "lora_dropout: Tinker has no dropout"),
        (
            {"target_modules": ["q_proj"]},
            "target_modules: Tinker adapts only all, attention or mlp",
        ),
        ({"loss_fn": "gspo"}, "loss_fn: Tinker does not compute gspo as this process does"),
        ({"loss_fn": "reinforce"}, "loss_fn: Tinker does not compute reinforce"),
        ({"loss_fn": "ppo", "dual_clip": 3.0}, "dual_clip: Tinker's ppo has no dual clip"),
        (
            {"importance_cap": 2.0, "max_steps_off_policy": 1},
            "importance_cap: Tinker's losses have no truncated importance weights",
        ),
        ({"loss_aggregation": "token_mean"}, "loss_aggregation: Tinker's losses are sums"),
        ({"entropy_coef": 0.1}, "entropy_coef: Tinker's losses have no entropy bonus"),
        ({"kl_penalty_coef": 0.1}, "kl_penalty_coef: Tinker's losses have no KL penalty"),
        ({"compute_post_kl": True}, "compute_post_kl: is not measured with Tinker"),
        ({"advantage": "gae"}, "advantage: Tinker trains no value head"),
        ({"temperature": 0.7}, "temperature: Tinker computes log-probs at temperature 1 only"),
        ({"top_p": 0.9}, "top_p: with nucleus sampling Tinker's log-probs"),
        ({"device": "cpu"}, "device: Tinker computes the policy; omit it"),
        ({"kv_cache_bytes": 1}, "kv_cache_bytes: Tinker computes the policy; omit it"),
    ],
)
def test_what_tinker_would_compute_otherwise_is_refused_by_name(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        read_config({**ASKED, **given})
    assert message in str(error.value)


def test_only_tinker_loads_its_paths() -> None:
    path = "tinker://run/weights/step-000001"
    assert read_config({**ASKED, "load_checkpoint_path": path}).load_checkpoint_path == path
    with pytest.raises(UsageError, match="load_checkpoint_path: only provider tinker loads"):
        read_config({**ASKED, "provider": "in_process", "load_checkpoint_path": path})


@pytest.mark.parametrize("provider", ["tinker", "in_process"])
def test_weights_for_sampling_alone_are_no_folder(provider: str) -> None:
    """The CUA recipe's own example."""
    given = {**ASKED, "provider": provider}
    with pytest.raises(UsageError, match=r"sampler_weights/000080.* is not a path"):
        read_config({**given, "load_checkpoint_path": "tinker://run/sampler_weights/000080"})


@pytest.fixture(scope="module")
def server(small_policy: Path) -> Iterator[TinkerServer]:
    with TinkerServer([str(small_policy)], refuses=frozenset({"create_model"})) as started:
        yield started


@pytest.fixture
def run_words(small_policy: Path) -> list[str]:
    tasks = '{"source_type": "ids", "task_ids": ["train_01_open_settings"]}'
    model = ["--model-name", str(small_policy), "--tasks", tasks, "--no-monitor"]
    return ["run", "--provider", "tinker", *model]


@pytest.mark.usefixtures("sdk_connections")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize(
    ("environment", "words", "code", "message"),
    [
        ({"TINKER_API_KEY": ""}, [], 2, "TINKER_API_KEY is not set"),
        ({"TINKER_API_KEY": "sk-1"}, [], 2, "TINKER_API_KEY is not a key of Tinker"),
        ({"TINKER_API_KEY": WRONG_KEY}, [], 2, "TINKER_API_KEY: Tinker refuses the key (HTTP 401"),
        ({"TINKER_BASE_URL": "localhost"}, [], 2, "TINKER_BASE_URL: 'localhost' is not a URL"),
        ({"TINKER_BASE_URL": "http://u:p@h"}, [], 2, "TINKER_BASE_URL must not hold a user"),
        ({"TINKER_BASE_URL": "http://127.0.0.1:9"}, [], 5, "Tinker cannot be reached at http://12"),
        ({}, ["--model-name", "some/policy"], 3, "model_name: Tinker trains no 'some/policy'"),
        ({}, ["--max-tokens", "9000"], 2, "max_tokens: Tinker's"),
        ({}, [], 2, "Tinker refuses to make an adapter of"),
        (
            {},
            ["--load-checkpoint-path", "tinker://r/weights/n"],
            3,
            "Tinker cannot find tinker://r/weights/n",
        ),
        ({}, ["--load-checkpoint-path", "tinker://r/other/n"], 2, "load_checkpoint_path"),
    ],
)
def test_a_service_that_refuses_leaves_no_event_and_its_message_has_no_key(
    server: TinkerServer,
    run_words: list[str],
    cua_train: CuaTrain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    words: list[str],
    code: int,
    message: str,
) -> None:
    given = {
        "CUA_HOME": str(tmp_path / "home"),
        "TINKER_API_KEY": KEY,
        "TINKER_BASE_URL": server.url,
        "TINKER_TELEMETRY": "0",
        **environment,
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    done = cua_train(*run_words, *words, expected=code)
    assert message in done.stderr
    assert KEY not in done.stderr
    assert WRONG_KEY not in done.stderr
    assert not installation_at(tmp_path / "home").local_log_path.exists()
