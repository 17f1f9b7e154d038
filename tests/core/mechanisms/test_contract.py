"""What every mechanism of the registry promises, whatever it draws."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, Mechanism, Sampler
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.randomness import Draws
from dptext_spark.rounding import exact
from tests.core.names import scattered

PARAMETERS: dict[str, dict[str, object]] = {
    "custext": {"k": 7},
    "santext": {"sensitive": 0.5},
    "tem": {},
    "diffractor": {"lists": 3},
    "mvc": {"epsilon": 3.0},
    "mahalanobis": {"epsilon": 3.0, "lam": 0.7},
    "vickrey": {"epsilon": 3.0, "noise": "mahalanobis"},
    "projection": {"epsilon": 3.0, "m": 3},
    "truncated_gumbel": {"epsilon": 500.0},
    "laplace": {"epsilon": 5.0},
    "gaussian": {"epsilon": 5.0},
    "truncated_laplace": {"epsilon": 5.0},
}
NOISY = [name for name, mechanism in MECHANISMS.items() if mechanism.sampler is NoiseSampler]
# Parameters that give a sampler of another build, beside those above.
MORE: list[tuple[str, dict[str, object]]] = [
    *((name, {"search": "ivf"}) for name in NOISY),
    *((name, {"snap": "published"}) for name in ("laplace", "gaussian", "truncated_laplace")),
]
# (kind, δ, metric, status) of each with the parameters above.
GUARANTEES = {
    "custext": ("epsilon_dp_within_group", 0.0, None, "proved"),
    "santext": ("metric_dp", 0.0, "euclidean between sensitive words", "proved"),
    "tem": ("metric_dp", 0.0, "euclidean", "proved"),
    "diffractor": ("metric_dp", 0.0, "list places", "proved"),
    "mvc": ("metric_dp", 0.0, "euclidean", "claimed"),
    "mahalanobis": ("metric_dp", 0.0, "mahalanobis", "claimed"),
    "vickrey": ("metric_dp", 0.0, "mahalanobis", "claimed"),
    "projection": ("metric_dp", 0.0, "projected euclidean", "claimed"),
    "truncated_gumbel": ("metric_dp", 0.0, "euclidean", "claimed"),
    "laplace": ("epsilon_dp", 0.0, None, "claimed"),
    "gaussian": ("approx_dp", 1e-6, None, "claimed"),
    "truncated_laplace": ("approx_dp", 1 / 16, None, "claimed"),
}
WORDS = 60


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 5)


@pytest.fixture(
    params=[*((name, {}) for name in MECHANISMS), *MORE],
    ids=lambda case: "-".join([case[0], *case[1].values()]),
)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    name, more = request.param
    return MECHANISMS[name](**(PARAMETERS[name] | more))


def blocks(n: int) -> np.ndarray:
    return np.arange(2 * n, dtype=np.uint64).reshape(n, 2)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_guarantee(name: str, lexicon: Lexicon) -> None:
    """Nothing is rounded in the user's favour: the sentence holds ε with all its digits."""
    epsilon = PARAMETERS[name].get("epsilon", 1.0) + 1e-7  # type: ignore[operator]
    made = MECHANISMS[name](**(PARAMETERS[name] | {"epsilon": epsilon})).compile(lexicon).guarantee
    assert (made.kind, made.delta, made.metric, made.status) == GUARANTEES[name]
    assert (made.epsilon, made.unit) == (epsilon, "word")
    assert exact(epsilon) in made.sentence


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_least_epsilon(name: str, lexicon: Lexicon) -> None:
    if name != "truncated_gumbel":  # which refuses it by what the lexicon asks for
        made = MECHANISMS[name](**(PARAMETERS[name] | {"epsilon": 1e-6})).compile(lexicon)
        assert made.guarantee.epsilon == pytest.approx(1e-6)
        assert np.isfinite(made.guarantee.delta)


def test_names_are_the_registry_s() -> None:
    assert all(mechanism.name == name for name, mechanism in MECHANISMS.items())
    assert set(PARAMETERS) == set(MECHANISMS)


def test_the_specification(mechanism: Mechanism) -> None:
    assert dataclasses.is_dataclass(mechanism)
    assert mechanism == dataclasses.replace(mechanism)
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    assert mechanism.paper
    assert mechanism.protects
    assert type(mechanism)(**dataclasses.asdict(mechanism)) == mechanism
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 3  # type: ignore[misc]


def test_the_sampler(mechanism: Mechanism, lexicon: Lexicon) -> None:
    made = mechanism.compile(lexicon)
    assert isinstance(made, Sampler)
    assert isinstance(made, mechanism.sampler)
    assert isinstance(made.guarantee, Guarantee)
    assert made.guarantee.epsilon == mechanism.epsilon
    drawn = made.sample(np.arange(60, dtype=np.int32), Draws(bytes(32), blocks(60)))
    assert (drawn.dtype, drawn.shape) == (np.int32, (60,))
    assert made.sample(drawn[:0], Draws(bytes(32), blocks(0))).shape == (0,)


def test_draw_i_reads_number_i_alone(mechanism: Mechanism, lexicon: Lexicon) -> None:
    """However a batch is put together, a word with its block draws the same."""
    made = mechanism.compile(lexicon)
    ids = np.arange(1000, dtype=np.int32) % WORDS
    whole = made.sample(ids, Draws(bytes(32), blocks(1000)))
    order = np.random.default_rng(1).permutation(1000)
    assert (made.sample(ids[order], Draws(bytes(32), blocks(1000)[order])) == whole[order]).all()
    for part in (slice(0, 1), slice(1, 400), slice(999, 1000)):
        assert (made.sample(ids[part], Draws(bytes(32), blocks(1000)[part])) == whole[part]).all()


def check_draws(made: Sampler, words: int, each: int) -> None:
    """So many draws of every word are words, and are what its law, in integers, allows."""
    ids = np.repeat(np.arange(words, dtype=np.int32), each)
    drawn = made.sample(ids, Draws(bytes(32), blocks(len(ids))))
    assert drawn.min() >= 0
    assert drawn.max() < words
    for word in range(words):
        law = made.law(word)
        if law is not None:
            assert sum(map(int, law.weight)) == 2**63
            assert (np.diff(law.ids) > 0).all()
            assert (law.weight > 0).all()
            assert set(drawn[ids == word].tolist()) <= set(law.ids.tolist())


def test_the_law_is_what_is_drawn(mechanism: Mechanism, lexicon: Lexicon) -> None:
    check_draws(mechanism.compile(lexicon), WORDS, 300)


def test_compiling_over_several_epsilons(mechanism: Mechanism, lexicon: Lexicon) -> None:
    compile_at = mechanism.over_epsilons(lexicon)
    for factor in (1.0, 2.5, 1.0):
        epsilon = mechanism.epsilon * factor
        made, alone = compile_at(epsilon), dataclasses.replace(mechanism, epsilon=epsilon).compile(lexicon)
        assert (made.guarantee, made.summary) == (alone.guarantee, alone.summary)
        assert all((made.arrays()[name] == alone.arrays()[name]).all() for name in alone.arrays())
    for epsilon in (-1.0, float("nan")):
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon"):
            compile_at(epsilon)


def test_it_travels(mechanism: Mechanism, lexicon: Lexicon) -> None:
    """As arrays, which is how workers get it; the specification as itself."""
    made = mechanism.compile(lexicon)
    arrays = {name: array.copy() for name, array in made.arrays().items()}
    for array in arrays.values():
        array.setflags(write=False)
    again = mechanism.sampler.restore(arrays, made.guarantee, made.summary)
    ids = np.arange(WORDS, dtype=np.int32)
    draws = Draws(bytes(32), blocks(WORDS))
    assert (again.sample(ids, draws) == made.sample(ids, draws)).all()
    assert (again.guarantee, again.summary) == (made.guarantee, made.summary)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_a_lexicon_that_is_memory_mapped_gives_the_same_arrays(mechanism, lexicon, tmp_path) -> None:  # type: ignore[no-untyped-def]
    lexicon.save(tmp_path / "lexicon")
    first, second = (mechanism.compile(x).arrays() for x in (lexicon, Lexicon.open(tmp_path / "lexicon")))
    assert first.keys() == second.keys()
    assert all((first[name] == second[name]).all() for name in first)
