"""Gold sessions: what the environment would say, what the policy would be asked, what is right."""

from pathlib import Path
from uuid import UUID

import pytest

from producer.codecs.dbbench import DbBenchCodec
from producer.environments.dbbench.environment import DbBenchEnvironment
from producer.policy.policy import PastTurn, SampleRequest
from producer.policy.torch_policy.loading import load_base
from producer.policy.torch_policy.open import open_in_process
from producer.sql_data.dbbench.generate import generate
from producer.sql_data.dbbench.skills import SKILLS
from producer.sql_data.dbbench.tasks import task_of
from producer.text_policy.gold_sessions import build_examples, gold_session
from producer.validators.verdict import Evidence
from schemas.entry import EntryContent
from schemas.turn import TakenAction
from tests.support.text_policy import build_knowing_policy

ENTRIES = list(generate(len(SKILLS), seed=3))


@pytest.mark.parametrize("entry", ENTRIES, ids=[*SKILLS])
def test_a_gold_session_is_what_the_environment_says_and_judges_right(entry: EntryContent) -> None:
    session, codec, task = gold_session(entry), DbBenchCodec(), task_of(entry)
    environment = DbBenchEnvironment()
    taken: list[TakenAction] = []
    try:
        environment.open(task, 0)
        for text, said in ((session.operation, session.observation), (session.answer, None)):
            calls = codec.parse(text, 0, 0)
            taken += calls
            for call in calls:
                assert call.action is not None
                observation = environment.act(call.action)
                assert observation.text in {said, None}
        verdict = environment.judge(task, Evidence((), tuple(taken), num_turns=2))
    finally:
        environment.close()
    assert verdict.success


def test_an_example_is_the_prompts_of_sampling_and_imitates_both_completions(
    tmp_path: Path,
) -> None:
    build_knowing_policy(tmp_path, num_steps=0)
    _, tokenizer = load_base(str(tmp_path))
    policy = open_in_process(
        str(tmp_path), lora_rank=2, renderer_name="dbbench", seed=0, needs_screens=False
    )
    session, task = gold_session(ENTRIES[0]), task_of(ENTRIES[0])
    example = build_examples([session], tokenizer, None)[0]
    sampled: list[int] = []
    history: tuple[PastTurn, ...] = ()
    written = []
    for said in (None, session.observation):
        request = SampleRequest(UUID(int=1), task, history, None, 1.0, 4, 0, said)
        completion = policy.sample([request])[0]
        assert completion.tokens is not None
        sampled += completion.tokens.prompt_tokens
        # What the policy wrote is not the gold's; the prompts around it are.
        written.append(completion.tokens.completion_tokens)
        history = (*history, PastTurn(None, completion.text, completion.tokens))
    prompts = [
        token
        for token, is_target in zip(example.tokens, example.loss_mask, strict=True)
        if not is_target
    ]
    stopped = written[0][-1] == tokenizer.eos_token_id
    # A completion that was cut off is ended by the next prompt.
    assert [one for one in sampled if stopped or one != tokenizer.eos_token_id] == [
        one for one in prompts if stopped or one != tokenizer.eos_token_id
    ]
    imitated = [
        token
        for token, is_target in zip(example.tokens, example.loss_mask, strict=True)
        if is_target
    ]
    end = tokenizer.eos_token
    assert tokenizer.decode(imitated) == f"{session.operation}{end}{session.answer}{end}"
