"""Every renderer_name has its codec and prompt, for a policy of each family."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from producer.agents import AGENTS
from producer.codecs.codec import Format
from producer.codecs.compact import CompactCodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.qwen_tools import tools_prompt
from producer.codecs.recipe import RECIPE_PROMPT, RecipeCodec
from producer.config import RunConfig
from producer.errors import UsageError
from producer.policy.compute_settings import PolicySettings
from producer.policy.formats import named_format
from producer.policy.torch_policy.open import image_scale, open_in_process
from schemas.actions import Click
from tests.producer.policy.conftest import make_request, make_screen


def of(
    model_type: str,
    renderer_name: str,
    *,
    is_compact: bool = False,
    official: str = "qwen_mobile",
) -> Format:
    images = SimpleNamespace(
        patch_size=14, merge_size=2, size={"shortest_edge": 3136, "longest_edge": 1_000_000}
    )
    return named_format(
        renderer_name,
        model_type,
        lambda: image_scale(images),
        is_compact=is_compact,
        screen_px=(1092, 2408),
        official=official,
    )


def test_auto_is_compact_for_the_demo_policy_and_the_official_tool_for_others() -> None:
    assert isinstance(of("qwen3_vl", "auto", is_compact=True).codec, CompactCodec)
    for name in ("auto", "qwen_mobile"):
        opened = of("qwen3_vl", name)
        assert opened.codec.name == "qwen_mobile"
        assert opened.system_prompt == tools_prompt("mobile_use", "999x999")
    assert of("qwen3_vl", "auto", official="qwen_computer").codec.name == "qwen_computer"


@pytest.mark.parametrize(
    ("settings", "official"),
    [
        ({"environment": "android"}, "qwen_mobile"),
        ({"environment": "adb"}, "qwen_mobile"),
        ({"environment": "gbox"}, "qwen_mobile"),
        ({"environment": "gbox", "box_type": "linux"}, "qwen_computer"),
        ({"environment": "desktop"}, "qwen_computer"),
        ({"environment": "miniwob"}, "qwen_computer"),
        ({"environment": "openenv"}, "qwen_mobile"),
        ({"environment": "openenv", "env_actions": "browsergym"}, "qwen_computer"),
    ],
)
def test_phones_are_operated_by_touch_and_computers_by_mouse_and_keys(
    settings: dict[str, Any], official: str
) -> None:
    agent = AGENTS[settings["environment"]]
    assert agent.official_renderer(RunConfig.model_construct(**settings)) == official


def test_the_other_names_are_what_they_say() -> None:
    compact = of("qwen3_vl", "compact")
    assert isinstance(compact.codec, CompactCodec)
    assert compact.system_prompt is None
    assert of("qwen3_vl", "qwen_computer").system_prompt == tools_prompt("computer_use")
    recipe = of("qwen3_vl", "recipe")
    assert isinstance(recipe.codec, RecipeCodec)
    assert recipe.system_prompt == RECIPE_PROMPT
    with pytest.raises(UsageError, match="unknown renderer_name 'x'; choose auto, compact, qwen_m"):
        of("qwen3_vl", "x")


def test_qwen25_is_told_the_resized_screen_and_writes_its_pixels() -> None:
    # 1092 x 2408 in at most 1,000,000 pixels and multiples of 28: 672 x 1484.
    opened = of("qwen2_5_vl", "auto")
    assert opened.system_prompt == tools_prompt("mobile_use", "672x1484")
    assert isinstance(opened.codec, QwenToolCodec)
    text = (
        '<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [336,'
        " 742]}}</tool_call>"
    )
    assert opened.codec.parse(text, 1092, 2408)[0].action == Click(x=546, y=1204)


def test_a_policy_opened_with_the_official_tool_begins_with_its_prompt(base_folder: Path) -> None:
    plain, official = (
        open_in_process(
            PolicySettings(str(base_folder), lora_rank=2, renderer_name=name, max_recent_turns=1)
        )
        for name in ("compact", "qwen_mobile")
    )
    request = make_request(1, make_screen(1), max_tokens=2)
    prompts = [policy.sample([request])[0].tokens for policy in (plain, official)]
    assert prompts[0] is not None
    assert prompts[1] is not None
    assert len(prompts[1].prompt_tokens) > len(prompts[0].prompt_tokens) + 100
