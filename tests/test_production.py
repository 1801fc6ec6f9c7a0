"""docs/kubernetes.yaml is consistent in itself, and starts commands that exist."""

import re
from typing import Any

import click
import pytest
import yaml

from consumers.cli import cli as project_cli
from producer.cli import cli as train_cli
from tests.support.paths import ROOT

OBJECTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "docs/kubernetes.yaml").read_text())
)
PROGRAMS = {"cua-train": train_cli, "cua-project": project_cli}


def pods() -> list[dict[str, Any]]:
    """The template of each pod."""
    specs = [item["spec"].get("jobTemplate", item)["spec"] for item in OBJECTS]
    return [spec["template"] for spec in specs if "template" in spec]


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["spec"]["containers"][0]["name"])
def test_a_pod_starts_a_command_with_options_that_exist(pod: dict[str, Any]) -> None:
    (container,) = pod["spec"]["containers"]
    program, *words = container["command"]
    assert words.pop(0) == "--log-format"
    assert words.pop(0) == "json"
    command = PROGRAMS[program].get_command(click.Context(PROGRAMS[program]), words[0])
    assert command is not None
    command.make_context(words[0], words[1:], parent=click.Context(PROGRAMS[program]))


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["spec"]["containers"][0]["name"])
def test_a_pod_mounts_its_home_where_cua_home_is(pod: dict[str, Any]) -> None:
    (container,) = pod["spec"]["containers"]
    (home,) = [item["value"] for item in container["env"] if item["name"] == "CUA_HOME"]
    (mount,) = container["volumeMounts"]
    (volume,) = pod["spec"]["volumes"]
    assert (mount["mountPath"], mount["name"]) == (home, volume["name"])
    claims = {item["metadata"]["name"] for item in OBJECTS if item["kind"].endswith("VolumeClaim")}
    if "persistentVolumeClaim" in volume:
        assert volume["persistentVolumeClaim"]["claimName"] in claims


def test_what_probes_and_scrapes_the_projector_asks_the_port_of_its_metrics() -> None:
    (deployment,) = [item for item in OBJECTS if item["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    words = container["command"]
    port = words[words.index("--metrics-port") + 1]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == port
    assert container["ports"] == [{"name": "metrics", "containerPort": int(port)}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    labels = deployment["spec"]["selector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()


def test_a_trainer_on_kubernetes_and_its_unit_start_no_monitor() -> None:
    unit = (ROOT / "docs" / "systemd" / "cua-trainer@.service").read_text()
    (trainer,) = [pod for pod in pods() if pod["spec"]["containers"][0]["name"] == "trainer"]
    assert "--no-monitor" in trainer["spec"]["containers"][0]["command"]
    assert re.search(r"^ExecStart=.* run .*--no-monitor$", unit, re.MULTILINE)


def test_exit_codes_that_need_a_person_are_restarted_by_nobody() -> None:
    (job,) = [item for item in OBJECTS if item["kind"] == "Job"]
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    unit = (ROOT / "docs" / "systemd" / "cua-trainer@.service").read_text()
    found = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)
    assert found is not None
    assert rule["onExitCodes"]["values"] == [int(code) for code in found[1].split()] == [2, 3, 4]
