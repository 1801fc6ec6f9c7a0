"""Checks that servers can be trained on, before anything is recorded."""

from functools import cache
from typing import Final

from producer.agents.environment_server import ActionsName
from producer.agents.openenv.client import NoServerError, Session, WrongActionError
from producer.agents.openenv.mappings import MAPPINGS
from producer.agents.openenv.observations import picture_of
from producer.environments.environment import EnvironmentFailedError
from producer.errors import UnreachableError, UsageError

ANSWER_S: Final = 60.0
"""A server that takes longer to begin an episode cannot be used."""


@cache
def check_server(
    url: str, actions: ActionsName, screen_px: tuple[int, int] | None, task_id: str | None
) -> None:
    """Begin an episode and send one action that does nothing. Checked once per process.

    Raises UnreachableError if the server does not answer or speaks another protocol, and UsageError
    if its observations or actions do not match the settings.
    """
    mapping, session = MAPPINGS[actions], Session([url], ANSWER_S)
    try:
        step = session.reset(
            {"seed": 0} | ({} if task_id is None else {mapping.task_argument: task_id})
        )
        picture = picture_of(step.observation)
        _check_screen(None if picture is None else picture[1:], screen_px, is_text=mapping.is_text)
        if not step.is_over:
            session.step(mapping.encode(mapping.probe))
    except NoServerError as error:
        message = f"env_url: {error}"
        raise UnreachableError(message) from None
    except WrongActionError as error:
        message = f"env_actions: the server does not accept {actions} actions; change it: {error}"
        raise UsageError(message) from None
    except EnvironmentFailedError as error:
        message = f"env_url: {error}"
        raise UsageError(message) from None
    finally:
        session.close()


def _check_screen(
    shown: tuple[int, int] | None, asked: tuple[int, int] | None, *, is_text: bool
) -> None:
    if asked is not None and shown is None:
        message = "env_screen: the server sends no screenshots; omit the setting"
        raise UsageError(message)
    if shown is None or shown == asked or (asked is None and is_text):
        return
    width_px, height_px = shown
    message = f"env_screen: the server's screenshots are {width_px}x{height_px}; give this size"
    raise UsageError(message)
