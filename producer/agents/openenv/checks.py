"""Whether servers can be trained on, before anything is recorded."""

from functools import cache
from typing import Final

from producer.agents.environment_server import ActionsName
from producer.agents.openenv.client import NoServerError, Session, WrongActionError
from producer.agents.openenv.mappings import MAPPINGS
from producer.agents.openenv.observations import picture_of
from producer.environments.environment import EnvironmentFailedError
from producer.errors import UnreachableError, UsageError

ANSWER_S: Final = 60.0
"""A server that has not begun an episode after so long cannot be used."""


@cache
def check_server(
    url: str, actions: ActionsName, screen_px: tuple[int, int] | None, task_id: str | None
) -> None:
    """Begin an episode, and send one action that does nothing; once in a process.

    UnreachableError for a server that does not answer or speaks another protocol; UsageError for
    one whose observations or actions are not as the settings say.
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
