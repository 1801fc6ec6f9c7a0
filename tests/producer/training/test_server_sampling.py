"""A training that servers sample for: exact tokens, published adapters, restarts, refusals."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from producer.config import RunConfig
from producer.errors import CuaTrainError, UnreachableError, UsageError
from producer.training.run import run
from schemas.installation import Installation, read_installation
from tests.support.chat_server import ChatServer, chat_server
from tests.support.checkpoints import write_checkpoint
from tests.support.faulty_proxy import faulty_proxy
from tests.support.forked_command import run_command
from tests.support.killed_run import run_until_killed
from tests.support.policy_server import PolicyServer, policy_server
from tests.support.reading import read_all
from tests.support.replayed import assert_sampled_as_here, replay_first_step
from tests.support.sglang_front import sglang_front
from tests.support.small_run import one_step, watching

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
EXACT = 1e-5
"""Largest difference of a log-prob, nats, between the server's batches and the learner's."""

BY_TOKENS: dict[str, Any] = {
    "advantage": "reinforce",
    "reward": "tests.support.token_reward:by_tokens",
    "entropy_coef": 0.0,
}
"""Random answers have rewards too, although within a group they may be equal."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("policy") / "qwen3_vl"
    write_checkpoint(made, "qwen3_vl")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PolicyServer]:
    with policy_server(folder) as started:
        yield started


@pytest.fixture
def installation() -> Installation:
    return read_installation(os.environ)


def served(folder: Path, url: str, **changes: object) -> RunConfig:
    settings: dict[str, object] = {"base_url": url, "max_turns": 3, "max_tokens": 12}
    settings["entropy_coef"] = 0.1  # random answers have no reward that could teach
    return one_step(folder, **{**settings, "learning_rate": 0.01, "num_steps": 3, **changes})


def events(installation: Installation, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(record.value) for record in read_all(installation)]
    return [event["data"] for event in found if event["type"] == f"cua.{kind}"]


def models(url: str) -> list[str]:
    return [row["id"] for row in httpx.get(f"{url}/models").json()["data"]]


def test_log_probs_of_two_servers_that_fail_now_and_then_are_those_of_the_learner(
    folder: Path,
    server: PolicyServer,
    installation: Installation,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One has the interface of vLLM, the other that of SGLang."""
    with (
        policy_server(folder) as other,
        sglang_front(other.url) as front,
        faulty_proxy(server.url) as one_proxy,
        faulty_proxy(front.url) as other_proxy,
    ):

        def watch(logged: str) -> None:
            if logged.startswith("step 1/3"):
                # Single faults are retried on the same server, a series on the other one.
                one_proxy.faults = [429, "drop", "slow", 500, "cut"]
                other_proxy.faults = [500] * 8

        config = served(
            folder,
            f"{one_proxy.url},{other_proxy.url}",
            adapters_dir=tmp_path / "adapters",
            **BY_TOKENS,
        )
        with watching(watch):
            run(config, installation=installation)
        names = models(front.url)
    assert (one_proxy.faults, other_proxy.faults) == ([], [])
    assert min(one_proxy.num_answered, other_proxy.num_answered) > 3
    assert f"{other_proxy.url}: it answered HTTP 500" in caplog.text
    assert events(installation, "rollout.failed") == []

    steps = events(installation, "step.finished")
    replay = replay_first_step(installation, "first", folder)
    assert replay.recorded.loss == pytest.approx(steps[0]["loss"], rel=1e-5, abs=1e-4)
    assert_sampled_as_here(replay)
    assert len(steps) == 3
    for step in steps:
        assert 0 <= step["metrics"]["sampling/logprob_gap_mean"] <= EXACT
        assert step["metrics"]["sampling/logprob_gap_max"] <= EXACT
        assert step["metrics"]["sampling/effective_sample_share"] == pytest.approx(1)
    turns = events(installation, "rollout.turn_taken")
    assert len(turns) >= 3 * 2
    assert all(turn["tokens"]["completion_logprobs"] for turn in turns)
    assert {turn["policy_version"] for turn in turns} == {0, 1, 2, 3}
    (newest,) = (tmp_path / "adapters").iterdir()
    assert models(server.url) == [str(folder), newest.name], "older adapters are unloaded"
    assert names == [str(folder), newest.name]


def test_prompts_that_the_server_tokenises_otherwise_are_trained_on_and_counted(
    folder: Path, installation: Installation, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the policy's weights and another chat template."""
    write_checkpoint(tmp_path / "other", "qwen3_vl")
    for name in ("tokenizer_config.json", "chat_template.json"):
        file = tmp_path / "other" / name
        written = json.loads(file.read_text())
        template = written["chat_template"].replace("<|im_end|>\n", "<|im_end|>\n\n")
        assert template != written["chat_template"]
        file.write_text(json.dumps(written | {"chat_template": template}))
    with policy_server(tmp_path / "other", name=str(folder)) as other:
        config = served(folder, other.url, **BY_TOKENS, num_steps=1, importance_cap=2.0)
        run(config, installation=installation)
    (step,) = events(installation, "step.finished")
    # Two rollouts of three turns; what a first turn is compared with is not in the log.
    assert step["metrics"]["sampling/retokenised_turns"] == 2 * 2
    assert caplog.text.count("the server tokenised an episode's first prompt as") == 1
    assert step["metrics"]["sampling/logprob_gap_max"] <= EXACT
    assert step["metrics"]["optim/importance_capped_share"] == 0
    turns = events(installation, "rollout.turn_taken")
    assert {turn["tokens"]["prompt_extends"] for turn in turns} == {None}


def test_a_prompt_without_screens_is_sent_as_tokens(
    installation: Installation, tmp_path: Path
) -> None:
    from tests.support.text_policy import RUN, build_knowing_policy

    build_knowing_policy(tmp_path / "text")
    with policy_server(tmp_path / "text") as server:
        settings = {**RUN, "model_name": str(tmp_path / "text"), "base_url": server.url}
        run(RunConfig.model_validate({**settings, "num_steps": 1}), installation=installation)
    (step,) = events(installation, "step.finished")
    assert step["metrics"]["sampling/logprob_gap_max"] <= EXACT


def test_a_pretrained_policy_is_served_and_trained_under_the_same_name(
    installation: Installation,
) -> None:
    """The server lists the name that it was started with, the training knows the folder."""
    name = "smollm2-135m"
    write_checkpoint(installation.policies_dir / name, "qwen3_vl")
    settings = {"--model-name": name, "--num-steps": "1", "--group-size": "2"}
    settings |= {"--groups-per-batch": "1", "--max-turns": "1", "--max-tokens": "4"}
    settings |= {"--lora-rank": "2", "--eval-every": "0", "--eval-episodes": "1"}
    settings["--tasks"] = '{"source_type": "ids", "task_ids": ["train_01_open_settings"]}'
    words = [word for pair in settings.items() for word in pair]
    with policy_server(Path(name)) as server:
        assert models(server.url) == [name]
        asked = ["--base-url", server.url, "--no-monitor", "--skip-baseline"]
        done = run_command("producer", "run", *words, *asked)
    assert done.returncode == 0, done.stderr
    (step,) = events(installation, "step.finished")
    assert step["metrics"]["sampling/logprob_gap_max"] <= EXACT


@pytest.mark.parametrize(
    ("line", "meets"),
    [("step 1/3", "cannot load the adapter"), ("eval-1:", "has lost the adapter")],
)
def test_a_server_that_is_killed_is_waited_for_and_gets_the_adapter_again(
    folder: Path,
    installation: Installation,
    caplog: pytest.LogCaptureFixture,
    line: str,
    meets: str,
) -> None:
    with policy_server(folder) as server:
        is_down = False

        def watch(logged: str) -> None:
            nonlocal is_down
            if logged.startswith(line):
                server.kill()
                is_down = True
            # It is back before anybody asks it, or once the trainer has met the outage.
            if is_down and ("lost" in meets or meets in logged):
                is_down = False
                server.start()

        with watching(watch):
            summary = run(served(folder, server.url, eval_every=1), installation=installation)
    assert (summary.status, summary.steps) == ("completed", 3)
    assert meets in caplog.text
    assert events(installation, "rollout.failed") == []


@pytest.mark.services
def test_a_killed_trainer_continues_on_its_servers_and_its_tables_are_equal(
    folder: Path, server: PolicyServer, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"--model-name": str(folder), "--base-url": server.url, "--num-steps": "3"}
    settings |= {"--group-size": "2", "--groups-per-batch": "1", "--max-turns": "2"}
    settings |= {"--max-tokens": "6", "--eval-every": "0", "--lora-rank": "2"}
    settings["--tasks"] = '{"source_type": "ids", "task_ids": ["train_01_open_settings"]}'
    settings["--eval-episodes"] = "2"
    words = ["run", "--training-name", "killed", "--no-monitor", "--skip-baseline"]
    words += [word for pair in settings.items() for word in pair]
    run_until_killed(("emit", "cua.step.training_started", "2"), words)

    again = run_command("producer", "run", "--training-name", "killed", "--no-monitor", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1])["steps"] == 3
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    assert run_command("consumers", "run", "--once").returncode == 0
    verified = run_command("consumers", "verify")
    assert verified.returncode == 0, verified.stdout


def answer(**changes: object) -> bytes:
    choice: dict[str, object] = {"message": {"content": "x"}, "finish_reason": "stop"}
    choice |= {"token_ids": [5], "logprobs": {"content": [{"logprob": -1.0}]}, **changes}
    return json.dumps({"model": "ours", "choices": [choice], "prompt_token_ids": [1]}).encode()


@pytest.fixture
def scripted(folder: Path) -> Iterator[ChatServer]:
    """A server of another make that takes every adapter."""
    with chat_server() as server:
        server.models = [str(folder)]
        yield server


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"choices": [{"message": {"content": "x"}}]}', r"lacks what training needs .*token_ids"),
        (answer(logprobs=None), r"lacks what training needs \(choices.0.logprobs\)"),
        (answer(token_ids=[5, 6]), "has 2 token ids and 1 log-probs"),
        (answer(), "it answered with ours, not with cua-"),
    ],
)
def test_an_answer_that_cannot_be_trained_on_is_refused_before_the_first_event(
    folder: Path, scripted: ChatServer, installation: Installation, body: bytes, message: str
) -> None:
    scripted.answers = [(200, {}, body)]
    with pytest.raises(UnreachableError, match=message):
        run(served(folder, scripted.url), installation=installation)
    assert not installation.local_log_path.exists()


def test_servers_that_cannot_sample_for_this_policy_are_refused_before_the_first_event(
    folder: Path, server: PolicyServer, scripted: ChatServer, installation: Installation
) -> None:
    def refused(kind: type[CuaTrainError], message: str, url: str, **changes: object) -> None:
        with pytest.raises(kind, match=message):
            run(served(folder, url, **changes), installation=installation)

    refused(UnreachableError, "http://127.0.0.1:9/v1 cannot be reached", "http://127.0.0.1:9/v1")
    refused(UnreachableError, "127.0.0.1:9/v1 cannot", f"{server.url},http://127.0.0.1:9")
    scripted.reply_error(400, "the rank is larger than --max-lora-rank")
    refused(UsageError, "cannot load the adapter .*; vLLM needs --enable-lora, a", scripted.url)
    # Also for a command, which leaves out advice with flags that it has not.
    tasks = json.dumps({"source_type": "demo_training"})
    asked = run_command(
        *("producer", "run", "--model-name", str(folder), "--base-url", scripted.url),
        *("--tasks", tasks),
    )
    assert (asked.returncode, "vLLM needs --enable-lora, a" in asked.stderr) == (2, True), asked
    scripted.models = ["another"]
    refused(UsageError, f"serves another, not '{folder}'", scripted.url)
    with policy_server(folder, key="sk-secret") as guarded:
        refused(UsageError, r"refuses the key \(HTTP 401\); set OPENAI_API_KEY", guarded.url)
    assert not installation.local_log_path.exists()


def test_a_server_of_other_weights_is_refused_before_the_first_event(
    folder: Path, installation: Installation, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "other", "qwen3_vl", seed=1)
    with (
        policy_server(tmp_path / "other", name=str(folder)) as other,
        pytest.raises(UsageError, match="cannot load the adapter"),
    ):
        run(served(folder, other.url), installation=installation)
    assert not installation.local_log_path.exists()


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("completions", {"model": "x", "prompt": [1]}, 404, "there is no model 'x'"),
        ("completions", {"model": "M"}, 400, "prompt: Field required"),
        ("completions", {"model": "M", "prompt": [10**9]}, 400, "token ids from 0 to"),
        ("completions", {"model": "M", "prompt": [1], "max_tokens": 999999}, 400, "takes"),
        ("completions", {"model": "M", "prompt": [1], "n": 2}, 400, "n: Input should be 1"),
        ("chat/completions", {"model": "M", "messages": []}, 400, "messages: List should have"),
        ("load_lora_adapter", {"lora_name": "a", "lora_path": "/no"}, 404, "/no"),
        ("load_lora_adapter", {"lora_name": "M", "lora_path": "/no"}, 400, "lora_name"),
        ("unload_lora_adapter", {"lora_name": "a"}, 404, "there is no adapter 'a'"),
    ],
)
def test_a_wrong_request_is_answered_with_what_is_wrong(
    folder: Path, server: PolicyServer, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    sent = {name: str(folder) if value == "M" else value for name, value in body.items()}
    response = httpx.post(f"{server.url}/{path}", json=sent)
    assert (response.status_code, message in response.json()["error"]["message"]) == (status, True)


def test_images_are_taken_from_data_urls_alone(folder: Path, server: PolicyServer) -> None:
    image = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}
    body = {"model": str(folder), "messages": [{"role": "user", "content": [image]}]}
    response = httpx.post(f"{server.url}/chat/completions", json=body)
    assert response.status_code == 400
    assert "must be a data URL" in response.json()["error"]["message"]


def test_serve_refuses_an_open_address_without_a_key_and_a_port_that_is_taken(
    folder: Path, server: PolicyServer
) -> None:
    def serve(*words: str) -> str:
        done = run_command("producer", "serve", "--model-name", str(folder), *words)
        assert done.returncode == 2, done
        return done.stderr

    both = run_command("producer", "serve", "--training-name", "a", "--model-name", "b")
    assert (both.returncode, "give either --model-name or --training" in both.stderr) == (2, True)
    assert "set OPENAI_API_KEY to a key" in serve("--host", "192.0.2.1")
    assert f"cannot listen on 127.0.0.1:{server.port}" in serve("--port", str(server.port))
