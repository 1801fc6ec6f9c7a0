"""The connection to Tinker's service: capabilities, training clients, and waiting for answers.

The SDK retries lost connections for minutes, but an unreachable service must be reported at once
before the first event, so the connection is probed first. While the service answers 500, the SDK
fetches an answer again for ever, silently; `TinkerService.wait` limits every wait.
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

from producer.errors import NotFoundError, StopRequestedError, UnreachableError, UsageError
from producer.http_environment import check_http_environment
from producer.policy.compute_settings import PolicySettings
from producer.policy.tinker_policy.failures import KEY_VARIABLE, URL_VARIABLE, failing_to
from producer.policy.tinker_policy.sdk import made, server_capabilities, weights_info
from schemas.advice import did_you_mean
from schemas.http_environment import proxy_variable

TINKER_URL: Final = "https://tinker.thinkingmachines.dev/services/tinker-prod"
KEY_PREFIXES: Final = ("tml-", "eyJ")
"""Prefixes of keys and of tokens used in their place; the SDK refuses others."""
PROBE_S: Final = 10.0
STOP_CHECK_S: Final = 0.5
SHOWN_NAMES: Final = 8
PORTS: Final = {"http": 80, "https": 443}

Answer = TypeVar("Answer")


class WaitLimits(NamedTuple):
    """Time limits for waiting for answers, in seconds."""

    answer_s: float = 60.0
    """For queries about the service and about saved weights."""
    client_s: float = 900.0
    """For creating or restoring an adapter; a model may have to be started."""
    work_s: float = 7500.0
    """For a part of an update, a save, or all samples of a turn. Equals the SDK's own limit for a
    sample: five minutes to send it and two hours to compute it."""
    stopped_s: float = 10.0
    """For any wait once a stop was requested."""


@dataclass(frozen=True, slots=True)
class TrainableBase:
    """A base model for which the service trains adapters."""

    name: str
    max_context_tokens: int | None
    """None if the service does not report it."""


@dataclass(frozen=True, slots=True)
class SavedWeights:
    """Weights that the service has saved at a path."""

    base_model: str
    lora_rank: int | None


class TinkerService:
    """The service at one URL, used with one key. For one thread. Raises as `failures.error_of`.

    The first adapter opens a session, which lasts until the process ends.
    """

    def __init__(
        self,
        key: str,
        url: str | None = None,
        *,
        stop: threading.Event | None = None,
        limits: WaitLimits = WaitLimits(),  # noqa: B008  # frozen
    ) -> None:
        """`url` None means Tinker's own. Setting `stop` ends waits.

        Raises UsageError for a malformed key or URL.
        """
        if not key:
            message = f"{KEY_VARIABLE} is not set, and provider tinker needs a key; set it"
            raise UsageError(message)
        if not key.startswith(KEY_PREFIXES):
            message = f"{KEY_VARIABLE} is not a key of Tinker: those begin with {KEY_PREFIXES[0]}"
            raise UsageError(message)
        self.key = key
        self.url = (url or TINKER_URL).rstrip("/")
        self._host, self._port = _address(self.url)
        check_http_environment(self.url, is_httpx=True)
        self.limits = limits
        self._stop = stop or threading.Event()
        self._session: tinker.ServiceClient | None = None
        # Otherwise each request of its HTTP client would be a line in the run's log file.
        for name in ("httpx", "tinker"):
            logging.getLogger(name).setLevel(logging.WARNING)

    def check_reachable(self) -> None:
        """Raises UnreachableError if its host accepts no connection; skipped behind a proxy."""
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
        """The base with this name. Raises NotFoundError if the service does not train it."""

        def ask() -> tinker.types.GetServerCapabilitiesResponse:
            return server_capabilities(self.url, self.key)

        models = self._ask("say which models it has", ask, self.limits.answer_s).supported_models
        trained = {
            model.model_name: model
            for model in models
            # Releases of the SDK before 0.38 know no models that can only be sampled.
            if model.model_name is not None and getattr(model, "trainable", None) is not False
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
        """The weights saved at a `tinker://` path. Raises NotFoundError if there are none."""

        def ask() -> tinker.types.WeightsInfoResponse:
            return weights_info(self.url, self.key, path)

        info = self._ask(f"find {path}", ask, self.limits.answer_s)
        return SavedWeights(info.base_model, info.lora_rank)

    def create(self, settings: PolicySettings) -> tinker.TrainingClient:
        """Create a fresh adapter."""
        targets = settings.target_modules

        def ask() -> tinker.TrainingClient:
            return made(
                self._service().create_lora_training_client(
                    settings.folder,
                    settings.lora_rank,
                    settings.seed,
                    train_attn=targets != ("mlp",),
                    train_mlp=targets != ("attention",),
                    # As in the in-process policy, embeddings and output layer stay frozen.
                    train_unembed=False,
                )
            )

        return self._ask(f"make an adapter of {settings.folder}", ask, self.limits.client_s)

    def restore(self, path: str, *, with_optimizer: bool) -> tinker.TrainingClient:
        """Restore the adapter saved at `path`, with its saved optimiser state or a fresh one."""

        def ask() -> tinker.TrainingClient:
            service = self._service()
            restore = (
                service.create_training_client_from_state_with_optimizer
                if with_optimizer
                else service.create_training_client_from_state
            )
            return made(restore(path))

        return self._ask(f"load {path}", ask, self.limits.client_s)

    def publish(self, client: tinker.TrainingClient) -> tinker.SamplingClient:
        """A client that samples the adapter's weights of now."""

        def ask() -> tinker.SamplingClient:
            return made(client.save_weights_and_get_sampling_client())

        return self._ask("publish the weights", ask, self.limits.work_s)

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
        """Wait for the answer to a request to do `what`; re-raises the SDK's error, if any.

        The limit `limit_s` (None: `work_s`) counts from monotonic time `since_s` (None: now).
        Raises UnreachableError after the limit, StopRequestedError `stopped_s` after a stop
        request.
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
    """Run on a thread, which can be abandoned: the SDK's constructors wait without a limit."""
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
            f"{URL_VARIABLE}: {url!r} is not a URL; use one such as https://host/path, or unset it"
        )
        raise UsageError(message)
    if parts.username is not None or parts.query or parts.fragment:
        message = f"{URL_VARIABLE} must not hold a user, a password, a query or a fragment"
        raise UsageError(message)
    return parts.hostname, port or PORTS[parts.scheme]
