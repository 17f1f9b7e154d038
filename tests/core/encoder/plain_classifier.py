"""What a classifier finds, written down plainly: a text at a time, a window at a time, a word at a time."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from dptext_spark.encoder.name_classifier import KIND_OF, type_of
from tests.core.encoder.tiny_classifier import LABELS, POSITIONS

LETTER, MARK = r"[^\W\d_\u0300-\u036f]", r"[\u0300-\u036f]"
WORD = re.compile(rf"{LETTER}(?:{LETTER}|{MARK}|['\u2019-](?={LETTER})|\u200d+(?={LETTER}|{MARK}))*")
GAP, INITIAL_GAP = (re.compile(rf"{stop}[ \u00a0]*-?[ \u00a0]*") for stop in ("", r"\.?"))
POSSESSIVE = re.compile("['\u2019][sS]$")


class PlainName(NamedTuple):
    kind: str
    words: tuple[tuple[int, int, str], ...]  # of each where it begins, where it ends without 's, and its type


class PlainClassifier:
    """Reads texts by the library's own character offsets."""

    def __init__(self, folder: Path) -> None:
        self._cut = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._cut.encode_special_tokens = True
        graph = str(folder / "onnx/model.onnx")
        self._session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])

    def chances(self, ids: list[int]) -> np.ndarray:
        """Return the probabilities of each sub-word in the window in which it stands most centrally."""
        most = POSITIONS - 2
        step = most - most // 4
        starts = [0]
        while starts[-1] + most < len(ids):
            starts.append(min(starts[-1] + step, len(ids) - most))
        found = np.zeros((len(ids), len(LABELS)))
        edges = [0, *((b + a + most) // 2 for a, b in pairwise(starts)), len(ids)]
        for start, first, last in zip(starts, edges, edges[1:], strict=False):
            window = [2, *ids[start : start + most], 3]
            given = {"input_ids": np.array([window]), "attention_mask": np.ones((1, len(window)), np.int64)}
            logits = self._session.run(None, given)[0][0, 1:-1]
            chances = np.exp(logits.astype(np.float64))
            found[first:last] = (chances / chances.sum(axis=1, keepdims=True))[first - start : last - start]
        return found

    def names(self, text: str) -> list[PlainName]:
        """Return the names of a text and their words, in bytes of it."""
        cut = self._cut.encode(text, add_special_tokens=False)
        chances = self.chances(cut.ids)
        byte = [len(text[:place].encode()) for place in range(len(text) + 1)]
        names: list[PlainName] = []
        before, initial, known = 0, False, False
        for match in WORD.finditer(text):
            start, end = match.span()
            best: tuple[int, str, str] | None = None
            inside = [i for i, (a, b) in enumerate(cut.offsets) if a < end and b > start]
            for i in inside:
                if i != inside[0] and cut.tokens[i].startswith("##"):
                    continue
                sums: dict[str, float] = {}
                labels: dict[str, float] = {}
                for label, chance in zip(LABELS, chances[i], strict=True):
                    if name := type_of(label[2:]):
                        sums[KIND_OF[name]] = sums.get(KIND_OF[name], 0.0) + chance
                        labels[name] = labels.get(name, 0.0) + chance
                kind = max(sums, key=lambda one: round(sums[one] * 1024))
                of_kind = (name for name in labels if KIND_OF[name] == kind)
                label = max(of_kind, key=lambda name: round(labels[name] * 1024))
                score = round(sums[kind] * 1024)
                if best is None or score >= best[0]:
                    best = (score, kind, label)
            least = 0.99 if match[0] == match[0].lower() != match[0].upper() else 0.5
            if best is not None and best[0] >= least * 1024:
                word = (byte[start], byte[start + len(POSSESSIVE.sub("", match[0]))], best[2])
                gap = (INITIAL_GAP if initial else GAP).fullmatch(text[before:start])
                if known and gap and names[-1].kind == best[1]:
                    names.append(PlainName(best[1], (*names.pop().words, word)))
                else:
                    names.append(PlainName(best[1], (word,)))
                known = True
            else:
                known = False
            before, initial = end, end - start == 1
        return names

    def wholes(self, text: str) -> list[tuple[int, int, str]]:
        return [(name.words[0][0], name.words[-1][1], name.kind) for name in self.names(text)]

    def parts(self, text: str) -> list[tuple[int, int, str]]:
        """Return where each word of a name begins and ends, and its type; a person's single letter is an initial."""
        words = [(kind, word) for kind, words in self.names(text) for word in words]
        return [(a, b, "initial" if (kind, b - a) == ("person", 1) else part) for kind, (a, b, part) in words]
