"""One server with several agents, and what their users and admins do.

A script lists the sources of its agents and its checks. A check says which numbers it proves at the beginning of its
label. Standard library only.
"""
from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import traceback
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import KEY, Host, Outside, Reply, Tally, eventually  # noqa: E402

API = "/v1/host/tandem"
ROLES = {
    "boss": ["hitl.escalation.view", "hitl.escalation.resolve", "flow.manage", "audit.view", "command.vip",
             "command.answer_for_user"],
    "viewer": ["hitl.escalation.view"],
}
ACTORS = {"ana": "boss", "ben": "boss", "vic": "viewer"}
CHATS = {"chat-ana": "ana", "chat-vic": "vic"}

START_ON_TEXT = """async (input) => {
    const m = /^start (\\w+)(?: (.*))?$/s.exec(input.text ?? '');
    if (m) return { action: 'route_flow', flowId: m[1], input: m[2] ? JSON.parse(m[2]) : undefined };
  }"""
TOOLS = """[
    { name: 'note', kind: 'record', returns: 'noted' },
    { name: 'pay', kind: 'record', returns: { ok: true } },
  ]"""


def token(actor):
    return f"token-of-{actor}-0123456789"


def admin_auth(**more):
    tokens = [{"hash": "sha256:" + hashlib.sha256(token(a).encode()).hexdigest(), "actorId": a, "role": role}
              for a, role in ACTORS.items()]
    chat = [{"transport": "loopback", "address": address, "actorId": a, "role": ACTORS[a]}
            for address, a in CHATS.items()]
    return json.dumps({"tokens": tokens, "chat": chat, "roles": ROLES, **more})


def script(*answers, otherwise="model speaks"):
    """The field `model`: these answers, then `otherwise` for ever."""
    tail = {} if otherwise is None else {"otherwise": {"text": otherwise}}
    return json.dumps({"provider": "scripted", "script": {"answers": list(answers), **tail}})


def noting(label, answer=""):
    """A hook that notes its arguments under a key of the session, then answers."""
    return f"""async (input, ctx, meta) => {{
      const seen = (await ctx.session.kv.get('{label}')) ?? [];
      await ctx.session.kv.set('{label}', [...seen, JSON.parse(JSON.stringify({{ input, meta: meta ?? null }}))]);
      {answer}
    }}"""


def flow(name, body):
    return f"export const {name} = async function* (ctx) {{\n{body}\n}};\n"


def agent(**fields):
    """Source of an agent.ts. A value is code; None leaves a default out."""
    parts = {"prompt": "'You are the desk.'", "model": script(), "tools": TOOLS, "adminAuth": admin_auth(),
             "rateLimitPerUserPerMinute": "100000", "maxInboundConcurrency": "1000", "beforeLLM": START_ON_TEXT,
             **fields}
    body = "".join(f"  {name}: {code},\n" for name, code in parts.items() if code is not None)
    return "import { createAgent, withReply } from 'tandem';\n\nexport default createAgent({\n" + body + "});\n"


def source(*flows, files=None, **fields):
    """The files of one agent: its agent.ts, its flows, more."""
    found = {"agent.ts": agent(**fields), **(files or {})}
    if flows:
        found["flows/flows.ts"] = "".join(flows)
    return found


class Server(Host):
    """A host with the agents of a script."""

    def __init__(self, binary, agents, **more):
        super().__init__(binary, **more)
        folder = self.directory / "agents"
        for agent_id, files in agents.items():
            for name, text in files.items():
                path = folder / agent_id / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self.options = [*self.options, "--agents", str(folder)]

    def restart(self, **env):
        self.kill()
        self.start_with(**env)

    def start_with(self, **env):
        kept, self.env = self.env, {**self.env, **env}
        self.start()
        self.env = kept

    def ok(self, method, path, body=None, **more) -> dict:
        reply = self.call(method, API + path, body, timeout=40, **more)
        if reply.status not in (200, 201):
            raise AssertionError(f"{method} {path}: {reply!r}")
        return reply.json

    def clock(self, seconds=0):
        """Moves the clock; everything due by then is done afterwards."""
        moved = self.ok("POST", "/test/clock", {"advanceSeconds": seconds})
        if not moved["settled"]:
            raise AssertionError("the server did not come to rest")
        return moved["now"]

    def crash(self, point, act):
        """Arms a crash point, acts, waits for the end of the process, and starts it again."""
        self.clock()
        self.ok("POST", "/test/crash", {"point": point})
        with contextlib.suppress(OSError, http.client.HTTPException):
            act()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"crash point {point} was not reached") from None
        self.start()

    def admin(self, method, path, body=None, who="ana") -> Reply:
        headers = {"X-Admin-Token": token(who)} if who else {}
        return self.call(method, API + path, body, headers, timeout=40)


class Chat:
    """One user who talks to one agent."""

    def __init__(self, server, agent_id, user=None):
        self.server, self.agent, self.user = server, agent_id, user or f"u-{uuid.uuid4().hex[:8]}"
        self.session_id = None

    def send(self, text, mid=None, **more) -> dict:
        body = {"messageId": mid or uuid.uuid4().hex, "from": self.user, "body": text, **more}
        answer = self.server.ok("POST", f"/agents/{self.agent}/inbound?wait=true", body)
        self.session_id = answer.get("sessionId") or self.session_id
        return answer

    def post(self, text, mid=None, **more) -> Reply:
        """A message whose turn is not waited for."""
        body = {"messageId": mid or uuid.uuid4().hex, "from": self.user, "body": text, **more}
        return self.server.call("POST", f"{API}/agents/{self.agent}/inbound", body)

    def say(self, text, mid=None, **more) -> list[str]:
        return [sent["text"] for sent in self.send(text, mid, **more)["outbound"]]

    def start(self, flow_id, value=None) -> list[str]:
        return self.say(f"start {flow_id}" + ("" if value is None else " " + json.dumps(value)))

    def get(self, part="") -> dict:
        return self.server.ok("GET", f"/sessions/{self.session_id}{part}")

    @property
    def mode(self):
        return self.get()["hitl"]["mode"]

    @property
    def flow(self):
        return self.get()["flow"]

    @property
    def paused_on(self):
        return (self.flow or {}).get("pausedOn")

    def keys(self) -> dict:
        self.server.clock()
        return self.get("/kv")

    def noted(self, label) -> list:
        return self.keys().get(label) or []

    def messages(self) -> list[dict]:
        return self.get("/messages")["messages"]

    def events(self, *kinds) -> list[dict]:
        """All events of the session, or those of some kinds, when everything due is done."""
        self.server.clock()
        found, after = [], -1
        while True:
            page = self.get(f"/events?after={after}")["events"]
            if not page:
                return [e for e in found if not kinds or e["type"] in kinds]
            found, after = found + page, page[-1]["sequence"]

    def payloads(self, *kinds) -> list[dict]:
        return [e["payload"] for e in self.events(*kinds)]

    def types(self) -> list[str]:
        return [e["type"] for e in self.events()]

    def delivered(self) -> list[str]:
        """Texts that reached the user, when everything due is done."""
        self.server.clock()
        return [m["text"] for m in self.server.ok("GET", f"/test/outbound?to={self.user}")["messages"]]

    def model_calls(self, purpose=None) -> list[dict]:
        calls = self.server.ok("GET", f"/test/model/{self.agent}")["calls"]
        return [c for c in calls if c["sessionId"] == self.session_id and purpose in (None, c["purpose"])]

    def tool_calls(self, name=None) -> list[dict]:
        calls = self.server.ok("GET", f"/test/tools/{self.agent}")["calls"]
        return [c for c in calls if c["sessionId"] == self.session_id and name in (None, c["name"])]

    def admin(self, method, part="", body=None, who="ana") -> Reply:
        return self.server.admin(method, f"/sessions/{self.session_id}{part}", body, who)

    def resolve(self, approved=True, who="ana", **more) -> Reply:
        return self.admin("POST", "/resolve", {"approved": approved, **more}, who)

    def question(self) -> dict:
        """The one open question of the session, as the inbox shows it."""
        [item] = self.server.ok("GET", f"/interrupts?status=open&sessionId={self.session_id}")["interrupts"]
        return item

    def failures(self, stage) -> list[str]:
        return [p.get("reason") for p in self.payloads("response:failed") if p.get("stage") == stage]


class Visitor:
    """A client of the UI channel: a WebSocket that sends and reads frames of JSON."""

    def __init__(self, server, agent_id):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.socket.sendall((f"GET {API}/agents/{agent_id}/ui HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                             f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        status = self.stream.readline()
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        if b" 101 " not in status:
            raise AssertionError(f"no channel: {status!r}")
        self.send({"type": "CONNECT"})
        self.client_id = self.until("CONNECTED")["clientId"]

    def send(self, frame):
        data = json.dumps(frame).encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
        # The mask is zero, so the text is sent as it is.
        self.socket.sendall(bytes([0x81]) + size + bytes(4) + data)

    def say(self, text, mid):
        self.send({"type": "INBOUND_MESSAGE", "messageId": mid, "body": text})
        return self.until("ACK")

    def until(self, kind):
        """The next frame of a type."""
        while True:
            opcode, size = self.stream.read(2)
            size &= 0x7F
            if size > 125:
                size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
            data = self.stream.read(size)
            if opcode == 0x81 and json.loads(data)["type"] == kind:
                return json.loads(data)

    def close(self):
        self.socket.close()


def in_order(kinds, *wanted):
    """Whether `wanted` occurs in `kinds` as a subsequence."""
    rest = iter(kinds)
    return all(kind in rest for kind in wanted)


def at_once(*jobs):
    """Results of jobs on threads that start together; exceptions are results too."""
    results, gate = [None] * len(jobs), threading.Barrier(len(jobs))

    def work(number, job):
        gate.wait()
        try:
            results[number] = job()
        except Exception as error:  # noqa: BLE001 - the check judges it
            results[number] = error
    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main(about, agents, groups):
    """Runs the groups of checks: functions of the server, a function that makes a chat, and `check(label, got, wanted)`."""
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--binary", required=True)
    options.add_argument("--only", action="append", help="groups whose name contains the text")
    options = options.parse_args()
    tally = Tally()

    def check(label, got, wanted=True):
        tally.check(label, None if got == wanted else f"{got!r}, not {wanted!r}"[:1500])

    server = Server(options.binary, agents).start()
    try:
        for group in groups:
            if options.only and not any(text in group.__name__ for text in options.only):
                continue
            try:
                group(server, lambda agent_id, user=None: Chat(server, agent_id, user), check)
            except Exception:  # noqa: BLE001 - the other groups run
                tally.check(group.__name__, traceback.format_exc(limit=-3))
                if server.process.poll() is not None:
                    server.start()
    finally:
        server.close()
    sys.exit(tally.close())


__all__ = ["API", "KEY", "Chat", "Outside", "Server", "Visitor", "admin_auth", "agent", "at_once", "eventually", "flow", "in_order", "json", "main",
           "noting", "script", "source", "token"]
