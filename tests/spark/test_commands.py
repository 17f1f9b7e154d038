"""Commands that read a table: `dptext run --dry-run` and the job of that name, on files, in the session of the tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dptext_spark.cli.app import main
from dptext_spark.config.load import load_config
from dptext_spark.demo.demo import MADE, _clear
from dptext_spark.demo.tickets import demo_config
from dptext_spark.errors import SettingsError
from dptext_spark.model.target_checks import places_written
from tests.core.test_jobs import JOBS, job
from tests.docs.pages import README, blocks, commands, text


@pytest.fixture(autouse=True)
def by_spark(spark) -> None:
    """Every test reads in the session of the tests."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"body": ["the man", None]}), tmp_path / "in.parquet")
    file = tmp_path / "table.yaml"
    file.write_text(
        f"input: {{path: {tmp_path / 'in.parquet'}, format: parquet}}\ncolumns: [body]\nrow_key: {{none: accept}}\n"
        f"output: {{path: {tmp_path / 'out'}}}\n"
    )
    return file


def dptext(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.long
def test_a_dry_run_fits_one_screen_and_says_all_of_it_on_request(table: Path, capsys) -> None:
    assert dptext("run", table, "--dry-run", "--set", "policy.oov=keep") == 0
    assert "UNKNOWN WORDS ARE RELEASED IN CLEAR" in capsys.readouterr().out
    assert dptext("run", table, "--dry-run", "--full", "--set", "policy.oov=keep") == 0
    assert "oov: keep" in capsys.readouterr().out
    assert dptext("run", table, "--dry-run", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert "disclosure" in record
    assert record["checked"]["columns"] == ["body"]
    assert sorted(path.name for path in table.parent.iterdir()) == ["in.parquet", "table.yaml"]


@pytest.mark.long
def test_a_file_goes_before_a_style_of_its_name(table: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    folder = table.parent
    named = [f"input.path={folder / 'in.parquet'}", "input.format=parquet", f"output.path={folder / 'o'}"]
    named += ["columns=[body]", "row_key.none=accept"]
    assert dptext("run", "strict", "--dry-run", *(word for one in named for word in ("--set", one))) == 0
    assert "by tem, ε = 10, at token level" in " ".join(capsys.readouterr().out.split())
    monkeypatch.chdir(folder)
    table.rename(table.parent / "strict")
    assert dptext("run", "strict", "--dry-run") == 0
    assert "by custext" in capsys.readouterr().out


@pytest.mark.long
def test_a_certificate_is_kept_for_runs(table: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"w{'abcdefgh'[i]} {i} {i * i} 1\n" for i in range(8)))
    named = ("name=truncated_laplace", "calibration=published")
    settings = (f"lexicon.source={vectors}", *(f"mechanism.{part}" for part in named))
    model = [word for setting in settings for word in ("--set", setting)]
    assert dptext("run", table, "--dry-run", *model) == 0
    assert "none was made; `dptext certify` makes one" in " ".join(capsys.readouterr().out.split())
    assert dptext("certify", *model) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Release of the noisy vector, refuted" in out
    assert "Release of the word, " in out
    assert dptext("run", table, "--dry-run", *model, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["certificate"]["verdict"] == "refuted"
    assert "THE GUARANTEE BELOW DOES NOT HOLD" in json.dumps(record["disclosure"])


@pytest.mark.long
def test_privatize_is_the_run_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text("ticket_id,body\n1,the man\n")
    settings = (
        f"input.path={tmp_path / 'in.csv'}",
        "input.format=csv",
        f"output.path={tmp_path / 'out'}",
        f"ledger.path={tmp_path / 'ledger'}",
        "mechanism.epsilon=2",
    )
    sets = [word for setting in settings for word in ("--set", setting)]
    minimal = JOBS.parent / "conf" / "minimal.yaml"
    assert job("privatize").main([str(minimal), "--dry-run", *sets]) == 0
    assert "ε = 2" in capsys.readouterr().out
    assert job("privatize").main(["/none.yaml"]) == 2


@pytest.mark.long
def test_the_job_of_the_readme_can_be_planned_and_the_sentence_previewed(tmp_path: Path, capsys) -> None:
    dry = [words for page, words in commands("dptext") if page == "README.md" and "--dry-run" in words]
    assert dry == [["run", "reviews.yaml", "--dry-run"]]
    file = tmp_path / "reviews.yaml"
    file.write_text(blocks(README, "yaml")[0], encoding="utf-8")
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    columns = (*written["columns"], written["row_key"])
    pq.write_table(pa.table({name: ["the man"] for name in columns}), tmp_path / "in.parquet")
    places = (f"input.path={tmp_path}/in.parquet", "input.format=parquet", f"output.path={tmp_path}/out")
    assert dptext("run", file, "--dry-run", *(f"--set={place}" for place in places)) == 0
    assert "output set" in " ".join(capsys.readouterr().out.split())
    preview = re.search(r"`dptext preview (\"[^`]*\")`", text("docs/getting-started.md"))
    assert dptext("preview", preview[1].strip('"')) == 0


def test_a_demo_replaces_an_earlier_one_and_what_conf_made_of_its_tickets(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "dptext-demo"
    source, target = (str(place / name) for name in MADE[1:3])
    for config in (demo_config(source, target), load_config(JOBS.parent / "conf" / "tickets.yaml")):
        for path in (source, *places_written(config).values()):
            Path(path).mkdir(parents=True, exist_ok=True)
    _clear(place)
    assert not place.exists()
    (place / "thesis").mkdir(parents=True)
    with pytest.raises(SettingsError, match=r"holds 'thesis'\. Name a new or empty folder"):
        _clear(place)
