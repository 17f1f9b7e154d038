"""SST-2 as a task: its sentences with their labels, and what a classifier makes of them once words are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from benchmarks.sources import row_ids, shared_file, texts
from dptext_spark.audit.results import Estimate
from dptext_spark.audit.text_classifier import TextClassifier, accuracy
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import NO_IDENTIFIERS, Policy

KEY = RunKey.insecure(0)  # the sentences are public
MADE = 4_000  # training sentences
Made = tuple[Lexicon, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Sentences with labels.

    Attributes:
        train: the sentences to learn from.
        train_labels: theirs.
        test: the sentences to predict.
        test_labels: theirs.
        name: what they are.
    """

    train: pa.StringArray
    train_labels: list[str]
    test: pa.StringArray
    test_labels: list[str]
    name: str

    @classmethod
    def sst2(cls, lexicon: Lexicon, most: int | None) -> tuple[Task, list[str]]:
        """Return SST-2, or made-up sentences where it is missing.

        Args:
            lexicon: of whose words texts are made where SST-2 is not here.
            most: training sentences, and a quarter as many test sentences; None takes all there are.

        Returns:
            (the task, why it is another one).
        """
        parts = []
        for part, rows in (("train", most), ("test", most and most // 4)):
            file, reason = shared_file(f"sst2/{part}.tsv")
            if file is None:
                return cls._made(lexicon, most or MADE), [reason]
            lines = file.read_text(encoding="utf-8").splitlines()[:rows]
            pairs = [line.rsplit("\t", 1) for line in lines]
            parts += [pa.array([text for text, _ in pairs], pa.string()), [label for _, label in pairs]]
        return cls(*parts, "SST-2"), []

    def first(self, most: int) -> Task:
        """Return the first training sentences, and a third as many test sentences."""
        third = most // 3
        return Task(
            self.train[:most],
            self.train_labels[:most],
            self.test[:third],
            self.test_labels[:third],
            self.name,
        )

    @classmethod
    def _made(cls, lexicon: Lexicon, most: int) -> Task:
        """Return rows of words, labelled by whether the first word is among the frequent half of the lexicon."""
        made = texts(lexicon, most + most // 4, 12).to_pylist()
        frequent = set(lexicon.vocabulary.strings()[: len(lexicon) // 20].to_pylist())
        labels = [str(int(row.split()[0].lower() in frequent)) for row in made]
        return cls(
            pa.array(made[:most]), labels[:most], pa.array(made[most:]), labels[most:], "made-up sentences"
        )

    def privatized(self, made: Made, stop_words: str) -> tuple[list[str], list[str]]:
        """Return (training sentences, test sentences) with their words replaced; `made` is a lexicon and a sampler."""
        privatizer = Privatizer(*made, policy(stop_words))
        whole = pa.concat_arrays([self.train, self.test])
        out, _ = privatizer.privatize(whole, column="text", row_ids=row_ids(len(whole)), key=KEY)
        rows = out.to_pylist()
        return rows[: len(self.train)], rows[len(self.train) :]

    def accuracy(self, train: list[str], test: list[str]) -> Estimate:
        """Train and test a classifier; return its accuracy with an interval over the test sentences."""
        model = TextClassifier().fit(train, self.train_labels)
        return accuracy(model.predict(test) == model.places(self.test_labels))


def policy(stop_words: str) -> Policy:
    """Return a policy that keeps unknown words and numbers; stop words `keep` or `draw`."""
    whitespace = Policy(tokenizer="whitespace", identifiers=NO_IDENTIFIERS)
    return replace(whitespace, stop_words=stop_words, oov="keep", numbers="keep")  # type: ignore[arg-type]


def shares(found: Estimate) -> tuple[float, str]:
    """Return a figure and its interval as table cells."""
    return found.value, f"{found.lower:.3f}-{found.upper:.3f}"


Say = Callable[[str], None]
