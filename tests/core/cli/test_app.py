"""The command line as a person uses it: commands, JSON, exit codes, and what wrong input is told."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark._version import __version__
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import Restricted, RunFacts
from dptext_spark.errors import CountMismatchError, DataError, RecordingError, RunError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model import artifact
from dptext_spark.report.terminal.console import WIDTH
from dptext_spark.runtime.jit import code_cache
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

SETTINGS = "input: {path: /none/in}\ncolumns: [body]\nrow_key: id\noutput: {path: /none/out}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(SETTINGS)
    return file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Settings of a run over a table that is there."""
    folder = tmp_path / "table"
    folder.mkdir()
    pq.write_table(pa.table({"body": ["the man", None]}), folder / "in.parquet")
    file = folder / "table.yaml"
    file.write_text(
        f"input: {{path: {folder / 'in.parquet'}, format: parquet}}\ncolumns: [body]\nrow_key: {{none: accept}}\n"
        f"output: {{path: {folder / 'out'}}}\n"
    )
    return file


def dptext(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def plain(text: str) -> str:
    """Take colours, boxes and line breaks out of what the help shows."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[\u2500-\u257f]", " ", text).split())


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dptext_spark.cli.app", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for the Spark job: collects the configurations, raises or returns what a test puts first."""
    calls: list[Any] = []

    class Report:
        outcome = RunFacts(
            config=parse_config({"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}),
            guarantee=Guarantee("epsilon_dp", 1.0), status="succeeded", run_id="r1", rows=5,
            restricted=Restricted({"words": 7.0}),
        )  # fmt: skip
        verdict, broken = None, ()

        def as_dict(self, internal: bool = False) -> dict[str, Any]:
            return self.outcome.as_dict(internal=internal)

    def run(config: Any, say: Any) -> Report:
        say("a step")
        calls.append(config)
        if isinstance(calls[0], Exception):
            raise calls[0]
        return Report()

    module = ModuleType("dptext_spark.spark.runner")
    module.run_by_command = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dptext_spark.spark.runner", module)
    return calls


def test_help_is_quick_and_names_commands_and_exit_codes() -> None:
    code = (
        "import sys; from dptext_spark.cli.app import main; main(['--help']); "
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
        "audit",
        "calibrate",
        "compare",
        "mechanisms",
        "ledger",
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
        (["preview"], "a sentence or --input"),
        (["preview", "x", "--seed", "1"], "No such option"),
        (["preview", "x", "--top", "0"], "--top"),
        (["run"], "Missing argument"),
        (["demo", "--rows", "0"], "--rows"),
        (["demo", "--rows", "4001"], "4000"),
        (["report"], "Missing argument"),
        (
            ["report", "latest", "--publish", "changed_words=1"],
            "--publish: no such option; counts are restricted",
        ),
        (
            ["audit", "t", "--against", "s", "--annotations", "f"],
            "--annotations: no such option; `python -m benchmarks",
        ),
        (["report", "latest", "--most-names=3"], "--most-names: no such option; counts are restricted"),
        (["report", "latest", "--statement", "pdf"], "statement: 'pdf' is not known; valid: md, html, json."),
        (["lexicon", "export"], "No such command"),
        (["lexicon", "build-default", "out", "--source", "x.whl"], "run `make lexicon` in a checkout"),
        (["calibrate"], "Missing option '--require'"),
        (["compare"], "Missing option '--mechanisms'"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext(*arguments) == 2
    out, err = capsys.readouterr()
    assert said in plain(out + err)
    assert "Traceback (most" not in out + err


def test_preview_prints_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("preview", "Hello Qwxyz") == 0
    out = capsys.readouterr().out
    assert out.startswith("before  Hello Qwxyz\nafter   ")
    assert "[OOV]" in out
    assert "ε-differentially private" in out


@pytest.mark.long
def test_preview_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("preview", "Hello", "--set", "mechanism.epsilon=7", "--top", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"text", "output", "words", "guarantee", "record"}
    assert found["guarantee"]["epsilon"] == 7.0
    assert len(found["words"][0]["candidates"]) == 2


@pytest.mark.long
def test_preview_takes_the_settings_of_a_run(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text(SETTINGS + "policy: {oov: keep}\n")
    assert dptext("preview", "Qwxyz", "--config", settings, "--json") == 0
    assert json.loads(capsys.readouterr().out)["output"] == "Qwxyz"


@pytest.mark.long
def test_preview_of_fluent_draws_shows_the_sentence_by_plain_ones_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_pairs(beginning(Lexicon.default(), 200)).save(tmp_path / "words")
    chosen = [f"lexicon.source={tmp_path / 'words'}", "mechanism.epsilon=2", "mechanism.k=10"]
    chosen += ["policy.stop_words=draw", "consistency=token"]
    taken = [part for one in chosen for part in ("--set", one)]
    text = "good new music for people"
    assert dptext("preview", text, *taken, "--set", "mechanism.fluent=true") == 0
    before, after, by_plain, *_ = capsys.readouterr().out.splitlines()
    assert before == f"before  {text}"
    known = set(Lexicon.open(tmp_path / "words").vocabulary.strings().to_pylist())
    for line, name in ((after, "after   "), (by_plain, "plain   ")):
        assert line.startswith(name)
        drawn = line.removeprefix(name).split()
        assert len(drawn) == len(text.split())
        assert set(drawn) <= known
    assert dptext("preview", text, *taken, "--json") == 0
    assert "plain" not in json.loads(capsys.readouterr().out)


@pytest.fixture
def words(tmp_path: Path) -> str:
    """A saved lexicon of 40 words, as --set takes it."""
    rng = random.Random(4)
    vectors = tmp_path / "vectors.txt"
    names = [a + b for a in "bcdfghkl" for b in "aeiou"]
    vectors.write_text(
        "".join(f"{n} {' '.join(f'{rng.gauss(0, 1):.4f}' for _ in range(4))}\n" for n in names)
    )
    assert dptext("lexicon", "import", vectors, tmp_path / "lexicon", "--json") == 0
    return f"lexicon.source={tmp_path / 'lexicon'}"


def test_calibrate_shows_the_curve_and_what_it_found(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    arguments = (
        "--set",
        words,
        "--set",
        "mechanism.k=6",
        "-r",
        "N_w max <= 0.5",
        "--require",
        "S_w min >= 3",
    )
    assert dptext("calibrate", *arguments) == 0
    out, err = capsys.readouterr()
    table, said = out.split("\n\n")
    head, *rows = table.splitlines()
    assert head.split() == ["ε", *["N_w", "max", "<=", "0.5", "S_w", "min", ">=", "3"]]
    (found,) = [row.split() for row in rows if row.split()[3] == "found"]
    assert f"ε = {found[0]} is the largest found that satisfies N_w max <= 0.5 (there" in said
    assert "the word '" in said
    assert "Exact, over all 40 words of the lexicon" in said
    verdicts = [row.split()[3] for row in rows]
    assert verdicts == sorted(verdicts, key=["holds", "found", "fails"].index)
    assert "█" in table
    assert "ε = 0.01" in err


def test_calibrate_as_json_and_the_epsilon_holds(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    arguments = ("--set", words, "--set", "mechanism.k=6", "--low", 0.5, "--high", 9, "--steps", 10)
    assert dptext("calibrate", *arguments, "-r", "N_w p50 < 0.4", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"]
    assert found["words"] == 40 == found["words_in_lexicon"]
    assert not found["restricted"]
    assert found["settings"]["mechanism"]["epsilon"] == found["epsilon"]
    assert found["requirements"][0]["text"] == "N_w p50 < 0.4"
    assert len(found["curve"]) <= 10
    at = next(point for point in found["curve"] if point["epsilon"] == found["epsilon"])
    assert at["holds"]
    assert at["figures"][0]["judged"] < 0.4
    assert len(at["figures"][0]["word"]) == 2
    assert dptext("preview", at["figures"][0]["word"], "--set", words, "--set", "mechanism.k=6",
                  "--set", f"mechanism.epsilon={found['epsilon']}", "--top", 6, "--json") == 0  # fmt: skip
    (word,) = json.loads(capsys.readouterr().out)["words"]
    itself = {entry["word"]: entry["probability"] for entry in word["candidates"]}[word["text"]]
    assert itself == pytest.approx(at["figures"][0]["value"])


def test_calibrate_from_draws_says_so(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    settings = ("--set", words, "--set", "mechanism.name=mvc", "--sample", 6, "--steps", 6)
    assert dptext("calibrate", *settings, "-r", "N_w max <= 0.6") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Estimated from 1,000 draws of each of 6 of 40 words" in out
    assert "may do worse" in out
    assert re.search(r"0\.\d+ \(<= 0\.\d+\) found", out)


def test_calibrate_bounds_what_an_attack_finds(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For noise between bounds, of a token alone; for a law exactly. Of the 40 words be, do and he are stop words."""
    noise = ("--set", words, "--set", "mechanism.name=mvc", "--steps", 4, "--high", 50)
    capsys.readouterr()
    assert dptext("calibrate", *noise, "-r", "bayes token <= 0.5") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "bayes: over the 37 words that the policy draws" in out
    assert "at a confidence of 0.99 at each ε." in out
    assert re.search(r"0\.\d+ \(<= 0\.\d+\) found", out)
    assert "Exact" not in out
    assert "draws of each" not in out
    assert dptext("calibrate", *noise, "-r", "bayes worst <= 0.5") == 2
    assert "valid: 'bayes token'" in capsys.readouterr().err
    law = ("--set", words, "--set", "mechanism.k=6", "--set", "policy.stop_word_list=[ba]", "--steps", 8)
    assert dptext("calibrate", *law, "-r", "bayes token <= 0.5", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact"]
    assert found["guessing"]["words"] == 39
    assert found["words"] == 0


def test_calibrate_says_what_is_closest(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert dptext("calibrate", "--set", words, "--set", "mechanism.k=5", "-r", "N_w max <= 0.1") == 2
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == ""
    assert "no ε of the 12 looked at from 0.01 to 100 satisfies N_w max <= 0.1" in last
    assert "the closest is ε = 0.01, where N_w max is 0.20" in last
    assert re.search(r", the word '[a-z]{2}'\.$", last)


def test_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("mechanisms") == 0
    out = capsys.readouterr().out
    assert all(f"\n{name}\n" in f"\n{out}" for name in MECHANISMS)
    assert "Chen et al. 2022" in out
    assert "from all. Valid: an integer from 2 to 4096." in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= WIDTH
    assert dptext("mechanisms", "--json") == 0
    assert [record["name"] for record in json.loads(capsys.readouterr().out)] == list(MECHANISMS)


def test_one_mechanism(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("mechanisms", "tem") == 0
    out = capsys.readouterr().out
    assert out.startswith("tem\n")
    assert "custext" not in out
    assert dptext("mechanisms", "tem", "--json") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "tem"
    assert dptext("mechanisms", "tam") == 2
    said = capsys.readouterr().err
    assert f"'tam' is not known; valid: {', '.join(MECHANISMS)}. Did you mean 'tem'?" in said


def test_lexicon_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("lexicon", "info") == 0
    assert "21,163" in capsys.readouterr().out
    assert dptext("lexicon", "info", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["words"], found["dimensions"], found["metric"]) == (21163, 100, "cosine")
    assert found["version"] == 3
    assert "packaged counts" in found["prior"]


def test_lexicon_import_then_info_then_preview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = tmp_path / "vectors.txt", tmp_path / "lexicon"
    file.write_text("".join(f"w{'abcdefgh'[i]} {i} {i * i} 1\n" for i in range(8)) + "wa 9 9 9\nx.y 1 2 3\n")
    assert dptext("lexicon", "import", file, folder, "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["words"] == 8
    assert found["folder"] == str(folder)
    assert "reading" in err
    assert found["counts"]["duplicates"] == 1
    assert found["counts"]["unproducible"] == 1
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
            "mechanism.epsilon: -1 given; valid: 0 (uniform), or a finite number",
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
        (["calibrate", "-r", "N_w <= 0.5"], 2, "require: 'N_w <= 0.5' given; valid: a figure (N_w, S_w"),
        (["calibrate", "-r", "N_w max <= 0.5", "--sample", "1"], 2, "sample: 1 given; valid: 2 or more"),
        (["calibrate", "-r", "N_w max <= 0.5", "-s", "run.artifact=/a"], 2, "run.artifact: '/a' given"),
    ],
)
def test_wrong_input_gets_one_clear_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "said"),
    [("--format", "format: 'x'"), ("--metric", "metric: 'x'"), ("--tokenizer", "tokenizer: 'x'")],
)
def test_import_refuses_what_it_does_not_know(
    option: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "v.txt").write_text("aa 1 2\nbb 2 3\n")
    assert dptext("lexicon", "import", tmp_path / "v.txt", tmp_path / "out", option, "x") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_fits_one_screen_and_says_all_of_it_on_request(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext("run", table, "--dry-run", "--set", "policy.oov=keep") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= WIDTH
    assert "pyarrow read the footers of 1 of 1 files" in plain(out)
    assert "UNKNOWN WORDS ARE RELEASED IN CLEAR" in plain(out)
    assert dptext("run", table, "--dry-run", "--full", "--set", "policy.oov=keep") == 0
    out = capsys.readouterr().out
    assert "oov: keep" in out
    assert "UNKNOWN WORDS ARE RELEASED IN CLEAR" in out
    assert "Columns, keys and targets were checked by pyarrow" in plain(out)
    assert "Nothing was written but the model" in out
    assert dptext("run", table, "--dry-run", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert "disclosure" in found
    assert found["checked"]["columns"] == ["body"]
    assert sorted(path.name for path in table.parent.iterdir()) == ["in.parquet", "table.yaml"]


def test_a_dry_run_refuses_what_the_run_would(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", table, "--dry-run", "--set", "columns=[nope]") == 3
    assert "columns: 'nope' is not in the input; text columns there: body." in capsys.readouterr().err
    assert dptext("run", table, "--full") == 2
    assert "--full: given without --dry-run" in capsys.readouterr().err


def test_a_style_says_at_once_what_a_run_misses(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", "strict", "--dry-run") == 2
    err = plain(capsys.readouterr().err)
    assert (
        "input.path, columns and output.path: missing; they have no default. For example --set input.path=tickets"
        in err
    )
    assert (
        dptext("run", "strict", "--dry-run", "--set", "columns=[body]", "--set", "input.format=parquet") == 2
    )
    assert "input.path and output.path: missing" in plain(capsys.readouterr().err)
    given = (
        f"input.path={table.parent / 'in.parquet'}",
        "input.format=parquet",
        "columns=[body]",
        "row_key.none=accept",
        f"output.path={table.parent / 'o'}",
    )
    assert dptext("run", "strict", "--dry-run", *(word for one in given for word in ("--set", one))) == 0
    assert "by tem, ε = 11, at token level; no word is meant to stay in clear" in plain(
        capsys.readouterr().out
    )


def test_a_file_goes_before_a_style_of_its_name(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(table.parent)
    table.rename(table.parent / "strict")
    assert dptext("run", "strict", "--dry-run") == 0
    assert "by custext" in capsys.readouterr().out


@pytest.mark.long
def test_a_dry_run_does_not_import_pyspark(table: Path) -> None:
    code = (
        f"import sys; from dptext_spark.cli.app import main; code = main(['run', {str(table)!r}, '--dry-run', '--json']); "
        "sys.exit(99 if 'pyspark' in sys.modules else code)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False).returncode
        == 0
    )


def test_run_prints_the_summary(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", settings, "-s", "mechanism.epsilon=2", "--set", "columns=[a, b]") == 0
    out, err = capsys.readouterr()
    assert out.startswith("run r1: succeeded")
    assert "a step" in err
    assert job[0].columns == ("a", "b")
    assert job[0].mechanism.epsilon == 2
    assert "kept: stop words" not in out


def test_run_as_json_is_one_document(
    settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dptext("run", settings, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("status", "run_id", "rows")} == {
        "status": "succeeded", "run_id": "r1", "rows": 5,
    }  # fmt: skip
    assert "restricted" not in found
    assert dptext("run", settings, "--json", "--internal") == 0
    assert json.loads(capsys.readouterr().out)["restricted"] == {"words": 7.0, "record_epsilon": None}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("x"), 3),
        (RunError("x"), 4),
        (CountMismatchError("x"), 5),
        (RecordingError("x"), 6),
        (ValueError("marker"), 4),
    ],
)
def test_a_failed_run_has_its_exit_code(
    error: Exception, code: int, settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    job.append(error)
    assert dptext("run", settings) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "marker" not in err
    assert "Traceback" not in err


def test_debug_may_stand_anywhere(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    job.append(ValueError("marker"))
    for arguments in (("--debug", "run", settings), ("run", settings, "--debug")):
        assert dptext(*arguments) == 4
        err = capsys.readouterr().err
        assert "may show private text" in err
        assert "Traceback" in err
        assert "marker" in err


@pytest.mark.long
def test_a_process_ends_with_the_exit_code_and_a_pipe_may_close() -> None:
    assert in_a_process("preview", "x", "--set", "policy.oov=x").returncode == 2
    command = f"{sys.executable} -m dptext_spark.cli.app mechanisms --json | head -c 1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "["
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_a_narrow_encoding_is_no_failure() -> None:
    command = [sys.executable, "-m", "dptext_spark.cli.app", "preview", "Hello"]
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


class TestCertify:
    @pytest.fixture
    def model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Options that name a lexicon of eight words."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", code_cache())
        monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
        file = tmp_path / "vectors.txt"
        file.write_text("".join(f"w{'abcdefgh'[i]} {i} {i * i} 1\n" for i in range(8)))
        return ["--set", f"lexicon.source={file}"]

    def test_as_json(self, model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert dptext("certify", *model, "--set", "mechanism.name=santext", "--json") == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["verdict"] == "confirmed"
        assert found["loss"]["pairs"] == 28
        assert "certifying" in err
        assert set(found["worst_words"]) <= {f"w{c}" for c in "abcdefgh"}

    def test_it_is_kept_for_runs(
        self, model: list[str], table: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model += ["--set", "mechanism.name=truncated_laplace", "--set", "mechanism.calibration=published"]
        assert dptext("run", table, "--dry-run", *model) == 0
        assert "none was made; `dptext certify` makes one" in plain(capsys.readouterr().out)
        assert dptext("certify", *model) == 0
        out = plain(capsys.readouterr().out)
        assert "Release of the noisy vector, refuted" in out
        assert "Release of the word, " in out
        assert dptext("run", table, "--dry-run", *model, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["certificate"]["verdict"] == "refuted"
        assert "THE GUARANTEE BELOW DOES NOT HOLD" in json.dumps(found["disclosure"])

    def test_a_sample(self, model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        options = (*model, "--set", "mechanism.name=truncated_laplace", "--json")
        assert dptext("certify", *options, "--sample", 5) == 0
        assert json.loads(capsys.readouterr().out)["vector"]["pairs"] == 10
        assert dptext("certify", *options) == 0
        assert dptext("certify", *options, "--sample", 5) == 0
        capsys.readouterr()
        assert dptext("certify", *options, "--sample", 1) == 2
        assert "--sample" in plain(capsys.readouterr().err)

    def test_a_folder_that_cannot_be_written(
        self, model: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def full(*_: object) -> None:
            raise DataError("artifact: 'x' cannot be written.")

        monkeypatch.setattr(artifact, "keep_certificate", full)
        assert dptext("certify", *model, "--set", "mechanism.k=4") == 0
        out, err = capsys.readouterr()
        assert "Confirmed" in out
        assert "not kept: artifact: 'x' cannot be written." in err
