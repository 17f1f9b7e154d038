"""Who is told steps where no callback is given: a terminal and a notebook, each step once, unless a variable says no."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dptext_spark as dp
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.model.compile import prepare
from dptext_spark.report import run_plan
from dptext_spark.runtime.display import VARIABLE, OnStderr, Progress, by_default, counted, silent
from tests.core.names import beginning

SETTINGS = {"input": {"path": "/none/in"}, "columns": ["body"], "output": {"path": "/none/out"}}


def test_each_new_step_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say = OnStderr()
    for step, share in (("reading", 0.1), ("reading", 0.5), ("writing", None), ("reading", 0.9)):
        say(step, share)
    say("reading")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "reading\nwriting\nreading\n")


def test_a_count_is_told_as_a_share_of_its_step() -> None:
    told = list[tuple[str, float | None]]()
    say = counted("reading", lambda step, share: told.append((step, share)))
    say(1, 4)
    say(4, 4)
    say(3, 0)  # how much there is, is not known
    assert told == [("reading", 0.25), ("reading", 1.0), ("reading", None)]


@pytest.mark.parametrize("notebook", [False, True])
@pytest.mark.parametrize("terminal", [False, True, None])
@pytest.mark.parametrize("variable", [None, "on", "off"])
def test_a_terminal_or_a_notebook_is_told_steps(
    notebook: bool, terminal: bool | None, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program without a console has no stderr (None)."""
    shell = SimpleNamespace(kernel=object()) if notebook else None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    stderr = None if terminal is None else SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv(VARIABLE, variable or "")
    if variable is None:
        monkeypatch.delenv(VARIABLE)
    told = variable != "off" and (notebook or terminal)
    assert isinstance(by_default(), OnStderr) if told else by_default() is silent


def preparing(config: RunConfig, say: Progress) -> object:
    say("planning", 0.5)
    return prepare(config, lambda *_: None)  # where the model is cached, it has nothing to tell


@pytest.mark.parametrize(
    "step", ["reading the lexicon", "compiling custext for 200 words", "certifying", "planning"]
)
def test_a_terminal_is_told_and_a_pipe_is_not(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, words = tmp_path / "vectors.txt", beginning(dp.Lexicon.default(), 200)
    file.write_text("cat 1 0 0\ndog 0 1 0\ntree 0 0 1\n", encoding="utf-8")
    act: Callable[..., object] = {
        "reading": partial(dp.Lexicon.read, file),
        "compiling": partial(dp.compile, dp.CusText(epsilon=1.0, k=10), words),
        "certifying": partial(dp.certify, dp.compile(dp.TEM(epsilon=5.0), words)),
        "planning": partial(dp.plan, parse_config(SETTINGS)),
    }[step.split()[0]]
    monkeypatch.setattr(run_plan, "prepare", preparing)
    monkeypatch.delenv(VARIABLE, raising=False)
    told = list[tuple[Any, ...]]()
    act()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    act()
    assert capsys.readouterr() == ("", f"{step}\n")
    act(progress=lambda *what: told.append(what))
    assert told
    monkeypatch.setenv(VARIABLE, "off")
    act()
    assert capsys.readouterr() == ("", "")
