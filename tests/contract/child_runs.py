"""Published workflows with agents, supervisors, dispatch and sub-workflows behave as their descriptions say.

Workflows covered by other checks (mappings per worker, loops, escalations, cascades) are not repeated here.
"""
from host import eventually

# Workflow, final status, final variables, and the expected number of events by type.
ENDS = [
    ("conformance-orchestrator-dispatch", "completed", {}, {"runOrchestrator.decided": 2, "node.dispatched": 1}),
    ("conformance-orchestrator-terminate", "completed", {}, {"runOrchestrator.decided": 1, "node.dispatched": 0}),
    ("conformance-dispatch-output-mapping", "completed", {"parentResult": "done"}, {"node.dispatched": 1}),
    ("conformance-dispatch-deterministic-fail-child", "failed", {}, {"run.failed": 1}),
    ("conformance-agent-identity", "completed", {}, {"node.completed": 1}),
]


def child_of(host, run):
    children = eventually(lambda: host.run(run).get("childRuns"), what=f"a child of {run}")
    return children[0]["runId"]


def final_states(host, tally):
    for workflow, status, variables, counts in ENDS:
        seen = tally.attempt(f"{workflow} ends", lambda workflow=workflow: host.ended(host.create(workflow)))
        if not seen:
            continue
        types = [event["type"] for event in host.events(seen["runId"])]
        told = {kind: types.count(kind) for kind in counts}
        left = {name: seen["variables"].get(name) for name in variables}
        wrong = (seen["status"], left, told) != (status, variables, counts)
        tally.check(f"{workflow}: as described", wrong and [seen["status"], left, told])


def identity(host, tally):
    seen = host.ended(host.create("conformance-agent-identity"))
    tally.check("conformance-agent-identity: the snapshot names the agent",
                not seen.get("agent", {}).get("agentId") and repr(seen))


def low_confidence(host, tally):
    run = host.create("conformance-agent-low-confidence")
    tally.attempt("conformance-agent-low-confidence waits", lambda: host.reaches(run, "waiting-approval"))
    held = [e["payload"] for e in host.events(run) if e["type"] == "node.suspended"]
    said = [(p["reason"], p["threshold"], p["observed"]) for p in held]
    tally.check("conformance-agent-low-confidence: says why", said != [("low-confidence", 0.7, 0.5)] and said)


def unset(host, tally):
    name = "conformance-subworkflow-input-mapping-no-default"
    run = host.create(name)
    host.ended(run)
    given = host.run(child_of(host, run))["variables"]
    tally.check(f"{name}: the child's own default does not stand in", "receivedPrdId" in given and given)


def cancelled(host, tally):
    run = host.create("conformance-dispatch-cancellable-child")
    host.call("POST", f"/v1/runs/{run}/cancel", {})
    seen = tally.attempt("conformance-dispatch-cancellable-child ends", lambda: host.ended(run))
    tally.check("conformance-dispatch-cancellable-child: cancelled", seen and seen["status"] != "cancelled" and seen)


def seeded(host, tally):
    name = "conformance-subworkflow-mid-run-mutation"
    run = host.create(name)
    child = child_of(host, run)
    waiting = host.reaches(child, "waiting-approval")
    path = f"/v1/runs/{child}/interrupts/{waiting['interrupt']['nodeId']}"
    reply = host.call("POST", path, {"resumeValue": {"action": "accept"}})
    tally.check(f"{name}: the child's question is answered", reply.status != 200 and reply)
    host.ended(run)
    given = host.run(child)["variables"].get("receivedPrdId")
    tally.check(f"{name}: the child keeps what it was given", given != "seeded-id" and repr(given))


def channel(host, tally):
    # Registration refuses it, so it cannot be run.
    reply = host.call("POST", "/v1/runs", {"workflowId": "conformance-agent-channel-dispatch"})
    tally.check("conformance-agent-channel-dispatch: a host without deployments does not take it",
                reply.status != 404 and reply)


def check_all(host, tally):
    for check in (final_states, identity, low_confidence, unset, cancelled, seeded, channel):
        check(host, tally)
