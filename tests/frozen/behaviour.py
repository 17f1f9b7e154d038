"""What stays while the code is rebuilt: fingerprints of models, what 1,000 tickets come out as, the help of each command.

`python -m tests.frozen.behaviour` writes the kept files anew. Their change is a change of behaviour: its commit says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dptext_spark.importance.levels import Importance, Level
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import with_importance
from dptext_spark.randomness import RunKey
from dptext_spark.text.engine import OF_NAMES, OF_STAYED
from dptext_spark.text.policy import Policy
from dptext_spark.text.selection import Texts
from tests.conftest import shared_folder
from tests.core.names import beginning
from tests.frozen.tickets import kept_tickets

HERE = Path(__file__).resolve().parent
MODELS, HELP = HERE / "models.json", HERE / "help.txt"
# The command line of this checkout.
DPTEXT = (
    sys.executable, "-c", "import sys; from dptext_spark.cli.app import main; sys.argv[0] = 'dptext'; main()",
)  # fmt: skip
LEVELS = ("token", "record", "dataset")
WORDS, OF_GLOVE = 2000, 2000
GLOVE = "glove.840B.300d.34k.txt.gz"
COLUMNS = ("subject", "body")
# Each as its paper has it, at an ε whose draws differ from the words and from one another.
PARAMETERS: dict[str, dict[str, object]] = {
    "custext": {"epsilon": 2.0},
    "santext": {"epsilon": 2.0, "sensitive": 0.5},
    "tem": {"epsilon": 2.0},
    "diffractor": {"epsilon": 1.0, "lists": 3},
    "mvc": {"epsilon": 12.0},
    "mahalanobis": {"epsilon": 12.0, "lam": 0.7},
    "vickrey": {"epsilon": 12.0, "noise": "mahalanobis"},
    "projection": {"epsilon": 12.0, "m": 20},
    "truncated_gumbel": {"epsilon": 120.0},
    "laplace": {"epsilon": 12.0},
    "gaussian": {"epsilon": 5.0},
    "truncated_laplace": {"epsilon": 12.0},
}
COMMANDS = (
    "", "audit", "calibrate", "certify", "compare", "demo", "doctor", "jobs", "ledger", "lexicon", "lexicon import",
    "lexicon info", "mechanisms", "preview", "release", "report", "run", "start",
)  # fmt: skip
CUSTEXT = MECHANISMS["custext"](**PARAMETERS["custext"])


@cache
def sample() -> pa.Table:
    """Return the tickets."""
    return kept_tickets("models")


@cache
def small() -> Lexicon:
    """Return the commonest words of the packaged lexicon."""
    return beginning(Lexicon.default(), WORDS)


def of_mechanism(name: str, **more: object) -> list[Privatizer]:
    """Compile a mechanism, once for each level."""
    sampler = MECHANISMS[name](**PARAMETERS[name], **more).compile(small())
    return [Privatizer(small(), sampler, consistency=level) for level in LEVELS]


def packaged() -> list[Privatizer]:
    """The model of the demo: the whole packaged lexicon."""
    lexicon = Lexicon.default()
    return [Privatizer(lexicon, CUSTEXT.compile(lexicon), consistency="record")]


def without_identifiers() -> list[Privatizer]:
    """A model that looks for no identifiers."""
    policy = Policy(identifiers="none", numbers="mask", oov="draw", stop_words="draw")
    return [replace(one, policy=policy, table=None, fingerprint="") for one in of_mechanism("custext")]


def _frequencies(privatizer: Privatizer) -> Frequencies:
    return Frequencies.of(privatizer.engine, sample()["body"].combine_chunks())


def of_importance() -> list[Privatizer]:
    """The words that few tickets hold."""
    plain, record, _ = of_mechanism("custext")
    return [
        with_importance(plain, Importance(percent=30), (), _frequencies(plain)),
        with_importance(record, Importance(percent=30), (), _frequencies(record)),
    ]


def with_levels() -> list[Privatizer]:
    """Three levels of importance, of which two have an ε of their own."""
    levels = (Level(20.0), Level(30.0, epsilon=4.0), Level(None, epsilon=8.0))
    further = tuple(level.drawn_by(CUSTEXT).compile(small()) for level in levels[1:])
    token, record, _ = of_mechanism("custext")
    selection = Importance(provider="random", levels=levels)
    return [with_importance(one, selection, further) for one in (token, record)]


def of_glove(folder: Path) -> list[Privatizer]:
    """A model of a lexicon that is read from text."""
    lexicon = Lexicon.read(folder / GLOVE, limit=OF_GLOVE)
    return [Privatizer(lexicon, CUSTEXT.compile(lexicon), consistency="token")]


CASES: dict[str, Callable[[], list[Privatizer]]] = {
    **{name: partial(of_mechanism, name) for name in PARAMETERS},
    "custext, clustered": partial(of_mechanism, "custext", mapping="clustered"),
    "packaged lexicon": packaged,
    "identifiers: none": without_identifiers,
    "importance": of_importance,
    "importance, levels": with_levels,
}


def came_out(privatizer: Privatizer) -> tuple[str, dict[str, int]]:
    """Sanitize the tickets under a fixed key: a digest of the texts, and the counts of both columns."""
    table, key, digest = sample(), RunKey.insecure(18), hashlib.sha256()
    of_customer = privatizer.selector is None and privatizer.consistency == "record"
    rows = table["ticket_id"].combine_chunks()
    records = table["customer_id"].combine_chunks() if of_customer else rows
    texts = [table[name].combine_chunks() for name in COLUMNS]
    chosen = privatizer.choose([Texts(one) for one in texts]) or (None,) * len(COLUMNS)
    totals: dict[str, int] = {}
    for name, column, choice in zip(COLUMNS, texts, chosen, strict=True):
        out, counters = privatizer.privatize(
            column, column=name, row_ids=rows, record_ids=records, key=key, run_id="frozen", chosen=choice
        )
        digest.update(json.dumps(out.to_pylist()).encode())
        totals = {key: totals.get(key, 0) + int(value) for key, value in counters.totals().items()}
    # Without lists of names nothing is counted for them; words that stayed are judged elsewhere.
    counted = {key: value for key, value in totals.items() if key not in OF_NAMES or value}
    return digest.hexdigest(), {key: value for key, value in counted.items() if key not in OF_STAYED}


def described(privatizer: Privatizer) -> dict[str, Any]:
    """Everything that is kept of a model and of what comes out under it."""
    digest, totals = came_out(privatizer)
    stored = sorted(privatizer.arrays().items())
    arrays = {name: f"{array.dtype.str}{list(array.shape)}" for name, array in stored}
    guarantee = {name: value for name, value in asdict(privatizer.guarantee()).items() if name != "sentence"}
    return {
        "level": privatizer.consistency, "fingerprint": privatizer.fingerprint, "texts": digest, "counts": totals,
        "arrays": arrays, "guarantee": json.loads(json.dumps(guarantee)),
    }  # fmt: skip


def help_of_all() -> str:
    """Return what `--help` prints for every command, at 100 columns."""
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        environment.pop(name, None)
    found = []
    for command in COMMANDS:
        done = subprocess.run(
            [*DPTEXT, *command.split(), "--help"],
            env=environment, cwd=HERE.parents[1], capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
        found.append(f"$ dptext {command} --help".replace("  ", " ") + f"\n{lines}\n")
    return "\n".join(found)


def main() -> None:
    """Write the kept files anew."""
    cases = CASES | {"glove": lambda: of_glove(shared_folder())}
    kept = {name: [described(one) for one in case()] for name, case in cases.items()}
    MODELS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    HELP.write_text(help_of_all(), encoding="utf-8")


if __name__ == "__main__":
    main()
