"""The command line as a person uses it: commands, JSON, exit codes, and what wrong input is told."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dptext_spark import errors
from dptext_spark._version import __version__
from dptext_spark.cli.app import EXIT_CODES, INTERRUPTED, ended, main
from dptext_spark.config.load import load_model_config, parse_config
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model import artifact
from dptext_spark.model.compile import prepare
from dptext_spark.report.console import LINES, LOADING, WIDTH
from dptext_spark.runtime.jit import code_cache
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

SETTINGS = "input: {path: /none/in}\ncolumns: [body]\nrow_key: id\noutput: {path: /none/out}\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(SETTINGS)
    return file


def dptext(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """Return what a command prints as JSON, and nothing that stood there before."""
    capsys.readouterr()
    assert dptext(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def plain(text: str) -> str:
    """Take colours, boxes and line breaks out of what the help shows."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[\u2500-\u257f]", " ", text).split())


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stand in for the Spark job: collects the configurations, raises or returns what a test puts first."""
    calls: list[Any] = []

    class Report:
        outcome = RunFacts(
            config=parse_config({"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}),
            guarantee=Guarantee("epsilon_dp", 1.0), status="succeeded", run_id="r1", rows=5,
            figures={"words": 7.0},
        )  # fmt: skip
        verdict, broken = None, ()

        def as_dict(self, internal: bool = False) -> dict[str, Any]:
            return self.outcome.as_dict(internal=internal)

    def run(config: Any, progress: Any) -> Report:
        progress("a step")
        calls.append(config)
        if isinstance(calls[0], Exception):
            raise calls[0]
        return Report()

    module = ModuleType("dptext_spark.spark.runner")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dptext_spark.spark.runner", module)
    return calls


HEAVY = ["numpy", "numba", "pyarrow", "pydantic", "pyspark", "faiss"]


@pytest.mark.parametrize(
    ("act", "unwanted"),
    [
        ("import dptext_spark", [*HEAVY, "typer"]),
        ("main(['--help'])", HEAVY),
        pytest.param("main(['preview', 'Hello 42'])", ["pandas", "pyspark", "py4j"], marks=pytest.mark.long),
    ],
    ids=["import", "help", "preview"],
)
def test_the_package_and_a_command_import_what_they_need(act: str, unwanted: list[str]) -> None:
    if "preview" in act:
        prepare(load_model_config())  # of a model that is there
    door = "from dptext_spark.cli.app import main; " if "main" in act else ""
    code = f"import sys; {door}{act}; print({{*{unwanted}}} & {{*sys.modules}})"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.endswith("set()\n")


FIRST_STEPS = """
import contextlib, sys
from dptext_spark.cli.app import main
def first(text):
    print(text.strip(), {"numba", "pyspark"} & {*sys.modules})
    raise GeneratorExit
sys.stderr.write = first
for line in ("start t.csv", "preview --input t.csv", "run s.yaml", "run s.yaml --dry-run", "release s.yaml", "doctor s.yaml"):
    with contextlib.suppress(GeneratorExit):
        main(line.split())
"""


def test_a_command_shows_its_first_step_before_it_loads_libraries() -> None:
    command = [sys.executable, "-c", FIRST_STEPS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.splitlines() == [f"{LOADING} set()"] * 6


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
        (["preview", "x", "--top", "0"], "--top: no such option"),
        (["preview", "--input", "t.csv", "--separator=;"], "dptext preview --config FILE --input TABLE"),
        (["run"], "Missing argument"),
        (["calibrate", "--low", "1"], "in Python `audit.calibrate` takes it"),
        (["--json", "run", "r.yaml", "--price=1"], "multiply them by your price"),
        (["report", "latest", "--publish", "changed_words=1"], "--public leaves them out"),
        (["audit", "t", "--against", "s", "--annotations", "f"], "--annotations: no such option"),
        (["report", "latest", "--internal"], "--internal: no such option; a report shows restricted figures"),
        (["report", "r_audit", "--statement", "pdf"], "statement: 'pdf' is not valid"),
        (["lexicon", "export"], "No such command"),
        (["lexicon", "build-default", "out", "--source", "x.whl"], "run `make lexicon` in a checkout"),
        (["mechanisms", "tam"], "'tam' is not valid. Choose "),
        *(
            (["lexicon", "import", "V", "O", f"--{name}", "x"], f"{name}: 'x'")
            for name in ("metric", "tokenizer")
        ),
        (["run", "strict", "--dry-run"], "input.path, columns and output.path: not set"),
        (["run", "strict", "--dry-run", "-s", "columns=[body]"], "input.path and output.path: not set"),
        (["calibrate"], "Missing option '--require'"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "v.txt").write_text("aa 1 2\nbb 2 3\n")
    places = {"V": tmp_path / "v.txt", "O": tmp_path / "out"}
    assert dptext(*(places.get(word, word) for word in arguments)) == 2
    out, err = capsys.readouterr()
    assert said in plain(out + err)
    assert "Traceback (most" not in out + err
    assert not (tmp_path / "out").exists()


def test_preview_prints_both_texts(settings: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert dptext("preview", "Hello Qwxyz") == 0
    out = capsys.readouterr().out
    assert "\n  before     Hello Qwxyz\n  after      " in out
    assert "[OOV]" in out
    lexicon = words.removeprefix("lexicon.source=")
    settings.write_text(f"{SETTINGS}policy: {{oov: keep}}\nlexicon: {{source: {lexicon}}}\n")
    assert as_json(capsys, "preview", "Qwxyz", "--config", settings)["output"] == "Qwxyz"


@pytest.mark.long
def test_preview_of_fluent_draws_has_plain_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_pairs(beginning(Lexicon.default(), 200)).save(tmp_path / "words")
    chosen = [f"lexicon.source={tmp_path / 'words'}", "mechanism.epsilon=2", "mechanism.k=10"]
    chosen += ["policy.stop_words=draw", "consistency=token"]
    taken = [part for one in chosen for part in ("--set", one)]
    text = "good new music for people"
    assert dptext("preview", text, *taken, "--set", "mechanism.fluent=true") == 0
    _, before, after, by_plain, *_ = capsys.readouterr().out.splitlines()
    assert before.split(maxsplit=1) == ["before", text]
    known = set(Lexicon.open(tmp_path / "words").vocabulary.strings().to_pylist())
    for line, name in ((after, "after"), (by_plain, "plain")):
        head, *drawn = line.split()
        assert head == name
        assert len(drawn) == len(text.split())
        assert set(drawn) <= known
    assert "plain" not in as_json(capsys, "preview", text, *taken)


@pytest.fixture
def words(tmp_path: Path) -> str:
    rng = random.Random(4)
    vectors = tmp_path / "vectors.txt"
    names = [a + b for a in "bcdfghkl" for b in "aeiou"]
    numbers = [[f"{rng.gauss(0, 1):.4f}" for _ in range(4)] for _ in names]
    vectors.write_text("".join(f"{n} {' '.join(each)}\n" for n, each in zip(names, numbers, strict=True)))
    assert dptext("lexicon", "import", vectors, tmp_path / "lexicon", "--json") == 0
    return f"lexicon.source={tmp_path / 'lexicon'}"


def test_calibrate_as_json_and_the_epsilon_holds(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--set", words, "--set", "mechanism.k=6")
    found = as_json(capsys, "calibrate", *arguments, "-r", "N_w p50 < 0.4")
    assert dptext("calibrate", *arguments, "-r", "N_w p50 < 0.4") == 0
    assert f"ε = {found['epsilon']:g} is the largest found" in capsys.readouterr().out
    assert found["exact"]
    assert found["words"] == 40 == found["words_in_lexicon"]
    assert not found["restricted"]
    assert found["settings"]["mechanism"]["epsilon"] == found["epsilon"]
    assert found["requirements"][0]["text"] == "N_w p50 < 0.4"
    assert len(found["curve"]) <= 24
    at = next(point for point in found["curve"] if point["epsilon"] == found["epsilon"])
    assert at["holds"]
    assert at["figures"][0]["judged"] < 0.4
    assert len(at["figures"][0]["word"]) == 2
    drawn = ("--set", f"mechanism.epsilon={found['epsilon']}")
    (word,) = as_json(capsys, "preview", at["figures"][0]["word"], *arguments, *drawn)["words"]
    itself = {entry["word"]: entry["probability"] for entry in word["candidates"]}[word["text"]]
    assert itself == pytest.approx(at["figures"][0]["value"])


def test_calibrate_bounds_what_an_attack_finds(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For noise between bounds, of a token alone; for a law exactly. Of the 40 words be, do and he are stop words."""
    noise = ("--set", words, "--set", "mechanism.name=mvc")
    law = ("--set", words, "--set", "mechanism.k=6", "--set", "policy.stop_word_list=[ba]")
    for settings, exact, count in ((noise, False, 37), (law, True, 39)):
        found = as_json(capsys, "calibrate", *settings, "-r", "bayes token <= 0.5")
        assert (found["exact"], found["guessing"]["words"], found["words"]) == (exact, count, 0)
    assert dptext("calibrate", *noise, "-r", "bayes worst <= 0.5") == 2
    assert "Use 'bayes token'" in capsys.readouterr().err


def test_calibrate_says_what_is_closest(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert dptext("calibrate", "--set", words, "--set", "mechanism.k=5", "-r", "N_w max <= 0.1") == 2
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == ""
    assert re.search(r"N_w max <= 0\.1.* ε = 0\.01: N_w max is 0\.20.* the word '[a-z]{2}'\.$", last)


def test_calibrate_on_a_public_text(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, names = tmp_path / "public.txt", [a + b for a in "bcdfghkl" for b in "aeiou"]
    rng = random.Random(5)
    text.write_text("".join(f"{' '.join(rng.choices(names, k=rng.randint(2, 6)))}\n" for _ in range(60)))
    asked = ["calibrate", "--set", words, "--set", "mechanism.name=tem", "--public", text]
    best = as_json(capsys, *asked, "-r", "linkage_top1(50) <= 0.9")["met"][0]
    at = next(point for point in best["curve"] if point["epsilon"] == best["epsilon"])
    assert at["figures"][0]["judged"] <= 0.9
    assert dptext(*asked, "-r", "linkage_top1(50) <= 0.9") == 0
    out = capsys.readouterr().out
    assert f"\nmechanism:\n  name: tem\n  epsilon: {best['epsilon']:g}\n" in out
    assert dptext(*asked, "-r", "linkage_top1(50) <= 0.0001") == 2
    assert "The nearest is tem, remap " in capsys.readouterr().err
    assert dptext(*asked, "-r", "linkage_top1(70) <= 0.9") == 2
    assert "with 60 public texts" in capsys.readouterr().err
    assert dptext("calibrate", "--set", words, "-r", "linkage_top1(50) <= 0.9") == 2
    assert "with a public text (--public FILE)" in capsys.readouterr().err


def test_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("mechanisms") == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in MECHANISMS)
    assert len(out.splitlines()) <= LINES
    assert max(map(len, out.splitlines())) <= WIDTH
    for words in (["--full", "mechanisms"], ["mechanisms", "--full"]):
        assert dptext(*words) == 0
        assert all(f"\n{name}\n  paper" in capsys.readouterr().out for name in ["tem"])
    assert [record["name"] for record in as_json(capsys, "mechanisms")] == list(MECHANISMS)
    assert as_json(capsys, "mechanisms", "tem")["name"] == "tem"


def test_lexicon_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("lexicon", "info") == 0
    assert "21,163" in capsys.readouterr().out
    found = as_json(capsys, "lexicon", "info")
    assert (found["words"], found["dimensions"], found["metric"]) == (21163, 113, "cosine")
    assert found["version"] == 4
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
    assert re.search(r"duplicates +1\n", capsys.readouterr().out)
    overrides = ("--set", f"lexicon.source={folder}", "--set", "mechanism.k=4")
    (word, *_) = as_json(capsys, "preview", "wa wb", *overrides)["words"]
    assert {entry["word"] for entry in word["candidates"]} <= {f"w{c}" for c in "abcdefgh"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["lexicon", "info", "/none"], 3, "not a lexicon folder"),
        (["lexicon", "info", __file__], 3, "is a file, not a saved lexicon"),
        (["lexicon", "import", "/none.txt", "/tmp/x"], 3, "/none.txt"),
        (["preview", "x", "--set", "policy.oov=kee"], 2, "Did you mean 'keep'?"),
        (["preview", "x", "--set", "lexicon.source=/none"], 3, "lexicon.source: '/none'"),
        (["preview", "x", "--set", "key.file=/run.key"], 2, "--set key.*"),
        (["preview", "x", "--config", "/none.yaml"], 2, "cannot be read"),
        (["preview", "\udcff"], 3, "not valid Unicode"),
        (["calibrate", "-r", "N_w <= 0.5"], 2, "require: 'N_w <= 0.5' is not valid"),
        (["calibrate", "-r", "N_w max <= 0.5", "-s", "run.artifact=/a"], 2, "run.artifact: '/a' has one ε"),
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
    assert len(err.removeprefix(f"{LOADING}\n").splitlines()) == 1


def test_run_prints_the_summary(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert dptext("run", settings, "-s", "mechanism.epsilon=2", "--set", "columns=[a, b]") == 0
    out, err = capsys.readouterr()
    assert out.startswith("run r1: succeeded")
    assert "a step" in err
    assert job[0].columns == ("a", "b")
    assert job[0].mechanism.epsilon == 2
    for more, restricted in (((), None), (("--internal",), {"words": 7.0, "record_epsilon": None})):
        found = as_json(capsys, "run", settings, *more)
        assert (found["status"], found["run_id"], found["rows"]) == ("succeeded", "r1", 5)
        assert found.get("restricted") == restricted


def test_debug_may_stand_anywhere(settings: Path, job: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    job.append(ValueError("marker"))
    for arguments in (("run", settings), ("--debug", "run", settings), ("run", settings, "--debug")):
        assert dptext(*arguments) == 4
        out, err = capsys.readouterr()
        assert out == ""
        places = [err.find(said) for said in ("may show private", "Traceback", "marker")]
        if "--debug" in arguments:
            assert places == sorted(places)
            assert places[0] >= 0
        else:
            assert places == [-1] * 3
            assert "an unexpected ValueError" in err
            assert "--debug" in err


@pytest.mark.long
def test_a_process_ends_with_the_exit_code_and_a_pipe_may_close() -> None:
    program = f"{sys.executable} -m dptext_spark.cli.app"
    lines = (("preview x --set policy.oov=x", 2, ""), ("mechanisms --json | head -c 1", 0, "["))
    for line, code, out in lines:
        bash = ["bash", "-o", "pipefail", "-c", f"{program} {line}"]
        ended = subprocess.run(bash, capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, ended.stdout) == (code, out)
        assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_a_narrow_encoding_is_no_failure() -> None:
    command = [sys.executable, "-m", "dptext_spark.cli.app", "preview", "Hello"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "HOME": str(Path.home())}
    env["PYTHONPATH"] = ":".join(sys.path)
    for extra in ([], ["--json"]):
        ended = subprocess.run([*command, *extra], capture_output=True, env=env, timeout=120, check=False)
        assert ended.returncode == 0, ended.stderr
    assert "ε" in json.loads(ended.stdout)["guarantee"]["sentence"]


class TestCertify:
    @pytest.fixture
    def model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
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
            raise errors.DataError("artifact: 'x' cannot be written.")

        monkeypatch.setattr(artifact, "keep_certificate", full)
        assert dptext("certify", *model, "--set", "mechanism.k=4") == 0
        out, err = capsys.readouterr()
        assert "Confirmed" in out
        assert "Not kept in the model: artifact: 'x' cannot be written." in err


def failing(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (errors.SettingsError, 2, "bad settings"),
        (errors.DataError, 3, "bad data"),
        (errors.RunError, 4, "failed"),
        (errors.CountMismatchError, 5, "mismatch"),
        (errors.RecordingError, 6, "not accounted"),
        (errors.BrokenRequirementError, 7, "requirement broken"),
        (errors.NoRowsError, 8, "no row"),
        (errors.DPTextError, 4, "failed"),
    ],
)
def test_each_kind_of_error_has_its_code(
    error: type[errors.DPTextError], code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(lambda: failing(error("field: x is not valid. Choose y."))) == code
    assert capsys.readouterr() == ("", f"dptext: {kind}: field: x is not valid. Choose y.\n")
    assert code in EXIT_CODES


def test_no_ending_says_that_a_run_committed_and_did_not() -> None:
    for code, said in EXIT_CODES.items():
        before = "nothing was" in said or "before its commit" in said
        assert before == (code in (2, 3, 4, 8))
        assert ("the run committed" in said) == (code in (5, 6))


def test_a_command_that_returns_is_done() -> None:
    assert ended(lambda: None) == 0
    assert ended(lambda: 7) == 7


def test_an_interruption_is_no_failure_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: failing(KeyboardInterrupt())) == INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_java_starts_with_its_first_compiler_unless_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen, options in ((None, "-XX:TieredStopAtLevel=1"), ("-XX:+UseG1GC", "-XX:+UseG1GC")):
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", chosen or "")
        if chosen is None:
            monkeypatch.delenv("SPARK_SUBMIT_OPTS")
        assert dptext("--version") == 0
        assert os.environ["SPARK_SUBMIT_OPTS"] == options
