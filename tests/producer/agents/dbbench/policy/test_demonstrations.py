"""Demonstrations: what the environment would say, what the policy would be asked, what is right."""

from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from producer.agents import AGENTS
from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.skills import SKILLS
from producer.agents.dbbench.data.tasks import task_of
from producer.agents.dbbench.environment import DbBenchEnvironment
from producer.agents.dbbench.policy.demonstrations import Demonstration, build_examples, demonstrate
from producer.config import RunConfig
from producer.policy.compute_settings import PolicySettings
from producer.policy.policy import SampleRequest, Turn
from producer.policy.torch_policy.loading import load_base
from producer.policy.torch_policy.open import open_in_process
from producer.validators.verdict import Evidence, Verdict
from schemas.entry import EntryContent
from schemas.turn import TakenAction
from tests.support.text_policy import build_knowing_policy
from tests.support.turns import past_turn

ENTRIES = list(generate(len(SKILLS), seed=3))


def played(entry: EntryContent, demonstration: Demonstration) -> Verdict:
    """The verdict of a session with these completions; each round, the database says the same."""
    codec, task = DbBenchCodec(), task_of(entry)
    environment = DbBenchEnvironment()
    taken: list[TakenAction] = []
    try:
        environment.open(task, 0)
        for text, said in demonstration.rounds:
            calls = codec.parse(text, 0, 0)
            taken += calls
            heard = [environment.act(call.action).text for call in calls if call.action is not None]
            assert [item for item in heard if item is not None] == ([] if said is None else [said])
        evidence = Evidence((), tuple(taken), num_turns=len(demonstration.rounds))
        return environment.judge(task, evidence)
    finally:
        environment.close()


@pytest.mark.parametrize("entry", ENTRIES, ids=[*SKILLS])
def test_without_noise_a_demonstration_executes_the_gold_and_is_judged_right(
    entry: EntryContent,
) -> None:
    demonstration = demonstrate(entry)
    assert len(demonstration.rounds) == 2
    assert f"\n{entry.sql}\n" in demonstration.rounds[0].completion
    assert played(entry, demonstration).success


def test_mistakes_are_those_of_the_scripted_policy_as_the_environment_takes_them() -> None:
    """Every way that a session ends is demonstrated, and judged as a session that was sampled."""
    statuses: Counter[object] = Counter()
    lengths: Counter[int] = Counter()
    for number in range(40):
        entry = ENTRIES[number % len(ENTRIES)]
        demonstration = demonstrate(entry, noise=1.0, seed=number)
        assert demonstration == demonstrate(entry, noise=1.0, seed=number)
        verdict = played(entry, demonstration)
        assert not verdict.success
        statuses[verdict.details["session_status"]] += 1
        lengths[len(demonstration.rounds)] += 1
    assert statuses.keys() == {"completed", "agent_validation_failed", "task_limit_reached"}
    assert lengths.keys() == {1, 2, 3}


def test_noise_is_the_share_of_first_rounds_that_do_not_execute_the_gold() -> None:
    first = [
        demonstrate(ENTRIES[at % len(ENTRIES)], noise=0.25, seed=at).rounds[0] for at in range(800)
    ]
    golds = [f"\n{ENTRIES[at % len(ENTRIES)].sql}\n" for at in range(800)]
    wrong = sum(gold not in one.completion for one, gold in zip(first, golds, strict=True))
    # Four standard errors about 200.
    assert 150 < wrong < 250


def test_an_example_is_the_prompts_of_sampling_and_imitates_both_completions(
    tmp_path: Path,
) -> None:
    build_knowing_policy(tmp_path, num_steps=0)
    _, tokenizer = load_base(str(tmp_path))
    text_format = AGENTS["dbbench"].text_format(RunConfig(environment="dbbench"))
    policy = open_in_process(
        PolicySettings(str(tmp_path), lora_rank=2, screen_px=None, text_format=text_format)
    )
    session, task = demonstrate(ENTRIES[0]), task_of(ENTRIES[0])
    example = build_examples([session], tokenizer, None)[0]
    sampled: list[int] = []
    history: tuple[Turn, ...] = ()
    written = []
    (operation, observed), (answer, _) = session.rounds
    for said in (None, observed):
        request = SampleRequest(UUID(int=1), task, history, None, 1.0, 4, 0, said)
        completion = policy.sample([request])[0]
        assert completion.tokens is not None
        sampled += completion.tokens.prompt_tokens
        # What the policy wrote is not the gold's; the prompts around it are.
        written.append(completion.tokens.completion_tokens)
        history = (*history, past_turn(None, completion.text, completion.tokens))
    prompts = [
        token
        for token, is_target in zip(example.tokens, example.loss_mask, strict=True)
        if not is_target
    ]
    stopped = written[0][-1] == tokenizer.eos_token_id
    # A completion that was cut off is ended by the next prompt.
    assert [item for item in sampled if stopped or item != tokenizer.eos_token_id] == [
        prompt for prompt in prompts if stopped or prompt != tokenizer.eos_token_id
    ]
    imitated = [
        token
        for token, is_target in zip(example.tokens, example.loss_mask, strict=True)
        if is_target
    ]
    end = tokenizer.eos_token
    assert tokenizer.decode(imitated) == f"{operation}{end}{answer}{end}"
