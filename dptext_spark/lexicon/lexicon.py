"""A lexicon: a vocabulary, a vector for each word, and the metric that says what near means.

Several embeddings are cut down to their common words.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F32, F64, Bools, read_only
from dptext_spark.errors import DataError, require_choice
from dptext_spark.lexicon.characters import look_up_form, producible
from dptext_spark.lexicon.neighbors import METRICS, Metric
from dptext_spark.lexicon.prior import PairModel, Prior, of_drawn
from dptext_spark.lexicon.vector_intake import ReadCounts
from dptext_spark.lexicon.vocabulary import Traversable, Vocabulary, read_array
from dptext_spark.runtime.display import counted, cut, line, table
from dptext_spark.runtime.paths import require_empty

MANIFEST_FILE = "manifest.json"
VECTORS_FILE = "vectors.npy"
PRIOR_FILE = "prior.{}.npy"
FORMAT = "dptext-lexicon"
FORMAT_VERSION = 1
ROWS = 1 << 14  # rows checked at once
FIRST_WORDS = 8  # that a notebook shows
PACKAGED = "default"  # what settings call the packaged lexicon
PACKAGED_VERSION = 4  # 1: with remainders of words; 2: with obscenities and slurs; 3: not counter-fitted


@dataclass(frozen=True, eq=False)
class Lexicon:
    r"""V words with their vectors. Public: nothing in it may come from the private text.

    Attributes:
        vocabulary: V distinct words; their order is the order of ties everywhere.
        vectors: float32[V, d], C order, finite; may be memory-mapped.
        metric: `cosine` (a zero vector has cosine 0 to everything) or `euclidean`.
        name: what reports call it.
        counts: what reading it from a file kept and dropped; None where it was not read from one.

    Examples:
        >>> print(len(dp.Lexicon.default().vocabulary), dp.Lexicon.default().vectors.shape)
        21163 (21163, 113)
        >>> from pathlib import Path
        >>> _ = Path("vectors.txt").write_text("cat 1 0 0\ndog 0 1 0\nlorry 0 0 1\n")
        >>> dp.Lexicon.read("vectors.txt", limit=2).save("animals")
        >>> dp.Lexicon.open("animals").vocabulary.strings().to_pylist()
        ['cat', 'dog']
    """

    vocabulary: Vocabulary
    vectors: F32
    metric: Metric = "cosine"
    name: str = "lexicon"
    counts: ReadCounts | None = None
    checked: InitVar[bool] = False  # skips the pass over the vectors, where their hash vouches for them
    _prior: Prior | Callable[[], Prior] | None = field(
        default=None, repr=False
    )  # or how it is had when it is asked for
    _drawn: Bools | None = field(default=None, repr=False)

    def __post_init__(self, checked: bool) -> None:
        """Check the shape, the type and the metric, and that every number is finite.

        Raises:
            SettingsError: an unknown metric.
            DataError: fewer than two words, vectors that do not fit, or a prior of other words.
        """
        require_choice("metric", self.metric, METRICS)
        vectors = self.vectors
        if vectors.dtype != np.float32 or vectors.ndim != 2 or not vectors.flags.c_contiguous:
            raise DataError(
                f"lexicon {self.name}: vectors {vectors.dtype}{list(vectors.shape)} are not valid. Choose float32[V, d] in "
                "C order."
            )
        if vectors.shape[0] != len(self.vocabulary) or vectors.shape[1] == 0:
            raise DataError(
                f"lexicon {self.name}: {len(self.vocabulary):,} words do not fit vectors of shape {list(vectors.shape)}."
            )
        if len(vectors) < 2:
            raise DataError(
                f"lexicon {self.name}: {len(vectors)} usable word(s) are too few. Choose two or more, so that a word can "
                "become another."
            )
        if not checked and not all(
            bool(np.isfinite(vectors[i : i + ROWS]).all()) for i in range(0, len(vectors), ROWS)
        ):
            raise DataError(f"lexicon {self.name}: a vector has a NaN or an infinity.")
        if isinstance(self._prior, Prior):
            self._require_own(self._prior)
        object.__setattr__(self, "vectors", read_only(vectors))

    def __len__(self) -> int:
        """Return V."""
        return len(self.vocabulary)

    def __repr__(self) -> str:
        """Return the name and the sizes."""
        sizes = f"{len(self):,} words", f"{self.dimensions} dimensions"
        return line("Lexicon", cut(repr(self.name), 120), *sizes, self.metric)

    def _repr_html_(self) -> str:
        """Return name, sizes and the first words for a notebook; all are public."""
        words = self.vocabulary.strings().slice(0, FIRST_WORDS).to_pylist()
        rows = [
            ("name", self.name),
            ("words", f"{len(self):,}"),
            ("dimensions", str(self.dimensions)),
            ("metric", self.metric),
            ("first words", ", ".join(map(cut, words))),
        ]
        return table("Lexicon", rows)

    def require_cut_by(self, tokenizer: Literal["words", "whitespace"], field: str = "lexicon") -> None:
        """Refuse words that a tokenizer never cuts out of a text. If drawn, they would be read as numbers, or as several words.

        Raises:
            DataError: it holds such words. :meth:`read` leaves them out.
        """
        strings = self.vocabulary.strings()
        never = np.flatnonzero(~producible(strings, tokenizer))
        if len(never):
            raise DataError(
                f"{field}: policy.tokenizer {tokenizer!r} never cuts {len(never):,} of its {len(self):,} words out of a "
                f"text, the first {strings[int(never[0])].as_py()!r}. Import the lexicon for this tokenizer (dptext lexicon "
                f"import --tokenizer {tokenizer}), or choose another policy.tokenizer."
            )

    @property
    def dimensions(self) -> int:
        """The length d of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def prior(self) -> Prior:
        """Public frequencies of its words; Zipf's law over their order if none were given."""
        if self._prior is None:
            return Prior.by_rank(len(self))
        prior = self._prior if isinstance(self._prior, Prior) else self._prior()
        self._require_own(prior)
        return prior

    def _require_own(self, prior: Prior) -> None:
        if len(prior) != len(self.vocabulary):
            raise DataError(
                f"prior: {len(prior):,} words do not fit lexicon {self.name} with {len(self.vocabulary):,}. Choose a prior "
                "of its words."
            )

    def with_prior(self, prior: Prior | None) -> Lexicon:
        """Return the same lexicon with another prior; its fingerprint stays.

        Args:
            prior: of the same words, in their order; None for Zipf's law over that order.

        Raises:
            DataError: it is of another number of words.

        Examples:
            >>> lexicon.with_prior(None).prior.pairs is None
            True
        """
        return self._with(_prior=prior)

    def without(self, words: Iterable[str]) -> Lexicon:
        """Return the lexicon without some words, in any case: they are neither inputs nor outputs.

        Raises:
            DataError: fewer than two words are left.

        Examples:
            >>> len(lexicon.without(["The", "of"])) == len(lexicon) - 2
            True
        """
        folded = pc.utf8_lower(pc.replace_substring(self.vocabulary.strings(), "\u2019", "'"))
        unfit = pc.is_in(folded, value_set=pa.array(sorted(map(look_up_form, words)), pa.string()))
        remaining = np.flatnonzero(~unfit.to_numpy(zero_copy_only=False)).astype(np.int32)
        if len(remaining) == len(self):
            return self
        return Lexicon(
            Vocabulary.of(self.vocabulary.words(remaining)),
            np.ascontiguousarray(self.vectors[remaining]),
            metric=self.metric,
            name=self.name,
            counts=self.counts,
            checked=True,
            _prior=None if self.prior.is_by_rank else self.prior.of_words(remaining),
        )

    def drawing(self, drawn: Bools) -> Lexicon:
        """Return the same lexicon for a policy that draws some of its words only, bool[V]; see :attr:`drawn_prior`."""
        return self._with(_drawn=drawn)

    def _with(self, **changes: Any) -> Lexicon:
        """Return the same words, with other parts changed than those of the fingerprint."""
        other = replace(self, **changes, checked=True)
        if "fingerprint" in self.__dict__:
            other.__dict__["fingerprint"] = self.fingerprint
        return other

    @property
    def drawn_prior(self) -> F64:
        """Frequency of the words that a policy draws, or of all words without one: float64[V], 0 for others, sums to 1."""
        return of_drawn(self.prior.words, self._drawn)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 (hex) of words, vectors and metric, without the name, the counts and the prior."""
        digest = hashlib.sha256()
        head = f"{FORMAT}\n{self.metric}\n{len(self)} {self.dimensions} {len(self.vocabulary.data)}\n"
        digest.update(head.encode())
        for array, kind in (
            (self.vocabulary.offsets, "<i8"),
            (self.vocabulary.data, "u1"),
            (self.vectors, "<f4"),
        ):
            if array.size:
                digest.update(np.ascontiguousarray(array, dtype=kind).data.cast("B"))
        return digest.hexdigest()

    @classmethod
    def default(cls) -> Lexicon:
        """Return the packaged lexicon: about 21,200 English words, 100 dimensions (see its NOTICE)."""
        return _load(files("dptext_spark.lexicon") / "default", verify=True)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True) -> Lexicon:
        """Open a folder that :meth:`save` wrote, memory-mapped; float16 vectors are widened into memory.

        Args:
            folder: the folder.
            verify: read everything once and compare it with the fingerprint (about a second a gigabyte).

        Raises:
            DataError: a file is missing, incomplete or changed.
        """
        return _load(Path(folder), verify=verify)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str = "auto",
        limit: int | None = None,
        vocabulary: str | Path | Iterable[str] | None = None,
        tokenizer: Literal["words", "whitespace"] = "words",
        metric: Metric = "cosine",
        progress: Callable[[int, int], None] | None = None,
    ) -> Lexicon:
        """Read word vectors from a file of somebody else's; see :mod:`dptext_spark.lexicon.vector_formats`.

        Args:
            path: the file.
            format: one of `vector_formats.FORMATS`, or `auto`: by its first bytes and its name.
            limit: stop after this many kept words.
            vocabulary: keep only these words: an iterable, or the path of a text file with one word a line.
            tokenizer: drop entries that this tokenizer can never produce.
            metric: what near means.
            progress: progress callback, called with (bytes done, bytes in all) after every block. None tells the step on
                stderr in a notebook or terminal.

        Raises:
            SettingsError: an unknown format, tokenizer or metric; a limit below 2.
            DataError: a missing, malformed or truncated file, or fewer than two usable words.
        """
        # Here, not above: the compiled loops of the readers are not needed to open a saved lexicon.
        from dptext_spark.lexicon.vector_formats import read_file

        require_choice("metric", metric, METRICS)
        words, vectors, counts, name = read_file(
            Path(path),
            format=format,
            limit=limit,
            vocabulary=vocabulary,
            tokenizer=tokenizer,
            progress=progress or counted("reading the lexicon"),
        )
        return cls(words, vectors, metric=metric, name=name, counts=counts)

    def save(self, folder: str | Path) -> None:
        """Write the lexicon as a new folder of .npy files and a manifest; the write is atomic.

        Raises:
            SettingsError: `folder` exists and is not empty.
        """
        write_lexicon(self, Path(folder), self.vectors)


def write_lexicon(lexicon: Lexicon, folder: Path, stored: npt.NDArray[Any]) -> None:
    """Write `lexicon` with its vectors as `stored`: themselves, or float16 that widens to exactly them.

    Raises:
        SettingsError: `folder` exists and is not empty.
    """
    require_empty("lexicon", folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "name": lexicon.name,
        "metric": lexicon.metric,
        "words": len(lexicon),
        "dimensions": lexicon.dimensions,
        "fingerprint": lexicon.fingerprint,
        "counts": None if lexicon.counts is None else asdict(lexicon.counts),
    }
    prior = lexicon.prior
    if not prior.is_by_rank:
        manifest["prior"] = {"name": prior.name, "others": list(prior.others), "digest": prior.digest}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as spare:
        draft = Path(spare) / "lexicon"
        lexicon.vocabulary.save(draft)
        np.save(draft / VECTORS_FILE, stored, allow_pickle=False)
        for name, array in ({} if prior.is_by_rank else prior.arrays()).items():
            np.save(draft / PRIOR_FILE.format(name), array, allow_pickle=False)
        (draft / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, folder)


def _load(folder: Path | Traversable, *, verify: bool) -> Lexicon:
    """Open a lexicon folder, on disk or packaged."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        kind, version = manifest["format"], manifest["version"]
    except FileNotFoundError as reason:
        raise DataError(f"{folder}: not a lexicon folder, because {MANIFEST_FILE} is missing.") from reason
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise _damaged(folder) from reason
    if kind != FORMAT or version != FORMAT_VERSION:
        raise DataError(
            f"{folder}: format {kind!r} version {version!r} is not valid. Choose {FORMAT!r} version {FORMAT_VERSION}."
        )
    stored = read_array(folder / VECTORS_FILE)
    vectors = stored.astype(np.float32) if stored.dtype == np.float16 else stored
    try:
        lexicon = Lexicon(
            Vocabulary.open(folder),
            vectors,
            metric=manifest["metric"],
            name=manifest["name"],
            counts=None if manifest["counts"] is None else ReadCounts(**manifest["counts"]),
            checked=True,
            _prior=None
            if manifest.get("prior") is None
            else partial(_read_prior, folder, dict(manifest["prior"])),
        )
        recorded = str(manifest["fingerprint"])
    except (KeyError, TypeError, ValueError) as reason:
        raise _damaged(folder) from reason
    if verify and lexicon.fingerprint != recorded:
        raise DataError(
            f"{folder}: words, vectors or metric have changed since they were saved (fingerprint {recorded[:12]} expected, "
            f"{lexicon.fingerprint[:12]} found)."
        )
    lexicon.__dict__["fingerprint"] = recorded  # what cached_property would keep
    return lexicon


def _damaged(folder: Path | Traversable) -> DataError:
    return DataError(f"{folder}: {MANIFEST_FILE} is damaged. Save or import the lexicon again.")


def _read_prior(folder: Path | Traversable, said: dict[str, Any]) -> Prior:
    """Read the prior of a lexicon folder, memory-mapped where it is on disk."""
    names = [entry.name for entry in fields(PairModel)]
    stored = [name for name in ("words", *names) if (folder / PRIOR_FILE.format(name)).is_file()]
    arrays = {name: read_array(folder / PRIOR_FILE.format(name)) for name in stored}
    try:
        return Prior.restore(str(said["name"]), arrays, tuple(said["others"]), str(said["digest"]))
    except (KeyError, TypeError) as reason:
        raise _damaged(folder) from reason


def same_words(lexicons: Sequence[Lexicon]) -> bool:
    """Check whether all hold the same words in the same order, so that an id means the same in each."""
    first = lexicons[0].vocabulary
    return all(
        np.array_equal(first.offsets, other.vocabulary.offsets)
        and np.array_equal(first.data, other.vocabulary.data)
        for other in lexicons[1:]
    )


def with_shared_words(lexicons: Sequence[Lexicon]) -> tuple[Lexicon, ...]:
    """Cut lexicons down to their common words, in the order of the first.

    Returns:
        As many lexicons, whose ids agree; themselves where they agree already.

    Raises:
        DataError: they have fewer than two words in common.
    """
    if same_words(lexicons):
        return tuple(lexicons)
    words = lexicons[0].vocabulary.strings()
    ids = [lexicon.vocabulary.ids(words) for lexicon in lexicons]
    shared = np.all([own_ids >= 0 for own_ids in ids], axis=0)
    if shared.sum() < 2:
        sizes = [f"{lexicon.name} ({len(lexicon):,})" for lexicon in lexicons]
        raise DataError(
            f"lexicon.more: {shared.sum()} word(s) in all of {', '.join(sizes)} are too few. Choose lexicons that share two."
        )
    vocabulary = Vocabulary.of(lexicons[0].vocabulary.words(ids[0][shared]))
    return tuple(
        Lexicon(
            vocabulary,
            np.ascontiguousarray(lexicon.vectors[own_ids[shared]]),
            metric=lexicon.metric,
            name=lexicon.name,
            counts=lexicon.counts,
            checked=True,
            _prior=None if lexicon.prior.is_by_rank else lexicon.prior.of_words(own_ids[shared]),
        )
        for lexicon, own_ids in zip(lexicons, ids, strict=True)
    )
