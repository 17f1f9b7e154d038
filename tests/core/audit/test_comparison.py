"""A comparison as a person makes it: curves, the best at each risk, the page, wrong input; and its grid of samplers."""

from __future__ import annotations

import json
import os
import random
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.attacks.adversary import DRAWS, FEW
from dptext_spark.audit.comparison import SamplerGrid, compare
from dptext_spark.audit.comparison_input import ComparisonSpec, Records, read_records
from dptext_spark.audit.frontier import BAYES, CONTEXT
from dptext_spark.audit.options import ComparisonOptions
from dptext_spark.audit.text_utility import ACCURACY, COSINE, DISTINCT, EMBEDDED, KEPT, ORDER
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.levels import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import TEM, CusText, Diffractor, SanText, diffractor
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.randomness import Draws
from dptext_spark.report.comparison_page import comparison
from tests.core.encoder.tiny_bert import make_tiny_bert
from tests.core.names import scattered

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")

NAMES = [a + b + c for a in "bcdf" for b in "aeiou" for c in "klmn"]
SIZES = {"attacked": 60, "records": 120, "few": 20, "draws": 20}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexicon of 80 words in clusters, a public and a private text whose label is whether it speaks of the first ones."""
    folder = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(5)
    vectors = np.repeat(rng.normal(size=(20, 5)) * 3, 4, axis=0) + rng.normal(size=(80, 5))
    Lexicon(Vocabulary.of(NAMES), vectors.astype(np.float32)).save(folder / "lexicon")
    chance = random.Random(7)

    def line() -> str:
        label = chance.random() < 0.5
        likely = NAMES[:40] if label else NAMES[40:]
        words = [chance.choice(likely if chance.random() < 0.8 else NAMES) for _ in range(9)]
        return f"{' '.join(words)}\t{'yes' if label else 'no'}"

    for name in ("public", "private", "third"):
        (folder / name).write_text("".join(f"{line()}\n" for _ in range(120)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def texts(places: Path) -> list[Records]:
    return [read_records(places / name, name, "last") for name in ("public", "private")]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("attacked", 60), ("few", 20), ("draws", 20)):
        monkeypatch.setitem(ComparisonOptions.__init__.__kwdefaults__, name, size)


@pytest.fixture
def config(places: Path) -> ModelConfig:
    return parse_model_config({"lexicon": {"source": str(places / "lexicon")}, "mechanism": {"k": 8}})


def command(places: Path, *more: object) -> list[str]:
    texts = ["--public", places / "public", "--private", places / "private", "--labels", "last"]
    lexicon = f"lexicon.source={places / 'lexicon'}"
    return [str(one) for one in ("compare", "-s", lexicon, "-s", "mechanism.k=8", *texts, *more)]


@pytest.mark.long
def test_more_epsilon_is_more_risk_and_more_use(config: ModelConfig, texts: list[Records]) -> None:
    asked = ComparisonSpec.of(config, "custext,diffractor:form=tem,tem", ["0.5,3,12"], **SIZES)
    found = compare(config, asked, *texts)
    assert len(found.points) == 9
    assert found.refused == ()
    for name in asked.curves:
        points = [one for one in found.points if one.mechanism == name]
        for risk in (BAYES, CONTEXT):
            assert points[0].risks[risk].value < points[2].risks[risk].value
        for use in (KEPT, COSINE):
            assert points[0].utilities[use].value < points[2].utilities[use].value
        for one in points:
            assert one.risks[BAYES].exact
            assert not one.risks[CONTEXT].exact
            assert one.risks[BAYES].value >= one.more.baseline
            for figure in (*one.risks.values(), *one.utilities.values()):
                assert figure.lower <= figure.value <= figure.upper
    assert found.unprotected[ACCURACY].value > 0.85
    axes = [(risk, use) for risk in (BAYES, CONTEXT) for use in (KEPT, COSINE, DISTINCT, ACCURACY)]
    assert [(curves.risk, curves.utility) for curves in found.frontiers] == axes
    values = json.loads(json.dumps(found.as_dict()))
    assert values["restricted"] is True
    assert next(iter(values)) == "restricted"


def test_a_third_text_judges_the_word_order(config: ModelConfig, places: Path, texts: list[Records]) -> None:
    asked = ComparisonSpec.of(config, "custext", ["1,30"], **SIZES)
    found = compare(config, asked, *texts, language=read_records(places / "third", "third", "last"))
    low, high = (one.utilities[ORDER] for one in found.points)
    assert low.value < high.value < 1.1
    assert low.lower <= low.value <= low.upper
    assert found.unprotected[ORDER].value == 1
    assert "order, %" in comparison(found).text(200)
    for wrong in texts:
        with pytest.raises(SettingsError, match=r"^language: "):
            compare(config, asked, *texts, language=wrong)


def test_an_encoder_compares_too(config: ModelConfig, texts: list[Records], tmp_path: Path) -> None:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")
    asked = ComparisonSpec.of(config, "custext", ["1,12"], encoder=str(make_tiny_bert(tmp_path)), **SIZES)
    found = compare(config, asked, *texts)
    low, high = (one.utilities[EMBEDDED] for one in found.points)
    assert low.lower <= low.value <= low.upper
    assert low.value < high.value <= 1
    assert found.unprotected[EMBEDDED].value == 1
    assert len(found.settings.encoder) == 64
    assert (CONTEXT, EMBEDDED) in [(one.risk, one.utility) for one in found.frontiers]
    assert "embedding, %" in comparison(found).text(200)
    with pytest.raises(SettingsError, match="encoder: 'no-such-bert'"):
        ComparisonSpec.of(config, "custext", ["1,12"], encoder="no-such-bert", **SIZES)


def test_draws_are_between_bounds_that_hold_the_truth(config: ModelConfig, texts: list[Records]) -> None:
    asked = ComparisonSpec.of(config, "mvc", ["1,20"], **SIZES)
    low, high = compare(config, asked, *texts).points
    for one in (low, high):
        figure = one.risks[BAYES]
        assert not figure.exact
        assert figure.lower <= figure.value <= figure.upper
        assert "4,096" in one.more.how
    # At this ε every word stays.
    assert high.risks[BAYES].lower > 0.95 > 0.5 > low.risks[BAYES].lower
    refused = ComparisonSpec.of(config, "truncated_gumbel", ["60,90"], **SIZES)
    for one in compare(config, refused, *texts).points:
        assert one.more.how.count("20 ") == 2


@pytest.mark.long
def test_the_page_is_its_owners(places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    arguments = command(places, "--mechanisms", "custext", "--epsilons", "1,8", "--out", out, "--json")
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    assert main(arguments) == 0
    first, told = capsys.readouterr()
    assert "ε = 1 (1 of 2): attacking" in told
    assert [file.name for file in out.iterdir()] == ["compare.html"]
    assert stat.S_IMODE((out / "compare.html").stat().st_mode) == 0o600
    page = (out / "compare.html").read_text(encoding="utf-8")
    assert "RESTRICTED" in page.splitlines()[0]
    assert "http" not in page.replace("http-equiv", "")
    written = re.findall(r"[a-z]+", first + told)
    assert "attacking" in written
    assert not set(written) & set(NAMES)
    assert main(arguments) == 0
    assert capsys.readouterr().out == first


def test_a_public_text_needs_no_labels(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grids = ("--epsilons", "0.2,2,8,60", "--epsilons", "custext=1,40")
    bare = places / "bare"
    bare.write_text((places / "public").read_text(encoding="utf-8").replace("\tyes", "").replace("\tno", ""))
    without = ("--public", bare, "--labels", "last,none")
    assert main(command(places, "--mechanisms", "custext,tem", *grids, *without, "--json")) == 0
    assert ACCURACY in json.loads(capsys.readouterr().out)["unprotected"]


@pytest.mark.parametrize(
    ("mechanisms", "epsilons", "said"),
    [
        ("custex", ["1,2"], "mechanisms: 'custex'"),
        ("", ["1,2"], "mechanisms: ''"),
        ("custext,custext", ["1,2"], "mechanisms: 'custext' is there twice"),
        ("custext:kk=2", ["1,2"], "mechanism.kk: "),
        ("custext:epsilon=2", ["1,2"], "mechanisms: 'custext:epsilon=2' sets ε"),
        ("custext", [""], "epsilons: []"),
        ("custext", ["1,2", "3,4"], "epsilons: 'all'"),
        ("custext", [], "epsilons: none given for custext"),
        ("custext", ["custext=1,2", "custext=3,4"], "epsilons: 'custext'"),
        ("custext", ["-1,2"], "epsilons: [-1.0, 2.0]"),
        ("custext", ["2,1"], "epsilons: [2.0, 1.0]"),
        ("custext", ["1,1"], "epsilons: [1.0, 1.0]"),
        ("custext", ["1"], "epsilons: [1.0]"),
        ("custext", ["1,x"], "epsilons: '1,x'"),
        ("custext", ["tem=1,2"], "epsilons: 'tem' is not "),
        ("custext,tem", ["tem=1,2"], "epsilons: none given for custext"),
    ],
)
def test_a_wrong_grid_or_name(config: ModelConfig, mechanisms: str, epsilons: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ComparisonSpec.of(config, mechanisms, epsilons)
    assert said in str(caught.value)


@pytest.mark.parametrize(("field", "given"), [("levels", {"levels": "1,0"}), ("attacked", {"attacked": 1})])
def test_other_wrong_settings(config: ModelConfig, field: str, given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=rf"^{field}"):
        ComparisonSpec.of(config, "custext", ["1,2"], **given)


def test_what_cannot_be_compared_is_told_before_anything_is_compiled(
    config: ModelConfig, texts: list[Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dptext_spark.audit.comparison.load_lexicons", None)
    asked = ComparisonSpec.of(config, "custext,tem", ["custext=1,2", "tem=0,1"], **SIZES)
    chosen = config.model_copy(update={"importance": Importance(percent=30)})
    wrong = (
        ("epsilons: tem", config, texts[0]),
        ("public", config, texts[1]),
        ("importance", chosen, texts[0]),
    )
    for field, settings, public in wrong:
        with pytest.raises(SettingsError, match=f"^{field}"):
            compare(settings, asked, public, texts[1])


def test_an_epsilon_that_is_refused_leaves_the_others(config: ModelConfig, places: Path) -> None:
    unlabelled = [read_records(places / name, name) for name in ("public", "private")]
    asked = ComparisonSpec.of(config, "custext,tem", ["0,1,2"], **SIZES)
    found = compare(config, asked, *unlabelled)
    points = [(point.mechanism, point.epsilon) for point in found.points]
    assert points == [*(("custext", epsilon) for epsilon in (0.0, 1.0, 2.0)), ("tem", 1.0), ("tem", 2.0)]
    assert [refused[:2] for refused in found.refused] == [("tem", 0.0)]


def test_laws_that_are_compiled_together_give_the_points_of_each_alone(
    config: ModelConfig, texts: list[Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ComparisonSpec.of(config, "santext,tem", ["0.5,2"], **SIZES)
    monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", 10)
    steps: list[str] = []
    together = compare(config, asked, *texts, progress=lambda step, share: steps.append(step))
    compiling = [step.split("compiling")[1] for step in steps if "compiling" in step]
    assert compiling == [" 4 laws together", "", "", ""]
    monkeypatch.setattr("dptext_spark.audit.comparison_input.words_of", lambda text: None)
    assert together.points == compare(config, asked, *texts).points
    assert "drawn from the prior" in together.points[0].more.how


def test_processor_counts(config: ModelConfig, texts: list[Records], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ComparisonSpec.of(config, "diffractor,mvc,tem", ["2,8"], **SIZES)
    monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", 10)
    monkeypatch.setattr("dptext_spark.audit.attacks.attacked_text.DRAWN", 100)
    found = []
    for processors in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda number=processors: number)
        found.append(compare(config, asked, *texts).points)
    assert found[0] == found[1]


def test_settings_of_the_file_are_those_of_the_mechanism_that_it_names(config: ModelConfig) -> None:
    named = "custext,custext:k=4,custext:mapping=aggressive,tem"
    curves: dict[str, Any] = ComparisonSpec.of(config, named, ["1,2"]).curves
    assert [curves[name].k for name in list(curves)[:3]] == [8, 4, 8]
    assert curves["custext:mapping=aggressive"].mapping == "aggressive"


def test_one_class_of_labels(
    config: ModelConfig, places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is told before anything else.
    monkeypatch.setattr("dptext_spark.audit.comparison.load_lexicons", None)
    lines = (places / "private").read_text(encoding="utf-8").replace("\tyes", "\tno").splitlines()
    asked = ComparisonSpec.of(config, "custext", ["1,2"], **SIZES)
    public = read_records(places / "public", "public", "last")
    # Another label that is only tested does not help.
    tested = [*lines[:3], lines[3].replace("\tno", "\tyes"), *lines[4:]]
    one_class, few = "labels: 1 class in 90 rows", "private: 3 records with labels"
    for text, message in ((lines, one_class), (tested, one_class), (lines[:3], few)):
        (tmp_path / "private").write_text("\n".join(text), encoding="utf-8")
        with pytest.raises(DataError, match=f"^{message}"):
            compare(config, asked, public, read_records(tmp_path / "private", "private", "last"))


def test_texts_without_words(config: ModelConfig, places: Path) -> None:
    asked = ComparisonSpec.of(config, "custext", ["1,2"], **SIZES)
    text = read_records(places / "public", "public")
    for empty in (["", " "], ["zzzz, 12", "!"]):
        nothing = Records(pa.array(empty), None)
        with pytest.raises(DataError, match="public: no word is in the lexicon"):
            compare(config, asked, nothing, text)
        with pytest.raises(DataError, match="private: the policy would draw no word"):
            compare(config, asked, text, nothing)


def test_the_sizes_are_by_default_those_of_the_adversary() -> None:
    assert (ComparisonSpec.few, ComparisonSpec.draws) == (FEW, DRAWS)


V = 600
MADE: dict[str, Any] = {
    "custext": CusText(k=5),
    "santext": SanText(),
    "tem": TEM(),
    "tem, narrow": TEM(gamma=1.5),
    "santext+": SanText(sensitive=0.5),
    "tem, exact": TEM(calibration="exact"),
    "geometric": Diffractor(),
    "on lists": Diffractor(form="tem"),
    "two lists": Diffractor(lists=2),
}
TOGETHER = {"santext", "tem", "tem, narrow"}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, 4, 3)


def test_it_draws_as_each_alone(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    inner = diffractor.several_walks

    def counted(embeddings: Any, each: int, seed: int) -> Any:
        walks.append(each)
        return inner(embeddings, each, seed)

    drawn = np.arange(0, V, 3, dtype=np.int32)
    ids = np.resize(drawn, 2_000)
    draws = Draws(bytes(32), np.arange(4_000, dtype=np.uint64).reshape(2_000, 2))
    alone = {
        (name, epsilon): replace(one, epsilon=epsilon).compile(lexicon).sample(ids, draws)
        for name, one in MADE.items()
        for epsilon in (0.8, 3.0)
    }
    monkeypatch.setattr(diffractor, "several_walks", counted)
    grid = SamplerGrid((lexicon,), MADE, alone, drawn)
    for (name, epsilon), wanted in alone.items():
        made: Any = grid.sampler(name, epsilon)
        np.testing.assert_array_equal(made.sample(ids, draws), wanted, err_msg=name)
        assert (isinstance(made, ExponentialSampler) and made.place is not None) == (name in TOGETHER)
    assert walks == [1, 2]  # once for both forms, once for two lists


def test_where_every_law_is_needed_rows_are_made_for_all(lexicon: Lexicon) -> None:
    made: Any = SamplerGrid((lexicon,), MADE, [("tem", 1.0)], None).sampler("tem", 1.0)
    assert made.place is None
    assert made.law(V - 1) is not None


def test_what_does_not_fit_the_lexicon_is_refused(lexicon: Lexicon) -> None:
    grid = SamplerGrid((lexicon,), {"custext": CusText(k=V + 1)}, [("custext", 1.0)], None)
    with pytest.raises(SettingsError, match=r"mechanism\.k"):
        grid.sampler("custext", 1.0)
