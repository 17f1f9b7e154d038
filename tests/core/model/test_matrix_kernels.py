"""OpenBLAS chooses its loops by the processor, or as OPENBLAS_CORETYPE says; no model, law or draw depends on them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from itertools import islice, product

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import TEM, CusText, Mahalanobis, Mechanism, SanText
from dptext_spark.model.compile import compile
from dptext_spark.randomness import RunKey
from tests.conftest import CHECKOUT

WORDS, COMPONENTS = 600, 50
KERNELS = ("", "Haswell", "SkylakeX", "Prescott")


def made() -> dict[str, list[str]]:
    """Return which loops OpenBLAS took, the bits of a product, and of each mechanism the fingerprint and what is drawn."""
    vectors = np.random.default_rng(7).standard_normal((WORDS, COMPONENTS)).astype(np.float32)
    words = ["".join(letters) for letters in islice(product("klmnopqrs", repeat=4), WORDS)]
    lexicon = Lexicon(Vocabulary.of(words), vectors)
    text = pa.array([" ".join(words)])
    found = {
        "loops": sorted({str(one["architecture"]) for one in threadpool_info() if one.get("architecture")}),
        "product": [hashlib.sha256((vectors @ vectors.T).tobytes()).hexdigest()],
    }
    mechanisms: tuple[Mechanism, ...] = (
        CusText(epsilon=2.0, k=20), SanText(epsilon=4.0), TEM(epsilon=8.0), Mahalanobis(epsilon=8.0),
    )  # fmt: skip
    for mechanism in mechanisms:
        model = compile(mechanism, lexicon)
        drawn, _ = model.privatize(text, column="", row_ids=pa.array([0]), key=RunKey.insecure(3))
        found[mechanism.name] = [model.fingerprint, drawn[0].as_py()]
    return found


@pytest.mark.cluster
def test_models_and_draws_are_the_same_by_every_kernel() -> None:
    children = [
        subprocess.run(
            [sys.executable, "-m", "tests.core.model.test_matrix_kernels"],
            env={name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
            | ({"OPENBLAS_CORETYPE": kernel} if kernel else {}),
            cwd=CHECKOUT, capture_output=True, text=True, check=True,
        )
        for kernel in KERNELS
    ]  # fmt: skip
    first, *others = [json.loads(child.stdout) for child in children]
    if len({str(one["loops"]) for one in (first, *others)}) == 1:
        pytest.skip("this OpenBLAS takes the same loops whatever OPENBLAS_CORETYPE says")
    assert len({one["product"][0] for one in (first, *others)}) > 1  # the setting did something
    for other in others:
        assert {name: other[name] for name in other if name not in ("loops", "product")} == {
            name: first[name] for name in first if name not in ("loops", "product")
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(made()))
