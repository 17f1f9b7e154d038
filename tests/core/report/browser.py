"""A headless Chromium over its DevTools pipe: opens a page at a width, and says what it fetched and how wide it is."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60.0


def found() -> str | None:
    """Where a Chromium is, or None."""
    return next((place for place in map(shutil.which, NAMES) if place), None)


class Browser:
    """One page at a time; commands go in on one pipe, answers and events come out of another."""

    def __init__(self, program: str, profile: Path) -> None:
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()

        def descriptors() -> None:
            # The browser reads commands from 3 and writes to 4, whatever the numbers are here.
            kept = os.dup(commands), os.dup(answers)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self._process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
            ],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._rest, self._count, self.events = b"", 0, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    events: list[dict[str, Any]]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._call(method, self._session, **parameters)

    def open(self, address: str, width: int, height: int = 800) -> None:
        """Open a page at a width in CSS pixels, as on a phone where it is narrow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def requested(self) -> list[str]:
        """The addresses that the page asked for since it was opened, itself first."""
        events = (event for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in events]

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        whole = message | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(whole).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            read = os.read(self._in, 1 << 20) if ready else b""
            assert read, "the browser is gone, or says nothing"
            self._rest += read
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        if "method" in message:
            self.events.append(message)
        return message

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._in)
        os.close(self._out)
