"""One turn of a rollout: what the agent observed, its answer, its actions and their errors."""

import json
from collections.abc import Mapping, Sequence

from consumers.monitor import layout
from consumers.monitor.blobs import Screenshots
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import excerpt
from consumers.monitor.screen import screen
from consumers.monitor.sql_text import sql_block
from consumers.tables import Action, Obs, Turn

LONGEST_VALUE = 400
"""Longest argument shown, in characters; the log has all of it."""


def turn_section(turn: Turn, store: Screenshots, *, expects_action: bool = True) -> Html:
    """The turn next to its screenshot, or as text where the environment has no screen.

    `expects_action`: whether an answer without an action is a mistake.
    """
    by_type = {observation.obs_type: observation for observation in turn.observations}
    before, text = by_type.get("screenshot_before"), by_type.get("text")
    name = f"turn-{turn.turn}"
    if before is None and text is not None:
        words = _words(turn, text, lacks_action=expects_action and not turn.actions)
        return tag("section", words, class_="turn words", id=name)
    actions = [action.action_json for action in turn.actions]
    uri = before.screenshot_uri if before else None
    return tag(
        "section",
        screen(store, uri, actions, f"before turn {turn.turn}"),
        tag(
            "div",
            _heading(turn),
            tag("p", excerpt(text.text_content or ""), class_="observed-text") if text else None,
            tag("ol", *(tag("li", _action(action)) for action in turn.actions), class_="actions"),
            tag(
                "details",
                tag("summary", "model response"),
                tag("pre", excerpt(turn.model_response)),
                open="",
            ),
            tag("p", _small_print(turn), class_="faint"),
            class_="turn-text",
        ),
        class_="turn",
        id=name,
    )


def last_screen(turns: Sequence[Turn], store: Screenshots) -> Node:
    """The screen after the last turn; nothing where there is none."""
    if not turns:
        return None
    after = next(
        (
            observation
            for observation in turns[-1].observations
            if observation.obs_type == "screenshot_after"
        ),
        None,
    )
    if after is None or after.screenshot_uri is None:
        return None
    return tag(
        "section",
        screen(store, after.screenshot_uri, caption="after the last turn"),
        tag("div", tag("h3", "Final screen"), class_="turn-text"),
        class_="turn",
    )


def _heading(turn: Turn) -> Html:
    took = tag("span", f" {layout.duration(turn.turn_time)}", class_="faint")
    return tag("h3", f"Turn {turn.turn}", took)


def _words(turn: Turn, observed: Obs, *, lacks_action: bool) -> Html:
    """Observed text, completion and SQL, one below the other."""
    text = observed.text_content
    return tag(
        "div",
        _heading(turn),
        tag("h4", "observed"),
        tag("pre", excerpt(text)) if text else tag("p", "nothing", class_="faint"),
        tag("h4", "model response"),
        tag("pre", excerpt(turn.model_response)),
        *(_action_in_words(action) for action in turn.actions),
        tag("p", "no action was found in it", class_="bad") if lacks_action else None,
        tag("p", _small_print(turn), class_="faint"),
        class_="turn-text",
    )


def _action_in_words(action: Action) -> Node:
    shown = action.action_json if isinstance(action.action_json, Mapping) else {}
    sql = shown.get("sql")
    if action.action_type == "execute_sql" and isinstance(sql, str):
        return [tag("h4", "SQL"), sql_block(sql), _trouble(action)]
    answer = shown.get("text")
    if action.action_type == "answer" and isinstance(answer, str):
        return [tag("h4", "answer"), tag("pre", excerpt(answer)), _trouble(action)]
    return tag("p", _action(action))


def _small_print(turn: Turn) -> str:
    parts = [f"policy version {turn.policy_version}"]
    if turn.num_tokens is not None:
        parts.append(f"{turn.num_tokens} tokens")
    if turn.stop_reason is not None:
        parts.append(f"stopped by {turn.stop_reason}")
    if isinstance(turn.metrics_json, Mapping):
        parts += [
            f"{name} {layout.rounded(value)}"
            for name, value in turn.metrics_json.items()
            if isinstance(value, int | float)
        ]
    return " · ".join(parts)


def _action(action: Action) -> Node:
    shown = action.action_json if isinstance(action.action_json, Mapping) else action.tool_args
    arguments = shown.items() if isinstance(shown, Mapping) else ()
    written = ", ".join(f"{name}={_short(value)}" for name, value in arguments if name != "type")
    return [
        tag("code", excerpt(f"{action.action_type or action.tool_name}({written})")),
        _trouble(action),
    ]


def _trouble(action: Action) -> Node:
    if not action.error_type:
        return None
    return tag(
        "span",
        f" {action.error_type} error: ",
        excerpt(action.error_message or ""),
        class_="bad",
    )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …"
