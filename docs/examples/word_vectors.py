"""Prepare word vectors of a language for `lexicon.source` (docs/guide/another-language)."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer

from dptext_spark.lexicon.characters import look_up_form


def lower_case(source: str, target: str) -> None:
    """Copy a text file of vectors with each word as dptext looks it up; of equal words the reader keeps the first.

    Args:
        source: a line for each word: the word, a space, its numbers.
        target: the file to write.
    """
    with open(source, encoding="utf-8") as old, open(target, "w", encoding="utf-8") as new:
        for line in old:
            word, space, numbers = line.partition(" ")
            new.write(look_up_form(word) + space + numbers)


def vectors_of_text(corpus: str, target: str, dimensions: int = 100, least: int = 5) -> None:
    """Write vectors of a public text, commonest word first: words are alike if their documents hold the same other words.

    Args:
        corpus: UTF-8, a document a line.
        target: the file to write.
        dimensions: numbers of a vector.
        least: documents that a word of two letters or more must be in.
    """
    with open(corpus, encoding="utf-8") as lines:
        counter = CountVectorizer(binary=True, min_df=least)
        documents = counter.fit_transform(lines).astype(np.float64)
    often = np.asarray(documents.sum(axis=0)).ravel()
    together = (documents.T @ documents).tocoo()
    expected = often[together.row] * often[together.col] / documents.shape[0]
    together.data = np.log(np.maximum(together.data / expected, 1.0))  # positive pointwise mutual information
    reduced = TruncatedSVD(min(dimensions, len(often) - 1), random_state=0).fit_transform(together.tocsr())
    words = counter.get_feature_names_out()
    rows = (
        " ".join([words[i], *(f"{number:.5f}" for number in reduced[i])])
        for i in np.argsort(-often, kind="stable")
    )
    with open(target, "w", encoding="utf-8") as file:
        file.writelines(f"{row}\n" for row in rows)
