"""Small policies, and finished trainings, that are made once in a session."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import installation_at
from tests.support.small_run import small

Trained = Callable[..., Installation]


@pytest.fixture
def one_thread() -> None:
    pytest.importorskip("torch").set_num_threads(1)


@pytest.fixture(scope="session")
def _small_policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch")
    from producer.agents.android.policy.build import build_policy
    from tests.producer.policy.conftest import TEXTS
    from tests.support.small_size import SIZE

    folder = tmp_path_factory.mktemp("small") / "policy"
    build_policy(folder, TEXTS, seed=0, size=SIZE)
    return str(folder)


@pytest.fixture
def policy(_small_policy: str, one_thread: None) -> str:  # noqa: ARG001  # for its effect
    """The folder of a policy of screens, which one thread computes."""
    return _small_policy


@pytest.fixture(scope="session")
def answering(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings that name a policy which answers questions about a database, and its tasks."""
    pytest.importorskip("torch")
    from tests.support.text_policy import build_answering_policy

    return build_answering_policy(tmp_path_factory.mktemp("answering"))


@pytest.fixture(scope="session")
def _finished() -> dict[str, Path]:
    """The homes of trainings, by their settings."""
    return {}


@pytest.fixture
def trained(
    installation: Installation,
    _finished: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Trained:
    """Puts a finished training into this test's home; with the same settings it is made once."""

    def put(**settings: object) -> Installation:
        name = repr(sorted(settings.items()))
        if name not in _finished:
            home = tmp_path_factory.mktemp("trained") / "home"
            run(small(**settings), installation=installation_at(home))
            _finished[name] = home
        shutil.copytree(_finished[name], installation.home, symlinks=True)
        return installation

    return put
