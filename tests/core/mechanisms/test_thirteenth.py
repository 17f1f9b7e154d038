"""A mechanism that this package does not have, written in one file and put into the registry: everything takes it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from dptext_spark.audit.attacks.adversary import adversary, bayes_vulnerability
from dptext_spark.audit.deniability import measure
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_model_config
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import zipf
from dptext_spark.mechanisms import MECHANISMS, Law, Mechanism
from dptext_spark.mechanisms.base import TOTAL, Sampler, Summary
from dptext_spark.mechanisms.parameters import number
from dptext_spark.mechanisms.privacy_loss.loss import Loss
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.certificate import certify
from dptext_spark.model.compile import prepare
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import Draws
from dptext_spark.rounding import exact
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.names import names, scattered

V = 24


@dataclass(frozen=True, eq=False)
class ResponseSampler(Sampler):
    """Randomised response: the word itself by one integer out of 2^63, each other word by another one."""

    ARRAYS = ("weight",)
    cost = "constant: one division"
    certified_by = "exact: every pair has the same loss"
    compiles_quickly = True

    weight: npt.NDArray[np.uint64]
    guarantee: Guarantee
    summary: Summary = field(default_factory=Summary)

    def sample(self, ids: npt.NDArray[np.int32], draws: Draws) -> npt.NDArray[np.int32]:
        itself, other, words = (int(one) for one in self.weight)
        drawn = (draws.u64(0) >> np.uint64(1)).astype(np.int64)
        place = ((drawn - itself) // other).astype(np.int32)
        return np.where(drawn < itself, ids, (ids + 1 + place) % words).astype(np.int32)

    def law(self, word_id: int) -> Law:
        weight = np.full(int(self.weight[2]), self.weight[1], np.uint64)
        weight[word_id] = self.weight[0]
        return Law(np.arange(len(weight), dtype=np.int32), weight, weight / TOTAL)

    def worst_loss(self, words: int, progress: Any = None, sample: int | None = None) -> Loss:
        value = math.log(int(self.weight[0])) - math.log(int(self.weight[1]))
        pairs = words * (words - 1) // 2
        return Loss(
            value + 1e-12, value - 1e-12, pairs, pairs, (0, 1), "the ratio of two integers", closed=True
        )


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Any word as likely as any other, but for the word itself."""

    name: ClassVar[str] = "randomized_response"
    paper: ClassVar[str] = "Warner 1965, Randomized Response"
    protects: ClassVar[str] = "ε between any two words"
    sampler: ClassVar[type[Sampler]] = ResponseSampler

    epsilon: float = number(1.0, "The bound.", above=0.0, most=20.0)

    def compile(self, lexicon: Lexicon) -> ResponseSampler:
        words = len(lexicon)
        other = math.ceil(TOTAL / (math.exp(self.epsilon - 1e-9) + words - 1))  # room for what logarithms err
        weight = np.array([TOTAL - other * (words - 1), other, words], np.uint64)
        said = f"Any two words lead to any output with probabilities within e^{exact(self.epsilon)} of each other."
        return ResponseSampler(weight, Guarantee("epsilon_dp", self.epsilon, sentence=said))


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    MECHANISMS["randomized_response"] = RandomizedResponse
    yield
    del MECHANISMS["randomized_response"]


@pytest.fixture
def lexicon() -> Lexicon:
    return scattered(V, 3, 3)


def test_it_is_compiled_kept_certified_and_previewed(lexicon: Lexicon, tmp_path: Path) -> None:
    lexicon.save(tmp_path / "lexicon")
    mechanism = {"name": "randomized_response", "epsilon": 1.5}
    source = {"source": str(tmp_path / "lexicon")}
    made, folder = prepare(parse_model_config({"mechanism": mechanism, "lexicon": source}))
    ids = np.arange(V, dtype=np.int32).repeat(50)
    first, second = (one.sampler.sample(ids, draws_of(len(ids))) for one in (made, open_model(folder)))
    assert (first == second).all()
    found = certify(made)
    assert found.verdict == "confirmed"
    assert found.loss.value == pytest.approx(1.5, abs=1e-8)
    assert [word.action for word in preview(made, " ".join(names(3))).words] == ["drawn"] * 3
    save_model(Privatizer(lexicon, made.sampler), tmp_path / "copy")
    assert open_model(tmp_path / "copy").guarantee().kind == "epsilon_dp"


def test_audits_read_its_law(lexicon: Lexicon) -> None:
    sampler, prior = RandomizedResponse(2.0).compile(lexicon), zipf(V)
    stays = math.exp(2.0) / (math.exp(2.0) + V - 1)
    unchanged, *_ = measure(sampler, np.arange(V, dtype=np.int32), V)
    assert unchanged.exact
    assert unchanged.of.values == pytest.approx(np.full(V, stays))
    law = np.where(np.eye(V, dtype=bool), stays, (1 - stays) / (V - 1))
    best = pytest.approx((prior[:, None] * law).max(axis=0).sum())
    assert adversary(sampler, prior).alone.value == best
    assert bayes_vulnerability(sampler, prior, 0.95).token.value == best


def test_the_command_line_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "randomized_response", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["cost"] == ResponseSampler.cost
    assert record["certificate"] == ResponseSampler.certified_by
