"""Reads Agent-PEFT's rl_training.yaml and the component files that it imports, unchanged."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NoReturn

from producer.config import RunConfig
from producer.errors import UsageError
from producer.field_errors import without_secrets
from producer.foreign_files.parsing import parse_file
from producer.foreign_files.reading import (
    Reading,
    Table,
    count,
    flattened,
    number,
    only,
    same,
    without_effect,
)

Section = dict[str, Any]

IMPORT: Final = "import"
"""Key, in any section, of a list of files to take fields from."""
DEFAULT: Final = "default"
COMPONENTS: Final = ("task", "agent", "language_model", "callback")
"""Kinds of components. The section `KIND_dict` defines the components of a kind."""
REWARDS: Final = ("reward_correct", "reward_incorrect", "reward_timeout")
"""Settings of the reward `dbbench`, which have the same names here."""
RECORDS: Final = frozenset(
    {
        "current_session_saving_callback",
        "consecutive_abnormal_agent_inference_process_handling_callback",
        "group_self_consistency_callback",
    }
)
"""Callbacks that are not needed, because every session and failure is an event."""
TRAINING: Final = "rl_training_callback"
PAST_SESSIONS: Final = "previous_sample_utilization_callback"
INFERENCE: Final = "agent.inference_config_dict."
LORA: Final = "language_model.lora_config."
GENERATOR: Final = "task.single_skill_task_generator"
ALL_TOKENS: Final = "completions are sampled from all tokens; leave it out"


TABLE: Final[Table] = {
    "assignment_config.output_dir": same("log_path", str),
    "task.max_round": same("max_turns"),
    "task.random_seed": same("seed"),
    "task.data_file_path": same("data_file_path", str),
    f"{GENERATOR}.parameters.skill_to_tasks_path": same("skill_to_tasks_path", str),
    f"{INFERENCE}max_new_tokens": same("max_tokens"),
    f"{INFERENCE}temperature": same("temperature"),
    f"{INFERENCE}num_beams": only(1, instead="a completion is one sample; use 1"),
    f"{INFERENCE}top_k": only(instead=ALL_TOKENS),
    f"{INFERENCE}top_p": only(instead=ALL_TOKENS),
    "language_model.model_name_or_path": same("model_name"),
    "language_model.dtype": same("dtype"),
    f"{LORA}r": same("lora_rank"),
    f"{LORA}lora_alpha": same("lora_alpha"),
    f"{LORA}target_modules": same("target_modules"),
    f"{LORA}lora_dropout": same("lora_dropout"),
    f"{LORA}bias": only("none", instead="use none"),
    f"{LORA}task_type": only("CAUSAL_LM", instead="use CAUSAL_LM"),
    f"{PAST_SESSIONS}.utilized_sample_count": only(
        0, instead="prompts show no past sessions; leave the callback out"
    ),
    f"{TRAINING}.learning_rate": same("learning_rate", number),
    f"{TRAINING}.gradient_accumulation_steps": same("groups_per_batch", count),
    f"{TRAINING}.optimizer_class": only("AdamW", "Adam", instead="use AdamW, or Adam"),
    f"{TRAINING}.reward_weight": same("reward_weight", number),
    **{f"{TRAINING}.{name}": same(name, number) for name in REWARDS},
    **without_effect(
        {
            "": {
                "episodes, logs and files are the trainer's own": "environment_config logger_config"
            },
            **{
                f"{section}.": {
                    "the environment is dbbench": "task_name",
                    "the protocol's prompt is built in": "chat_history_item_factory system_prompt",
                    "the policy's own chat template is used": "role_dict",
                    "one device computes; see --device": "device_map",
                    "the trainer updates the policy itself": "rl_callback",
                    "it is executed nowhere": "original_first_user_prompt",
                }
                for section in (*COMPONENTS[:3], TRAINING, PAST_SESSIONS)
            },
            INFERENCE: {
                "training always samples; evaluations are greedy, see --eval-temperature": (
                    "do_sample"
                )
            },
            f"{GENERATOR}.": {"tasks are read from its file": "module name"},
        }
    ),
}


def is_agent_peft(fields: Mapping[str, Any]) -> bool:
    """Whether the fields are an assignment of Agent-PEFT."""
    return "assignment_config" in fields


def read_agent_peft(read: Reading, path: Path, fields: Section) -> None:
    """Read the fields of the file at `path` and of the files that it imports.

    Raises UsageError that names file and field if a component is missing or malformed.
    """
    read.given |= _Assignment(read, path, with_imports(path, fields)).fields()


class _Assignment:
    """An assignment and its components."""

    def __init__(self, read: Reading, path: Path, whole: Section) -> None:
        self.read = read
        self._path = path
        self._whole = whole

    def fields(self) -> Section:
        """The configuration fields. Raises UsageError, NotFoundError."""
        whole = dict(self._whole)
        assignment = dict(self._section(whole.pop("assignment_config"), "assignment_config"))
        task = assignment.pop("task", None)
        kind = task.get("name") if isinstance(task, dict) else task
        if not str(kind).startswith("db_bench"):
            self._refuse("assignment_config.task", kind, "db_bench or db_bench_single_skill")
        agent = self._component("agent", assignment.pop("agent", None))
        model = agent.pop("language_model", None)
        models = assignment.pop("language_model_list", [])
        if not isinstance(models, list):
            self._refuse("assignment_config.language_model_list", models, "a list of models")
        model = models[0] if model is None and models else model
        callbacks = self._section(assignment.pop("callback_dict", {}), "callback_dict")
        order = assignment.pop("sample_order", DEFAULT)
        self._take("task", self._component("task", task))
        self._take("agent", agent)
        self._take("language_model", self._component("language_model", model))
        for name, callback in sorted(callbacks.items()):
            self._callback(name, callback)
        self._take("assignment_config", assignment)
        for name in sorted(whole.keys() - {f"{kind}_dict" for kind in COMPONENTS}):
            self._take(name, whole[name])
        if self.read.problems:
            return {}
        return {"environment": "dbbench", "group_size": 1, **self._together(order)}

    def _take(self, name: str, value: Any) -> None:
        self.read.read(flattened({name: value}, TABLE), TABLE)

    def _callback(self, key: str, given: object) -> None:
        section = self._section(given, f"callback_dict.{key}")
        name = str(section.get("name", key))
        if name in RECORDS:
            self.read.without_effect[f"callback_dict.{key}"] = "every session is recorded"
            return
        parameters = self._component("callback", section)
        if name not in {TRAINING, PAST_SESSIONS}:
            self.read.unknown.append(f"callback_dict.{key} ({name})")
            return
        self._take(name, parameters)
        if name == TRAINING:
            self.read.take(f"callback_dict.{key}", "reward", "dbbench")

    def _together(self, order: object) -> Section:
        """Derive settings that depend on several fields."""
        given = self.read.given
        weight = given.pop("reward_weight", 1.0)
        for name in REWARDS if "reward" in given else ():
            default = RunConfig.model_fields[name].default
            value = given.pop(name, default) * weight
            if value != default:
                given[name] = value
        path = given.pop("data_file_path", None)
        path = given.pop("skill_to_tasks_path", path)
        if path is not None:
            given["tasks"] = {"source_type": "dbbench", "path": path}
        return given | self._samples(order, given)

    def _samples(self, order: object, given: Section) -> Section:
        """The number of steps and the entries to use.

        There is one update per session, or per accumulated sessions.
        """
        updates = given.get("groups_per_batch", 1)
        source = given.get("tasks")
        name = "assignment_config.sample_order"
        if order == DEFAULT:
            if source is None:
                wanted = "a task with skill_to_tasks_path or data_file_path, or a list of samples"
                self._refuse(name, DEFAULT, wanted)
            # Imported here, because it loads database code that `run --help` does not need.
            from producer.agents.dbbench.data.layout import read_entries

            return {"num_steps": -(-len(read_entries(Path(source["path"]))) // updates)}
        if not isinstance(order, list):
            self._refuse(name, order, "a list of samples, or default")
        places = [int(place) for place in order if str(place).isdecimal()]
        if len(places) < len(order) or not places:
            self._refuse(name, order, "indices of samples, from 0")
        self.read.without_effect[f"the order of {name}"] = (
            f"its {len(order)} samples are trained on in an order drawn from the seed"
        )
        chosen = {} if source is None else {"tasks": {**source, "positions": sorted({*places})}}
        return {"num_steps": -(-len(order) // updates), **chosen}

    def _component(self, kind: str, given: object) -> Section:
        """Parameters of a component.

        Its kind's defaults are overridden by its name's, then its own.
        """
        if given is None:
            return {}
        own = {"name": given} if isinstance(given, str) else self._section(given, kind)
        name = str(own.get("name"))
        known = self._section(self._whole.get(f"{kind}_dict", {}), f"{kind}_dict")
        if name not in known and "parameters" not in own:
            others = ", ".join(sorted(known.keys() - {DEFAULT}))
            self._refuse(kind, name, f"one of {others}" if others else f"{kind}_dict to define it")
        parameters: Section = {}
        for section in (known.get(DEFAULT, {}), known.get(name, {}), own):
            inner = self._section(section, f"{kind}_dict").get("parameters") or {}
            merge(parameters, self._section(inner, f"{kind} {name}: parameters"))
        custom = own.get("custom_parameters") or {}
        merge(parameters, self._section(custom, f"{kind} {name}: custom_parameters"))
        return parameters

    def _section(self, value: object, name: str) -> Section:
        if not isinstance(value, dict):
            self._refuse(name, value, "an object of fields")
        return value

    def _refuse(self, name: str, value: object, wanted: str) -> NoReturn:
        shown = without_secrets(value)
        message = f"{self._path}: {name}: {shown!r} cannot be honoured; use {wanted}"
        raise UsageError(message)


def with_imports(path: Path, fields: Section, above: tuple[Path, ...] = ()) -> Section:
    """The fields merged over those of the files that they import. Raises UsageError.

    Imports are relative to the file or, if it is a pipe, to the working folder.
    """
    own_path = path.resolve()
    folder = own_path.parent if own_path.is_file() else Path.cwd()

    def imported(section: Section, where: str) -> Section:
        names = section.get(IMPORT, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            message = f"{path}: {where}import: must be a list of files"
            raise UsageError(message)
        whole: Section = {}
        for name in names:
            merge(whole, _imported_file(folder / name, (*above, own_path)))
        own = {
            name: imported(value, f"{where}{name}.") if isinstance(value, dict) else value
            for name, value in section.items()
            if name != IMPORT
        }
        merge(whole, own)
        return whole

    return imported(fields, "")


def _imported_file(path: Path, above: tuple[Path, ...]) -> Section:
    """Read an imported file. `above` are the files that import it, outermost first."""
    path = path.resolve()
    if path in above:
        message = f"{path} imports itself"
        raise UsageError(message)
    if not path.is_file():
        message = f"{above[-1]}: import: {path} does not exist"
        raise UsageError(message)
    return with_imports(path, parse_file(path), above)


def merge(into: Section, other: Section) -> None:
    """Merge `other` into `into`: sections recursively, replacing other values."""
    for name, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], value)
        else:
            into[name] = deepcopy(value)
