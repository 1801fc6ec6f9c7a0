"""What `RecordingCallback` adds to a step of TRL's GRPOTrainer, in CPU-seconds of the process.

`python -m tests.bench.record_trl`. Two measurements, on one core and one thread:

- Two trainers of the same small policy of text, one of them recorded, make a step each in turn.
  Printed: CPU-seconds of both, and the ratio of each pair of steps: median, least and most. A step
  lasts from its beginning to that of the next, so it includes the recording's thread, which writes
  to the log. End tokens are suppressed, so that all completions are as long.
- The callback alone, on ready completions of several sizes, because the ratio of two noisy steps
  shows no cost of a few milliseconds. What TRL does not compute here, costs nothing here.

Not measured: opening and ending the training (once a run), Kafka, checkpoints, a GPU, vLLM, several
processes. The recording starts no process.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import torch
import transformers
from datasets import Dataset
from PIL import Image
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from producer.agents.android.demo_tasks import demo_tasks
from producer.record.trl import RecordingCallback
from producer.text_policy.build import build_text_policy
from tests.bench.train import positive, use_one_core

PROMPTS: Final = [task.description for task in demo_tasks()]
GROUP_SIZE: Final = 8
NUM_GROUPS: Final = 4
NUM_TOKENS: Final = 64
"""Of each completion of the paired steps."""
WARM_UP_STEPS: Final = 2
SETTLE_S: Final = 0.03
"""The recording's thread writes what came last after 0.01 s; that belongs to the step."""
SCREEN_PX: Final = (1080, 2400)


class Size(NamedTuple):
    """A step of ready completions."""

    num_completions: int
    num_tokens: int
    """Of each completion; its prompt has 200."""
    has_screen: bool = False
    """Whether each prompt has a screenshot of a phone."""


SIZES: Final = (
    Size(32, 64),
    Size(64, 256),
    Size(64, 1024),
    Size(512, 1024),
    Size(32, 64, has_screen=True),
)
NUM_PROMPT_TOKENS: Final = 200
NUM_READY_STEPS: Final = 7


class TakeTurns(TrainerCallback):  # type: ignore[misc]  # transformers ships no types
    """Lets another trainer make a step between two of this one, and times this one's.

    Added before the recording's callback, whose work at the beginning of a step then counts.
    """

    def __init__(self, own: threading.Semaphore, other: threading.Semaphore) -> None:
        self.spent_s: list[float] = []
        """CPU-seconds of each step."""
        self._own, self._other = own, other
        self._began_s: float | None = None

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        if self._began_s is not None:
            self._step_over(self._began_s)
            self._other.release()
        self._own.acquire()
        self._began_s = time.process_time()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        if self._began_s is not None:
            self._step_over(self._began_s)

    def leave(self) -> None:
        """The other one waits no more, however this one ended."""
        self._other.release(1_000_000)

    def _step_over(self, began_s: float) -> None:
        time.sleep(SETTLE_S)
        self.spent_s.append(time.process_time() - began_s)


def config(out: Path, num_steps: int, suppressed: Sequence[int]) -> GRPOConfig:
    """Of both trainers."""
    return GRPOConfig(
        output_dir=str(out),
        max_steps=num_steps,
        per_device_train_batch_size=GROUP_SIZE * NUM_GROUPS,
        num_generations=GROUP_SIZE,
        max_completion_length=NUM_TOKENS,
        generation_kwargs={"suppress_tokens": list(suppressed)},
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=1,
    )


def measure_pairs(folder: Path, num_steps: int) -> tuple[list[float], list[float]]:
    """CPU-seconds of the steps of the trainer that is recorded, and of the other one."""
    policy = folder / "policy"
    build_text_policy(policy, PROMPTS, 0)
    semaphores = (threading.Semaphore(1), threading.Semaphore(0))
    own, other = (TakeTurns(*pair) for pair in (semaphores, semaphores[::-1]))
    recorded, plain = (make_trainer(folder, policy, num_steps, turns) for turns in (own, other))

    def record() -> None:
        with RecordingCallback(recorded, training="recorded", home=folder / "home"):
            recorded.train()

    def run(train: Callable[[], object], turns: TakeTurns) -> None:
        torch.set_num_threads(1)  # of this thread
        try:
            train()
        finally:
            turns.leave()

    threads = [
        threading.Thread(target=run, args=given) for given in ((record, own), (plain.train, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return own.spent_s[WARM_UP_STEPS:], other.spent_s[WARM_UP_STEPS:]


def make_trainer(folder: Path, policy: Path, num_steps: int, turns: TakeTurns) -> Any:
    """A GRPOTrainer on the policy."""
    tokenizer = AutoTokenizer.from_pretrained(policy)

    def some_reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [sum(tokens) % 1000 / 1000 for tokens in completion_ids]

    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(policy),
        processing_class=tokenizer,
        reward_funcs=[some_reward],
        args=config(folder / "out", num_steps + WARM_UP_STEPS, [tokenizer.eos_token_id]),
        train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(turns)
    return trainer


class ReadyTrainer:
    """What the callback needs of a GRPOTrainer; its completions are ready."""

    eos_token_ids = (0,)
    reward_weights = (1.0,)
    reward_func_names = ("some_reward",)
    num_generations = GROUP_SIZE

    def __init__(self, size: Size) -> None:
        draws = random.Random(0)
        rows, self.args = range(size.num_completions), SimpleNamespace(to_dict=dict)
        self.model = SimpleNamespace(training=True, config=SimpleNamespace(_name_or_path="ready"))
        groups = [f"{PROMPTS[at % len(PROMPTS)]} {at}" for at in rows[::GROUP_SIZE]]
        self.prompts = [groups[at // GROUP_SIZE] for at in rows]
        self.ids = [[draws.randrange(1, 150_000) for _ in range(size.num_tokens)] for _ in rows]
        self.texts = [" ".join(f"word{token % 1000}" for token in row) for row in self.ids]
        self.rewards = torch.tensor([[draws.random()] for _ in rows])
        self.output = {
            "prompt_ids": torch.ones(len(rows), NUM_PROMPT_TOKENS, dtype=torch.long),
            "prompt_mask": torch.ones(len(rows), NUM_PROMPT_TOKENS, dtype=torch.long),
            "advantages": torch.randn(len(rows)),
            "sampling_per_token_logps": -torch.rand(len(rows), size.num_tokens),
        }
        self.inputs: list[dict[str, Any]] = [{} for _ in rows]
        if size.has_screen:
            # As a dataset gives them: a picture of its own for each row.
            screens = [_screen(at) for at in range(len(groups))]
            self.inputs = [{"image": screens[at // GROUP_SIZE].copy()} for at in rows]

    def add_callback(self, callback: RecordingCallback) -> None:
        """As a Trainer has it."""

    def _calculate_rewards(self, *_: Any) -> torch.Tensor:
        return self.rewards

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, torch.Tensor]:
        self._calculate_rewards(inputs, self.prompts, self.texts, self.ids)
        return self.output


def _screen(number: int) -> Image.Image:
    """A picture that PNG neither shrinks to nothing nor leaves as it is."""
    draws = random.Random(number)
    small = Image.new("RGB", (SCREEN_PX[0] // 24, SCREEN_PX[1] // 24))
    small.putdata([(draws.randrange(256),) * 3 for _ in range(small.width * small.height)])
    return small.resize(SCREEN_PX, Image.Resampling.NEAREST)


def measure_ready(folder: Path, size: Size) -> list[float]:
    """CPU-seconds of the callback in each step."""
    trainer, spent_s = ReadyTrainer(size), list[float]()
    args = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=size.num_completions,
        num_generations=GROUP_SIZE,
        max_completion_length=size.num_tokens,
        use_cpu=True,
        bf16=False,
        report_to=[],
    )
    state = SimpleNamespace(is_world_process_zero=True, max_steps=NUM_READY_STEPS, global_step=0)
    logs = {"loss": 0.1, "grad_norm": 1.0, "reward": 0.5, "entropy": 1.0, "kl": 0.0}
    with RecordingCallback(trainer, training="ready", home=folder / "home") as callback:
        callback.on_train_begin(args, state, None)
        for step in range(NUM_READY_STEPS):
            state.global_step = step
            time.sleep(SETTLE_S)
            began_s = time.process_time()
            callback.on_step_begin(args, state, None)
            trainer._generate_and_score_completions(trainer.inputs)
            callback.on_step_end(args, state, None)
            callback.on_log(args, state, None, logs=logs)
            time.sleep(SETTLE_S)
            spent_s.append(time.process_time() - began_s)
    return spent_s[1:]


def main() -> None:
    """Print both measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=positive, default=20, help="pairs of steps")
    options = parser.parse_args()
    os.environ.pop("KAFKA_BOOTSTRAP_SERVERS", None)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    use_one_core()
    write = sys.stdout.write
    write(f"{', '.join(f'{name} {version(name)}' for name in ('torch', 'transformers', 'trl'))}\n")
    with tempfile.TemporaryDirectory(prefix="cua-bench-record-") as root:
        recorded, plain = measure_pairs(Path(root) / "pairs", options.steps)
        ratios = [one / other for one, other in zip(recorded, plain, strict=True)]
        write(
            f"{NUM_GROUPS} prompts x {GROUP_SIZE} completions of {NUM_TOKENS} tokens,"
            f" {len(ratios)} pairs of steps; CPU-s, median (least-most):\n"
            f"recorded {_spread(recorded)}, not recorded {_spread(plain)},"
            f" ratio {_spread(ratios)}\n"
        )
        for size in SIZES:
            spent_ms = [1000 * second for second in measure_ready(Path(root) / str(size), size)]
            screen = ", a screenshot in each prompt" if size.has_screen else ""
            write(
                f"{size.num_completions} completions of {size.num_tokens} tokens{screen}:"
                f" {statistics.median(spent_ms):.1f} CPU-ms a step"
                f" ({min(spent_ms):.1f}-{max(spent_ms):.1f})\n"
            )
            sys.stdout.flush()


def _spread(numbers: list[float]) -> str:
    return f"{statistics.median(numbers):.3f} ({min(numbers):.3f}-{max(numbers):.3f})"


if __name__ == "__main__":
    main()
