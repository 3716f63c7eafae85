#!/usr/bin/env python3
"""Exports the audit log and receipts of the real binary and verifies them with an independent program.

    proof_of_decisions.py --binary target/release/tandem

Needs the Python package `cryptography`.
"""
import argparse
import copy
import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import KEY, Host, Tally, chain, eventually, node  # noqa: E402
from verify_audit import VerificationError, canonical, check_log_bytes, check_receipt  # noqa: E402

DECISIONS, RUNS, SEED = 6, 2100, 7


def gate():
    return node("gate", "core.approvalGate", title="Refund ż 40 €", actions=["accept", "reject"])


def decide(host):
    """Creates runs that wait and decides each; returns the interrupts."""
    host.call("PUT", "/v1/host/tandem/workflows/refund", chain("refund", gate()))
    questions = []
    for n in range(DECISIONS):
        run = host.create("refund")
        path = f"/v1/host/tandem/interrupts?runId={run}"
        item = eventually(lambda: host.get(path)["interrupts"], what="a question")[0]
        body = {"resumeValue": {"action": "reject" if n % 2 else "accept"}, "digest": item["digest"]}
        reply = host.call("POST", f"/v1/host/tandem/interrupts/{item['interruptId']}:resolve", body)
        assert reply.status == 200, reply
        questions.append(item)
    return questions


def verify_over_http(host):
    return host.get("/v1/audit/verify?fromSeq=0&toSeq=1000000")


def refused(check, data, trusted):
    try:
        check(data, trusted)
    except VerificationError:
        return True
    return False


def flips(data, count):
    """Copies of the bytes, each with one byte changed."""
    dice = random.Random(SEED)
    for _ in range(count):
        at, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
        yield at, bit, data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]


def undetected_changes(check, data, trusted, count=400):
    return [f"byte {at} ^ {bit:#x}" for at, bit, changed in flips(data, count) if not refused(check, changed, trusted)]


def command(host, *words):
    """Runs `tandem audit …`; returns its exit code."""
    done = subprocess.run([host.binary, "audit", *words, "--url", host.base, "--key", KEY], cwd=host.directory,
                          capture_output=True, timeout=120)
    return done.returncode


def tampered(host, sql):
    """Changes the store file of a stopped host."""
    database = sqlite3.connect(host.directory / "tandem.db")
    for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.execute(sql)
    database.commit()
    database.close()


def exported(host):
    reply = host.call("GET", "/v1/host/tandem/audit/export", timeout=60)
    assert reply.status == 200, reply
    return reply.raw


def check_all(host, tally):
    host.start()
    trusted = host.get("/.well-known/openwop")["auth"]["auditLogIntegrity"]["checkpointPublicKey"]
    questions = decide(host)
    log = exported(host)
    report = tally.attempt("an exported log holds", lambda: check_log_bytes(log, trusted))
    told = {e["target"]: e for e in report["entries"] if e["action"] == "interrupt.resolve"}
    tally.check("every decision is told", set(told) ^ {q["interruptId"] for q in questions})
    tally.check("one changed byte of the log is found", undetected_changes(check_log_bytes, log, trusted))
    lines = log.splitlines(keepends=True)
    for name, changed in [("a missing line", lines[:3] + lines[4:]), ("swapped lines", lines[:3] + lines[4:2:-1] + lines[5:]),
                          ("a cut end", lines[:-1]), ("a line twice", lines[:4] + lines[3:])]:
        tally.check(f"{name} of the log is found", not refused(check_log_bytes, b"".join(changed), trusted))
    for item in questions:
        path = f"/v1/host/tandem/receipts/{item['interruptId']}"
        raw = host.call("GET", path).raw
        receipt = check_receipt(raw, trusted)
        same = host.call("GET", path).raw == raw and receipt["decision"]["digest"] == item["digest"]
        entry = told[item["interruptId"]]
        same = same and (receipt["auditSequence"], receipt["decision"]) == (entry["seq"], entry["details"])
        tally.check(f"receipt {item['interruptId']}", not same and receipt)
    tally.check("one changed byte of a receipt is found", undetected_changes(check_receipt, raw, trusted))

    (host.directory / "log.ndjson").write_bytes(log)
    (host.directory / "receipt.json").write_bytes(raw)
    key = ["--public-key", trusted]
    tally.check("tandem audit verify", command(host, "verify", *key))
    tally.check("tandem audit verify FILE", command(host, "verify", "log.ndjson", *key))
    tally.check("tandem audit verify --receipt", command(host, "verify", "--receipt", "receipt.json", *key))
    tally.check("tandem audit export", command(host, "export", "--out", "own.ndjson"))
    tally.attempt("its export holds", lambda: check_log_bytes((host.directory / "own.ndjson").read_bytes(), trusted))
    # A changed value, not a changed space: the formatting of a receipt does not matter.
    forged = copy.deepcopy(receipt)
    forged["decision"]["outcome"] = "accepted" if receipt["decision"]["outcome"] != "accepted" else "rejected"
    (host.directory / "forged.json").write_bytes(canonical(forged))
    tally.check("a forged receipt fails", command(host, "verify", "--receipt", "forged.json", *key) != 1)
    (host.directory / "forged.ndjson").write_bytes(next(flips(log, 1))[2])
    tally.check("a forged log fails", command(host, "verify", "forged.ndjson", *key) != 1)

    for n in range(RUNS):
        host.create("refund")
    spacing = eventually(lambda: (v := verify_over_http(host))["checkpoints"][-1]["atSequence"] >= RUNS - 100 and v, 30, "checkpoints")
    places = [0] + [c["atSequence"] for c in spacing["checkpoints"]]
    tally.check("checkpoints are close enough", max(b - a for a, b in zip(places, places[1:])) > 1000 and places)
    tally.check("the server finds its log sound", not spacing["chainValid"] and spacing["anomalies"])
    tally.attempt("a long log holds", lambda: check_log_bytes(exported(host), trusted))

    host.kill()
    host.start()
    tally.check("the log survives a kill", not verify_over_http(host)["chainValid"])
    tally.check("so does a receipt, word for word", host.call("GET", path).raw != raw)
    for name, sql in [
        ("a changed entry", "UPDATE audit SET body = replace(body, 'run.create', 'run.cancel') WHERE seq = 1500"),
        ("the last entry changed", "UPDATE audit SET body = replace(body, '\"actor\":\"key', '\"actor\":\"kex')"
                                   " WHERE seq = (SELECT max(seq) FROM audit)"),
        ("a removed entry", "DELETE FROM audit WHERE seq = 700"),
        ("a changed checkpoint", "UPDATE audit_checkpoints SET signature = 'AAAA' || substr(signature, 5)"),
    ]:
        host.stop()
        saved = (host.directory / "tandem.db").read_bytes()
        tampered(host, sql)
        host.start()
        found = verify_over_http(host)
        tally.check(f"{name} in the file is found", found["chainValid"])
        tally.check(f"{name} is found from outside", command(host, "verify", *key) != 1)
        tally.check(f"{name} spoils an export", not refused(check_log_bytes, exported(host), trusted))
        host.stop()
        (host.directory / "tandem.db").write_bytes(saved)
        # This simulates an older copy; otherwise the host would not start.
        (host.directory / "tandem.db.marker").unlink()
        host.start()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", required=True)
    began, tally = time.monotonic(), Tally()
    host = Host(options.parse_args().binary)
    try:
        tally.attempt("the house stands", lambda: check_all(host, tally))
    finally:
        host.close()
    print(json.dumps({"seconds": round(time.monotonic() - began, 1)}))
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
