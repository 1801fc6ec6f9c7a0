"""The small policy of the pages: which pages it trains on, and that it is made and opened."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents.android.policy.recipe import ImitationPhase
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.policy.recipe import (
    HELD_OUT_PAGES,
    RECIPE,
    TRAINED_PAGES,
    policy_name,
    warm_up_plan,
)
from producer.config import read_config
from producer.policy.formats import warmed_up_format
from producer.policy.torch_policy.loading import load_base
from producer.policy.torch_policy.screen_encoder import num_screen_tokens
from producer.tasks.sources import load_tasks
from producer.training.loaded import LoadedTasks, load_policy
from schemas.installation import read_installation
from tests.support.chromium import needs_chromium
from tests.support.warmed_policies import pages_policy

TINY = replace(
    RECIPE,
    task_ids=("click-test-2", "grid-coordinate"),
    num_episodes=6,
    alignment_steps=2,
    imitation_phases=(
        ImitationPhase(num_steps=1, episodes_per_batch=0, grounding_per_batch=2),
        ImitationPhase(num_steps=1, episodes_per_batch=2, grounding_per_batch=1),
    ),
)


def test_it_trains_on_training_pages_and_leaves_some_out_of_the_rewards() -> None:
    assert len(TRAINED_PAGES) >= 8
    assert {web_pages()[name].split for name in TRAINED_PAGES} == {"train"}
    assert not {*TRAINED_PAGES} & {*HELD_OUT_PAGES}
    assert {*RECIPE.task_ids} == {*TRAINED_PAGES, *HELD_OUT_PAGES} <= {*web_pages()}


def test_without_a_policy_the_pages_that_one_click_solves_are_trained_on() -> None:
    config = read_config({"environment": "miniwob"})
    assert config.model_name == "demo"
    assert config.tasks == {"source_type": "miniwob", "names": [*TRAINED_PAGES]}
    assert (config.eval_tasks, config.max_turns) == (None, 1)
    other = read_config({"environment": "miniwob", "model_name": "a/b"})
    assert other.tasks == {"source_type": "miniwob", "split": "train"}
    assert (other.eval_tasks, other.max_turns) == (
        {"source_type": "miniwob", "split": "held_out"},
        30,
    )


def test_given_pages_are_evaluated_on_their_held_out_ones_with_any_policy() -> None:
    train = {"source_type": "miniwob", "split": "train"}
    config = read_config({"environment": "miniwob", "tasks": train})
    assert config.eval_tasks == {"source_type": "miniwob", "split": "held_out"}


def test_its_name_tells_recipes_apart_and_its_plan_is_of_a_computer() -> None:
    assert policy_name(TINY) != policy_name(RECIPE)
    plan = warm_up_plan(TINY)
    assert [step.stage for step in plan.steps] == [
        *("alignment", "alignment", "grounding", "imitation")
    ]
    assert (plan.box_type, plan.renderer_name, plan.max_turns) == ("linux", "compact", 1)


@needs_chromium
def test_it_is_made_once_sees_the_whole_screen_and_knows_the_words_of_its_pages(
    tmp_path: Path,
) -> None:
    progress: list[tuple[int, int, bool]] = []
    folder = pages_policy(
        tmp_path,
        TINY,
        lambda _policy, done, total, loss: progress.append((done, total, loss is None)),
    )
    assert folder.name == policy_name(TINY)
    assert progress == [(0, 4, True)] * 2 + [(done, 4, False) for done in (1, 2, 3, 4)]
    assert warmed_up_format(folder) == "compact"
    _, processor = load_base(str(folder))
    # 160 x 208 px in patches of 16.
    assert num_screen_tokens(processor.image_processor, (160, 210)) == 10 * 13
    words = processor.tokenizer.get_vocab()
    assert {"one", "two", "click", "grid", "coordinate"} <= {*words}
    again = pages_policy(tmp_path, TINY, lambda *_: progress.append((0, 0, False)))
    assert (again, len(progress)) == (folder, 6)


@pytest.mark.parametrize(
    ("source", "warning"),
    [
        ({"names": ["click-button", "unicode-test"]}, None),
        (
            {"names": ["enter-text", "click-button", "use-slider"]},
            "of its 16 warm-up tasks; these are not among them: enter-text, use-slider;",
        ),
        # 100 pages; the policy knows the twelve that it is trained on, and click-test-transfer.
        ({"split": "train"}, " and 82 more; give a pretrained policy as model_name"),
    ],
)
def test_pages_that_the_policy_does_not_know_are_named_before_its_warm_up(
    source: dict[str, JsonValue],
    warning: str | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given: JsonValue = {"source_type": "miniwob", **source}
    config = read_config({"environment": "miniwob", "tasks": given, "eval_tasks": given})
    tasks = load_tasks(given)
    installation = read_installation({"CUA_HOME": str(tmp_path)})
    with caplog.at_level(logging.WARNING, "producer"):
        assert load_policy(config, installation, LoadedTasks(tasks, tasks, None)) is None
    told = [one.getMessage() for one in caplog.records if "small policy" in one.getMessage()]
    assert len(told) == (warning is not None)
    assert warning is None or warning in told[0]
