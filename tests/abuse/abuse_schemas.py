"""Expensive schemas and values: refused, or validated without slowing down other callers."""
import http.client
import json
import random
import threading
import time

from host import Host, eventually

LOOK_AROUND = "(?=x|(a|a)*b)^(a|aa)+$"
# Accepted, because it is linear, but its automaton is large: every byte of this text visits all states of the pattern.
HEAVY = "^[ab]*a[ab]{20}$"
LONG = "".join(random.Random(1).choices("ab", k=400_000))


def document(name, schema, delay_ms=None, kind="string"):
    """Writes its input `value` to a channel with this schema, optionally after a delay."""
    def node(node_id, type_id, config, **more):
        return {"id": node_id, "typeId": type_id, "name": node_id, "position": {"x": 0, "y": 0}, "config": config, **more}
    nodes = [node("write", "core.channelWrite", {"channelName": "c"},
                  inputs={"value": {"type": "variable", "variableName": "value"}})]
    edges = []
    if delay_ms is not None:
        nodes.insert(0, node("wait", "core.delay", {"ms": delay_ms}, inputs={}))
        edges.append({"id": "e", "sourceNodeId": "wait", "targetNodeId": "write"})
    return {"id": name, "name": name, "version": "1.0.0", "nodes": nodes, "edges": edges, "triggers": [],
            "variables": [{"name": "value", "type": kind}], "metadata": {}, "settings": {},
            "channels": {"c": {"reducer": "replace", "schema": schema}}}


def register(host, name, schema, delay_ms=None, kind="string"):
    began = time.monotonic()
    reply = host.call("POST", "/v1/workflows", document(name, schema, delay_ms, kind), timeout=60)
    return reply, time.monotonic() - began


def refused(host, name, schema, within=10.0):
    reply, took = register(host, name, schema)
    assert reply.status == 400, reply
    assert "schema" in reply.raw.decode(), reply
    assert took < within, f"refusing {name} took {took:.1f} s"
    return reply


class HealthProbe:
    """Requests /healthz continuously and records the slowest response."""

    def __init__(self, host):
        self.host, self.slowest, self.count, self.stop = host, 0.0, 0, threading.Event()
        self.thread = threading.Thread(target=self._probe, daemon=True)

    def _probe(self):
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                assert self.host.call("GET", "/healthz", timeout=30).status == 200
            except (OSError, http.client.HTTPException):
                if self.stop.is_set():
                    return
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.count += 1
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(35)


def doubled(n, wrap):
    defs = {f"d{i}": {"anyOf": [wrap(f"#/$defs/d{i + 1}")] * 2} for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{n}": {"type": "integer"}}}


def check_unbounded_schemas_are_rejected_at_registration(binary):
    host = Host(binary).start()
    try:
        reply = refused(host, "look-around", {"pattern": LOOK_AROUND})
        assert "/channels/c/schema/pattern" in reply.raw.decode(), reply
        assert "look-around" in reply.raw.decode(), reply
        refused(host, "doubled", doubled(23, lambda ref: {"$ref": ref}))
        refused(host, "doubled-down", doubled(23, lambda ref: {"properties": {"a": {"$ref": ref}}}))
        refused(host, "itself", {"allOf": [{"$ref": "#"}]})
        refused(host, "remote", {"$ref": "http://127.0.0.1:9/schema.json"})
        nested = {"properties": {"a": {}}}
        for _ in range(20):
            nested = {"allOf": [nested], "unevaluatedProperties": False}
        refused(host, "unevaluated", nested)
        tree = {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}}}
        reply, _ = register(host, "tree", tree)
        assert reply.status == 201, reply
    finally:
        host.close()


def check_many_costly_patterns_are_rejected_quickly(binary):
    host = Host(binary).start()
    try:
        with HealthProbe(host) as pulse:
            heavy = [{"pattern": f"^(\\p{{L}}{{1,40}}){i}$"} for i in range(1_500)]
            refused(host, "many", {"anyOf": heavy})
            refused(host, "fewer", {"anyOf": heavy[:256]}, within=30)
        assert pulse.slowest < 1.0, f"/healthz took {pulse.slowest:.2f} s"
    finally:
        host.close()


def create(host, workflow):
    reply = host.call("POST", "/v1/runs", {"workflowId": workflow, "inputs": {"value": LONG}}, timeout=60)
    assert reply.status == 201, reply
    return reply.json["runId"]


def slowest_health_check_during(host, workflow, creates):
    """The slowest response of /healthz while runs with a long text are created."""
    runs = []
    with HealthProbe(host) as pulse:
        threads = [threading.Thread(target=lambda: runs.append(create(host, workflow)))
                   for _ in range(creates)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
    assert len(runs) == creates, runs
    for run in runs:
        assert host.ended(run)["status"] in ("completed", "failed")
    return pulse.slowest


def check_long_text_with_costly_pattern_does_not_delay_others(binary):
    host = Host(binary).start()
    try:
        for name, schema, delay in [("plain", {}, None), ("at-once", {"pattern": HEAVY}, None),
                                    ("later", {"pattern": HEAVY}, 1_500)]:
            reply, _ = register(host, name, schema, delay)
            assert reply.status == 201, reply
        # A debug build on a busy machine is slow even without a schema.
        allowed = max(1.0, 2 * slowest_health_check_during(host, "plain", 2))
        slowest = slowest_health_check_during(host, "at-once", 2)
        assert slowest < allowed, f"/healthz took {slowest:.2f} s"
        # Behind a delay, and after a restart.
        waiting = create(host, "later")
        host.kill()
        host.start()
        with HealthProbe(host) as pulse:
            host.ended(waiting, 60)
        assert pulse.slowest < allowed, f"/healthz took {pulse.slowest:.2f} s after the restart"
        # The process ends on SIGTERM.
        busy = threading.Thread(target=lambda: _create_ignoring_errors(host, "at-once"))
        busy.start()
        time.sleep(0.1)
        host.process.terminate()
        eventually(lambda: host.process.poll() is not None, 30, "the process ends after SIGTERM")
        busy.join(60)
    finally:
        host.close()


def _create_ignoring_errors(host, workflow):
    try:
        create(host, workflow)
    except (OSError, http.client.HTTPException, AssertionError, json.JSONDecodeError):
        pass


def check_values_too_costly_to_validate_fail_immediately(binary):
    host = Host(binary).start()
    try:
        reply, _ = register(host, "costly", {"pattern": "^(\\p{L}{1,20}x){1,3}$"})
        assert reply.status == 201, reply
        began = time.monotonic()
        ended = host.ended(host.create("costly", {"value": LONG}))
        assert time.monotonic() - began < 5
        assert ended["status"] == "failed" and ended["error"]["code"] == "schema_work_exceeded", ended
        nested = 1
        for _ in range(40):
            nested = {"a": nested}
        branch = {"properties": {"a": {"$ref": "#"}}}
        reply, _ = register(host, "grows", {"anyOf": [branch, branch]}, kind="object")
        assert reply.status == 201, reply
        ended = host.ended(host.create("grows", {"value": nested}))
        assert ended["error"]["code"] == "schema_work_exceeded", ended
    finally:
        host.close()
