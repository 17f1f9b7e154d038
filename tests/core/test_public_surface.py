"""What users import, pinned: names, signatures, costs, and examples that run; those that need Spark are run in tests/spark."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dptext_spark as dp
from dptext_spark import audit
from dptext_spark import spark as dps
from tests.core.examples import DOORS, HEADING, documented, failures

MECHANISMS = {
    "CusText": "(epsilon, k, mapping, metric, remainder, calibration, fluent, remap)",
    "Diffractor": "(epsilon, form, lists, list_seed, preset, beta, calibration, remap)",
    "Gaussian": "(epsilon, delta, clip, calibration, snap, search)",
    "Laplace": "(epsilon, clip, snap, search)",
    "MVC": "(epsilon, search)",
    "Mahalanobis": "(epsilon, lam, search)",
    "Projection": "(epsilon, m, seed, search)",
    "SanText": "(epsilon, sensitive, p, calibration, remap)",
    "TEM": "(epsilon, beta, gamma, calibration, remap)",
    "TruncatedGumbel": "(epsilon, unsafe)",
    "TruncatedLaplace": "(epsilon, delta, clip, calibration, snap, search)",
    "Vickrey": "(epsilon, t, noise, lam, search)",
}
SIGNATURES = {
    **{f"dp.{name}": parameters for name, parameters in MECHANISMS.items()},
    **{f"dp.{name}.compile": "(self, lexicon)" for name in MECHANISMS if name != "Diffractor"},
    "dp.Diffractor.compile": "(self, lexicon, *others)",
    "dp.Budget": "(record, delta)",
    "dp.Importance": "(provider, direction, percent, strategy, levels, rank_punctuation, corpus, weights, model)",
    "dp.Level": "(share, epsilon, mechanism)",
    "dp.Lexicon.default": "()",
    "dp.Lexicon.open": "(folder, *, verify)",
    "dp.Lexicon.read": "(path, *, format, limit, vocabulary, tokenizer, metric, progress)",
    "dp.Lexicon.save": "(self, folder)",
    "dp.Lexicon.with_prior": "(self, prior)",
    "dp.Lexicon.without": "(self, words)",
    "dp.Policy": "(stop_words, stop_word_list, oov, numbers, case, gaps, tokenizer, identifiers, names, providers)",
    "dp.RunKey.from_env": "(name, deliver)",
    "dp.RunKey.from_file": "(path, deliver)",
    "dp.RunKey.generate": "()",
    "dp.RunKey.insecure": "(seed)",
    "dp.certify": "(model, *, sample, progress)",
    "dp.compile": "(mechanism, lexicon, policy, consistency, importance, *, budget, providers, frequencies, progress)",
    "dp.load_config": "(path, overrides)",
    "dp.open_model": "(folder, *, seal, prefix, providers)",
    "dp.plan": "(config, progress)",
    "dp.preview": "(model, text, *, top)",
    "dp.read_prior": "(corpus, lexicon, policy)",
    "dp.save_model": "(model, folder, *, spec)",
    "dp.tickets": "(rows)",
    "dps.audit": "(table, against, *, config, against_format, columns, row_key, record_key, label, attribute, author, "
    "queries, similarity, encoder, masked_model, label_rows, names, internal, require, sample, partial, out, spark, progress)",
    "dps.compare_rows": "(before, after)",
    "dps.doctor": "(config, spark, *, progress)",
    "dps.document_frequencies": "(df, columns, model)",
    "dps.preview": "(df, columns, model, *, rows)",
    "dps.privatize": "(df, columns, model, *, row_key, record_key, key, run_id, udf, weights, mask, keep)",
    "dps.register": "(spark, name, model, *, column, key, run_id, ledger, input, row_key, record_key, replace, progress)",
    "dps.report": "(run_id, config, *, audit, public, with_examples, figures, "
    "public_text, examine, spark, progress)",
    "dps.run": "(config, spark, *, key, progress)",
    "dps.spark_session": "(app_name, *, master, settings, warehouse)",
    "audit.ComparisonSpec.of": "(config, mechanisms, epsilons, levels, *, records, attacked, few, draws, encoder)",
    "audit.Records": "(texts, labels)",
    "audit.calibrate": "(config, require, *, low, high, steps, sample, words, progress)",
    "audit.compare": "(config, spec, public, private, *, language, progress)",
    # What these return; how the objects are made is no part of the surface.
    "dp.Certificate.as_dict": "(self)",
    "dp.Counters.totals": "(self)",
    "dp.Guarantee.compose": "(self, draws)",
    "dp.Plan.as_dict": "(self)",
    "dp.Preview.as_dict": "(self)",
    "dp.Privatizer.guarantee": "(self, *, of_rows)",
    "dp.Privatizer.privatize": "(self, texts, *, column, row_ids, record_ids, key, run_id, weights, chosen)",
    "dp.RunConfig.as_dict": "(self)",
    "dps.RunReport.as_dict": "(self)",
    "dps.RunReport.save": "(self, path)",
    "dps.RunReport.show": "(self)",
    "dps.RunReport.statement": "(self, form)",
    "dps.RunResult.as_dict": "(self, internal)",
    "dps.TableAudit.as_dict": "(self)",
    "audit.Comparison.as_dict": "(self)",
    "audit.FoundEpsilon.as_dict": "(self)",
}
CHECKOUT = Path(__file__).resolve().parents[2]
# Jobs are commands for spark-submit: they call the entry point of `dptext`. No command prepares a model; that job does so itself.
COMMAND = "dptext_spark.cli.app.main"
PREPARE = {
    "dptext_spark.cli.app.ended",
    "dptext_spark.config.load.load_model_config",
    "dptext_spark.model.compile.compile_with_code",
    "dptext_spark.report.console.progress",
    "dptext_spark.report.console.write",
}
SURFACE = {
    "dp": {name.split(".")[1] for name in SIGNATURES if name.startswith("dp.")}
    | {"MECHANISMS", "__version__", "errors"},
    "dps": {name.split(".")[1] for name in SIGNATURES if name.startswith("dps.")}
    | {"CheckResult", "Registration", "RowComparison", "TablePreview"},
    "audit": {name.split(".")[1] for name in SIGNATURES if name.startswith("audit.")},
}


@pytest.mark.parametrize("door", DOORS)
def test_the_surface_is_this_and_no_more(door: str) -> None:
    assert set(DOORS[door].__all__) == SURFACE[door]
    assert set(dir(DOORS[door])) >= SURFACE[door]
    for name in SURFACE[door]:
        assert getattr(DOORS[door], name) is not None


def test_the_mechanisms_are_those_of_the_registry() -> None:
    assert {name: getattr(dp, name) for name in MECHANISMS} == {
        mechanism.__name__: mechanism for mechanism in dp.MECHANISMS.values()
    }


@pytest.mark.parametrize("door", DOORS)
def test_no_module_takes_the_place_of_a_name(door: str) -> None:
    # Importing a module sets it in its package, whichever public name stood there.
    beside = {place.stem for place in Path(str(DOORS[door].__file__)).parent.iterdir()}
    assert (beside & SURFACE[door]) - {"errors"} == set()


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Lexikon'"):
        _ = dp.Lexikon  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "expected"), SIGNATURES.items())
def test_signatures(name: str, expected: str) -> None:
    door, *parts = name.split(".")
    found: object = DOORS[door]
    for part in parts:
        found = getattr(found, part)
    names, keyword_only = [], False
    for parameter in inspect.signature(found).parameters.values():  # type: ignore[arg-type]
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            names.append("*")
            keyword_only = True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        names.append(stars + parameter.name)
    assert f"({', '.join(names)})" == expected


def test_the_version_is_that_of_the_distribution() -> None:
    project = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert found is not None
    assert found.group(1) == dp.__version__


def sources() -> Iterator[tuple[str, str]]:
    """Yield (name, source) of what users read and copy: notebooks, jobs, and the README's blocks."""
    for file in [*CHECKOUT.glob("notebooks/*.ipynb"), *CHECKOUT.glob("conf/databricks/notebooks/*.ipynb")]:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        yield file.name, "\n".join(code)
    for file in CHECKOUT.glob("jobs/*.py"):
        yield file.name, file.read_text(encoding="utf-8")
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL), start=1):
        yield f"README, block {number}", block


def below(source: str) -> set[str]:
    """What a source takes of the package that is no public name of its three doors."""
    modules = {"dptext_spark": dp, "dptext_spark.audit": audit, "dptext_spark.spark": dps}
    tree, doors, found = ast.parse(source), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "dptext_spark":
                    doors[alias.asname or alias.name] = modules[alias.name]
                elif alias.name.startswith("dptext_spark."):
                    found.add(alias.name)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dptext_spark":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in modules:
                    doors[alias.asname or alias.name] = modules[name]
                else:
                    found.add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in doors:
            public = {*doors[node.value.id].__all__, "__file__"}
            found |= {f"{node.value.id}.{node.attr}"} - {f"{node.value.id}.{name}" for name in public}
    return found


def test_what_users_copy_stays_on_the_surface() -> None:
    found = {name: below(source) for name, source in sources()}
    assert len(found) > 10
    prepare = found.pop("prepare.py")
    assert prepare == PREPARE
    assert {name: names - {COMMAND} for name, names in found.items() if names - {COMMAND}} == {}


SETTINGS = """
input: {path: /data/reviews}
columns: [body]
row_key: id
mechanism: {name: custext, epsilon: 2.0}
output: {path: /data/reviews_sanitized}
"""


@pytest.mark.parametrize("door", DOORS)
def test_each_public_name_has_an_example(door: str) -> None:
    if door == "dps":
        pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    without = [name for name, text in documented(door) if not HEADING.search(text) or ">>> " not in text]
    assert without == []


@pytest.mark.long
def test_the_examples_without_spark_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.yaml").write_text(SETTINGS, encoding="utf-8")
    names: dict[str, Any] = {}  # the first example of each door imports it
    assert failures("dp", names) == ""
    assert failures("audit", names) == ""
