"""Nodes of packs: the published workflows behave as their descriptions say, with events in the published schemas."""

GREETS, BREACHES = "conformance-wasm-pack-roundtrip", "conformance-wasm-pack-memory-cap-breach"


def advertised(host, tally):
    document = host.get("/.well-known/openwop")
    wasm = document.get("nodePackRuntimes", {}).get("wasm", {})
    tally.check("packs: the runtime is advertised with its ceiling",
                not (wasm.get("supported") and 1 in wasm["abiVersions"] and 1 << 20 <= wasm["maxMemoryBytes"] <= 8 << 30)
                and wasm)
    missing = {GREETS, BREACHES} - set(document.get("fixtures", []))
    tally.check("packs: both fixtures are advertised", missing and repr(missing))
    return wasm


def greets(host, tally):
    greetings = []
    for inputs, want in [({"name": "openwop"}, "Hello, openwop!"), ({"name": "openwop"}, "Hello, openwop!"),
                         ({}, "Hello, world!")]:
        seen = host.ended(host.create(GREETS, inputs))
        done = [e["payload"]["outputs"] for e in host.events(seen["runId"]) if e["type"] == "node.completed"]
        wrong = (seen["status"], done) != ("completed", [{"greeting": want}])
        tally.check(f"{GREETS}: {want}", wrong and [seen["status"], done])
        greetings.append(seen["runId"])
    fork = host.call("POST", f"/v1/runs/{greetings[0]}:fork", {"mode": "replay", "fromSeq": 0})
    told = [[(e["type"], e["payload"].get("outputs")) for e in host.events(run)]
            for run in (greetings[0], fork.json["runId"])]
    tally.check(f"{GREETS}: a replay tells the same", told[0] != told[1] and told)


def breaches(host, tally, ceiling):
    seen = host.ended(host.create(BREACHES))
    told = host.events(seen["runId"])
    types = [event["type"] for event in told]
    tally.check(f"{BREACHES}: the node and the run fail",
                (seen["status"], types[-3:]) != ("failed", ["cap.breached", "node.failed", "run.failed"]) and types)
    breach = told[-3]["payload"]
    wrong = (breach.get("kind"), breach.get("limit"), breach.get("nodeId")) != ("wasm-memory", ceiling, "bomb")
    tally.check(f"{BREACHES}: says what was too much", (wrong or breach["observed"] <= ceiling) and breach)


def check_all(host, tally):
    wasm = advertised(host, tally)
    greets(host, tally)
    breaches(host, tally, wasm.get("maxMemoryBytes"))
