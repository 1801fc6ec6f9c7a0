"""A stand-in for Tinker: the protocol that its SDK speaks, over the policies of folders.

    python -m tests.support.tinker_server FOLDER…    prints its URL, and serves until it is killed

A base model's name is its folder. Requests of one model are computed in the order of their
`seq_id`, whatever order they come in; answers are fetched by `retrieve_future`. Any key is refused
but `KEY`.
"""

import itertools
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDoneError
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import numpy as np
from tinker.proto import tinker_public_pb2 as wire

from tests.support.tinker_key import KEY
from tests.support.tinker_wire import (
    chunks_of_json,
    examples_of,
    forward_backward_output,
    sample_response,
)

POLL_S = 5.0
"""How long one `retrieve_future` waits for its answer."""
JSON, PROTO = "application/json", "application/x-protobuf"
Body = dict[str, Any]
Answer = Body | bytes


class HttpError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass
class Model:
    """A training client's."""

    base: str
    trainer: Any
    """A `SmallTrainer`."""
    next_seq: int = 1
    waiting: dict[int, Callable[[], None]] = field(default_factory=dict)


class Stand:
    """The service's state; requests are computed on one thread."""

    def __init__(self, folders: list[str], *, refuses: frozenset[str] = frozenset()) -> None:
        """`refuses`: the last parts of routes that are the user's mistake."""
        self.folders = folders
        self.refuses = refuses
        self.is_broken = False
        """Answers every request with 500."""
        self.requests: list[tuple[str, Any]] = []
        """Route and body of every request but heartbeats, telemetry and polls."""
        self._models: dict[str, Model] = {}
        self._samplers: dict[str, tuple[Model, Any]] = {}
        self._saved: dict[str, tuple[str, Any]] = {}
        """Path -> base model and what was saved."""
        self._sampling: dict[str, tuple[str, Any]] = {}
        self._futures: dict[str, Future[Answer]] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._compute = ThreadPoolExecutor(1, thread_name_prefix="compute")

    def check_key(self, key: str) -> None:
        """HttpError for another one than `KEY`, which the message repeats."""
        if key != KEY:
            raise HttpError(401, f"wrong key {key}")

    def get(self, route: str) -> Body:
        """Answer a GET."""
        if route == "get_server_capabilities":
            models = [{"model_name": name, "trainable": True} for name in self.folders]
            return {"supported_models": models}
        if route == "healthz":
            return {"status": "ok"}
        raise HttpError(404, f"no route {route}")

    def post(self, route: str, body: Any) -> Answer:
        """Answer a POST. HttpError."""
        if self.is_broken:
            raise HttpError(500, "broken")
        if route == "retrieve_future":
            return self._retrieve(body["request_id"])
        if route in self.refuses:
            raise HttpError(400, f"{route} is not for you")
        quiet = {
            "client/config": {},
            "client/dynamic_config": {},
            "session_heartbeat": {"type": "session_heartbeat"},
            "telemetry": {"status": "accepted"},
        }
        if route in quiet:
            return dict(quiet[route])
        self.requests.append((route, body))
        method = getattr(self, f"_{route}", None)
        if method is None:
            raise HttpError(404, f"no route {route}")
        answer: Answer = method(body)
        return answer

    def _create_session(self, _body: Body) -> Body:
        return {"type": "create_session", "session_id": f"session-{next(self._ids)}"}

    def _create_model(self, body: Body) -> Body:
        self._require(body["base_model"])
        model_id = f"{body['session_id']}:train:{body['model_seq_id']}"
        lora = body["lora_config"]

        def create() -> Answer:
            from tests.support.tinker_trainer import SmallTrainer

            trainer = SmallTrainer(body["base_model"], lora["rank"], lora["seed"])
            self._models[model_id] = Model(body["base_model"], trainer)
            return {"type": "create_model", "model_id": model_id}

        return self._begin(f"{model_id}:0", create)

    def _load_weights(self, body: Body) -> Body:
        if body["path"] not in self._saved:
            raise HttpError(404, f"there is no {body['path']}")
        base, saved = self._saved[body["path"]]
        model_id = f"{body['session_id']}:train:{body['model_seq_id']}"

        def load() -> Answer:
            from tests.support.tinker_trainer import SmallTrainer

            trainer = SmallTrainer(base, saved.rank, 0)
            trainer.load(saved, with_optimizer=body["optimizer"])
            self._models[model_id] = Model(base, trainer)
            return {"type": "load_weights", "path": body["path"], "model_id": model_id}

        return self._begin(f"{model_id}:0", load)

    def _get_info(self, body: Body) -> Body:
        model = self._models[body["model_id"]]
        return {
            "type": "get_info",
            "model_id": body["model_id"],
            "model_data": {"model_name": model.base},
            "is_lora": True,
            "lora_rank": model.trainer.rank,
        }

    def _weights_info(self, body: Body) -> Body:
        if body["tinker_path"] not in self._saved:
            raise HttpError(404, f"there is no {body['tinker_path']}")
        base, saved = self._saved[body["tinker_path"]]
        return {"base_model": base, "is_lora": True, "lora_rank": saved.rank}

    def _forward_backward(self, raw: bytes) -> Body:
        request = wire.ForwardBackwardRequest()
        request.ParseFromString(raw)
        examples = examples_of(request)
        config = {name: value.number for name, value in request.loss_fn_config_v2.items()}
        trainer = self._models[request.model_id].trainer

        def compute() -> Answer:
            found = trainer.forward_backward(
                examples, request.loss_fn, config, backward=not request.forward_only
            )
            return forward_backward_output(found)

        return self._in_turn(request.model_id, request.seq_id, compute)

    def _optim_step(self, body: Body) -> Body:
        trainer = self._models[body["model_id"]].trainer

        def step() -> Answer:
            return {"metrics": {"grad_norm:mean": trainer.optimizer_step(body["adam_params"])}}

        return self._in_turn(body["model_id"], body["seq_id"], step)

    def _save_weights(self, body: Body) -> Body:
        model, path = self._models[body["model_id"]], self._path(body, "weights")

        def save() -> Answer:
            self._saved[path] = (model.base, model.trainer.save())
            return {"type": "save_weights", "path": path}

        return self._in_turn(body["model_id"], body["seq_id"], save)

    def _save_weights_for_sampler(self, body: Body) -> Body:
        model = self._models[body["model_id"]]

        def save() -> Answer:
            weights = model.trainer.weights()
            if "path" in body:
                path = self._path(body, "sampler_weights")
                self._sampling[path] = (model.base, weights)
                return {"type": "save_weights_for_sampler", "path": path}
            sampler = f"sampler-{next(self._ids)}"
            self._samplers[sampler] = (model, weights)
            return {"type": "save_weights_for_sampler", "sampling_session_id": sampler}

        return self._in_turn(body["model_id"], body["seq_id"], save)

    def _asample(self, body: Body) -> Body:
        from producer.policy.torch_policy.sampling import SamplingParameters
        from tests.support.tinker_trainer import Prompt

        model, weights = self._samplers[body["sampling_session_id"]]
        params = body["sampling_params"]
        prompt = Prompt(
            chunks_of_json(body["prompt"]["chunks"]),
            SamplingParameters(
                params["temperature"], params["max_tokens"], params["seed"], params["top_p"]
            ),
            None if params.get("stop") is None else tuple(params["stop"]),
        )
        request_id = f"{body['sampling_session_id']}:{body['seq_id']}"

        def sample() -> Answer:
            return sample_response(model.trainer.sample(weights, [prompt]))

        return {
            **self._begin(request_id, sample),
            "sample_sequence_ids": [f"{request_id}:0"],
        }

    def _path(self, body: Body, kind: str) -> str:
        run = body["model_id"].replace(":", "-")
        return f"tinker://{run}/{kind}/{body['path']}"

    def _require(self, base: str) -> None:
        if base not in self.folders:
            raise HttpError(400, f"unknown base model {base}")

    def _begin(self, request_id: str, compute: Callable[[], Answer]) -> Body:
        """Compute after what was begun before; a request that comes again is the same one."""
        with self._lock:
            if request_id not in self._futures:
                self._futures[request_id] = self._compute.submit(compute)
        return {"request_id": request_id}

    def _in_turn(self, model_id: str, seq: int, compute: Callable[[], Answer]) -> Body:
        """Compute once all requests of the model with a smaller `seq` have been begun."""
        model, request_id = self._models[model_id], f"{model_id}:{seq}"
        with self._lock:
            if request_id in self._futures:
                return {"request_id": request_id}
            future: Future[Answer] = Future()
            self._futures[request_id] = future
            model.waiting[seq] = lambda: _resolve(future, compute)
            while model.next_seq in model.waiting:
                self._compute.submit(model.waiting.pop(model.next_seq))
                model.next_seq += 1
        return {"request_id": request_id}

    def _retrieve(self, request_id: str) -> Answer:
        from tests.support.tinker_trainer import RefusedError

        try:
            return self._futures[request_id].result(POLL_S)
        except NotDoneError:
            raise HttpError(408, "not done yet") from None
        except RefusedError as error:
            return {"error": str(error), "category": "user"}
        except Exception as error:  # noqa: BLE001  # the service's process boundary
            return {"error": f"{type(error).__name__}: {error}", "category": "server"}


def _resolve(future: Future[Answer], compute: Callable[[], Answer]) -> None:
    try:
        future.set_result(compute())
    except Exception as error:  # noqa: BLE001  # the service's process boundary: the request fails
        future.set_exception(error)


class TinkerServer:
    """The stand-in on a free port of loopback, as a context manager."""

    def __init__(self, folders: list[str], *, refuses: frozenset[str] = frozenset()) -> None:
        self.stand = stand = Stand(folders, refuses=refuses)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(stand.get)

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                is_proto = self.headers.get("Content-Type", "").startswith(PROTO)
                body = raw if is_proto else json.loads(raw or b"{}")
                self._answer(lambda route: stand.post(route, body))

            def _answer(self, work: Callable[[str], Answer]) -> None:
                key = self.headers.get("X-API-Key", "")
                try:
                    stand.check_key(key)
                    status, answer = 200, work(self.path.removeprefix("/api/v1/"))
                except HttpError as error:
                    status, answer = error.status, {"detail": str(error)}
                is_proto = isinstance(answer, bytes)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", PROTO if is_proto else JSON)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """For TINKER_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "TinkerServer":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


if __name__ == "__main__":
    np.seterr(all="raise")
    with TinkerServer(sys.argv[1:]) as server:
        print(server.url, flush=True)  # noqa: T201  # what its caller waits for
        threading.Event().wait()
