#!/usr/bin/env python3
"""Sections 1 to 3: agents as configured, how a message becomes a turn, commands, waiting, the classic path.

    kernel.py --binary target/release/tandem
"""
import hashlib
import threading
import time

from desk import API, Visitor, at_once, eventually, flow, in_order, main, noting, script, source

FLOWS = [
    flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?' };\nyield { type: 'say', text: 'x=' + x };"),
    flow("confirming", """
  const ok = yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: 300 };
  yield { type: 'say', text: 'sure=' + ok };"""),
    flow("deciding", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution', timeoutSeconds: 86400 };
  yield { type: 'say', text: [r.outcome, r.approved, r.resolvedBy ?? '-', (r.queuedInbound ?? []).map((q) => q.text).join('+')].join('|') };"""),
    flow("asks_meanwhile", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const x = yield { type: 'ask', key: 'x', text: 'Meanwhile?' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'say', text: x + '|' + r.outcome };"""),
    flow("sleeping", """
  const r = yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 600 };
  yield { type: 'say', text: 'awake ' + (ctx.inbound ? 'with' : 'without') + ' a message' };"""),
    flow("paying", "yield { type: 'tool', name: 'pay', args: {} };\nyield { type: 'say', text: 'paid' };"),
    flow("queued", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  const texts = r.queuedInbound.map((q) => q.text);
  await ctx.consumeQueued(r.queuedInbound.filter((q) => q.text === 'used').map((q) => q.messageId));
  const x = yield { type: 'ask', key: 'x', text: 'And?' };
  yield { type: 'say', text: texts.join('+') + '|' + x };"""),
]
SEES = "['admin' in ctx, typeof ctx.admin].join()"
CONTEXT_FLOW = flow("looking", f"yield {{ type: 'say', text: {SEES} }};")
COMMANDS = """{
    usage: false,
    text: { description: 'Own words', handler: async () => 'replaced' },
    note: { description: 'Remembers', args: { type: 'object', required: ['day', 'people'], properties: {
        day: { type: 'string' }, people: { type: 'integer' } }, propertyOrder: ['day', 'people'] },
      handler: async (ctx, args) => { await ctx.session.kv.set('args', args); return 'noted'; } },
    vip: { description: 'Marks', access: 'admin', handler: async (ctx, args) => {
      await ctx.session.kv.set('vip', [ctx.actor.id, ctx.session.id, ctx.user.externalUserId, ctx.inbound.from, ctx.replyTarget]);
      await ctx.resources.transport.sendText(ctx.inbound.from, 'marked'); } },
    looks: { description: 'Looks', handler: async (ctx) => """ + SEES + """ },
  }"""
NUMBERS = "{ type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }"
CLASSIC_TOOLS = f"""[
    {{ name: 'double', description: 'Doubles', parameters: {NUMBERS}, handler: async (a) => ({{ twice: a.n * 2 }}) }},
    {{ name: 'broken', description: 'Breaks', handler: async () => {{ throw new Error('no luck'); }} }},
    {{ name: 'looking', description: 'Looks', handler: async (args, ctx) => {SEES} }},
    {{ name: 'sides', description: 'Sends', handler: async (args, ctx) => {{
      await ctx.resources.transport.sendText(ctx.replyTarget, 'beside'); return 'sent'; }} }},
  ]"""


def called(text, name, args=None, **more):
    return {"when": {"contains": text}, "toolCalls": [{"name": name, "args": args or {}}], **more}


AGENTS = {
    "plain": source(beforeLLM=None, adminAuth=None, tools=None, model=script(otherwise="hello"), rateLimitPerUserPerMinute=None,
                    maxInboundConcurrency=None),
    "blank": source(prompt="'  \\n'"),
    "alias": source(tools="[{ name: 'same', kind: 'record' }]", flows="""{ a: { run: async function* () {},
        asTool: { alias: 'same' } } }"""),
    "aliases": source(flows="""{ a: { run: async function* () {}, asTool: { alias: 'same' } },
        b: { run: async function* () {}, asTool: { alias: 'same' } } }"""),
    "lost": source(FLOWS[0], flowRouter="{ mode: 'detector', prompt: 'p', fallback: 'nowhere' }"),
    "routeless": source(flowRouter="{ mode: 'detector', prompt: 'p' }"),
    "commandless": source(FLOWS[0], commands="{ go: { description: 'x', flow: 'nowhere' } }"),
    "desk": source(*FLOWS, CONTEXT_FLOW, commands=COMMANDS,
                   hitl="{ asyncPendingPolicy: { behavior: 'ack', ackText: 'Wait.' } }"),
    "noop": source(*FLOWS),
    "queue": source(*FLOWS, hitl="{ asyncPendingPolicy: { behavior: 'queue' } }"),
    "hooked": source(*FLOWS, hitl="{ asyncPendingPolicy: { behavior: 'ack', ackText: 'Wait.' } }", beforeLLM=noting("before", """
      if (input.text === 'draft') return { action: 'skip_llm', draftReply: 'A draft.' };
      if (input.text === 'end') return { action: 'end' };
      const m = /^start (\\w+)/.exec(input.text);
      if (m) return { action: 'route_flow', flowId: m[1] };"""),
                     beforeResponse=noting("response"), onResponse=noting("report"),
                     outputSchema="{ type: 'object', required: ['reply'], properties: { reply: { type: 'string' } } }",
                     model=script(otherwise='{"reply": "model speaks"}')),
    "classic": source(tools=CLASSIC_TOOLS, maxToolIterations="2", maxWorkingMemory="4", beforeLLM=None,
                      beforeResponse=noting("response"), context="async (ctx) => ({ hours: '9 to 5' })",
                      prompt="'Desk of {{ user.displayName }}, open {{ hours }}, before: {{ session.id }}'",
                      fallbackReply="'Oops.'", maxIdempotentRetries="0", model=script(
                          called("double", "double", {"n": 4}), called("wrong", "double", {}), called("luck", "broken"),
                          called("loop", "double", {"n": 1}, times=2), called("look", "looking"), called("side", "sides"),
                          {"when": {"contains": "down"}, "fail": "no model"}, otherwise="done")),
    "limited": source(*FLOWS, rateLimitPerUserPerMinute="2", rateLimitMessage="'Slowly.'"),
    "welcoming": source(*FLOWS, transports="{ web: {} }", welcomeMessage="'Welcome.'"),
    "router": source(*FLOWS, beforeLLM=None, flowRouter="{ mode: 'detector', prompt: 'Which flow?' }", model=script(
        {"when": {"purpose": "router", "contains": "ask"}, "times": 0, "structured": {
            "flow": "asking", "confidence": 1, "type": "interrupt.escalate", "mode": "live_takeover",
            "interrupt": {"type": "interrupt.confirm", "question": "Really?"}, "hitl": {"mode": "pending_confirm"}}},
        {"when": {"purpose": "router"}, "times": 0, "structured": {}})),
    "single": source(*FLOWS, maxInboundConcurrency="1", model=script({"when": {"contains": "slowly"}, "text": "slow", "delayMs": 1500})),
    "slow": source(*FLOWS, model=script({"text": "slow", "delayMs": 700, "times": 0})),
}


def concepts(server, chat, check):
    ann = chat("desk")
    ann.start("asking")
    first = ann.flow["flowRunId"]
    second = ann.admin("POST", "/flows", {"flowId": "confirming"})
    check("Z-1: another flow is refused while one is active, and is not queued",
          (second.status, second.json["error"], ann.flow["flowRunId"], ann.say("7"), ann.flow),
          (409, "flow_active", first, ["x=7"], None))
    plain = chat("plain")
    texts = plain.say("hi")
    extra = [t for t in plain.types() if t.startswith(("flow.", "hitl.", "schedule:", "hook", "admin."))]
    check("Z-3: a plain agent makes one model call, sends one message, and writes nothing that is the host's",
          (texts, plain.delivered(), len(plain.model_calls()), plain.keys(), extra),
          (["hello"], ["hello"], 1, {}, []))


def configuration(server, chat, check):
    def refusal(agent):
        shown = server.ok("GET", f"/agents/{agent}")
        sent = server.call("POST", f"{API}/agents/{agent}/inbound", {"messageId": "1", "from": "u", "body": "hi"})
        return shown["status"], sent.status, " ".join(e["message"] for e in shown["errors"])
    check("Z-4: an agent with a blank prompt is refused and takes no message", refusal("blank")[:2], ("invalid", 409))
    named = {"alias": "same", "aliases": "same", "lost": "nowhere", "routeless": "flowRouter", "commandless": "nowhere"}
    refused = {agent: refusal(agent) for agent in named}
    check("Z-5: what names nothing or two things is refused, by its name",
          {agent: (status, code, named[agent] in text) for agent, (status, code, text) in refused.items()},
          {agent: ("invalid", 409, True) for agent in named})


def what_code_sees(server, chat, check):
    desk, classic = chat("desk"), chat("classic")
    seen = [desk.start("looking"), desk.say("/looks")]
    classic.say("look")
    seen.append([m["content"] for m in classic.model_calls()[-1]["messages"] if m["role"] == "tool"])
    chat("desk", "chat-ana").say(f"/vip {desk.user}")
    desk.start("deciding")
    desk.resolve()
    check("Z-6: there is no ctx.admin; the actor comes with an authorized command and with the resolution",
          (seen, desk.keys()["vip"][0], desk.delivered()[-1].split("|")[2]), ([["false,undefined"]] * 3, "ana", "ana"))
    side = chat("classic")
    texts = side.say("side")
    side.say("next")
    history = [m["content"] for m in side.model_calls()[-1]["messages"]]
    check("Z-7: a side message is sent by the outbox and is in the ledger, without hook and without being remembered",
          (sorted(texts), sorted(side.delivered()), "beside" in [m["text"] for m in side.messages()],
           "beside" in history, "beside" in [n["input"]["candidate"]["text"] for n in side.noted("response")],
           "beside" in [o["text"] for o in side.get("/outbox")["outbox"]]),
          (["beside", "done"], ["beside", "done", "done"], True, False, False, True))


def claims(server, chat, check):
    ann = chat("hooked")
    ann.start("confirming")
    ann.say("yes", mid="m-yes")
    before = (ann.types(), ann.noted("before"), ann.delivered(), ann.get())
    again = ann.send("yes", mid="m-yes")
    check("Z-8: a message that was claimed changes nothing, calls nothing and sends nothing",
          (again["status"], again["outbound"], (ann.types(), ann.noted("before"), ann.delivered(), ann.get())),
          ("duplicate", [], before))
    eve = chat("desk")
    body = {"from": eve.user, "body": "start asking"}
    reply = server.ok("POST", "/agents/desk/inbound?wait=true", body)
    eve.session_id = reply["sessionId"]
    now = int(server_time(server))
    ids = {hashlib.sha256(f"{eve.user}:start asking:{s}".encode()).hexdigest()[:32] for s in range(now - 60, now + 2)}
    [received] = eve.payloads("transport:inbound")
    other = chat("noop", eve.user)
    statuses = (eve.send("7", mid="scoped")["status"], other.send("7", mid="scoped")["status"],
                eve.send("7", mid="scoped")["status"])
    visitor = Visitor(server, "welcoming")
    by_web = visitor.say("hi", "shared")["status"], visitor.say("hi", "shared")["status"], chat("welcoming").send("hi", mid="shared")["status"]
    visitor.close()
    check("Z-9: the platform's id counts per agent and transport; without one it is a fingerprint of sender, text and second",
          (received["messageId"] in ids, statuses, by_web),
          (True, ("processed", "processed", "duplicate"), ("accepted", "duplicate", "processed")))
    for point in ("after_claim", "after_commit"):
        bob = chat("desk")
        bob.say("hello")
        server.crash(point, lambda: bob.send("start paying", mid=f"{bob.user}-1"))
        again = bob.send("start paying", mid=f"{bob.user}-1")
        server.clock()
        calls = {c["idempotencyKey"] for c in bob.tool_calls("pay")}
        found = (again["status"], bob.delivered(), len(calls))
        if found != ("duplicate", ["model speaks", "paid"], 1):
            break
    check("Z-10: what was claimed is done after a crash from its durable copy, and stays claimed",
          found, ("duplicate", ["model speaks", "paid"], 1))


def server_time(server):
    from datetime import datetime
    return datetime.fromisoformat(server.clock()).timestamp()


def limits(server, chat, check):
    ann = chat("limited")
    ann.start("deciding")
    ann.say("one")
    refused = ann.send("two", mid="again")
    sent = ann.delivered()
    resolved = ann.resolve().status
    limited = (refused["status"], refused["outbound"], sent[-1], resolved, ann.delivered()[-1])
    slow = chat("limited")
    slow.start("sleeping")
    slow.say("x")
    slow.send("y")
    server.clock(600)
    busy, other, held = chat("single"), chat("single"), chat("single")
    held.start("deciding")
    waiting = threading.Thread(target=busy.say, args=("slowly please",))
    waiting.start()
    eventually(lambda: server.ok("GET", "/test/model/single")["calls"], what="the model is called")
    crowded = other.send("hi")["status"], held.resolve().status
    waiting.join()
    check("Z-12: neither a decision nor a timer is limited by the user's rate or by the number of messages",
          (limited, "awake without a message" in slow.delivered(), crowded, held.delivered()),
          (("ratelimited", [], "Slowly.", 200, "resolved|true|ana|"), True, ("overloaded", 200), ["resolved|true|ana|"]))
    redelivered = ann.send("two", mid="again")
    check("Z-11 (half: what was refused by rate was not claimed, and is processed when delivered again)",
          redelivered["status"], "processed")


def identity(server, chat, check):
    named, other = chat("welcoming"), chat("welcoming")
    first = named.say("hi", senderProfile={"displayName": "Ada"})
    session = named.session_id
    other.say("hi")
    users = {u["externalUserId"]: u for u in server.ok("GET", "/agents/welcoming/users?limit=100")["users"]}
    names = (users[named.user]["displayName"], bool(users[other.user]["displayName"]))
    server.clock(14 * 60)
    same = named.say("still there"), named.session_id == session
    server.clock(15 * 60 + 1)
    again = named.say("back"), named.session_id != session
    ended = server.ok("GET", f"/sessions/{session}")
    check("Z-13: a first contact makes a user and a session; one is reused until it was idle for the time set",
          (first, names, same, again, ended["endedAt"] is not None, ended["userId"] == named.get()["userId"]),
          (["Welcome.", "model speaks"], ("Ada", True), (["model speaks"], True), (["model speaks"], True), True, True))
    waiting, asked, decided = chat("desk"), chat("desk"), chat("desk")
    waiting.start("confirming")
    asked.start("asking")
    decided.start("deciding")
    first = asked.session_id
    server.clock(280)
    kept = waiting.get()["endedAt"], waiting.paused_on
    server.clock(15 * 60)
    asked.session_id = first
    check("Z-14, Z-249 (half: the sweeper): an open confirmation or escalation keeps a session that is idle; a mere question does not",
          (kept, asked.get()["endedAt"] is None, asked.payloads("flow.ended"), decided.get()["endedAt"], decided.paused_on),
          ((None, "confirm"), False, [{"reason": "session_idle"}], None, "admin_resolution"))
    decided.admin("POST", "/end", {})
    escalation = decided.payloads("hitl.escalation.created")[0]["escalationId"]
    late = server.admin("POST", f"/escalations/{escalation}/resolve", {"approved": True})
    ended = decided.types()
    check("Z-15 (half: the flow, its wait and its escalation), Z-251 (half: by the API): the end of a session ends what is in it, with events",
          (late.status, [p["reason"] for p in decided.payloads("hitl.escalation.canceled", "flow.ended")],
           in_order(ended, "hitl.escalation.canceled", "session:ended"), decided.flow),
          (410, ["session_ended", "session_ended"], True, None))


def turns(server, chat, check):
    slow, quick = chat("slow"), chat("desk")
    slow.post("one", mid=f"{slow.user}-1")
    slow.post("two", mid=f"{slow.user}-2")
    began = time.monotonic()
    quick.say("hello")
    took = time.monotonic() - began
    server.clock()
    [item] = [s for s in server.ok("GET", f"/sessions?userExternalId={slow.user}")["sessions"]]
    slow.session_id = item["id"]
    order = [(e["type"].split(":")[-1], e["turnId"]) for e in slow.events("runtime:inbound:received", "runtime:inbound:processed")]
    numbers = [turn for _, turn in order]
    texts = [c["messages"][-1]["content"] for c in slow.model_calls()]
    check("Z-16: turns of one session follow each other in order of arrival, others go on meanwhile",
          ([kind for kind, _ in order], numbers[0] == numbers[1] != numbers[2] == numbers[3], texts, took < 1.4),
          (["received", "processed"] * 2, True, ["one", "two"], True))
    racing = chat("desk")
    racing.start("confirming")
    answers = at_once(*[lambda: racing.send("yes", mid="raced")] * 12)
    check("Z-190 (half: copies of one message at once): one of them advances the flow",
          (sorted(a["status"] for a in answers), racing.delivered()),
          (["duplicate"] * 11 + ["processed"], ["Sure?", "sure=true"]))


def branch_order(server, chat, check):
    ann = chat("hooked")
    command = ann.say("/help"), ann.noted("before")
    ann.say("hi")
    ann.delivered()
    steps = ["hook:decided", "model:called", "model:answered", "response:prepared", "hook:decided", "transport:outbound",
             "response:sent", "response:persisted", "runtime:report:started"]
    check("Z-17 (half: commands, hooks, model, sending, report): a turn takes its steps in this order, a command only the first",
          (len(command[0]), command[1], in_order(ann.types(), "command:handled", *steps)), (1, [], True))
    bob = chat("router")
    routed = bob.say("ask me"), bob.say("ask nobody"), bob.say("other")
    reached = bob.types()
    check("Z-17 (half: the flow before the router, the router before the model): a flow keeps the router from being asked",
          (routed, len(bob.model_calls("router")), len(bob.model_calls("chat"))),
          ((["x?"], ["x=ask nobody"], ["model speaks"]), 2, 1))
    hooked = chat("hooked")
    hooked.say("interrupt me")
    check("Z-18 (half: the router, and hooks that decide nothing): whatever a router answers, it only chooses a flow; hooks only decide what hooks decide",
          ([t for t in reached + hooked.types() if t.startswith("hitl.")], bob.mode, hooked.mode), ([], None, None))
    check("Z-142 (half: not while a flow is active): the decision of the router is an event",
          [(p["mode"], p.get("flow"), p["reason"], p["fallbackUsed"]) for p in bob.payloads("flow.router.decided")],
          [("detector", "asking", "selected", False), ("detector", None, "missing", True)])
    timed = chat("hooked")
    timed.start("sleeping")
    calls = len(timed.noted("before"))
    server.clock(600)
    report = timed.noted("report")[-1]
    check("Z-20 (half: a timer): a turn of a timer goes to its flow only, without command gate and first hook; its texts take the other steps",
          (timed.delivered(), len(timed.noted("before")) - calls, len(timed.noted("response")), report["meta"]["source"]),
          (["awake without a message"], 0, 1, "flow"))


def crashes(server, chat, check):
    ann = chat("hooked")
    ann.say("hi")
    for point in ("after_hook", "before_send", "after_tool_call"):
        text = "start paying" if point == "after_tool_call" else "again"
        server.crash(point, lambda: ann.send(text, mid=f"{ann.user}-{point}"))
        server.clock()
    turns = len(ann.events("runtime:inbound:processed"))
    check("Z-21: after a crash a turn goes on behind its last committed step; what was answered is not asked again",
          (turns, len(ann.model_calls()), len(ann.payloads("model:answered")),
           [len([e for e in ann.events("hook:decided") if e["payload"]["stage"] == s]) for s in ("beforeLLM", "beforeResponse")],
           len({c["idempotencyKey"] for c in ann.tool_calls("pay")}), ann.delivered()),
          (4, 3, 3, [4, 4], 1, ["model speaks"] * 3 + ["paid"]))


def commands(server, chat, check):
    ann, boss, guest = chat("desk"), chat("desk", "chat-ana"), chat("desk")
    check("Z-22: the first word after a slash is the command, whatever its case; a lone slash is a text",
          (ann.say("  /NOTE Monday 2 "), ann.say("/nope x"), ann.say("/"), ann.keys()["args"]),
          (["noted"], ["Unknown command. Try /help"], ["model speaks"], {"day": "Monday", "people": 2}))
    help_of_guest, help_of_boss = guest.say("/help")[0], boss.say("/help")[0]
    builtin = ["/help", "/reset", "/text", "/voice", "/mirror", "/dynamic", "/note – Remembers"]
    check("Z-23: builtins but help can be replaced or removed; help lists admin commands only for those who may use them",
          ([b in help_of_guest for b in builtin], "/usage" in help_of_guest, "/vip" in help_of_guest,
           "/vip" in help_of_boss, ann.say("/text"), ann.say("/usage")),
          ([True] * 7, False, False, True, ["replaced"], ["Unknown command. Try /help"]))
    check("Z-266: looking who may see a command is not recorded as an admin's action",
          [t for t in guest.types() if t.startswith("admin.")], [])
    denied = guest.say("/vip")
    boss.say(f"/vip {guest.user}")
    rights = [(e["type"], e["payload"]["action"]) for e in guest.events("admin.authz.denied", "admin.authz.granted")]
    check("Z-24: an admin command runs only for an actor who may; others get a neutral refusal, and the denial is recorded",
          (denied, rights, guest.keys()["vip"][0]),
          (["You cannot use this command."], [("admin.authz.denied", "command.vip"), ("admin.authz.granted", "command.vip")], "ana"))
    check("Z-25 (half: through the gate): arguments are JSON, pairs or words; bad ones answer with the usage and call nothing",
          (ann.say('/note {"day": "Tuesday", "people": 3}'), ann.keys()["args"], ann.say("/note people=4 day=Friday"),
           ann.keys()["args"], "Usage: /note <day> <people>" in ann.say("/note Sunday many")[0], ann.keys()["args"]),
          (["noted"], {"day": "Tuesday", "people": 3}, ["noted"], {"day": "Friday", "people": 4}, True,
           {"day": "Friday", "people": 4}))
    target = chat("desk")
    target.start("deciding")
    escalation = target.payloads("hitl.escalation.created")[0]["escalationId"]
    reached = []
    for name in (target.session_id, escalation, target.user):
        boss.say(f"/vip {name}")
        seen = target.keys()["vip"]
        reached.append(seen == ["ana", target.session_id, target.user, "chat-ana", target.user])
    own = boss.say("/vip"), boss.keys().get("vip", [None])[0]
    check("Z-27, Z-256: the first word may be a session, an escalation or a user; without it the command is about its own session",
          (reached, own), ([True] * 3, (["marked"], "ana")))
    target.start("asking")
    open_confirm = chat("desk")
    open_confirm.start("confirming")
    before = open_confirm.get()["flow"]
    check("Z-28: a command is answered also while a confirmation is open, and leaves it as it is",
          ("/note" in open_confirm.say("/help")[0], open_confirm.get()["flow"] == before, open_confirm.say("yes")),
          (True, True, ["sure=true"]))


def waiting(server, chat, check):
    ann = chat("desk")
    ann.start("asks_meanwhile")
    state = ann.mode, ann.paused_on
    ann.say("seven")
    pending = ann.paused_on
    ann.resolve()
    check("Z-30: what the flow waits for decides, not the mode of the session",
          (state, pending, ann.delivered()), (("pending_admin_resolution", "ask"), "admin_resolution", ["Meanwhile?", "seven|resolved"]))
    hooked = chat("hooked")
    hooked.start("deciding")
    texts = hooked.say("draft"), hooked.say("end"), hooked.say("start asking"), hooked.say("hello?")
    check("Z-32: while a decision is awaited a draft replaces the acknowledgement, end is silent, another flow is refused",
          (texts, hooked.paused_on, hooked.failures("beforeLLM"), [p["behavior"] for p in hooked.payloads("hitl.pending.message")]),
          ((["A draft."], [], ["Wait."], ["Wait."]), "admin_resolution", ["hitl_active"], ["noop", "noop", "ack", "ack"]))
    silent, told, queued = chat("noop"), chat("desk"), chat("queue")
    for one in (silent, told, queued):
        one.start("deciding")
    answers = silent.say("news?"), told.say("news?"), queued.say("news?")
    check("Z-33: noop stores and is silent, ack answers with its text, queue keeps the message for later",
          (answers, ["news?" in [m["text"] for m in one.messages()] for one in (silent, told, queued)],
           [one.payloads("hitl.pending.message")[0]["behavior"] for one in (silent, told, queued)],
           [one.model_calls() for one in (silent, told, queued)]),
          (([], ["Wait."], []), [True] * 3, ["noop", "ack", "queue"], [[]] * 3))
    many = chat("queue")
    many.start("queued")
    for text in ("first", "used", "last"):
        many.say(text, mid=f"{many.user}-{text}")
    many.resolve()
    asked = many.delivered(), many.paused_on
    many.say("now")
    server.clock()
    replayed = [c["messages"][-1]["content"] for c in many.model_calls("chat")]
    again = many.send("first", mid=f"{many.user}-first")["status"]
    check("Z-34: queued messages come with the resolution in order, answer no later question, and are replayed unless consumed",
          (asked, many.delivered()[1:2], replayed, again),
          ((["And?"], "ask"), ["first+used+last|now"], ["first", "last"], "duplicate"))
    back = chat("queue")
    back.start("deciding")
    back.say("start asking")
    back.say("second")
    back.resolve()
    asked = back.delivered(), back.paused_on
    back.say("7")
    check("Z-263: a replayed message does not answer a question that was asked after it; it is replayed when that flow has ended",
          (asked[0][1:], asked[1], back.delivered()[2:]), (["x?"], "ask", ["x=7", "model speaks"]))


def bursts(server, chat, check):
    slow = chat("slow")
    slow.say("hello")
    slow.post("wait a little")
    slow.post("start confirming")
    slow.post("yes")
    server.clock()
    state = slow.paused_on
    unclear = slow.payloads("hitl.confirm.unrecognized")
    check("Z-35 (half: a confirmation), Z-257: a message claimed before the question was committed does not answer it and does not count",
          (state, slow.delivered()[2:], len(unclear), slow.say("yes")), ("confirm", ["Sure?", "Sure?"], 1, ["sure=true"]))
    slow.post("wait a little")
    slow.post("start asking")
    slow.post("early")
    check("Z-35 (half: a question): an ask takes a message that came before it", slow.delivered()[-2:], ["x?", "x=early"])


def classic(server, chat, check):
    ann = chat("classic")
    ann.say("hello", senderProfile={"displayName": "Ada"})
    first = [m["content"] for m in ann.model_calls()[0]["messages"]]
    check("Z-36 (half: the template with what context returned, and the history): the prompt is rendered for each call",
          (first[0].startswith("Desk of Ada, open 9 to 5"), first[1:]), (True, ["hello"]))
    for text in ("a", "b", "c"):
        ann.say(text)
    history = [m["content"] for m in ann.model_calls()[-1]["messages"][1:]]
    stored = len(ann.messages())
    check("Z-186 (half: the prompt and the ledger): the model gets the last messages kept in the session's state; all of them are in the ledger",
          (history[-1], len(history) <= 5, stored), ("c", True, 8))
    bob = chat("classic")
    doubled = bob.say("double"), bob.model_calls()[1]["messages"][-2:]
    looped = bob.say("loop")
    offered = [bool(c["tools"]) for c in bob.model_calls()[2:]]
    tool = doubled[1][-1]
    check("Z-37: tools run in order and their results are in the next call; after the last round the model is asked without tools",
          (doubled[0], tool["role"], tool["content"], doubled[1][0]["role"], looped, offered),
          (["done"], "tool", '{"twice":8}', "assistant", ["done"], [True, True, False]))
    eve = chat("classic")
    eve.say("wrong")
    eve.say("luck")
    told = [c["messages"][-1]["content"] for c in eve.model_calls() if c["messages"][-1]["role"] == "tool"]
    check("Z-38: a problem of a tool is a text for the model",
          [told[0].startswith("Invalid tool params for double"), told[1].startswith("Tool broken failed: ")], [True, True])
    bad = chat("classic")
    fell = bad.say("down"), bad.types()
    check("Z-39: a turn that fails sends the fallback reply, says so, and leaves the session usable",
          (fell[0], "runtime:inbound:failed" in fell[1], "response:failed" in fell[1], bad.say("and now")),
          (["Oops."], True, True, ["done"]))


if __name__ == "__main__":
    main(__doc__, AGENTS, [concepts, configuration, what_code_sees, claims, limits, turns, branch_order, crashes, commands,
                           waiting, bursts, classic, identity])
