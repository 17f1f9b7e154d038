"""The asset bundle, as far as it can be checked without a workspace: names of fields, paths, the wheel, settings, notebook."""

# ruff: noqa: SIM905
from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dptext_spark.cli.app import job
from dptext_spark.config.load import load_config

CHECKOUT = Path(__file__).resolve().parents[2]
BUNDLE = CHECKOUT / "conf" / "databricks"

# The fields that are documented, of the parts that the bundle uses: https://docs.databricks.com/dev-tools/bundles/reference
# and .../resources. Below a field of NAMED stand names of the user's own, with fields; below one of OPEN anything.
NAMED = {"artifacts", "variables", "targets", "jobs"}
OPEN = {"include", "spark_conf", "spark_env_vars", "custom_tags", "parameters", "base_parameters"}
FIELDS = {
    *NAMED,
    *OPEN,
    *"bundle resources name databricks_cli_version type path build files executable dynamic_version".split(),
    *"description default lookup mode workspace root_path host schedule tags permissions tasks".split(),
    *"max_concurrent_runs email_notifications quartz_cron_expression timezone_id pause_status job_clusters".split(),
    *"job_cluster_key new_cluster spark_version node_type_id driver_node_type_id num_workers autoscale".split(),
    *"data_security_mode policy_id init_scripts task_key max_retries timeout_seconds run_if depends_on".split(),
    *"outcome python_wheel_task package_name entry_point named_parameters notebook_task notebook_path".split(),
    *"source warehouse_id libraries whl pypi maven jar requirements".split(),
}


def unknown(found: Any, named: bool = False) -> list[str]:
    """Name every field of `found` that is not documented; `named`: its own names are the user's."""
    if isinstance(found, list):
        return [name for entry in found for name in unknown(entry)]
    if not isinstance(found, dict):
        return []
    wrong = [] if named else [name for name in found if name not in FIELDS]
    below = [unknown(value, not named and name in NAMED) for name, value in found.items() if name not in OPEN]
    return [*wrong, *(name for names in below for name in names)]


def read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def bundle() -> dict[str, Any]:
    whole = read(BUNDLE / "databricks.yml")
    for pattern in whole["include"]:
        files = sorted(BUNDLE.glob(pattern))
        assert files
        for file in files:
            whole |= read(file)
    return whole


@pytest.fixture(scope="module")
def tasks(bundle: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["task_key"]: task for task in bundle["resources"]["jobs"]["sanitize"]["tasks"]}


def test_every_field_is_a_documented_one(bundle: dict[str, Any]) -> None:
    assert unknown(bundle) == []
    assert unknown({"bundle": {"nmae": "x"}, "targets": {"dev": {"mod": "y"}}}) == ["nmae", "mod"]
    assert [name for name, one in bundle["targets"].items() if one.get("default")] == ["dev"]
    assert {one["mode"] for one in bundle["targets"].values()} == {"development", "production"}


def test_every_variable_is_declared(bundle: dict[str, Any]) -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in BUNDLE.rglob("*.yml"))
    used = set(re.findall(r"\$\{([\w.]+)\}", text))
    declared = {f"var.{name}" for name in bundle["variables"]}
    assert used == declared | {"bundle.name", "bundle.target", "workspace.file_path"}


def test_the_tasks_follow_each_other(bundle: dict[str, Any], tasks: dict[str, dict[str, Any]]) -> None:
    assert {name: [one["task_key"] for one in task.get("depends_on", ())] for name, task in tasks.items()} == {
        "doctor": [], "sanitize": ["doctor"], "look": ["sanitize"],
    }  # fmt: skip
    (cluster,) = bundle["resources"]["jobs"]["sanitize"]["job_clusters"]
    assert {task["job_cluster_key"] for task in tasks.values()} == {cluster["job_cluster_key"]}
    assert not any(re.search("key|secret", name) for name in cluster["new_cluster"]["spark_conf"])


def test_the_wheel_is_this_package(bundle: dict[str, Any], tasks: dict[str, dict[str, Any]]) -> None:
    project = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    (artifact,) = bundle["artifacts"].values()
    assert (BUNDLE / artifact["path"]).resolve() == CHECKOUT
    assert "--wheel-dir dist ." in artifact["build"]
    for task in tasks.values():
        (library,) = task["libraries"]
        assert (BUNDLE / "resources" / library["whl"]).resolve() == CHECKOUT / "dist" / "*.whl"
    for name, command in (("doctor", "doctor"), ("sanitize", "run")):
        asked = tasks[name]["python_wheel_task"]
        assert f'name = "{asked["package_name"]}"' in project
        assert f'{asked["entry_point"]} = "' in project
        assert asked["parameters"] == [command, "${workspace.file_path}/settings.yaml"]


def test_its_settings_are_valid_and_name_a_secret() -> None:
    config = load_config(BUNDLE / "settings.yaml")
    assert config.key.kind == "secret"
    assert config.output.table
    assert config.shareable
    put = f"put-secret {config.key.secret.scope} {config.key.secret.name} "
    assert put in (BUNDLE / "databricks.yml").read_text()


def test_its_notebook_is_one(tasks: dict[str, dict[str, Any]]) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra [dev] is not installed")
    path = tasks["look"]["notebook_task"]["notebook_path"]
    notebook = nbformat.read(BUNDLE / "resources" / path, as_version=4)
    nbformat.validate(notebook)
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for source in code:
        ast.parse(source)
    (asked,) = tasks["look"]["notebook_task"]["base_parameters"]
    assert f'dbutils.widgets.get("{asked}")' in code[0]


def test_a_job_that_fails_raises(capsys: pytest.CaptureFixture[str]) -> None:
    assert job(["--version"]) is None
    with pytest.raises(SystemExit) as ended:
        job(["run", "/none.yaml"])
    assert ended.value.code == 2
