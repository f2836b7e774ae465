"""Drives headless Chromium over the DevTools protocol's pipe, with nothing but the standard library; beyond this machine the network is off."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCAL = "http://127.0.0.1:"
TIMEOUT_S = 120  # for one answer; a busy machine starts Chromium in many seconds


def find_browser():
    """The path of a browser that speaks the protocol, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page of a browser of its own. Everything that it complains about or asks the network for is kept.

    `page` is a file, which is opened with the network off, or an address that starts with LOCAL; no other host is ever found.
    `errors` has console errors, uncaught exceptions and log entries of level error, `warnings` what the console warns of; `requests` the URLs of everything
    that was loaded. Scripts are off where `javascript` is False: then they are off for the page, not for evaluate().
    """

    def __init__(self, page, *, javascript=True, width=1280, height=2000):
        self.errors, self.warnings, self.requests = [], [], []
        self._profile = tempfile.TemporaryDirectory(prefix="decodelab-chromium-", ignore_cleanup_errors=True)
        local = str(page).startswith(LOCAL)
        hosts = "MAP * ~NOTFOUND" + (", EXCLUDE 127.0.0.1" if local else "")
        # The browser reads file descriptor 3 and writes 4, messages end in a zero byte.
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", f"--host-resolver-rules={hosts}", f"--window-size={width},{height}",
                   f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(["sh", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', find_browser(), *options],
                                         pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._next, self._buffer, self._answers, self._session, self._loaded = 0, b"", {}, None, False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Network.emulateNetworkConditions", offline=not local, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        if not javascript:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=page if local else Path(page).resolve().as_uri())
        self._wait(lambda: self._loaded, "the page to load")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(timeout=TIMEOUT_S)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def call(self, method, **parameters):
        """The result of a method of the protocol; RuntimeError with its words where it fails."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        number = self._next
        self._wait(lambda: number in self._answers, method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression, promises waited for; RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description', answer['exceptionDetails']['text'])}")
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=TIMEOUT_S):
        """Waits until the expression is true; TimeoutError with it where it never is."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"'{expression}' was not true within {seconds} s; errors: {self.errors}")
            time.sleep(0.1)

    def move_to(self, x, y):
        """Moves the mouse to a point of the window, from somewhere else."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 3, y=y - 3)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.move_to(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _wait(self, done, what):
        end = time.monotonic() + TIMEOUT_S
        while not done():
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium said nothing for {TIMEOUT_S} s while waiting for {what}")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError(f"Chromium ended (exit code {self._process.poll()}) while waiting for {what}")
            *messages, self._buffer = (self._buffer + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, parameters = message["method"], message["params"]
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            kept = self.warnings if parameters["type"] == "warning" else self.errors
            kept.append(f"console.{parameters['type']}: {[value.get('value', value.get('description')) for value in parameters['args']]}")
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"log: {parameters['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
