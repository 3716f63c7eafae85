#!/usr/bin/env python3
"""Two real processes: a run on one host starts a run on the other, and both show their ancestry.

    two_hosts.py --binary target/release/tandem

Checks what a single process cannot show: a parent on another host is shown with its discovery URL,
its event is the cause of events here, the trace continues, and a false, foreign or circular claim
changes nothing but what ancestry shows.
"""
import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from host import KEY, Host, Outside, Tally, chain, node  # noqa: E402

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def started(binary, host_id, **env):
    return Host(binary, options=("--test-seams", "--host-id", host_id), env=env).start()


def put(host, document):
    reply = host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)
    assert reply.status in (200, 201), reply


def claim(host, run_id, host_id, **more):
    parent = {"runId": run_id, "hostId": host_id, "wellKnownUrl": f"{host.base}/.well-known/openwop", **more}
    return {"metadata": {"openwop": {"parent": parent}}}


def ancestry(host, run_id):
    return host.get(f"/v1/runs/{run_id}/ancestry")


def trace_of(host, run_id):
    return {span.get("traceId") for span in host.get(f"/v1/runs/{run_id}/debug-bundle")["spans"]}


def check_http_call(near, far, check):
    """A node calls the other host, which continues the trace and names the caller as parent."""
    put(far, chain("worker", node("n", "core.noop")))
    body = {"workflowId": "worker", **claim(near, "run-named-by-the-caller", "near", eventId="run-named-by-the-caller:1")}
    put(near, chain("caller", node("call", "vendor.tandem.http", method="POST", url=f"{far.base}/v1/runs", body=body,
                                   headers={"authorization": f"Bearer {KEY}"}, output="answer")))
    run = near.create("caller", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    snapshot = near.ended(run)
    child = snapshot["variables"]["answer"]["runId"]
    far.ended(child)
    expected = {"runId": "run-named-by-the-caller", "hostId": "near", "cause": "core.subWorkflow",
                "wellKnownUrl": f"{near.base}/.well-known/openwop"}
    check("R-0040-7 (half: a parent elsewhere), R-0040-10, R-0040-11 (half: a claimed parent): the far run names its parent and where to ask",
          ancestry(far, child) == {"runId": child, "hostId": "far", "parent": expected}, ancestry(far, child))
    check("R-0040-8: the near run has no parent", ancestry(near, run)["parent"] is None, ancestry(near, run))
    check("R-0040-4 (half: a call of a node), R-0040-5 (half: the other host takes it up): one trace over both hosts", trace_of(near, run) == trace_of(far, child) == {TRACE},
          (trace_of(near, run), trace_of(far, child)))
    first = far.events(child)[0]
    check("the far run's start is caused by the near event", first["causationId"] == "run-named-by-the-caller:1",
          first)
    named = [e for e in far.events(child) if "causationHostId" in e["payload"]]
    check("R-0040-1 (half: none of a run started elsewhere has it), R-0040-2 (half: causes here name no host): no event but the listed ones names a host", named == [], named)


def check_claimed_parents(near, far, check):
    """Claims about the own host are checked, circular ones are harmless, false ones are dropped."""
    here = near.create("caller-less")
    ours = near.create("caller-less", **claim(near, here, "near"))
    check("R-0040-9: a parent on this host has no address",
          ancestry(near, ours)["parent"] == {"runId": here, "hostId": "near", "cause": "core.subWorkflow"},
          ancestry(near, ours))
    invented = near.create("caller-less", **claim(near, "run-nobody", "near"))
    check("a parent we do not know is dropped", ancestry(near, invented)["parent"] is None, ancestry(near, invented))
    for bad in ({"runId": 7}, {"hostId": ""}, {"wellKnownUrl": "http://example.com/.well-known/openwop"},
                {"wellKnownUrl": "https://example.com/"}):
        broken = claim(far, "run-x", "far")
        broken["metadata"]["openwop"]["parent"].update(bad)
        run = near.create("caller-less", **broken)
        check(f"a malformed claim is dropped: {bad}", ancestry(near, run)["parent"] is None, ancestry(near, run))
    first = near.create("caller-less", **claim(far, "run-far", "far"))
    second = far.create("worker", **claim(near, first, "near"))
    third = near.create("caller-less", **claim(far, second, "far"))
    walk = [ancestry(near, third)["parent"]["runId"], ancestry(far, second)["parent"]["runId"],
            ancestry(near, first)["parent"]["runId"]]
    check("R-0040-12: one hop at a time, also when hosts name each other", walk == [second, first, "run-far"], walk)
    check("an unknown run is not found", near.call("GET", "/v1/runs/run-nobody/ancestry").status == 404, None)


def agent_endpoint(far, named):
    """An agent endpoint that runs workflows on the other host, and names the event that caused its decision."""
    host_id = model_of(far)["crossHostCausation"]["hostId"]

    def decide(_path, _body):
        run = far.create("worker")
        far.ended(run)
        cause = {"hostId": host_id, "eventId": far.events(run)[-1]["eventId"]}
        named.append(cause["eventId"])
        return 200, {"decision": {"kind": "terminate", "reason": "done"}, "confidence": 0.9, "causation": cause}

    return Outside(decide)


def model_of(host):
    return host.get("/.well-known/openwop")["multiAgent"]["executionModel"]


def supervised_events(host, url):
    """Events of a run whose supervisor uses the endpoint."""
    put(host, chain("led", node("lead", "core.orchestrator.supervisor", endpoint={"url": url}), node("send", "core.dispatch")))
    run = host.create("led")
    host.ended(run)
    return run, host.events(run)


def check_remote_decision(binary, near, far, check):
    """A decision made by runs of the other host names its cause there, if causation across hosts is enabled."""
    advertised = model_of(far)["crossHostCausation"]["hostId"]
    known = []
    agent = agent_endpoint(far, known)
    url = agent.url + "/decide"
    try:
        _, events = supervised_events(near, url)
        named = [(e["type"], e["payload"]["causationHostId"]) for e in events if "causationHostId" in e["payload"]]
        check("R-0040-3 (half: over the network): a decision made elsewhere names the host as it advertises itself",
              named == [("agent.decided", advertised)], named)
        cause = next(e["causationId"] for e in events if e["type"] == "agent.decided")
        check("its cause is an event over there", cause in known, (cause, known))
        second = started(binary, "second", TANDEM_EXECUTION_MODEL_VERSION="2")
        try:
            run, events = supervised_events(second, url)
            named = [e for e in events if "causationHostId" in json.dumps(e)]
            block = model_of(second).get("crossHostCausation")
            check("R-0040-17 (half: over the network): a host that does not advertise it names no other",
                  (named, block) == ([], None), (named, block))
            reply = second.call("GET", f"/v1/runs/{run}/ancestry")
            check("R-0040-15 (half: 404 below version three): a run that is there has no ancestry",
                  (reply.status, reply.json["error"]) == (404, "not_found"), reply)
        finally:
            second.close()
    finally:
        agent.close()


def check_generated_host_id(binary, check):
    """A host without a configured id generates one and keeps it."""
    one, other = Host(binary, options=()).start(), Host(binary, options=()).start()
    try:
        name = model_of(one)["crossHostCausation"]["hostId"]
        check("R-0040-14 (half: the default): the name of an installation is its own",
              re.fullmatch("tandem-[0-9a-f]{8}", name) and name != model_of(other)["crossHostCausation"]["hostId"], name)
        one.stop()
        one.start()
        again = model_of(one)["crossHostCausation"]["hostId"]
        check("R-0040-13 (half: the id outlives a restart): it is kept", again == name, (name, again))
        check("R-0023-20, R-0023-18 (half: off unless asked for), R-0023-21 (half: false by default): a host for real work has no mock agent",
              one.get("/.well-known/openwop")["conformance"] == {"mockAgent": False}, None)
    finally:
        one.close()
        other.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    binary = parser.parse_args().binary
    tally = Tally()

    def check(name, holds, seen):
        tally.check(name, None if holds else seen or "it does not hold")

    near, far = started(binary, "near"), started(binary, "far")
    try:
        put(near, chain("caller-less", node("n", "core.noop")))
        check_http_call(near, far, check)
        check_claimed_parents(near, far, check)
        check_remote_decision(binary, near, far, check)
        check_generated_host_id(binary, check)
    finally:
        near.close()
        far.close()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
