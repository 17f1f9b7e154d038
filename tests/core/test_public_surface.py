"""What users import, pinned: names, signatures, and that importing the package costs nothing."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dptext_spark as dp

SURFACE = {
    "MECHANISMS",
    "Certificate",
    "Counters",
    "CountMismatchError",
    "CusText",
    "DPTextError",
    "DataError",
    "Guarantee",
    "Lexicon",
    "Policy",
    "Privatizer",
    "RecordingError",
    "RunError",
    "RunKey",
    "SettingsError",
    "__version__",
    "certify",
}
SIGNATURES = {
    "Lexicon.default": "()",
    "Lexicon.open": "(folder, *, verify)",
    "Lexicon.read": "(path, *, format, limit, vocabulary, tokenizer, metric, progress)",
    "Lexicon.save": "(self, folder)",
    "CusText": "(epsilon, k, mapping, metric, remainder, calibration)",
    "CusText.compile": "(self, lexicon)",
    "Policy": "(stop_words, stop_word_list, oov, numbers, case, gaps, tokenizer, identifiers)",
    "Privatizer": "(lexicon, sampler, policy, consistency, fingerprint, table, selector, providers)",
    "Privatizer.guarantee": "(self, *, of_rows)",
    "Privatizer.privatize": "(self, texts, *, column, row_ids, record_ids, key, run_id, weights, chosen)",
    "RunKey.generate": "()",
    "RunKey.from_file": "(path, deliver)",
    "RunKey.from_env": "(name, deliver)",
    "RunKey.insecure": "(seed)",
    "Counters.totals": "(self)",
    "certify": "(privatizer, progress, sample)",
}


def test_the_surface_is_this_and_no_more() -> None:
    assert set(dp.__all__) == SURFACE
    assert set(dir(dp)) >= SURFACE
    for name in SURFACE:
        assert getattr(dp, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Lexikon'"):
        _ = dp.Lexikon  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "expected"), SIGNATURES.items())
def test_signatures(name: str, expected: str) -> None:
    found = dp
    for part in name.split("."):
        found = getattr(found, part)
    parameters = inspect.signature(found).parameters.values()  # type: ignore[arg-type]
    names, keyword_only = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            names.append("*")
            keyword_only = True
        names.append(parameter.name)
    assert f"({', '.join(names)})" == expected


def test_mechanisms_are_made_by_name_or_by_class() -> None:
    assert dp.MECHANISMS["custext"](epsilon=1.0) == dp.CusText(epsilon=1.0)  # type: ignore[call-arg]


def test_importing_the_package_costs_nothing() -> None:
    code = (
        "import sys; import dptext_spark; "
        "print(sorted({'numpy', 'numba', 'pyarrow', 'faiss', 'pydantic', 'typer', 'pyspark'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "[]"


def test_the_version_is_that_of_the_distribution() -> None:
    project = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert found is not None
    assert found.group(1) == dp.__version__
