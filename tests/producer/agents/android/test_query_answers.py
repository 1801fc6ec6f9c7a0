"""What a task may expect: an answer that its query, and the phone, can give."""

import pytest

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.queries import (
    ACTIVITY_NAMES,
    QUERIES,
    describe_unknown_query,
    describe_wrong_answer,
    find_queries,
    find_query,
)
from producer.agents.android.sim.device.answers import ANSWERS, check_answer
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action
from producer.agents.android.sim.oracle.strategies import NoOracleError
from producer.task import Task


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wifi_enabled", " TRUE "),
        ("brightness_level", "0"),
        ("brightness_level", "255"),
        ("screen_timeout", "30000"),
        ("media_volume", "100"),
        ("notification_count", "12"),
        ("current_app", "com.android.Chrome"),
        ("current_activity", "wifi_settings"),
        ("current_activity", "app_info_com.android.chrome"),
        ("current_activity", "com.android.camera/.CameraActivity"),
        ("current_url_domain", "docs.example.com"),
        ("current_url_domain", "localhost"),
        ("system_language", "de"),
        ("search_query", "Android test"),
        ("setting_global/wifi_on", "null"),
    ],
)
def test_what_a_query_can_answer_may_be_expected(query: str, expected: str) -> None:
    assert describe_wrong_answer(query, expected) is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("wifi_enabled", "yes"),
        ("wifi_enabled", "1"),
        ("dark_theme_enabled", "on"),
        ("brightness_level", "256"),
        ("brightness_level", "100%"),
        ("brightness_level", "007"),
        ("brightness_level", "-1"),
        ("media_volume", "101"),
        ("screen_timeout", "30 s"),
        ("screen_timeout", "9" * 5000),
        ("current_app", "Chrome"),
        ("current_activity", "wifi"),
        ("current_url_domain", "https://example.com"),
        ("current_url_domain", "www.example.com"),
        ("system_language", "en-US"),
        ("found_icon", "com.android.chrome"),
        ("current_media_type", "photo"),
        ("search_query", "  "),
        ("setting_global/wifi_on", ""),
    ],
)
def test_what_a_query_never_answers_is_refused_with_what_it_answers(
    query: str, expected: str
) -> None:
    found = find_query(query)
    assert found is not None
    assert describe_wrong_answer(query, expected) == (
        f"expected: {query} answers {found.answer.description}, never {expected!r}"
    )


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("True & 255", None),
        ("True", "expected: 1 answer ('True') for 2 queries ('wifi_enabled & brightness_level'); "),
        ("True & 1 & 2", "3 answers ('True & 1 & 2') for 2 queries"),
        ("True & 256", "brightness_level answers a whole number from 0 to 255, never '256'"),
    ],
)
def test_joined_queries_need_an_answer_each(expected: str, reason: str | None) -> None:
    wrong = describe_wrong_answer("wifi_enabled & brightness_level", expected)
    assert wrong is None if reason is None else wrong is not None and reason in wrong


def test_a_query_that_is_joined_with_itself_is_refused() -> None:
    assert describe_wrong_answer("wifi_enabled & wifi_enabled", "True & False") == (
        "validation_query: wifi_enabled occurs twice"
    )


@pytest.mark.parametrize("name", ["&", "wifi_enabled &", "wifi_enabled && airplane_mode"])
def test_an_empty_part_of_joined_queries_is_named(name: str) -> None:
    assert find_queries(name) is None
    assert describe_unknown_query(name) == f"{name!r} has an empty query before or after &"


def test_no_query_at_all_is_named() -> None:
    assert describe_unknown_query(" ") == "no device query is given"


def test_of_joined_queries_the_unknown_one_is_named() -> None:
    assert find_queries("wifi_enabled & wifi_enable") is None
    reason = describe_unknown_query("wifi_enabled & wifi_enable")
    assert reason.startswith("unknown device query 'wifi_enable'. Did you mean 'wifi_enabled'?")


@pytest.mark.parametrize("name", ["setting_wifi_on", "setting_local/x", "app_running_my app"])
def test_a_parameter_that_no_device_understands_names_no_query(name: str) -> None:
    assert find_query(name) is None


@pytest.mark.parametrize(
    ("query", "expected", "reason"),
    [
        ("current_app", "com.spotify.music", "expected: current_app: the simulated phone has no"),
        ("current_activity", "app_info_com.spotify.music", "expected: current_activity app_info_"),
        ("current_activity", "com.spotify.music/.Main", "expected: current_activity: the simul"),
        (
            "app_running_com.spotify.music",
            "True",
            "validation_query: app_running_com.spotify.music",
        ),
        ("screen_timeout", "45000", "no '45000'; it has 15000, 30000, 60000"),
        ("media_volume", "33", "no '33'; it has 0, 5, 10"),
        ("system_language", "it", "no 'it'; it has en, es, de, fr"),
    ],
)
def test_what_the_simulated_phone_does_not_have_is_refused(
    query: str, expected: str, reason: str
) -> None:
    assert describe_wrong_answer(query, expected) is None, "a device may have it"
    with pytest.raises(ValueError, match=reason):
        check_answer(query, expected)


def test_the_demo_tasks_expect_what_can_be_answered() -> None:
    for task in demo_tasks():
        if task.validation_query is not None:
            assert describe_wrong_answer(task.validation_query, task.expected_result or "") is None
            check_answer(task.validation_query, task.expected_result or "")


def test_every_query_with_answers_of_the_phone_exists_and_can_give_each() -> None:
    assert ANSWERS.keys() <= QUERIES.keys()
    for query, answers in ANSWERS.items():
        assert [
            answer for answer in answers if describe_wrong_answer(query, answer) is not None
        ] == []


def _asking() -> list[tuple[str, str]]:
    """Every kind of answer that passes the checks: of each query, and of each parameter."""
    given = [(query, answer) for query, answers in ANSWERS.items() for answer in answers]
    given += [("current_app", "COM.Android.Chrome"), ("system_language", "ES")]
    given += [("current_activity", name) for _, name in ACTIVITY_NAMES]
    given += [("current_activity", "app_info_com.android.email")]
    given += [("current_activity", "com.android.settings/.Settings")]
    given += [(query, text) for query in QUERIES for text in ("True", "False", "0", "7", "de")]
    given += [("app_running_com.android.email", "True"), ("app_installed_test_app", "True")]
    given += [("setting_global/wifi_on", "0"), ("found_icon", "com.android.settings")]
    return [item for item in given if describe_wrong_answer(*item) is None]


@pytest.mark.parametrize(("query", "expected"), _asking())
def test_no_accepted_answer_breaks_the_oracle(query: str, expected: str) -> None:
    sim = AndroidSim()
    task = Task("t", "T", "Do it.", None, None, 20, query, expected)
    sim.start(task, 0)
    try:
        for _ in range(8):
            sim.perform(oracle_action(task, sim)[1])
    except NoOracleError:
        pass
