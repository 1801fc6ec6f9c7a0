"""The CUA recipe's names of settings, and other spellings, in our own.

Of flags, files and `RunConfig` alike.

renderer_name: qwen3_vl         ->  renderer_name: recipe
use_default_eval_tasks: True    ->  nothing, the default
gbox_api_key: KEY               ->  refused, without the key; an empty key is none
control: shuffled-rewards       ->  control: shuffled_rewards
control: blank-screens          ->  ablate: blank-screenshots
environment: linux              ->  environment: desktop
"""

from collections.abc import Mapping
from typing import Any, Final

from producer.agents import OTHER_SPELLINGS
from producer.algorithms.controls import BLANK_SCREENS

RENDERERS: Final = {"qwen3_vl": "recipe", "qwen3_vl_instruct": "recipe"}
"""The recipe's renderers -> ours."""
KEYS: Final = {
    "gbox_api_key": "a key is never part of a configuration, which is recorded; set GBOX_API_KEY,"
    " and environment to gbox for devices of GBox. The simulated phone needs no key",
    "tinker_api_key": "a key is never part of a configuration, which is recorded; set"
    " TINKER_API_KEY, and provider to tinker for training by Tinker",
    "provider_api_key": "a key is never part of a configuration, which is recorded; set"
    " OPENAI_API_KEY, and base_url to the address of the servers",
}
"""Settings that are refused -> what to do instead."""
EVAL_TASKS: Final = "use_default_eval_tasks"


def key_problem(name: str) -> str:
    """The message for a key that was given as a setting; it does not have the key."""
    return f"{name}: {KEYS[name]}. Leave it out"


def renderer_of(given: str) -> str:
    """Our name of a renderer; another name unchanged."""
    return RENDERERS.get(given.replace("-", "_"), given)


def control_of(given: str) -> tuple[str, str]:
    """The field and the value that a control's name means, with hyphens or underscores."""
    name = given.replace("-", "_")
    return ("ablate", "blank-screenshots") if name == BLANK_SCREENS else ("control", name)


def in_our_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given fields with the recipe's names replaced by ours.

    ValueError, which pydantic reports, for a key and for what has no counterpart.
    """
    fields = dict(given)
    for name in KEYS.keys() & fields.keys():
        if fields.pop(name) not in (None, ""):
            raise ValueError(key_problem(name))
    if isinstance(renderer := fields.get("renderer_name"), str):
        fields["renderer_name"] = renderer_of(renderer)
    if isinstance(environment := fields.get("environment"), str):
        fields["environment"] = OTHER_SPELLINGS.get(environment, environment)
    if isinstance(control := fields.get("control"), str):
        del fields["control"]
        name, value = control_of(control)
        if fields.get(name, value) not in {None, "none", value}:
            message = f"control: {control} contradicts {name}: {fields[name]}; give one of them"
            raise ValueError(message)
        fields[name] = value
    if str(fields.pop(EVAL_TASKS, True)).lower() not in {"none", "true", "1"}:
        message = (
            f"{EVAL_TASKS}: a run always has evaluation tasks; leave it out, and set eval_every to"
            " 0 and skip_baseline to evaluate less"
        )
        raise ValueError(message)
    return fields
