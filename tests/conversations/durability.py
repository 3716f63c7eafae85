#!/usr/bin/env python3
"""Sections 9 to 11: commits, timers, keys, sending, events, runs of flows, the sandbox, and what tests need of a server.

    durability.py --binary target/release/tandem
"""
import contextlib
import http.client
import os
import socket
import sqlite3
import subprocess
import time

from desk import API, KEY, Chat, Outside, Server, eventually, flow, in_order, json, main, noting, script, source

BOOKING = flow("booking", """
  const date = yield { type: 'ask', key: 'date', text: 'When?' };
  const ok = yield { type: 'interrupt.confirm', question: 'Book ' + date + '?', timeoutSeconds: 300 };
  if (!ok) { yield { type: 'say', text: 'cancelled' }; yield { type: 'end', reason: 'user_declined' }; }
  yield { type: 'tool', name: 'note', args: { date } };
  yield { type: 'say', text: 'booked' };""")
FLOWS = [
    BOOKING,
    flow("deciding", """
  await ctx.session.kv.set('asked', 'yes');
  yield { type: 'say', text: 'asking' };
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide', metadata: { secret: 'metadata' } };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution', timeoutSeconds: 600 };
  yield { type: 'say', text: r.outcome };"""),
    flow("reminded", """
  const r = yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: 300, reminders: [{ afterSeconds: 60, text: 'Well?' }] };
  yield { type: 'say', text: 'sure=' + r };"""),
    flow("sleeping", "yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: ctx.input ?? 60 };\nyield { type: 'say', text: 'awake ' + ctx.input };"),
    flow("three", "for (const n of ['a', 'b', 'c']) yield { type: 'say', text: n };"),
    flow("dice", """
  const seen = [Math.random(), Date.now(), new Date().getTimezoneOffset(), crypto.randomUUID()].join('|');
  yield { type: 'say', text: seen };
  yield { type: 'ask', key: 'x', text: 'go?' };
  yield { type: 'say', text: seen };"""),
    flow("powers", """
  const names = ['setTimeout', 'setInterval', 'fetch', 'require', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'WeakRef',
    'FinalizationRegistry', 'process', 'Deno', 'XMLHttpRequest', 'Worker'];
  const found = names.filter((name) => typeof globalThis[name] !== 'undefined');
  for (const make of [() => eval('1'), () => new Function('return 1')(), () => (async function* () {}).constructor('yield 1')])
    try { const made = make(); if (made === 1 || typeof made === 'function') found.push('compiler'); } catch (e) { /* expected */ }
  try { await import(['node', 'fs'].join(':')); found.push('import'); } catch (e) { /* expected */ }
  yield { type: 'say', text: 'found:' + found.join() };"""),
    flow("forever", "while (true) {}"),
    flow("hungry", "const all = []; while (true) all.push(new Array(100000).fill('x').map((v, i) => v + i));"),
    flow("deep", "const f = () => f() + 1; f();"),
    flow("stuck", "await new Promise(() => {});"),
    flow("large", "yield { type: 'say', text: 'x'.repeat(300000) };"),
    flow("slowly", "for (let i = 0; i < 4; i++) { const end = Date.now(); for (let n = 0; n < 200000; n++) Math.sqrt(n); yield { type: 'say', text: String(i) }; }"),
    flow("together", """
  await ctx.session.kv.set('a', 1); await ctx.session.kv.set('b', 2);
  const both = await Promise.all([ctx.session.kv.get('a'), ctx.session.kv.get('b'), ctx.session.kv.get('never')]);
  yield { type: 'ask', key: 'x', text: JSON.stringify(both) };
  yield { type: 'say', text: JSON.stringify(both) };"""),
    "let counter = 0;\n",
    flow("counting", "counter += 1;\nyield { type: 'ask', key: 'x', text: 'n' + counter };\nyield { type: 'say', text: 'n' + counter };"),
    flow("writing", """
  const out = [];
  for (const [key, value] of [['__zupa.hitl.mode', 'live_takeover'], ['__zupa.flow.x', 1], ['f', () => 1], ['d', new Date()], ['m', new Map()],
      ['u', undefined], ['n', { deep: [1, null, 'x'] }]])
    try { await ctx.session.kv.set(key, value); out.push('set'); } catch (e) { out.push(e.code ?? e.name); }
  try { await ctx.session.kv.delete('__zupa.hitl.mode'); out.push('deleted'); } catch (e) { out.push(e.code); }
  yield { type: 'say', text: out.join() };"""),
]
FORMS = """
export default async function* (ctx) { yield { type: 'say', text: 'default' }; }
export const arrow = async function* (ctx: FlowContext) { yield { type: 'say', text: `arrow ${1_000} ${ctx.input?.a ?? 'x'}` }; };
export async function* named(ctx: any): AsyncGenerator<any> { yield { type: 'say', text: 'named' }; }
const binding = async function* (ctx) { yield { type: 'say', text: 'binding' }; };
async function* declared(ctx) { yield { type: 'say', text: 'declared' }; }
export const made = defineFlow({ run: async function* (ctx) { yield { type: 'say', text: 'made' }; }, description: 'd' });
enum Size { Small = 3 }
class Point { constructor(private x: number) {} get() { return this.x + Size.Small; } }
export const typed = async function* (ctx) { yield { type: 'say', text: String(new Point(4).get()) }; };
"""
CLASSIC_TOOLS = "[{ name: 'note', kind: 'record', returns: 'noted' }]"
HTTP = Outside(lambda path, body: (200, {"asked": body["args"]}))
AGENTS = {
    "desk": source(*FLOWS, hitl="{ asyncPendingPolicy: { behavior: 'ack', ackText: 'Wait.' } }", fallbackReply="'Oops.'"),
    "forms": source(files={"flows/forms.ts": "import { defineFlow } from 'tandem';\n" + FORMS, "flows/alias.ts": """
import { defineFlow } from 'zupa';
export const aliased = defineFlow(async function* (ctx) { yield { type: 'say', text: 'aliased' }; });
"""}),
    "broken": source(files={"flows/sync.ts": "export const wrong = function* () { yield 1; };\n",
                            "flows/twice.ts": "export const one = async function* () {};\n", "flows/again.ts": "export const one = async function* () {};\n",
                            "flows/missing.ts": "import { z } from 'not-installed';\nexport const m = async function* () { z; };\n",
                            "flows/good.ts": "export const good = async function* () { yield { type: 'say', text: 'good' }; };\n"}),
    "classic": source(beforeLLM=noting("before"), beforeResponse=noting("response"), tools=CLASSIC_TOOLS, model=script(
        {"when": {"contains": "use", "afterTool": "note"}, "text": "used", "times": 0},
        {"when": {"contains": "use"}, "toolCalls": [{"name": "note", "args": {"n": 1}}], "times": 0})),
    "stub": source(flow("calling", """
  const r = yield { type: 'tool', name: 'kept', args: { a: 1 } };
  const h = yield { type: 'tool', name: 'asks', args: { b: 2 } };
  yield { type: 'say', text: JSON.stringify([r, h]) };"""), tools=f"""[
      {{ name: 'kept', kind: 'record', returns: {{ fixed: true }} }}, {{ name: 'asks', kind: 'http', url: '{HTTP.url}/tool' }} ]"""),
    "scripted": source(*FLOWS, finalizationStrategy="'streaming'", model=script(
        {"when": {"contains": "first"}, "text": "matched"}, {"text": "in order one"}, {"text": "in order two"},
        {"fail": "overloaded"}, {"text": "late", "delayMs": 300}), maxIdempotentRetries="0", fallbackReply="'Oops.'"),
    "omitted": source(*FLOWS, redaction="'omitted'"),
    "hashed": source(*FLOWS, redaction="'hashed'"),
}


def survives(server, chat, check):
    ann = chat("desk")
    said = []
    for text in ("start booking", "Monday", "yes"):
        said.append(ann.say(text))
        server.clock()
        before = ann.get(), ann.keys()
        server.restart()
        if (ann.get(), ann.keys()) != before:
            said.append("changed")
    check("Z-2, Z-183 (half: a wait is nothing but committed state): the dialogue goes on after a kill at each pause, and repeats nothing",
          (said, ann.delivered(), len(ann.tool_calls("note"))), ([["When?"], ["Book Monday?"], ["booked"]], ["When?", "Book Monday?", "booked"], 1))
    points, twice = {}, {}
    for point in ("after_claim", "before_commit", "after_commit", "before_send", "after_send", "after_tool_call", "after_hook"):
        one = chat("desk")
        one.start("booking")
        one.say("Monday")
        server.crash(point, lambda: one.send("yes", mid=f"{one.user}-yes"))
        one.send("yes", mid=f"{one.user}-yes")
        points[point] = (one.delivered(), len({c["idempotencyKey"] for c in one.tool_calls("note")}), one.flow)
        received = server.ok("GET", f"/test/outbound?to={one.user}")["messages"]
        twice[point] = [m["deliveries"] for m in received][2] == 2
    good = (["When?", "Book Monday?", "booked"], 1, None)
    check("Z-226, Z-258: each point stops the process where it says, and the restart loses and repeats nothing",
          ({point: found == good or found for point, found in points.items()}, [point for point, again in twice.items() if again]),
          (dict.fromkeys(points, True), ["after_send"]))


def commits(server, chat, check):
    ann = chat("desk")
    ann.say("hello")
    before = ann.types()
    server.ok("POST", "/test/crash", {"point": "before_commit"})
    with contextlib.suppress(OSError, http.client.HTTPException):
        ann.send("start deciding", mid=f"{ann.user}-1")
    server.process.wait(20)
    server.start_with()
    lost = ann.get("/events?after=-1")["events"][:len(before)]
    delivered = ann.delivered()
    check("Z-187: the state is loaded, the step decided, committed, and only then sent: what a lost commit would have sent was not sent",
          ([e["type"] for e in lost] == before, delivered), (True, ["model speaks", "asking"]))
    bob = chat("desk")
    bob.say("hello")
    server.crash("after_commit", lambda: bob.send("start deciding", mid=f"{bob.user}-1"))
    server.clock()
    [escalation] = [p["escalationId"] for p in bob.payloads("hitl.escalation.created")]
    keys = bob.keys()
    record = server.admin("GET", f"/escalations/{escalation}").json
    check("Z-188 (half: what one commit has): events, state, escalation, timer, intents and keys are there together, once",
          (bob.mode, record["status"], bool(bob.flow["deadline"]), bob.delivered(), keys["asked"],
           keys["__zupa.hitl.lastEventId"] in [e["eventId"] for e in bob.events()]),
          ("pending_admin_resolution", "open", True, ["model speaks", "asking"], "yes", True))
    booked = chat("desk")
    booked.start("booking")
    booked.say("Monday", mid=f"{booked.user}-2")
    seen = booked.keys()
    check("Z-250: the state names the last message and the last event it took into account",
          (seen["__zupa.flow.lastFlowEventId"], seen["__zupa.hitl.lastEventId"] in [e["eventId"] for e in booked.events()]),
          (f"{booked.user}-2", True))
    before = bob.get(), bob.keys(), bob.get("/journal"), bob.get("/events?after=-1")
    server.restart()
    run = bob.flow["flowRunId"]
    snapshot = server.call("GET", f"/v1/runs/{run}").json
    check("Z-184 (half: the snapshot is what the log says): a restart reads the same state from the log, and what runs next",
          ((bob.get(), bob.keys(), bob.get("/journal"), bob.get("/events?after=-1")) == before, snapshot["status"]), (True, "waiting-approval"))
    steps = server.get(f"/v1/runs/{run}/events?streamMode=debug")["events"]
    check("Z-184 (half: the history): every step is an event of the run, with its number, its cause and its time",
          ([e["sequence"] for e in steps] == list(range(len(steps))), len(steps) > 4), (True, True))
    history = bob.events()
    ids, writes = {e["eventId"]: e for e in history}, [e["payload"] for e in history if e["type"] == "session:kv:changed"]
    parents = [(e["sequence"], ids.get(e["causationId"], {}).get("sequence")) for e in history if e["causationId"] and e["causationId"].startswith("evt-ses")]
    sources = [e["payload"]["trigger"] for e in history if e["type"] == "runtime:inbound:received"]
    bob.resolve()
    later = bob.events()
    check("Z-184 (half: writes, parent, time, source and getHistory): what was written is in the events of its step, each is later than its cause, none is changed by what follows",
          ({w["key"]: w["value"] for w in writes}, [p for p in parents if p[1] is None or p[1] >= p[0]], len(parents) > 5,
           [e["at"] for e in history] == sorted(e["at"] for e in history), sources, later[:len(history)] == history,
           later[len(history)]["sequence"] == len(history)),
          ({k: v for k, v in keys.items() if not k.startswith("__zupa.")}, [], True, True, ["inbound"] * 2, True, True))
    tool = chat("classic")
    tool.say("hello")
    server.crash("after_tool_call", lambda: tool.send("use it", mid=f"{tool.user}-1"))
    server.clock()
    check("Z-185: answers of models, hooks and tools are committed before they are used: a crash in a tool repeats no model call",
          (tool.delivered(), len(tool.model_calls()), len(tool.noted("before")), len({c["idempotencyKey"] for c in tool.tool_calls()})),
          (["model speaks", "used"], 3, 2, 1))


def timers(server, chat, check):
    late, later, confirm, reminded = chat("desk"), chat("desk"), chat("desk"), chat("desk")
    reminded.start("reminded")
    later.start("sleeping", 200)
    late.start("sleeping", 100)
    confirm.start("booking")
    confirm.say("Monday")
    server.kill()
    server.start_with(TANDEM_TEST_CLOCK_ADVANCE="400")
    said = confirm.say("yes")
    server.clock()
    check("Z-192 (half: deadlines of one session): a deadline that passed while the server was down fires at the start, in order, before a new message",
          (said, confirm.delivered()[2:], late.delivered(), later.delivered(), reminded.delivered()),
          (["model speaks"], ["cancelled", "model speaks"], ["awake 100"], ["awake 200"], ["Sure?", "Well?", "sure=false"]))
    ann = chat("desk")
    ann.start("deciding")
    question = ann.question()
    ann.resolve()
    again = server.admin("POST", f"/interrupts/{question['interruptId']}:resolve", {"resumeValue": {"action": "reject"}})
    server.clock(601)
    check("Z-191 (half: a person's decision): a decision names its question; when that is closed it changes nothing",
          (again.status, ann.delivered(), len(ann.payloads("hitl.interrupt.resumed"))), (409, ["asking", "resolved"], 1))


def reserved(server, chat, check):
    ann = chat("desk")
    ann.start("booking")
    asked = ann.keys()
    ann.say("Monday", mid=f"{ann.user}-2")
    confirmed = ann.keys()
    frame = confirmed["__zupa.flow.flowFrame"]
    bob = chat("desk")
    bob.start("deciding")
    held = bob.keys()
    server.restart()
    check("Z-193: the reserved keys tell flow, question, mode and last message, and come from the log",
          (asked["__zupa.flow.activeFlowId"], asked["__zupa.flow.pendingAskKey"], "__zupa.hitl.mode" in asked, frame["flowRunId"], frame["vars"],
           confirmed.get("__zupa.flow.pendingAskKey"), confirmed["__zupa.hitl.mode"], confirmed["__zupa.flow.lastFlowEventId"],
           bool(confirmed["__zupa.hitl.pendingSince"]), held["__zupa.hitl.mode"],
           held["__zupa.hitl.escalationId"] == bob.get()["hitl"]["escalationId"], ann.keys() == confirmed, bob.keys() == held),
          ("booking", "date", False, ann.flow["flowRunId"], {"date": "Monday"}, None, "pending_confirm", f"{ann.user}-2", True,
           "pending_admin_resolution", True, True, True))
    [text] = chat("desk").start("writing")
    parts = text.split(",")
    check("Z-194 (half: code): the host's keys are neither written nor deleted by code", (parts[:2], parts[-1]), (["reserved_key"] * 2, "reserved_key"))
    check("Z-195: what is not JSON is refused where it is written", ("set" not in parts[2:6], parts[6]), (True, "set"))


def sending(server, chat, check):
    ann = chat("desk")
    server.ok("POST", "/test/transport", {"failNext": 3})
    ann.start("three")
    server.clock()
    for _ in range(4):
        server.clock(600)
    check("Z-197 (half: in order): to one address texts arrive in order, also when the first needs several attempts",
          (ann.delivered(), [(o["status"], o["text"], o["origin"]) for o in ann.get("/outbox")["outbox"]]),
          (["a", "b", "c"], [("sent", n, "say") for n in "abc"]))
    bob = chat("desk")
    server.ok("POST", "/test/transport", {"failNext": 8})
    bob.start("three")
    for _ in range(9):
        server.clock(600)
    check("Z-199: after eight attempts a text has failed and is said to be; the turn and the flow stay as they are",
          (bob.delivered(), [o["status"] for o in bob.get("/outbox")["outbox"]], bob.failures("send") != [], bob.payloads("flow.ended"),
           bob.payloads("flow.failed")),
          (["b", "c"], ["failed", "sent", "sent"], True, [{}], []))
    eve = chat("classic")
    eve.say("hello")
    for point in ("before_send", "after_send"):
        server.crash(point, lambda: eve.send("again", mid=f"{eve.user}-{point}"))
        server.clock()
    received = server.ok("GET", f"/test/outbound?to={eve.user}")["messages"]
    outbox = eve.get("/outbox")["outbox"]
    check("Z-196: policy, intent, dispatch, record, report: what was sent before a crash is not sent again by another key",
          (in_order(eve.types(), "response:prepared", "transport:outbound", "response:sent", "response:persisted"),
           [m["text"] for m in received], len({m["key"] for m in received})), (True, ["model speaks"] * 3, 3))
    check("Z-198 (half: sent again under its key): after a crash between acceptance and record the transport gets the same key",
          ([m["deliveries"] for m in received][2] >= 1, {m["key"] for m in received} == {o["key"] for o in outbox}), (True, True))


def events(server, chat, check):
    ann = chat("desk")
    ann.start("booking")
    ann.say("Monday")
    ann.say("yes")
    bob = chat("desk")
    bob.start("deciding")
    bob.resolve()
    seen = ann.events() + bob.events()
    hitl = [e for e in seen if e["type"].startswith("hitl.")]
    wanted = ("eventId", "at", "sequence", "agentId", "sessionId", "userId", "requestId", "turnId", "flowId", "flowRunId", "channel")
    missing = {(e["type"], f) for e in hitl for f in wanted if e.get(f) in (None, "")}
    kinds = {e["type"] for e in hitl}
    actor = [e["actor"]["id"] for e in hitl if e["type"] == "hitl.escalation.resolved"]
    check("Z-201 (half: confirmations and escalations, with what they belong to): events name their request, turn, session, flow and actor",
          (missing, kinds >= {"hitl.interrupt.paused", "hitl.interrupt.resumed", "hitl.confirm.requested", "hitl.confirm.resolved",
                              "hitl.escalation.created", "hitl.escalation.resolved"}, actor), (set(), True, ["ana"]))
    reader = socket.create_connection(("127.0.0.1", server.port))
    reader.sendall((f"GET {API}/sessions/{ann.session_id}/events?after=-1 HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\n"
                    f"Authorization: Bearer {KEY}\r\n\r\n").encode())
    began = time.monotonic()
    spoken = [ann.say("hello") for _ in range(10)]
    took = time.monotonic() - began
    reader.close()
    check("Z-201 (half: observers): a reader that does not read delays no turn", (spoken, took < 10), ([["model speaks"]] * 10, True))
    causes = [e["causationId"] for e in seen]
    sequences = [e["sequence"] for e in ann.events()]
    journal = ann.get("/journal")
    records = next(value for value in journal.values() if isinstance(value, list))
    check("Z-200: they tell every transition, in order and with its cause",
          (sequences == list(range(len(sequences))), any(causes), [r["type"] for r in records][:2],
           {"flow.effect", "flow.result", "flow.ended"} <= {r["type"] for r in records}), (True, True, ["flow.started", "flow.effect"], True))
    texts = {}
    for agent in ("omitted", "hashed"):
        one = chat(agent)
        one.start("booking")
        one.say("Monday-secret")
        one.say("yes")
        held = chat(agent)
        held.start("deciding")
        shown = json.dumps(one.events() + held.events())
        texts[agent] = [word in shown for word in ("Monday-secret", '"secret": "metadata"')]
    check("Z-202 (half: the session's events): questions, texts and metadata are hashed or left out as configured",
          texts, {"omitted": [False, False], "hashed": [False, False]})


def cold(server, chat, check):
    other = Server(server.binary, AGENTS, env={"TANDEM_TEST_COLD": "1"}).start()
    try:
        def dialogue(host):
            one = Chat(host, "desk")
            texts = [one.say(t) for t in ("start booking", "Monday", "what?", "yes", "start together", "go", "start counting", "go")]
            held = Chat(host, "desk")
            held.start("deciding")
            held.resolve()
            return texts, held.delivered(), [t for t in one.types() if t.startswith(("flow.", "hitl."))]
        check("Z-205: a server that keeps no instance between turns behaves as one that does", dialogue(other), dialogue(server))
    finally:
        other.close()


def sandbox(server, chat, check):
    ann = chat("desk")
    [first, _] = ann.start("dice")
    server.restart()
    server.clock(60)
    check("Z-206 (half: in TypeScript), Z-207 (half: through the server): time and chance come from the journal, and there is nothing else",
          (ann.say("go"), chat("desk").start("powers")), ([first], ["found:"]))
    one, two = chat("desk"), chat("desk")
    counted = one.start("counting"), two.start("counting")
    server.restart()
    check("Z-208 (half: through the server): variables of a module belong to one run and are rebuilt",
          (counted, one.say("x"), two.say("x")), ((["n1"], ["n1"]), ["n1"], ["n1"]))
    codes = {}
    for name in ("forever", "hungry", "deep", "stuck", "large"):
        one = chat("desk")
        texts = one.start(name)
        error = one.payloads("flow.failed")[0]["error"]
        codes[name] = (texts, error["code"], one.say("hi"))
    fine = chat("desk").start("slowly")
    check("Z-209 (half: through the server): CPU, heap, stack and size are limited; the session and the server go on",
          ({n: codes[n] for n in ("forever", "hungry", "large")}, codes["deep"][2], fine),
          ({n: (["Oops."], "flow_limit", ["model speaks"]) for n in ("forever", "hungry", "large")}, ["model speaks"], ["0", "1", "2", "3"]))
    check("Z-210 (half: in TypeScript): waiting for what nobody settles fails at once", codes["stuck"], (["Oops."], "foreign_await", ["model speaks"]))
    many = chat("desk")
    asked = many.start("together")
    server.restart()
    check("Z-211 (half: through the server): calls of the context may be concurrent, and are answered the same after a restart",
          (asked, many.say("go")), (['[1,2,null]'], ['[1,2,null]']))


def loading(server, chat, check):
    ids = ("forms", "arrow", "named", "binding", "declared", "made", "typed", "aliased")
    texts = {i: chat("forms").start(i) for i in ids}
    broken = server.ok("GET", "/agents/broken")
    messages = " ".join(e["message"] for e in broken["errors"])
    files = {e["file"] for e in broken["errors"]}
    check("Z-213: every accepted form is a flow under its name; what is wrong is named with its file, and the others load",
          (texts, "async function*" in messages, "not-installed" in messages, any("twice" in f or "again" in f for f in files),
           chat("broken").start("good")),
          ({"forms": ["default"], "arrow": ["arrow 1000 x"], "named": ["named"], "binding": ["binding"], "declared": ["declared"],
            "made": ["made"], "typed": ["7"], "aliased": ["aliased"]}, True, True, True, ["good"]))
    ann = chat("desk")
    ann.start("booking")
    path = server.directory / "agents/desk/flows/flows.ts"
    old = path.read_text()
    version = {f["flowId"]: f["version"] for f in server.ok("GET", "/agents/desk")["flows"]}["booking"]
    path.write_text(old.replace("'When?'", "'NEW when?'").replace("'booked'", "'NEW booked'"))
    eventually(lambda: {f["flowId"]: f["version"] for f in server.ok("GET", "/agents/desk")["flows"]}["booking"] != version, what="the new version")
    going_on, fresh = ann.say("Monday"), chat("desk").start("booking")
    server.restart()
    check("Z-214 (half: through the server): a run goes on with the code it began with, new runs take the new one",
          (going_on, fresh, ann.say("yes")), (["Book Monday?"], ["NEW when?"], ["booked"]))
    path.write_text(old)
    eventually(lambda: {f["flowId"]: f["version"] for f in server.ok("GET", "/agents/desk")["flows"]}["booking"] == version, what="the old version")


def seams(server, chat, check):
    ann = chat("desk")
    ann.say("hi")
    server.ok("POST", "/test/transport", {"dropNext": 1})
    ann.say("lost")
    dropped = ann.delivered()
    [stored] = [o for o in ann.get("/outbox")["outbox"] if o["status"] == "sent"][1:]
    server.ok("POST", "/test/transport", {"failNext": 1})
    ann.say("again")
    server.clock()
    server.clock(60)
    check("Z-223: the loopback transport takes and shows texts, and fails or loses the next ones when told to",
          (dropped, stored["text"], ann.delivered()), (["model speaks"], "model speaks", ["model speaks"] * 2))
    one = chat("scripted")
    said = [one.say(t) for t in ("second", "first", "third", "fourth", "fifth")]
    server.ok("PUT", "/test/model/scripted", {"answers": [], "otherwise": {"text": "replaced"}})
    said.append(one.say("sixth"))
    call = one.model_calls()[0]
    check("Z-224 (half: order, matchers, failures, delays, the log, and a script by HTTP): the scripted model answers as its script says",
          (said, call["purpose"], call["messages"][-1]),
          ([["in order one"], ["matched"], ["in order two"], ["Oops."], ["late"], ["replaced"]], "chat", {"role": "user", "content": "second"}))
    asleep = chat("desk")
    asleep.start("sleeping", 5000)
    began = server.clock()
    moved = server.clock(5000)
    plain = Server(server.binary, {"desk": AGENTS["desk"]}, options=()).start()
    try:
        absent = [plain.call("POST", f"{API}/test/clock", {"advanceSeconds": 1}).status, plain.call("GET", f"{API}/test/outbound?to=u").status,
                  plain.call("POST", f"{API}/test/crash", {"point": "after_claim"}).status]
    finally:
        plain.close()
    check("Z-225: the clock moves all deadlines; without the seams there is no such route",
          (asleep.delivered(), moved > began, absent), (["awake 5000"], True, [404] * 3))
    stub = chat("stub")
    texts = stub.start("calling")
    [(_, headers, body)] = HTTP.requests[-1:]
    check("Z-227: tools may be kept calls with a fixed answer, or one POST",
          (json.loads(texts[0]), stub.tool_calls("kept")[0]["args"], body["name"], "idempotency-key" in headers),
          ([{"fixed": True}, {"asked": {"b": 2}}], {"a": 1}, "asks", True))


def rebuild(server, chat, check):
    one, other = chat("desk"), chat("desk")
    for each in (one, other):
        each.start("deciding")
    path = f"/sessions/{one.session_id}/rebuild"
    sound = server.ok("GET", path)
    check("Z-200: a session that follows from its log is said to",
          (sound["matches"], sound["differences"], sound["events"]), (True, [], len(one.events())))
    server.stop()
    with sqlite3.connect(server.directory / "tandem.db") as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        database.execute("UPDATE sessions SET body = replace(body, 'deciding', 'sleeping') WHERE session_id = ?", [one.session_id])
        database.execute("UPDATE escalations SET status = 'resolved' WHERE session_id = ?", [other.session_id])
    database.close()
    server.start()
    check("Z-186 (half: no query of messages): the store has no table of a conversation's messages that a prompt could be built from",
          sorted(name for name in tables if "message" in name or "ledger" in name), ["proxy_messages"])
    damaged = server.ok("GET", path)
    check("Z-200: a row that does not is named", (damaged["matches"], damaged["differences"]),
          (False, [{"projection": "session", "id": one.session_id}]))
    env = {**os.environ, "TANDEM_URL": f"http://127.0.0.1:{server.port}", "TANDEM_API_KEY": KEY}
    told = subprocess.run([server.binary, "audit", "rebuild", "--json"], env=env, capture_output=True, text=True, timeout=60)
    report = json.loads(told.stdout)
    found = {(d["sessionId"], d["projection"]) for d in report["differences"]}
    check("Z-200: a command compares all sessions", (told.returncode, found),
          (1, {(one.session_id, "session"), (other.session_id, "escalation")}))


if __name__ == "__main__":
    main(__doc__, AGENTS, [survives, commits, timers, reserved, sending, events, cold, sandbox, loading, seams, rebuild])
