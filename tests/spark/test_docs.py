"""The Python of README, pages and public docstrings runs, from top to bottom of each page, on one small table."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

import dptext_spark as dp
from dptext_spark.cli.app import main
from dptext_spark.demo import TICKETS
from dptext_spark.demo.tickets import tickets
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from tests.core.examples import failures
from tests.core.names import beginning
from tests.docs.pages import DOCS, README, WRITTEN, blocks, figures, name_of

REVIEWS = [
    (1, 1, "Late", "Cheerful people love wine, my friend."),
    (2, 1, "Broken", "The parcel came late and the box was open."),
    (3, 2, "Thanks", "My sister wrote to the shop and they sent another one."),
]
# In this order: what getting-started writes is what the page on audits reads.
FIRST = [README, DOCS / "getting-started.md"]
PAGES = [*FIRST, *(file for file in WRITTEN if file not in FIRST and blocks(file, "python"))]
WORDS = 600  # of the lexicon, but for the README: attacks and searches over all words take minutes


@pytest.fixture(scope="module")
def house(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in the place of the pages' own: a table, settings, a key and a public text."""
    folder = tmp_path_factory.mktemp("docs")
    columns = ["review_id", "customer", "title", "body"]
    frame = session.createDataFrame(REVIEWS, columns).selectExpr("*", "review_id AS id")
    frame.write.format("delta").save(str(folder / "reviews"))
    beginning(Lexicon.default(), WORDS).save(folder / "lexicon")
    settings = blocks(README, "yaml")[0].replace("/data/", f"{folder}/")
    whole = f"{settings}lexicon: {{source: {folder}/lexicon}}\n"
    (folder / "reviews.yaml").write_text(whole, encoding="utf-8")
    (folder / "public_reviews.txt").write_text("\n".join(body for *_, body in REVIEWS), encoding="utf-8")
    (folder / "run.key").write_bytes(os.urandom(32))
    (folder / "run.key").chmod(0o600)
    here = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(here)


@pytest.mark.long
@pytest.mark.parametrize("file", PAGES, ids=name_of)
def test_its_python_runs(file: Path, house: Path, session: Any, capsys, monkeypatch) -> None:
    if file.name == "sql.md" and not hasattr(functions, "arrow_udf"):
        pytest.skip("this Spark has no functions over Arrow")
    if file != README:
        monkeypatch.setattr(Lexicon, "default", lambda: Lexicon.open(house / "lexicon"))
    names: dict[str, Any] = {}
    for block in blocks(file, "python"):
        code = block.replace("/data/", f"{house}/").replace("/secure/", f"{house}/")
        exec(compile(code, name_of(file), "exec"), names)
    if file == README:
        rows = names["sanitized"].collect()
        assert names["sanitized"].columns == ["review_id", "customer", "title", "body", "id"]
        assert len(rows) == len(REVIEWS)
        assert ", my " in next(row["body"] for row in rows if row["id"] == 1)
    if file.name == "getting-started.md":
        assert (house / "report.html").stat().st_size > 10_000
        metrics = session.read.format("delta").load(f"{house}/reviews_sanitized_audit/restricted/metrics")
        from docs.generate.references import metrics_of_a_run

        listed = set(re.findall(r"^\| `(\w+)` \|", metrics_of_a_run(), flags=re.MULTILINE))
        assert {row["metric"] for row in metrics.select("metric").collect()} <= listed
    if file.name == "identifiers.md":
        import pyarrow as pa

        ids, key = pa.array([1]), RunKey.generate()
        out, _ = names["model"].privatize(pa.array(["See T-1234."]), column="body", row_ids=ids, key=key)
        assert "[TICKET]" in out[0].as_py()
    if file.name == "audit.md":
        assert json.dumps(names["found"].as_dict())
    capsys.readouterr()


@pytest.mark.cluster
def test_usefulness_and_risk_of_the_demos_tickets_are_the_page_s(session, tmp_path, capsys, monkeypatch):
    """Each run draws other words; figures of several runs were at most nine points apart."""
    for name in ("sklearn", "rouge_score"):
        pytest.importorskip(name, reason="the extra [audit] is not installed")
    (shown,) = blocks(DOCS / "guide" / "classifier.md", "text")
    monkeypatch.chdir(tmp_path)
    pq.write_table(tickets(TICKETS), tmp_path / "tickets.parquet")
    place = str(tmp_path / "dptext-demo" / "tickets")
    session.read.parquet(str(tmp_path / "tickets.parquet")).write.format("delta").save(place)
    settings = str(DOCS.parent / "conf" / "tickets.yaml")
    assert main(["run", settings]) == 0
    capsys.readouterr()
    assert main(["audit", settings, "--label", "topic", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["figures"]
    found = {figure["name"]: figure["value"] for figure in printed if figure["column"] is None}
    for figure in figures(shown):
        nearly = 0 if figure.name.startswith(("label_", "linkage_guess")) else 0.12
        assert found[figure.name] == pytest.approx(figure.value, abs=nearly), figure.name


SETTINGS = """
input: {{path: {folder}/reviews}}
columns: [body]
row_key: ticket_id
mechanism: {{name: custext, epsilon: 2.0}}
output: {{path: {folder}/reviews_sanitized}}
"""


@pytest.mark.cluster
def test_the_examples_on_spark_run(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sample = dp.tickets(20).select(["ticket_id", "body"])
    spark.createDataFrame(sample.to_pandas()).write.format("delta").save(str(tmp_path / "reviews"))
    (tmp_path / "reviews.yaml").write_text(SETTINGS.format(folder=tmp_path), encoding="utf-8")
    model = dp.compile(dp.CusText(epsilon=2.0), dp.Lexicon.default())
    names = {"dp": dp, "model": model, "lexicon": dp.Lexicon.default()}
    monkeypatch.setenv("DPTEXT_KEY", secrets.token_hex(32))
    over_arrow = hasattr(functions, "arrow_udf")
    left_out = () if over_arrow else ("dps.register", "dps.Registration")  # for Spark 4.1 and later
    assert failures("dps", names, left_out) == ""
