"""What a policy only thinks is no action and no SQL, in every format."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.openenv.codecs import JsonActionCodec, TextCodec
from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.codecs.codec import CannotEncodeError, Codec
from producer.codecs.compact import CompactCodec
from producer.codecs.openai import OpenAICodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.recipe import RecipeCodec
from producer.process_rewards.sql_text import find_sql
from producer.thoughts import hide_thoughts
from schemas.actions import Action, Answer, ExecuteSql, Terminate, Type, Wait

REAL: dict[Codec, tuple[Action, Action]] = {
    CompactCodec(): (Terminate(), Type(text="real")),
    QwenToolCodec("mobile_use"): (Terminate(), Type(text="real")),
    QwenToolCodec("computer_use"): (Terminate(), Type(text="real")),
    RecipeCodec(): (Terminate(), Type(text="real")),
    OpenAICodec(): (Terminate(), Wait()),
    DbBenchCodec(): (Answer(text="draft"), ExecuteSql(sql="SELECT 'real'")),
    TextToSqlCodec(): (Answer(text="SELECT 'draft'"), Answer(text="SELECT 'real'")),
    TextCodec(): (Type(text="draft"), Type(text="real")),
    JsonActionCodec(): (Terminate(), Type(text="real")),
}
"""Codec -> what a thought drafts, and what the policy does."""
ANSWERS = [pytest.param(codec, *REAL[codec], id=codec.name) for codec in REAL]


def test_every_codec_is_listed() -> None:
    ours = {kind for kind in Codec.__subclasses__() if kind.__module__.startswith("producer.")}
    assert ours == {type(codec) for codec in REAL}


@pytest.mark.parametrize(
    "thought",
    [
        "<think>I would {draft}, no</think>\n",
        "<think>{draft}</think>\n\n",
        "<think>\n{draft}\n</think>",
        "{draft}</think>\n",
        "I would {draft}, no</think>",
        "<thinking>{draft}</thinking>",
        "<THINK>{draft}</THINK>",
        "<reasoning>{draft}</reasoning>\n",
        "<think >{draft}</think >",
        '<think type="plan">{draft}</think>',
        "<think budget=3 type='a b' >{draft}</think>",
        "<seed:think>{draft}</seed:think>",
        "<longcat_think>\n{draft}\n</longcat_think>\n",
        "<|START_THINKING|>{draft}<|END_THINKING|>",
        "<analysis>{draft}</analysis>",
        "<scratchpad>{draft}</scratchpad>\n",
        "[THINK]{draft}[/THINK]",
        "◁think▷{draft}◁/think▷",
        "<|begin_of_thought|>{draft}<|end_of_thought|>\n\n",
        "<reason>{draft}</reason>",
        "<scratch_pad>{draft}</scratch_pad>\n",
        "<cot>{draft}</cot>",
        "<PLAN>{draft}</PLAN>",
        "<thinking_process>{draft}</thinking_process>",
        "<inner_monologue>{draft}</inner_monologue>",
        "<antThinking>{draft}</antThinking>",
        "<mm:think>{draft}</mm:think>",
        "{draft}</think:opensource>",
        "<ifm|think_fast>{draft}</ifm|think_fast>",
        "<|think|>{draft}<|/think|>",
        "<|think|>{draft}<|end|>",
        "<|think:start|>{draft}<|think:end|>",
        "{draft}<|think:end|>",
        "<|plamo:begin_think:plamo|>{draft}<|plamo:end_think:plamo|>",
        "<|content_thinking|>{draft}<|end_message|>",
        "<|inner_prefix|>{draft}<|inner_suffix|>",
        "<|open|>think<|sep|>{draft}<|close|>think<|sep|>",
        "<|channel>thought\n{draft}<channel|>",
        "[unused16]{draft}[unused17]",
        "Here are my reasoning steps:\n{draft}\n[BEGIN FINAL RESPONSE]\n",
        "Here is my thought process:\n{draft}\n\nHere is my response:\n",
        "Here's my thought process: {draft} Here's my response:",
        "<|channel|>analysis<|message|>{draft}<|end|>",
        "<|channel|>analysis<|message|>{draft}<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel|>analysis<|message|>{draft}<|end|><|start|>assistant"
        "<|channel|>final <|constrain|>json<|message|>",
        "analysisWe could {draft}.assistantfinal",
        "analysis: {draft}assistantfinal",
        "<think>one {draft}</think><think>two {draft}</think>",
        "<think>{draft} I write <think> tags</think> so {draft}</think>",
        "<think>{draft} I write <plan> tags</think>",
        "<think>{draft} <thinking>so</thinking>",
        "<think>{draft} so</reasoning>",
        "{draft}</think>\n<think>{draft}</think>\n",
    ],
)
def test_a_thought_before_the_answer_changes_nothing(thought: str) -> None:
    for codec, (draft, real) in REAL.items():
        answer = codec.encode(real, 100, 100)
        text = thought.replace("{draft}", codec.encode(draft, 100, 100)) + answer
        assert codec.parse(text, 100, 100) == codec.parse(answer, 100, 100), codec.name


@pytest.mark.parametrize(("codec", "draft", "real"), ANSWERS)
def test_a_thought_that_was_cut_off_is_a_parse_error(
    codec: Codec, draft: Action, real: Action
) -> None:
    for before, action in product(
        ("<think>so ", "<think>the <reason>field</reason> is set, so ", "analysisWe could "),
        (draft, real),
    ):
        (taken,) = codec.parse(f"{before}{codec.encode(action, 9, 9)}", 9, 9)
        assert (taken.action, taken.error_type) == (None, "parse")
        assert taken.error_message == "there is only a thought and no answer after it"


@pytest.mark.parametrize("end", ["<|return|>", "[END FINAL RESPONSE]\n<|end|>"])
@pytest.mark.parametrize(("codec", "draft", "real"), ANSWERS)
def test_what_a_model_marks_the_end_of_its_answer_with_is_no_part_of_it(
    codec: Codec, draft: Action, real: Action, end: str
) -> None:
    answer = codec.encode(real, 100, 100)
    thought = f"<think>{codec.encode(draft, 100, 100)}</think>"
    assert codec.parse(f"{thought}{answer}{end}", 100, 100) == codec.parse(answer, 100, 100)


@pytest.mark.parametrize(
    "text",
    [
        "Here is my thought process: it is 3.\n3",
        "I answer.\nHere is my response: 3",
        "analysis of the shop: 3",
        "<planet>Mars</planet>",
        "<floorplan>3</floorplan> <plan-card>3</plan-card>",
        "<answer>3</answer>",
        "3<|end|>",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>analysis to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "a <plan AND b> 3",
    ],
)
def test_what_only_resembles_a_thought_is_part_of_the_answer(text: str) -> None:
    assert hide_thoughts(text, None) == text


def test_what_the_model_says_before_its_thought_is_no_beginning_of_an_answer() -> None:
    shown = hide_thoughts("a<think></think>SELECT '<think>'", TextToSqlCodec.literals)
    assert shown.split() == ["a", "SELECT", "'"]


QUOTES_TAGS = "a <think>draft</think> of </thinking> <think>"


@pytest.mark.parametrize(
    ("codec", "action"),
    [
        (CompactCodec(), Type(text="<think>draft</think>")),
        (QwenToolCodec("computer_use"), Type(text=f'"{QUOTES_TAGS}"')),
        (QwenToolCodec("mobile_use"), Answer(text=QUOTES_TAGS)),
        (RecipeCodec(), Type(text=QUOTES_TAGS)),
        (OpenAICodec(), Type(text=f'{QUOTES_TAGS}", "')),
        (JsonActionCodec(), Type(text=QUOTES_TAGS)),
        (DbBenchCodec(), Answer(text=f"[('{QUOTES_TAGS}',)]")),
        (DbBenchCodec(), ExecuteSql(sql=f"SELECT * FROM t WHERE a = '{QUOTES_TAGS}'")),
        (TextToSqlCodec(), Answer(text=f"SELECT '{QUOTES_TAGS}'")),
    ],
)
@pytest.mark.parametrize("thought", ["", "<think>so</think>\n", "so</think>"])
def test_a_tag_in_a_text_of_the_answer_is_text(codec: Codec, action: Action, thought: str) -> None:
    assert codec.parse(thought + codec.encode(action, 9, 9), 9, 9)[0].action == action


@pytest.mark.parametrize(
    ("codec", "action"),
    [
        (CompactCodec(), Type(text="(<think>)")),
        (DbBenchCodec(), Answer(text="<think>")),
        (TextToSqlCodec(), Answer(text="SELECT 1 -- </think>")),
        (TextCodec(), Type(text="<think>")),
    ],
)
def test_an_action_that_would_read_as_a_thought_is_not_written(
    codec: Codec, action: Action
) -> None:
    with pytest.raises(CannotEncodeError):
        codec.encode(action, 9, 9)


@pytest.mark.parametrize(
    ("completion", "sql"),
    [
        ("<think>maybe\n```sql\nSELECT 0\n```\nno</think>\n\nSELECT 1", "SELECT 1"),
        ("```sql\nSELECT 0 -- hm</think>\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("With what's there, it's</think>SELECT 'x'", "SELECT 'x'"),
        ("```sql\n<think>or 0</think>SELECT 1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n\nThe result is:\n```\n3\n```", "SELECT 1"),
        ("```\nSELECT 1\n```\nIts result:\n```\n3\n```", "SELECT 1"),
        ("```\n| a |\n```\n```sql\nSELECT 1\n```\n```\nSELECT 3\n```", "SELECT 1"),
        ("```sql\nSELECT 0\n```\nNo:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("```sqlite\nSELECT 1\n```\n```sql\n3\n```", "SELECT 1"),
        ("With the shops:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("SELECT 1\n```\n3\n```", "SELECT 1"),
        ("```\nno sql\n```", "no sql"),
        ("<think>a</think>\n<answer>\nSELECT 1\n</answer>", "SELECT 1"),
        ("</think>\n\n<response>\nSELECT 1\n</response>\n", "SELECT 1"),
        ("<answer>\n```sql\nSELECT 1\n```\n</answer>", "SELECT 1"),
        ("<answer>SELECT 1", "SELECT 1"),
        ("SELECT 1 FROM t WHERE a <think AND b> 3", "SELECT 1 FROM t WHERE a <think AND b> 3"),
        (
            "```sql\nSELECT 1 WHERE a <analysis OR b >= 3\n```",
            "SELECT 1 WHERE a <analysis OR b >= 3",
        ),
    ],
)
def test_the_query_is_not_what_was_drafted_or_what_came_of_it(completion: str, sql: str) -> None:
    span = find_sql(completion)
    assert span is not None
    assert completion[span.start : span.end] == sql


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "<think>",
                    "</think>",
                    "</thinking>",
                    "```sql\n",
                    "```",
                    "'",
                    '"',
                    "{",
                    "a",
                    "\\",
                ),
                *("SELECT ", "<tool_call>", "</tool_call>", "\n", "Final Answer:", "click(", ")"),
                *("<|think|>", "<|end|>", "<|channel|>final<|message|>", "<|return|>"),
                *("Here is my thought process:", "Here is my response:", "analysis"),
            ]
        ),
        max_size=20,
    ).map("".join)
)
def test_hiding_keeps_every_place_and_twice_is_once(text: str) -> None:
    for codec in REAL:
        shown = hide_thoughts(text, codec.literals)
        assert len(shown) == len(text)
        assert all(new in (old, " ") for new, old in zip(shown, text, strict=True))
        assert hide_thoughts(shown, codec.literals) == shown


@pytest.mark.parametrize(
    "part",
    [
        *('"\\"', '<tool_call>{"\\"', "```sql '", '{"', "<think>", "((", "`", "think", "<think"),
        *(
            "<|end",
            "</think ",
            "</think>SELECT ",
            "<|channel|>final",
            "Here is my thought process:",
        ),
    ],
)
def test_two_hundred_thousand_characters_are_read_in_linear_time(part: str) -> None:
    for codec in REAL:
        text = part * (200_000 // len(part)) + "<think>"
        assert len(hide_thoughts(text, codec.literals)) == len(text)
