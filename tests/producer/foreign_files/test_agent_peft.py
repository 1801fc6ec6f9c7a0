"""Agent-PEFT's assignments with the component files that they import."""

import copy
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from producer.commands.given_fields import read_config_file
from producer.errors import UsageError
from producer.foreign_files.agent_peft import read_agent_peft
from producer.foreign_files.reading import Reading

FILES = {
    "definition.yaml": """\
task_dict:
  import: [components/task.yaml]
agent_dict:
  import: [components/agent.yaml]
language_model_dict:
  import: [components/model.yaml]
callback_dict:
  import: [components/callbacks.yaml]
import: [components/environment.yaml]
""",
    "components/environment.yaml": """\
environment_config:
  use_task_client_flag: true
logger_config: {level: INFO}
""",
    "components/task.yaml": """\
db_bench_single_skill:
  module: src.tasks.DBBenchSingleSkill
  parameters:
    task_name: {module: src.TaskName, parameters: {value: db_bench}}
    single_skill_task_generator:
      module: src.Generator
      parameters: {skill_to_tasks_path: data/single_skill_tasks.json}
    max_round: 3
    random_seed: null
os_interaction:
  parameters: {max_round: 5}
""",
    "components/agent.yaml": """\
lora_rl_agent:
  module: src.agents.LoRARLAgent
  parameters:
    language_model: null
    system_prompt: You help with SQL.
    inference_config_dict:
      {do_sample: false, num_beams: 1, max_new_tokens: 512, temperature: null, top_k: null}
    rl_callback: null
""",
    "components/model.yaml": """\
default:
  module: src.HuggingfaceLoRALanguageModel
  parameters:
    dtype: bfloat16
    device_map: auto
    lora_config:
      {r: 16, lora_alpha: 32, target_modules: [q_proj, v_proj], lora_dropout: 0.1, bias: none,
       task_type: CAUSAL_LM}
Small-LoRA:
  parameters:
    model_name_or_path: /models/small
    quantum: 3
""",
    "components/callbacks.yaml": """\
rl_training_callback:
  parameters:
    reward_weight: 1.0
    learning_rate: 1e-5
    optimizer_class: AdamW
    gradient_accumulation_steps: 4
    reward_correct: 1.0
    reward_incorrect: -0.1
    reward_timeout: -0.3
previous_sample_utilization_callback:
  parameters: {original_first_user_prompt: x, utilized_sample_count: 16}
""",
    "instance/rl_training.yaml": """\
import: [../definition.yaml]
assignment_config:
  task: db_bench_single_skill
  agent:
    name: lora_rl_agent
    custom_parameters: {language_model: Small-LoRA}
  language_model_list: [{name: Small-LoRA}]
  callback_dict:
    rl_training: {name: rl_training_callback}
    callback_0: {name: current_session_saving_callback}
  output_dir: outputs/small/{TIMESTAMP}
  sample_order: ["0", "1", "2", "3", "4", "5", "6", "7", "8"]
environment_config:
  use_task_client_flag: false
colour: blue
""",
}
MAIN = "instance/rl_training.yaml"


def write(folder: Path, **changes: tuple[str, str]) -> Path:
    """The files; `changes`: stem -> (old, new) text in it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changes.get(path.stem, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
    return folder / MAIN


def test_known_fields_become_the_configurations_own(tmp_path: Path) -> None:
    fields = read_config_file(write(tmp_path)).fields
    assert fields.pop("log_path") == "outputs/small/{TIMESTAMP}"
    assert fields == {
        "environment": "dbbench",
        "group_size": 1,
        "max_turns": 3,
        "tasks": {
            "source_type": "dbbench",
            "path": "data/single_skill_tasks.json",
            "positions": [0, 1, 2, 3, 4, 5, 6, 7, 8],
        },
        "max_tokens": 512,
        "model_name": "/models/small",
        "dtype": "bfloat16",
        "lora_rank": 16,
        "lora_alpha": 32,
        "target_modules": ["q_proj", "v_proj"],
        "lora_dropout": 0.1,
        "learning_rate": 1e-5,
        "groups_per_batch": 4,
        "reward": "dbbench",
        # Nine sessions, four of them an update.
        "num_steps": 3,
    }


def test_unknown_fields_are_named_and_those_without_effect_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    read_config_file(write(tmp_path))
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    (warning,) = [line for line in warnings if "unknown" in line]
    assert warning.endswith("unknown fields, ignored: colour, language_model.quantum")
    said = " ".join(record.getMessage() for record in caplog.records)
    for name in ("device_map", "system_prompt", "do_sample", "callback_0", "environment_config"):
        assert name in said


def test_past_sessions_in_the_prompt_are_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        rl_training=("name: rl_training_callback", "name: previous_sample_utilization_callback"),
    )
    with pytest.raises(UsageError, match="16 cannot be honoured: prompts show no past sessions"):
        read_config_file(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"callbacks": ("reward_correct: 1.0", "reward_correct: much")}, "reward_correct: 'much'"),
        ({"callbacks": ("reward_weight: 1.0", "reward_weight: .inf")}, "reward_weight: inf"),
        ({"callbacks": ("AdamW", "SGD")}, "optimizer_class: 'SGD'"),
        ({"callbacks": ("1e-5", "fast")}, "learning_rate: 'fast' cannot be honoured; use a number"),
        ({"model": ("bias: none", "bias: all")}, "lora_config.bias: 'all'"),
        ({"agent": ("num_beams: 1", "num_beams: 4")}, "num_beams: 4"),
        (
            {"rl_training": ("task: db_bench_single_skill", "task: os_interaction")},
            "os_interaction",
        ),
        ({"rl_training": ("language_model: Small", "language_model: Large")}, "'Large-LoRA'"),
        ({"rl_training": ("[../definition.yaml]", "[../gone.yaml]")}, "gone.yaml does not exist"),
        ({"rl_training": ("[../definition.yaml]", "[rl_training.yaml]")}, "imports itself"),
        ({"rl_training": ("[../definition.yaml]", "3")}, "import: must be a list of files"),
        ({"rl_training": ('["0", "1", ', '"all" # [')}, "sample_order: 'all'"),
        ({"rl_training": ('["0", "1", ', '["0", "-1", ')}, "use indices of samples, from 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_file_and_field(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read_config_file(write(tmp_path, **changes))
    assert message in str(refused.value)
    assert ".yaml" in str(refused.value)


def of_any_shape(section: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a file's fields."""
    inner = enumerate(section) if isinstance(section, list) else ()
    for key, value in section.items() if isinstance(section, dict) else inner:
        yield (*place, key)
        yield from of_any_shape(value, (*place, key))


ODD: list[object] = [None, True, 0, -1, 1.5, float("nan"), "", "x", [], [1], {}, {"a": 1}, [[]]]


def is_refused_by_name(file: Path, fields: dict[str, Any]) -> bool:
    """Whether the fields are refused; any other error is raised."""
    try:
        read = Reading()
        read_agent_peft(read, file, fields)
    except UsageError as error:
        return str(file) in str(error)
    return bool(read.problems)


def test_a_field_of_any_shape_is_read_or_refused_by_name(tmp_path: Path) -> None:
    main = write(tmp_path)
    file = tmp_path / "whole.yaml"
    whole = yaml.safe_load(main.read_text())
    for name in whole.pop("import"):
        whole |= yaml.safe_load((main.parent / name).read_text())
    for kind in ("task", "agent", "language_model", "callback"):
        (component,) = whole.pop(f"{kind}_dict")["import"]
        whole[f"{kind}_dict"] = yaml.safe_load((tmp_path / component).read_text())
    whole.pop("import", None)
    file.write_text("read by the test itself")
    refused = 0
    for place in of_any_shape(whole):
        for odd in ODD:
            broken = copy.deepcopy(whole)
            at: Any = broken
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = odd
            refused += is_refused_by_name(file, broken)
    assert refused > 100
