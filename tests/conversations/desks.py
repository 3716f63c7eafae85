#!/usr/bin/env python3
"""Sections 13 to 15: approvals of tools, votes, bursts, modes, reminders, consent, leaving for a person; one decision by every way.

    desks.py --binary target/release/tandem
"""
import datetime
import time

from desk import API, Outside, admin_auth, eventually, flow, in_order, main, script, source, token

FLOWS = [
    flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?', reminders: ctx.input ?? [] };\nyield { type: 'say', text: 'x=' + x };"),
    flow("confirming", """
  const r = yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: 600, reminders: [{ afterSeconds: 60, text: 'Well?' }] };
  yield { type: 'say', text: 'sure=' + r };"""),
    flow("deciding", """
  const x = yield { type: 'ask', key: 'amount', text: 'How much?' };
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide', metadata: { amount: x }, ...(ctx.input ?? {}) };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'say', text: [r.outcome, r.approved, r.reason ?? r.message ?? '-', JSON.stringify(r.actionData ?? null)].join('|') };"""),
    flow("sleeping", "yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 600 };"),
    flow("slow", "yield { type: 'tool', name: 'slow', args: {} };\nyield { type: 'say', text: 'slow is done' };"),
    flow("three", "for (const n of ['a', 'b', 'c']) yield { type: 'say', text: n };"),
]
PAY = "parameters: { type: 'object', required: ['eur'], properties: { eur: { type: 'number' } } }"


WITH_TAKEOVER = admin_auth(roles={"boss": ["hitl.takeover.start", "hitl.takeover.end"], "viewer": []})
# Answers late.
SLOW = Outside(lambda path, body: time.sleep(0.7) or (200, {}))


def paying(approval):
    return source(*FLOWS, tools=f"""[ {{ name: 'pay', kind: 'record', returns: {{ ok: true }}, approval: {approval}, {PAY} }},
        {{ name: 'note', kind: 'record', returns: 'noted' }} ]""", model=script(
            {"when": {"contains": "pay", "afterTool": "note"}, "text": "all done", "times": 0},
            {"when": {"contains": "pay"}, "toolCalls": [{"name": "pay", "args": {"eur": 5}}, {"name": "note", "args": {}}], "times": 0},
            {"when": {"contains": "small"}, "toolCalls": [{"name": "pay", "args": {"eur": 1}}]}))


AGENTS = {
    "desk": source(*FLOWS, hitl="{ asyncPendingPolicy: { behavior: 'ack', ackText: 'Wait.' } }"),
    "context": source(*FLOWS, hitl="{ escalationContext: { messages: 3 } }"),
    "bare": source(*FLOWS, hitl="{ escalationContext: { messages: 0, profile: false, answers: false } }"),
    "cancel": source(*FLOWS, hitl="{ userCancelKeywords: ['forget it'] }"),
    "user": paying("'user'"), "admin": paying("'admin'"), "rule": paying("(args) => args.eur > 3 ? 'admin' : false"),
    "bursts": source(*FLOWS, adminAuth=WITH_TAKEOVER, inbound="{ debounceMs: 2000, maxWaitMs: 5000 }"),
    "planned": source(*FLOWS, adminAuth=admin_auth(roles={"boss": ["schedule.manage"], "viewer": []}), scheduler="{ tools: true }"),
    "draft": source(*FLOWS, agentMode="'draft_only'"),
    "off": source(*FLOWS, agentMode="'off'"),
    "consent": source(*FLOWS, consent="{ stopKeywords: ['stop'], startKeywords: ['start'] }"),
    "interrupt": source(*FLOWS, onNewMessage="'interrupt'", tools=f"[{{ name: 'slow', kind: 'http', url: '{SLOW.url}/slow' }}]", model=script({"text": "late", "delayMs": 1500, "times": 0})),
    "human": source(*FLOWS, hitl="{ humanKeyword: 'human', humanMode: 'async_resolution', escalationDefaults: { autoAckText: 'Asking a person.' } }"),
    "limited": source(*FLOWS, hitl="{ humanKeyword: 'human', humanMode: 'async_resolution', takeover: { maxSeconds: 60 } }"),
    "offer": source(*FLOWS, hitl="{ offerHuman: true, humanMode: 'async_resolution' }", model=script(
        {"when": {"contains": "angry", "afterTool": "talk_to_human"}, "text": "somebody will answer"},
        {"when": {"contains": "angry"}, "toolCalls": [{"name": "talk_to_human", "args": {"reason": "furious"}}]})),
    "profile": source(*FLOWS, profileTool="true", model=script(
        {"when": {"contains": "call me", "afterTool": "update_my_profile"}, "text": "done"},
        {"when": {"contains": "call me"}, "toolCalls": [{"name": "update_my_profile", "args": {"displayName": "Countess"}}]})),
}


def escalation_of(one, server, who="ana"):
    escalation = one.payloads("hitl.escalation.created")[-1]["escalationId"]
    return server.admin("GET", f"/escalations/{escalation}", who=who).json


def escalations(server, chat, check):
    told = chat("context")
    told.say("hello", senderProfile={"displayName": "Ada"})
    told.start("deciding")
    told.say("700")
    bare = chat("bare")
    bare.start("deciding")
    bare.say("700")
    plain = chat("desk")
    plain.start("deciding")
    plain.say("700")
    context = escalation_of(told, server)["context"]
    check("Z-228: an escalation carries messages, profile and answers as configured, and nothing by default",
          ([m["text"] for m in context["messages"]], context["user"]["displayName"], context["answers"], escalation_of(bare, server)["context"],
           escalation_of(plain, server).get("context")),
          (["start deciding", "How much?", "700"], "Ada", {"amount": "700"}, {"messages": []}, None))
    ann = chat("cancel")
    ann.start("deciding")
    ann.say("700")
    check("Z-229: the user may give up waiting by the words set for it",
          (ann.say("do not forget it now"), ann.say("Forget it!"), escalation_of(ann, server)["status"],
           ann.payloads("hitl.escalation.canceled")[0]["reason"]), ([], ["canceled|false|user_canceled|null"], "canceled", "user_canceled"))
    two = chat("desk")
    two.start("deciding", {"requiredApprovals": 2, "approvers": ["ana", "ben"]})
    two.say("700")
    first, again = two.resolve().status, two.resolve().status
    paused, second = two.paused_on, two.resolve(who="ben").status
    refused = chat("desk")
    refused.start("deciding", {"requiredApprovals": 2})
    refused.say("700")
    refused.resolve()
    refused.resolve(False, who="ben", message="no")
    other = chat("desk")
    other.start("deciding", {"requiredApprovals": 2, "approvers": ["ben"]})
    other.say("700")
    votes = [e["actor"]["id"] for e in two.events("hitl.escalation.voted", "hitl.escalation.resolved")]
    audited = [e["actor"]["id"] for e in two.events("admin.authz.granted") if e["payload"]["action"] == "hitl.escalation.resolve"]
    check("Z-231: two people have to approve, one refusal is enough, and each vote is authorized and recorded",
          (first, again, paused, second, two.delivered()[-1], refused.delivered()[-1], other.resolve().status, votes, audited),
          (200, 200, "admin_resolution", 200, "resolved|true|-|null", "resolved|false|no|null", 403, ["ana", "ben", "ben"], ["ana", "ana", "ben"]))


def approvals(server, chat, check):
    user = chat("user")
    asked = user.say("pay now")
    held = user.mode, user.tool_calls("pay")
    server.restart()
    done = user.say("yes"), [c["args"] for c in user.tool_calls("pay")]
    no = chat("user")
    no.say("pay now")
    refused = no.say("no"), no.tool_calls("pay")
    told = [m["content"] for m in no.model_calls()[-1]["messages"] if m["role"] == "tool"][0]
    admin = chat("admin")
    silent = admin.say("pay now"), admin.mode, escalation_of(admin, server)["metadata"]
    bad = admin.resolve(actionData={"args": {"eur": "much"}}).status
    admin.resolve(actionData={"args": {"eur": 3}})
    edited = [c["args"] for c in admin.tool_calls("pay")], admin.delivered()
    rejected = chat("admin")
    rejected.say("pay now")
    rejected.resolve(False, message="too much")
    why = [m["content"] for m in rejected.model_calls()[-1]["messages"] if m["role"] == "tool"][0]
    rule = chat("rule")
    rule.say("small")
    by_rule = [c["args"] for c in rule.tool_calls("pay")], rule.say("pay now"), rule.mode
    check("Z-230: a call that needs consent is asked for, durably; what was allowed or changed is called, a refusal is told to the model",
          ("pay" in asked[0], held, done, refused, "not allow" in told, silent, bad, edited, rejected.tool_calls("pay"), "too much" in why, by_rule),
          (True, ("pending_confirm", []), (["model speaks"], [{"eur": 5}]), (["model speaks"], []), True,
           ([], "pending_admin_resolution", {"tool": "pay", "args": {"eur": 5}}), 400, ([{"eur": 3}], ["all done"]), [], True,
           ([{"eur": 1}], [], "pending_admin_resolution")))


def bursts(server, chat, check):
    ann = chat("bursts")
    ann.send("/help")
    ids = [f"{ann.user}-{n}" for n in range(3)]
    for number, text in enumerate(("I want", "a chair", "in red")):
        ann.post(text, mid=ids[number])
    command = ann.say("/help")
    early = [m["text"] for m in server.ok("GET", f"/test/outbound?to={ann.user}")["messages"]]
    server.restart()
    server.clock(3)
    [call] = ann.model_calls()
    duplicates = [ann.post("again", mid=i).json["status"] for i in ids]
    check("Z-234 (half: the window): messages within the window become one turn, in order; commands are not delayed; the window survives a restart",
          (len(command), "model speaks" in early, call["messages"][-1]["content"], ann.delivered()[-1], duplicates),
          (1, False, "I want\na chair\nin red", "model speaks", ["duplicate"] * 3))


def taken_meanwhile(server, chat, check):
    """A person takes over while the window of a burst is open."""
    ann = chat("bursts")
    ann.say("/help")
    ids = [f"{ann.user}-{n}" for n in range(2)]
    for number, text in enumerate(("I want", "a chair")):
        ann.post(text, mid=ids[number])
    took = ann.admin("POST", "/takeover", {}).status
    server.clock(6)
    heard = [p for p in ann.payloads("hitl.live_takeover.message") if p["direction"] == "user_to_human"]
    bob = chat("bursts")
    bob.say("/help")
    bob.admin("POST", "/takeover", {})
    bob.post("are you there?")
    bob.admin("POST", "/handback", {})
    server.clock(6)
    check("Z-234 (half: the floor): who has the floor is looked at when the window closes, not when a message comes",
          (took, ann.model_calls(), ann.delivered()[1:], [p["messageId"] for p in heard], [m["text"] for m in ann.messages()][-2:],
           [c["messages"][-1]["content"] for c in bob.model_calls()], bob.delivered()[1:]),
          (200, [], [], ids, ["I want", "a chair"], ["are you there?"], ["model speaks"]))


def modes(server, chat, check):
    ann = chat("draft")
    silent = ann.say("hi"), ann.delivered()
    first = ann.question()
    shown = first["kind"], first["data"]["artifactData"]["text"]

    def decide(item, who="ana", **value):
        return server.admin("POST", f"/interrupts/{item['interruptId']}:resolve", {"resumeValue": value}, who).status
    denied = decide(first, "vic", action="accept")
    decide(first, action="accept")
    accepted = ann.delivered()
    ann.say("more")
    decide(ann.question(), action="edit-accept", editedArtifactData={"text": "Ana writes"})
    ann.say("again")
    decide(ann.question(), action="reject")
    author = [m.get("author") for m in ann.messages() if m["text"] == "Ana writes"]
    off = chat("off")
    quiet = off.say("hi"), off.model_calls(), [m["text"] for m in off.messages()]
    session = chat("desk")
    session.say("hi")
    switched = [session.admin("POST", "/mode", {"agentMode": "off"}, "vic").status, session.admin("POST", "/mode", {"agentMode": "off"}).status,
                session.say("there?"), session.admin("POST", "/mode", {"agentMode": "auto"}).status, session.say("now?")]
    check("Z-241: texts are held for consent and sent, edited or dropped; an agent that is off is silent; a session has its own mode",
          (silent, shown, denied, accepted, ann.delivered(), author, quiet, switched),
          (([], []), ("approval", "model speaks"), 403, ["model speaks"], ["model speaks", "Ana writes"],
           [{"kind": "human", "actorId": "ana"}], ([], [], ["hi"]), [403, 200, [], 200, ["model speaks"]]))


def silence(server, chat, check):
    ann, bob, eve = chat("desk"), chat("desk"), chat("desk")
    ann.start("asking", [{"afterSeconds": 60, "text": "Still there?"}, {"afterSeconds": 120, "text": "Last call."}])
    bob.start("asking", [{"afterSeconds": 60, "text": "Still there?"}])
    bob.say("7")
    eve.start("confirming")
    server.clock(61)
    server.restart()
    server.clock(61)
    many = chat("desk").start("asking", [{"afterSeconds": n, "text": "?"} for n in range(1, 7)])
    check("Z-242 (half: reminders): reminders of a question or a confirmation are durable timers that an answer cancels",
          (ann.delivered(), bob.delivered(), eve.delivered(), many),
          (["x?", "Still there?", "Last call."], ["x?", "x=7"], ["Sure?", "Well?"], ["Sorry, I hit an unexpected issue. Please try again in a moment."]))
    one = chat("consent")
    one.say("hi")
    said = len(one.say("STOP")), one.say("stop")

    def consent():
        users = server.ok("GET", "/agents/consent/users?limit=100")["users"]
        return next(u["consent"] for u in users if u["externalUserId"] == one.user)
    stopped = consent()
    again = len(one.say("start")), consent()
    check("Z-242 (half: opting out): the words of consent are recorded with the user and confirmed once",
          (said, stopped, again), ((1, []), {"proactive": False}, (1, {"proactive": True})))
    slow = chat("interrupt")
    slow.start("three")
    slow.post("a table")
    eventually(slow.model_calls, what="the model is called")
    slow.post("no, a chair")
    server.clock(2)
    calls = [c["messages"][-1]["content"] for c in slow.model_calls()]
    queued = chat("desk")
    queued.post("one")
    queued.post("two")
    server.clock()
    queued.session_id = server.ok("GET", f"/sessions?userExternalId={queued.user}")["sessions"][0]["id"]
    check("Z-243 (half: through the server): a message cancels the model call under way and both are answered at once; else they queue",
          (calls[-1], slow.delivered()[3:], [c["messages"][-1]["content"] for c in queued.model_calls()]),
          ("a table\nno, a chair", ["late"], ["one", "two"]))
    busy = chat("interrupt")
    busy.post("start slow")
    eventually(lambda: SLOW.requests, what="the tool is called")
    busy.say("and now?")
    check("Z-243 (half: flows): a flow is not interrupted", busy.delivered(), ["slow is done", "late"])


def people(server, chat, check):
    ann = chat("human")
    ann.say("hi")
    ann.start("asking")
    told = ann.say("Human!")
    record = escalation_of(ann, server)
    state = ann.mode, ann.flow
    server.clock(2 * 86_400)
    ann_open = escalation_of(ann, server)["status"]
    offered = chat("offer")
    texts = offered.say("I am angry")
    reason = escalation_of(offered, server)["reason"]
    plain = chat("desk")
    plain.say("human")
    check("Z-245: the user leaves for a person by a word or through the model, where it is configured",
          (told, record["status"], record["mode"], state, texts, reason, plain.payloads("hitl.escalation.created")),
          (["Asking a person."], "open", "async_resolution", ("pending_admin_resolution", None), ["somebody will answer"], "furious", []))
    limited = chat("limited")
    limited.say("human")
    deadline = escalation_of(limited, server)["deadline"]
    server.clock(61)
    check("Z-254: such an escalation has no deadline of its own unless a maximum is set",
          (record.get("deadline"), ann_open, deadline is not None, escalation_of(limited, server)["status"]), (None, "open", True, "timed_out"))
    named = chat("profile")
    named.say("hi", senderProfile={"displayName": "Ada"})
    texts = named.say("call me Countess")
    named.say("hi", senderProfile={"displayName": "Other"})

    def user(agent, one):
        return next(u for u in server.ok("GET", f"/agents/{agent}/users?limit=100")["users"] if u["externalUserId"] == one.user)
    by_tool = user("profile", named)["displayName"]
    patched = chat("desk")
    patched.say("hi", senderProfile={"displayName": "Bob"})
    before = user("desk", patched)
    server.call("PATCH", f"{API}/users/{before['id']}", {"displayName": "Robert"})
    patched.say("hi", senderProfile={"displayName": "Bobby"})
    check("Z-248: a name the user or an admin gave is not overwritten by a later sender profile",
          (texts, by_tool, user("desk", patched)["displayName"]), (["done"], "Countess", "Robert"))
    quiet = chat("desk")
    quiet.start("asking")
    mine, session = user("desk", quiet)["lastActiveAt"], quiet.get()["lastActiveAt"]
    server.clock(30)
    quiet.admin("POST", "/mode", {"agentMode": "auto"})
    server.call("PATCH", f"{API}/users/{user('desk', quiet)['id']}", {"tags": ["x"]})
    same = user("desk", quiet)["lastActiveAt"] == mine
    quiet.say("/help")
    check("Z-260: a user is active by their own messages only, a session by every turn",
          (same, user("desk", quiet)["lastActiveAt"] > mine, quiet.get()["lastActiveAt"] > session), (True, True, True))


def metrics(server, chat, check):
    def read():
        lines = server.call("GET", "/metrics").raw.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}
    waiting = chat("desk")
    waiting.start("confirming")
    server.clock(90)
    before = read()
    server.clock(30)
    aged = read()
    ann = chat("admin")
    ann.say("pay now", mid=f"{ann.user}-1")
    ann.say("pay now", mid=f"{ann.user}-1")
    ann.resolve(who="vic")
    ann.resolve()
    server.clock()
    server.ok("POST", "/test/transport", {"failNext": 8})
    lost = chat("desk")
    lost.say("hi")
    soon = datetime.datetime.fromisoformat(server.clock()) + datetime.timedelta(seconds=30)
    at, target = {"type": "once", "runAt": soon.isoformat()}, {"kind": "user", "userExternalId": lost.user}
    server.admin("POST", "/schedules", {"agentId": "planned", "flowId": "sleeping", "trigger": at, "target": target})
    for _ in range(9):
        server.clock(40)
    chat("desk").start("confirming")
    server.clock()
    after = read()
    oldest = 'tandem_chat_questions_oldest_seconds{name="confirm"}'
    moved = ('tandem_turns_total{source="classic",outcome="processed"}', 'tandem_turns_total{source="flow",outcome="processed"}',
             "tandem_chat_model_seconds_count", "tandem_chat_tool_seconds_count", 'tandem_chat_questions_open{name="confirm"}',
             "tandem_chat_send_age_seconds_count", 'tandem_chat_sends_total{name="sent"}', 'tandem_inbound_dropped_total{name="duplicate"}',
             "tandem_admin_denials_total")
    moved += ("tandem_timer_late_seconds_count", 'tandem_chat_sends_total{name="failed"}', "tandem_schedule_late_seconds_count",
              'tandem_schedule_runs_total{name="skipped"}')
    late = after["tandem_schedule_late_seconds_sum"] - before.get("tandem_schedule_late_seconds_sum", 0)
    check("Z-232 (half: all but divergences): turns, models, tools, sends and their age, duplicates, denials, open questions, late timers and schedules are measured",
          ([name for name in moved if after.get(name, 0) <= before.get(name, 0)], late >= 9), ([], True))
    check("Z-232 (half: the age of open interrupts by kind): the oldest open question of a kind ages until it is answered",
          (before[oldest] >= 90, 29 <= aged[oldest] - before[oldest] <= 31), (True, True))
    held = chat("desk")
    held.start("confirming")
    server.restart()
    held.say("yes")
    server.clock()
    check("Z-232 (half: open interrupts over a restart): the end of a question of before the restart counts below zero nowhere",
          sorted((name, value) for name, value in read().items() if name.startswith("tandem_chat_questions_o")),
          [(f'tandem_chat_questions_{what}{{name="{kind}"}}', 0.0) for what in ("oldest_seconds", "open") for kind in ("confirm", "proxy_wait", "wait")])
    check("Z-232 (half: the name of divergences): the count of divergences is there before the first", "tandem_flow_divergences_total" in after, True)


def one_resolution(server, chat, check):
    """The same decision by each route."""
    outcomes = {}
    for way in ("session", "escalation", "inbox", "run", "chat"):
        one = chat("desk")
        one.start("deciding")
        one.say("700")
        item = one.question()
        escalation = one.payloads("hitl.escalation.created")[0]["escalationId"]
        accept = {"resumeValue": {"action": "accept", "feedback": "fine"}}
        headers = {"X-Admin-Token": token("ana")}
        if way == "session":
            one.resolve(message="fine")
        elif way == "escalation":
            server.admin("POST", f"/escalations/{escalation}/resolve", {"approved": True, "message": "fine"})
        elif way == "inbox":
            server.admin("POST", f"/interrupts/{item['interruptId']}:resolve", accept)
        elif way == "run":
            server.call("POST", f"/v1/runs/{item['runId']}/interrupts/{item['nodeId']}", accept, headers)
        else:
            chat("desk", "chat-ana").say(f"/resolve {escalation} approve fine")
        resolved = one.payloads("hitl.escalation.resolved")
        granted = [p["action"] for p in one.payloads("admin.authz.granted")]
        outcomes[way] = (one.delivered()[1:], resolved[0]["resolvedBy"] if resolved else None, set(granted),
                         in_order(one.types(), "admin.authz.granted", "hitl.escalation.resolved", "hitl.interrupt.resumed", "flow.ended"))
    wanted = (["resolved|true|fine|null"], "ana", {"hitl.escalation.resolve"}, True)
    check("Z-203 (half: one effect and the same events by every route)", {way: got == wanted or got for way, got in outcomes.items()},
          dict.fromkeys(outcomes, True))
    asked, asleep = chat("desk"), chat("desk")
    asleep.start("sleeping")
    run = asleep.flow["flowRunId"]
    node = server.call("GET", f"/v1/runs/{run}").json["interrupt"]["nodeId"]
    runtime_only = server.call("POST", f"/v1/runs/{run}/interrupts/{node}", {"resumeValue": {}}, {"X-Admin-Token": token("ana")}).status, asleep.paused_on
    asked.start("asking")
    item = asked.question()
    shown = server.call("GET", f"/v1/runs/{item['runId']}").json["interrupt"]
    link = f"/v1/interrupts/{shown['interruptToken']}"
    value = {"resumeValue": {"answers": {"x": "7"}}}
    inspected, by_link = server.call("GET", link, key=None), server.call("POST", link, value, key=None)
    by_viewer = server.admin("POST", f"/interrupts/{item['interruptId']}:resolve", value, "vic")
    by_boss = server.admin("POST", f"/interrupts/{item['interruptId']}:resolve", value)
    check("Z-203 (half: questions of the user and links): a link shows and does not decide; answering for the user needs its own right",
          (inspected.status, by_link.status, by_link.json["error"], by_viewer.status, by_boss.status, asked.delivered(), runtime_only),
          (200, 403, "auth_elevation_required", 403, 200, ["x?", "x=7"], (409, "timeout")))


if __name__ == "__main__":
    main(__doc__, AGENTS, [escalations, approvals, bursts, taken_meanwhile, modes, silence, people, metrics, one_resolution])
