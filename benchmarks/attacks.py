"""The attacks on one core: the contextual adversary in words a second, and what the Bayes adversary takes for a lexicon."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.engine import one_core
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient
from benchmarks.plain_chain import plain_guesses
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.attacks.context import posterior_guesses
from dptext_spark.audit.attacks.posterior import candidates
from dptext_spark.audit.attacks.tokens import Tokens, simulate
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn, zipf
from dptext_spark.mechanisms import CusText

K = 20
EPSILON = 1.0
PUBLIC = 5  # public words for each word that is attacked
TOGETHER = 0.3  # the share of words that the word before decides
GOAL = Goal(20_000.0, 20_000.0, "value", at_least=True)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure the attacks with every lexicon that is here."""
    section = Section("attacks", f"Attacks on CusText, K = {K}, ε = {EPSILON:g}, every word drawn, one core")
    found, section.skipped = lexicons(sizes.lexicon_words)
    with one_core() as core:
        section.facts = {"core": core, "texts": {}}
        for name, lexicon in found:
            say(f"attacks: {name} lexicon")
            _lexicon(section, f"{name} {len(lexicon):,}", lexicon, sizes)
    return section


def _lexicon(section: Section, shown: str, lexicon: Lexicon, sizes: Sizes) -> None:
    """Add the figures of one lexicon."""
    sampler = CusText(epsilon=EPSILON, k=min(K, len(lexicon) // 2)).compile(lexicon)
    rows = max(2, sizes.rows // 10)
    words, bounds = running_words(len(lexicon), rows, sizes.words_a_row, 0)
    model = Bigrams.of(*running_words(len(lexicon), PUBLIC * rows, sizes.words_a_row, 1), len(lexicon))
    tokens = simulate(sampler, words, np.ones(len(words), np.bool_), bounds)
    prior = of_drawn(model.unigram[: len(lexicon)], None)
    plausible = candidates(sampler, prior, tokens.outputs)
    few = Tokens(*(x[: bounds[max(1, rows // 50)]] for x in (tokens.words, tokens.outputs, tokens.drawn)),
                 bounds[: max(1, rows // 50) + 1])  # fmt: skip
    guesses, _ = posterior_guesses(tokens, plausible, model)
    ours, theirs = in_turn(
        sizes.long_rounds,
        lambda: posterior_guesses(tokens, plausible, model),
        lambda: plain_guesses(few, plausible, model),
    )
    value = Spread(tuple(len(tokens.words) / seconds for seconds in ours))
    peer = Spread(tuple(len(few.words) / seconds for seconds in theirs))
    section.figures.append(
        Figure(
            f"{shown}, contextual adversary", "words/s", value, "NumPy, record by record", peer, quotient(value, peer),
            "x faster", (GOAL,),
        )
    )  # fmt: skip
    lexicon_wide, one_text = in_turn(
        sizes.long_rounds,
        lambda: bayes_attack(sampler, len(lexicon)),
        lambda: candidates(sampler, zipf(len(lexicon)), tokens.outputs),
    )
    section.figures.append(Figure(f"{shown}, Bayes adversary, whole lexicon", "s", Spread(lexicon_wide)))
    section.figures.append(Figure(f"{shown}, candidates of every output", "s", Spread(one_text)))
    section.facts["texts"][shown] = {
        "words": len(tokens.words),
        "public_words": model.tokens,
        "public_pairs": len(model.following),
        "candidates_a_word": float(np.diff(plausible.starts)[plausible.slot[tokens.outputs]].mean()),
        "guessed": float((guesses == tokens.words).mean()),
    }


def running_words(
    words: int, rows: int, words_a_row: int, seed: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return (ids, bounds) of rows of words: by Zipf's law, and some by what often follows the word before."""
    followers = np.random.default_rng(0).permutation(words).astype(np.int32)
    random = np.random.default_rng([seed, words])
    law = np.cumsum(zipf(words))
    ids = np.searchsorted(law, random.random((rows, words_a_row))).clip(max=words - 1).astype(np.int32)
    follows = random.random((rows, words_a_row)) < TOGETHER
    for t in range(1, words_a_row):
        ids[:, t] = np.where(follows[:, t], followers[ids[:, t - 1]], ids[:, t])
    return ids.ravel(), np.arange(0, ids.size + 1, words_a_row, dtype=np.int64)
