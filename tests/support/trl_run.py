"""A GRPOTrainer of TRL with a tiny policy of text, for tests that record it.

`python -m tests.support.trl_run POLICY OUTPUT STEP` records its run as `ten` and is killed with
SIGKILL when STEP's completions are to be scored.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from producer.record.trl import RecordingCallback

PROMPTS: Final = ("say yes please", "say no thanks")
TEN: Final = {"max_steps": 10, "save_strategy": "steps", "save_steps": 5}
"""A run of ten steps with a checkpoint in the middle."""


def length_reward(completions: Sequence[str], **_: Any) -> list[float]:
    """Longer answers are better."""
    return [min(1.0, len(text) / 20) for text in completions]


def make_trainer(policy: Path, out: Path, **given: Any) -> Any:
    """Of two prompts with four completions each, one generation a step.

    `given`: settings of GRPOConfig, and `reward`, a reward function.
    """
    torch.set_num_threads(1)
    settings = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "num_generations": 4,
        "max_completion_length": 6,
        "logging_steps": 1,
        "learning_rate": 1e-3,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 1,
        **{name: value for name, value in given.items() if name != "reward"},
    }
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(policy),
        processing_class=AutoTokenizer.from_pretrained(policy),
        reward_funcs=[given.get("reward", length_reward)],
        args=GRPOConfig(output_dir=str(out), **settings),
        train_dataset=Dataset.from_dict({"prompt": [*PROMPTS] * 8}),
        eval_dataset=Dataset.from_dict({"prompt": [*PROMPTS]}),
    )


def record_until_killed(policy: Path, out: Path, step: int) -> None:
    """Never returns: every step scores its completions once."""
    calls = 0

    def kill_in_step(completions: Sequence[str], **_: Any) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return length_reward(completions)

    trainer = make_trainer(policy, out, reward=kill_in_step, **TEN)
    with RecordingCallback(trainer, training="ten"):
        trainer.train()


if __name__ == "__main__":
    record_until_killed(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
