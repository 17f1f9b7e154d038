"""Another processor gives every byte: arrays, laws, summaries and draws of the mechanisms, and the noise by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import dptext_spark as dp
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Mechanism
from dptext_spark.mechanisms.samplers.noise import NOISES, lanes_of
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.mechanisms.samplers.test_noise import PARAMETERS, draw, random_bits
from tests.core.mechanisms.samplers.test_noisy_selection import drawn

WORDS, DRAWS = 1_500, 3_000


def near_ties() -> Lexicon:
    """Words of the packaged lexicon, 300 of them a last bit apart from others."""
    whole = Lexicon.default()
    vectors = whole.vectors[:WORDS].copy()
    vectors[1200:] = np.nextafter(vectors[:300], np.float32(9))
    return Lexicon(Vocabulary.of(whole.vocabulary.strings()[:WORDS]), vectors)


def choices() -> Iterator[Mechanism]:
    for epsilon in (0.5, 7.0, 30.0):
        yield dp.Laplace(epsilon)
        for calibration in ("verified", "published"):
            yield dp.TruncatedLaplace(epsilon, calibration=calibration)  # type: ignore[arg-type]
        yield from (dp.Gaussian(epsilon), dp.Gaussian(epsilon, calibration="published"))
    for epsilon in (3.0, 60.0):
        yield from (dp.MVC(epsilon), dp.Mahalanobis(epsilon, 0.6), dp.Projection(epsilon, m=20))
        yield dp.Vickrey(epsilon, 0.4, "mahalanobis")
    yield dp.Vickrey(6.0, 0.4, search="ivf")
    for epsilon in (0.03, 1.7):
        yield from (dp.Diffractor(epsilon, lists=2), dp.Diffractor(epsilon, "tem", lists=2))
    yield from (dp.SanText(0.5), dp.SanText(6.0), dp.TEM(2.0, gamma=3.0))
    yield dp.TruncatedGumbel(400.0, unsafe="published")


def digests() -> str:
    """A hash of each mechanism, of each noise, and of the quantiles of noisy selection."""
    lexicon, found = near_ties(), []
    other = Lexicon(lexicon.vocabulary, np.ascontiguousarray(lexicon.vectors[:, :37]))
    ids = np.arange(DRAWS, dtype=np.int32) % WORDS
    for mechanism in choices():
        more = (other,) if isinstance(mechanism, dp.Diffractor) else ()
        made = mechanism.compile(lexicon, *more)
        total = hashlib.sha256(json.dumps(made.summary.as_dict()).encode())
        for array in made.arrays().values():
            total.update(np.ascontiguousarray(array).tobytes())
        total.update(made.sample(ids, draws_of(DRAWS)).tobytes())
        law = made.law(8)
        total.update(b"" if law is None else law.weight.tobytes())
        found.append(f"{mechanism.name} {mechanism.epsilon:g} {total.hexdigest()[:16]}")
    for noise in NOISES:
        numbers = draw(noise, PARAMETERS[noise], random_bits(2000, lanes_of(noise, 5)), 5)
        found.append(f"{noise} {hashlib.sha256(numbers.tobytes()).hexdigest()[:16]}")
    bits = np.random.default_rng(3).integers(0, 2**64, 3000, dtype=np.uint64)
    quantiles = np.array([drawn(number, end) for number in bits for end in (0.3, 1.5, 7.0)])
    return "\n".join([*found, hashlib.sha256(quantiles.tobytes()).hexdigest()])


@pytest.mark.cluster
def test_every_byte_is_the_same(on_another_processor: Callable[[str], str]) -> None:
    """No vector instructions, one thread, another matrix product, nothing cached."""
    assert on_another_processor("tests.core.mechanisms.test_other_processors.digests") == digests()
