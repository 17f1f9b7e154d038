"""Machine code for a run that compiles its own model: made in a process of its own while Spark starts, and kept for the next one.

A model that `prepare` makes has its code beside it. One that a run makes in the user's cache has none, and each worker of a fresh
node would compile its loops. So a process compiles the model and then its loops, for this very processor, beside the start of
Spark; the run takes the model from it, and waits for the code when the model is sent to the workers. What numba has in its files
on this machine is taken from there.

Code does not depend on a model's numbers, such as ε: it is kept in the user's cache by the kind of model, by how loops are
compiled, and for which processor. It is part of no fingerprint. Where it cannot be made, the run goes on, and says why.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, DPTextError
from dptext_spark.model.compile import prepare, prepared_before
from dptext_spark.model.machine_code import OWN, make_code, trusted_code
from dptext_spark.runtime.jit import build, is_cached
from dptext_spark.runtime.loop_cache import Target
from dptext_spark.runtime.paths import python_path, user_cache
from dptext_spark.runtime.progress import Steps
from dptext_spark.runtime.record import Json
from dptext_spark.text.tokenizer import cut_words

PATIENCE = 600.0  # seconds after which a process that makes code is given up
_log = logging.getLogger(__name__)
_COMMAND = "from dptext_spark.model.code_ahead import main; main()"
_MODEL = "model"


@dataclass(frozen=True)
class RunCode:
    """Where the machine code for a run's model lies.

    Attributes:
        folder: holds the folder `code`, as that of a model does.
        vouched: the digest that the process of this run named; None: that only this user can have written it is enough.
    """

    folder: Path
    vouched: str | None


@dataclass(frozen=True)
class _Order:
    """What a process is to make.

    Attributes:
        model: the model's folder; its settings where it makes the model, too, or opens it in the cache.
        providers: the import paths that the settings name.
        lists: whether the model is used with lists of names.
        into: where the code goes.
    """

    model: Path | ModelConfig
    providers: tuple[str, ...]
    lists: bool
    into: Path


@dataclass(frozen=True)
class _Process:
    """A process that makes code.

    Attributes:
        child: the process.
        lifeline: its input; it ends when that is closed.
        say: progress callback, called where the run waits for it.
        makes_model: whether the run's model is not there before it says so.
    """

    child: subprocess.Popen[bytes]
    lifeline: IO[bytes]
    say: Steps
    makes_model: bool


_processes: dict[Path, _Process] = {}
_made: dict[Path, str] = {}


def begin_code(config: ModelConfig, say: Steps, *, here: bool, model: Path | None = None) -> None:
    """Start a process that makes the code for a run's model, unless it is there, or not needed.

    Nothing is started for a model that `run.artifact` names, whose code `prepare` makes, for one that counts words of the run's
    own texts before those are counted, and where workers run on this machine and find the loops in numba's files.

    Args:
        config: the settings of the model.
        say: progress callback, called where the run waits for the process.
        here: whether the workers run on this machine, as this user.
        model: the model's folder, where it is there.
    """
    if config.run.artifact is not None or (here and is_cached(cut_words)):
        return
    own_data = config.importance is not None and config.importance.own_data
    try:
        into = code_place(config)
        if (own_data and model is None) or into in _processes or _is_there(into):
            return
        makes_model = model is None and not prepared_before(config)
    except DPTextError:  # what is wrong is said where the run prepares its model
        return
    say("making machine code for the workers meanwhile")
    order = _Order(model or _model_settings(config), config.policy.providers, bool(config.lists), into)
    _start(order, say, makes_model)


def wait_for_model(config: ModelConfig) -> None:
    """Wait until the process that was started for these settings has made the model, or has failed to; else return at once."""
    process = _processes.get(code_place(config)) if _processes else None
    if process is None or not process.makes_model or process.child.stdout is None:
        return
    select.select([process.child.stdout], [], [], PATIENCE)  # a line, or its end


def finished_code(config: ModelConfig) -> RunCode | None:
    """Return the code for a run's model, and wait for the process that makes it; None where there is none.

    Raises:
        SettingsError: the cache folder is not this user's alone.
    """
    if config.run.artifact is not None:
        return None
    into = code_place(config)
    process = _processes.pop(into, None)
    if process is not None:
        _join(process, into)
    if _is_there(into):
        return RunCode(into, None)
    return RunCode(into, _made[into]) if into in _made else None


def keep_code_beside(model: Path, providers: tuple[str, ...], *, here: bool) -> None:
    """Have machine code made beside a model in the cache, where that takes seconds; else by a process that nobody waits for.

    A frame that is defined now is computed later, and another one may be defined from the same model.
    Nothing is made where workers share this machine, and its cache, with the driver.

    Args:
        model: the model's folder.
        providers: the import paths that its policy names.
        here: whether the workers run on this machine, as this user.
    """
    if here or _is_there(model):
        return
    if model not in _processes:
        _start(_Order(model, providers, True, model), _log_step, False)
    process = _processes.get(model)
    if process is not None and (is_cached(cut_words) or process.child.poll() is not None):
        del _processes[model]
        _join(process, model)


def code_place(config: ModelConfig) -> Path:
    """Return where the code for models of this kind lies: of these settings but for numbers, and as loops are compiled here."""
    kind = {
        "settings": _without_numbers({**config.spec(), "lexicon": None}),
        "lexicon": config.spec()["lexicon"],
        "lists": bool(config.lists),
        "build": build(),
        "target": Target.here().as_dict(),
    }
    digest = hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()[:32]
    return user_cache() / "machine-code" / digest


def _without_numbers(value: Json) -> Json:
    """Return settings with the type of each number in its place."""
    if isinstance(value, Mapping):
        return {name: _without_numbers(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_numbers(one) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return type(value).__name__
    return value


def _is_there(into: Path) -> bool:
    """Whether code lies there that only this user can have written."""
    try:
        return trusted_code(into) is not None
    except DataError:  # it is made again
        return False


def _model_settings(config: ModelConfig) -> ModelConfig:
    """Return the settings of the model alone: what is read and written is nobody else's business."""
    return ModelConfig.model_construct(
        config.model_fields_set & set(ModelConfig.model_fields),
        **{name: getattr(config, name) for name in ModelConfig.model_fields},
    )


def _log_step(step: str) -> None:
    """Log a step of what nobody gave a progress callback for."""
    _log.info("%s", step)


def _start(order: _Order, say: Steps, makes_model: bool) -> None:
    """Start a process, or say why there is none."""
    try:
        _processes[order.into] = _started(order, say, makes_model)
    except OSError as error:
        say(f"no machine code: no process can be started ({error.strerror}); workers compile the loops")


def _started(order: _Order, say: Steps, makes_model: bool) -> _Process:
    """Start a process; it ends when this one does."""
    child = subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        env=os.environ | {"PYTHONPATH": python_path()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    lifeline, child.stdin = child.stdin, None  # it stays open while the output is read
    assert lifeline is not None
    with suppress(BrokenPipeError):  # it has ended, and that is said when it is joined
        lifeline.write(pickle.dumps(order))
        lifeline.flush()
    return _Process(child, lifeline, say, makes_model)


def _join(process: _Process, into: Path) -> None:
    """Wait for a process; note the digest of what it made, or say why there is nothing."""
    child = process.child
    if child.poll() is None:
        process.say("waiting for the machine code: the loops are being compiled in a process of their own")
    try:
        told, printed = child.communicate(timeout=PATIENCE)
        lines = printed.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {child.returncode}"
    except subprocess.TimeoutExpired:
        child.terminate()
        told, _ = child.communicate()
        why = f"more than {PATIENCE:g} s"
    finally:
        with suppress(BrokenPipeError):
            process.lifeline.close()
    if child.returncode == 0:
        _made[into] = told.decode().split()[-1]
    else:
        process.say(f"no machine code ({why.rstrip('.')}); workers compile the loops")


def main() -> None:
    """Make what standard input orders, and tell the digest; for a process of its own, which ends when that input does."""
    order: _Order = pickle.load(sys.stdin.buffer)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is removed
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        model = order.model if isinstance(order.model, Path) else prepare(order.model)[1]
        _tell(_MODEL)
        order.into.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = make_code(model, (OWN,), providers=order.providers, lists=order.lists, into=order.into)
        _tell(made.digest)
    except DPTextError as error:
        sys.exit(str(error))


def _tell(line: str) -> None:
    """Write a line to whoever ordered."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    """End this process when the other end of its input is closed."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
