"""The files in `ops/` that CI cannot run: linted, and every setting in them is one that nodes read.

Not tried here: that a machine's systemd starts the unit, that an image builds, that a Kubernetes takes the manifest.
`tests/network/test_ops.py` runs what can be: a node under a service manager's socket, Prometheus and its rules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from omen.net.broker import Broker
from omen.net.observe.http_server import answer
from omen.net.settings import NodeConfig, read_node_config

ROOT = Path(__file__).parents[2]
OPS = ROOT / "ops"
UNIT = OPS / "systemd" / "omen-node@.service"
YAML = sorted([*OPS.rglob("*.yaml"), *OPS.rglob("*.yml")])


def read_yaml(path: Path) -> list[Any]:
    return [part for part in yaml.safe_load_all(path.read_text()) if part is not None]


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(OPS)))
def test_a_file_is_yaml_without_keys_that_come_twice_or_tabs(path: Path) -> None:
    class Strict(yaml.SafeLoader):
        """Refuses a key that comes twice."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [key.value for key, _ in node.value if key.value != "<<"]
            assert len(set(keys)) == len(keys), f"{path}: {keys}"
            return super().construct_mapping(node, deep)  # type: ignore[return-value]

    assert list(yaml.load_all(path.read_text(), Strict))
    assert "\t" not in path.read_text() and not re.search(r" +$", path.read_text(), re.MULTILINE)


def test_the_unit_is_one_that_systemd_reads(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze: apt-get install systemd")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/omen/bin/omen", sys.executable))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.stem.rstrip("@") in line]
    assert complaints == []


def test_the_unit_gives_a_node_the_time_it_needs_to_join_and_to_leave() -> None:
    values = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    limits = NodeConfig().limits
    assert values["Type"] == "notify" and int(values["WatchdogSec"]) > 0
    assert int(values["TimeoutStartSec"]) > limits.join_timeout_s
    assert int(values["TimeoutStopSec"]) > limits.leave_timeout_s
    assert "HUP" in values["ExecReload"]


def settings_in_ops() -> dict[str, str]:
    found = {path.name: path.read_text() for path in sorted((OPS / "container").glob("*.toml"))}
    for part in read_yaml(OPS / "kubernetes" / "omen.yaml"):
        if part["kind"] == "ConfigMap":
            found["kubernetes"] = part["data"]["node.toml"].replace("NAME", "omen-0")
    return found


@pytest.mark.parametrize("name", sorted(settings_in_ops()))
def test_settings_are_what_a_node_reads_and_fit_ports_and_grace(name: str, tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(settings_in_ops()[name])
    config = read_node_config(path)
    assert config.security.is_protected and config.listen.endswith(":7070") and config.http.endswith(":9090")
    assert config.advertise in config.join, "the seeds are the nodes themselves"


def test_compose_runs_the_nodes_it_has_settings_for_and_mounts_files_that_are_there() -> None:
    (compose,) = read_yaml(OPS / "container" / "compose.yaml")
    nodes = {name: service for name, service in compose["services"].items() if "build" in service}
    assert {f"{name}.toml" for name in nodes} == {path.name for path in (OPS / "container").glob("*.toml")}
    for service in compose["services"].values():
        for volume in service["volumes"]:
            source = (OPS / "container" / volume.partition(":")[0]).resolve()
            assert source.exists() or source.name == "secret", volume
    grace = int(nodes["n1"]["stop_grace_period"].rstrip("s"))
    assert grace > NodeConfig().limits.leave_timeout_s
    (scrape,) = read_yaml(OPS / "container" / "prometheus.yml")[0]["scrape_configs"]
    assert scrape["job_name"] == "omen" and len(scrape["static_configs"][0]["targets"]) == len(nodes)


def test_the_stateful_set_selects_its_pods_and_probes_pages_that_there_are() -> None:
    parts = {part["kind"]: part for part in read_yaml(OPS / "kubernetes" / "omen.yaml")}
    assert set(parts) == {"Service", "ConfigMap", "StatefulSet", "PodDisruptionBudget"}
    spec = parts["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == parts["Service"]["spec"]["selector"]
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > NodeConfig().limits.leave_timeout_s
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        asked = container[probe].get("httpGet") or container[probe]["tcpSocket"]
        assert ports[asked["port"]] == 9090
        assert answer(Broker(NodeConfig(name="ann")), "GET", asked.get("path", "/healthz"))[0] != 404, asked


def test_the_containerfile_copies_files_that_are_there_and_runs_the_node_as_no_root() -> None:
    text = (OPS / "container" / "Containerfile").read_text()
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    words = {line.split()[0] for line in lines}
    assert words <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "VOLUME"} | {
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert all((ROOT / source).exists() for sources in copied for source in sources)
    assert lines.index("USER 10001") < lines.index('ENTRYPOINT ["omen", "node", "--config"]')
