"""Every mechanism of the registry on Spark: the text is what the core draws, whatever the layout."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import RunError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model.compile import compile as compile_model
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

PARAMETERS: dict[str, dict[str, object]] = {"projection": {"m": 8}, "truncated_gumbel": {"epsilon": 5000.0}}
KEY = RunKey.insecure(1)
BODIES = (
    "The time of the day",
    "",
    None,
    "  said: \u201chow\u201d?\r\n\tWhat, NOW ",
    "zanzibar 12",
    "time after time",
)
ROWS = [(i, BODIES[i % 6]) for i in range(36)]


@pytest.fixture(scope="module")
def words() -> Lexicon:
    return beginning(Lexicon.default(), 300)


# Each mechanism at one level, in turn; at all levels in make test-cluster, and without Spark in tests/core.
@pytest.mark.parametrize(
    ("name", "consistency"),
    [
        pytest.param(name, level, marks=[] if (at - place) % 3 == 0 else [pytest.mark.cluster])
        for at, name in enumerate(MECHANISMS)
        for place, level in enumerate(("token", "record", "dataset"))
    ],
)
def test_a_mechanism_draws_on_spark_as_it_does_in_the_core(
    spark, words: Lexicon, name: str, consistency: str
) -> None:
    sampler = MECHANISMS[name](**PARAMETERS.get(name, {})).compile(words)
    model = Privatizer(words, sampler, Policy(stop_words="draw"), consistency)  # type: ignore[arg-type]
    frame = spark.createDataFrame(ROWS, "id long, body string").repartition(3, "body")
    out = dps.privatize(frame, ["body"], model, row_key="id", key=KEY, run_id="r")
    wanted, _ = model.privatize(
        pa.array([body for _, body in ROWS]),
        column="body",
        row_ids=pa.array([i for i, _ in ROWS]),
        key=KEY,
        run_id="r",
    )
    assert {row["id"]: row["body"] for row in out.collect()} == dict(enumerate(wanted.to_pylist()))


@pytest.mark.parametrize(
    ("name", "consistency"),
    [("custext", "token"), ("diffractor", "record"), ("santext", "dataset"), ("tem", "token")],
)
def test_a_remap_is_applied_on_spark_as_in_the_core(
    spark, words: Lexicon, name: str, consistency: str
) -> None:
    policy = Policy(stop_words="draw", oov="draw")
    model = compile_model(MECHANISMS[name](remap="bayes"), words, policy, consistency)  # type: ignore[arg-type,call-arg]
    frame = spark.createDataFrame(ROWS, "id long, body string").repartition(3, "body")
    out = dps.privatize(frame, ["body"], model, row_key="id", key=KEY, run_id="r")
    texts, ids = pa.array([body for _, body in ROWS]), pa.array([i for i, _ in ROWS])
    wanted, _ = model.privatize(texts, column="body", row_ids=ids, key=KEY, run_id="r")
    assert {row["id"]: row["body"] for row in out.collect()} == dict(enumerate(wanted.to_pylist()))
    assert len(set(model.sampler.remap.tolist())) < len(words)


@pytest.mark.cluster
def test_a_run_with_a_remap_over_columns_lists_and_levels(spark, words: Lexicon, tmp_path) -> None:
    """One table for all of them; the account states both losses, and the run id is bound to the remap."""
    rows = [(i, body or "good day", ["time of day", "people say much"]) for i, body in ROWS]
    frame = spark.createDataFrame(rows, "id long, body string, tags array<string>")
    frame.write.format("delta").save(str(tmp_path / "in"))
    words.save(tmp_path / "lexicon")
    settings = {
        "input": {"path": str(tmp_path / "in")},
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "columns": ["body", "tags"],
        "row_key": "id",
        "consistency": "record",
        "mechanism": {"name": "custext", "epsilon": 1.5, "calibration": "exact", "remap": "bayes"},
        "policy": {"oov": "draw", "stop_words": "draw"},
        "importance": {"provider": "random", "levels": [{"share": 40}, {"share": 60, "epsilon": 3.0}]},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "run": {"id": "remapped"},
    }
    config = parse_config(settings)
    report = run(config, spark, key=KEY)
    assert report.status == "succeeded"
    model, _ = prepare(config)
    image = {model.vocabulary.word(int(word)) for word in set(model.sampler.remap.tolist())}
    written = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    found_words = {
        word.lower()
        for row in written
        for text in (row["body"], *row["tags"])
        for word in re.findall("[a-z']+", text.lower())
    }
    assert found_words <= {part for word in image for part in re.findall("[a-z']+", word)}
    found = report.facts["certificate"]
    assert found["verdict"] == "confirmed"
    assert found["loss"]["value"] <= found["before"]["value"] <= 3.0
    said = " ".join(s for part in report.facts["disclosure"]["sections"] for s in part["sentences"])
    assert "one for all 2 levels" in said
    assert "what comes out is not uniform" in said
    assert run(config, spark, key=KEY).status == "unchanged"
    other = parse_config(settings | {"mechanism": settings["mechanism"] | {"remap": "none"}})
    with pytest.raises(RunError, match=r"mechanism\.remap \(bayes then, none now\)"):
        run(other, spark, key=KEY)


def test_fluent_draws_on_spark_are_those_of_the_core(spark, words: Lexicon) -> None:
    """In any layout: what stands before a word is in its own row."""
    model = compile_model(
        MECHANISMS["custext"](fluent=True, k=10), with_pairs(words), Policy(identifiers={"email": "fake"})
    )  # type: ignore[arg-type]
    bodies = [f"the time {'of day, and ' * (i % 4)}out new year a@b.cc first time" for i in range(36)]
    frame = spark.createDataFrame(list(enumerate(bodies)), "id long, body string").repartition(3, "body")
    wanted, _ = model.privatize(
        pa.array(bodies), column="body", row_ids=pa.array(range(36)), key=KEY, run_id="r"
    )
    for udf in ("auto", "pandas"):
        out = dps.privatize(frame, ["body"], model, row_key="id", key=KEY, run_id="r", udf=udf)
        assert {row["id"]: row["body"] for row in out.collect()} == dict(enumerate(wanted.to_pylist()))


@pytest.mark.parametrize("name", ["tem", pytest.param("gaussian", marks=pytest.mark.cluster)])
def test_a_run_states_its_guarantee(spark, tmp_path, name: str) -> None:
    """The whole job, by name in the settings: the account carries the guarantee of that mechanism and no other."""
    spark.createDataFrame(ROWS, "id long, body string").write.format("delta").save(str(tmp_path / "in"))
    vectors = tmp_path / "vectors.txt"
    lexicon = Lexicon.default()
    lines = (
        f"{word} {' '.join(map(str, row))}"
        for word, row in zip(
            lexicon.vocabulary.strings()[:300].to_pylist(), lexicon.vectors[:300].tolist(), strict=True
        )
    )
    vectors.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = parse_config(
        {
            "input": {"path": str(tmp_path / "in")},
            "columns": ["body"],
            "row_key": "id",
            "lexicon": {"source": str(vectors)},
            "mechanism": {"name": name},
            "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        }
    )
    report = run(config, spark, key=KEY)
    assert report.status == "succeeded"
    assert report.facts["rows"] == len(ROWS)
    assert report.facts["guarantee"]["kind"] == {"tem": "metric_dp", "gaussian": "approx_dp"}[name]
    said = " ".join(s for part in report.facts["disclosure"]["sections"] for s in part["sentences"])
    assert report.facts["guarantee"]["sentence"] in said
    assert ("for each of its" in said) == (name == "gaussian")  # no multiple of ε under metric DP
