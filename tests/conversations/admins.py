#!/usr/bin/env python3
"""Section 7: who may decide, by every way in.

    admins.py --binary target/release/tandem
"""
import datetime
import hashlib

from desk import API, admin_auth, at_once, flow, json, main, source, token

DECIDING = flow("deciding", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide', metadata: { a: 1 } };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'tool', name: 'note', args: {} };
  yield { type: 'say', text: r.outcome + ' ' + (r.message ? 'told' : 'untold') };""")
BRIDGED = flow("bridged", "yield { type: 'interrupt.proxy.start', target: 'finance' };\nyield { type: 'interrupt.proxy.wait' };")
TARGETS = "targets: { finance: { transport: 'loopback', address: 'finance-desk' } }"
# `none` is known and may nothing; `root` may manage schedules.
WITH_NONE = {"tokens": [{"hash": "sha256:" + hashlib.sha256(token(who).encode()).hexdigest(), "actorId": who, "role": who} for who in ("none", "root")],
             "chat": [], "roles": {"none": [], "root": ["schedule.manage"]}}
FLOWS = [DECIDING,
         flow("detaching", "yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'later' };"),
         flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?' };\nyield { type: 'say', text: 'x=' + x };"),
         flow("mixed", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'mixed' };
  yield { type: 'ask', key: 'x', text: 'x?' };""")]


def coded(resolve, can):
    return source(DECIDING, adminAuth=f"{{ resolveActor: async (signals) => {{ {resolve} }}, "
                                      f"can: async (action, actor, session) => {{ {can} }} }}", hookTimeoutMs="150")


ACTOR = "return { id: 'cora', role: 'boss', channel: 'ui_api', metadata: { header: signals.request?.headers['x-who'] ?? '-' } };"
DENYING = {
    "none": source(DECIDING, adminAuth=None, commands="{ vip: { description: 'x', access: 'admin', handler: async () => 'done' } }"),
    "null": coded("return null;", "return true;"),
    "throws": coded("throw new Error('down');", "return true;"),
    "hangs": coded("while (true) {}", "return true;"),
    "odd": coded(ACTOR, "return 'yes';"),
    "unsure": coded(ACTOR, "throw new Error('down');"),
}
AGENTS = {
    "desk": source(*FLOWS, commands="{ vip: { description: 'Marks', access: 'admin', handler: async (ctx) => 'marked' } }"),
    "roles": source(DECIDING, BRIDGED, adminAuth=admin_auth(**WITH_NONE), hitl=f"{{ {TARGETS} }}", scheduler="{ tools: true }"),
    "renamed": source(*FLOWS, commands="{ escalations: false }"),
    "code": coded(ACTOR, "return action === 'hitl.escalation.resolve' && actor.role === 'boss' && session.userExternalId !== 'nobody';"),
    "keys": source(DECIDING, adminAuth="{ builtin: 'keys', roles: { auditor: ['audit.view'] } }"),
    **DENYING,
}


def escalation_of(one):
    return one.payloads("hitl.escalation.created")[-1]["escalationId"]


def waiting(chat, agent="desk"):
    one = chat(agent)
    one.start("deciding")
    return one


def rights(one):
    return [(e["type"].split(".")[-1], e["payload"]["action"]) for e in one.events("admin.authz.granted", "admin.authz.denied")]


def rules(server, chat, check):
    ann = waiting(chat, "code")
    solved = ann.resolve(who=None)
    [granted] = ann.events("admin.authz.granted")
    check("Z-143 (half: as code): resolveActor reads the request, can decides about action, actor and session",
          (solved.status, granted["payload"]["action"], granted["actor"]["id"], granted["actor"]["channel"], ann.delivered()),
          (200, "hitl.escalation.resolve", "cora", "ui_api", ["resolved untold"]))
    bob = waiting(chat)
    by_chat = chat("desk", "chat-ana")
    by_chat.say(f"/resolve {escalation_of(bob)} approve")
    actor = bob.events("admin.authz.granted")[-1]["actor"]
    check("Z-143 (half: by chat): an admin's own chat is a signal too", (actor["id"], actor["channel"]), ("ana", "chat:loopback"))
    unknown = waiting(chat, "code")
    refused = [unknown.admin("POST", "/flows", {"flowId": "deciding"}, None).status, unknown.admin("POST", "/mode", {"agentMode": "off"}, None).status,
               server.admin("GET", f"/escalations/{escalation_of(unknown)}", who=None).status]
    audit = server.admin("GET", f"/audit?sessionId={unknown.session_id}", who=None).status
    check("Z-144 (half: through the routes): what the rules do not know is refused", (refused, audit), ([403] * 3, 403))
    answers = {}
    for agent in DENYING:
        one = waiting(chat, agent)
        before = one.flow
        status = one.resolve(who=None).status
        denied = one.events("admin.authz.denied")
        answers[agent] = (status in (401, 403), [e["payload"]["reason"] for e in denied], one.flow == before)
    check("Z-146: no rules, no actor, an error, a timeout and an odd answer are denials",
          answers, {agent: (True, [reason], True) for agent, reason in (
              ("none", "no_auth_config"), ("null", "no_actor"), ("throws", "error"), ("hangs", "timeout"), ("odd", "error"), ("unsure", "error"))})


def every_way(server, chat, check):
    """Somebody without the right tries each privileged operation; nothing changes."""
    ann = waiting(chat)
    escalation, question = escalation_of(ann), ann.question()
    asked = chat("desk")
    asked.start("asking")
    run = ann.flow["flowRunId"]
    before = ann.get(), asked.get()
    body = {"resumeValue": {"action": "accept"}}
    tries = [
        ("POST", f"/sessions/{ann.session_id}/resolve", {"approved": True}), ("POST", f"/escalations/{escalation}/resolve", {"approved": True}),
        ("POST", f"/interrupts/{question['interruptId']}:resolve", body), ("POST", f"/sessions/{ann.session_id}/flows", {"flowId": "asking"}),
        ("DELETE", f"/sessions/{ann.session_id}/flows/active", None), ("POST", f"/sessions/{ann.session_id}/mode", {"agentMode": "off"}),
        ("GET", f"/audit?sessionId={ann.session_id}", None),
        ("POST", f"/interrupts/{asked.question()['interruptId']}:resolve", {"resumeValue": {"answers": {"x": "7"}}}),
    ]
    nobody = [server.admin(*one, who="nobody").status for one in tries]
    viewer = [server.admin(*one, who="vic").status for one in tries]
    routes = [server.call("POST", f"/v1/runs/{run}/interrupts/{question['nodeId']}", body, {"X-Admin-Token": token("vic")}).status,
              server.call("POST", f"/v1/runs/{run}/cancel", {}, {"X-Admin-Token": token("vic")}).status]
    typed = [chat("desk", "chat-vic").say(text) for text in (f"/resolve {escalation} approve", f"/vip {ann.user}")]
    unchanged = [{k: v for k, v in now.items() if k != "lastActiveAt"} for now in (ann.get(), asked.get())]
    check("Z-145: each privileged operation asks who it is and whether they may, before anything changes",
          (nobody, viewer, routes, typed, unchanged),
          ([401] * 8, [403] * 8, [403] * 2, [["You cannot use this command."]] * 2,
           [{k: v for k, v in then.items() if k != "lastActiveAt"} for then in before]))
    denied = [e for e in ann.events("admin.authz.denied")]
    by_chat = [e for e in denied if e["actor"] and e["actor"]["channel"] == "chat:loopback"]
    unresolved = [e for e in denied if not e["actor"]]
    trail = server.admin("GET", f"/audit?sessionId={ann.session_id}&action=hitl.escalation.resolve").json["entries"]
    check("Z-147 (half: the log and the trail): grants and denials say action, actor or hashed signal, session, reason and adapter",
          (len(by_chat), {e["payload"]["reason"] for e in unresolved}, {e["payload"]["reason"] for e in denied if e["actor"]},
           all("adapter" in e["payload"] for e in denied), all(token("vic") not in json.dumps(e) for e in denied),
           all("signal" in json.dumps(e["payload"]) for e in unresolved), {e["sessionId"] for e in trail}, len(trail) > 3),
          (2, {"no_actor"}, {"forbidden"}, True, True, True, {ann.session_id}, True))
    edited = {"resumeValue": {"action": "accept", "editedArtifactData": {"a": 2}}}
    accepted = server.admin("POST", f"/interrupts/{question['interruptId']}:resolve", edited)
    check("Z-203 (half: changes without the action for them): `accept` with changes is refused and decides nothing",
          (accepted.status, ann.get()["flow"]["pausedOn"]), (400, "admin_resolution"))
    bulk = [server.call("POST", "/v1/runs:bulk-cancel", {"runIds": [run]}, {"X-Admin-Token": token(who)}).json["results"][0]
            for who in ("vic", "ana")]
    check("runs of flows are cancelled in bulk as alone: by who may", ([one["ok"] for one in bulk], ann.get()["flow"]), ([False, True], None))
    names = {e["payload"]["action"] for e in by_chat} & {e["payload"]["action"] for e in denied if e not in by_chat}
    check("Z-154: chat and routes use the same actions, and what is denied on one is denied on the other",
          names, {"hitl.escalation.resolve"})


# Every operation that changes a conversation or shows what admins see, with the right it needs. `None`: the key of the
# service is enough. A new operation must be added here.
OPERATIONS = {
    "GET /agents": None, "GET /agents/{agentId}": None, "GET /agents/{agentId}/events": None, "GET /agents/{agentId}/ui": None,
    "GET /agents/{agentId}/users": None, "PATCH /users/{userId}": None, "POST /agents/{agentId}/inbound": None,
    "GET /agents/{agentId}/transports/{name}": None, "POST /agents/{agentId}/transports/{name}": None, "GET /transports/{id}/auth": None,
    "GET /audit": "audit.view",
    "GET /escalations": "hitl.escalation.view", "GET /escalations/{escalationId}": "hitl.escalation.view",
    "POST /escalations/{escalationId}/assign": "hitl.escalation.resolve", "POST /escalations/{escalationId}/claim": "hitl.escalation.resolve",
    "POST /escalations/{escalationId}/release": "hitl.escalation.resolve", "POST /escalations/{escalationId}/resolve": "hitl.escalation.resolve",
    "GET /proxies": "hitl.proxy.view", "GET /proxies/{proxyId}": "hitl.proxy.view", "POST /proxies/{proxyId}/input": "hitl.proxy.input", "POST /proxies/{proxyId}/stop": "hitl.proxy.stop",
    "GET /schedules": "schedule.manage", "POST /schedules": "schedule.manage", "GET /schedules/{scheduleId}": "schedule.manage", "PATCH /schedules/{scheduleId}": "schedule.manage",
    "DELETE /schedules/{scheduleId}": "schedule.manage", "POST /schedules/{scheduleId}/pause": "schedule.manage",
    "POST /schedules/{scheduleId}/resume": "schedule.manage", "GET /schedules/{scheduleId}/runs": "schedule.manage",
    "GET /schedule-runs/{scheduleRunId}/recipients": "schedule.manage",
    "GET /sessions": None, "GET /sessions/{sessionId}": None, "GET /sessions/{sessionId}/events": None, "GET /sessions/{sessionId}/journal": None,
    "GET /sessions/{sessionId}/kv": None, "GET /sessions/{sessionId}/media/{mediaId}": None, "GET /sessions/{sessionId}/messages": None,
    "GET /sessions/{sessionId}/outbox": None, "GET /sessions/{sessionId}/rebuild": None, "POST /sessions/{sessionId}/compare-answers": None,
    "POST /sessions/{sessionId}/end": None, "POST /sessions/{sessionId}/flows": "flow.manage",
    "DELETE /sessions/{sessionId}/flows/active": "flow.manage", "POST /sessions/{sessionId}/mode": "flow.manage",
    "POST /runs/{runId}/divergence": "flow.manage", "POST /v1/runs/{runId}/cancel": "flow.manage", "POST /v1/runs:bulk-cancel": "flow.manage",
    "POST /sessions/{sessionId}/resolve": "hitl.escalation.resolve", "POST /interrupts/{interruptId}:resolve": "hitl.escalation.resolve",
    "POST /v1/runs/{runId}/interrupts/{nodeId}": "hitl.escalation.resolve",
    "POST /sessions/{sessionId}/takeover": "hitl.takeover.start", "POST /sessions/{sessionId}/takeover/messages": "hitl.takeover.message",
    "POST /sessions/{sessionId}/handback": "hitl.takeover.end",
}


def every_operation(server, chat, check):
    """The operations of the published document, called by an admin without rights, by one nobody knows, and by nobody."""
    described = server.get("/v1/openapi.json")["paths"]
    every = {f"{method.upper()} {path.removeprefix(API)}": tags for path, item in described.items() for method, tags in item.items()
             if method in ("get", "post", "put", "patch", "delete")}
    of_conversations = {name for name, found in every.items() if "conversations" in found["tags"]}
    check("each operation of conversations is listed with the right it needs, and each that is listed is served",
          (sorted(of_conversations - OPERATIONS.keys()), sorted(OPERATIONS.keys() - every.keys())), ([], []))
    ann, bridged = waiting(chat, "roles"), chat("roles")
    bridged.start("bridged")
    question, run = ann.question(), ann.flow["flowRunId"]
    trigger = {"type": "cron", "expr": "0 9 * * *"}
    wanted = {"agentId": "roles", "flowId": "deciding", "trigger": trigger, "target": {"kind": "user", "userExternalId": ann.user}}
    made = server.admin("POST", "/schedules", wanted, "root").json["id"]
    soon = (datetime.datetime.fromisoformat(server.clock()) + datetime.timedelta(seconds=30)).isoformat()
    taken = server.admin("POST", "/schedules", {**wanted, "trigger": {"type": "once", "runAt": soon}}, "root").json["id"]
    server.clock(31)
    [occurrence] = server.admin("GET", f"/schedules/{taken}/runs", who="root").json["runs"]
    ids = {"scheduleRunId": occurrence["id"], "escalationId": escalation_of(ann), "sessionId": ann.session_id, "proxyId": bridged.get()["hitl"]["proxyId"], "scheduleId": made,
           "interruptId": question["interruptId"], "nodeId": question["nodeId"], "runId": run}
    accept = {"resumeValue": {"action": "accept"}}
    bodies = {"POST /schedules": wanted, "PATCH /schedules/{scheduleId}": {"trigger": trigger}, "POST /proxies/{proxyId}/input": {"messageId": "i", "text": "x"},
              "POST /sessions/{sessionId}/flows": {"flowId": "deciding"}, "POST /sessions/{sessionId}/mode": {"agentMode": "off"},
              "POST /runs/{runId}/divergence": {"action": "abort"}, "POST /v1/runs:bulk-cancel": {"runIds": [run]},
              "POST /sessions/{sessionId}/resolve": {"approved": True}, "POST /escalations/{escalationId}/resolve": {"approved": True},
              "POST /escalations/{escalationId}/assign": {"actorId": "vic"}, "POST /interrupts/{interruptId}:resolve": accept,
              "POST /v1/runs/{runId}/interrupts/{nodeId}": accept, "POST /sessions/{sessionId}/takeover/messages": {"messageId": "m", "text": "x"}}
    queries = {"GET /audit": f"?sessionId={ann.session_id}", "GET /escalations": "?agentId=roles", "GET /proxies": "?agentId=roles", "GET /schedules": "?agentId=roles"}

    def state():
        seen = [{k: v for k, v in one.get().items() if k != "lastActiveAt"} for one in (ann, bridged)]
        return seen, [server.admin("GET", path, who="root").json for path in (f"/schedules/{made}", "/schedules?agentId=roles")], ann.delivered(), bridged.delivered()

    def denials():
        found, after = [], -1
        while True:
            page = server.get(f"{API}/agents/roles/events?after={after}")
            if page["lastPosition"] in (None, after):
                return [e for e in found if e["type"] == "admin.authz.denied"]
            found, after = found + page["events"], page["lastPosition"]
    before, got, wanted = state(), {}, {}
    for name, right in OPERATIONS.items():
        if not right:
            continue
        method, path = name.split(" ")
        path = path.format(**ids) + queries.get(name, "")
        path = path if path.startswith("/v1/") else API + path
        for who, status, reason in (("none", 403, "forbidden"), ("nobody", 401, "no_actor"), (None, 401, "no_actor")):
            known = {e["eventId"] for e in denials()}
            headers = {"X-Admin-Token": token(who)} if who else {}
            reply = server.call(method, path, bodies.get(name, {} if method == "POST" else None), headers)
            in_bulk = [one["error"]["code"] for one in reply.json["results"]] if name.endswith("bulk-cancel") else None
            new = [e for e in denials() if e["eventId"] not in known]
            denied = [(e["payload"]["action"], e["payload"]["reason"], bool(e["payload"].get("adapter")), (e["actor"] or {}).get("id")) for e in new]
            got[name, who] = (in_bulk or reply.status, denied)
            refused = {401: "unauthenticated", 403: "forbidden"}[status]
            wanted[name, who] = ([refused] if in_bulk else status, [(right, reason, True, "none" if reason == "forbidden" else None)])
    check("Z-145 (half: every operation of the published document), Z-147 (half: every operation): without the right each is denied, each denial is recorded once with its action, and nothing changes",
          ({key: found for key, found in got.items() if found != wanted[key]}, len(got), state() == before), ({}, len(wanted), True))
    open_to = [name for name, right in OPERATIONS.items() if not right and name.split(" ")[0] != "GET"]
    check("what changes something without a right of admins is only what services, networks and comparisons need", open_to,
          ["PATCH /users/{userId}", "POST /agents/{agentId}/inbound", "POST /agents/{agentId}/transports/{name}",
           "POST /sessions/{sessionId}/compare-answers", "POST /sessions/{sessionId}/end"])


def decisions(server, chat, check):
    ann = waiting(chat)
    escalation = escalation_of(ann)
    first = ann.resolve(message="fine", resolvedBy="somebody")
    same = server.admin("POST", f"/escalations/{escalation}/resolve", {"approved": True, "message": "fine", "resolvedBy": "somebody"})
    other = server.admin("POST", f"/escalations/{escalation}/resolve", {"approved": False}, "ben")
    changed = server.admin("POST", f"/escalations/{escalation}/resolve", {"approved": True, "message": "else"})
    record = server.admin("GET", f"/escalations/{escalation}").json["resolution"]
    check("Z-148: who decided is the actor; what the caller says is kept beside it",
          (record["resolvedBy"], record["claimedBy"]), ("ana", "somebody"))
    details = other.json["details"]
    bob = waiting(chat)
    server.crash("after_tool_call", lambda: bob.resolve())
    check("Z-152: the first decision stands, repeating it is harmless, another one is told; it is committed before the flow goes on",
          (first.status, same.status, other.status, changed.status, other.json["error"], details["decidedBy"], "decidedAt" in details,
           details["outcome"], ann.delivered(), bob.delivered()),
          (200, 200, 409, 409, "interrupt_already_resolved", "ana", True, details["outcome"], ["resolved told"], ["resolved untold"]))
    check("Z-153: the message is for the flow; it is not sent by itself", "fine" in ann.delivered(), False)
    raced = waiting(chat)
    path = f"/escalations/{escalation_of(raced)}/resolve"
    answers = at_once(*[lambda who=who, yes=yes: server.admin("POST", path, {"approved": yes}, who)
                        for who, yes in (("ana", True), ("ben", False)) * 3])
    check("Z-190 (half: decisions at once): one of them counts, and the flow goes on once",
          (sorted({a.status for a in answers}), len(raced.payloads("hitl.escalation.resolved")), raced.delivered()),
          ([200, 409], 1, ["resolved untold"]))
    none, several, one = chat("desk"), chat("desk"), chat("desk")
    none.say("hi")
    several.start("detaching")
    several.start("detaching")
    one.start("detaching")
    several_answer = several.resolve()
    inconsistent = server.admin("POST", f"/sessions/{one.session_id}/resolve", {"approved": True, "escalationId": escalation})
    attached = chat("desk")
    attached.start("detaching")
    attached.start("deciding")
    by_session = attached.resolve().json["reason"]
    check("Z-150, Z-151: an escalation is addressed by its id or by its session: the attached one, else the only detached one",
          (none.resolve().status, several_answer.status, len(several_answer.json["details"].get("escalationIds", [])), inconsistent.status,
           one.resolve().status, by_session, server.admin("POST", "/escalations/none/resolve", {"approved": True}).status),
          (404, 409, 2, 409, 200, "decide", 404))


def commands(server, chat, check):
    ann, boss = waiting(chat), chat("desk", "chat-ana")
    escalation = escalation_of(ann)
    listed = boss.say("/escalations")[0]
    done = boss.say(f"/resolve {escalation} reject Too late")
    resolution = server.admin("GET", f"/escalations/{escalation}").json["resolution"]
    acted = [e["payload"]["action"] for e in ann.events("admin.authz.granted")]
    removed = chat("renamed", "chat-ana").say("/escalations")
    check("Z-26 (half: escalations and own commands), Z-156 (half: escalations and resolve): the commands of admins have their actions, and can be removed",
          (escalation in listed or ann.user in listed, len(done), resolution["approved"], resolution["message"], "hitl.escalation.resolve" in acted,
           ann.delivered(), removed),
          (True, 1, False, "Too late", True, ["resolved told"], ["Unknown command. Try /help"]))


def keys(server, chat, check):
    def made(name, **more):
        return server.ok("POST", "/keys", {"name": name, **more})["secret"]
    worker = made("worker", scopes=["runs:create", "runs:read"])
    boss = made("boss", scopes=["runs:create", "runs:read", "approvals:respond"])
    reader = made("reader", scopes=["runs:read"])
    ann = waiting(chat, "keys")
    path = f"{API}/sessions/{ann.session_id}/resolve"
    refused = server.call("POST", path, {"approved": True}, key=worker)
    allowed = server.call("POST", path, {"approved": True}, key=boss)
    record = ann.events("hitl.escalation.resolved")[0]["actor"]
    check("Z-149 (half: by the keys of the host): the actor is the key's principal, and its scopes are rights",
          (refused.status, allowed.status, bool(record["id"]), ann.delivered()), (403, 200, True, ["resolved untold"]))
    inspected = [f"/sessions/{ann.session_id}{part}" for part in ("", "/messages", "/kv", "/outbox", "/journal", "/events")]
    without = [server.call("GET", API + one, key=None).status for one in inspected]
    other = server.ok("POST", "/keys", {"name": "other", "workspace": "elsewhere", "scopes": ["runs:create", "runs:read", "approvals:respond"]})["secret"]
    foreign = [server.call("GET", API + one, key=other).status for one in inspected]
    sent = [server.call("POST", f"{API}/agents/keys/inbound", {"messageId": "1", "from": "u", "body": "hi"}, key=key).status
            for key in (None, reader)]
    check("Z-155: messages and inspection need a key of the host, and one of its workspace", (without, foreign, sent),
          ([401] * 6, [404] * 6, [401, 403]))


if __name__ == "__main__":
    main(__doc__, AGENTS, [rules, every_way, every_operation, decisions, commands, keys])
