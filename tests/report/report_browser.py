"""A real browser for tests: headless Chromium, spoken to over a pipe.

Without an installed Chromium the tests are skipped; with AUTOTRANSFER_NEED_BROWSER=1 in the
environment they fail instead.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # CI runs as root, and the page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


def axe() -> Path | None:
    """Find the script of axe-core that the package axe-core-python carries."""
    found = importlib.util.find_spec("axe_core_python")
    return None if found is None else Path(found.origin).with_name("axe.min.js")


def why_not() -> str | None:
    """Say what is missing, None if nothing is."""
    if os.name == "nt":
        return "the pipe to the browser needs POSIX"
    if not any(map(shutil.which, PROGRAMS)):
        return "no Chromium is installed (Debian: apt-get install chromium)"
    if axe() is None:
        return "axe-core-python is not installed (pip install axe-core-python)"
    return None


class Browser:
    """Chromium with one page.

    The DevTools protocol over a pipe needs neither a port nor a package: JSON objects with a NUL
    after each, to file descriptor 3 of the browser, and back from its 4.
    """

    def __init__(self, profile: Path) -> None:
        import fcntl  # only where there is POSIX

        program = next(filter(None, map(shutil.which, PROGRAMS)))
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        high = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (theirs_in, theirs_out)]

        def plug() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=plug,
        )
        for number in (theirs_in, theirs_out, *high):
            os.close(number)
        self._rest, self._number, self._session = b"", 0, None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params):
        """Ask for something and wait for the answer; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read(60)
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read(60))

    def run(self, script: str):
        """Evaluate a script in the page; a promise is waited for."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def look(self, width: int, dark: bool = False, media: str = "") -> None:
        """Set the width of the page in pixels, light or dark, on a screen or on paper."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844 if width < 600 else 800,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Write a PNG of the page, or of its first screen."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def settle(self, seconds: float = 0.3) -> None:
        """Wait for events that are still under way."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                self.events.append(self._read(left))

    def complaints(self) -> list[str]:
        """What the console says: errors, warnings, exceptions, violations of the page's policy."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(json.dumps(params["args"])[:500])
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        """End the browser."""
        self._session = None
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._to)
        os.close(self._from)

    def _read(self, seconds: float) -> dict:
        until = time.monotonic() + seconds
        while b"\0" not in self._rest:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._from], [], [], left)
            if not ready:
                raise TimeoutError(f"The browser said nothing for {seconds} s.")
            data = os.read(self._from, 2**20)
            if not data:
                raise EOFError("The browser is gone.")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def serious(self) -> list[tuple[str, str, list[str]]]:
        """Let axe look at the page: what it finds serious or critical, with some of the places."""
        self.run(axe().read_text() + ";0")
        found = self.run("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
        return [
            (one["id"], one["impact"], [node["html"][:120] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    reason = why_not()
    if reason is not None:
        if os.environ.get("AUTOTRANSFER_NEED_BROWSER") == "1":
            pytest.fail(f"AUTOTRANSFER_NEED_BROWSER=1, but {reason}")
        pytest.skip(reason)
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()
