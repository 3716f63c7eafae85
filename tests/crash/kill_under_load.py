#!/usr/bin/env python3
"""Kills the real binary under load and checks the stored state.

    kill_under_load.py --binary target/release/tandem [--seed N] [--rounds N] [--jobs N]

Clients create runs with idempotency keys and retry until each is acknowledged, while the process
is killed at seeded moments and restarted. Afterwards every acknowledged run must have ended
exactly once, with a consistent log, and every effect must have kept its id.
"""
import argparse
import concurrent.futures
import http.client
import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import Host, Outside, Tally, chain, node, workflow  # noqa: E402

DOWN = (OSError, http.client.HTTPException)
ENDS = {"run.completed", "run.failed", "run.cancelled"}
ROUNDS_OF_LOOP = 3


def documents(outside):
    """Workflow documents, with the expected completions per node and calls per path."""
    def call(name):  # the body comes from the run, so that requests can be distinguished
        return node(name, "vendor.tandem.http", {"body": {"type": "variable", "variableName": "order"}},
                    method="POST", url=f"{outside.url}/{name}", retry={"maxAttempts": 5, "backoffMs": 50})
    order = [{"name": "order", "type": "object"}]
    once = dict.fromkeys
    yield (chain("crash-order", node("take", "core.noop"), call("pay"), node("nap", "core.delay", delayMs=30),
                 call("mail"), node("end", "core.noop"), variables=order),
           once(["take", "pay", "nap", "mail", "end"], 1), {"pay": 1, "mail": 1})
    yield (workflow("crash-branches",
                    [node("fork", "core.parallel"), node("short", "core.delay", delayMs=20),
                     node("long", "core.delay", delayMs=60), call("left"), call("right"), node("join", "core.merge")],
                    [("fork", "short"), ("fork", "long"), ("short", "left"), ("long", "right"), ("left", "join"),
                     ("right", "join")], order),
           once(["fork", "short", "long", "left", "right", "join"], 1), {"left": 1, "right": 1})
    yield (workflow("crash-loop", [node("rounds", "core.loop", times=ROUNDS_OF_LOOP), call("round"),
                                   node("end", "core.noop")],
                    [("rounds", "round"), ("round", "rounds"), ("rounds", "end")], order),
           {"round": ROUNDS_OF_LOOP, "end": 1}, {"round": ROUNDS_OF_LOOP})
    yield (chain("crash-parent", node("start", "core.noop"),
                 node("child", "core.subWorkflow", workflowId="crash-child", inputMapping={"order": "order"}),
                 call("after"), variables=order),
           once(["start", "child", "after"], 1), {"within": 1, "after": 1})
    yield chain("crash-child", node("nap", "core.delay", delayMs=40), call("within"), variables=order), None, None


def create(host, job, kind, deadline):
    """Retries one create request until it is acknowledged; returns (runId, number of attempts)."""
    body = {"workflowId": kind, "inputs": {"order": {"job": job}}}
    tries = 0
    while time.monotonic() < deadline:
        tries += 1
        try:
            reply = host.call("POST", "/v1/runs", body, {"Idempotency-Key": f"crash-{job}"}, timeout=5)
        except DOWN:
            time.sleep(0.01)
            continue
        if reply.status == 201:
            return reply.json["runId"], tries
        if reply.status not in (409, 503):  # in flight, or not ready yet
            raise AssertionError(f"job {job}: {reply!r}")
    raise AssertionError(f"job {job} was never acknowledged")


def retry_until(action, deadline):
    while True:
        try:
            return action()
        except DOWN:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def log_problem(events, status, completions):
    """The first inconsistency of a log, or None."""
    sequences = [e["sequence"] for e in events]
    if sequences != list(range(len(events))):
        return f"sequences {sequences}"
    ends = [e["type"] for e in events if e["type"] in ENDS]
    if ends != [f"run.{status}"] or events[-1]["type"] != ends[0]:
        return f"terminal events {ends}, last {events[-1]['type']}, status {status}"
    counts = defaultdict(int)
    for event in events:
        if event["type"] == "node.completed":
            counts[event["nodeId"]] += 1
    wrong = {n: (counts[n], wanted) for n, wanted in completions.items() if counts[n] != wanted}
    return wrong and f"nodes completed (seen, wanted): {wrong}"


def first_problems(problems):
    """The first few of many problems, as one text."""
    problems = [p for p in problems if p]
    return problems and f"{len(problems)}: " + "; ".join(problems[:3])


def effects_problem(outside, jobs, kinds):
    """Each effect is called at least once and always with one key, which no other effect has."""
    keys = defaultdict(set)
    for path, headers, body in outside.requests:
        keys[path.strip("/"), body["job"]].add(headers.get("idempotency-key"))
    problems, owner = [], {}
    for job, kind in jobs.items():
        for path, wanted in kinds[kind][2].items():
            seen = keys.pop((path, job), set())
            if len(seen) != wanted or None in seen:
                problems.append(f"job {job}, {path}: {len(seen)} keys, wanted {wanted}")
            for key in seen:
                if owner.setdefault(key, (job, path)) != (job, path):
                    problems.append(f"key {key} is shared by {owner[key]} and {(job, path)}")
    problems += [f"nobody asked for {call}" for call in keys]
    return first_problems(problems)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", default="target/release/tandem")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--jobs", type=int, default=600)
    a = p.parse_args()
    print(f"seed {a.seed}")
    rng, tally, began = random.Random(a.seed), Tally(), time.monotonic()
    deadline = began + 60
    outside = Outside()
    host = Host(a.binary)
    try:
        kinds = {doc["id"]: (doc, nodes, calls) for doc, nodes, calls in documents(outside)}
        folder = host.directory / "workflows"
        folder.mkdir()
        for doc, _, _ in kinds.values():
            (folder / f"{doc['id']}.json").write_text(json.dumps(doc))
        host.workflows = [str(folder)]
        host.start()
        roots = sorted(k for k, (_, nodes, _) in kinds.items() if nodes)
        jobs = {job: rng.choice(roots) for job in range(a.jobs)}
        kills = [rng.uniform(0.05, 0.9) for _ in range(a.rounds)]
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            # Spread over the rounds, so that at every kill there are runs at every stage.
            pause = sum(kills) / a.jobs * 8

            def work(job):
                time.sleep(pause)
                return create(host, job, jobs[job], deadline)
            made = {job: clients.submit(work, job) for job in jobs}
            for wait in kills:
                time.sleep(wait)
                host.kill()
                host.start()
            runs, tries = {}, 0
            for job, future in made.items():
                runs[job], count = future.result()
                tries += count
        print(f"{a.jobs} runs acknowledged after {tries} requests and {a.rounds} kills")
        tally.check("every key has a run of its own", len(set(runs.values())) != a.jobs and "runs are shared")
        ends = {job: retry_until(lambda run=run: host.ended(run, 30), deadline) for job, run in runs.items()}
        logs = {job: host.events(run) for job, run in runs.items()}
        tally.check("every acknowledged run completed", first_problems(
            f"job {job} {runs[job]} {end['status']} {end.get('error')}" for job, end in ends.items()
            if end["status"] != "completed"))
        tally.check("logs have no gap, one end and every node once", first_problems(
            (problem := log_problem(logs[job], ends[job]["status"], kinds[jobs[job]][1])) and f"job {job}: {problem}"
            for job in jobs))
        tally.check("a key asked again gives the same run", first_problems(
            f"job {job}" for job in jobs if create(host, job, jobs[job], deadline)[0] != runs[job]))
        for kind in roots:
            listed = [row["runId"] for row in host.listed(f"workflowId={kind}")]
            wanted = {runs[job] for job in jobs if jobs[job] == kind}
            tally.check(f"{kind}: no run beside the acknowledged ones",
                        (len(listed) != len(wanted) or set(listed) != wanted) and f"{len(listed)} of {len(wanted)}")
        children = {}
        for job in (job for job in jobs if jobs[job] == "crash-parent"):
            children[job] = [e["payload"]["childRunId"] for e in logs[job] if e["type"] == "node.dispatched"]
        listed = {row["runId"] for row in host.listed("workflowId=crash-child")}
        named = {child for run in children.values() for child in run}
        tally.check("one child for each parent, none orphaned", first_problems(
            [f"job {job}: {len(set(run))} children" for job, run in children.items() if len(set(run)) != 1]
            + [f"orphan {child}" for child in listed ^ named]))
        tally.check("children ended once", first_problems(
            log_problem(host.events(child), host.ended(child)["status"], {"nap": 1, "within": 1}) for child in named))
        tally.check("effects kept their identity", effects_problem(outside, jobs, kinds))
        tally.check("no panic", "panicked" in host.log() and host.log()[-2000:])
        code = tally.close()
        print(f"seed {a.seed}, {time.monotonic() - began:.0f} s")
        return code
    except Exception:
        print(f"seed {a.seed}; the end of the log:\n{host.log()[-2000:]}", file=sys.stderr)
        raise
    finally:
        host.close()
        outside.close()


if __name__ == "__main__":
    sys.exit(main())
