"""The network of a supervised training, with its examples and output. Everything that needs torch.

It is opened before anything is recorded, so settings that cannot work leave nothing behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch

from producer.algorithms.learning_rate import ScheduleName
from producer.errors import UsageError
from producer.fine_tuning.examples import Conversation, Examples, LabelledSteps, Pair
from producer.fine_tuning.memory import FittingMemory
from producer.fine_tuning.settings import FineTuningConfig
from producer.policy.adapter_settings import ALL_WEIGHTS
from producer.policy.memory_demand import TOKENS_PER_MICRO_BATCH, row_tokens
from producer.policy.prefix_clusters import cluster_by_prefix
from producer.policy.torch_policy.architectures import Architecture
from producer.policy.torch_policy.cpu_parallel import (
    choose_threads,
    machine_threads,
    num_workers,
    use_threads,
)
from producer.policy.torch_policy.device_memory import checkpointed_layers
from producer.policy.torch_policy.loading import load_network, open_base
from producer.policy.torch_policy.memory_check import size_of_policy
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import Placement, choose_placement
from producer.policy.torch_policy.state import save_checkpoint, sync_files, write_policy
from producer.supervised.fit import Fit, FitSettings, FitStep, steps_per_epoch
from producer.supervised.held_out import Figures, evaluate
from producer.supervised.objective import CrossEntropy, Example, LoadedNetwork
from producer.supervised.pairwise_reward import BradleyTerry, TokenPair, scoring_network
from producer.supervised.sequences import (
    StepMarks,
    encode_conversation,
    label_tokens,
    mark_steps,
)
from producer.supervised.step_scorer import MarkedSteps, StepCrossEntropy
from producer.training.checkpoints import file_sha256

Item: TypeAlias = Example | MarkedSteps | TokenPair
_DTYPES: Final = {"BF16": torch.bfloat16, "F16": torch.float16}
MAX_STEPS: Final = 1_000_000
"""The same limit as for runs: the tables' integers have 32 bits."""
MIN_RATE: Final = 0.1
"""Share of the peak rate that cosine_with_min_lr leaves at the end (OpenRLHF)."""
_SCHEDULES: Final[dict[str, tuple[ScheduleName, float]]] = {
    "cosine": ("cosine", 0.0),
    "cosine_with_min_lr": ("cosine", MIN_RATE),
    "linear": ("linear", 0.0),
    "constant": ("constant", 0.0),
    "constant_with_warmup": ("constant", 0.0),
}


@dataclass(frozen=True, slots=True)
class _Opened:
    """A loaded network. The weights to train require gradients."""

    network: LoadedNetwork
    tokenizer: Any
    lora: Network | None
    """The network with its adapter, if train_type is lora."""
    stored_dtype: str
    """Type of the policy's weights in its folder."""


@dataclass(slots=True)
class Trainee:
    """A network that learns from examples. Not thread-safe."""

    config: FineTuningConfig
    """The configuration, completed with facts about the examples."""
    num_examples: int
    num_held_out: int
    num_left_out: int
    """Number of examples longer than `max_length`."""
    fit: Fit[Any]
    """The state that is saved and loaded."""
    _opened: _Opened
    _objective: CrossEntropy | StepCrossEntropy | BradleyTerry
    _held_out: Sequence[Any]
    _pass_tokens: int
    """Padded tokens per pass."""

    def step(self) -> FitStep:
        """Perform one optimiser step."""
        with checkpointed_layers(self._opened.network, enabled=self.config.gradient_checkpointing):
            return self.fit.step()

    def evaluate(self) -> Figures | None:
        """Evaluate the held-out examples; None if there are none."""
        if not self._held_out:
            return None
        return evaluate(
            *(self._opened.network, self._objective, self._held_out, self._pass_tokens),
            is_bfloat16=self.config.dtype == "bfloat16",
        )

    def export(self, folder: Path) -> str:
        """Write the trained policy into a new folder and return its weights file's hex sha256.

        All weights are written in the hub's layout, in the type that the policy was stored in; an
        adapter is written in PEFT's layout. The tokenizer is included.
        """
        folder.mkdir(parents=True)
        if self._opened.lora is not None:
            digest = save_checkpoint(folder, self._opened.lora)
        else:
            digest = self._export_whole(folder)
        self._opened.tokenizer.save_pretrained(folder)
        if self.config.objective == "process_reward":
            _marks(self.config).write(folder)
        sync_files(folder)
        return digest

    def _export_whole(self, folder: Path) -> str:
        network = self._opened.network
        dtype = _DTYPES.get(self._opened.stored_dtype, torch.float32)
        if self.config.objective == "pairwise_reward":
            dtype = torch.float32  # score differences are too small for bfloat16
        write_policy(folder, network, network.state_dict(), dtype, self.config.model_name)
        return file_sha256(folder / ALL_WEIGHTS)


def open_trainee(config: FineTuningConfig, examples: Examples) -> Trainee:
    """Load and encode everything. Raises UsageError, NotFoundError."""
    memory = _memory(config)
    opened = _open_network(config)
    tokenizer, network = opened.tokenizer, opened.network
    max_length = _longest(config, network)
    encoded = _encode(tokenizer, config, examples.training)
    kept = [item for length, item in encoded if length <= max_length]
    if encoded and not kept:
        shortest = min(length for length, _ in encoded)
        raise UsageError(_all_too_long(config, len(encoded), max_length, shortest))
    encoded_held_out = _encode(tokenizer, config, examples.held_out)
    held_out = [item for length, item in encoded_held_out if length <= max_length]
    config = config.model_copy(
        update={
            "data_sha256": examples.sha256,
            "steps_per_epoch": steps_per_epoch(len(kept), config.batch_size),
            "cpu_threads": config.cpu_threads or machine_threads(),
        }
    )
    if config.num_steps > MAX_STEPS:
        message = f"epochs: {config.epochs} are {config.num_steps:,} steps; at most {MAX_STEPS:,}"
        raise UsageError(message)
    num_weights = sum(parameter.numel() for parameter in network.parameters())
    use_threads(config.model_name, num_weights, network.device, config.cpu_threads)
    objective = _objective(config, tokenizer)
    if memory is not None:
        sizes: Any = objective  # the objective whose items these are
        longest = max(map(sizes.num_tokens, (*kept, *held_out)), default=0)
        shared = row_tokens(memory.pass_tokens, longest) if config.group_by_prefix else longest
        memory.check_longest(shared)
    tokens = TOKENS_PER_MICRO_BATCH if memory is None else memory.pass_tokens
    return Trainee(
        config=config,
        num_examples=len(kept),
        num_held_out=len(held_out),
        num_left_out=len(examples.training) + len(examples.held_out) - len(kept) - len(held_out),
        _opened=opened,
        _objective=objective,
        fit=Fit(
            network,
            kept,
            objective,
            _fit_settings(config),
            is_bfloat16=config.dtype == "bfloat16",
            pass_tokens=tokens,
            clusters=cluster_by_prefix(_prompts(kept)) if config.group_by_prefix else (),
        ),
        _held_out=held_out,
        _pass_tokens=tokens,
    )


def _memory(config: FineTuningConfig) -> FittingMemory | None:
    """The memory demand, checked for weights and one pass; None if the policy's size is unknown."""
    placement = choose_placement(config.device)
    device = placement.device
    size = (
        size_of_policy(config.model_name, config.lora_rank, placement.dtype)
        if config.train_type == "lora"
        else size_of_policy(config.model_name, None, torch.float32)
    )
    if size is None:
        return None
    memory = FittingMemory(
        config.model_name,
        size,
        device,
        num_lanes=num_workers(device, choose_threads(size.num_weights, device, config.cpu_threads)),
        has_logits=config.objective == "sft",
        checkpointed=config.gradient_checkpointing,
    )
    memory.check_weights()
    return memory


def _open_network(config: FineTuningConfig) -> _Opened:
    placement = choose_placement(config.device)
    if config.attention == "flash_attention_2" and not (
        find_spec("flash_attn") and placement.device.type == "cuda"
    ):
        message = (
            "attention: flash_attention_2 needs the package flash-attn and a CUDA device; use sdpa"
        )
        raise UsageError(message)
    if config.train_type == "lora":
        lora = load_network(
            *(config.model_name, config.lora_rank, config.seed, None, placement),
            lora_alpha=config.lora_alpha,
        )
        _check_text(config, lora.architecture)
        lora.base.set_attn_implementation(config.attention)
        return _Opened(lora.adapted, lora.tokenizer, lora, "")
    base = open_base(config.model_name, Placement(placement.device, torch.float32))
    _check_text(config, base.architecture)
    network = base.network
    if config.objective == "pairwise_reward":
        network = scoring_network(network, int(base.processor.pad_token_id), config.seed)
    network.set_attn_implementation(config.attention)
    network.requires_grad_(requires_grad=True)
    return _Opened(network, base.processor, None, base.stored_dtype)


def _check_text(config: FineTuningConfig, architecture: Architecture) -> None:
    if architecture.sees_screens:
        message = (
            f"model_name: {config.model_name} ({architecture.title}) sees screens; choose a policy"
            " of text, such as Qwen2.5"
        )
        raise UsageError(message)


def _objective(
    config: FineTuningConfig,
    tokenizer: Any,  # noqa: ANN401  # transformers
) -> CrossEntropy | StepCrossEntropy | BradleyTerry:
    match config.objective:
        case "sft":
            return CrossEntropy(shares_prefixes=config.group_by_prefix)
        case "process_reward":
            return StepCrossEntropy(label_tokens(tokenizer, _marks(config)))
        case "pairwise_reward":
            return BradleyTerry()


def _encode(
    tokenizer: Any,  # noqa: ANN401  # transformers
    config: FineTuningConfig,
    examples: Sequence[Conversation | LabelledSteps | Pair],
) -> list[tuple[int, Item]]:
    """Encode the examples, each with its length in tokens; of a pair, the longer answer's."""

    def conversation(given: Conversation) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        template = config.use_chat_template
        return encode_conversation(tokenizer, given.messages, use_chat_template=template)

    def answer(given: Conversation | str) -> tuple[int, ...]:
        if isinstance(given, Conversation):
            return conversation(given)[0]
        text = f"{given}{tokenizer.eos_token}"
        return tuple(tokenizer.encode(text, add_special_tokens=False))

    encoded: list[tuple[int, Item]] = []
    for example in examples:
        item: Item
        match example:
            case Conversation():
                item = Example(*conversation(example))
                length = len(item.tokens)
            case LabelledSteps(texts, labels):
                item = MarkedSteps(*mark_steps(tokenizer, _marks(config), texts), labels)
                length = len(item.tokens)
            case Pair(chosen, rejected):
                item = TokenPair(answer(chosen), answer(rejected))
                length = max(len(item.chosen), len(item.rejected))
        encoded.append((length, item))
    return encoded


def _prompts(examples: Sequence[Any]) -> list[Sequence[int]]:
    """For each conversation, the tokens before its first target."""
    return [example.tokens[: example.loss_mask.index(True)] for example in examples]


def _marks(config: FineTuningConfig) -> StepMarks:
    right, wrong = config.reward_tokens
    return StepMarks(config.placeholder_token, (right, wrong))


def _fit_settings(config: FineTuningConfig) -> FitSettings:
    schedule, final_factor = _SCHEDULES[config.lr_scheduler]
    warmed = 0.0 if config.lr_scheduler == "constant" else config.warmup_ratio
    return FitSettings(
        num_steps=config.num_steps,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        warmup_steps=-int(-warmed * config.num_steps // 1),
        schedule=schedule,
        final_factor=final_factor,
        weight_decay=config.weight_decay,
        betas=(0.9, config.adam_beta2),
        max_gradient_norm=config.max_gradient_norm,
        seed=config.data_seed,
    )


def _longest(config: FineTuningConfig, network: LoadedNetwork) -> int:
    """Maximum tokens of an example: `max_length`, but no more than the policy's context."""
    context = getattr(network.config, "max_position_embeddings", None)
    return config.max_length if context is None else min(config.max_length, int(context))


def _all_too_long(config: FineTuningConfig, number: int, max_length: int, shortest: int) -> str:
    found = (
        f"all {number} examples are longer than {max_length} tokens; the shortest has {shortest}"
    )
    if max_length < config.max_length:
        return f"{found}. The policy's context has no more; use shorter examples or another policy"
    return f"max_length: {found}; raise it"
