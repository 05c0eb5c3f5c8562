"""A browser without a window, driven by the WebDriver protocol (W3C WebDriver 2) and Chromium's own commands."""

import json
import re
import shutil
import subprocess
import tempfile
import threading

import harness

KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Down": "\ue015", "Up": "\ue013", "Space": " "}


class Browser:
    """One session of Chromium: a page, its console and its requests."""

    def __init__(self, *switches):
        self.folder = tempfile.mkdtemp()
        self.port = self.start() or self.start()
        if not self.port:
            raise RuntimeError("chromedriver does not start")
        threading.Thread(target=self.driver.stdout.read, daemon=True).start()
        # The sandbox needs rights that a container does not give. The browser opens only this project's pages.
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
            f"--user-data-dir={self.folder}", "--disable-background-networking", "--hide-scrollbars",
            *switches,
        ]
        answer = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            # With the default of 30 s a waiting script would be ended if the processors are busy.
            "timeouts": {"script": 240_000},
        }}})
        self.session = f"/session/{answer['sessionId']}"

    def start(self):
        """Starts the driver on a free port; None if it ends at once, for instance because another program took the port."""
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return found.group(1)
        self.driver.wait()
        return None

    def send(self, method, path, body=None):
        status, text = harness.request(self.port, method, path, None if body is None else json.dumps(body), timeout=300)
        value = json.loads(text)["value"]
        if status != 200:
            raise RuntimeError(f"{path}: {value}")
        return value

    def do(self, path, body=None):
        return self.send("POST", self.session + path, body or {})

    def command(self, name, /, **parameters):
        """A command of the DevTools protocol."""
        return self.do("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def show(self, width, height, scheme):
        """Sets the size of the page and its colour scheme."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.do("/url", {"url": url})

    def run(self, script, *arguments):
        """Runs the body of a JavaScript function, and returns its value."""
        return self.do("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """Waits within the page until an expression holds, and returns its value."""
        return self.do("/execute/async", {
            "script": "const done = arguments[arguments.length - 1], given = arguments; const look = () => { "
            f"const value = (function () {{ return {script}; }}).apply(null, given); "
            "if (value) done(value); else setTimeout(look, 20); }; look();",
            "args": list(arguments),
        })

    def press(self, *names):
        """Presses keys by name, or types text."""
        actions = []
        for name in names:
            for key in [KEYS[name]] if name in KEYS else name:
                actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.do("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector):
        """Clicks the middle of an element with the mouse. Scrolls only if the element is out of view."""
        element = self.send("POST", self.session + "/element", {"using": "css selector", "value": selector})
        self.do("/execute/sync", {"script": "arguments[0].scrollIntoView({block: 'nearest'})", "args": [element]})
        self.do("/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "origin": element, "x": 0, "y": 0},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0},
        ]}]})

    def reload(self):
        self.do("/refresh")

    def log(self, kind):
        return self.do("/se/log", {"type": kind})

    def requests(self):
        """The addresses that the page requested since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self):
        try:
            self.send("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
