"""Bytes: the values of one caller cannot fill the host's memory or store.

Memory is the resident set of the process as reported by the kernel. The bounds also hold for a debug build.
"""
import json
import os
import socket
import tempfile
import time
from pathlib import Path

from host import KEY, Host, chain, eventually, node, workflow

MIB = 1024 * 1024
OTHER = "key-of-another-tenant-0123456789"
INPUT = "x" * 900_000
# A quarter of the default, so that a check takes only seconds in any build.
STATE = str(16 * MIB)


def resident(host, what="VmRSS"):
    """Resident bytes of the process, now or at its peak (`VmHWM`)."""
    for line in Path(f"/proc/{host.process.pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {what}")


class HostUnderAttack:
    """A host with these workflows and settings, and a small workflow of another tenant."""

    def __init__(self, binary, *documents, **settings):
        self.settings = settings
        folder = tempfile.mkdtemp(prefix="tandem-abuse-")
        for document in (*documents, chain("neighbour", node("n", "core.noop"))):
            Path(folder, f"{document['id']}.json").write_text(json.dumps(document))
        self.host = Host(binary, [folder], options=())

    def __enter__(self):
        os.environ.update(self.settings)
        try:
            self.host.start()
        finally:
            for name in self.settings:
                del os.environ[name]
        self.before = resident(self.host)
        return self

    def __exit__(self, *_):
        self.host.close()

    def grew(self):
        return (resident(self.host, "VmHWM") - self.before) / MIB

    def other_workflow_completes(self):
        began = time.monotonic()
        run = self.host.create("neighbour")
        assert self.host.ended(run)["status"] == "completed"
        assert time.monotonic() - began < 15, "the neighbour waited"

    def fails_with(self, run, *codes, timeout=60):
        ended = self.host.ended(run, timeout)
        assert ended["status"] == "failed", ended["status"]
        code = ended["error"]["code"]
        assert code in codes, code
        kinds = [event["type"] for event in self.page(run)]
        assert kinds[-1] == "run.failed", kinds[-3:]

    def page(self, run):
        """Every event, page by page; no response is much larger than the page limit."""
        events, cursor = [], ""
        while True:
            reply = self.host.call("GET", f"/v1/runs/{run}/events/poll?timeout=1{cursor}", timeout=60)
            assert reply.status == 200, reply
            assert len(reply.raw) < 24 * MIB, len(reply.raw)
            events += reply.json["events"]
            if reply.json["isComplete"]:
                return events
            assert reply.json["events"], "a page brings the reader on"
            cursor = f"&lastSequence={reply.json['lastEventSeq']}"


def bound(name):
    return {"type": "variable", "variableName": name}


def check_input_copied_by_many_nodes_fails_only_its_run(binary):
    nodes = [node("start", "core.delay", ms=1)] + [node(f"n{i}", "core.noop", {"v": bound("v")}) for i in range(256)]
    wide = workflow("wide", nodes, [("start", f"n{i}") for i in range(256)], [{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, wide, TANDEM_MAX_STATE_BYTES=STATE) as attacked:
        run = attacked.host.create("wide", {"v": INPUT})
        attacked.other_workflow_completes()
        attacked.fails_with(run, "run_state_too_large")
        attacked.other_workflow_completes()
        assert attacked.grew() < 300, f"{attacked.grew():.0f} MiB"


def check_a_loop_that_collects_its_input_fails_its_run(binary):
    nodes = [node("loop", "core.loop", times=400),
             node("write", "core.channelWrite", {"value": bound("v")}, channelName="all", reducer="append")]
    loop = workflow("loop", nodes, [("loop", "write"), ("write", "loop")], [{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, loop, TANDEM_MAX_STATE_BYTES=STATE) as attacked:
        run = attacked.host.create("loop", {"v": INPUT})
        attacked.fails_with(run, "run_state_too_large")
        attacked.other_workflow_completes()
        assert attacked.grew() < 300, f"{attacked.grew():.0f} MiB"
        stored = os.path.getsize(attacked.host.directory / "tandem.db") / MIB
        assert stored < 150, f"{stored:.0f} MiB in the store"


def check_many_ports_with_one_large_value_fail_their_node(binary):
    wide = chain("ports", node("n", "core.noop", {f"p{i}": bound("v") for i in range(2_000)}),
                 variables=[{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, wide) as attacked:
        run = attacked.host.create("ports", {"v": INPUT})
        attacked.fails_with(run, "value_too_large")
        attacked.other_workflow_completes()
        assert attacked.grew() < 200, f"{attacked.grew():.0f} MiB"


def check_fifteen_stalled_readers_use_little_memory(binary):
    nodes = [node(f"n{i}", "core.noop", {"v": bound("v")}) for i in range(12)]
    long = chain("long", *nodes, variables=[{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, long) as attacked:
        host = attacked.host
        run = host.create("long", {"v": INPUT})
        host.ended(run, 60)
        attacked.other_workflow_completes()
        before = eventually(lambda: resident(host), what="a size")
        readers = [stalled(host, run, mode) for mode in ["updates"] * 5 + ["values"] * 5 + ["debug"] * 5]
        try:
            settled(host)
            grew = (resident(host) - before) / MIB
            assert grew < 80, f"15 readers cost {grew:.0f} MiB"
            attacked.other_workflow_completes()
        finally:
            for reader in readers:
                reader.close()


def check_hundred_readers_that_do_not_read_use_bounded_memory(binary):
    nodes = [node(f"n{i}", "core.noop", {"v": bound("v")}) for i in range(12)]
    long = chain("long", *nodes, variables=[{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, long, TANDEM_WRITE_TIMEOUT_SECONDS="10") as attacked:
        host = attacked.host
        run = host.create("long", {"v": INPUT})
        host.ended(run, 60)
        # What is built once stays with the allocator.
        attacked.page(run)
        before = resident(host)
        log = f"/v1/runs/{run}/events"
        for path, accepted in [(f"{log}/poll", "application/json"), (f"/v1/runs/{run}", "application/json"),
                               (f"/v1/runs/{run}/debug-bundle", "application/json"),
                               (f"{log}?streamMode=values", "text/event-stream")]:
            readers = [unread(host, path, accepted) for _ in range(100)]
            try:
                settled(host)
                grew = (resident(host) - before) / MIB
                # 64 MiB of unsent bytes, what is built at the moment, and what the allocator keeps of the readers before: 200
                # to 250, now and then 340. Each reader has 12 MiB, so without the bounds it would be more than 1,000.
                assert grew < 450, f"100 readers of {path} cost {grew:.0f} MiB"
                attacked.other_workflow_completes()
                refused = host.call("GET", f"{log}/poll", timeout=30)
                if refused.status != 200:
                    assert refused.status == 503 and refused.headers["retry-after"], refused
                # The write timeout closes readers that do not read; then there is room.
                eventually(lambda: host.call("GET", f"{log}/poll", timeout=30).status == 200, 60, "a page for a reader")
            finally:
                for reader in readers:
                    reader.close()


def check_fifty_readers_of_pages_that_do_not_read_use_bounded_memory(binary):
    nodes = [node(f"n{i}", "core.noop", {"v": bound("v")}) for i in range(12)]
    long = chain("long", *nodes, variables=[{"name": "v", "type": "string"}])
    notes = [node(f"m{i}", "vendor.tandem.memory", action="put", key=f"k{i}", valueFrom="v") for i in range(200)]
    noting = chain("noting", *notes, variables=[{"name": "v", "type": "string"}])
    asking = chain("asking", node("ask", "core.approvalGate", {"artifactData": bound("v")}, title="May I?"),
                   variables=[{"name": "v", "type": "string"}])
    settings = {"TANDEM_WRITE_TIMEOUT_SECONDS": "10", "TANDEM_TENANT2_API_KEY": OTHER}
    with HostUnderAttack(binary, long, noting, asking, **settings) as attacked:
        host = attacked.host
        run, noted = host.create("long", {"v": INPUT}), host.create("noting", {"v": "x" * 60_000})
        asked = [host.create("asking", {"v": INPUT}) for _ in range(12)]
        host.ended(run, 60)
        host.ended(noted, 60)
        for one in asked:
            host.reaches(one, "waiting-approval")
        question = host.get(f"/v1/host/tandem/interrupts?runId={asked[0]}")["interrupts"][0]["interruptId"]
        cookie = {"Cookie": signed_in(host), "Accept": "text/html"}
        paths = [(f"/v1/host/tandem/runs/{noted}/memory", bearer("application/json")), ("/console/inbox", cookie),
                 (f"/console/inbox/{question}", cookie), (f"/console/runs/{run}", cookie),
                 (f"/console/runs/{run}/at/20", cookie), (f"/console/runs/{noted}/at/400", cookie)]
        for path, headers in paths:
            # What is built once stays with the allocator.
            reply = host.call("GET", path, headers=headers, key=None, timeout=60)
            assert reply.status == 200, reply
            assert len(reply.raw) < 4 * MIB, f"{path}: {len(reply.raw)} bytes"
        before = resident(host)
        for path, headers in paths:
            readers = [send_unread(host, path, headers) for _ in range(50)]
            try:
                waited = create_times(host, 50)
                settled(host)
                grew = (resident(host) - before) / MIB
                assert grew < 300, f"50 readers of {path} cost {grew:.0f} MiB"
                # For a debug build on a busy machine; otherwise they are milliseconds.
                assert waited[-5] < 1 and waited[-1] < 5, f"with readers of {path} a neighbour waited {waited[-5:]} s"
            finally:
                for reader in readers:
                    reader.close()


def create_times(host, count):
    """How long another tenant waits for new runs, in ascending order."""
    times = []
    for _ in range(count):
        began = time.monotonic()
        reply = host.call("POST", "/v1/runs", {"workflowId": "neighbour", "inputs": {}}, key=OTHER)
        assert reply.status == 201, reply
        times.append(time.monotonic() - began)
    return sorted(times)


def signed_in(host):
    """The cookie of a browser that is signed in."""
    reply = host.call("POST", "/console/login", raw=f"key={KEY}".encode(), key=None,
                      headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert reply.status == 303, reply
    return reply.headers["set-cookie"].split(";")[0]


def bearer(accepted):
    return {"Accept": accepted, "Authorization": f"Bearer {KEY}"}


def stalled(host, run, mode):
    """A connection that opens a stream and then reads nothing."""
    return unread(host, f"/v1/runs/{run}/events?streamMode={mode}", "text/event-stream")


def unread(host, path, accepted):
    return send_unread(host, path, bearer(accepted))


def send_unread(host, path, headers):
    """A connection that sends a request and then reads nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", host.port))
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    reader.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())
    return reader


def settled(host, for_seconds=2.0):
    """Waits until memory has stopped growing."""
    highest, since, end = 0, time.monotonic(), time.monotonic() + 20
    while time.monotonic() - since < for_seconds and time.monotonic() < end:
        now = resident(host)
        if now > highest + MIB:
            highest, since = now, time.monotonic()
        time.sleep(0.1)


def check_stream_delivers_a_large_log_completely(binary):
    nodes = [node(f"n{i}", "core.noop", {"v": bound("v")}) for i in range(10)]
    long = chain("long", *nodes, variables=[{"name": "v", "type": "string"}])
    with HostUnderAttack(binary, long) as attacked:
        run = attacked.host.create("long", {"v": INPUT})
        attacked.host.ended(run, 60)
        polled = [event["sequence"] for event in attacked.page(run)]
        assert polled == list(range(len(polled))), polled[:5]
        raw = attacked.host.call("GET", f"/v1/runs/{run}/events?streamMode=debug", timeout=60,
                                 headers={"Accept": "text/event-stream"}).raw
        ids = [int(line[4:]) for line in raw.decode().split("\n") if line.startswith("id: ")]
        assert ids == polled, (len(ids), len(polled))


def check_number_of_descendant_runs_is_bounded(binary):
    levels = [chain("level0", node("n", "core.noop"))]
    for level in range(1, 7):
        nodes = [node(f"c{i}", "core.subWorkflow", workflowId=f"level{level - 1}", onChildFailure="absorb")
                 for i in range(8)]
        levels.append(workflow(f"level{level}", nodes))
    with HostUnderAttack(binary, *levels, TANDEM_MAX_DESCENDANTS="300") as attacked:
        # Without a limit: 8 + 64 + ... + 262,144 runs.
        run = attacked.host.create("level6")
        attacked.host.ended(run, 60)
        attacked.other_workflow_completes()
        eventually(lambda: not attacked.host.listed("status=running"), 60, "all runs of the tree ended")
        rows = [row for status in ("completed", "failed", "cancelled")
                for row in attacked.host.listed(f"status={status}")]
        tree = [row for row in rows if row["workflowId"].startswith("level")]
        assert 8 < len(tree) <= 301, len(tree)
        failed = [row["runId"] for row in tree if row["status"] == "failed"]
        codes = {attacked.host.run(run)["error"]["code"] for run in failed}
        assert "descendants_exceeded" in codes, codes
