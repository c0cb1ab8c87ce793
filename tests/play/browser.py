"""A headless Chromium that tests drive through its own protocol, over a pipe: nothing but the browser is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

CHROMIUM = os.environ.get("CEPHEID_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
"""The browser that is found, None: there is none."""

KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Space": (32, " "),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "End": (35, ""),
    "Escape": (27, ""),
}

POOR_CONTRAST = """
(() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((s, c, i) => s + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.9) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *:not(svg *, textarea, option)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.offsetParent || element.closest(":disabled, .toast, .skip, .stale")) continue;
    const [one, other] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) poor.push(`${element.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return poor;
})()
"""
"""The texts of a page whose contrast with what is behind them is below 4.5, as a script: its value is a list."""


class Browser:
    """One page of a browser. `told` has what its console said, errors of the page and of its policy."""

    def __init__(self, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()  # theirs: from the browser to us
        for end in (ours[0], theirs[1]):
            os.set_inheritable(end, True)
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--remote-debugging-pipe",
        ]
        # The protocol is spoken on 3 and 4.
        shell = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "bash", *command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = os.fdopen(ours[1], "wb", buffering=0), os.fdopen(theirs[0], "rb", buffering=0)
        self._rest, self._number, self._session = b"", 0, None
        self.told: list[str] = []
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict:
        """The result of a method of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            if answer.get("method") in {"Log.entryAdded", "Runtime.exceptionThrown"}:
                self.told.append(json.dumps(answer["params"]))

    def _read(self) -> dict:
        while b"\0" not in self._rest:
            piece = self._from.read(1 << 16)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def open(self, address: str, *, width: int = 1280, height: int = 860, dark: bool = False) -> None:
        """Open an address in a window of this size, and wait until the page has its answers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && document.body.dataset.working !== undefined")
        self.settle()

    def do(self, script: str) -> object:
        """The value of an expression in the page; of a promise what it comes to."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str, *, seconds: float = 40) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + seconds
        while not self.do(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until nothing is asked any more, for longer than the page waits behind a key."""
        quiet = 0
        while quiet < 8:
            quiet = quiet + 1 if self.do("document.body.dataset.working") == "0" else 0
            time.sleep(0.06)

    def key(self, name: str, *, shift: bool = False) -> None:
        """Press a key."""
        code, text = KEYS[name]
        same = {"key": " " if name == "Space" else name, "code": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **same, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **same)

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        self.call("Input.insertText", text=text)

    def point(self, selector: str) -> None:
        """Move the pointer over the middle of an element."""
        x, y = self.do(
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> bytes:
        """The page as PNG, written to a file."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(data)
        return data

    def close(self) -> None:
        """End the browser."""
        self._to.close()
        self._from.close()
        self.process.kill()
        self.process.wait()
