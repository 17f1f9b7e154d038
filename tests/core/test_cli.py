"""The command line as a person uses it: commands, JSON, exit codes, and what wrong input is told."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dptext_spark.cli import main
from dptext_spark.errors import CountsDisagree, DataError, NotAccounted, RunError
from dptext_spark.version import __version__

SETTINGS = "input: {path: /none/in}\ncolumns: [body]\noutput: {path: /none/out}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(SETTINGS)
    return file


def dptext(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def plain(text: str) -> str:
    """Take colours, boxes and line breaks out of what the help shows."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[\u2500-\u257f]", " ", text).split())


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dptext_spark.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for the Spark job: collects the configurations, raises or returns what a test puts first."""
    calls: list[Any] = []

    class Report:
        def as_dict(self, internal: bool = False) -> dict[str, Any]:
            facts: dict[str, Any] = {"status": "succeeded", "run_id": "r1", "rows": 5}
            return {**facts, "restricted": {"words": 7.0}} if internal else facts

    def run(config: Any, progress: Any) -> Report:
        progress("a step")
        calls.append(config)
        if isinstance(calls[0], Exception):
            raise calls[0]
        return Report()

    module = ModuleType("dptext_spark.spark")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dptext_spark.spark", module)
    return calls


def test_help_is_quick_and_names_commands_and_exit_codes() -> None:
    code = (
        "import sys; from dptext_spark.cli import main; main(['--help']); "
        "slow = {'numpy', 'numba', 'pyarrow', 'pydantic', 'pyspark', 'faiss'} & set(sys.modules); print(sorted(slow))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip().endswith("[]")
    said = plain(ended.stdout)
    for word in (
        "demo",
        "run",
        "preview",
        "mechanisms",
        "lexicon",
        "Exit codes: 0 done; 2 bad settings",
        "3 bad data",
    ):
        assert word in said


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("--version") == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Commands"),
        (["runn"], "Did you mean 'run'?"),
        (["preview"], "Missing argument"),
        (["preview", "x", "--seed", "1"], "No such option"),
        (["preview", "x", "--top", "0"], "--top"),
        (["run"], "Missing argument"),
        (["demo", "--rows", "0"], "--rows"),
        (["report"], "Missing argument"),
        (["report", "latest", "--most-words", "0"], "--most-words"),
        (["report", "latest", "--statement", "pdf"], "statement: 'pdf' is not known; valid: md, html, json."),
        (["lexicon", "export"], "No such command"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext(*arguments) == 2
    out, err = capsys.readouterr()
    assert said in plain(out + err) and "Traceback (most" not in out + err


def test_preview_prints_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("preview", "Hello Qwxyz") == 0
    out = capsys.readouterr().out
    assert (
        out.startswith("before  Hello Qwxyz\nafter   ")
        and "[OOV]" in out
        and "ε-differentially private" in out
    )


def test_preview_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("preview", "Hello", "--set", "mechanism.epsilon=7", "--top", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"text", "output", "words", "guarantee"}
    assert found["guarantee"]["epsilon"] == 7.0 and len(found["words"][0]["candidates"]) == 2


def test_preview_takes_the_settings_of_a_run(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text(SETTINGS + "policy: {oov: keep}\n")
    assert dptext("preview", "Qwxyz", "--config", settings, "--json") == 0
    assert json.loads(capsys.readouterr().out)["output"] == "Qwxyz"


def test_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("mechanisms") == 0
    out = capsys.readouterr().out
    assert (
        "custext" in out
        and "Chen et al. 2022" in out
        and "k = 20   size K of an output set, 2 to 4,096." in out
    )
    assert dptext("mechanisms", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "custext"


def test_lexicon_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("lexicon", "info") == 0
    assert "21,721" in capsys.readouterr().out
    assert dptext("lexicon", "info", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["words"], found["dimensions"], found["metric"]) == (21721, 100, "cosine")


def test_lexicon_import_then_info_then_preview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "vectors.txt", tmp_path / "lexicon"
    file.write_text("".join(f"w{'abcdefgh'[i]} {i} {i * i} 1\n" for i in range(8)) + "wa 9 9 9\nx.y 1 2 3\n")
    assert dptext("lexicon", "import", file, folder, "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["words"] == 8 and found["folder"] == str(folder) and "reading" in err
    assert found["counts"]["duplicates"] == 1 and found["counts"]["unproducible"] == 1
    assert dptext("lexicon", "info", folder) == 0
    assert "duplicates        1" in capsys.readouterr().out
    overrides = ("--set", f"lexicon.source={folder}", "--set", "mechanism.k=4")
    assert dptext("preview", "wa wb", *overrides, "--json") == 0
    assert {w["word"] for w in json.loads(capsys.readouterr().out)["words"][0]["candidates"]} <= {
        f"w{c}" for c in "abcdefgh"
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["lexicon", "info", "/none"], 3, "no lexicon folder"),
        (["lexicon", "info", __file__], 3, "is a file, no saved lexicon"),
        (["lexicon", "import", "/none.txt", "/tmp/x"], 3, "/none.txt"),
        (["preview", "x", "--set", "policy.oov=kee"], 2, "Did you mean 'keep'?"),
        (
            ["preview", "x", "--set", "mechanism.epsilon=-1"],
            2,
            "mechanism.epsilon: -1 given; valid: a finite number",
        ),
        (
            ["preview", "x", "--set", "mechanism.k=4000", "--set", "lexicon.source=/none"],
            3,
            "lexicon.source: '/none'",
        ),
        (["preview", "x", "--set", "key.file=/run.key"], 2, "--set key.*"),
        (["preview", "x", "--config", "/none.yaml"], 2, "cannot be read"),
        (["preview", "\udcff"], 3, "no valid Unicode"),
        (["run", "/none.yaml"], 2, "'/none.yaml' cannot be read"),
    ],
)
def test_wrong_input_gets_one_clear_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext(*arguments) == code
    out, err = capsys.readouterr()
    assert out == "" and said in err and "Traceback" not in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "said"),
    [("--format", "format: 'x'"), ("--metric", "metric: 'x'"), ("--tokenizer", "tokenizer: 'x'")],
)
def test_import_refuses_what_it_does_not_know(
    option: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "v.txt").write_text("aa 1 2\nbb 2 3\n")
    assert dptext("lexicon", "import", tmp_path / "v.txt", tmp_path / "out", option, "x") == 2
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_dry_run_needs_no_data_and_no_spark(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", settings, "--dry-run", "--set", "policy.oov=keep") == 0
    out = capsys.readouterr().out
    assert (
        "oov: keep" in out and "UNKNOWN WORDS ARE RELEASED IN CLEAR" in out and "nothing was written" in out
    )
    assert dptext("run", settings, "--dry-run", "--json") == 0
    assert "disclosure" in json.loads(capsys.readouterr().out)


def test_a_dry_run_does_not_import_pyspark(settings: Path) -> None:
    code = (
        f"import sys; from dptext_spark.cli import main; code = main(['run', {str(settings)!r}, '--dry-run', '--json']); "
        "sys.exit(99 if 'pyspark' in sys.modules else code)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False).returncode
        == 0
    )


def test_run_prints_the_summary(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", settings, "-s", "mechanism.epsilon=2", "--set", "columns=[a, b]") == 0
    out, err = capsys.readouterr()
    assert out.startswith("run r1: succeeded") and "a step" in err
    assert job[0].columns == ("a", "b") and job[0].mechanism.epsilon == 2
    assert "kept: stop words" not in out


def test_run_as_json_is_one_document(
    settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext("run", settings, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"status": "succeeded", "run_id": "r1", "rows": 5}
    assert dptext("run", settings, "--json", "--internal") == 0
    assert json.loads(capsys.readouterr().out)["restricted"] == {"words": 7.0}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("x"), 3),
        (RunError("x"), 4),
        (CountsDisagree("x"), 5),
        (NotAccounted("x"), 6),
        (ValueError("marker"), 4),
    ],
)
def test_a_failed_run_has_its_exit_code(
    error: Exception, code: int, settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    job.append(error)
    assert dptext("run", settings) == code
    out, err = capsys.readouterr()
    assert out == "" and "marker" not in err and "Traceback" not in err


def test_debug_may_stand_anywhere(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    job.append(ValueError("marker"))
    for arguments in (("--debug", "run", settings), ("run", settings, "--debug")):
        assert dptext(*arguments) == 4
        err = capsys.readouterr().err
        assert "may show private text" in err and "Traceback" in err and "marker" in err


def test_a_process_ends_with_the_exit_code_and_a_pipe_may_close() -> None:
    assert in_a_process("preview", "x", "--set", "policy.oov=x").returncode == 2
    command = f"{sys.executable} -m dptext_spark.cli mechanisms --json | head -c 1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "[" and "Traceback" not in ended.stderr


def test_a_narrow_encoding_is_no_failure() -> None:
    command = [sys.executable, "-m", "dptext_spark.cli", "preview", "Hello"]
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONIOENCODING": "ascii",
        "HOME": str(Path.home()),
        "PYTHONPATH": ":".join(sys.path),
    }
    for extra in ([], ["--json"]):
        ended = subprocess.run([*command, *extra], capture_output=True, env=env, timeout=120, check=False)
        assert ended.returncode == 0, ended.stderr
    assert "ε" in json.loads(ended.stdout)["guarantee"]["sentence"]
