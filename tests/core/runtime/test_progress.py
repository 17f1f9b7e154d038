"""Who is told steps where no callback is given: a terminal and a notebook, each step once, unless a variable says no."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.report.terminal import plan as planning
from dptext_spark.runtime.progress import VARIABLE, OnStderr, Progress, by_default, silent

SETTINGS = {"input": {"path": "/none/in"}, "columns": ["body"], "output": {"path": "/none/out"}}


@pytest.mark.parametrize("notebook", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("variable", [None, "on", "off"])
def test_a_terminal_or_a_notebook_is_told_steps(
    notebook: bool, terminal: bool, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = SimpleNamespace(kernel=object()) if notebook else None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    if variable is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, variable)
    told = by_default()
    if variable != "off" and (notebook or terminal):
        assert isinstance(told, OnStderr)
    else:
        assert told is silent


def test_each_new_step_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say = OnStderr()
    for step, share in (("reading", 0.1), ("reading", 0.5), ("writing", None), ("reading", 0.9)):
        say(step, share)
    say("reading")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "reading\nwriting\nreading\n")


def test_a_plan_tells_its_steps_unless_a_callback_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def preparing(config: RunConfig, say: Progress) -> object:
        say("a step", 0.5)
        return prepare(config, say)

    prepare = planning.prepare  # where the model is cached, it has nothing to tell
    monkeypatch.setattr(planning, "prepare", preparing)
    monkeypatch.delenv(VARIABLE, raising=False)
    config, told = parse_config(SETTINGS), list[str]()
    planning.plan(config)
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    planning.plan(config, lambda step, _: told.append(step))
    assert capsys.readouterr().err == ""
    assert told[0] == "a step"
    planning.plan(config)
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.splitlines()[0] == "a step"
