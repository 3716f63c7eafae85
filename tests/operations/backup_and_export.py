#!/usr/bin/env python3
"""Backs up, exports and imports the store of the running binary, and continues in the copy.

    backup_and_export.py --binary target/release/tandem

Everything acknowledged before a copy started is in it, the audit log verifies, and an open interrupt can be answered with the
link issued before.
"""
import argparse
import contextlib
import json
import stat
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import KEY, Host, Tally, chain, eventually, node  # noqa: E402

WRITERS, BEFORE = 4, 200


def gate():
    return node("gate", "core.approvalGate", title="Move?", actions=["accept", "reject"])


def command(host, *words, code=0):
    done = subprocess.run([host.binary, *map(str, words)], cwd=host.directory, capture_output=True, text=True, timeout=120)
    if code is not None and done.returncode != code:
        raise AssertionError(f"tandem {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done


def store(host):
    return f"sqlite:{host.directory / 'tandem.db'}"


@contextlib.contextmanager
def load(host, acknowledged):
    """Callers that start runs until they are stopped."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            acknowledged.append(host.create("quick"))

    writers = [threading.Thread(target=work, daemon=True) for _ in range(WRITERS)]
    for one in writers:
        one.start()
    try:
        eventually(lambda: len(acknowledged) >= BEFORE, 60, "load")
        yield
    finally:
        stop.set()
        for one in writers:
            one.join(30)


def waiting(host):
    """A run that waits for a person, with the link to its interrupt."""
    run = host.create("refund")
    return run, eventually(lambda: link_of(host, run), what="a link")


def link_of(host, run):
    return (host.run(run).get("interrupt") or {}).get("interruptToken")


def check_continues(tally, name, old, new, runs, run, token):
    """The new host has the data of the old one, and a link issued by the old one resolves the interrupt."""
    missing = [r for r in runs if new.call("GET", f"/v1/runs/{r}").status != 200]
    tally.check(f"{name}: every acknowledged run is there", missing)
    differing = [r for r in runs[:20] if old[r] != new.events(r)]
    tally.check(f"{name}: with its whole history", differing)
    verified = command(new, "audit", "verify", "--url", new.base, "--key", KEY, code=None)
    tally.check(f"{name}: the audit log verifies", verified.returncode and verified.stderr)
    shown = new.call("GET", f"/v1/interrupts/{token}", key=None)
    tally.check(f"{name}: the link shows the question", shown.status != 200 and shown)
    answer = new.call("POST", f"/v1/interrupts/{token}", {"resumeValue": {"action": "accept"}}, key=None)
    tally.check(f"{name}: the link answers it", answer.status != 200 and answer)
    tally.check(f"{name}: the run goes on", new.ended(run)["status"] != "completed" and new.run(run))
    again = new.call("POST", f"/v1/interrupts/{token}", {"resumeValue": {"action": "reject"}}, key=None)
    tally.check(f"{name}: once", again.status == 200 and again)


def check_all(host, binary, tally):
    host.start()
    for document in [chain("refund", gate()), chain("quick", node("n", "core.noop"))]:
        reply = host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)
        assert reply.status in (200, 201), reply
    run, token = waiting(host)
    acknowledged = []
    backup, export = host.directory / "copy.db", host.directory / "all.ndjson"
    with load(host, acknowledged):
        before_backup = list(acknowledged)
        command(host, "backup", backup, "--store", store(host))
        before_export = list(acknowledged)
        command(host, "export", "--out", export, "--store", store(host))
    histories = {r: host.events(r) for r in before_backup[:20]}
    for file in (backup, export):
        tally.check(f"only its owner may read {file.name}", stat.S_IMODE(file.stat().st_mode) != 0o600)
    tally.check("a backup is not overwritten", command(host, "backup", backup, "--store", store(host), code=None).returncode != 1)
    found = json.loads(command(host, "storage", "--json", "--store", store(host)).stdout)
    rows = {table["name"]: table for table in found["tables"]}
    seen = rows["runs"]["rows"] >= len(acknowledged) and rows["events"]["bytes"] > 0 and found["runs"]["live"] >= 1
    tally.check("storage tells what is there", not seen and found)
    tally.check("storage tells it to people", "LARGEST RUNS" not in command(host, "storage", "--store", store(host)).stdout)
    asked = command(host, "storage", "--json", "--url", host.base, "--key", KEY)
    told = json.loads(asked.stdout)
    tally.check("a server shows its tenant what uses space", (told["tenant"] != "default" or told["runs"]["live"] < 1) and told)
    tally.check("and people too", "LARGEST RUNS" not in command(host, "storage", "--url", host.base, "--key", KEY).stdout)
    busy = command(host, "import", export, "--store", store(host), code=None)
    tally.check("a store in use is refused", busy.returncode != 1 or "locked" not in busy.stderr)
    host.stop()

    for name, words, runs in [("restored", ["restore", backup], before_backup), ("imported", ["import", export], before_export)]:
        new = Host(binary)
        try:
            command(new, *words, "--store", store(new))
            twice = command(new, *words, "--store", store(new), code=None)
            tally.check(f"{name}: not over what is there", twice.returncode != 1)
            new.start()
            check_continues(tally, name, histories, new, runs, run, token)
            fresh = new.create("quick")
            tally.check(f"{name}: new runs begin", new.ended(fresh)["status"] != "completed")
        finally:
            new.close()

    # A single run, imported into a host that has runs already.
    one = host.directory / "one.ndjson"
    command(host, "export", "--run", run, "--out", one, "--store", store(host))
    secret = "links.secret" in one.read_text()
    tally.check("a run travels without keys", secret)
    other = Host(binary)
    try:
        other.start()
        other.call("PUT", "/v1/host/tandem/workflows/quick", chain("quick", node("n", "core.noop")))
        other.ended(other.create("quick"))
        other.stop()
        command(other, "import", one, "--store", store(other))
        refused = command(other, "import", one, "--store", store(other), code=None)
        tally.check("what is there is named", refused.returncode != 1 or run not in refused.stderr)
        other.start()
        verified = command(other, "audit", "verify", "--url", other.base, "--key", KEY, code=None)
        tally.check("its arrival is in a sound audit log", verified.returncode and verified.stderr)
        question = other.get(f"/v1/host/tandem/interrupts?runId={run}")["interrupts"][0]
        body = {"resumeValue": {"action": "accept"}, "digest": question["digest"]}
        other.call("POST", f"/v1/host/tandem/interrupts/{question['interruptId']}:resolve", body)
        tally.check("it is decided there", other.ended(run)["status"] != "completed")
    finally:
        other.close()


def check_exported_memory(binary, tally):
    """A fork is exported with the memory it can read: at every event the memory is the same there."""
    host, new = Host(binary), Host(binary)
    note = {"action": "put", "value": "a note"}
    put = node("put", "vendor.tandem.memory", action="put", key="k", value="v")
    flows = {"noting": chain("noting", node("a", "vendor.tandem.memory", **note), put, node("b", "vendor.tandem.memory", **note)),
             "other": chain("other", node("a", "vendor.tandem.memory", action="put", key="k", value="too late"))}
    try:
        host.start()
        for name, document in flows.items():
            host.call("PUT", f"/v1/host/tandem/workflows/{name}", document)
        earlier, source = host.create("noting"), host.create("noting")
        host.ended(source)
        host.ended(host.create("other"))
        last = host.run(source)["lastSequence"]
        forks = [host.call("POST", f"/v1/runs/{source}:fork", {"mode": mode, "fromSeq": last // 2}).json["runId"]
                 for mode in ("branch", "replay")]
        runs = [source, *forks]

        def memory_at(at):
            def one(run):
                length = len(at.events(run))
                return [at.get(f"/v1/host/tandem/runs/{run}/memory?atSeq={n}")["entries"] for n in range(length)]
            return {run: one(run) for run in runs}

        for run in forks:
            host.ended(run)
        before = memory_at(host)
        host.stop()
        file = host.directory / "forks.ndjson"
        command(host, "export", "--run", forks[0], "--run", forks[1], "--out", file, "--store", store(host))
        text = file.read_text()
        tally.check("a fork travels with its source", source not in text)
        tally.check("and without what it cannot see", "too late" in text or f"run:{earlier}" in text)
        command(new, "import", file, "--store", store(new))
        new.start()
        tally.check("it remembers the same at every event", memory_at(new) != before)
    finally:
        host.close()
        new.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    host, tally = Host(options.binary), Tally()
    try:
        tally.attempt("the house moves", lambda: check_all(host, options.binary, tally))
        tally.attempt("memory moves along", lambda: check_exported_memory(options.binary, tally))
    finally:
        host.close()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
