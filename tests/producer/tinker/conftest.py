"""A small policy, and a stand-in for Tinker that trains it in a process of its own."""

import asyncio
import faulthandler
import gc
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tinker_key import KEY

pytest.importorskip("torch")

from tinker.lib.internal_client_holder import InternalClientHolder, sessionless_holder_cache

from producer.agents.android.policy.build import build_policy
from tests.producer.policy.conftest import TEXTS
from tests.support.small_size import SIZE


async def closed(holder: InternalClientHolder) -> None:
    """Close it; cancel what it runs until that ends.

    The SDK cancels once and waits without a limit. A task whose request ends in that moment can
    miss it, and its loop goes on.
    """
    closing = asyncio.ensure_future(holder.aclose())
    while not closing.done():
        await asyncio.wait([closing], timeout=1)
        for task in (
            holder._session_heartbeat_task,
            holder._client_dynamic_config_refresh_task,
            holder._cancel_drain_task,
            *holder._futures_poller_tasks,
        ):
            if task is not None:
                task.cancel()
    await closing


@pytest.fixture(scope="module")
def sdk_connections() -> Iterator[None]:
    """End the SDK's sessions with the module, which would otherwise live as long as the process.

    Their heartbeats go on without the server, and what they leave open fails some later test.
    The SDK never closes the connection that it fetches its configuration over (0.38).
    """
    with pytest.MonkeyPatch.context() as environment:
        # Closing waits 30 s for telemetry that a server which has ended does not take.
        environment.setenv("TINKER_TELEMETRY", "0")
        yield
    holders = [found for found in gc.get_objects() if type(found) is InternalClientHolder]
    sessionless_holder_cache._holders.clear()
    for holder in holders:
        try:
            holder.run_coroutine_threadsafe(closed(holder)).result(30)
        except TimeoutError:
            running = "\n".join(str(task) for task in asyncio.all_tasks(holder.get_loop()))
            faulthandler.dump_traceback()
            pytest.fail(f"a session of the SDK does not close; what it still runs:\n{running}")
    del holders
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def small_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "policy"
    build_policy(folder, TEXTS, seed=0, size=SIZE)
    return folder


@pytest.fixture(scope="session")
def other_policy(small_policy: Path) -> Path:
    """The same under another name."""
    return Path(shutil.copytree(small_policy, small_policy.with_name("other")))


@pytest.fixture(scope="session")
def stand_in(small_policy: Path, other_policy: Path) -> Iterator[str]:
    """The URL of the stand-in, which has the small policies under the names of their folders."""
    folders = [str(small_policy), str(other_policy)]
    command = [sys.executable, "-m", "tests.support.tinker_server", *folders]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def at_tinker(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The stand-in's URL, where the SDK looks for it."""
    monkeypatch.setenv("TINKER_BASE_URL", stand_in)
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    # A test sends nothing but what it asks for.
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    return stand_in
