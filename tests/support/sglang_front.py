"""SGLang's HTTP interface in front of a server with vLLM's, which computes the answers.

From the sources of SGLang 0.5.23 (`srt/entrypoints/http_server.py`, `srt/entrypoints/openai/`,
`srt/managers/tokenizer_control_mixin.py`). What is not in them answers 404.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

Answer = tuple[int, dict[str, Any]]
ALL = ("all", "all-linear")
COMPLETIONS = ("/v1/completions", "/v1/chat/completions")


@dataclass
class SglangFront:
    """The front of the server at `behind`."""

    behind: str
    """Ends with /v1."""
    url: str = ""
    adapters: dict[str, str] = field(default_factory=dict)
    """Name -> folder; cleared, it is a server that was restarted."""

    def list_models(self) -> dict[str, Any]:
        """GET /v1/models."""
        (base, *_adapters) = httpx.get(f"{self.behind}/models").json()["data"]
        named = [(base["id"], base["id"]), *self.adapters.items()]
        rows = [{"id": name, "owned_by": "sglang", "root": root} for name, root in named]
        return {"object": "list", "data": rows}

    def load(self, body: dict[str, Any]) -> Answer:
        """POST /load_lora_adapter."""
        name = body["lora_name"]
        if name in self.adapters:
            return self._updated(f"Failed to load LoRA adapter {name} because it is already loaded")
        config = json.loads(Path(body["lora_path"], "adapter_config.json").read_text())
        if isinstance(targets := config["target_modules"], str) and targets not in ALL:
            return self._updated(f"Only {ALL} can be used as the string for target module")
        response = httpx.post(f"{self.behind}/load_lora_adapter", json=body)
        if response.status_code != 200 and "already" not in response.text:
            return self._updated(response.text)
        self.adapters[name] = body["lora_path"]
        return self._updated(None)

    def unload(self, body: dict[str, Any]) -> Answer:
        """POST /unload_lora_adapter."""
        name = body["lora_name"]
        if self.adapters.pop(name, None) is None:
            return self._updated(
                f"LoRA with name {name} does not exist. Loaded LoRAs: dict_keys([])"
            )
        httpx.post(f"{self.behind}/unload_lora_adapter", json=body)
        return self._updated(None)

    def complete(self, path: str, body: dict[str, Any]) -> Answer:
        """Samples without an adapter unless `lora_path` names one; any `model` is repeated."""
        asked, adapter = body["model"], body.pop("lora_path", None)
        if adapter is not None and adapter not in self.adapters:
            message = f"Got LoRA adapter that has never been loaded: {adapter}\n"
            message += f"All loaded adapters: dict_keys({[*self.adapters]})."
            error = {"object": "error", "message": message, "type": "BadRequest", "param": None}
            return 400, {**error, "code": 400}
        model = adapter or self.list_models()["data"][0]["id"]
        url = f"{self.behind}{path.removeprefix('/v1')}"
        response = httpx.post(url, json={**body, "model": model}, timeout=60)
        answer = response.json()
        if response.status_code == 200:
            answer["model"] = asked
            prompt = answer.pop("prompt_token_ids", None)
            for choice in answer["choices"]:
                choice.setdefault("prompt_token_ids", prompt)
                if "chat" in path:
                    choice["response_token_ids"] = choice.pop("token_ids")
        return response.status_code, answer

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        """The answer to a POST."""
        if path == "/load_lora_adapter":
            return self.load(body)
        if path == "/unload_lora_adapter":
            return self.unload(body)
        if path in COMPLETIONS:
            return self.complete(path, body)
        return 404, {"detail": "Not Found"}

    def _updated(self, error: str | None) -> Answer:
        body: dict[str, Any] = {"rid": None, "http_worker_ipc": None, "success": error is None}
        body |= {"error_message": error, "loaded_adapters": self.adapters}
        return 200 if error is None else 400, body


@contextmanager
def sglang_front(behind: str) -> Iterator[SglangFront]:
    """A front that ends with the block."""
    front = SglangFront(behind)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self._answer(200, front.list_models())
            else:
                self._answer(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._answer(*front.post(self.path, json.loads(body)))

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    front.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield front
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
