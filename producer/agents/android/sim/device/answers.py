"""The answers that the simulated phone can give: for some queries fewer than a real device."""

from typing import Final

from producer.agents.android.sim.state.apps import BY_PACKAGE, LAUNCHER
from producer.agents.android.sim.state.phone import VOLUME_STEPS
from producer.agents.android.sim.state.settings_tree import LANGUAGES, TIMEOUTS

APP_INFO: Final = "app_info_"
OF_AN_APP: Final = ("app_running_", "app_installed_")
"""Prefixes of the queries whose name ends in a package."""
ANSWERS: dict[str, tuple[str, ...]] = {
    "current_app": (*BY_PACKAGE, LAUNCHER),
    "screen_timeout": tuple(value for value, _, _ in TIMEOUTS),
    "system_language": tuple(locale.partition("-")[0] for locale, _, _ in LANGUAGES),
    "media_volume": tuple(
        str(round(100 * step / VOLUME_STEPS)) for step in range(VOLUME_STEPS + 1)
    ),
}
"""Maps a query to every answer that an agent can bring about on this phone. Queries that are
missing here can have any answer."""


def check_answer(query: str, expected: str) -> None:
    """Raise ValueError, prefixed with the task's field, if this phone can never give the answer."""
    for beginning in OF_AN_APP:
        package = query.removeprefix(beginning)
        if package not in {query, "test_app"}:
            _check_among(f"validation_query: {query}", package, tuple(BY_PACKAGE))
    answers = ANSWERS.get(query)
    wanted = expected.strip().lower()
    if answers is not None:
        _check_among(f"expected: {query}", wanted, answers)
    if query == "current_activity":
        package = wanted.removeprefix(APP_INFO).partition("/")[0]
        if wanted.startswith(APP_INFO):
            _check_among(f"expected: {query} {APP_INFO}PACKAGE", package, tuple(BY_PACKAGE))
        elif "/" in wanted:
            _check_among(f"expected: {query}", package, (*BY_PACKAGE, LAUNCHER))


def _check_among(what: str, found: str, known: tuple[str, ...]) -> None:
    if found not in known:
        message = f"{what}: the simulated phone has no {found!r}; it has {', '.join(known)}"
        raise ValueError(message)
