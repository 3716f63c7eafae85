#!/usr/bin/env python3
"""Checks the output of the real binary against the published OpenWOP schemas.

    published_schemas.py --binary target/release/tandem

The schemas and fixtures are beside the repository in ../shared/openwop and are never copied. Without
them, or without the Python packages `jsonschema` and `referencing`, only the checks that need
neither are run.
"""
import argparse
import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import ROOT, SHARED, Host, Tally, chain, eventually, node  # noqa: E402
import chunks  # noqa: E402
import child_runs  # noqa: E402
import tools  # noqa: E402
import packs  # noqa: E402
import scenarios  # noqa: E402
from openapi import problems as openapi_problems  # noqa: E402

try:
    import jsonschema
    import referencing
except ImportError:
    jsonschema = None

SCHEMAS, FIXTURES, EXAMPLES = SHARED / "openwop" / "schemas", SHARED / "openwop" / "fixtures", ROOT / "examples"

# Workflow, inputs and options of the runs whose every event is checked.
RUNS = [
    ("conformance-noop", {}, {}),
    ("conformance-identity", {"payload": {"deep": [1, None, "ż"]}}, {}),
    ("conformance-multi-node", {}, {"tags": ["contract"], "metadata": {"ticket": "T-1"}}),
    ("conformance-failure", {}, {}),
    ("conformance-delay", {"delaySeconds": 0.05}, {}),
    ("conformance-cap-breach", {}, {"configurable": {"recursionLimit": 3}}),
    ("conformance-run-duration-breach", {}, {"configurable": {"runTimeoutMs": 150}}),
    ("conformance-subworkflow-parent", {}, {}),
    ("conformance-subworkflow-input-mapping", {}, {}),
    ("conformance-channel-ttl", {}, {}),
    ("conformance-message-reducer", {}, {}),
    ("conformance-capability-missing", {}, {}),
    ("conformance-model-capability-insufficient", {}, {}),
    ("conformance-wasm-pack-roundtrip", {"name": "openwop"}, {}),
    ("conformance-wasm-pack-memory-cap-breach", {}, {}),
]

# Number of notes under one name before the oldest are compacted.
KEPT_APART = 3

# Workflow, the status it waits in, and an answer; without one, every interrupt is answered.
QUESTIONS = [
    ("conformance-approval", "waiting-approval", {"action": "accept"}),
    ("conformance-approval", "waiting-approval", {"action": "reject"}),
    ("conformance-clarification", "waiting-input", None),
]

# Programmed model answers for fixtures: workflow, program, final status, expected events.
SENSIBLE, CUT_OFF = {"content": '{"valid": true, "result": "ok"}'}, {"content": '{"val', "stopReason": "max_tokens"}
PROSE, REFUSAL = {"content": "I would say so."}, {"stopReason": "safety", "refusalText": "I must not."}
MODELS = [
    ("conformance-envelope-retry-attempted", [PROSE, SENSIBLE], "completed", {"envelope.retry.attempted": 1}),
    ("conformance-envelope-retry-exhausted", [PROSE] * 4, "failed",
     {"provider.usage": 3, "envelope.retry.exhausted": 1, "cap.breached": 1}),
    ("conformance-envelope-truncated", [CUT_OFF, SENSIBLE], "completed", {"envelope.truncated": 1}),
    ("conformance-envelope-truncation-cap-exhaustion", [CUT_OFF] * 4, "failed",
     {"provider.usage": 3, "envelope.truncated": 3, "envelope.retry.exhausted": 1, "cap.breached": 1}),
    ("conformance-envelope-refusal", [REFUSAL], "failed", {"provider.usage": 1, "envelope.refusal": 1}),
    ("conformance-envelope-recovery-applied", [{"content": '```json\n{"result": "ok"}\n```'}], "completed",
     {"envelope.recovery.applied": 1}),
    ("conformance-phase4-nondet-tool", [SENSIBLE], "completed", {"provider.usage": 1}),
    ("conformance-phase4-replay-divergence", [SENSIBLE, REFUSAL], "completed", {"provider.usage": 1}),
]


def as_published(event):
    """The payload, adjusted where the published schemas are older than the specification text."""
    payload = event["payload"]
    if event["type"] == "channel.written" and payload.get("reducer") == "message":
        return {**payload, "reducer": "append"}  # a reducer that is valid in declarations but not in events
    if event["type"] == "interrupt.requested":  # closed, but without the identity fields that its description requires
        return {k: v for k, v in payload.items() if k not in ("runId", "nodeId", "interruptId", "requestedAt")}
    return payload


class Published:
    """The published schemas by name, with their references resolved among themselves."""

    def __init__(self):
        loaded = [json.loads(path.read_text()) for path in SCHEMAS.rglob("*.json")]
        self.registry = referencing.Registry().with_resources(
            (schema["$id"], referencing.Resource.from_contents(schema)) for schema in loaded if "$id" in schema)

    def errors(self, name, document, definition=None):
        """The errors of a document against a schema, or against one of its definitions."""
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        if definition:
            if definition not in schema["$defs"]:
                return []
            schema = {"$ref": f"{schema['$id']}#/$defs/{definition}"}
        validator = jsonschema.Draft202012Validator(schema, registry=self.registry)
        return [f"{'/'.join(map(str, e.path)) or '(root)'}: {e.message[:200]}" for e in validator.iter_errors(document)]

    def event_errors(self, event):
        payload = as_published(event)
        definition = re.sub(r"[.-](\w)", lambda m: m[1].upper(), event["type"])
        return [f"{event['type']} {error}" for error in self.errors("run-event", event)
                + self.errors("run-event-payloads", payload, definition)]


def discovery(host, published, tally):
    document = host.get("/.well-known/openwop", key=None)
    document.get("implementation", {}).pop("vendorExtensionsUrl", None)  # the one additional key the protocol permits
    document.pop("capabilities", None)  # repeats the root for older clients
    tally.check("discovery", published.errors("capabilities", document))


def snapshots(host, published, tally):
    def snapshot(name, run, status):
        seen = tally.attempt(f"a run gets {status}", lambda: host.reaches(run, status))
        if seen:
            tally.check(f"snapshot of a {name} run", published.errors("run-snapshot", seen))
    snapshot("completed", host.create("conformance-identity", {"payload": {"a": 1}}), "completed")
    snapshot("failed", host.create("conformance-failure"), "failed")
    running = host.create("conformance-cancellable")
    snapshot("running", running, "running")
    host.call("POST", f"/v1/runs/{running}:pause", {"drainPolicy": "immediate", "reason": "contract"})
    snapshot("paused", running, "paused")
    host.call("POST", f"/v1/runs/{running}/cancel", {"reason": "contract"})
    snapshot("cancelled", running, "cancelled")
    tally.check("events of a paused and cancelled run",
                [e for event in host.events(running) for e in published.event_errors(event)][:3])


def events(host, published, tally):
    seen = set()
    for workflow, inputs, options in RUNS:
        def whole_run(workflow=workflow, inputs=inputs, options=options):
            run = host.create(workflow, inputs, **options)
            host.ended(run)
            return run, host.events(run)
        ran = tally.attempt(f"{workflow} ends", whole_run)
        if not ran:
            continue
        run, log = ran
        seen |= {event["type"] for event in log}
        tally.check(f"{workflow}: {len(log)} events", [e for event in log for e in published.event_errors(event)][:3])
        tally.check(f"{workflow}: snapshot", published.errors("run-snapshot", host.run(run)))
    print(f"      event types seen: {', '.join(sorted(seen))}")


def compaction(host, published, tally):
    """Notes above the limit are compacted, and the run that wrote the last one has the event."""
    node = {"id": "w", "typeId": "vendor.tandem.memory", "name": "w", "position": {"x": 0, "y": 0},
            "inputs": {}, "config": {"action": "put", "value": "a note", "tags": ["contract"]}}
    document = {**host.get("/v1/workflows/conformance-noop"), "id": "contract-note", "nodes": [node], "edges": []}
    reply = host.call("PUT", "/v1/host/tandem/workflows/contract-note", document)
    tally.check("a workflow that writes notes", reply.status != 201 and reply)
    told = []
    for _ in range(KEPT_APART + 2):
        run = host.create("contract-note")
        host.ended(run)
        told += [event for event in host.events(run) if event["type"] == "memory.compacted"]
    tally.check("notes become one", len(told) != 1 and [str(told)[:300]])
    tally.check("memory.compacted", [e for event in told for e in published.event_errors(event)])
    advertised = host.get("/.well-known/openwop")["memory"].get("compaction", {})
    tally.check("compaction is advertised", not advertised.get("supported") and [str(advertised)])


def questions(host, published, tally):
    for workflow, status, answer in QUESTIONS:
        run = host.create(workflow)
        waiting = tally.attempt(f"{workflow} waits", lambda run=run, status=status: host.reaches(run, status))
        if not waiting:
            continue
        tally.check(f"{workflow}: snapshot while {status}", published.errors("run-snapshot", waiting))
        node = next(e["nodeId"] for e in host.events(run) if e["type"] == "node.suspended")
        if answer is None:
            asked = waiting["interrupt"]["data"]["questions"]
            answer = {"answers": [{"id": q["id"], "answer": "yes"} for q in asked]}
        path, body = f"/v1/runs/{run}/interrupts/{node}", {"resumeValue": answer}
        reply = host.call("POST", path, body)
        tally.check(f"{workflow}: {answer.get('action', 'answers')}", reply.status != 200 and reply)
        if reply.status != 200:
            continue
        host.ended(run)
        tally.check(f"{workflow}: events with the answer",
                    [e for event in host.events(run) for e in published.event_errors(event)][:3])
        again = host.call("POST", path, body)
        tally.check(f"{workflow}: a second answer is refused",
                    (again.status != 409 and [repr(again)]) or published.errors("error-envelope", again.json))


def critics(host, published, tally):
    """A supervised run whose output and end pass a verifier: the verdicts have the published schema and no content."""
    at = {"name": "n", "position": {"x": 0, "y": 0}, "inputs": {}}
    verifier = {"agentId": "core.critic", "over": ["terminate", "output"], "criteria": ["short"], "workflowId": "contract-judge"}
    plan = [{"kind": "next-worker", "nextWorkerIds": ["contract-worker"]},
            {"kind": "terminate", "successCriteria": [{"key": "done", "met": True}]}]

    def emits_variable(identity, variable, value):
        return chain(identity, node("say", "core.setVariable", name=variable, value=value))
    loop = {**emits_variable("conformance-contract-checked", "x", 1), "nodes": [
        {**at, "id": "lead", "typeId": "core.orchestrator.supervisor",
         "config": {"mockDispatchPlan": plan, "verifier": verifier, "successCriteria": ["done"]}},
        {**at, "id": "send", "typeId": "core.dispatch", "config": {"outputMapping": {"text": "words"}}}],
        "edges": [{"id": "e1", "sourceNodeId": "lead", "targetNodeId": "send"},
                  {"id": "e2", "sourceNodeId": "send", "targetNodeId": "lead"}]}
    answer = {"verdict": "pass", "criteria": ["short", "secret words"], "confidence": 0.9, "feedback": "secret words"}
    for document in (emits_variable("contract-worker", "words", "secret words"), emits_variable("contract-judge", "verdict", answer), loop):
        reply = host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)
        tally.check(f"{document['id']} is registered", reply.status not in (200, 201) and reply)
    run = host.create("conformance-contract-checked")
    end = host.ended(run)
    tally.check("a checked run completes", end["status"] != "completed" and end)
    log = host.events(run)
    tally.check("a checked run: events", [e for event in log for e in published.event_errors(event)][:3])
    verdicts = [event for event in log if event["type"] == "agent.verified"]
    targets = [event["payload"]["target"] for event in verdicts]
    worker = next((e["payload"]["childRunId"] for e in log if e["type"] == "node.dispatched"), None)
    ends = [event["eventId"] for event in log if event["type"] == "runOrchestrator.decided"][-1:]
    tally.check("verdicts name the worker's run and the decision", targets != [worker, *ends] and targets)
    tally.check("verdicts have no content", "secret" in json.dumps(verdicts) and verdicts)
    kinds = [event["type"] for event in log]
    merged = [i for i, e in enumerate(log) if e["payload"].get("phase") == "output.harvested"]
    tally.check("nothing is merged before its verdict", merged[:1] <= [kinds.index("agent.verified")] and kinds)


def models(host, published, tally):
    """Model nodes, with all their events, and their replays."""
    named = host.get("/.well-known/openwop", key=None)["fixtures"]
    for workflow, program, end, wanted in MODELS:
        host.call("POST", "/v1/host/sample/test/mock-ai/program", {"nodeId": "structured-call", "program": program})
        run = host.create(workflow)
        snapshot, log = host.ended(run), host.events(run)
        told = [event["type"] for event in log]
        wrong = [f"{told.count(name)} of {name}" for name, count in wanted.items() if told.count(name) != count]
        tally.check(f"{workflow}: ends as it should", wrong + [snapshot["status"]] * (snapshot["status"] != end)
                    + ["it is not advertised"] * (workflow not in named))
        tally.check(f"{workflow}: {len(log)} events",
                    [e for event in log for e in published.event_errors(event)][:3])
        tally.check(f"{workflow}: snapshot", published.errors("run-snapshot", snapshot))
        tally.check(f"{workflow}: refusals stay out of errors", "must not" in str(snapshot.get("error")) and [str(snapshot)])
        replayed(host, published, tally, workflow, run, diverges=len(program) == 2 and program[1] is REFUSAL)


def replayed(host, published, tally, workflow, run, diverges):
    """A replay has the same events, unless the model now refuses."""
    fork = host.call("POST", f"/v1/runs/{run}:fork", {"mode": "replay", "fromSeq": 0}).json["runId"]
    snapshot, log = host.ended(fork), host.events(fork)
    tally.check(f"{workflow}: events of a replay", [e for event in log for e in published.event_errors(event)][:3])
    if diverges:
        code = (snapshot.get("error") or {}).get("code")
        told = [event["payload"] for event in log if event["type"] == "replay.divergedAtRefusal"]
        kinds = [(p["originalEnvelopeKind"], p["replayEnvelopeKind"], p["sourceRunId"]) for p in told]
        wrong = code != "replay_diverged_at_refusal" or kinds != [("valid", "refusal", run)]
        tally.check(f"{workflow}: the replay ends at the refusal", wrong and [str(snapshot.get("error")), str(kinds)])
        return
    found = host.get(f"/v1/runs/{run}:diff?against={fork}")
    tally.check(f"{workflow}: the replay tells the same", found["divergedAtSeq"] is not None and [str(found)[:400]])


def debug_bundle(host, published, tally):
    for workflow in ("conformance-multi-node", "conformance-failure"):
        run = host.create(workflow)
        host.ended(run)
        bundle = tally.attempt(f"debug bundle of {workflow}", lambda run=run: host.get(f"/v1/runs/{run}/debug-bundle"))
        if bundle:
            tally.check(f"debug bundle of {workflow} is valid", published.errors("debug-bundle", bundle))


def audit(host, published, tally):
    host.call("GET", "/v1/host/tandem/audit/export")  # seals the log, so that the response contains a checkpoint
    verdict = host.get("/v1/audit/verify?fromSeq=0&toSeq=100000")
    tally.check("audit verdict", published.errors("audit-verify-result", verdict))
    tally.check("audit verdict is good", not (verdict["chainValid"] and verdict["checkpoints"]) and [str(verdict)[:300]])


def refusals(host, published, tally):
    done = host.create("conformance-noop")
    host.ended(done)
    noop, json_body = {"workflowId": "conformance-noop"}, {"Content-Type": "application/json"}
    key = {"Idempotency-Key": "contract-1"}
    host.call("POST", "/v1/runs", noop, key)
    document = host.get("/v1/workflows/conformance-noop")
    asked = [
        ("no credential", 401, None, host.call("GET", f"/v1/runs/{done}", key=None)),
        ("unknown credential", 401, None, host.call("GET", f"/v1/runs/{done}", key="nobody-has-this-key")),
        ("malformed JSON", 400, "validation_error", host.call("POST", "/v1/runs", raw=b"{bad", headers=json_body)),
        ("empty body", 400, "validation_error", host.call("POST", "/v1/runs", {})),
        ("unknown field", 400, "validation_error", host.call("POST", "/v1/runs", {**noop, "bogus": 1})),
        ("bad limit", 400, "validation_error",
         host.call("POST", "/v1/runs", {**noop, "configurable": {"recursionLimit": 0}})),
        ("unknown workflow", None, "workflow_not_found", host.call("POST", "/v1/runs", {"workflowId": "nobody"})),
        ("unknown run", 404, None, host.call("GET", "/v1/runs/run-nobody")),
        ("unknown path", 404, "not_found", host.call("GET", "/v1/no-such-path")),
        ("wrong method", 405, "method_not_allowed", host.call("DELETE", "/v1/runs")),
        ("key used for another body", 409, "idempotency_key_mismatch",
         host.call("POST", "/v1/runs", {**noop, "tags": ["x"]}, key)),
        ("key too long", 400, "validation_error", host.call("POST", "/v1/runs", noop, {"Idempotency-Key": "k" * 256})),
        ("pause of an ended run", 409, None, host.call("POST", f"/v1/runs/{done}:pause", {})),
        ("resume of an ended run", 409, None, host.call("POST", f"/v1/runs/{done}:resume", {})),
        ("unknown stream mode", 400, "unsupported_stream_mode",
         host.call("GET", f"/v1/runs/{done}/events?streamMode=telepathy")),
        ("cursor that is no number", 400, "validation_error",
         host.call("GET", f"/v1/runs/{done}/events/poll?lastSequence=abc")),
        ("bad bulk cancel", 400, "validation_error", host.call("POST", "/v1/runs:bulk-cancel", {"runIds": []})),
        ("bad document", 400, "validation_error",
         host.call("PUT", "/v1/host/tandem/workflows/conformance-noop", {**document, "nodes": []})),
    ]
    for name, status, code, reply in asked:
        body = reply.json if reply.raw else {}
        wrong = []
        if reply.status != status if status else reply.status < 400:
            wrong.append(f"status {reply.status}, not {status}")
        if code and body.get("error") != code:
            wrong.append(f"code {body.get('error')}, not {code}")
        if not (ROOT / "docs" / "errors" / f"{body.get('error')}.md").exists():
            wrong.append(f"code {body.get('error')} has no page")
        tally.check(f"refusal: {name}", wrong + published.errors("error-envelope", body))


def example_documents(published, tally):
    for path in sorted(EXAMPLES.glob("*.json")):
        tally.check(f"examples/{path.name} is a valid document",
                    published.errors("workflow-definition", json.loads(path.read_text())))


def examples_run(host, tally):
    """The examples are served unchanged, and those without outbound calls run to their end."""
    served = {path.stem for path in EXAMPLES.glob("*.json")}
    for name in sorted(served):
        tally.attempt(f"examples/{name}.json is served", lambda name=name: host.get(f"/v1/workflows/{name}"))
    for name, inputs in (("hello", {"name": "Ada"}), ("nightly-batch", {"items": [{"id": "a"}, {"id": "b"}]})):
        run = tally.attempt(f"examples/{name}.json starts", lambda n=name, i=inputs: host.create(n, i))
        if run:
            end = host.ended(run)
            tally.check(f"examples/{name}.json completes", end["status"] != "completed" and end)


def openapi(host, tally):
    document = host.get("/v1/openapi.json", key=None)
    tally.check("openapi.json", openapi_problems(document)[:5])
    served = set(document.get("paths", {}))
    wanted = {"/v1/runs", "/v1/runs/{runId}", "/v1/runs/{runId}/events", "/v1/host/tandem/workflows/{workflowId}"}
    tally.check("openapi.json names the routes", wanted - served)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", default="target/release/tandem")
    a = p.parse_args()
    tally = Tally()
    folders = [folder for folder in (FIXTURES, EXAMPLES) if folder.exists()]
    os.environ["TANDEM_MEMORY_COMPACT_ABOVE"] = str(KEPT_APART)
    os.environ["TANDEM_MCP_SERVERS"], outside = tools.server()
    os.environ["TANDEM_SECRETS"] = json.dumps({scenarios.CANARY: scenarios.CANARY_VALUE})
    host = Host(a.binary, folders).start()
    try:
        openapi(host, tally)
        examples_run(host, tally)
        if jsonschema is None or not SCHEMAS.exists():
            missing = "../shared/openwop" if jsonschema else "the Python package jsonschema"
            print(f"NOTICE: without {missing} nothing is held against the published schemas")
        else:
            published = Published()
            discovery(host, published, tally)
            snapshots(host, published, tally)
            events(host, published, tally)
            compaction(host, published, tally)
            questions(host, published, tally)
            critics(host, published, tally)
            models(host, published, tally)
            chunks.check_all(host, published, tally)
            child_runs.check_all(host, tally)
            tools.check_all(host, published, tally, outside)
            packs.check_all(host, tally)
            scenarios.check_all(host, tally)
            refusals(host, published, tally)
            debug_bundle(host, published, tally)
            audit(host, published, tally)
            example_documents(published, tally)
        eventually(lambda: host.call("GET", "/readyz").status == 200, 5, "still ready at the end")
        return tally.close()
    except Exception:
        print(f"the end of the log:\n{host.log()[-2000:]}", file=sys.stderr)
        raise
    finally:
        host.close()


if __name__ == "__main__":
    sys.exit(main())
