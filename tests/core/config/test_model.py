"""Settings: what is accepted, and that each mistake is named with the valid choices."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import load_model_config, parse_config, parse_model_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import SettingsError, either
from dptext_spark.lexicon.vector_formats import FORMATS
from dptext_spark.mechanisms import MECHANISMS, CusText, SanText
from dptext_spark.mechanisms.custext import MAPPINGS
from dptext_spark.mechanisms.samplers.table import MAX_SLOTS
from dptext_spark.text.policy import OOV, Policy

LEAST: dict[str, Any] = {"input": {"path": "/data/in"}, "columns": ["body"], "output": {"path": "/data/out"}}


def refused(**sections: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        parse_config({**LEAST, **sections})
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return str(caught.value)


def accepted(**sections: Any) -> RunConfig:
    return parse_config({**LEAST, **sections})


def test_the_least_settings_have_the_documented_defaults() -> None:
    """Those of sections are compared with the reference of the documentation; here are those that settings give to others."""
    config = parse_config(LEAST)
    assert (config.mechanism, config.policy) == (CusText(), Policy())
    assert config.shareable == "/data/out_audit/shareable"
    assert config.restricted == "/data/out_audit/restricted"


def test_a_ledger_may_lie_beside_the_account_or_anywhere_else() -> None:
    for path in ("/data/out_audit/shareable/ledger", "/data/ledgers/tickets", "s3://bucket/ledger"):
        assert accepted(ledger={"path": path, "limit": 2, "override": "minute 7"}).ledger.limit == 2.0


def test_a_list_among_the_mechanisms_settings_stays_a_list() -> None:
    """Settings are compared with those that an artifact keeps as JSON."""
    config = accepted(mechanism={"name": "santext", "sensitive": ["pain", "debt"]})
    assert config.mechanism == SanText(sensitive=("pain", "debt"))
    assert config.spec() == json.loads(json.dumps(config.spec()))
    assert config.spec()["mechanism"]["sensitive"] == ["pain", "debt"]


def test_as_dict_is_json_and_makes_the_same_settings_again() -> None:
    config = accepted(
        mechanism={"epsilon": 2, "k": 50, "mapping": "aggressive"},
        policy={"stop_word_list": ["a", "b"], "oov": "draw"},
        output={"path": "/data/out", "other_columns": ["id"]},
        row_key="id",
        input={"path": "/data/in", "format": "csv", "options": {"header": True, "sep": ";", "maxColumns": 5}},
    )
    plain = json.loads(json.dumps(config.as_dict()))
    assert parse_config(plain) == config
    assert plain["input"]["options"] == {"header": "true", "sep": ";", "maxColumns": "5"}
    unused = {"style", "allow_unknown", "budget", "lists", "require", "approval"}
    assert set(plain) == set(RunConfig.model_fields) - unused  # they leave no trace


def test_spec_is_what_a_model_is_made_from() -> None:
    assert {*parse_config(LEAST).spec()} == {"lexicon", "mechanism", "policy", "consistency", "importance"}
    assert parse_config(LEAST).spec()["mechanism"]["name"] == "custext"


def test_an_option_that_may_be_a_secret_is_hidden() -> None:
    config = accepted(input={"path": "/data/in", "options": {"db.password": "marker", "sep": ","}})
    assert config.input.options["db.password"] == "marker"
    assert "marker" not in json.dumps(config.as_dict())


def test_sections_may_be_left_empty() -> None:
    empty = dict.fromkeys(("lexicon", "mechanism", "policy", "run", "key", "audit"))
    assert parse_config({**LEAST, **empty}) == parse_config(LEAST)


@pytest.mark.parametrize("missing", ["input", "columns", "output"])
def test_what_has_no_default_must_be_given(missing: str) -> None:
    settings = {name: value for name, value in LEAST.items() if name != missing}
    with pytest.raises(SettingsError, match=rf"^{missing}: not set, .*`{missing}:"):
        parse_config(settings)


@pytest.mark.parametrize(
    ("sections", "field", "meant"),
    [
        ({"input": {"path": "/a", "formt": "csv"}}, "input.formt: no such setting", "format"),
        ({"policy": {"oovv": "mask"}}, "policy.oovv: no such setting", "oov"),
        ({"mechanism": {"epsilom": 1}}, "mechanism.epsilom: no such setting", "epsilon"),
        ({"mechanism": {"name": "custex"}}, "mechanism.name: 'custex'", "custext"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(sections: dict[str, Any], field: str, meant: str) -> None:
    message = refused(**sections)
    assert message.startswith(field)
    assert message.endswith(f"Did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"input": "tickets"}, "input: 'tickets' is not valid. Choose a section"),
        ({"input": {}}, "input: neither path nor table is set. Set one of them."),
        ({"input": {"path": "/a", "table": "t"}}, "input: path and table are both set. Set one of them."),
        ({"input": {"path": 5}}, "input.path: 5 is not valid. Choose a text."),
        ({"output": {"path": "/a\0b"}}, "output.path: '/a\\x00b' is not valid. Choose a text without a NUL character."),
        ({"input": {"path": ""}}, "input.path: '' is not valid. Choose a text that is not empty."),
        ({"input": {"table": "a b"}}, "input.table: 'a b' is not valid. Choose catalog.schema.table"),
        ({"input": {"table": "delta.`/a`"}}, "Choose a catalog name"),
        ({"input": {"path": "/a", "options": [1]}}, "input.options: [1] is not valid. Choose a section"),
        ({"input": {"path": "/a", "options": {"x": [1]}}}, "input.options.x: a list is not valid. Choose a text"),
        *(
            ({"input": {"path": "/a", "format": format, "options": {name: value}}}, said)
            for format, name, value, said in (
                ("delta", "inferSchema", True, "the run sets this option itself"),
                ("csv", "Mode", "FAILFAST", "input.options.Mode: 'FAILFAST' is not valid. Choose PERMISSIVE"),
                ("json", "mode", "dropMalformed", "input.options.mode: 'dropMalformed' is not valid. Choose PERMISSIVE"),
                ("delta", "mode", "PERMISSIVE", "input.options.mode: not valid with format delta"),
                ("csv", "multiLine", "yes", "input.options.multiLine: 'yes' is not valid. Choose true or false"),
            )
        ),
        ({"columns": "body"}, "columns: 'body' is not valid. Choose a list."),
        ({"columns": []}, "columns: [] is not valid. Choose a list that is not empty."),
        ({"columns": [1]}, "columns[0]: 1 is not valid. Choose a text."),
        ({"columns": ["body", "Body"]}, "columns: 'Body' is named twice."),
        ({"row_key": "body"}, "row_key: 'body' is a text column"),
        ({"record_key": "BODY"}, "record_key: 'BODY' is a text column"),
        ({"mechanism": ["custext"]}, "mechanism: ['custext'] is not valid. Choose a section"),
        ({"policy": {"stop_word_list": 5}}, "policy.stop_word_list: 5 is not valid. Choose null"),
        ({"policy": {"stop_word_list": "/no/list"}}, "policy.stop_word_list: '/no/list' cannot be read"),
        ({"output": {"path": "/data/in/"}}, "output.path: '/data/in/' is the input. Choose another place."),
        ({"output": {"path": "file:/data/x/../in"}}, "is the input"),
        ({"output": {"path": "/data/in/out"}}, "overlap"),
        ({"output": {"path": "/data"}}, "overlap"),
        ({"output": {"path": "/b", "other_columns": 5}}, "output.other_columns: 5 is not valid. Choose keep, drop, or a list"),
        ({"output": {"path": "/b", "other_columns": ["a", "A"]}}, "output.other_columns: ['a', 'A'] is not valid"),
        ({"output": {"path": "/b", "other_columns": ["body"]}}, "'body' is already in the output"),
        ({"output": {"path": "s3a://me:pass@bucket/x"}}, "output.path: the path holds a password"),
        ({"key": {"file": 5}}, "key.file: a value that is not shown is not valid. Choose a text."),
        ({"key": {"env": "ab" * 32}}, "key.env: a value that is not shown is not valid. Choose the name of an environment"),
        ({"key": {"env": "A", "file": "/k"}}, "key: file and env are set. Choose one of file, env and secret."),
        ({"key": {"secret": {"scope": "s"}}}, "key.secret.name: not set"),
        ({"run": {"id": "a b"}}, "run.id: 'a b' is not valid. Choose 1 to 128 letters"),
        ({"stream": {"max_files": True}}, "stream.max_files: True is not valid. Choose an integer."),
        ({"audit": {"restricted": "/x/a", "shareable": "/x"}}, "overlap"),
        ({"audit": {"restricted": "/data/out/r"}}, "audit.restricted: '/data/out/r' and output.path"),
        *(
            ({"ledger": {"limit": limit}}, f"ledger.limit: {limit!r} is not valid. Choose null, or a finite number above 0.")
            for limit in (0, -1.0, True, "2", math.inf, math.nan)
        ),
        ({"ledger": {"raise_limit": "why"}}, "ledger.raise_limit: set without ledger.limit"),
        ({"ledger": {"limit": 1, "raise_limit": ""}}, "ledger.raise_limit: '' is not valid. Choose a text that is not empty."),
        ({"ledger": {"path": "s3a://me:pass@bucket/x"}}, "ledger.path: the path holds a password"),
        ({"ledger": {"path": "~/ledger"}}, "ledger.path: '~/ledger' begins with ~"),
        *(
            ({"ledger": {"path": path}}, f"ledger.path: '{path}' and {name} ")
            for path, name in (
                ("/data/in/ledger", "input.path"), ("/data/out", "output.path"), ("/data", "input.path"),
                ("/data/out_audit/restricted/l", "audit.restricted"), ("/data/out_audit/shareable", "audit.shareable"),
                ("/data/out_audit/shareable/runs", "audit.shareable"),
                ("/data/out_audit/shareable/runs/x", "audit.shareable"),
            )
        ),
        ({"lexicon": {"limit": 10}}, "lexicon: limit limits a file"),
        ({"lexicon": {"source": "/v.txt", "limit": 1}}, "lexicon.limit: 1 is not valid. Choose an integer of 2 or more."),
        ({"lexicon": {"source": "/v.txt", "limit": True}}, "lexicon.limit: True is not valid. Choose an integer."),
        ({"lexicon": {"more": ["/b.vec"]}}, "lexicon.more: 1 sources are not valid for mechanism custext. Choose 0."),
        ({"lexicon": {"more": ["/b"] * 16}, "mechanism": {"name": "diffractor"}}, "Choose 0 to 15."),
        ({"lexicon": {"more": ["/a", "s3://u:hushed@b/v"]}, "mechanism": {"name": "diffractor"}},
         "lexicon.more[1].source: the path holds a password"),
        ({"consistency": "tokens"}, "consistency: 'tokens' is not valid. Choose token, record or dataset."),
        ({"mechanism": {"k": {"file": "/a"}}}, "mechanism.k: {'file': '/a'} is not valid. Choose an integer"),
        ({"input": {"table": "tickets"}, "output": {"table": "spark_catalog.`default`.Tickets"},
          "audit": {"shareable": "/s", "restricted": "/r"}}, "output.table: 'spark_catalog.`default`.Tickets' is the input"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_and_named(sections: dict[str, Any], said: str) -> None:
    message = refused(**sections)
    assert said in message
    assert "hushed" not in message


@pytest.mark.parametrize(
    ("section", "name", "given", "valid"),
    [
        ("input", "format", "cvs", "delta, parquet, csv, tsv, json or text. Did you mean 'csv'?"),
        ("output", "mode", "replace", "error, append or overwrite"),
        ("run", "ship", "broadcasts", "artifact, path or broadcast"),
        ("run", "udf", "numpy", "auto, arrow or pandas"),
        ("run", "second_release", True, "refuse or accept"),
        ("policy", "oov", "mak", either(OOV)),
        ("policy", "tokenizer", None, "words or whitespace"),
        ("mechanism", "mapping", "balance", either(MAPPINGS)),
    ],
)
def test_a_wrong_choice_names_the_valid_ones(section: str, name: str, given: object, valid: str) -> None:
    message = refused(**{section: {**LEAST.get(section, {}), name: given}})
    assert message.startswith(f"{section}.{name}: {given!r} ")
    assert valid in message


@pytest.mark.parametrize("epsilon", [-1, -0.001, math.nan, math.inf, -math.inf, "1", True, None, [1]])
def test_epsilon_must_be_a_finite_number_in_the_mechanisms_range(epsilon: object) -> None:
    said = refused(mechanism={"epsilon": epsilon})
    assert said.startswith(f"mechanism.epsilon: {epsilon!r} is not valid. Choose 0 ")
    assert accepted(mechanism={"epsilon": 0}).mechanism == CusText(epsilon=0)


@pytest.mark.parametrize("k", [1, 0, -5, MAX_SLOTS + 1, 2.5, "20", True])
def test_k_must_be_in_the_mechanisms_range(k: object) -> None:
    said = f"mechanism.k: {k!r} is not valid. Choose an integer from 2 to {MAX_SLOTS}."
    assert refused(mechanism={"k": k}) == said


def test_every_parameter_of_every_mechanism_is_a_setting() -> None:
    required = {"projection": {"m": 3}}
    for name, kind in MECHANISMS.items():
        defaults = {entry.name: entry.default for entry in fields(kind)}  # type: ignore[arg-type]
        given = defaults | required.get(name, {})
        assert accepted(mechanism={"name": name, **given}).mechanism == kind(**required.get(name, {}))


def test_the_lexicon_formats_are_those_that_can_be_read() -> None:
    for name in ("auto", *FORMATS):
        assert parse_model_config({"lexicon": {"source": "/v.txt", "format": name}}).lexicon.format == name
    with pytest.raises(SettingsError, match=either(("auto", *FORMATS))):
        parse_model_config({"lexicon": {"format": "other"}})


class TestSeveralLexicons:
    def test_sources_are_names_or_sections(self) -> None:
        more = ["default", "/b.vec", {"source": "/c.txt", "format": "glove", "limit": 50}]
        config = accepted(lexicon={"source": "/a.txt", "more": more}, mechanism={"name": "diffractor"})
        assert [one.source for one in config.lexicon.more] == ["default", "/b.vec", "/c.txt"]
        assert config.lexicon.more[2].limit == 50
        assert config.lexicon.more[0].format == "auto"
        again = parse_config(json.loads(json.dumps(config.as_dict())))
        assert again.lexicon == config.lexicon
        assert config.spec()["lexicon"]["more"][1]["source"] == "/b.vec"

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ("/b.vec", r"lexicon.more: '/b.vec' is not valid. Choose a list of sources"),
            ([""], r"lexicon.more\[0\].source"),
            ([3], r"lexicon.more\[0\]: 3 is not valid. Choose a section"),
            ([{"format": "glov"}], r"lexicon.more\[0\].format: 'glov' is not valid.*Did you mean 'glove'"),
            ([{"sorce": "/a"}], r"lexicon.more\[0\].sorce: no such setting.*Did you mean 'source'"),
            ([{"source": "/a", "more": []}], r"lexicon.more\[0\].more: no such setting"),
            (["default", {"limit": 5}], r"lexicon: limit limits a file"),
        ],
    )
    def test_each_is_checked(self, more: object, said: str) -> None:
        assert re.search(said, refused(lexicon={"more": more}, mechanism={"name": "diffractor"}))

    @pytest.mark.parametrize(("preset", "more"), [("L0", 4), ("L1", 4), ("L2", 0)])
    def test_a_preset_asks_for_its_number(self, preset: str, more: int) -> None:
        mechanism = {"name": "diffractor", "preset": preset}
        assert accepted(mechanism=mechanism, lexicon={"more": ["/b"] * more})
        for other in {0, 1, 4, 5} - {more}:
            message = refused(mechanism=mechanism, lexicon={"more": ["/b"] * other})
            said = f"lexicon.more: {other} sources are not valid for mechanism diffractor with preset"
            assert message.startswith(f"{said} {preset}")

    def test_where_an_artifact_is_named_they_need_not_be(self) -> None:
        named = {"mechanism": {"name": "diffractor", "preset": "L0"}, "run": {"artifact": "/model"}}
        assert accepted(**named)
        refused(**named, lexicon={"source": "/a"})


def test_all_problems_are_listed_at_once() -> None:
    mechanism = {"name": "custext", "epsilon": -1, "k": 0, "kk": 2}
    policy = {"oov": "drop", "gaps": 1, "oovv": "mask"}
    wrong = {"consistency": "x", "columns": [], "run": {"udf": "x"}, "nonsense": 1}
    message = refused(mechanism=mechanism, policy=policy, **wrong)
    lines = message.splitlines()
    assert lines[0] == "10 settings are not valid:"
    named = {line.split(":")[0].strip() for line in lines[1:]}
    assert {"consistency", "columns", "run.udf", "mechanism.kk", "mechanism.epsilon", "mechanism.k"} < named
    assert named > {"policy.oovv", "policy.oov", "policy.gaps", "nonsense"}
    assert len(named) == 10


def test_a_long_value_is_cut() -> None:
    assert len(refused(consistency="x" * 5000)) < 200


def test_the_text_format_has_one_column() -> None:
    assert "Choose [value]" in refused(input={"path": "/a", "format": "text"})
    assert accepted(input={"path": "/a", "format": "text"}, columns=["value"]).columns == ("value",)


class TestSensitiveWordsFromAFile:
    def of(self, file: Path) -> RunConfig:
        return accepted(mechanism={"name": "santext", "sensitive": {"file": str(file)}})

    def test_the_words_take_the_files_place(self, tmp_path: Path) -> None:
        file = tmp_path / "sensitive.txt"
        file.write_text("\ufeffpain\r\n\n  debt \n#tag\n", encoding="utf-8")
        config = self.of(file)
        assert config.mechanism == SanText(sensitive=("pain", "debt", "#tag"))
        assert config.spec()["mechanism"]["sensitive"] == ["pain", "debt", "#tag"]
        assert parse_config(json.loads(json.dumps(config.as_dict()))).mechanism == config.mechanism
        assert str(file) not in json.dumps(config.as_dict())
        file.write_text("pain\ndebts\n#tag\n", encoding="utf-8")
        assert self.of(file).spec() != config.spec()

    def test_an_override_names_it(self, tmp_path: Path) -> None:
        file = tmp_path / "sensitive.txt"
        file.write_text("pain\ndebt\n", encoding="utf-8")
        config = load_model_config(None, ["mechanism.name=santext", f"mechanism.sensitive.file={file}"])
        assert config.mechanism == SanText(sensitive=("pain", "debt"))

    @pytest.mark.parametrize("content", [b"secretword\n", b"\n \n", b"", b"secretword\n\xff\n"])
    def test_a_bad_file_is_named_and_no_word_of_it(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "sensitive.txt"
        file.write_bytes(content)
        message = refused(mechanism={"name": "santext", "sensitive": {"file": str(file)}})
        wanted = "is not UTF-8 text" if b"\xff" in content else "a list of two words or more"
        assert message.startswith("mechanism.sensitive")
        assert wanted in message
        assert "secretword" not in message

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"file": "/no/list"}, "mechanism.sensitive.file: '/no/list' cannot be read"),
            ({"file": 5}, "mechanism.sensitive.file: 5 is not valid"),
            ({}, "mechanism.sensitive.file: None is not valid"),
            ({"flie": "/a"}, "mechanism.sensitive.flie: no such setting. Choose file."),
        ],
    )
    def test_each_mistake_is_named(self, given: dict[str, Any], said: str) -> None:
        assert said in refused(mechanism={"name": "santext", "sensitive": given})


def test_a_stop_word_list_can_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("\ufeff# my list\nthe\n\n  of  \n", encoding="utf-8")
    assert accepted(policy={"stop_word_list": str(file)}).policy.stop_word_list == ("the", "of")
    file.write_bytes(b"\xff")
    assert "is not UTF-8 text" in refused(policy={"stop_word_list": str(file)})
    assert accepted(policy={"stop_word_list": []}).policy.stop_word_list == ()


def test_a_model_is_read_from_its_own_sections_or_from_a_run(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text("mechanism: {epsilon: 3}\n")
    assert load_model_config(file).mechanism == CusText(epsilon=3)
    assert load_model_config().mechanism == parse_model_config({"style": "balanced"}).mechanism
    file.write_text("input: {path: /a}\ncolumns: [body]\noutput: {path: /b}\n")
    assert isinstance(load_model_config(file), RunConfig)


class TestStreams:
    STREAM: dict[str, Any] = {"mode": "incremental", "row_key": "id"}  # noqa: RUF012  (a constant)

    def test_defaults(self) -> None:
        assert accepted().mode == "batch"
        assert accepted().checkpoint is None
        config = accepted(**self.STREAM)
        assert config.output.mode == "append"
        assert config.checkpoint == "/data/out_checkpoint"
        unset = dict.fromkeys(("trigger", "checkpoint", "max_files", "starting_version"))
        assert config.as_dict()["stream"] == {"changes": "refuse", "duplicates": "refuse", **unset}
        named = accepted(**self.STREAM, stream={"checkpoint": "/data/here"})
        assert named.checkpoint == "/data/here"

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"row_key": None}, r"row_key: not set, but mode incremental needs a unique column"),
            ({"input": {"path": "/in", "format": "parquet"}}, r"input.format: 'parquet' is not valid with mode"),
            ({"input": {"path": "/in", "options": {"readChangeFeed": True}}}, r"input.options: not valid with mode"),
            ({"output": {"path": "/out", "mode": "overwrite"}}, r"output.mode: 'overwrite' is not valid .* Choose append"),
            ({"stream": {"trigger": "1 minute"}}, r"stream.trigger: '1 minute' is not valid with mode incremental"),
            ({"mode": "streaming", "stream": {"trigger": "soon"}}, r"stream.trigger: 'soon' is not valid"),
            ({"mode": "hourly"}, r"mode: 'hourly' is not valid. Choose batch, incremental or streaming"),
            ({"mode": "batch", "stream": {"max_files": 3}}, r"stream.max_files: 3 is not valid with mode batch"),
            ({"stream": {"max_files": 0}}, r"stream.max_files: 0 is not valid. Choose an integer of 1 or more"),
            ({"stream": {"starting_version": -1}}, r"stream.starting_version: -1 is not valid"),
            ({"stream": {"changes": "follow"}}, r"stream.changes: 'follow' is not valid. Choose refuse or ignore"),
            ({"stream": {"duplicates": "keep"}}, r"stream.duplicates: 'keep' is not valid. Choose refuse, drop or accept"),
            ({"stream": {"checkpoint": "/data/out/c"}}, r"stream.checkpoint: '/data/out/c' and output.path .* overlap"),
            ({"stream": {"every": "day"}}, r"stream.every: no such setting"),
            ({"output": {"table": "a.b"}, "audit": {"shareable": "/s", "restricted": "/r"}}, r"stream.checkpoint: not set"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_named(self, changes: dict[str, Any], said: str) -> None:
        assert re.search(said, refused(**{**self.STREAM, **changes}))
