"""1-Diffractor: words form lists, near words close together, and a draw moves along a list.

Paper: Meisenbacher et al. 2024, "1-Diffractor: Efficient and Utility-Preserving Text Obfuscation Leveraging Word-Level Metric
Differential Privacy". Formula: a list is a greedy walk to the nearest word left (Euclidean) from a random start; i and j are
positions 0 to V-1. The form geometric (1-D_G) is i + X kept within the list, P(X = x) = (e^ε-1)/(e^ε+1)·e^(-ε|x|). The form tem
(1-D_T) is P(j|i) ∝ exp(-ε·min(|i-j|, G)/2), G = (2/ε)·ln((1-β)(V-1)/β), the paper's gamma. Several lists: a list is drawn
uniformly, then the word in it. The law is the average of the lists' laws. Guarantee: metric DP, ε·d with d the largest distance
of the two words in any list. The bound holds because every list has the same words. Deviations: each step of a walk is exact (a
public implementation takes any word once the 50 nearest are used up). Positions end at V-1 (the paper's |V| is one too many). G
is that of the formula (the public package has 5). Several embeddings are cut down to their common words, without which the bound
does not hold. The law is in integers out of 2^63. To keep their rounding within the bound, a share of it (`floor` of the
summary, about 1e-12) is uniform. For ε below about 1e-10 the whole law is uniform.

Lists of words: a greedy walk that always goes to the nearest word not yet visited, exactly.

Almost every step is decided among a word's nearest neighbours, found beforehand in float32. A step uses them
only if no other word can be as near, given the largest error of that search (see
:mod:`dptext_spark.lexicon.neighbors`). Otherwise the rest of the list is scanned, and each distance is
abandoned once it is too long. Compared distances are squares in float64, summed in one fixed order. The list
does not depend on the processor, on threads or on the search.

The search measures each pair of vectors once. A plain search of V vectors among themselves makes V² products. Distances are
symmetric, so half of them suffice. Each tile takes a matrix product; a scan files every number under its row and its column.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dptext_spark.arrays import F32, I32, Ids, Vectors
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon, same_words
from dptext_spark.lexicon.neighbors import LARGEST_SQUARE, UNDERFLOW, Metric, rounding, squared_lengths
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, integer, number
from dptext_spark.mechanisms.privacy_loss.exact_losses import by_steps
from dptext_spark.mechanisms.privacy_loss.loss import Calibration, calibrate, calibration_choice
from dptext_spark.mechanisms.remap import Remap, Remappable, released, remap_choice
from dptext_spark.mechanisms.samplers.ordering import (
    OrderingSampler,
    OrderingSummary,
    Window,
    floor_share,
    radius,
)
from dptext_spark.runtime.jit import Int, compiled, inlined, squared_gap

TILE = 512
CHUNK = 64  # numbers that are looked at together
PART = 128  # columns that are looked at together, row after row


def all_neighbors(vectors: F32, count: int) -> tuple[I32, F32]:
    """Return the nearest vectors of each, itself among them, by float32.

    A square is |x|² + |y|² - 2<x,y>, computed in float32 from rounded lengths. It errs by at most (d+3)·2^-24·(|x|+|y|)² in any
    order of summation; :func:`~dptext_spark.lexicon.neighbors.rounding` bounds this.

    Args:
        vectors: float32[V, d], C order, with squared lengths that float32 holds.
        count: K, 1 to V.

    Returns:
        (ids int32[V, K], squared distances float32[V, K], ascending); none that is left out has a lower square than the last.
    """
    words = len(vectors)
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64).astype(np.float32)
    ids = np.full((words, count), -1, np.int32)
    near_squares = np.full((words, count), np.inf, np.float32)
    bars = np.full(words, np.inf, np.float32)  # the last square of each row

    def look(tile: tuple[int, int]) -> None:
        i, j = tile
        products = vectors[i : i + TILE] @ vectors[j : j + TILE].T
        _rows(products, squares, i, j, ids, near_squares, bars)
        if j > i:
            _columns(products, squares, i, j, ids, near_squares, bars)

    # A thread that makes its own products waits for no other; left to itself, each product would take every thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool, threadpool_limits(1, "blas"):
        for tiles in _rounds(-(-words // TILE)):
            list(pool.map(look, tiles))
    return ids, near_squares


def _rounds(blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield every tile once, as its first row and column, in rounds in which no block of words occurs twice.

    So no two threads write to one word: the circle method of a round-robin tournament.
    """
    yield [(block * TILE, block * TILE) for block in range(blocks)]
    turns = blocks - 1 + blocks % 2  # with an odd number, one block rests in each round
    for turn in range(turns):
        others = [((turn + step) % turns, (turn - step) % turns) for step in range(1, (turns + 1) // 2)]
        pairs = [*others, *([] if blocks % 2 else [(turn, turns)])]
        yield [(min(pair) * TILE, max(pair) * TILE) for pair in pairs]


@inlined
def _insert(word: Int, other: Int, square: Any, ids: Any, found: Any, bars: Any) -> None:
    """Put one more into the ascending list of a word."""
    at = found.shape[1] - 1
    while at > 0 and found[word, at - 1] > square:
        found[word, at] = found[word, at - 1]
        ids[word, at] = ids[word, at - 1]
        at -= 1
    found[word, at] = square
    ids[word, at] = other
    bars[word] = found[word, found.shape[1] - 1]


@compiled
def _rows(products: Any, squares: Any, i: Int, j: Int, ids: Any, found: Any, bars: Any) -> None:
    """Look at a tile for the words of its rows, i and on; its columns are words from j on."""
    rows, width = products.shape
    for row in range(rows):
        word = i + row
        mine, part, others = squares[word], products[row], squares[j : j + width]
        for start in range(0, width, CHUNK):
            end = min(start + CHUNK, width)
            bar = bars[word]
            if end == start + CHUNK:
                # A fixed number of turns and 32 bits a turn: this compiles to vector comparisons.
                hits = np.int32(0)
                for c in range(CHUNK):
                    square = (mine + others[start + c]) - np.float32(2.0) * part[start + c]
                    hits |= np.int32(square < bar)
                if hits == 0:
                    continue
            for c in range(start, end):
                square = (mine + others[c]) - np.float32(2.0) * part[c]
                if square < bars[word]:
                    _insert(word, j + c, square, ids, found, bars)


@compiled
def _columns(products: Any, squares: Any, i: Int, j: Int, ids: Any, found: Any, bars: Any) -> None:
    """Look at a tile for the words of its columns, j and on; its rows are words from i on."""
    rows, width = products.shape
    for start in range(0, width, PART):
        end = min(start + PART, width)
        for row in range(rows):
            mine, part = squares[i + row], products[row, start:end]
            others, limits = squares[j + start : j + end], bars[j + start : j + end]
            if end == start + PART:
                hits = np.int32(0)
                for c in range(PART):
                    square = (mine + others[c]) - np.float32(2.0) * part[c]
                    hits |= np.int32(square < limits[c])
                if hits == 0:
                    continue
            for c in range(end - start):
                square = (mine + others[c]) - np.float32(2.0) * part[c]
                if square < limits[c]:
                    _insert(j + start + c, i + row, square, ids, found, bars)


NEIGHBORS = 64  # of each word, found beforehand
SHRINK = 4  # neighbours are searched anew among the words left, once these are so many times fewer
FEW = 512  # fewer words than these are scanned
LENGTH_ERROR = 1e-9  # relative, of a computed length or distance: more than rounding can cause


def start_words(words: int, count: int, seed: int) -> list[int]:
    """Return the ids that `count` walks start from, made from a public seed.

    Returns:
        Ids from 0 to V-1; distinct ones, as long as there are any.
    """
    starts: list[int] = []
    for index in range(count):
        digest = hashlib.sha256(f"list {index} of seed {seed}".encode()).digest()
        start = int.from_bytes(digest, "little") % words
        while start in starts and len(starts) < words:
            start = (start + 1) % words
        starts.append(start)
    return starts


def several_walks(embeddings: Sequence[Vectors], each: int, seed: int) -> tuple[list[int], Ids]:
    """Walk `each` times over each embedding of the same V words.

    Args:
        embeddings: float32[V, d] each; d may differ.
        each: lists of each embedding.
        seed: public, of the start words.

    Returns:
        (starts, order int32[L, V]), L = each times the embeddings, as :func:`start_words` and :func:`orderings` give them.
    """
    starts = start_words(len(embeddings[0]), each * len(embeddings), seed)
    orders = [orderings(vectors, starts[n * each : (n + 1) * each]) for n, vectors in enumerate(embeddings)]
    return starts, np.concatenate(orders)


def orderings(vectors: Vectors, starts: Sequence[int]) -> Ids:
    """Walk from each start: the next word is the nearest one not yet visited, by Euclidean distance, ties by id.

    Source: Meisenbacher et al. 2024, 1-Diffractor (a public implementation takes any word where the 50 nearest are used up).

    Args:
        vectors: float32[V, d], C order, finite; may be memory-mapped.
        starts: L row ids.

    Returns:
        int32[L, V]: the words of each list in order; each list holds every word once.
    """
    words, size = vectors.shape
    flat = np.ascontiguousarray(vectors).reshape(-1)
    lengths = np.sqrt(squared_lengths(vectors))
    searchable = float(lengths.max()) ** 2 <= LARGEST_SQUARE
    everything = np.arange(words, dtype=np.int32)
    first = _neighbors(vectors, everything, searchable)
    orders = np.empty((len(starts), words), np.int32)
    for order, start in zip(orders, starts, strict=True):
        order[0], done, pool, near = start, 1, everything, first
        visited = np.zeros(words, np.bool_)
        row_of = np.arange(words, dtype=np.int32)
        while True:
            # The last word visited still asks for the next one.
            visited[order[: done - 1]] = True
            stop = words if len(pool) <= FEW else words - len(pool) // SHRINK
            _walk(flat, size, lengths, rounding(size), pool, row_of, *near, visited, order, done, stop)
            done = stop
            if done == words:
                break
            visited[order[: done - 1]] = True
            pool = everything[~visited]
            row_of[pool] = np.arange(len(pool), dtype=np.int32)
            near = _neighbors(vectors, pool, searchable)
    return orders


def _neighbors(vectors: Vectors, pool: Ids, searchable: bool) -> tuple[Ids, Vectors]:
    """Return the nearest words of each word of the pool in it, by float32: ids and squared distances [p, k], ascending.

    If scanning is quicker, or float32 squares overflow, k is 0.
    """
    count = min(len(pool), NEIGHBORS + 1) if searchable and len(pool) > FEW else 0
    if not count:
        return np.empty((len(pool), 0), np.int32), np.empty((len(pool), 0), np.float32)
    near, squares = all_neighbors(vectors if len(pool) == len(vectors) else vectors[pool], count)
    return pool[near], squares


@inlined
def _squared_up_to(flat: Any, size: Int, i: Int, j: Int, limit: float) -> Any:
    """Return the squared distance of rows i and j, or a part of it that already exceeds `limit`.

    Each of the eight sums only grows, and rounding keeps the order: a part is never more than the whole.
    """
    whole = size - size % 8
    some = whole // 8 * 5 // 8 * 8
    if some > 0:
        part = squared_gap(flat, i * size, j * size, some)
        if part > limit:
            return part
    total = squared_gap(flat, i * size, j * size, whole)
    for k in range(whole, size):
        gap = np.float64(flat[i * size + k]) - np.float64(flat[j * size + k])
        total += gap * gap
    return total


@compiled
def _walk(
    flat: Any, size: Int, lengths: Any, error: float, pool: Any, row_of: Any, near: Any, score: Any, visited: Any,
    order: Any, done: Int, stop: Int,
) -> None:  # fmt: skip
    """Fill order[done:stop] of int32[V], beginning at order[done - 1].

    `error` is the relative error of `score` float32[p, k], the squared distances of `near` int32[p, k], neighbours within the
    pool. No word outside has a lower one than the last. `pool` int32[p] are the words not yet visited, and the one to begin at;
    `row_of` int32[V] is where a word stands in it. `flat` is float32[V * d], `lengths` float64[V]; `visited` bool[V] is kept up
    to date.
    """
    left = pool.copy()  # those not yet visited, in any order
    place = row_of.copy()
    many = left.shape[0]
    k = near.shape[1]
    word = np.int64(order[done - 1])
    for step in range(done, stop):
        visited[word] = True
        many -= 1
        place[left[many]] = place[word]
        left[place[word]] = left[many]
        best = np.inf
        chosen = np.int64(-1)
        row = row_of[word]
        decided = False
        for c in range(k):
            other = np.int64(near[row, c])
            # A word as near as the best one is at most so long, and its score errs by at most this.
            reach = 2.0 * lengths[word] + math.sqrt(best)
            if np.float64(score[row, c]) > best + (error * reach * reach + size * UNDERFLOW):
                decided = True
                break
            if not visited[other]:
                square = _squared_up_to(flat, size, word, other, best)
                if square < best or (square == best and other < chosen):
                    best, chosen = square, other
        if not decided:
            for c in range(many):
                other = np.int64(left[c])
                apart = abs(lengths[word] - lengths[other]) - LENGTH_ERROR * (lengths[word] + lengths[other])
                if apart > 0.0 and apart * apart > best:
                    continue  # vectors are no nearer than their lengths
                square = _squared_up_to(flat, size, word, other, best)
                if square < best or (square == best and other < chosen):
                    best, chosen = square, other
        order[step] = chosen
        word = chosen


Form = Literal["geometric", "tem"]
Preset = Literal["none", "L0", "L1", "L2"]
PRESETS = {"none": None, "L0": (1, 5), "L1": (2, 5), "L2": (1, 1)}  # lists of each embedding, embeddings
MAX_LISTS = 64  # of each embedding
MAX_EMBEDDINGS = 16
MAX_SEED = 2**63 - 1


class Lists(NamedTuple):
    """The vectors of a walk.

    Attributes:
        embeddings: how many.
        starts: the word that each list begins at.
        order: int32[L, V], the words of each list.
    """

    embeddings: int
    starts: list[int]
    order: Ids


@dataclass(frozen=True)
class Diffractor(Remappable):
    """The parameters of 1-Diffractor.

    Examples:
        >>> mechanism = dp.Diffractor(epsilon=0.5, form="geometric")
        >>> mechanism.protects
        'metric DP: ε for each place between two words of a list'
    """

    name: ClassVar[str] = "diffractor"
    paper: ClassVar[str] = (
        "Meisenbacher et al. 2024, 1-Diffractor: Efficient and Utility-Preserving Text Obfuscation Leveraging Word-Level "
        "Metric Differential Privacy"
    )
    protects: ClassVar[str] = "metric DP: ε for each place between two words of a list"
    sampler: ClassVar[type[Sampler]] = OrderingSampler

    epsilon: float = number(1.0, "ε for each place between two words of a list.", least=LEAST_EPSILON)
    form: Form = choice(Form, "geometric", "Law along a list; TEM at ε is close to geometric at ε/2.")
    lists: int = integer(1, "Lists for each embedding; each begins at another word.", least=1, most=MAX_LISTS)
    list_seed: int = integer(
        0, "Seed of the words at which lists begin; public, and shown in the summary.", least=0, most=MAX_SEED
    )
    preset: Preset = choice(
        Preset,
        "none",
        "Configuration of the paper. `L0`: one list for each of five embeddings. `L1`: two for each of five. `L2`: one list, one "
        "embedding. `lexicon.more` names the further embeddings.",
    )
    beta: float = number(
        0.001, "β of TEM: the greatest share of draws farther away than the formula's γ.", above=0, below=1
    )
    calibration: Calibration = calibration_choice()
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """Minus the squared Euclidean distance, in the first embedding."""
        return "euclidean"

    def __post_init__(self) -> None:
        """Check every parameter, and that the preset has as many lists."""
        super().__post_init__()
        preset = PRESETS[self.preset]
        if preset is not None and self.lists not in (1, preset[0]):
            raise SettingsError(
                f"mechanism.lists: {self.lists} is not valid with preset {self.preset}, because it has {preset[0]} lists. "
                "Remove it, or choose preset none."
            )

    def embeddings(self) -> range:
        """Return the number of lexicons needed: any number, or that of the preset."""
        preset = PRESETS[self.preset]
        return range(1, MAX_EMBEDDINGS + 1) if preset is None else range(preset[1], preset[1] + 1)

    def compile(self, lexicon: Lexicon, *others: Lexicon) -> Any:
        """Return the sampler.

        Args:
            lexicon: V words and their first embedding; its metric is not used, lists are Euclidean.
            others: further embeddings of the same words in the same order.

        Raises:
            SettingsError: not as many lexicons as the preset has, or their words differ.
        """
        return self.over_epsilons(lexicon, *others)(self.epsilon)

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], Any]:
        """Return a function that compiles at another ε, with the lists walked once."""
        return self.along(self.walked(*lexicons), lexicons[0])

    @property
    def lists_of_each(self) -> int:
        """Lists of each embedding: those of the preset, where there is one."""
        return (PRESETS[self.preset] or (self.lists,))[0]

    def walked(self, *lexicons: Lexicon) -> Lists:
        """Walk the lists; they depend on neither ε nor form.

        Raises:
            SettingsError: as of :meth:`compile`.
        """
        self.require_lexicons(len(lexicons))
        if not same_words(lexicons):
            raise SettingsError(
                "lexicon.more: the lexicons differ in their words or in the order of words, so that the guarantee would "
                "not hold. Choose lexicons that are cut down to their common words."
            )
        starts, order = several_walks(
            [lexicon.vectors for lexicon in lexicons], self.lists_of_each, self.list_seed
        )
        return Lists(len(lexicons), starts, order)

    def along(self, walked: Lists, lexicon: Lexicon) -> Callable[[float], Any]:
        """Return a function that compiles at an ε along lists of :meth:`walked` with the same `preset`, `lists`, `list_seed`."""
        count, words = walked.order.shape
        summary = OrderingSummary(
            words=words,
            form=self.form,
            lists=count,
            embeddings=walked.embeddings,
            preset=self.preset,
            list_seed=self.list_seed,
            starts=tuple(walked.starts),
        )

        def sampler(epsilon: float, guarantee: Guarantee) -> OrderingSampler:
            if self.form == "geometric":
                window, beta, gamma = Window.geometric(words, count, epsilon), None, None
            else:
                window = Window.tem(words, count, epsilon, self.beta)
                beta, gamma = self.beta, radius(words, epsilon, self.beta)
            list_summary = replace(
                summary,
                floor=floor_share(words, count, epsilon),
                unchanged_mid_list=window.unchanged(words // 2),
                unchanged_list_end=window.unchanged(0),
                beta=beta,
                gamma=gamma,
            )
            return OrderingSampler.of(walked.order, window, guarantee, list_summary)

        def compile_at(epsilon: float) -> Any:
            guarantee = replace(self, epsilon=epsilon)._guarantee(count)
            calibrated = calibrate(partial(sampler, guarantee=guarantee), epsilon, self.calibration, by_steps)
            return released(self, calibrated, lexicon)

        return compile_at

    def _guarantee(self, count: int) -> Guarantee:
        places = "in the list" if count == 1 else f"in whichever of the {count} lists they are farthest apart"
        return Guarantee(
            "metric_dp",
            float(self.epsilon),
            metric="list places",
            sentence=(
                f"For two words that are d places apart {places}, no output of one draw is more than e^(ε·d) times as likely "
                f"for one as for the other, with ε = {self.epsilon:.16g}. Close neighbours are hard to distinguish, and "
                "distant words are not."
            ),
        )
