"""The Python of README and pages runs, from top to bottom of each page, on one small table."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.sql import functions

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness.draws import RunKey
from tests.core.names import beginning
from tests.docs.pages import DOCS, README, WRITTEN, blocks, name_of

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
    (folder / "reviews.yaml").write_text(
        f"{settings}lexicon: {{source: {folder}/lexicon}}\n", encoding="utf-8"
    )
    (folder / "public_reviews.txt").write_text("\n".join(body for *_, body in REVIEWS), encoding="utf-8")
    (folder / "run.key").write_bytes(os.urandom(32))
    (folder / "run.key").chmod(0o600)
    here = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(here)


@pytest.mark.long
@pytest.mark.parametrize("file", PAGES, ids=name_of)
def test_its_python_runs(
    file: Path, house: Path, session: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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

        out, _ = names["model"].privatize(
            pa.array(["See T-1234."]), column="body", row_ids=pa.array([1]), key=RunKey.generate()
        )
        assert "[TICKET]" in out[0].as_py()
    if file.name == "audit.md":
        assert json.dumps(names["found"].as_dict())
    capsys.readouterr()
