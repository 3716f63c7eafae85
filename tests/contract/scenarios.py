"""Checks of the protocol's public scenarios beyond schemas: replays, smoke fixtures, provenance, webhooks."""
import hashlib
import json

from host import TERMINAL, chain, eventually, node

CANARY = "openwop-conformance-canary-secret"
CANARY_VALUE = "canary-5f1d7c0e9b2a"
# Fixtures whose end depends on people or on the clock.
OBSERVED = {"eventId", "timestamp", "runId"}


def normalized(host, run):
    """Events without ids and times; a cause is replaced by the position of its event."""
    events = host.events(run)
    places = {event["eventId"]: at for at, event in enumerate(events)}
    interrupts = {}
    told = []
    for event in events:
        cause = event.get("causationId")
        text = json.dumps({k: v for k, v in event.items() if k not in OBSERVED}).replace(run, "RUN")
        event = json.loads(text)
        if cause:
            event["causationId"] = places.get(cause, cause)
        told.append(without_interrupt_ids(event, interrupts))
    return told


def without_interrupt_ids(value, seen):
    if isinstance(value, dict):
        return {k: without_interrupt_ids(v, seen) for k, v in value.items()}
    if isinstance(value, list):
        return [without_interrupt_ids(v, seen) for v in value]
    if isinstance(value, str) and value.startswith("int-"):
        return f"interrupt {seen.setdefault(value, len(seen))}"
    return value


def settled(host, run):
    return eventually(lambda: (s := host.run(run))["status"] not in {"pending", "running"} and s, 10, f"{run} settled")


def replays_equal_their_sources(host, tally, fixtures):
    compared = []
    for fixture in sorted(fixtures):
        reply = host.call("POST", "/v1/runs", {"workflowId": fixture, "inputs": {"delaySeconds": 0.01}})
        if reply.status != 201 or settled(host, run := reply.json["runId"])["status"] not in TERMINAL:
            continue
        fork = host.call("POST", f"/v1/runs/{run}:fork", {"mode": "replay"})
        source, replay = normalized(host, run), normalized(host, fork.json["runId"])
        differing = [(a, b) for a, b in zip(source, replay) if a != b]
        tally.check(f"{fixture}: a replay tells what its source told", (len(source) != len(replay)) or differing)
        compared.append(fixture)
    tally.check("replays of many fixtures were compared", len(compared) < 30 and compared)


def cancelled_source(host, tally):
    document = chain("conformance-replay-side-effect", node("wait", "core.delay", ms=600_000),
                     node("effect", "core.conformance.side-effect"))
    host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)
    run = host.create(document["id"])
    host.call("POST", f"/v1/runs/{run}/cancel", {})
    host.ended(run)
    fork = host.call("POST", f"/v1/runs/{run}:fork", {"mode": "replay"}).json["runId"]
    failed = [e["payload"]["error"]["code"] for e in host.events(fork)
              if e["type"] == "node.failed" and e["nodeId"] == "effect"]
    tally.check("a replay past what was recorded fails closed",
                (host.ended(fork)["status"], failed) != ("failed", ["replay_source_missing"]) and (host.run(fork), failed))


def smoke(host, tally, fixtures):
    for fixture in ("openwop-smoke-byok-roundtrip", "openwop-smoke-cost-emit"):
        tally.check(f"{fixture} is advertised", fixture not in fixtures and fixtures)
        ended = host.ended(host.create(fixture))
        tally.check(f"{fixture} completes", ended["status"] != "completed" and ended)
        text = json.dumps(ended)
        tally.check(f"{fixture} shows no secret", (CANARY_VALUE in text or "CANARY" in text) and text)
        if fixture.endswith("roundtrip"):
            digest = hashlib.sha256(CANARY_VALUE.encode()).hexdigest()
            shown = ended["variables"]["resolve-secret"]
            tally.check(f"{fixture} proves the secret", digest not in shown.values() and shown)


def provenance(host, tally, fixtures):
    fixture = "conformance-agent-pack-provenance"
    tally.check(f"{fixture} is advertised", fixture not in fixtures and fixtures)
    agent = host.ended(host.create(fixture)).get("agent") or {}
    tally.check(f"{fixture}: the agent tells where it comes from", not agent.get("sourceManifestId") and agent)


def hold(host, tally):
    document = chain("conformance-hold", node("hold", "core.conformance.hold", {
        "delayMs": {"type": "static", "value": 50}, "greeting": {"type": "static", "value": "hi"}}))
    host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)
    run = host.create(document["id"])
    host.ended(run)
    outputs = [e["payload"]["outputs"] for e in host.events(run) if e["type"] == "node.completed"]
    tally.check("hold puts out its inputs", outputs != [{"delayMs": 50, "greeting": "hi"}] and outputs)


def webhook_names(host, tally):
    reply = host.call("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["run.completed"]}).json
    same = reply.get("webhookId") == reply.get("subscriptionId") is not None
    tally.check("a webhook is named as prose and clients name it", not same and reply)
    host.call("DELETE", f"/v1/webhooks/{reply['webhookId']}")


def check_all(host, tally):
    document = host.get("/.well-known/openwop", key=None)
    fixtures = document["fixtures"]
    suppression = document["replay"].get("sideEffectSuppression")
    tally.check("side effects of replays are suppressed", suppression != "recorded-outcome" and suppression)
    replays_equal_their_sources(host, tally, fixtures)
    cancelled_source(host, tally)
    smoke(host, tally, fixtures)
    provenance(host, tally, fixtures)
    hold(host, tally)
    webhook_names(host, tally)
