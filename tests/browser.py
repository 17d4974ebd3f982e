"""A browser of this machine, driven by Chromium's DevTools protocol.

Scripts of a test run by the protocol, which no content policy of a page blocks or has to allow.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import define, field
from websockets.sync.client import ClientConnection, connect

Scheme = Literal["light", "dark"]

_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--no-first-run", "--remote-debugging-port=0"),
)
_WITHIN_S = 60
_LARGEST_MESSAGE = 64 << 20


def axe_script() -> str:
    """Return the source of axe; skip the test without it."""
    path = os.environ.get("LAKELEDGER_AXE")
    if path is None or not Path(path).is_file():
        pytest.skip("LAKELEDGER_AXE names no axe.js; npm install axe-core@4 has one")
    return Path(path).read_text("utf-8")


@define
class Tab:
    """A tab: pages are loaded and looked at one after the other."""

    _socket: ClientConnection
    _numbers: Iterator[int] = field(factory=lambda: itertools.count(1))
    messages: list[str] = field(factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = self._received()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _received(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._socket.recv(timeout=_WITHIN_S))
        if answer.get("method") == "Log.entryAdded":
            self.messages.append(answer["params"]["entry"]["text"])
        return answer

    def look(self, scheme: Scheme, width: int, height: int = 900) -> None:
        """Show the next pages in a colour scheme and at a width, in CSS pixels."""
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="", features=wanted)
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)

    def open(self, url: str) -> None:
        """Load a page, and wait until it is complete."""
        self.messages.clear()
        self.call("Page.navigate", url=url)
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        while self._received().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, or of the promise that it gives."""
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key."""
        known = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def press_and_load(self, key: str, code: int) -> None:
        """Press a key that leads to another page, and wait until that is complete."""
        self.press(key, code)
        self._wait_until_loaded()

    def screenshot(self) -> bytes:
        """Return the whole page as PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(found["data"])


@contextmanager
def opened_tab(folder: Path) -> Iterator[Tab]:
    """Yield a tab of a browser with a fresh profile; skip the test without Chromium."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (Debian's package chromium)")
    profile = folder / "profile"
    process = subprocess.Popen(
        [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with connect(_tab_address(profile), max_size=_LARGEST_MESSAGE) as socket:
            tab = Tab(socket)
            tab.call("Page.enable")
            tab.call("Log.enable")
            yield tab
    finally:
        process.terminate()
        process.wait(timeout=_WITHIN_S)


def _tab_address(profile: Path) -> str:
    """Return the address of the browser's first tab, once it listens."""
    import httpx

    until = time.monotonic() + _WITHIN_S
    port = profile / "DevToolsActivePort"
    while time.monotonic() < until:
        if port.is_file() and (lines := port.read_text().splitlines()):
            tabs = httpx.get(f"http://127.0.0.1:{lines[0]}/json/list").json()
            for each in tabs:
                if each["type"] == "page":
                    return str(each["webSocketDebuggerUrl"])
        time.sleep(0.05)
    pytest.fail("Chromium did not listen in time")
