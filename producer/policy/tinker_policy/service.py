"""Tinker's service: reached, asked what it has, its clients made, its answers waited for.

The SDK retries lost connections for minutes; before the first event a service that is away must be
reported at once, so a connection is probed first. It fetches an answer again for ever, silently,
while the service answers 500: `TinkerService.wait` ends every wait.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import tinker
from tinker.lib.base_url import resolve_base_url

from producer.errors import (
    NotFoundError,
    StopRequestedError,
    UnreachableError,
    UsageError,
    did_you_mean,
)
from producer.http_environment import check_http_environment
from producer.policy.compute_settings import PolicySettings
from producer.policy.tinker_policy.failures import KEY_VARIABLE, URL_VARIABLE, failing_to
from schemas.http_environment import proxy_variable

KEY_PREFIXES: Final = ("tml-", "eyJ")
"""Of keys and of tokens in their place; the SDK refuses others."""
PROBE_S: Final = 10.0
STOP_CHECK_S: Final = 0.5
SHOWN_NAMES: Final = 8
PORTS: Final = {"http": 80, "https": 443}

Answer = TypeVar("Answer")


class WaitLimits(NamedTuple):
    """How long answers are waited for, in seconds."""

    answer_s: float = 60.0
    """For what the service says of itself and of saved weights."""
    client_s: float = 900.0
    """For a new or a restored adapter: a model may have to be brought up."""
    work_s: float = 7500.0
    """For a part of an update, a save, or all samples of a turn: what the SDK itself allows a
    sample, five minutes to send it and two hours to compute it."""
    stopped_s: float = 10.0
    """For any of them once a stop was requested."""


@dataclass(frozen=True, slots=True)
class TrainableBase:
    """A base that the service trains adapters of."""

    name: str
    max_context_tokens: int | None
    """None: the service does not report it."""


@dataclass(frozen=True, slots=True)
class SavedWeights:
    """What the service has at a path."""

    base_model: str
    lora_rank: int | None


class TinkerService:
    """One key at one URL. For one thread. Raises the errors of `failures.error_of`.

    The first adapter begins a session, which lasts until the process ends.
    """

    def __init__(
        self,
        key: str,
        url: str | None = None,
        *,
        stop: threading.Event | None = None,
        limits: WaitLimits = WaitLimits(),  # noqa: B008  # frozen
    ) -> None:
        """`url` None: Tinker's own. `stop` ends waits once it is set.

        UsageError for a key or a URL that cannot be one.
        """
        if not key:
            message = f"{KEY_VARIABLE} is not set, and provider tinker needs a key; set it"
            raise UsageError(message)
        if not key.startswith(KEY_PREFIXES):
            message = f"{KEY_VARIABLE} is no key of Tinker's, which begin with {KEY_PREFIXES[0]}"
            raise UsageError(message)
        self.key = key
        self.url = resolve_base_url(url)
        self._host, self._port = _address(self.url)
        check_http_environment(self.url, is_httpx=True)
        self.limits = limits
        self._stop = stop or threading.Event()
        self._session: tinker.ServiceClient | None = None
        # Each request of its HTTP client would be a line of the run's log file.
        for name in ("httpx", "tinker"):
            logging.getLogger(name).setLevel(logging.WARNING)

    def check_reachable(self) -> None:
        """UnreachableError unless its host accepts a connection; not asked behind a proxy."""
        if proxy_variable(self.url, os.environ):
            return
        try:
            socket.create_connection((self._host, self._port), timeout=PROBE_S).close()
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"{URL_VARIABLE}: Tinker cannot be reached at {self.url} ({reason})"
            ways = ("check the URL and the network", "run again later")
            raise UnreachableError(message, ways=ways) from None

    def trainable_base(self, name: str) -> TrainableBase:
        """The base of this name. NotFoundError if the service trains none."""

        def ask() -> tinker.types.GetServerCapabilitiesResponse:
            client = tinker.RestClient(base_url=self.url, api_key=self.key)
            return client.get_server_capabilities().result()

        models = self._ask("say which models it has", ask, self.limits.answer_s).supported_models
        trained = {
            model.model_name: model
            for model in models
            if model.model_name is not None and model.trainable is not False
        }
        if name not in trained:
            names = ", ".join(sorted(trained)[:SHOWN_NAMES])
            message = (
                f"model_name: Tinker trains no {name!r}.{did_you_mean(name, trained)} It trains"
                f" {names or 'nothing with this key'}"
            )
            raise NotFoundError(message)
        return TrainableBase(name, trained[name].max_context_length)

    def saved_weights(self, path: str) -> SavedWeights:
        """What is saved at a `tinker://` path. NotFoundError if nothing is."""

        def ask() -> tinker.types.WeightsInfoResponse:
            client = tinker.RestClient(base_url=self.url, api_key=self.key)
            return client.get_weights_info_by_tinker_path(path).result()

        info = self._ask(f"find {path}", ask, self.limits.answer_s)
        return SavedWeights(info.base_model, info.lora_rank)

    def create(self, settings: PolicySettings) -> tinker.TrainingClient:
        """A fresh adapter."""
        targets = settings.target_modules

        def ask() -> tinker.TrainingClient:
            return (
                self._service()
                .create_lora_training_client(
                    settings.folder,
                    settings.lora_rank,
                    settings.seed,
                    train_attn=targets != ("mlp",),
                    train_mlp=targets != ("attention",),
                    # As in process: embeddings and output layer stay frozen.
                    train_unembed=False,
                )
                .result()
            )

        return self._ask(f"make an adapter of {settings.folder}", ask, self.limits.client_s)

    def restore(self, path: str, *, with_optimizer: bool) -> tinker.TrainingClient:
        """The adapter saved at `path`, with its optimiser's state or a fresh one."""

        def ask() -> tinker.TrainingClient:
            service = self._service()
            restore = (
                service.create_training_client_from_state_with_optimizer
                if with_optimizer
                else service.create_training_client_from_state
            )
            return restore(path).result()

        return self._ask(f"load {path}", ask, self.limits.client_s)

    def _service(self) -> tinker.ServiceClient:
        if self._session is None:
            self._session = tinker.ServiceClient(base_url=self.url, api_key=self.key)
        return self._session

    def wait(
        self,
        future: tinker.APIFuture[Answer] | Future[Answer],
        what: str,
        limit_s: float | None = None,
        *,
        since_s: float | None = None,
    ) -> Answer:
        """The answer to a request to `what`, or what the SDK raises for it.

        `limit_s`: None is `work_s`. `since_s`: monotonic time from which it counts; None: now.
        UnreachableError after it, StopRequestedError `stopped_s` after a stop was requested.
        """
        pending = future.future() if isinstance(future, tinker.APIFuture) else future
        limit_s = self.limits.work_s if limit_s is None else limit_s
        until_s = (time.monotonic() if since_s is None else since_s) + limit_s
        is_stopped = False
        while not pending.done():
            if self._stop.is_set() and not is_stopped:
                is_stopped = True
                until_s = min(until_s, time.monotonic() + self.limits.stopped_s)
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            wait_for_futures([pending], min(left_s, STOP_CHECK_S))
        if pending.done():
            return pending.result()
        if isinstance(future, tinker.APIFuture):
            pending.cancel()
        if is_stopped:
            raise StopRequestedError
        message = f"Tinker at {self.url} did not {what} within {limit_s:g} s"
        ways = (
            f"check {URL_VARIABLE}, the account and whether the service is up",
            "run the same command later; it continues the training",
        )
        raise UnreachableError(message, ways=ways)

    def _ask(self, what: str, ask: Callable[[], Answer], limit_s: float) -> Answer:
        with failing_to(what, self.key):
            return self.wait(_on_thread(ask), what, limit_s)


def _on_thread(call: Callable[[], Answer]) -> Future[Answer]:
    """The SDK's constructors wait without a limit; a thread of its own can be left behind."""
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whatever it is, the caller gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="tinker").start()
    return future


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in PORTS or not parts.hostname or any(char.isspace() for char in url):
        message = (
            f"{URL_VARIABLE}: {url!r} is no URL; use one such as https://host/path, or unset it"
        )
        raise UsageError(message)
    if parts.username is not None or parts.query or parts.fragment:
        message = f"{URL_VARIABLE} must not hold a user, a password, a query or a fragment"
        raise UsageError(message)
    return parts.hostname, port or PORTS[parts.scheme]
