"""Examples are read in their originals' forms; another form is named with file and field."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.fine_tuning.examples import (
    Conversation,
    LabelledSteps,
    Pair,
    choose_held_out,
    load_examples,
)
from producer.fine_tuning.settings import FineTuningConfig, Objective, read_fine_tuning
from producer.supervised.sequences import Message

ASKED, ANSWERED = Message("user", "How many?"), Message("assistant", "SELECT 1")


def config_of(objective: Objective, path: Path, **changes: object) -> FineTuningConfig:
    given = {"model_name": "m", "data_path": str(path), "held_out_ratio": 0, **changes}
    return read_fine_tuning(objective, given)


def read(tmp_path: Path, objective: Objective, rows: object, **changes: object) -> list[Any]:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return list(load_examples(config_of(objective, path, **changes)).training)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [item._asdict() for item in (ASKED, ANSWERED)]},
        {"prompt": "How many?", "completion": "SELECT 1"},
        {"query": "How many?", "response": "SELECT 1"},
        {"instruction": "How many?", "input": "", "output": "SELECT 1"},
    ],
)
def test_a_prompt_and_its_answer_come_in_the_forms_of_the_originals(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    assert read(tmp_path, "sft", [row]) == [Conversation((ASKED, ANSWERED))]


def test_the_system_prompt_is_for_examples_that_have_none(tmp_path: Path) -> None:
    own = {"system": "Mine", "prompt": "How many?", "completion": "SELECT 1"}
    rows = [own, {**own, "system": ""}]
    systems = [item.messages[0] for item in read(tmp_path, "sft", rows, system="Ours")]
    assert systems == [Message("system", "Mine"), Message("system", "Ours")]


def test_steps_are_split_at_their_markers_with_hard_and_soft_labels(tmp_path: Path) -> None:
    rows = [
        {"input": "q\n\na и\n\nb и", "label": ["+", "-"]},
        {"input": "q\n\na и\n\nb и\n", "label": [0.25, 0.75]},
    ]
    texts = ("q\n\na", "\n\nb")
    assert read(tmp_path, "process_reward", rows) == [
        LabelledSteps(texts, (1.0, 0.0)),
        LabelledSteps(texts, (0.25, 0.75)),
    ]
    assert read(tmp_path, "process_reward", rows[1:], labels="hard") == [
        LabelledSteps(texts, (0.0, 1.0))
    ]


def test_pairs_are_texts_or_messages_under_their_keys(tmp_path: Path) -> None:
    rows = [
        {"good": "a", "bad": "b"},
        {"prompt": "How many?", "good": "SELECT 1", "bad": "b"},
    ]
    keys = {"chosen_key": "good", "rejected_key": "bad"}
    found = read(tmp_path, "pairwise_reward", rows, **keys)
    assert found[0] == Pair("a", "b")
    assert found[1].chosen == Conversation((ASKED, ANSWERED))


@pytest.mark.parametrize("prompt", [ASKED.content, [ASKED._asdict()]])
def test_a_pair_of_answers_is_read_with_the_prompt_beside_them(
    tmp_path: Path, prompt: object
) -> None:
    answers = {"chosen": [ANSWERED._asdict()], "rejected": "b"}
    (pair,) = read(tmp_path, "pairwise_reward", [{"prompt": prompt, **answers}])
    rejected = Conversation((ASKED, Message("assistant", "b")))
    assert pair == Pair(Conversation((ASKED, ANSWERED)), rejected)
    whole = [item._asdict() for item in (ASKED, ANSWERED)]
    row = {"prompt": "another", "chosen": whole, "rejected": "b"}
    (pair,) = read(tmp_path, "pairwise_reward", [row])
    assert pair.chosen == Conversation((ASKED, ANSWERED))


def test_json_lines_hold_one_example_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "completion": "b"}\n\n{"prompt": "c", "completion": "d"}\n')
    assert len(load_examples(config_of("sft", path)).training) == 2


@pytest.mark.parametrize(
    ("objective", "rows", "message"),
    [
        ("sft", {"rows": []}, r"rows.json must hold a list of examples"),
        ("sft", [], r"rows.json holds no examples"),
        ("sft", ["text"], r"rows.json: example 1: \"text\" is not an object"),
        ("sft", [{"completion": "b"}], r"example 1: prompt: is missing"),
        ("sft", [{"prompt": "a"}], r"example 1: completion: is missing"),
        ("sft", [{"prompt": "a", "completion": None}], r"example 1: completion: null is no text"),
        ("sft", [{"prompt": "a", "completion": " "}], r"example 1: completion: \" \" is no text"),
        ("sft", [{"messages": {}}], r"example 1: messages: is not a list of messages"),
        ("sft", [{"messages": [{"role": "robot"}]}], r"example 1: messages.0: has no role"),
        ("sft", [{"messages": [{"role": "user"}]}], r"example 1: messages.0.content: is missing"),
        (
            "sft",
            [{"messages": [{"role": "user", "content": "a"}]}],
            r"example 1: messages: ends with user; the answer to learn is missing",
        ),
        ("process_reward", [{"label": []}], r"example 1: input: is missing"),
        ("process_reward", [{"input": "a", "label": []}], r"example 1: input: has no step marker"),
        ("process_reward", [{"input": "a и b", "label": ["+"]}], r"has text after the last step"),
        ("process_reward", [{"input": "a и"}], r"example 1: label: null is not a list of labels"),
        (
            "process_reward",
            [{"input": "a и", "label": ["+", "-"]}],
            r"example 1: label: has 2 labels, and input has 1 steps",
        ),
        ("process_reward", [{"input": "a и", "label": ["*"]}], r"label.0: \"\*\" is neither"),
        ("process_reward", [{"input": "a и", "label": [1.5]}], r"label.0: 1.5 is neither"),
        (
            "process_reward",
            [{"input": "a и", "label": [["+"]]}],
            r"label\.0: \[\"\+\"\] is neither",
        ),
        ("sft", [{"messages": [{"role": ["user"]}]}], r"example 1: messages\.0: has no role"),
        (
            "pairwise_reward",
            [{"prompt": [{"role": "user"}], "chosen": "a", "rejected": "b"}],
            r"example 1: prompt\.0\.content: is missing",
        ),
        ("pairwise_reward", [{"chosen": "a"}], r"example 1: rejected: is missing"),
    ],
)
def test_a_row_of_another_form_is_named_with_its_file_and_field(
    tmp_path: Path, objective: Objective, rows: object, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, objective, rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n", "rows.json holds no examples"),
        (b"{", "rows.json is not valid JSON, line 1"),
        (b"\xff\xfe\x00", "rows.json is not text in UTF-8"),
        (b"[" * 100_000, "rows.json: nested too deeply"),
    ],
)
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load_examples(config_of("sft", path))
    with pytest.raises(UsageError, match=r"absent\.json cannot be read: No such file"):
        load_examples(config_of("sft", tmp_path / "absent.json"))


def test_a_line_that_is_no_json_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a", "completion": "b"}\n\n{"prompt": "a"\n')
    with pytest.raises(UsageError, match=r"rows\.jsonl is not valid JSON, line 3: "):
        load_examples(config_of("sft", path))


def test_what_is_held_out_shares_no_prompt_with_what_is_learned() -> None:
    groups = [f"q{number // 4}" for number in range(40)]
    held_out = choose_held_out(groups, 0.25, seed=1)
    assert len(held_out) == 12  # three questions of four: the first number at or above 10
    asked = {groups[index] for index in held_out}
    learned = {group for index, group in enumerate(groups) if index not in held_out}
    assert asked.isdisjoint(learned)
    assert choose_held_out(groups, 0.25, seed=1) == held_out
    assert choose_held_out(groups, 0.25, seed=2) != held_out
    assert choose_held_out(groups, 0, seed=1) == frozenset()
    assert choose_held_out(["a"] * 9, 0.5, seed=1) == frozenset()
    assert len(choose_held_out(["a", "b"], 0.001, seed=1)) == 1


def steps_row(question: int, completion: int, **more: object) -> dict[str, object]:
    text = f"question {question}\n\nstep {completion} и\n\nend и"
    return {"input": text, "label": ["+", "-"], **more}


def dialogue(question: int, answer: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"question {question}"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": f"more after {answer}"},
        {"role": "assistant", "content": "the end"},
    ]


ROWS: dict[str, tuple[Objective, Callable[[int, int], dict[str, object]]]] = {
    "steps that label-steps wrote": (
        "process_reward",
        lambda at, n: steps_row(at, n, prompt=f"question {at}", question_id=100 * at + n),
    ),
    "steps of numbered questions": (
        "process_reward",
        lambda at, n: steps_row(at, n, db_id="db", question_id=at),
    ),
    "dialogues": ("sft", lambda at, n: {"messages": dialogue(at, f"answer {n}")}),
    "conversations": ("sft", lambda at, n: {"conversations": dialogue(at, f"answer {n}")}),
    "prompts": ("sft", lambda at, n: {"prompt": f"question {at}", "completion": f"answer {n}"}),
    "pairs of dialogues": (
        "pairwise_reward",
        lambda at, n: {"chosen": dialogue(at, f"good {n}"), "rejected": dialogue(at, f"bad {n}")},
    ),
    "pairs with a prompt": (
        "pairwise_reward",
        lambda at, n: {"prompt": f"question {at}", "chosen": f"good {n}", "rejected": f"bad {n}"},
    ),
    "pairs of messages with a prompt": (
        "pairwise_reward",
        lambda at, n: {
            "prompt": [{"role": "user", "content": f"question {at}"}],
            "chosen": [{"role": "assistant", "content": f"good {n}"}],
            "rejected": [{"role": "assistant", "content": f"bad {n}"}],
        },
    ),
    "steps with a list of another kind": (
        "process_reward",
        lambda at, n: steps_row(at, n, prompt=f"question {at}", messages=["a", "b"]),
    ),
}


@pytest.mark.parametrize("form", ROWS)
def test_no_prompt_of_a_file_is_both_learned_and_held_out(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    objective, row = ROWS[form]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row(at, n) for at in range(10) for n in range(4)]))
    examples = load_examples(config_of(objective, path, held_out_ratio=0.2))
    learned, held_out = (
        {re.findall(r"question \d", repr(one))[0] for one in part}
        for part in (examples.training, examples.held_out)
    )
    assert (len(learned), len(held_out)) == (8, 2)
    assert len(examples.held_out) == 8
    assert not caplog.messages


def test_rows_whose_prompt_cannot_be_told_are_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([steps_row(0, n) for n in range(4)]))
    assert load_examples(config_of("process_reward", path, held_out_ratio=0.2)).held_out
    (message,) = caplog.messages
    assert message.startswith("4 of 4 examples have no field with their prompt (prompt, query, ")
    caplog.clear()
    load_examples(config_of("process_reward", path))
    assert not caplog.messages


def test_a_file_of_one_prompt_says_that_nothing_is_held_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([steps_row(0, n, instruction="Answer.") for n in range(4)]))
    examples = load_examples(config_of("process_reward", path, held_out_ratio=0.2))
    assert (len(examples.training), len(examples.held_out)) == (4, 0)
    (message,) = caplog.messages
    assert message == "nothing is held out to evaluate on: all 4 examples have the same prompt"
    caplog.clear()
    load_examples(config_of("process_reward", path))
    assert not caplog.messages
