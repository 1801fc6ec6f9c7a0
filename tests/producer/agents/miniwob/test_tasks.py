"""Tasks of the pages, and the table that lists them."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.miniwob import page_files
from producer.agents.miniwob.chromium import check_browser
from producer.agents.miniwob.keys import combination
from producer.agents.miniwob.oracle_policy import oracle_script
from producer.agents.miniwob.pages import NEVER_REWARDED, web_pages
from producer.errors import UsageError
from producer.tasks.sources import load_tasks

AGENT = AGENTS["miniwob"]


def names(source: JsonValue) -> list[str]:
    return [task.task_id for task in load_tasks(source)]


def test_pages_are_chosen_by_name_and_the_page_judges_them() -> None:
    (first, second) = load_tasks(
        {"source_type": "miniwob", "names": ["click-test-2", "email-inbox-forward-nl"]}
    )
    assert (first.task_id, first.validation_type, first.max_steps) == (
        "click-test-2",
        "environment",
        15,
    )
    assert second.task_id == "email-inbox-forward-nl"


def test_by_default_a_run_trains_on_some_pages_and_is_evaluated_on_others() -> None:
    defaults = AGENT.default_tasks(seed=0)
    train, held_out = names(defaults["tasks"]), names(defaults["eval_tasks"])
    assert "click-test-2" in train
    assert "click-button-sequence" in held_out
    assert not {*train} & {*held_out}
    assert names({"source_type": "miniwob"}) == sorted(train + held_out)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"names": ["click-tset-2"]},
            r"tasks\.names: no page is called 'click-tset-2'\. Did you mean 'click-test-2'",
        ),
        ({"names": ["hover-shape"]}, r"tasks\.names: 'hover-shape' is no task: the page never"),
        ({"names": ["click-test"], "split": "train"}, "give names or a split, not both"),
        ({"names": []}, r"tasks\.names"),
        ({"split": "dev"}, 'split: unknown value "dev". Use one of train, held_out'),
    ],
)
def test_a_mistake_in_a_source_is_named(source: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_tasks({"source_type": "miniwob", **source})


@pytest.mark.skipif(find_spec("miniwob") is None, reason="the package is not installed")
def test_the_table_has_every_page_of_the_package() -> None:
    files = {path.stem for path in page_files.pages_folder().glob("*.html")}
    assert {*web_pages(), *NEVER_REWARDED} == files


def test_every_page_of_a_split_has_an_oracle_and_no_other() -> None:
    scripted = set(re.findall(r"^  '([a-z0-9-]+)':", oracle_script(), re.MULTILINE))
    assert scripted == {page.name for page in web_pages().values() if page.split}


def test_missing_pages_and_a_missing_browser_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page_files.pages_folder.cache_clear()
    monkeypatch.setattr(page_files, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"pip install '\.\[miniwob\]'"):
        page_files.pages_folder()
    page_files.pages_folder.cache_clear()

    check_browser.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no Chromium is installed"):
        check_browser()
    check_browser.cache_clear()


@pytest.mark.parametrize(
    ("keys", "pressed"),
    [
        (("enter",), "Enter"),
        (("ctrl", "a"), "Control+a"),
        (("ctrl+a",), "Control+a"),
        (("Ctrl+Shift+Home",), "Control+Shift+Home"),
        (("space",), " "),
        (("+",), "+"),
        (("F5",), "F5"),
        (("PAGE_DOWN",), "PageDown"),
    ],
)
def test_keys_have_the_names_that_policies_write(keys: tuple[str, ...], pressed: str) -> None:
    assert combination(keys) == pressed


def test_a_key_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="no key is called 'flurb'"):
        combination(("flurb",))
