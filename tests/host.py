"""The real binary for end-to-end tests: a process, an HTTP client, and a server for its effects.

Standard library only.
"""
from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
KEY = "whole-house-key-0123456789abcdef"
TERMINAL = {"completed", "failed", "cancelled"}


def eventually(probe, timeout=20.0, what="condition"):
    """Calls `probe` until it returns a truthy value, and returns that value."""
    end = time.monotonic() + timeout
    while True:
        got = probe()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(0.02)


class Reply:
    def __init__(self, status, headers, raw):
        self.status, self.raw = status, raw
        self.headers = {name.lower(): value for name, value in headers}

    @property
    def json(self):
        return json.loads(self.raw) if self.raw else None

    def __repr__(self):
        return f"<{self.status} {self.raw[:300]!r}>"


class Host:
    """One `tandem` process with its own directory, which is kept across restarts."""

    def __init__(self, binary, workflows=(), command=("serve",), options=("--test-seams",), env=None):
        self.env = env or {}
        self.binary, self.command, self.options = str(Path(binary).resolve()), list(command), list(options)
        self.workflows = [str(folder) for folder in workflows]
        self.directory = Path(tempfile.mkdtemp(prefix="tandem-house-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        words = [self.binary, *self.command, "--listen", f"127.0.0.1:{self.port}"]
        if self.command == ["serve"]:
            words += ["--store", f"sqlite:{self.directory / 'tandem.db'}"]
        for folder in self.workflows:
            words += ["--workflows", folder]
        with open(self.directory / "output.log", "ab") as log:
            self.process = subprocess.Popen(words + self.options, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "TANDEM_API_KEY": KEY, **self.env}, cwd=self.directory)
        eventually(self._ready, 30, "/healthz 200")
        return self

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"tandem ended with {self.process.returncode}: {self.log()[-2000:]}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.call("GET", "/healthz", timeout=2).status == 200

    def log(self):
        return (self.directory / "output.log").read_text(errors="replace")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def close(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, method, path, body=None, headers=None, key=KEY, timeout=15.0, raw=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = {"Accept": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = raw
        if body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            connection.request(method, path, body=data, headers={**sent, **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def get(self, path, status=200, **more):
        reply = self.call("GET", path, **more)
        if reply.status != status:
            raise AssertionError(f"GET {path}: wanted {status}, got {reply!r}")
        return reply.json

    def create(self, workflow, inputs=None, headers=None, **more):
        reply = self.call("POST", "/v1/runs", {"workflowId": workflow, "inputs": inputs or {}, **more}, headers)
        if reply.status != 201:
            raise AssertionError(f"create {workflow}: {reply!r}")
        return reply.json["runId"]

    def run(self, run_id):
        return self.get(f"/v1/runs/{run_id}")

    def ended(self, run_id, timeout=20.0):
        return eventually(lambda: (s := self.run(run_id))["status"] in TERMINAL and s, timeout, f"{run_id} ended")

    def reaches(self, run_id, status, timeout=20.0):
        return eventually(lambda: (s := self.run(run_id))["status"] == status and s, timeout, f"{run_id} {status}")

    def events(self, run_id):
        return self.get(f"/v1/runs/{run_id}/events?streamMode=debug")["events"]

    def listed(self, query):
        """Every row of a run listing, page by page."""
        rows, cursor = [], ""
        while True:
            page = self.get(f"/v1/host/tandem/runs?{query}&limit=100{cursor}")
            rows += page["runs"]
            if not page.get("nextCursor"):
                return rows
            cursor = f"&cursor={page['nextCursor']}"


class Outside:
    """The target of effects: responds with 200 and records the requests."""

    def __init__(self, answer=lambda path, body: (200, {"ok": True})):
        self.requests, self._lock = [], threading.Lock()
        outside = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                body = json.loads(raw) if raw else None
                with outside._lock:
                    outside.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, content = answer(self.path, body)
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):  # the caller may have been killed in the meantime
                    self.wfile.write(data)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a killed caller resets its connections

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()


def node(node_id, type_id, inputs=None, **config):
    return {"id": node_id, "typeId": type_id, "name": node_id, "position": {"x": 0, "y": 0}, "config": config,
            "inputs": inputs or {}}


def workflow(workflow_id, nodes, edges=(), variables=(), **extra):
    """A complete workflow document. Edges are (source, target) pairs or whole edges."""
    return {"id": workflow_id, "name": workflow_id, "version": "1.0", "nodes": nodes,
            "edges": [edge if isinstance(edge, dict) else
                      {"id": f"e{i}", "sourceNodeId": edge[0], "targetNodeId": edge[1]} for i, edge in enumerate(edges)],
            "triggers": [{"id": "manual", "type": "manual"}], "variables": list(variables), "metadata": {},
            "settings": {"timeout": 0}, **extra}


def chain(workflow_id, *nodes, **extra):
    ids = [n["id"] for n in nodes]
    return workflow(workflow_id, list(nodes), list(zip(ids, ids[1:])), **extra)


class Tally:
    """Counts checks and prints the closing line."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, problem=None):
        """`problem` is falsy when the check passed."""
        if problem:
            self.failed += 1
            print(f"FAIL  {name}: {problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok    {name}", flush=True)

    def attempt(self, name, action):
        """Runs a check that raises on failure; returns its result."""
        try:
            result = action()
        except Exception as error:  # noqa: BLE001 - a check may fail in any way
            self.check(name, f"{type(error).__name__}: {error}")
            return None
        self.check(name)
        return result

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0
