"""Small requests whose decisions look at large values very often: done elsewhere and in parts, without anybody else noticing."""
import http.client
import json
import threading
import time

from abuse_schemas import HealthProbe
from host import Host, eventually

LARGE = [1] * 150_000


def node(node_id, type_id, config=None, **more):
    return {"id": node_id, "typeId": type_id, "name": node_id, "position": {"x": 0, "y": 0}, "config": config or {}, "inputs": {}, **more}


def edge(source, target, **more):
    return {"id": f"{source}-{target}", "sourceNodeId": source, "targetNodeId": target, **more}


def register(host, name, nodes, edges, variables=()):
    document = {"id": name, "name": name, "version": "1.0.0", "nodes": nodes, "edges": edges, "triggers": [],
                "variables": list(variables), "metadata": {}, "settings": {"timeout": 0}}
    reply = host.call("POST", "/v1/workflows", document, timeout=60)
    assert reply.status == 201, reply


def large_variable():
    return [{"name": "v", "type": "array", "defaultValue": LARGE}]


def with_conditions(host, name, count, condition, delay_ms=None):
    """One node that puts out a large list, and many edges that look at it."""
    nodes = [node("s", "core.identity", inputs={"o": {"type": "variable", "variableName": "v"}})]
    nodes += [node(f"t{i}", "core.noop") for i in range(count)]
    edges = [edge("s", f"t{i}", condition=condition(i)) for i in range(count)]
    if delay_ms is not None:
        nodes.append(node("wait", "core.delay", {"ms": delay_ms}))
        edges.append(edge("wait", "s"))
    register(host, name, nodes, edges, large_variable())


def never_equal(_):
    return {"type": "expression", "expression": "!(" + " && ".join(["output.o == output.o"] * 100) + ")"}


def loop(host, name, rounds, body, config=None, inputs=None, variables=()):
    config = config or {"times": rounds, "maxIterations": rounds}
    register(host, name, [node("l", "core.loop", config, inputs=inputs or {}), body], [edge("l", "b"), edge("b", "l")], variables)


def create(host, workflow):
    try:
        host.call("POST", "/v1/runs", {"workflowId": workflow, "inputs": {}}, timeout=60)
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        pass


def start(host, workflow, count):
    threads = [threading.Thread(target=create, args=(host, workflow), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def slowest_health_check_during(host, workflow, count, seconds):
    with HealthProbe(host) as pulse:
        start(host, workflow, count)
        time.sleep(seconds)
    return pulse.slowest


def holds_nobody_up(host, workflow, count=6, seconds=6.0):
    """`/healthz` is answered while such runs are under way, and the process ends when it is asked to."""
    slowest = slowest_health_check_during(host, workflow, count, seconds)
    assert slowest < 1.5, f"/healthz took {slowest:.2f} s during {workflow}"
    terminates(host, workflow)


def terminates(host, workflow):
    host.process.terminate()
    eventually(lambda: host.process.poll() is not None, 30, f"the process ends after SIGTERM during {workflow}")


def check_conditions_over_large_values_do_not_delay_others(binary):
    for name, count, condition in [
            ("expression", 40, never_equal),
            ("contains", 600, lambda i: {"type": "contains", "left": "o", "right": {"x": i}}),
            ("regex", 200, lambda i: {"type": "regex", "left": "o", "right": f"(a|aa)+{i}$"})]:
        host = Host(binary).start()
        try:
            with_conditions(host, name, count, condition)
            holds_nobody_up(host, name)
        finally:
            host.close()


def check_ports_and_titles_over_large_values_do_not_delay_others(binary):
    equal = " && ".join(["variables.v == variables.v"] * 50)
    title = " ".join("{{ " + " && ".join(["variables.v == variables.v"] * 6) + " }}" for _ in range(16))
    for name, made in [
            ("port", lambda i: node(f"t{i}", "core.noop", inputs={"x": {"type": "expression", "expression": equal}})),
            ("title", lambda i: node(f"t{i}", "core.approvalGate", {"title": title, "actions": ["accept"]}))]:
        host = Host(binary).start()
        try:
            nodes = [node("s", "core.noop")] + [made(i) for i in range(8)]
            register(host, name, nodes, [edge("s", f"t{i}") for i in range(8)], large_variable())
            holds_nobody_up(host, name)
        finally:
            host.close()


def check_heavy_conditions_after_a_restart_do_not_delay_others(binary):
    host = Host(binary).start()
    try:
        with_conditions(host, "later", 40, never_equal, delay_ms=3_000)
        for thread in start(host, "later", 6):
            thread.join(60)
        host.kill()
        time.sleep(3)
        host.start()
        with HealthProbe(host) as pulse:
            time.sleep(5)
        assert pulse.slowest < 1.5, f"/healthz took {pulse.slowest:.2f} s after the restart"
        terminates(host, "later")
    finally:
        host.close()


def check_memory_searches_do_not_delay_others(binary):
    host = Host(binary).start()
    try:
        loop(host, "fill", 300, node("b", "vendor.tandem.memory", {"action": "put", "value": "y" * 60_000}))
        loop(host, "seek", 1_000, node("b", "vendor.tandem.memory", {"action": "search", "text": "zzzzq", "limit": 500}))
        assert host.ended(host.create("fill", {}), 120)["status"] == "completed"
        holds_nobody_up(host, "seek", count=3)
    finally:
        host.close()


def check_growing_loops_do_not_delay_others(binary):
    write = {"channelName": "ch"}
    for name, body, more in [
            ("append", node("b", "core.channelWrite", write, inputs={"value": {"type": "static", "value": "x" * 1_000}}), {}),
            ("items", node("b", "core.noop"),
             {"config": {"maxIterations": 3_000, "itemVariable": "it"},
              "inputs": {"items": {"type": "variable", "variableName": "v"}},
              "variables": [{"name": "v", "type": "array", "defaultValue": [*range(3_000), LARGE]}]})]:
        host = Host(binary).start()
        try:
            loop(host, name, 3_000, body, **more)
            holds_nobody_up(host, name)
        finally:
            host.close()


def check_channel_that_doubles_is_stopped_before_it_is_built(binary):
    host = Host(binary).start()
    try:
        value = {"type": "expression", "expression": "channels"}
        loop(host, "grow", 60, node("b", "core.channelWrite", {"channelName": "ch"}, inputs={"value": value}))
        ended = host.ended(host.create("grow", {}), 60)
        assert ended["status"] == "failed" and ended["error"]["code"] in ("run_state_too_large", "value_too_large", "run_too_deep"), ended
        with open(f"/proc/{host.process.pid}/status") as status:
            peak = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
        assert peak < 1_000, f"{peak} MiB"
    finally:
        host.close()
