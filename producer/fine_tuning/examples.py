"""Reads the examples of a supervised training from JSON or JSON lines, in the original formats.

    sft                {"messages": [{"role", "content"}, ...]}, or a prompt and its answer
    process_reward     {"input": "… и … и", "label": ["+", "-"]} or labels from 0 to 1
    pairwise_reward    {"chosen": …, "rejected": …}, text or messages

sft also reads the questions of the split `train` from a folder in BIRD's or Spider's layout.

A row in another form raises a UsageError that names file, example and field.
"""

import hashlib
import json
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

from producer.errors import UsageError
from producer.fine_tuning.questions import AnsweredQuestion, read_answered
from producer.fine_tuning.settings import FineTuningConfig
from producer.json_text import RefusedJsonError, read_json
from producer.seeds import derived_seed
from producer.supervised.sequences import Message

logger = logging.getLogger(__name__)

PROMPTS: Final = ("prompt", "query", "instruction", "question")
ANSWERS: Final = ("completion", "response", "output", "answer")
ROLES: Final = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A dialogue. Every assistant message is a training target."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class LabelledSteps:
    """A prompt and steps, each with its label."""

    texts: tuple[str, ...]
    """The text before each step's marker; the first one begins with the prompt."""
    labels: tuple[float, ...]
    """For each step, the probability that the completion is right so far."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one prompt."""

    chosen: Conversation | str
    rejected: Conversation | str


Example: TypeAlias = Conversation | LabelledSteps | Pair


@dataclass(frozen=True, slots=True)
class Examples:
    """The examples for training and for evaluation."""

    training: tuple[Example, ...]
    held_out: tuple[Example, ...]
    sha256: str
    """Hash of the files."""


def load_examples(config: FineTuningConfig) -> Examples:
    """Load every example of `config.data_path`.

    Raises UsageError that names file, example (from 1) and field.
    """
    digest = hashlib.sha256()
    read = _READERS[config.objective]
    examples: list[Example] = []
    groups: list[str] = []
    num_without_prompt = 0
    for path in config.data_path:
        if path.is_dir():
            for asked in _data_set(path, config):
                examples.append(Conversation(asked.messages))
                groups.append(asked.group)
                digest.update(asked.identity.encode())
            continue
        data = _read_bytes(path)
        digest.update(hashlib.sha256(data).digest())
        for number, row in enumerate(_rows(path, data), 1):
            try:
                examples.append(read(_object(row), config))
            except ValueError as error:
                message = f"{path}: example {number}: {error}"
                raise UsageError(message) from None
            group = _group(row, config)
            num_without_prompt += group is None
            groups.append(json.dumps(row, sort_keys=True) if group is None else group)
    if not examples:
        message = f"data_path: {', '.join(map(str, config.data_path))} holds no examples"
        raise UsageError(message)
    held_out = choose_held_out(groups, config.held_out_ratio, config.data_seed)
    if held_out and num_without_prompt:
        logger.warning(
            "%d of %d examples have no field with their prompt (%s, question_id): examples of one"
            " prompt may be both trained on and held out",
            *(num_without_prompt, len(examples), ", ".join(PROMPTS)),
        )
    if config.held_out_ratio and not held_out:
        logger.warning(
            "nothing is held out to evaluate on: all %d examples have the same prompt",
            len(examples),
        )
    return Examples(
        training=tuple(one for index, one in enumerate(examples) if index not in held_out),
        held_out=tuple(one for index, one in enumerate(examples) if index in held_out),
        sha256=digest.hexdigest(),
    )


def _data_set(folder: Path, config: FineTuningConfig) -> list[AnsweredQuestion]:
    if config.objective != "sft":
        message = (
            f"data_path: {folder} is a folder; a reward model learns from a file of labelled steps"
            " (`cua-train sql label-steps` makes one) or of pairs"
        )
        raise UsageError(message)
    return read_answered(folder, config.system, skip_invalid=config.skip_invalid)


def choose_held_out(groups: Sequence[str], ratio: float, seed: int) -> frozenset[int]:
    """Choose indices of held-out examples.

    Whole groups are chosen, so that no prompt is both trained on and evaluated. At least one group
    is chosen if `ratio` is above 0 and there are two; never all of them.
    """
    names = sorted(set(groups))
    if ratio == 0 or len(names) < 2:  # noqa: PLR2004  # one to learn, one to ask
        return frozenset()
    random.Random(derived_seed(seed, "held-out")).shuffle(names)  # noqa: S311  # order, not secrets
    wanted = ratio * len(groups)
    chosen: set[str] = set()
    num_chosen = 0
    for name in names[:-1]:
        if chosen and num_chosen >= wanted:
            break
        chosen.add(name)
        num_chosen += groups.count(name)
    return frozenset(index for index, group in enumerate(groups) if group in chosen)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"data_path: {path} cannot be read: {error.strerror}"
        raise UsageError(message) from None


def _rows(path: Path, data: bytes) -> list[Any]:
    """The rows of a file; none for an empty one."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        message = f"data_path: {path} is not text in UTF-8"
        raise UsageError(message) from None
    if path.suffix == ".jsonl":
        lines = enumerate(text.split("\n"), 1)
        return [_read(path, line, number) for number, line in lines if line.strip()]
    rows = _read(path, text, 1) if text.strip() else []
    if not isinstance(rows, list):
        message = f"data_path: {path} must hold a list of examples"
        raise UsageError(message)
    return rows


def _read(path: Path, text: str, first_line: int) -> Any:  # noqa: ANN401  # JSON
    """JSON that begins in this line of the file."""
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        message = f"data_path: {path} is not valid JSON, line {line}: {error.msg}"
    except RefusedJsonError as error:
        message = f"data_path: {path}: {error}"
    raise UsageError(message)


def _object(row: object) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    message = f"{_shown(row)} is not an object"
    raise ValueError(message)


def _group(row: dict[str, Any], config: FineTuningConfig) -> str | None:
    """A key that rows with the same prompt share. None: what the prompt is cannot be told."""
    for name in ("messages", "conversations", config.chosen_key):
        messages = row.get(name)
        if isinstance(messages, list) and (asked := [*takewhile(_is_of_prompt, messages)]):
            return json.dumps(asked)
    for name in (*PROMPTS, "question_id"):
        if name in row:
            # alpaca: the text that the instruction refers to
            more = row.get("input") if config.objective == "sft" else None
            return json.dumps([row.get("db_id"), row[name], more])
    return None


def _is_of_prompt(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") != "assistant"


def _conversation(row: dict[str, Any], config: FineTuningConfig) -> Conversation:
    if "messages" in row or "conversations" in row:
        name = "messages" if "messages" in row else "conversations"
        messages = read_messages(row[name], name)
    else:
        prompt = _first_text(row, PROMPTS)
        if row.get("input"):  # alpaca: the text that the instruction refers to
            prompt = f"{prompt}\n{_text(row, 'input')}"
        answer = _first_text(row, ANSWERS)
        messages = (Message("user", prompt), Message("assistant", answer))
        if row.get("system"):
            messages = (Message("system", _text(row, "system")), *messages)
    if config.system is not None and messages[0].role != "system":
        messages = (Message("system", config.system), *messages)
    return Conversation(messages)


def read_messages(given: object, name: str) -> tuple[Message, ...]:
    """Parse messages, the last of which must be the assistant's. Raises ValueError."""
    messages = _messages(given, name)
    if messages[-1].role != "assistant":
        message = f"{name}: ends with {messages[-1].role}; the answer to learn is missing"
        raise ValueError(message)
    return messages


def _messages(given: object, name: str) -> tuple[Message, ...]:
    """At least one message. Raises ValueError."""
    if not isinstance(given, list) or not given:
        message = f"{name}: is not a list of messages"
        raise ValueError(message)
    messages = []
    for index, one in enumerate(given):
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            message = f"{name}.{index}: has no role that is system, user or assistant"
            raise ValueError(message)
        messages.append(Message(one["role"], _text(one, "content", f"{name}.{index}.")))
    return tuple(messages)


def _first_text(row: dict[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if name in row:
            return _text(row, name)
    message = f"{names[0]}: is missing (or {', '.join(names[1:])})"
    raise ValueError(message)


def _text(row: dict[str, Any], name: str, prefix: str = "") -> str:
    if name not in row:
        message = f"{prefix}{name}: is missing"
        raise ValueError(message)
    value = row[name]
    if not isinstance(value, str) or not value.strip():
        message = f"{prefix}{name}: {_shown(value)} is no text"
        raise ValueError(message)
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}..."  # noqa: PLR2004  # a line of a terminal


def _labelled_steps(row: dict[str, Any], config: FineTuningConfig) -> LabelledSteps:
    text = _text(row, config.input_key)
    *texts, rest = text.split(config.placeholder_token)
    if not texts:
        message = f"{config.input_key}: has no step marker {config.placeholder_token!r}"
        raise ValueError(message)
    if rest.strip():
        message = (
            f"{config.input_key}: has text after the last step marker {config.placeholder_token!r}"
        )
        raise ValueError(message)
    labels = row.get(config.label_key)
    if not isinstance(labels, list):
        message = f"{config.label_key}: {_shown(labels)} is not a list of labels"
        raise ValueError(message)  # noqa: TRY004  # the row is wrong
    if len(labels) != len(texts):
        message = (
            f"{config.label_key}: has {len(labels)} labels, and {config.input_key} has"
            f" {len(texts)} steps"
        )
        raise ValueError(message)
    read = [_label(one, f"{config.label_key}.{at}", config) for at, one in enumerate(labels)]
    return LabelledSteps(tuple(texts), tuple(read))


def _label(given: object, name: str, config: FineTuningConfig) -> float:
    right, wrong = config.reward_tokens
    if given in (right, wrong):
        return 1.0 if given == right else 0.0
    if isinstance(given, int | float) and 0 <= given <= 1:
        return float(given > 0.5) if config.labels == "hard" else float(given)  # noqa: PLR2004  # more right than not
    message = f"{name}: {_shown(given)} is neither {right!r} nor {wrong!r} nor a number from 0 to 1"
    raise ValueError(message)


def _pair(row: dict[str, Any], config: FineTuningConfig) -> Pair:
    chosen, rejected = (
        _answer(row, name, config) for name in (config.chosen_key, config.rejected_key)
    )
    return Pair(chosen, rejected)


def _answer(row: dict[str, Any], name: str, config: FineTuningConfig) -> Conversation | str:
    if isinstance(row.get(name), list):
        messages = read_messages(row[name], name)
        if messages[0].role == "assistant":
            messages = (*_prompt(row), *messages)
    else:
        answer, asked = _text(row, name), _prompt(row)
        if not asked:
            return answer
        messages = (*asked, Message("assistant", answer))
    if config.system is not None and messages[0].role != "system":
        messages = (Message("system", config.system), *messages)
    return Conversation(messages)


def _prompt(row: dict[str, Any]) -> tuple[Message, ...]:
    """The prompt beside the answers; empty if there is none."""
    name = next((name for name in PROMPTS if name in row), None)
    if name is None:
        return ()
    if isinstance(row[name], list):
        return _messages(row[name], name)
    return (Message("user", _text(row, name)),)


_READERS: Final[dict[str, Callable[[dict[str, Any], FineTuningConfig], Example]]] = {
    "sft": _conversation,
    "process_reward": _labelled_steps,
    "pairwise_reward": _pair,
}
