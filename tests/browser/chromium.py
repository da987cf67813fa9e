"""Headless Chromium over its debugging pipe: no driver, no package, JSON separated by zero bytes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 60.0


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in one browser. What its console said is in `errors`: exceptions, errors, and requests to a network."""

    def __init__(self, program: str, profile: Path, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = (
            f'exec "$0" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run'
            f' --user-data-dir="$1" --remote-debugging-pipe about:blank 3<&{to_browser} 4>&{from_browser}'
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, str(profile)],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._held = b""
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, path: Path) -> None:
        self.open_address(path.resolve().as_uri())

    def open_address(self, address: str) -> None:
        self._ask("Page.navigate", url=address)
        deadline = time.monotonic() + self._patience_s
        while self.evaluate("document.readyState") != "complete" or self.evaluate("location.href") == "about:blank":
            assert time.monotonic() < deadline, "the page did not load"

    def evaluate(self, expression: str) -> Any:
        """What a JavaScript expression comes to in the page."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click with the mouse, in the middle of the element."""
        where = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    def press(self, key: str, selector: str) -> None:
        """A key, typed while the element has the focus."""
        self.evaluate(f"document.querySelector({selector!r}).focus()")
        self.strike(key)

    def strike(self, key: str) -> None:
        """A key, typed wherever the focus is."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Tab": 9, "Enter": 13, "ArrowDown": 40}.get(key, 0)
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def write(self, text: str, selector: str) -> None:
        """Text, written while the element has the focus."""
        self.evaluate(f"document.querySelector({selector!r}).focus()")
        self._ask("Input.insertText", text=text)

    def show_as(self, width: int, height: int, scheme: str) -> None:
        """A window of this size, on a system that likes things light or dark."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def told(self) -> list[dict[str, Any]]:
        """What a screen reader is given: role and name of everything it is not to pass over, in order."""
        found = self._ask("Accessibility.getFullAXTree")["nodes"]
        return [
            {
                "role": node["role"]["value"],
                "name": node.get("name", {}).get("value", ""),
                "focusable": any(one["name"] == "focusable" and one["value"]["value"] for one in node["properties"]),
            }
            for node in found
            if not node["ignored"]
        ]

    def choose(self, selector: str, value: str) -> None:
        self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.value = {value!r};"
            " e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })()"
        )

    @contextmanager
    def beginning_with(self, script: str) -> Iterator[None]:
        """Pages that are opened meanwhile run this before their own scripts."""
        added = self._ask("Page.addScriptToEvaluateOnNewDocument", source=script)
        try:
            yield
        finally:
            self._ask("Page.removeScriptToEvaluateOnNewDocument", **added)

    def memory(self) -> dict[str, int]:
        """Bytes that scripts hold, elements and listeners that there are, when garbage is collected."""
        self._ask("HeapProfiler.collectGarbage")
        counts = self._ask("Memory.getDOMCounters")
        held = self._ask("Runtime.getHeapUsage")["usedSize"]
        return {"bytes": int(held), "elements": counts["nodes"], "listeners": counts["jsEventListeners"]}

    def renderers(self) -> list[int]:
        """The processes that have a tab: this one, and one that the browser keeps ready."""
        return [int(one["id"]) for one in self._processes() if one["type"] == "renderer"]

    def processor_times(self) -> dict[int, float]:
        """Of each process of the browser, in seconds."""
        return {int(one["id"]): float(one["cpuTime"]) for one in self._processes()}

    def _processes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask_browser("SystemInfo.getProcessInfo")["processInfo"]
        return found

    def forget_requests(self) -> None:
        """Notes no requests any more: the browser would keep what is answered, however long a stream of it lasts."""
        self._ask("Network.disable")

    def close(self) -> None:
        with suppress(OSError, AssertionError):
            self._ask_browser("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for end in (self._read, self._write):
            os.close(end)

    def _ask_browser(self, method: str) -> Any:
        """Of the browser itself, not of its page."""
        session, self._session = self._session, None
        try:
            return self._ask(method)
        finally:
            self._session = session

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._patience_s
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._read, 1 << 16) if ready else b""
            assert data, "the browser does not answer"
            self._held += data
        whole, self._held = self._held.split(b"\0", 1)
        found: dict[str, Any] = json.loads(whole)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        match event.get("method"), event.get("params", {}):
            case "Runtime.exceptionThrown", found:
                self.errors.append(str(found["exceptionDetails"]))
            case "Runtime.consoleAPICalled", found if found["type"] in ("error", "warning", "assert"):
                self.errors.append(str(found["args"]))
            case "Log.entryAdded", found if found["entry"]["level"] in ("error", "warning"):
                self.errors.append(str(found["entry"]))
            case "Network.requestWillBeSent", found:
                self.requests.append(found["request"]["url"])
