"""Tinker's service: reached, asked what it has, and its clients made.

The SDK retries lost connections for minutes; before the first event a service that is away must be
reported at once, so a connection is probed first, and every answer until then has a deadline.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlsplit

import tinker
from tinker.lib.base_url import resolve_base_url

from producer.errors import NotFoundError, UnreachableError, UsageError, did_you_mean
from producer.http_environment import check_http_environment
from producer.policy.compute_settings import PolicySettings
from producer.policy.tinker_policy.failures import KEY_VARIABLE, URL_VARIABLE, failing_to
from schemas.http_environment import proxy_variable

KEY_PREFIXES: Final = ("tml-", "eyJ")
"""Of keys and of tokens in their place; the SDK refuses others."""
PROBE_S: Final = 10.0
ANSWER_S: Final = 60.0
"""For one answer before the first event."""
SHOWN_NAMES: Final = 8
PORTS: Final = {"http": 80, "https": 443}

Answer = TypeVar("Answer")


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

    def __init__(self, key: str, url: str | None = None) -> None:
        """`url` None: Tinker's own. UsageError for a key or a URL that cannot be one."""
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

        models = self._ask("say which models it has", ask).supported_models
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

        info = self._ask(f"find {path}", ask)
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

        return self._ask(f"make an adapter of {settings.folder}", ask, None)

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

        return self._ask(f"load {path}", ask, None)

    def _service(self) -> tinker.ServiceClient:
        if self._session is None:
            self._session = tinker.ServiceClient(base_url=self.url, api_key=self.key)
        return self._session

    def _ask(
        self, what: str, ask: Callable[[], Answer], deadline_s: float | None = ANSWER_S
    ) -> Answer:
        """The answer. `deadline_s` None: a model may have to be brought up, which takes a while."""
        with failing_to(what, self.key):
            try:
                return _on_thread(ask).result(deadline_s)
            except TimeoutError:
                if deadline_s is None:  # the SDK's own
                    raise
                message = f"Tinker at {self.url} did not {what} within {deadline_s:g} s"
                ways = (f"check {URL_VARIABLE} and the account", "run again later")
                raise UnreachableError(message, ways=ways) from None


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
