"""Mock providers: the frames of a stream, checked against the published schema of a chunk."""
import json

FIXTURE = "conformance-stream-text"
TOKENS = ["Hello", " ", "world", "!"]
USAGE = {"promptTokens": 5, "completionTokens": 4, "totalTokens": 9}
CALL = {"id": "c1", "name": "add", "arguments": "{\"a\":1}"}

# Provider, its configuration, the expected text, and the finish reason of the last chunk.
PROVIDERS = [
    ("stream-text", {"tokens": TOKENS, "delayMsPerToken": 10, "finishReason": "stop", "usage": USAGE}, TOKENS, "stop"),
    ("stream-text", {}, ["mock", " response"], "stop"),
    ("tool-calls", {"toolCalls": [CALL, {**CALL, "id": "c2"}]}, ["", ""], "tool_calls"),
    ("usage-only", {"usage": USAGE}, [""], "stop"),
]


def frames(host, key, run, mode):
    """The name and data of every frame, until the server closes the stream."""
    reply = host.call("GET", f"/v1/runs/{run}/events?streamMode={mode}", key=key,
                      headers={"Accept": "text/event-stream"})
    told = []
    for block in reply.raw.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields:
            told.append((fields["event"], json.loads(fields["data"])))
    return told


def create(host, key, provider, config):
    mock = {"id": provider, "config": config}
    return host.call("POST", "/v1/runs", {"workflowId": FIXTURE, "configurable": {"mockProvider": mock}}, key=key)


def check_all(host, published, tally):
    told = host.get("/.well-known/openwop", key=None)
    served = told["testing"]["mockProviders"]
    tally.check(f"{FIXTURE}: is advertised", FIXTURE not in told["fixtures"] and told["fixtures"])
    made = host.call("POST", "/v1/host/tandem/keys", {"name": "t", "scopes": ["runs:create", "runs:read"], "test": True})
    key = made.json["secret"]
    tally.check("the prefix of test keys is told", not key.startswith(told["testing"]["testKeyPrefix"]) and told["testing"])
    for provider, config, said, finish in PROVIDERS:
        tally.check(f"{provider}: is advertised", provider not in served and served)
        run = create(host, key, provider, config).json["runId"]
        heard = frames(host, key, run, "messages")
        chunks = [data for _, data in heard]
        tally.check(f"{provider}: only chunks are heard, in order",
                    ([name for name, _ in heard] != ["ai.message.chunk"] * len(said)
                     or [c["chunk"] for c in chunks] != said) and heard)
        tally.check(f"{provider}: chunks as published",
                    [e for c in chunks for e in published.errors("run-event-payloads", c, "outputChunk")][:3])
        ends = [(c["isLast"], c["meta"].get("finishReason"), "usage" in c["meta"]) for c in chunks]
        wanted = [(False, None, False)] * (len(said) - 1) + [(True, finish, True)]
        tally.check(f"{provider}: the last chunk says how it ended", ends != wanted and ends)
        log = host.get(f"/v1/runs/{run}/events?streamMode=debug", key=key)["events"]
        tally.check(f"{provider}: {len(log)} events", [e for event in log for e in published.event_errors(event)][:3])
        fork = host.call("POST", f"/v1/runs/{run}:fork", {"mode": "replay"}, key=key).json["runId"]
        again = frames(host, key, fork, "messages")
        same = [(name, {**data, "runId": run}) for name, data in again] == heard
        tally.check(f"{provider}: a replay says the same", not same and again)
    failed = create(host, key, "error", {"code": "boom", "message": "It broke."}).json["runId"]
    error = host.get(f"/v1/runs/{failed}", key=key)["error"]
    tally.check("error: is the run's", (error["code"], error["message"]) != ("boom", "It broke.") and error)
    unknown, live = create(host, key, "nobody", {}), create(host, None, "stream-text", {})
    tally.check("an unknown one is refused", (unknown.status, unknown.json["error"]) != (400, "unsupported_mock_provider")
                and unknown)
    tally.check("a caller without a key is refused first", live.status != 401 and live)
    live = host.call("POST", "/v1/runs", {"workflowId": FIXTURE, "configurable": {"mockProvider": {"id": "nobody"}}})
    tally.check("production keys are refused", (live.status, live.json["error"]) != (403, "mock_provider_forbidden") and live)
    for reply in (unknown, live):
        tally.check(f"{reply.status}: as published", published.errors("error-envelope", reply.json))
