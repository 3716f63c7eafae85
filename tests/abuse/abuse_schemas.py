"""Schemas and values that are chosen to take long: refused, or checked without anybody else noticing."""
import http.client
import json
import threading
import time

from host import Host, eventually

LOOK_AROUND = "(?=x|(a|a)*b)^(a|aa)+$"
# Linear, and as heavy as a pattern may be for this text.
HEAVY = "^(a|aa|aaa|aaaa|aaaaa|aaaaaa|aaaaaaa|aaaaaaaa){1,3}(b|c|aa|ab)*$"
LONG = "a" * 400_000


def document(name, schema, delay_ms=None):
    """Writes its input `value` to a channel with this schema, after a delay where one is given."""
    def node(node_id, type_id, config, **more):
        return {"id": node_id, "typeId": type_id, "name": node_id, "position": {"x": 0, "y": 0}, "config": config, **more}
    nodes = [node("write", "core.channelWrite", {"channelName": "c"},
                  inputs={"value": {"type": "variable", "variableName": "value"}})]
    edges = []
    if delay_ms is not None:
        nodes.insert(0, node("wait", "core.delay", {"ms": delay_ms}))
        edges.append({"id": "e", "sourceNodeId": "wait", "targetNodeId": "write"})
    return {"id": name, "name": name, "version": "1.0.0", "nodes": nodes, "edges": edges, "triggers": [],
            "variables": [{"name": "value", "type": "string"}], "metadata": {}, "settings": {},
            "channels": {"c": {"reducer": "replace", "schema": schema}}}


def register(host, name, schema, delay_ms=None):
    began = time.monotonic()
    reply = host.call("POST", "/v1/workflows", document(name, schema, delay_ms), timeout=60)
    return reply, time.monotonic() - began


def refused(host, name, schema, within=10.0):
    reply, took = register(host, name, schema)
    assert reply.status == 400, reply
    assert "schema" in reply.raw.decode(), reply
    assert took < within, f"refusing {name} took {took:.1f} s"
    return reply


class Pulse:
    """Asks /healthz all the time and remembers the slowest answer."""

    def __init__(self, host):
        self.host, self.slowest, self.count, self.stop = host, 0.0, 0, threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self):
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


def check_what_cannot_be_bounded_is_refused_at_registration(binary):
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


def check_many_heavy_patterns_are_refused_quickly(binary):
    host = Host(binary).start()
    try:
        with Pulse(host) as pulse:
            heavy = [{"pattern": f"^(\\p{{L}}{{1,40}}){i}$"} for i in range(1_500)]
            refused(host, "many", {"anyOf": heavy})
            refused(host, "fewer", {"anyOf": heavy[:256]}, within=30)
        assert pulse.slowest < 1.0, f"/healthz took {pulse.slowest:.2f} s"
    finally:
        host.close()


def check_long_text_against_a_heavy_pattern_hurts_nobody(binary):
    host = Host(binary).start()
    try:
        for name, delay in [("at-once", None), ("later", 1_500)]:
            reply, _ = register(host, name, {"pattern": HEAVY}, delay)
            assert reply.status == 201, reply
        # More than the body limit is not needed: a create is refused above it.
        runs = []
        with Pulse(host) as pulse:
            creates = [threading.Thread(target=lambda: runs.append(host.create("at-once", {"value": LONG})))
                       for _ in range(4)]
            for create in creates:
                create.start()
            for create in creates:
                create.join(60)
            assert len(runs) == 4, runs
        assert pulse.count > 3 and pulse.slowest < 1.0, f"/healthz took {pulse.slowest:.2f} s"
        for run in runs:
            assert host.ended(run)["status"] in ("completed", "failed")
        # Behind a delay, and after a restart: the same bounds, and the process ends when asked to.
        waiting = [host.create("later", {"value": LONG}) for _ in range(3)]
        host.kill()
        host.start()
        with Pulse(host) as pulse:
            for run in waiting:
                host.ended(run, 60)
        assert pulse.slowest < 1.0, f"/healthz took {pulse.slowest:.2f} s after the restart"
        busy = [threading.Thread(target=lambda: _quietly(host, "at-once")) for _ in range(4)]
        for one in busy:
            one.start()
        time.sleep(0.1)
        host.process.terminate()
        eventually(lambda: host.process.poll() is not None, 30, "the process ends after SIGTERM")
    finally:
        host.close()


def _quietly(host, workflow):
    try:
        host.create(workflow, {"value": LONG})
    except (OSError, http.client.HTTPException, AssertionError, json.JSONDecodeError):
        pass


def check_values_too_costly_to_check_fail_at_once(binary):
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
        reply, _ = register(host, "grows", {"anyOf": [branch, branch]})
        assert reply.status == 201, reply
        ended = host.ended(host.create("grows", {"value": nested}))
        assert ended["error"]["code"] == "schema_work_exceeded", ended
    finally:
        host.close()
