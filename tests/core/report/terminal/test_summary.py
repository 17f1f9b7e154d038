"""The summary of a run: what is shown, what only on request, and the arithmetic of the cost."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.verdict import Verdict, verdict
from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import (
    MicroBatches,
    RecordEpsilon,
    Restricted,
    RunFacts,
    RunRecord,
    Unchanged,
)
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Spending
from dptext_spark.report.terminal.summary import Pair, core_hours, shareable_summary, summary

SENTENCE = "One drawn word is private against every other word of its set, and against no other word. " * 3

FIGURES = {
    "words": 1000.0, "drawn": 600.0, "stop_kept": 300.0, "oov": 60.0, "numbers": 40.0, "changed_share": 0.55,
    "original_share": 0.1, "original_share_all": 0.45,
}  # fmt: skip
LEAST = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
FACTS = RunFacts(
    config=parse_config(LEAST),
    guarantee=Guarantee("epsilon_dp", 1.0, sentence="A bound holds."),
    status="succeeded",
    run_id="r1",
    rows=20_000,
    seconds=12.0,
    write_seconds=10.0,
    tokens_per_second=123_456.7,
    text_bytes=40_000_000,
    cores=2,
    compiled_loops=3,
    record_epsilon="ε times the drawn words",
    audited="Consistency was audited.",
    input="/in",
    output="/out",
    output_version=0,
    runs="/share/runs",
    metrics="/keep/metrics",
    other_columns=("ticket",),
    key_kind="os",
    restricted=Restricted(FIGURES),
)
RECORD = RunRecord.of({"run_id": "r1", "input_version": "delta:3"})


@pytest.mark.parametrize(
    ("rows", "warned"), [(0.0, False), (1_000.0, False), (1_001.0, True), (20_000.0, True)]
)
def test_many_rows_of_unknown_words_are_warned_of_to_the_operator_only(rows: float, warned: bool) -> None:
    facts = replace(FACTS, restricted=Restricted(FIGURES | {"unknown_rows": rows}))
    assert ("MOSTLY UNKNOWN WORDS" in summary(facts, columns=400)) == warned
    assert "MOSTLY UNKNOWN" not in str(shareable_summary(facts))


@pytest.mark.parametrize(
    ("name", "warned"), [("ticket", False), ("ticket no", True), ("a;b", True), ("größe", False)]
)
def test_names_that_force_column_mapping_are_warned_of_with_the_readers(name: str, warned: bool) -> None:
    shown = summary(replace(FACTS, other_columns=(name,)), columns=400)
    assert ("column mapping" in shown and "Polars" in shown and repr(name) in shown) == warned


def test_epsilon_of_a_record_is_shown_in_figures_to_those_inside_only() -> None:
    epsilon = RecordEpsilon("ε times the drawn words", 5.0, 4.0, 9.0, 31.0)
    facts = replace(FACTS, restricted=Restricted(FIGURES, epsilon))
    shown = "mean 5.0, median 4.0, 95 % 9.0, most 31.0; ε times the drawn words"
    assert shown in summary(facts, internal=True)
    assert "31.0" not in summary(facts)


def test_a_person_reads_what_happened_what_holds_and_where_it_lies() -> None:
    text = summary(FACTS)
    for expected in (
        "run r1: succeeded",
        "20,000",
        "12.0, of which writing 10.0; 123,457 words/s",
        "3 loops; the cache holds them now",
        "A bound holds. [proved]",
        "ε times the drawn words (figures: --internal)",
        "Consistency was audited.",
        "/out (version 0)",
        "/share/runs (may be shared",
        "/keep/metrics (restricted",
        "columns ticket",
    ):
        assert expected in text


def test_what_all_releases_have_spent_is_said_with_the_limit() -> None:
    said = "All releases have spent ε = 3."
    counted = Spending("/share/ledger", "2026-01-01", "/in", (), sentence=said)
    said = " ".join(summary(replace(FACTS, ledger=counted)).split())
    assert "spent so far All releases have spent ε = 3. (ledger: /share/ledger)" in said
    limited = summary(replace(FACTS, ledger=replace(counted, limit=4.0)))
    assert "ε = 3. The limit is ε = 4. (ledger" in " ".join(limited.split())
    kept = summary(replace(FACTS, ledger=replace(counted, limit=4.0, left=1.0)))
    assert "The limit is ε = 4, and ε = 1 of it is left. (ledger" in " ".join(kept.split())


def test_what_depends_on_the_text_is_shown_only_on_request() -> None:
    shared, internal = summary(FACTS), summary(FACTS, internal=True)
    assert "stop words" not in shared
    assert "55 %" not in shared
    assert "not for sharing" not in shared
    for expected in (
        "1,000",
        "600  (60.0 %)",
        "300  (30.0 %)",
        "60  (6.0 %)",
        "55 %",
        "10 %",
        "45 %",
        "not for sharing",
    ):
        assert expected in internal


def test_the_cost_states_its_arithmetic() -> None:
    # 40 MB in 10 s on 2 cores are 2 MB a second and core; 5e12 / 2e6 = 2.5e6 core-seconds.
    assert core_hours(40e6, 10.0, 2) == pytest.approx(2.5e6 / 3600)
    facts = replace(FACTS, text_bytes=160_000_000, write_seconds=40.0)
    text = summary(facts, price=0.1, columns=200)
    assert (
        "5e12 bytes / 2,000,000 bytes a second and core / 3600 = 694 core-hours; at 0.1 a core-hour 69 "
        in text
    )
    assert "measured on 160.0 MB and 2 cores" in text
    assert "measured on" not in summary(replace(facts, text_bytes=2_000_000_000))


def test_a_small_run_measures_no_cost() -> None:
    long = replace(FACTS, write_seconds=40.0)
    assert "5 TB like it" in summary(long)
    assert "5 TB" not in summary(replace(long, text_bytes=79))


@pytest.mark.parametrize("name", ["text_bytes", "cores"])
def test_no_cost_is_made_up(name: str) -> None:
    assert "core-hours" not in summary(replace(FACTS, **{name: None}))


@pytest.mark.parametrize("columns", [60, 100, 250])
def test_no_line_is_longer_than_the_console(columns: int) -> None:
    promised = Guarantee("epsilon_dp", 1.0, sentence=SENTENCE.strip())
    facts = replace(FACTS, guarantee=promised, problems=(SENTENCE,))
    lines = summary(facts, columns=columns).splitlines()
    assert max(map(len, lines)) <= columns
    start = next(i for i, line in enumerate(lines) if line.startswith("  guarantee"))
    indent = " " * lines[start].index("One")
    block = [lines[start], *itertools.takewhile(lambda line: line.startswith(indent), lines[start + 1 :])]
    assert len(block) > len(SENTENCE) / columns
    assert " ".join(" ".join(block).split()) == f"guarantee {SENTENCE.strip()} [proved]"


def test_a_path_is_never_broken() -> None:
    path = "/a-very-long-folder/" * 12
    assert path in summary(replace(FACTS, output=path), columns=60)


def test_a_run_that_changed_nothing_says_so_and_no_more() -> None:
    assert summary(Unchanged(RECORD)) == (
        "run r1: unchanged: this run id had committed before, and nothing was done"
    )


def test_counts_that_disagree_are_loud() -> None:
    text = summary(replace(FACTS, status="mismatch", problems=("5 rows were counted and 6 written",)))
    assert "CONSISTENCY DO NOT AGREE: do not share this version\n  5 rows were counted" in text


def test_a_short_run_does_not_say_what_a_large_one_costs() -> None:
    short = summary(FACTS)
    assert "5 TB" not in short
    assert "core-hours" not in short
    assert "core-hours; at 0.05" in " ".join(summary(replace(FACTS, write_seconds=40.0)).split())


def test_an_input_that_went_on_since_is_named() -> None:
    assert summary(Unchanged(RECORD)).count("\n") == 0
    said = summary(Unchanged(RECORD, "delta:4"))
    assert "It read delta:3; the input is at delta:4 now, which takes a new run id." in said


def test_what_changed_since_a_run_committed_is_a_warning() -> None:
    outcome = Unchanged(RECORD, since=("The target is another.", "The key is another."))
    rows = shareable_summary(outcome)[1]
    assert rows == [("WARNING", "The target is another."), ("WARNING", "The key is another.")]
    assert "The target is another." in summary(outcome)


def test_a_recovered_run_says_whether_it_was_counted() -> None:
    counted = summary(replace(FACTS, status="recovered", counted="again", write_seconds=None))
    assert "only the account was made now, its counts by a second pass" in counted
    assert "5 TB like it" in summary(replace(FACTS, write_seconds=None, seconds=40.0))
    assert "5 TB like it" not in counted
    assert "made now, without its counts" in summary(replace(FACTS, status="recovered", counted=None))


def test_the_warnings_of_the_statement_stand_first() -> None:
    statement = Statement((("Warnings", ("NUMBERS IN CLEAR.",)), ("x", ("y",))))
    text = summary(replace(FACTS, disclosure=statement))
    assert text.startswith("run r1: succeeded\n  WARNING: NUMBERS IN CLEAR.\n  rows")
    assert "y" not in text.split()


def test_an_insecure_key_is_loud() -> None:
    assert "INSECURE" in summary(replace(FACTS, key_kind="insecure"))


def test_missing_facts_are_left_out_and_epsilon_without_a_sum_is_said() -> None:
    least = RunFacts(config=FACTS.config, guarantee=FACTS.guarantee, status="succeeded", run_id="r1")
    assert summary(least).splitlines() == ["run r1: succeeded", "  guarantee  A bound holds. [proved]"]
    assert "not defined for a record" in summary(replace(FACTS, record_epsilon="not defined for a record"))
    assert "no other column" in summary(replace(FACTS, other_columns=()))
    assert "nothing, all was in the cache" in summary(replace(FACTS, compiled_loops=0))
    assert "kept: stop words" not in summary(replace(FACTS, restricted=None), internal=True)
    assert "    drawn             0\n" in summary(
        replace(FACTS, restricted=Restricted({"words": 0.0})), internal=True
    )


def test_a_stream_counts_its_micro_batches() -> None:
    held = MicroBatches("incremental", 2, 12, 3_400, 9.0)
    assert "2 now; 12 with 3,400 rows since the stream began" in summary(replace(FACTS, batches=held))
    assert "none now: nothing was added to the source" in summary(
        replace(FACTS, batches=replace(held, now=0))
    )


def test_what_a_notebook_shows_is_what_may_be_shared() -> None:
    epsilon = RecordEpsilon("ε times the drawn words", 5.0, 4.0, 9.0, 31.0)
    facts = replace(
        FACTS,
        restricted=Restricted(FIGURES, epsilon),
        problems=("It does not agree.",),
        disclosure=Statement((("Warnings", ("Look here.",)),)),
    )
    heading, rows = shareable_summary(facts)
    assert heading == "run r1: succeeded"
    assert rows == [
        ("problem", "It does not agree."),
        ("WARNING", "Look here."),
        ("rows", "20,000"),
        ("names", "nothing looked for names, so that there is no count of those that stayed"),
        ("seconds", "12.0, of which writing 10.0; 123,457 words/s"),
        ("compiled", "3 loops; the cache holds them now"),
        ("guarantee", "A bound holds. [proved]"),
        ("ε a record", "ε times the drawn words (figures: --internal)"),
        ("consistency", "Consistency was audited."),
        ("input", "/in"),
        ("output", "/out (version 0)"),
        ("account", "/share/runs (may be shared: settings, guarantee, disclosure)"),
        ("metrics", "/keep/metrics (restricted: depends on the private text)"),
        ("in clear", "columns ticket"),
    ]
    assert rows == shareable_summary(replace(facts, restricted=None))[1]
    gone_on = shareable_summary(Unchanged(RECORD, "delta:4"))
    assert gone_on == (
        "run r1: unchanged: this run id had committed before, and nothing was done",
        [("input", "It read delta:3; the input is at delta:4 now, which takes a new run id.")],
    )
    assert shareable_summary(Unchanged(RECORD))[1] == []


def test_what_is_to_be_expected_of_the_law_is_said_and_inside_the_figure() -> None:
    facts = replace(FACTS, expected_change=(0.73211, 0.6))
    shared, internal = summary(facts, columns=300), summary(facts, internal=True, columns=300)
    assert "  changed      60 % to 73.3 % of the drawn words are to be expected: by the law" in shared
    assert "to be expected" not in internal
    assert "55 %" in internal
    assert "to be expected" not in summary(FACTS)


def test_where_no_law_tells_the_summary_says_why() -> None:
    facts = replace(FACTS, expected_change="a draw depends on the word before it, too")
    said = "no law tells what is to be expected: a draw depends on the word before it, too (the figure of this table"
    assert f"  changed      {said}" in summary(facts, columns=300)
    assert "to be expected" not in summary(facts, internal=True)
    assert dict(shareable_summary(facts)[1])["changed"].startswith("no law tells")


def test_who_looked_for_names_is_said_to_all() -> None:
    policy = {"names": {"lists": True}, "mask": [{"file": "/names.txt"}]}
    looked = parse_config({**LEAST, "policy": policy})
    for internal in (False, True):
        said = summary(replace(FACTS, config=looked), internal=internal, columns=300)
        assert (
            f"looked for by public lists (version {looked.policy.names.version}), own lists; no guarantee"
            in said
        )


def test_a_row_is_shown_inside_only() -> None:
    pair = Pair("body", "marker before", "marker after")
    assert "marker" not in summary(FACTS, pair=pair)
    text = summary(FACTS, pair=pair, internal=True, columns=200)
    assert "PRIVATE TEXT, body: marker before" in text
    assert "PRIVATE TEXT, body: marker after" in text
    assert "none can be shown: no row key." in summary(FACTS, pair="no row key.", internal=True)


def judged(*requirements: str, found: dict[str, float]) -> Verdict:
    config = parse_config({**LEAST, "require": list(requirements)})
    return verdict(config.require, [Metric(name, value) for name, value in found.items()])


def test_requirements_are_said_without_their_figures_and_what_comes_next() -> None:
    figures = {"ledger_epsilon": 7.25, "changed_share": 0.625}
    found = judged("names_kept <= 0.02", "ledger_epsilon <= 5", "changed_share >= 0.5", found=figures)
    keyed = replace(FACTS, config=parse_config({**LEAST, "row_key": "id"}))
    text = summary(keyed, verdict=found, settings="my settings.yaml", columns=300)
    assert "names_kept <= 0.02: not measured" in text
    assert "ledger_epsilon <= 5: BROKEN" in text
    assert "changed_share >= 0.5: holds" in text
    assert (
        "verdict      BROKEN: do not publish this table (1 of these answers depends on the private text, a bit each)"
        in text
    )
    assert "0.625" not in text
    following = "dptext report r1 --config 'my settings.yaml'"
    assert f"dptext audit /out --against /in --config 'my settings.yaml'; then {following}" in text
    assert f"  next         {following}" in summary(FACTS, settings="my settings.yaml", columns=300)
    beside = summary(FACTS, settings="s.yaml", overrides=["columns=[body]", "input.path=/in"], columns=300)
    assert "dptext report r1 --config s.yaml --set 'columns=[body]' --set input.path=/in" in beside
    assert "  next " not in summary(FACTS)
    several = judged(
        "bleu >= 5", "accuracy_private_private >= 0.5", "masked_success <= 0.3", "listed_kept <= 0", found={}
    )
    taking = "--config s.yaml --label COLUMN --similarity --masked-model FOLDER --names FILE; then"
    assert taking in summary(keyed, verdict=several, settings="s.yaml", columns=300)
    unjoined = summary(FACTS, verdict=found, settings="s.yaml", columns=300)
    assert "dptext audit" not in unjoined  # which would be refused
    assert (
        "  undecided    names_kept <= 0.02: the table cannot be audited against its source afterwards: there is no row_key"
        in unjoined
    )
    csv = replace(
        FACTS, config=parse_config({**LEAST, "row_key": "id", "input": {"path": "/in", "format": "csv"}})
    )
    assert "--against /in --against-format csv --config" in summary(
        csv, verdict=found, settings="s.yaml", columns=300
    )


def test_a_run_that_changed_nothing_says_how_its_requirements_stand() -> None:
    found = judged("names_kept <= 0.02", found={"names_kept": 0.5})
    text = summary(Unchanged(RECORD), verdict=found)
    assert "required  names_kept <= 0.02: BROKEN" in text
    assert shareable_summary(Unchanged(RECORD), found)[1][0] == ("required", "names_kept <= 0.02: BROKEN")


def test_what_stayed_of_names_is_for_those_inside() -> None:
    counted = {"words": 90.0, "person_words": 8.0, "person_words_replaced": 6.0, "person_words_kept": 2.0}
    facts = replace(FACTS, restricted=Restricted({**counted, "person_words_kept_share": 0.25}))
    inside, outside = summary(facts, internal=True, columns=200), summary(facts, columns=200)
    assert "names of persons" in inside
    assert "8 words, 6 replaced, 2 stayed (25 %)" in inside
    for said in (inside, outside):
        assert "nothing looked for names, so that there is no count of those that stayed" in said
    assert "names of persons" not in outside
