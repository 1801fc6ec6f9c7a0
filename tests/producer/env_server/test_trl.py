"""TRL's GRPOTrainer trains on our phone, by OpenEnv's client in its `environment_factory`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from datasets import Dataset
from openenv.core import GenericEnvClient
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from producer.agents.android.demo_tasks import demo_tasks
from producer.config import read_config
from producer.env_server.app import make_app
from producer.text_policy.build import TextPolicySize, build_text_policy
from tests.support.env_servers import served_here

pytestmark = pytest.mark.filterwarnings("ignore")
TASK = next(task for task in demo_tasks() if task.task_id == "train_01_open_settings")
SIZE = TextPolicySize(dim=64, layers=2, heads=2, ffn=128)
CALL: Final = (
    '<think>\n\n</think>\n\n<tool_call>\n{"name": "open_app", "arguments": {"package": "%s"}}\n'
    "</tool_call><|im_end|>"
)


class Phone:
    """As docs/openenv.md has it; `url` is the server's."""

    url = ""
    rewards: list[float] = []

    def __init__(self) -> None:
        self._client = GenericEnvClient(base_url=self.url).sync()
        self._last: Any = None

    def reset(self, **row: Any) -> str:
        self._last = self._client.reset(task_id=row.get("task_id"), seed=0)
        return str(self._last.observation["text"])

    def open_app(self, package: str) -> str:
        """Start an app.

        Args:
            package: Its package name.
        """
        self._last = self._client.step({"type": "open_app", "package": package})
        return str(self._last.observation["error"] or "done")

    def get_reward(self) -> float:
        if not self._last.done:
            self._last = self._client.step({"type": "terminate"})
        self.rewards.append(self._last.reward)
        return float(self._last.reward)


@pytest.fixture
def server() -> Iterator[str]:
    config = read_config({"model_name": "oracle"})
    with served_here(make_app(config, [TASK], 8)) as url:
        yield url


def write_policy(folder: Path, prompt: str) -> None:
    """One that opens the right app or another, each half of the time."""
    calls = [CALL % "com.android.settings", CALL % "com.android.camera"]
    build_text_policy(folder, [prompt, *calls], 0, SIZE)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder)
    prefix = tokenizer(prompt)["input_ids"]
    rows = [prefix + tokenizer(call)["input_ids"] for call in calls]
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3)
    for step in range(80):
        row = torch.tensor([rows[step % 2]])
        labels = row.clone()
        labels[:, : len(prefix)] = -100
        network(input_ids=row, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    network.save_pretrained(folder)


def test_two_steps_of_trl_get_our_rewards_for_the_tools_that_its_policy_calls(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(Phone, "url", server)
    monkeypatch.setattr(Phone, "rewards", [])
    from trl import chat_template_utils

    folder = tmp_path / "policy"
    template = chat_template_utils.qwen3_chat_template
    build_text_policy(folder, [TASK.description], 0, SIZE)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "user", "content": TASK.description}]
    prompt = tokenizer.apply_chat_template(
        messages,
        chat_template=template,
        tools=[Phone.open_app],
        tokenize=False,
        add_generation_prompt=True,
    )
    write_policy(folder, prompt)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = template
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder),
        processing_class=tokenizer,
        environment_factory=Phone,
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=2,
            per_device_train_batch_size=8,
            num_generations=8,
            max_completion_length=120,
            max_tool_calling_iterations=1,
            learning_rate=1e-3,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
            seed=1,
        ),
        train_dataset=Dataset.from_dict(
            {"prompt": [[{"role": "user", "content": ""}]] * 4, "task_id": [TASK.task_id] * 4}
        ),
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logged) == 2
    assert len(Phone.rewards) == 16
    assert {0.0, 1.0} == set(Phone.rewards)
    for step, entry in enumerate(logged):
        assert entry["reward"] == pytest.approx(sum(Phone.rewards[8 * step :][:8]) / 8)
    assert any(entry["grad_norm"] > 0 for entry in logged)
