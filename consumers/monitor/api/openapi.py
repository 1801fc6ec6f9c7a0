"""The API described as OpenAPI 3.1; every schema comes from the classes of the answers."""

import json
from importlib.metadata import version

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from consumers.monitor.api.change import TrainingChange
from consumers.monitor.api.rollout import RolloutFacts
from consumers.monitor.api.step import StepFacts
from consumers.monitor.api.training import TrainingFacts, TrainingList
from consumers.monitor.api.value import Failure, Value
from schemas.distribution import DISTRIBUTION

PATHS: tuple[tuple[str, type[Value], str], ...] = (
    ("/api/trainings", TrainingList, "Every training that is not hidden, the newest first"),
    ("/api/trainings/{name}", TrainingFacts, "A training by its name, percent-encoded"),
    ("/api/steps/{id}", StepFacts, "A step by its row id"),
    ("/api/rollouts/{id}", RolloutFacts, "A rollout by its row id or its text id"),
)


def openapi() -> bytes:
    """The document as JSON."""
    classes: list[type[Value]] = [TrainingChange, Failure, *(each for _, each, _ in PATHS)]
    _, schemas = models_json_schema(
        [(each, "serialization") for each in classes],
        ref_template="#/components/schemas/{model}",
    )
    document: JsonValue = {
        "openapi": "3.1.0",
        "info": {"title": "cua-project monitor", "version": version(DISTRIBUTION)},
        "paths": {
            **{path: _operation(path, each, summary) for path, each, summary in PATHS},
            "/events": _events(),
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # The second where the monitor has a --token-file.
        "security": [{}, {"token": []}],
    }
    return json.dumps(document).encode()


def _events() -> JsonValue:
    schema: JsonValue = {"$ref": f"#/components/schemas/{TrainingChange.__name__}"}
    return {
        "get": {
            "summary": "Server-Sent Events: every training's state, then each change of one",
            "parameters": [
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "description": "Id of the last event received; what came after it is sent",
                    "schema": {"type": "string"},
                }
            ],
            "responses": {
                "200": {
                    "description": "Events `training`; the data of each is of this schema",
                    "content": {"text/event-stream": {"schema": schema}},
                },
                "400": _response(Failure, "A query parameter, which no path takes"),
                "401": _response(Failure, "The monitor needs its token"),
                "503": _response(Failure, "Too many clients, or the tables cannot be read now"),
            },
        }
    }


def _operation(path: str, answer: type[Value], summary: str) -> JsonValue:
    parameters: list[JsonValue] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("name", "id")
        if f"{{{name}}}" in path
    ]
    return {
        "get": {
            "summary": summary,
            "parameters": parameters,
            "responses": {
                "200": _response(answer, "Found"),
                "400": _response(Failure, "A query parameter, which no path takes"),
                "401": _response(Failure, "The monitor needs its token"),
                "404": _response(Failure, "Nothing has this name or id"),
                "503": _response(Failure, "The tables cannot be read now"),
            },
        }
    }


def _response(answer: type[Value], description: str) -> JsonValue:
    schema: JsonValue = {"$ref": f"#/components/schemas/{answer.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}
