"""Reads Agent-PEFT's rl_training.yaml and the component files that it imports, as they are.

Known fields become fields of the configuration. A field that cannot mean anything here is named
with the reason, one that is not known is named too; neither is an error. A known field with a value
that cannot be honoured is.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final, NoReturn

from producer.agents.dbbench.data.layout import read_entries
from producer.config import RunConfig
from producer.errors import UsageError

logger = logging.getLogger(__name__)

IMPORT: Final = "import"
DEFAULT: Final = "default"
REWARDS: Final = ("reward_correct", "reward_incorrect", "reward_timeout")
"""Of the reward `dbbench`; the original's names are ours."""
TIMESTAMP: Final = "{TIMESTAMP}"
WITHOUT_EFFECT: Final = {
    "task_name": "the environment is dbbench",
    "chat_history_item_factory": "the protocol's prompt is built in",
    "system_prompt": "the protocol's prompt is built in",
    "role_dict": "the policy's own chat template is used",
    "device_map": "one device computes; see --device",
    "rl_callback": "the trainer updates the policy itself",
    "original_first_user_prompt": "it is executed nowhere",
    "do_sample": "training always samples; evaluations are greedy, see --eval-temperature",
}
"""Original name -> why nothing follows from it here."""
RECORDS: Final = frozenset(
    {
        "current_session_saving_callback",
        "consecutive_abnormal_agent_inference_process_handling_callback",
        "group_self_consistency_callback",
    }
)
"""Callbacks whose work is done anyway: every session and failure is an event."""

COMPONENTS: Final = frozenset({"task_dict", "agent_dict", "language_model_dict", "callback_dict"})
ENVIRONMENT: Final = frozenset({"environment_config", "logger_config"})
"""Sections about servers and log files."""

Section = dict[str, Any]


def is_agent_peft(fields: Mapping[str, Any]) -> bool:
    """Whether a file's fields are an assignment of that system."""
    return "assignment_config" in fields


def read_agent_peft(path: Path, parse: Callable[[Path], Section]) -> Section:
    """The configuration's fields; `parse` reads one YAML file. UsageError names file and field."""
    whole = _imported(path, parse, ())
    reader = _Reader(path, whole)
    fields = reader.fields()
    for reason in sorted({*reader.without_effect.values()}):
        names = sorted(name for name, why in reader.without_effect.items() if why == reason)
        logger.info("%s: without effect here: %s (%s)", path.name, ", ".join(names), reason)
    if reader.unknown:
        named = ", ".join(sorted(reader.unknown))
        logger.warning("%s: these fields are not known and are ignored: %s", path.name, named)
    return fields


def _imported(path: Path, parse: Callable[[Path], Section], above: tuple[Path, ...]) -> Section:
    """The file with everything that it imports; what stands in the file itself wins."""
    path = path.resolve()
    if path in above:
        message = f"--config: {path} imports itself"
        raise UsageError(message)
    if not path.is_file():
        by = above[-1] if above else path
        message = f"--config: {by}: import: {path} does not exist"
        raise UsageError(message)

    def resolved(section: Section, where: str) -> Section:
        names = section.get(IMPORT, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            message = f"--config: {path}: {where}import: must be a list of files"
            raise UsageError(message)
        found: Section = {}
        for name in names:
            _merge(found, _imported(path.parent / name, parse, (*above, path)))
        own = {
            name: resolved(value, f"{where}{name}.") if isinstance(value, dict) else value
            for name, value in section.items()
            if name != IMPORT
        }
        _merge(found, own)
        return found

    return resolved(parse(path), "")


def _merge(into: Section, other: Section) -> None:
    for name, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def _whole_number(value: object) -> int:
    """ValueError, TypeError."""
    is_number = isinstance(value, int | float | str) and not isinstance(value, bool)
    is_part = isinstance(value, float) and not value.is_integer()
    number = int(value) if is_number and not is_part else 0  # type: ignore[call-overload]  # a number or text
    if number < 1:
        message = "it is no whole number above 0"
        raise ValueError(message)
    return int(number)


class _Reader:
    """Turns an assignment and its components into fields, and notes what it left."""

    def __init__(self, path: Path, whole: Section) -> None:
        self.without_effect: dict[str, str] = {}
        self.unknown: set[str] = set()
        self._path = path
        self._whole = whole

    def fields(self) -> Section:
        whole = dict(self._whole)
        for section in ENVIRONMENT & whole.keys():
            self.without_effect[section] = "episodes, logs and files are the trainer's own"
        assignment = dict(self._section(whole["assignment_config"], "assignment_config"))
        named = assignment.pop("task", None)
        of = named.get("name") if isinstance(named, dict) else named
        if not str(of).startswith("db_bench"):
            self._refuse("assignment_config.task", of, "db_bench or db_bench_single_skill")
        task = self._component("task", named)
        agent = self._component("agent", assignment.pop("agent", None))
        fields: Section = {"environment": "dbbench", "group_size": 1}
        fields |= self._task(task)
        model = agent.pop("language_model", None)
        fields |= self._agent(agent)
        listed = assignment.pop("language_model_list", [])
        if not isinstance(listed, list):
            self._refuse("assignment_config.language_model_list", listed, "a list of models")
        if model is None and listed:
            model = listed[0]
        if model is not None:
            fields |= self._model(self._component("language_model", model))
        for name, callback in sorted(self._section(assignment.pop("callback_dict", {})).items()):
            fields |= self._callback(name, callback)
        fields |= self._samples(assignment.pop("sample_order", DEFAULT), fields)
        if (folder := assignment.pop("output_dir", None)) is not None:
            stamp = datetime.now().astimezone().strftime("%Y-%m-%d-%H-%M-%S")
            fields["log_path"] = str(folder).replace(TIMESTAMP, stamp)
        self._leave("assignment_config", assignment)
        self.unknown |= whole.keys() - ENVIRONMENT - COMPONENTS - {"assignment_config"}
        return fields

    def _task(self, parameters: Section) -> Section:
        fields: Section = {}
        self._take(parameters, "max_round", fields, "max_turns")
        self._take(parameters, "random_seed", fields, "seed")
        path = parameters.pop("data_file_path", None)
        generator = parameters.pop("single_skill_task_generator", None)
        if generator is not None:
            found = self._section(generator, "single_skill_task_generator").get("parameters", {})
            path = self._section(found).get("skill_to_tasks_path", path)
        if path is not None:
            fields["tasks"] = {"source_type": "dbbench", "path": str(path)}
        self._leave("task", parameters)
        return fields

    def _agent(self, parameters: Section) -> Section:
        fields: Section = {}
        given = parameters.pop("inference_config_dict", {})
        inference = dict(self._section(given, "inference_config_dict"))
        self._take(inference, "max_new_tokens", fields, "max_tokens")
        self._take(inference, "temperature", fields, "temperature")
        for name, only in (("num_beams", 1), ("top_k", None), ("top_p", None)):
            self._require(f"inference_config_dict.{name}", inference.pop(name, only), {only, None})
        self._leave("inference_config_dict", inference)
        self._leave("agent", parameters)
        return fields

    def _model(self, parameters: Section) -> Section:
        fields: Section = {}
        self._take(parameters, "model_name_or_path", fields, "model_name")
        self._take(parameters, "dtype", fields, "dtype")
        lora = dict(self._section(parameters.pop("lora_config", {}), "lora_config"))
        for name, field in (
            ("r", "lora_rank"),
            ("lora_alpha", "lora_alpha"),
            ("target_modules", "target_modules"),
            ("lora_dropout", "lora_dropout"),
        ):
            self._take(lora, name, fields, field)
        self._require("lora_config.bias", lora.pop("bias", "none"), {"none"})
        self._require("lora_config.task_type", lora.pop("task_type", "CAUSAL_LM"), {"CAUSAL_LM"})
        self._leave("lora_config", lora)
        self._leave("language_model", parameters)
        return fields

    def _callback(self, key: str, given: object) -> Section:
        section = self._section(given, f"callback_dict.{key}")
        name = str(section.get("name", key))
        if name in RECORDS:
            self.without_effect[f"callback_dict.{key}"] = "every session is recorded"
            return {}
        parameters = self._component("callback", section)
        fields: Section = {}
        if name == "previous_sample_utilization_callback":
            self._take(parameters, "utilized_sample_count", fields, "replay_sessions")
        elif name == "rl_training_callback":
            self._take(parameters, "learning_rate", fields, "learning_rate", float)
            steps = "gradient_accumulation_steps"
            self._take(parameters, steps, fields, "groups_per_batch", _whole_number)
            weight = self._number(f"{name}.reward_weight", parameters.pop("reward_weight", 1))
            optimizer = parameters.pop("optimizer_class", "AdamW")
            self._require(f"{name}.optimizer_class", optimizer, {"AdamW"})
            fields["reward"] = "dbbench"
            for reward in REWARDS:
                default = RunConfig.model_fields[reward].default
                value = self._number(f"{name}.{reward}", parameters.pop(reward, default))
                if value * weight != default:
                    fields[reward] = value * weight
        else:
            self.unknown.add(f"callback_dict.{key} ({name})")
            return {}
        self._leave(name, parameters)
        return fields

    def _samples(self, order: object, fields: Section) -> Section:
        """An update for each session, or for as many as are accumulated; by default every entry."""
        updates = max(1, int(fields.get("groups_per_batch", 1)))
        if order == DEFAULT:
            return {"num_steps": -(-self._num_entries(fields) // updates)}
        if not isinstance(order, list):
            self._refuse("assignment_config.sample_order", order, "a list of samples, or default")
        places = [int(item) for item in order if str(item).isdecimal()]
        if len(places) < len(order) or not places:
            self._refuse("assignment_config.sample_order", order, "indices of samples, from 0")
        chosen: Section = {}
        if isinstance(source := fields.get("tasks"), dict):
            chosen = {"tasks": {**source, "positions": sorted({*places})}}
        self.without_effect["the order of assignment_config.sample_order"] = (
            f"its {len(order)} samples are trained on, in an order drawn by seed"
        )
        return {"num_steps": -(-len(order) // updates), **chosen}

    def _num_entries(self, fields: Section) -> int:
        """Of the task's data: each is a session. UsageError, NotFoundError."""
        source = fields.get("tasks")
        if not isinstance(source, dict):
            wanted = "a task with skill_to_tasks_path or data_file_path, or a list of samples"
            self._refuse("assignment_config.sample_order", DEFAULT, wanted)
        return len(read_entries(Path(str(source["path"]))))

    def _number(self, name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self._refuse(name, value, "a number")
        return float(value)

    def _component(self, kind: str, given: object) -> Section:
        """Parameters of a component with its defaults and its own."""
        if given is None:
            return {}
        own = {"name": given} if isinstance(given, str) else dict(self._section(given, kind))
        name = str(own.get("name"))
        known = self._section(self._whole.get(f"{kind}_dict", {}), f"{kind}_dict")
        if name not in known and "parameters" not in own:
            others = ", ".join(sorted(known.keys() - {DEFAULT}))
            self._refuse(kind, name, f"one of {others}" if others else f"{kind}_dict to define it")
        parameters: Section = {}
        for section in (known.get(DEFAULT, {}), known.get(name, {}), own):
            given = self._section(section, f"{kind}_dict").get("parameters") or {}
            _merge(parameters, dict(self._section(given, f"{kind} {name}: parameters")))
        given = own.get("custom_parameters") or {}
        _merge(parameters, dict(self._section(given, f"{kind} {name}: custom_parameters")))
        return parameters

    def _take(
        self,
        section: Section,
        name: str,
        fields: Section,
        field: str,
        read: Callable[[Any], object] = lambda value: value,
    ) -> None:
        value = section.pop(name, None)
        if value is None:
            return
        try:
            fields[field] = read(value)
        except (TypeError, ValueError):
            self._refuse(name, value, "a whole number" if read is _whole_number else "a number")

    def _require(self, name: str, value: object, only: set[Any]) -> None:
        # Lists and objects cannot be members of a set.
        if isinstance(value, list | dict) or value not in only:
            self._refuse(name, value, " or ".join(str(item) for item in only if item is not None))

    def _refuse(self, name: str, value: object, wanted: str) -> NoReturn:
        message = f"--config: {self._path}: {name}: {value!r} cannot be honoured; use {wanted}"
        raise UsageError(message)

    def _section(self, value: object, name: str = "") -> Section:
        if not isinstance(value, dict):
            self._refuse(name, value, "an object of fields")
        return value

    def _leave(self, prefix: str, section: Section) -> None:
        """Note what was not read of a section."""
        for name, value in section.items():
            if name in WITHOUT_EFFECT:
                self.without_effect[f"{prefix}.{name}"] = WITHOUT_EFFECT[name]
            elif value is not None:
                self.unknown.add(f"{prefix}.{name}")
