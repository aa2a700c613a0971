"""A page of a server in a real browser: a script of ours runs on it, whatever its policy allows."""

import base64
import json
import os
import subprocess

from tests.report.browser import BROWSER

COMPLAINTS = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


def in_browser(address, script, tmp_path):
    """What the script gives, and what the browser had to say meanwhile; a picture of the page is left in tmp_path."""
    to_browser, from_browser = os.pipe(), os.pipe()
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # which Chromium refuses to build for root
    words = [
        BROWSER, *sandbox, f"--user-data-dir={tmp_path / 'profile'}", "--headless=new", "--disable-gpu",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
        "about:blank",
    ]  # fmt: skip
    redirected = f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
    process = subprocess.Popen(
        ["bash", "-c", redirected, "bash", *words], pass_fds=(to_browser[0], from_browser[1]), stderr=subprocess.DEVNULL
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        with os.fdopen(to_browser[1], "wb", 0) as speak, os.fdopen(from_browser[0], "rb") as listen:
            talk = Talk(speak, listen)
            target = talk.ask("Target.createTarget", url="about:blank")["targetId"]
            talk.session = talk.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for part in ("Runtime", "Log", "Page"):
                talk.ask(f"{part}.enable")
            talk.ask("Page.navigate", url=address)
            talk.wait_for("Page.loadEventFired")
            work = f"(async () => {{ {script} }})()"
            found = talk.ask("Runtime.evaluate", expression=work, awaitPromise=True, returnByValue=True)
            picture = talk.ask("Page.captureScreenshot", format="png")["data"]
            (tmp_path / "page.png").write_bytes(base64.b64decode(picture))
            talk.session = None
            talk.ask("Browser.close")
        return found["result"].get("value"), talk.complaints
    finally:
        process.kill()
        process.wait(30)


class Talk:
    """Questions and answers of the devtools protocol, over two pipes."""

    def __init__(self, speak, listen):
        self.speak, self.listen, self.session, self.number = speak, listen, None, 0
        self.complaints, self.waiting = [], b""

    def ask(self, method, **parameters):
        self.number += 1
        session = {"sessionId": self.session} if self.session else {}
        self.speak.write(
            json.dumps({"id": self.number, "method": method, "params": parameters, **session}).encode() + b"\0"
        )
        while (message := self.hear()).get("id") != self.number:
            pass
        assert "error" not in message, message
        return message["result"]

    def wait_for(self, event):
        while self.hear().get("method") != event:
            pass

    def hear(self):
        while b"\0" not in self.waiting:
            more = self.listen.read1(65536)
            assert more, "the browser has gone"
            self.waiting += more
        text, _, self.waiting = self.waiting.partition(b"\0")
        message = json.loads(text)
        if message.get("method") in COMPLAINTS:
            self.complaints.append(message["params"])
        return message
