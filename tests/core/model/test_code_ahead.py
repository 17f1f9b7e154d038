"""Machine code that a run makes beside the start of Spark: once for a kind of model, and never in the way of the run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError
from dptext_spark.model import code_ahead
from dptext_spark.model.code_ahead import (
    begin_code,
    code_place,
    finished_code,
    keep_code_beside,
    wait_for_model,
)
from dptext_spark.model.compile import prepare, prepared_before
from dptext_spark.model.machine_code import FOLDER, OWN, trusted_code
from dptext_spark.runtime.jit import code_cache, is_cached
from dptext_spark.runtime.loop_cache import Target
from dptext_spark.text.tokenizer import cut_words

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of models of this test's; processes that it starts find the loops of this one."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", code_cache())
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(code_ahead, "_processes", {})
    monkeypatch.setattr(code_ahead, "_made", {})
    yield
    for process in code_ahead._processes.values():
        process.child.kill()
        process.child.communicate()
        process.lifeline.close()


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexicon of 40 words, so that a model takes no time."""
    file = tmp_path_factory.mktemp("lexicon") / "vectors.txt"
    words = [f"{a}{b}" for a in "abcdefgh" for b in "aeiou"]
    lines = (f"{word} {number % 7} {number % 5} {number}" for number, word in enumerate(words))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def config(vectors: Path) -> ModelConfig:
    return settings(vectors)


def settings(vectors: Path, **given: Any) -> ModelConfig:
    named = {"lexicon": {"source": str(vectors)}, "mechanism": {"name": "custext", "epsilon": 3, "k": 4}}
    return parse_model_config(named | given)


@pytest.mark.long
def test_it_is_made_once_for_a_kind_of_model(config: ModelConfig, vectors: Path, steps: list[str]) -> None:
    begin_code(config, steps.append, here=False)
    assert steps == ["making machine code for the workers meanwhile"]
    wait_for_model(config)
    assert prepared_before(config)
    _, model = prepare(config)
    found = finished_code(config)
    assert found is not None
    assert found.vouched is None
    assert not (model / FOLDER).exists()
    code = trusted_code(found.folder)
    assert code is not None
    (level,) = code.levels
    assert (level.name, level.made_with) == (OWN, Target.here())
    names = {loop.name for loop in level.loops}
    assert "dptext_spark.text.tokenizer.cut_words" in names
    assert "dptext_spark.text.names.matching.find_names" not in names  # no list of names is used
    steps.clear()
    other = settings(vectors, mechanism={"name": "custext", "epsilon": 4, "k": 5})
    begin_code(other, steps.append, here=False)
    assert steps == []
    assert finished_code(other) == found
    assert not prepared_before(other)


def test_where_workers_find_the_loops_nothing_is_made(
    config: ModelConfig, cache: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(config)[0].warm_up()
    assert is_cached(cut_words)
    begin_code(config, pytest.fail, here=True)
    assert finished_code(config) is None
    assert not (cache / "machine-code").exists()
    monkeypatch.setattr(
        code_ahead, "is_cached", lambda _: False
    )  # with no loops there it is made for this machine, too
    monkeypatch.setattr(code_ahead, "_COMMAND", "print('model'); print('0' * 64)")
    begin_code(config, steps.append, here=True)
    assert len(steps) == 1


def test_a_named_model_has_its_own_and_one_that_counts_the_runs_own_texts_is_waited_for(
    config: ModelConfig, vectors: Path, cache: Path
) -> None:
    named = config.model_copy(update={"run": config.run.model_copy(update={"artifact": "/models/one"})})
    counted = settings(vectors, importance={"percent": 50, "provider": "idf"})
    for waited in (named, counted):
        begin_code(waited, pytest.fail, here=False)
        wait_for_model(waited)
        assert finished_code(waited) is None
        assert waited is counted or not cache.exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("import sys; sys.exit('out of memory.')", "no machine code (out of memory); workers compile the loops"),
        ("import os; os._exit(3)", "no machine code (exit code 3); workers compile the loops"),
        ("import os; os.kill(os.getpid(), 9)", "no machine code (exit code -9); workers compile the loops"),
        ("import time; time.sleep(60)", "no machine code (more than 0.5 s); workers compile the loops"),
    ],
)  # fmt: skip
def test_a_process_that_fails_ends_nothing(
    command: str, said: str, config: ModelConfig, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_ahead, "_COMMAND", command)
    monkeypatch.setattr(code_ahead, "PATIENCE", 0.5)
    begin_code(config, steps.append, here=False)
    if "sleep" not in command:
        code_ahead._processes[code_place(config)].child.wait()
    wait_for_model(config)
    assert finished_code(config) is None
    assert steps[-1] == said


@pytest.mark.long
def test_a_full_or_read_only_disk_ends_nothing(config: ModelConfig, cache: Path, steps: list[str]) -> None:
    """A file stands where the code would go, which nobody can write below, root neither."""
    prepare(config)
    place = code_place(config)
    place.parent.write_text("")
    begin_code(config, steps.append, here=False)
    assert finished_code(config) is None
    assert steps[-1].startswith("no machine code (")
    assert steps[-1].endswith("); workers compile the loops")


@pytest.mark.long
def test_what_is_wrong_with_the_model_is_said_by_the_run_too(tmp_path: Path, steps: list[str]) -> None:
    wrong = settings(tmp_path / "missing.txt")
    begin_code(wrong, steps.append, here=False)
    wait_for_model(wrong)
    with pytest.raises(DataError, match=r"missing\.txt' does not exist"):
        prepare(wrong)
    assert finished_code(wrong) is None
    assert "missing.txt' does not exist" in steps[-1]


@pytest.mark.long
def test_where_others_could_replace_the_cache_its_maker_alone_vouches_for_it(
    config: ModelConfig, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below a home folder that a group may write to: the cache is private, but not its place."""
    with tempfile.TemporaryDirectory(prefix="dptext-tests-") as name:
        Path(name).chmod(0o777)
        monkeypatch.setenv("DPTEXT_CACHE", str(Path(name) / "cache"))
        begin_code(config, steps.append, here=False)
        found = finished_code(config)
        assert found is not None
        assert found.vouched is not None
        assert trusted_code(found.folder, found.vouched) is not None
        monkeypatch.setattr(code_ahead, "_made", {})  # as another process, which cannot know who wrote it
        assert finished_code(config) is None


class TestBesideAModel:
    """For a frame that is defined now and computed later."""

    @pytest.mark.long
    def test_it_is_there_at_once_where_the_loops_are_cached(self, config: ModelConfig) -> None:
        privatizer, model = prepare(config)
        privatizer.warm_up()
        keep_code_beside(model, (), here=True)
        assert trusted_code(model) is None  # workers find what is cached
        keep_code_beside(model, (), here=False)
        code = trusted_code(model)
        assert code is not None
        assert "dptext_spark.text.names.matching.find_names" in {loop.name for loop in code.levels[0].loops}
        keep_code_beside(model, (), here=False)
        assert trusted_code(model) == code
        assert not code_ahead._processes

    def test_nobody_waits_where_it_takes_long(
        self, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, model = prepare(config)
        monkeypatch.setattr(code_ahead, "is_cached", lambda _: False)
        monkeypatch.setattr(code_ahead, "_COMMAND", "import time; time.sleep(600)")
        for _ in range(2):
            keep_code_beside(model, (), here=False)
            assert trusted_code(model) is None
            assert len(code_ahead._processes) == 1
        (process,) = code_ahead._processes.values()
        process.child.kill()
        process.child.wait()
        keep_code_beside(model, (), here=False)
        assert not code_ahead._processes


def test_the_kind_is_told_by_all_but_numbers(vectors: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(vectors.read_bytes())
    names = tmp_path / "names.txt"
    names.write_text("Lovelace\n")
    same = settings(vectors)
    assert code_place(same) == code_place(
        settings(vectors, mechanism={"name": "custext", "epsilon": 1, "k": 3})
    )
    kinds = [
        same,
        settings(other),
        settings(vectors, consistency="record"),
        settings(vectors, policy={"stop_words": "draw"}),
        settings(vectors, policy={"mask": [{"file": str(names)}]}),
        settings(vectors, mechanism={"name": "santext", "epsilon": 3}),
    ]
    assert len({code_place(one) for one in kinds}) == len(kinds)


def test_nothing_but_the_model_is_told_to_the_process(tmp_path: Path) -> None:
    whole = parse_config(
        {
            "input": {"path": "/in", "options": {"token": "hush"}, "format": "csv"},
            "columns": ["body"],
            "output": {"path": "/out"},
        }
    )
    sent = pickle.dumps(code_ahead._model_settings(whole))
    assert b"hush" not in sent
    assert b"/out" not in sent
    assert pickle.loads(sent).spec() == whole.spec()
    assert code_place(pickle.loads(sent)) == code_place(whole)


@pytest.mark.long
def test_it_ends_with_the_process_that_started_it(config: ModelConfig, tmp_path: Path) -> None:
    program = (
        "import os, pickle, sys\n"
        "from dptext_spark.model import code_ahead\n"
        "code_ahead._COMMAND = code_ahead._COMMAND.replace('main()', "
        "'code_ahead.prepare = lambda _: __import__(\"time\").sleep(600); code_ahead.main()')"
        ".replace('from dptext_spark.model.code_ahead import main', 'from dptext_spark.model import code_ahead')\n"
        "config = pickle.load(sys.stdin.buffer)\n"
        "code_ahead.begin_code(config, str, here=False)\n"
        "(process,) = code_ahead._processes.values()\n"
        "print(process.child.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(config), env=os.environ | {"PYTHONPATH": str(CHECKOUT)}, capture_output=True, check=True,
    )  # fmt: skip
    child = int(ran.stdout)
    until = time.monotonic() + 60
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """Whether a process is there, and no zombie that nobody has asked about."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
