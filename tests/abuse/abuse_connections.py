"""Connections, streams and store files: no client blocks others, no store is opened twice or readable by other users."""
import contextlib
import json
import os
import resource
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from host import Host, KEY, chain, eventually, node

OTHER = "key-of-another-tenant-0123456789"
WAIT = {"TANDEM_HEADER_TIMEOUT_SECONDS": "2", "TANDEM_BODY_TIMEOUT_SECONDS": "2"}


@contextlib.contextmanager
def serving(binary, workflows=(), environment=None, descriptors=None, **more):
    """A host with its own settings, and optionally with few file descriptors."""
    host = Host(binary, workflows=workflows, **more)
    before = dict(os.environ)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.environ.update(environment or {})
    if descriptors:
        host.binary = limited(host, descriptors)
    try:
        host.start()
        yield host
    finally:
        os.environ.clear()
        os.environ.update(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        host.close()


def limited(host, descriptors):
    """A script that starts the binary with a hard limit on file descriptors."""
    script = host.directory / "limited"
    script.write_text(f"#!/bin/sh\nulimit -n {descriptors}\nexec '{host.binary}' \"$@\"\n")
    script.chmod(0o700)
    return str(script)


def room_for(sockets):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = sockets + 200
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))


def connect(host, sent=b""):
    raw = socket.create_connection(("127.0.0.1", host.port), timeout=5)
    if sent:
        raw.sendall(sent)
    return raw


def is_closed(raw, within):
    raw.settimeout(within)
    try:
        while raw.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def documents():
    folder = Path(tempfile.mkdtemp(prefix="tandem-abuse-"))
    waiting = chain("waiting", node("a", "core.delay", delayMs=3_600_000))
    (folder / "waiting.json").write_text(json.dumps(waiting))
    return [folder]


def check_incomplete_headers_do_not_block_other_clients(binary):
    room_for(1_100)
    # 1,024 descriptors leave room for 512 connections.
    with serving(binary, descriptors=1024) as host:
        held = [connect(host, b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-") for _ in range(1_100)]
        try:
            for _ in range(20):
                began = time.monotonic()
                assert host.call("GET", "/healthz", timeout=5).status == 200
                took = time.monotonic() - began
                assert took < 2, f"a normal client waited {took:.1f} s"
        finally:
            for raw in held:
                raw.close()
        host.process.terminate()
        assert host.process.wait(10) == 0, "it stops as asked"


def check_unfinished_bodies_of_one_key_do_not_block_other_keys(binary):
    room_for(800)
    # 1,100 descriptors leave room for 550 connections, 275 for one tenant and 138 for one key.
    with serving(binary, descriptors=1100) as host:
        made = host.call("POST", "/v1/host/tandem/keys", {"name": "other", "scopes": ["runs:read"]})
        assert made.status == 201, made
        head = f"POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 1000\r\n\r\n"
        held = [connect(host, head.encode() + b"{") for _ in range(700)]
        try:
            for _ in range(20):
                began = time.monotonic()
                assert host.call("GET", "/v1/runs", key=made.json["secret"], timeout=5).status == 200
                took = time.monotonic() - began
                assert took < 2, f"a client with another key waited {took:.1f} s"
            held[-1].settimeout(5)
            assert held[-1].recv(100).startswith(b"HTTP/1.1 429"), "above its share the key is refused"
        finally:
            for raw in held:
                raw.close()


def keys_of_one_tenant(host):
    """The first key of a tenant and two others."""
    made = [host.call("POST", "/v1/host/tandem/keys", {"name": name, "scopes": ["runs:create", "runs:read"]})
            for name in ("second", "third")]
    assert all(reply.status == 201 for reply in made), made
    return [KEY] + [reply.json["secret"] for reply in made]


def check_unfinished_bodies_of_many_keys_do_not_block_other_tenants(binary):
    room_for(1_000)
    with serving(binary, environment={"TANDEM_TENANT2_API_KEY": OTHER}, descriptors=1100) as host:
        held, keys = [], keys_of_one_tenant(host)
        try:
            for _ in range(300):
                for key in keys:
                    head = f"POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Length: 1000\r\n\r\n"
                    held.append(connect(host, head.encode() + b"{"))
            # Longer than it takes until a body is overdue, with bodies that go on.
            began = time.monotonic()
            while time.monotonic() - began < 8:
                sent = time.monotonic()
                assert host.call("GET", "/v1/runs", key=OTHER, timeout=5).status == 200
                took = time.monotonic() - sent
                assert took < 2, f"another tenant waited {took:.1f} s"
                for raw in held:
                    with contextlib.suppress(OSError):
                        raw.send(b" ")
                time.sleep(0.2)
            held[-1].settimeout(5)
            assert held[-1].recv(100).startswith(b"HTTP/1.1 429"), "above its share the tenant is refused"
        finally:
            for raw in held:
                raw.close()


def check_streams_of_many_keys_do_not_block_other_tenants(binary):
    room_for(1_000)
    # 550 connections leave room for 413 streams, and 207 of one tenant.
    with serving(binary, workflows=documents(), environment={"TANDEM_TENANT2_API_KEY": OTHER}, descriptors=1100) as host:
        def stream(run, key):
            raw = connect(host, (f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n"
                                 f"Authorization: Bearer {key}\r\n\r\n").encode())
            return raw, int(raw.recv(100).split(b" ")[1])
        run, keys = host.create("waiting"), keys_of_one_tenant(host)
        opened = [stream(run, key) for _ in range(200) for key in keys]
        try:
            statuses = [status for _, status in opened]
            assert set(statuses) == {200, 429}, set(statuses)
            assert 150 < statuses.count(200) <= 207, statuses.count(200)
            made = host.call("POST", "/v1/runs", {"workflowId": "waiting", "inputs": {}}, key=OTHER)
            assert made.status == 201, made
            opened += (theirs := [stream(made.json["runId"], OTHER) for _ in range(20)])
            assert {status for _, status in theirs} == {200}, "another tenant finds room"
        finally:
            for raw, _ in opened:
                raw.close()


def check_more_connections_than_descriptors_are_refused_at_start(binary):
    host = Host(binary)
    host.binary = limited(host, 1024)
    try:
        done = subprocess.run([host.binary, "serve", "--listen", "127.0.0.1:0"], cwd=host.directory, capture_output=True,
                              text=True, timeout=30, env={**os.environ, "TANDEM_MAX_CONNECTIONS": "5000"})
        assert done.returncode == 1 and "room for 512" in done.stderr, done.stderr
    finally:
        host.close()


def check_header_and_body_timeouts(binary):
    with serving(binary, environment=WAIT) as host:
        silent = connect(host)
        half = connect(host, b"GET /healthz HTTP/1.1\r\nHost: a\r\n")
        used = connect(host, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        head = f"POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 1000\r\n\r\n"
        slow = connect(host, head.encode() + b"{")
        used.settimeout(5)
        assert used.recv(100).startswith(b"HTTP/1.1 200"), "it was answered"
        used.sendall(b"GET /hea")
        slow.settimeout(6)
        assert slow.recv(100).startswith(b"HTTP/1.1 400"), "a slow body is answered"
        for name, raw in [("silent", silent), ("half", half), ("used", used), ("slow", slow)]:
            assert is_closed(raw, 6), f"{name} is still open"


def check_stalled_reader_is_disconnected(binary):
    settings = {"TANDEM_WRITE_TIMEOUT_SECONDS": "2"}
    with serving(binary, environment=settings) as host:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", host.port))
        request = f"GET /v1/openapi.json HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
        raw.settimeout(1)
        with contextlib.suppress(OSError):
            for _ in range(400):
                raw.sendall(request * 20)
        # The connection is reset because nothing is read; the next write fails.
        def reset():
            try:
                raw.send(b"x")
                return False
            except TimeoutError:
                return False
            except OSError:
                return True
        eventually(reset, 10, "the connection is cut off")
        assert host.call("GET", "/healthz").status == 200


def check_streams_of_one_key_are_bounded(binary):
    settings = {"TANDEM_MAX_STREAMS_PER_KEY": "3"}
    with serving(binary, workflows=documents(), environment=settings) as host:
        run = host.create("waiting")
        request = (f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n"
                   f"Authorization: Bearer {KEY}\r\n\r\n").encode()
        held = [connect(host, request) for _ in range(3)]
        for raw in held:
            assert raw.recv(100).startswith(b"HTTP/1.1 200")
        refused = host.call("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"})
        assert refused.status == 429 and refused.headers["retry-after"], refused
        assert refused.json["error"] == "rate_limited", refused
        assert host.run(run)["status"] == "running", "requests that end are served"
        held.pop().close()

        def answered():
            with connect(host, request) as raw:
                return raw.recv(100).startswith(b"HTTP/1.1 200")
        eventually(answered, 5, "a closed stream makes room")
        for raw in held:
            raw.close()


def check_a_revoked_key_loses_its_stream(binary):
    with serving(binary, workflows=documents()) as host:
        run = host.create("waiting")
        made = host.call("POST", "/v1/host/tandem/keys", {"name": "reader", "scopes": ["runs:read"]})
        assert made.status == 201, made
        request = (f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n"
                   f"Authorization: Bearer {made.json['secret']}\r\n\r\n").encode()
        raw = connect(host, request)
        assert raw.recv(100).startswith(b"HTTP/1.1 200")
        gone = host.call("DELETE", f"/v1/host/tandem/keys/{made.json['keyId']}")
        assert gone.status == 200, gone
        raw.settimeout(2)
        rest = b""
        with contextlib.suppress(TimeoutError):
            while b"has ended" not in rest and (more := raw.recv(65536)):
                rest += more
        assert b"has ended" in rest, rest
        again = host.call("GET", f"/v1/runs/{run}/events", key=made.json["secret"])
        assert again.status == 401, again


def check_files_are_readable_by_owner_only(binary):
    before = os.umask(0)
    try:
        with serving(binary) as host:
            for command in (["backup", "saved.db"], ["export", "--out", "saved.jsonl"]):
                done = subprocess.run([host.binary, *command, "--store", "sqlite:tandem.db"], cwd=host.directory,
                                      capture_output=True, text=True, timeout=30)
                assert done.returncode == 0, done.stderr
            names = [path.name for path in host.directory.iterdir()]
            private = [name for name in names if name.startswith(("tandem.db", "saved"))]
            assert {"tandem.db", "tandem.db-wal", "tandem.db.marker", "saved.db", "saved.jsonl"} <= set(private), names
            for name in private:
                mode = stat.S_IMODE((host.directory / name).stat().st_mode)
                assert mode == 0o600, f"{name} has mode {mode:o}"
            assert "login?code=" not in host.log(), "a link nobody asked for"
    finally:
        os.umask(before)


def check_link_does_not_open_a_store_twice(binary):
    with serving(binary) as host:
        other = host.directory / "other"
        other.mkdir()
        (other / "symbolic.db").symlink_to(host.directory / "tandem.db")
        os.link(host.directory / "tandem.db", other / "hard.db")
        for name in ("symbolic.db", "hard.db"):
            said = refused(host, other / name)
            assert "(locked)" in said, said
        (other / "hard.db").unlink()
        assert host.call("GET", "/readyz").status == 200


def refused(host, store):
    done = subprocess.run([host.binary, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{store}"],
                          cwd=host.directory, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1, done.stderr
    return done.stderr


def beats(store):
    return int((store.parent / "tandem.db.marker").read_text().split("beats=")[1])


def check_a_store_that_lost_commits_is_not_served(binary):
    with serving(binary, workflows=documents()) as host:
        store = host.directory / "tandem.db"
        log = host.directory / "tandem.db-wal"
        host.create("waiting")
        began = beats(store)
        kept = log.read_bytes()
        # The commits from here on are removed from the log file below.
        run = host.create("waiting")
        eventually(lambda: beats(store) > began, 5, "the marker moves within a second or so")
        host.kill()
        whole = log.read_bytes()
        assert whole.startswith(kept[:32]) and len(whole) > len(kept), "nothing was moved out of the log meanwhile"
        for lost in (kept, None):
            if lost is None:
                log.unlink()
            else:
                log.write_bytes(lost)
            said = refused(host, store)
            assert "(data_missing)" in said and "tandem restore" in said, said
            assert (log.read_bytes() if log.exists() else b"") == (lost or b""), "what is left is left alone"
        main = store.read_bytes()
        store.write_bytes(b"")
        said = refused(host, store)
        assert "(data_missing)" in said and "empty" in said, said
        # With the file restored the host continues: a kill loses nothing.
        store.write_bytes(main)
        log.write_bytes(whole)
        host.start()
        assert host.run(run)["status"] == "running"
        host.kill()
        host.start()
