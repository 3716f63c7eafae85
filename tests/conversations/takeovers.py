#!/usr/bin/env python3
"""Sections 4.9 and 8: live takeovers, also across crashes and beside calls that are under way; what the agent would have
said; schedules, and what people who are in a conversation mean to them.

    takeovers.py --binary target/release/tandem
"""
import datetime
import hashlib
import hmac
import http.client
import os
import threading
import time
import uuid

from desk import API, KEY, Outside, admin_auth, at_once, eventually, flow, in_order, json, main, noting, script, source, token

FLOWS = [
    flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?' };\nyield { type: 'say', text: 'x=' + x };"),
    flow("sleeping", """
  yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 600 };
  yield { type: 'say', text: 'awake' };"""),
    flow("ordering", """
  const item = yield { type: 'ask', key: 'item', text: 'Which item?' };
  try {
    const stock = yield { type: 'tool', name: 'stock', args: { item } };
    yield { type: 'say', text: item + ': ' + stock.left };
  } catch (e) { yield { type: 'say', text: item + ': ' + e.code }; }
  const note = yield { type: 'ask', key: 'note', text: 'A note?' };
  await ctx.session.kv.set('note', note);
  yield { type: 'say', text: 'noted ' + (await ctx.session.kv.get('note')) };"""),
    flow("summoning", """
  yield { type: 'ask', key: 'x', text: 'x?' };
  yield { type: 'interrupt.escalate', mode: 'live_takeover', reason: 'stuck' };
  yield { type: 'interrupt.wait', waitFor: 'live_handback' };
  yield { type: 'say', text: 'back' };"""),
]
RIGHTS = ["hitl.takeover.start", "hitl.takeover.message", "hitl.takeover.end", "hitl.escalation.view", "hitl.escalation.resolve",
          "hitl.proxy.input", "hitl.proxy.stop", "hitl.proxy.view", "schedule.manage", "audit.view"]
AS_ANA = {"X-Admin-Token": token("ana")}
AUTH = admin_auth(roles={"boss": RIGHTS, "viewer": ["hitl.escalation.view"]})
TOOLS = """[
    { name: 'stock', kind: 'record', returns: { left: 3 } },
    { name: 'pay', kind: 'record', returns: { ok: true } },
  ]"""
MODEL = script(
    {"when": {"contains": "slow"}, "text": "too late", "delayMs": 1500, "times": 0},
    {"when": {"contains": "how many", "afterTool": "stock"}, "text": "three are left", "times": 0},
    {"when": {"contains": "how many"}, "toolCalls": [{"name": "stock", "args": {"item": "tea"}}], "times": 0},
    {"when": {"contains": "refund", "afterTool": "pay"}, "text": "I could not pay", "times": 0},
    {"when": {"contains": "refund"}, "toolCalls": [{"name": "pay", "args": {"eur": 9}}], "times": 0})
SCHEDULED = [
    flow("tick", """
  if (ctx.user.externalUserId.includes('bad')) throw new Error('no way');
  yield { type: 'say', text: 'tick' };"""),
    flow("confirming", "yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: 86400 };"),
    flow("deciding", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };"""),
    flow("bridged", """
  yield { type: 'interrupt.proxy.start', target: 'finance' };
  yield { type: 'ask', key: 'x', text: 'x?' };
  const r = yield { type: 'interrupt.proxy.wait' };
  yield { type: 'say', text: 'got ' + r.text };"""),
    flow("calling", """
  const r = yield { type: 'tool', name: ctx.input.tool, args: ctx.input.args, onError: 'return' };
  yield { type: 'say', text: JSON.stringify(r) };"""),
]
TARGETS = "targets: { finance: { transport: 'loopback', address: 'finance-desk', label: 'Finance' } }"
SECRET = "a-secret-of-both-sides"
# A network that takes no message.
BROKEN = Outside(lambda path, body: (503, {}))
SHOP = f"{{ loopback: {{}}, shop: {{ kind: 'webhook', url: '{BROKEN.url}', secretEnv: 'SHOP_SECRET' }} }}"
os.environ["SHOP_SECRET"] = SECRET


# A tool that answers when it is released.
RELEASED = threading.Event()
SLOW = Outside(lambda path, body: RELEASED.wait(20) and (200, {"found": 1}))
RESUMING = flow("resuming", """
  yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 600 };
  yield { type: 'tool', name: 'pay', args: {} };
  yield { type: 'say', text: 'awake' };""")
ACKED = flow("acked", """
  yield { type: 'say', text: 'one' };
  await ctx.resources.transport.sendText(ctx.replyTarget, 'beside');
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };""")
DECIDED = flow("decided", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'say', text: 'decided' };""")
ACKS = "asyncPendingPolicy: { behavior: 'ack', ackText: 'Wait.' }, escalationDefaults: { autoAckText: 'asking' }"


def planned(**more):
    return source(*SCHEDULED, adminAuth=AUTH, hitl=f"{{ {TARGETS} }}", scheduler="{ tools: true, maxConcurrentRuns: 50 }", **more)


AGENTS = {"desk": source(*FLOWS, *SCHEDULED, adminAuth=AUTH, tools=TOOLS, model=MODEL, hitl=f"{{ {TARGETS} }}"),
          "held": source(RESUMING, ACKED, DECIDED, adminAuth=AUTH, tools=TOOLS, model=MODEL, hitl=f"{{ {ACKS} }}", beforeResponse=noting("response"),
                         commands="{ note: { description: 'Notes', handler: async () => 'noted' } }"),
          "relayed": source(RESUMING, adminAuth=AUTH, beforeLLM=noting("before", "if (input.text === 'start resuming') return { action: 'route_flow', flowId: 'resuming' };"),
                            hitl="{ takeover: { adapter: 'staff' }, targets: { staff: { transport: 'loopback', address: 'staff' } } }",
                            tools=f"[{{ name: 'find', kind: 'http', url: '{SLOW.url}/find' }}]", toolTimeoutMs="30000", model=script(
                                {"when": {"contains": "look", "afterTool": "find"}, "text": "found it", "times": 0},
                                {"when": {"contains": "look"}, "toolCalls": [{"name": "find", "args": {}}], "times": 0})),
          "people": planned(), "plans": planned(), "many": planned(transports=SHOP), "web": planned(transports="{ web: {} }")}


def take(one, who="ana"):
    return one.admin("POST", "/takeover", {}, who)


def write(one, text, mid, who="ana"):
    return one.admin("POST", "/takeover/messages", {"messageId": mid, "text": text}, who)


def hand_back(one, who="ana", **more):
    return one.admin("POST", "/handback", more, who)


def crashes(server, chat, check):
    one = chat("desk")
    one.say("hello")
    # One commit records that it is allowed and begins it.
    server.crash("after_commit", lambda: take(one))
    check("Z-90, Z-226: a takeover that was allowed is begun, and asking again is harmless", (one.mode, take(one).status), ("live_takeover", 200))
    server.kill()
    server.start()
    check("Z-187 (half: a takeover): it holds after a crash", (one.mode, one.say("anybody?")), ("live_takeover", []))
    for number, point in enumerate(("after_commit", "before_send", "after_send")):
        server.crash(point, lambda n=number: write(one, f"text {n}", f"m-{n}"))
        again = write(one, f"text {number}", f"m-{number}")
        check(f"a text of a person is sent once although the process died at {point}",
              (again.status in (200, 201), one.delivered().count(f"text {number}")), (True, 1))
    check("Z-92 (half: its own id): each text of a person was sent once", [one.delivered().count(f"text {n}") for n in range(3)], [1, 1, 1])
    server.crash("before_commit", lambda: hand_back(one))
    check("Z-93 (half: before its commit): a handback that was not committed did not happen", one.mode, "live_takeover")
    check("Z-93 (half: after it): given again, the agent speaks", (hand_back(one, note="all well").status < 300, one.say("and now?")),
          (True, ["model speaks"]))


def crashes_meanwhile(server, chat, check):
    """The process dies while a person types, while the user does, and while the conversation goes back."""
    got, wanted = {}, {}
    for point in ("before_commit", "after_commit", "before_send", "after_send"):
        one = chat("held")
        one.start("resuming")
        take(one)
        server.crash(point, lambda: write(one, "typed", f"{one.user}-1"))
        again = [write(one, "typed", f"{one.user}-1").status for _ in range(2)]
        got["a person's text", point] = again, one.mode, one.delivered(), [m["text"] for m in one.messages() if m.get("author")]
        wanted["a person's text", point] = [200, 200], "live_takeover", ["typed"], ["typed"]
    for point in ("after_claim", "before_commit", "after_commit", "before_send", "after_send"):
        one, text = chat("relayed"), f"hurry at {point}"
        one.start("resuming")
        take(one)
        server.crash(point, lambda: one.send(text, f"{one.user}-1"))
        one.send(text, f"{one.user}-1")
        again = one.send(text, f"{one.user}-1")["status"]
        server.clock()
        told = [m["text"] for m in server.ok("GET", "/test/outbound?to=staff")["messages"] if m["text"].endswith(text)]
        got["a user's text", point] = again, len(told), one.paused_on, one.model_calls(), one.noted("before")[1:], one.delivered()
        wanted["a user's text", point] = "duplicate", 1, "timeout", [], [], []
    for point in ("before_commit", "after_commit", "before_send", "after_send", "after_hook", "after_tool_call"):
        one = chat("held")
        one.start("resuming")
        take(one)
        write(one, "typed", f"{one.user}-1")
        server.clock(700)
        server.crash(point, lambda: hand_back(one, note="calm"))
        again = hand_back(one, note="calm").status
        server.clock()
        ends = one.payloads("hitl.live_takeover.ended")
        got["the handback", point] = (again in (200, 409), one.mode, one.flow, one.delivered(), len({c["idempotencyKey"] for c in one.tool_calls("pay")}),
                                      [p["reason"] for p in ends], len(one.payloads("hitl.interrupt.resumed")), [n["input"]["candidate"]["text"] for n in one.noted("response")])
        wanted["the handback", point] = True, None, None, ["typed", "awake"], 1, ["handback"], 1, ["awake"]
    check("Z-226 (half: during a takeover), Z-21 (half: during a takeover): killed at every point nothing a person, the user or the flow wrote is lost or doubled",
          {key: found == wanted[key] or found for key, found in got.items()}, dict.fromkeys(wanted, True))
    slow = chat("relayed")
    turn = threading.Thread(target=lambda: slow.post("look it up", f"{slow.user}-1"))
    turn.start()
    eventually(lambda: SLOW.requests, what="the tool is called")
    slow.session_id = server.ok("GET", f"/sessions?userExternalId={slow.user}")["sessions"][0]["id"]
    took, typed = take(slow).status, write(slow, "I look myself.", f"{slow.user}-2").status
    server.ok("POST", "/test/crash", {"point": "after_tool_call"})
    RELEASED.set()
    server.process.wait(20)
    turn.join()
    server.start()
    texts = slow.delivered()
    check("Z-91 (half: an answer over a crash): the tool of a turn answers while the process dies and a person types: their text is sent, the answer is not",
          (took, typed, texts, len({headers["idempotency-key"] for _, headers, _ in SLOW.requests}), slow.mode), (200, 200, ["I look myself."], 1, "live_takeover"))


def suppressed(server, chat, check):
    """Texts that wait in the outbox when a person takes over, and what the agent would say from then on."""
    one = chat("held")
    one.say("hello")
    server.ok("POST", "/test/transport", {"paused": True})
    one.start("acked")
    one.say("any news?")
    one.say("/note me")
    before = [(t["text"], t["origin"], t["status"]) for t in one.get("/outbox")["outbox"]]
    take(one)
    write(one, "Ana here.", f"{one.user}-1")
    server.ok("POST", "/test/transport", {"paused": False})
    server.clock(60)
    after = [(t["text"], t["origin"], t["status"], t.get("reason")) for t in one.get("/outbox")["outbox"]]
    reasons = [p["reason"] for p in one.payloads("response:suppressed")]
    check("Z-91 (half: texts in the outbox): texts of flows, side messages and acknowledgements that wait are suppressed and never sent; a person's text and the answer of a command are",
          (before, after, one.delivered(), set(reasons)),
          ([("model speaks", "classic", "sent"), ("one", "say", "pending"), ("beside", "side", "pending"), ("asking", "ack", "pending"),
            ("Wait.", "ack", "pending"), ("noted", "command", "pending")],
           [("model speaks", "classic", "sent", None), ("one", "say", "suppressed", "live_takeover"), ("beside", "side", "suppressed", "live_takeover"),
            ("asking", "ack", "suppressed", "live_takeover"), ("Wait.", "ack", "suppressed", "live_takeover"), ("noted", "command", "sent", None),
            ("Ana here.", "human", "sent", None)], ["model speaks", "noted", "Ana here."], {"live_takeover"}))
    quiet = chat("held")
    quiet.say("hello")
    take(quiet)
    texts = quiet.say("any news?"), quiet.say("start acked")
    made = schedule(server, "held", "resuming", quiet.user)
    server.clock(61)
    check("Z-91 (half: acknowledgements and scheduled turns): during a takeover no message is acknowledged, and a scheduled turn is cancelled",
          (texts, quiet.payloads("hitl.pending.message"), quiet.delivered(), run_of(server, made)["outcome"], quiet.flow),
          (([], []), [], ["model speaks"], "canceled_hitl", None))


def races(server, chat, check):
    one = chat("desk")
    one.say("hello")
    codes = sorted(reply.status for reply in at_once(*[lambda who=who: take(one, who) for who in ("ana", "ben") * 4]))
    check("Z-88 (half: at once): of two people one gets the floor, and repeating it changes nothing", codes, [200] * 4 + [409] * 4)
    slow = chat("desk")
    slow.say("hello")
    turn = threading.Thread(target=lambda: slow.post("a slow question"))
    turn.start()
    eventually(lambda: any("slow" in json.dumps(c) for c in slow.model_calls()), what="the model is asked")
    took = take(slow)
    turn.join()
    delivered = slow.delivered()
    check("Z-90: it does not wait for a model call, whose text is not sent",
          (took.status, delivered, "response:suppressed" in slow.types()), (200, ["model speaks"], True))
    got = []
    for number in range(8):
        raced = chat("held")
        raced.start("resuming" if number % 2 else "decided")
        rival = (lambda: server.clock(601)) if number % 2 else raced.resolve
        at_once(lambda: take(raced), rival)
        hand_back(raced)
        server.clock()
        kinds = raced.types()
        started, resumed = kinds.index("hitl.live_takeover.started"), kinds.index("hitl.interrupt.resumed")
        ended = kinds.index("hitl.live_takeover.ended")
        got.append((kinds.count("hitl.interrupt.resumed"), resumed < started or resumed > ended,
                    kinds.count("response:suppressed") + raced.delivered().count("awake" if number % 2 else "decided")))
    check("Z-89 (half: races): a deadline or a decision at the same time as a takeover counts before it or after it, never within, and once",
          got, [(1, True, 1)] * 8)
    asleep = chat("desk")
    asleep.start("sleeping")
    take(asleep)
    server.clock(700)
    held = asleep.delivered()
    hand_back(asleep)
    check("Z-89 (half: a timer): what becomes due is held, and follows the handback", (held, asleep.delivered()), ([], ["awake"]))
    kinds = asleep.types()
    check("Z-89 (half: in the log): the deadline comes after the end", in_order(kinds, "hitl.live_takeover.ended", "hitl.interrupt.resumed"))


def compared(server, chat, check):
    one = chat("desk")
    one.say("how many teas?")
    take(one)
    for number, (asked, answered) in enumerate([("are you sure? how many?", "Four, I counted."), ("then a refund please", "Done, nine euros.")]):
        one.say(asked)
        write(one, answered, f"c-{number}")
    hand_back(one)
    before = (len(one.events()), one.delivered(), len(one.tool_calls()))
    path = f"/sessions/{one.session_id}/compare-answers"
    pairs = server.ok("POST", path)["pairs"]
    check("each text of a person stands beside what the agent would have said, on what tools answered before",
          [([m["text"] for m in p["user"]], [h["text"] for h in p["human"]], p["human"][0]["by"], p["agent"]["texts"]) for p in pairs],
          [(["are you sure? how many?"], ["Four, I counted."], "ana", ["three are left"]),
           (["then a refund please"], ["Done, nine euros."], "ana", ["I could not pay"])])
    check("a tool without a recorded answer is not called", (pairs[1]["agent"]["actions"],),
          (["calls the tool pay, of which nothing is recorded"],))
    check("nothing of it is stored, sent or called", (len(one.events()), one.delivered(), len(one.tool_calls())), before)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=40)
    connection.request("POST", API + path, headers={"Authorization": f"Bearer {KEY}", "Accept": "application/x-ndjson"})
    lines = connection.getresponse().read().decode().splitlines()
    check("pairs are exported as lines of JSON", [json.loads(line) for line in lines], pairs)
    quiet = chat("desk")
    quiet.say("hello")
    check("without a takeover there is nothing to compare", server.ok("POST", f"/sessions/{quiet.session_id}/compare-answers")["pairs"], [])
    busy = chat("desk")
    busy.start("asking")
    take(busy)
    busy.say("seven")
    write(busy, "I note seven.", "c-9")
    hand_back(busy)
    [pair] = server.ok("POST", f"/sessions/{busy.session_id}/compare-answers")["pairs"]
    check("a flow goes on from where it waits", pair["agent"], {"texts": ["x=seven"], "actions": ["the flow asking ends"]})


def answers(server, one):
    return [(pair["agent"]["texts"], pair["agent"]["actions"]) for pair in server.ok("POST", f"/sessions/{one.session_id}/compare-answers")["pairs"]]


def compared_flows(server, chat, check):
    """A flow that waits when somebody takes over goes on in memory, with the user's messages in order."""
    one = chat("desk")
    one.start("ordering")
    one.say("tea")
    one.say("none")
    one.start("ordering")
    take(one)
    for number, asked in enumerate(("tea", "hurry up", "how many?")):
        one.say(asked)
        write(one, f"answer {number}", f"f-{number}")
    before = (len(one.events()), one.delivered(), len(one.tool_calls()), one.keys())
    asks, ends = "the flow ordering waits: ask", "the flow ordering ends"
    stock = "calls the tool stock, which answers as recorded"
    wanted = [(["tea: 3", "A note?"], [stock, asks]), (["noted hurry up"], [ends]),
              (["three are left"], [stock])]
    first = answers(server, one)
    check("a flow answers the messages one after the other, each on what it said before, and after its end the model", first, wanted)
    check("it is the same when it is asked again", answers(server, one), first)
    check("nothing of it is stored, sent or called", (len(one.events()), one.delivered(), len(one.tool_calls()), one.keys()), before)
    hand_back(one)
    check("the flow itself waits where it was", one.say("tea"), ["tea: 3", "A note?"])
    other = chat("desk")
    other.start("ordering")
    take(other)
    other.say("cocoa")
    write(other, "We have cocoa.", "f-9")
    check("a tool without a recorded answer fails with a code of its own", answers(server, other),
          [(["cocoa: not_recorded", "A note?"], ["calls the tool stock, of which nothing is recorded", asks])])
    first = chat("desk")
    first.say("hello")
    take(first)
    write(first, "I am Ana.", "g-0")
    for number, asked in enumerate(("how do you do?", "and you?")):
        first.say(asked)
        write(first, f"Ana says {number}.", f"g-{number + 1}")
    answers(server, first)
    asked = json.dumps(first.model_calls()[-1])
    check("it begins before the takeover: the agent remembers what it would have said, and nothing of the person",
          ("Ana" in asked, asked.count("model speaks"), "how do you do?" in asked), (False, 2, True))
    stuck = chat("desk")
    stuck.start("summoning")
    stuck.say("help")
    take(stuck)
    stuck.say("hello?")
    write(stuck, "I am here.", "f-10")
    [(texts, actions)] = answers(server, stuck)
    check("a flow that asks for a person is said to do so", (texts, "asks for a person" in actions), ([], True))


def schedule(server, agent, flow_id, target, seconds=60, who="ana", **more):
    """A schedule for a moment from now. `target` is a user, or a segment."""
    at = datetime.datetime.fromisoformat(server.clock()) + datetime.timedelta(seconds=seconds)
    target = {"kind": "user", "userExternalId": target} if isinstance(target, str) else target
    body = {"agentId": agent, "flowId": flow_id, "trigger": {"type": "once", "runAt": at.isoformat()}, "target": target, **more}
    return server.admin("POST", "/schedules", body, who)


def everybody(**more):
    return {"kind": "segment", "campaignId": "spring", "segment": {"type": "all"}, **more}


def run_of(server, made):
    [run] = server.ok("GET", f"/schedules/{made.json['id']}/runs", headers=AS_ANA)["runs"]
    return run


def recipients(server, run):
    """Outcome and reason of each recipient."""
    found, cursor = {}, ""
    while cursor is not None:
        page = server.ok("GET", f"/schedule-runs/{run['id']}/recipients?limit=100{cursor}", headers=AS_ANA)
        found.update({r["userExternalId"]: (r["outcome"], r.get("reason")) for r in page["recipients"]})
        cursor = f"&cursor={page['nextCursor']}" if page.get("nextCursor") else None
    return found


def agent_events(server, agent, *prefixes):
    server.clock()
    found, after = [], -1
    while True:
        page = server.ok("GET", f"/agents/{agent}/events?after={after}")
        if page["lastPosition"] in (None, after):
            return [e for e in found if e["type"].startswith(prefixes)]
        found, after = found + page["events"], page["lastPosition"]


def schedules_and_people(server, chat, check):
    states = {name: chat("people") for name in ("confirming", "deciding", "bridged", "taken", "free")}
    for name in ("confirming", "deciding", "bridged"):
        states[name].start(name)
    for name in ("taken", "free"):
        states[name].say("hello")
    take(states["taken"])
    made = {name: schedule(server, "people", "tick", one.user) for name, one in states.items()}
    campaign = schedule(server, "people", "tick", everybody())
    before = {name: one.paused_on for name, one in states.items()}
    server.clock(61)
    runs = {name: run_of(server, one) for name, one in made.items()}
    all_runs = run_of(server, campaign)
    canceled = ("canceled_hitl", "hitl_active")
    held = [name for name in states if name != "free"]
    check("Z-166 (half: each of the four states): a confirmation, an escalation, a bridge and a takeover cancel the run of their user, and stay as they are",
          ({name: (run["outcome"], run.get("reason")) for name, run in runs.items()}, {name: one.paused_on for name, one in states.items()},
           [one.mode for one in states.values()]),
          ({**dict.fromkeys(held, canceled), "free": ("success", None)}, before,
           ["pending_confirm", "pending_admin_resolution", "proxy", "live_takeover", None]))
    check("Z-166 (half: segments): for a segment it is judged for each recipient",
          (recipients(server, all_runs), all_runs["outcome"], all_runs.get("partial"), all_runs["counts"]),
          ({one.user: canceled if name in held else ("success", None) for name, one in states.items()}, "success", True,
           {"success": 1, "skipped": 0, "failed": 0, "canceledHitl": 4}))
    told = agent_events(server, "people", "schedule:run_canceled_hitl")
    of_users = sorted(e["payload"]["scheduleId"] for e in told if e["payload"]["targetKind"] == "user")
    of_segment = sorted(e["payload"].get("recipientUserExternalId", "") for e in told if e["payload"]["targetKind"] == "segment")
    check("Z-166 (half: the event): schedule:run_canceled_hitl is emitted for each run and each recipient",
          (of_users, of_segment, {e["payload"]["outcome"] for e in told}, {e["payload"]["reason"] for e in told}),
          (sorted(made[name].json["id"] for name in held), sorted(states[name].user for name in held), {"canceled_hitl"}, {"hitl_active"}))
    states["confirming"].say("yes")
    states["deciding"].resolve()
    hand_back(states["taken"])
    states["bridged"].say("7")
    proxy = states["bridged"].get()["hitl"]["proxyId"]
    server.admin("POST", f"/proxies/{proxy}/stop", {})
    server.clock(600)
    later = schedule(server, "people", "tick", states["taken"].user)
    server.clock(61)
    check("Z-166 (half: no replay): a cancelled run is not made up for when the person is done, and a later one takes place",
          ([one.delivered().count("tick") for one in states.values()], run_of(server, later)["outcome"],
           [run_of(server, one)["outcome"] for one in made.values()]),
          ([0, 0, 0, 1, 2], "success", ["canceled_hitl"] * 4 + ["success"]))


def schedule_events(server, chat, check):
    ann, bad = chat("plans"), chat("plans", f"bad-{uuid.uuid4().hex[:6]}")
    for one in (ann, bad):
        one.say("hello")
    busy = chat("plans")
    busy.start("confirming")
    good, broken = schedule(server, "plans", "tick", ann.user), schedule(server, "plans", "tick", bad.user)
    held, nobody = schedule(server, "plans", "tick", busy.user), schedule(server, "plans", "tick", "unknown-user")
    all_of_them = schedule(server, "plans", "tick", everybody())
    changed = schedule(server, "plans", "tick", ann.user, seconds=7200)
    path = f"/schedules/{changed.json['id']}"
    answers = [server.admin("PATCH", path, {"allowSessionBootstrap": True, "version": 1}).status, server.admin("DELETE", path).status]
    args = {"flowId": "tick", "trigger": {"type": "once", "runAt": "2099-01-01T00:00:00Z"}, "segment": {"type": "all"}}
    [refused] = ann.start("calling", {"tool": "createCurrentUserSchedule", "args": args})
    server.clock(61)
    events = agent_events(server, "plans", "schedule:")

    def of(made):
        return [e["type"].removeprefix("schedule:") for e in events if e["payload"].get("scheduleId") == made.json["id"]]
    begun = ["created", "triggered", "run_started"]
    check("Z-182 (half: names for a user): a schedule of a user is told by these events from its making to its end",
          (answers, of(changed), of(good), of(broken), of(held), of(nobody)),
          ([200, 200], ["created", "updated", "canceled"], [*begun, "turn_started", "run_completed"], [*begun, "turn_started", "run_failed"],
           [*begun, "turn_started", "run_canceled_hitl"], [*begun, "turn_started", "skipped"]))
    of_all = of(all_of_them)
    check("Z-182 (half: names for a segment): a campaign is told by these events, each recipient by their own",
          (of_all[:4], sorted(of_all[4:-1]), of_all[-1]),
          ([*begun, "campaign_resolved"], ["recipient_run_completed", "recipient_run_failed", *["recipient_run_started"] * 3, "run_canceled_hitl"],
           "run_completed"))
    [denied] = ann.events("schedule:tool_scope_denied")
    payload = denied["payload"]
    check("Z-182 (half: schedule:tool_scope_denied), Z-179 (half: its fields): a tool that reaches for others is refused with an event that says by whom",
          (json.loads(refused)["ok"], {k: payload.get(k) for k in ("operation", "offendingFields", "userExternalId", "sessionId", "requestId")}),
          (False, {"operation": "createCurrentUserSchedule", "offendingFields": ["segment"], "userExternalId": ann.user,
                   "sessionId": ann.session_id, "requestId": denied["requestId"]}))
    of_runs = [e for e in events if e["type"].removeprefix("schedule:") not in ("created", "updated", "canceled", "tool_scope_denied")]
    always = {"scheduleId", "flowId", "targetKind", "source", "scheduledFor", "attempt"}
    final = [e["payload"] for e in of_runs if e["type"].endswith(("_completed", "_failed", "canceled_hitl", "skipped"))]
    begun = [e["payload"] for e in of_runs if e["type"].endswith("recipient_run_started")]
    check("Z-182 (half: the payload): each of them says schedule, flow, target, time, attempt, and how and why it ended",
          ([(e["type"], always - e["payload"].keys()) for e in of_runs if always - e["payload"].keys()],
           [p for p in final if "outcome" not in p or (p["outcome"] != "success" and not p.get("reason"))],
           {p["userExternalId"] for p in final if p["targetKind"] == "user"}, {p["recipientUserExternalId"] for p in begun},
           {p.get("campaignId") for p in final if p["targetKind"] == "segment"}, [p for p in begun if not (p.get("sessionId") and p.get("requestId"))],
           {e["payload"]["source"] for e in of_runs}),
          ([], [], {ann.user, bad.user, busy.user, "unknown-user"}, {ann.user, bad.user, busy.user}, {"spring"}, [], {"scheduled"}))
    one = chat("plans")
    one.say("hello")
    made = schedule(server, "plans", "tick", one.user, seconds=300)
    server.clock(301)
    run = run_of(server, made)
    begun = [e["payload"] for e in one.events("runtime:inbound:received") if e["payload"].get("trigger") == "scheduled"]
    wanted = f"schedule:{made.json['id']}:{run['scheduledFor']}:{one.user}"
    check("Z-163 (half: the form of the dedup id): it is made of the schedule, the time in UTC and the user",
          ([p["messageIds"] for p in begun], run["scheduledFor"].endswith("Z")), ([[wanted]], True))


def schedule_targets(server, chat, check):
    ann = chat("plans")
    ann.say("hello")
    ended = ann.session_id
    ann.admin("POST", "/end", {})
    ann.say("hello again")
    new = ann.session_id
    user = {"kind": "user", "userExternalId": ann.user}
    made = {"ended": schedule(server, "plans", "tick", {**user, "sessionId": ended}),
            "active": schedule(server, "plans", "tick", {**user, "sessionId": new}),
            "ended, may begin one": schedule(server, "plans", "tick", {**user, "sessionId": ended}, allowSessionBootstrap=True)}
    nobody, stranger = f"web-{uuid.uuid4().hex[:6]}", f"new-{uuid.uuid4().hex[:6]}"
    made["unreachable"] = schedule(server, "web", "tick", nobody, allowSessionBootstrap=True)
    made["stranger"] = schedule(server, "plans", "tick", stranger, allowSessionBootstrap=True)
    made["stranger, may not begin one"] = schedule(server, "plans", "tick", f"{stranger}-2")
    server.clock(61)
    runs = {name: run_of(server, one) for name, one in made.items()}
    check("Z-168: a schedule begins a session only if it may; a session that ended is none; a stranger is met only through a transport that reaches them",
          ({name: (run["outcome"], run.get("reason")) for name, run in runs.items()}, server.ok("GET", f"/sessions?userExternalId={nobody}")["sessions"],
           [m["text"] for m in server.ok("GET", f"/test/outbound?to={stranger}")["messages"]], ann.delivered()[-2:]),
          ({"ended": ("skipped", "bootstrap_disabled"), "active": ("success", None), "ended, may begin one": ("success", None),
            "unreachable": ("failed", "user_not_reachable"), "stranger": ("success", None), "stranger, may not begin one": ("skipped", "bootstrap_disabled")},
           [], ["tick"], ["tick", "tick"]))
    mine = schedule(server, "plans", "tick", ann.user, seconds=7200)
    path = f"/schedules/{mine.json['id']}"
    tries = [("POST", "/schedules", {"agentId": "plans", "flowId": "tick", "trigger": {"type": "cron", "expr": "0 9 * * *"}, "target": target})
             for target in (user, everybody())]
    tries += [("PATCH", path, {"allowSessionBootstrap": True}), ("POST", f"{path}/pause", None), ("POST", f"{path}/resume", None), ("DELETE", path, None)]
    before, count = server.ok("GET", path, headers=AS_ANA), len(server.ok("GET", "/schedules?agentId=plans&limit=100", headers=AS_ANA)["schedules"])
    statuses = [[server.admin(*one, who=who).status for one in tries] for who in ("vic", None)]
    denied = [(e["payload"]["action"], e["payload"]["reason"]) for e in agent_events(server, "plans", "admin.authz.denied")]
    allowed = [schedule(server, "plans", "tick", target, seconds=7200).status for target in (user, everybody())]
    check("Z-177 (half: the control plane): it is denied to everybody without `schedule.manage`, for users and segments, and manages both with it",
          (statuses, server.ok("GET", path, headers=AS_ANA) == before, len(server.ok("GET", "/schedules?agentId=plans&limit=100", headers=AS_ANA)["schedules"]) - count, denied, allowed),
          ([[403] * 6, [401] * 6], True, 2, [("schedule.manage", "forbidden")] * 6 + [("schedule.manage", "no_actor")] * 6, [201, 201]))
    moved = schedule(server, "plans", "tick", ann.user)
    server.admin("PATCH", f"/schedules/{moved.json['id']}", {"trigger": {"type": "once", "runAt": "2099-01-01T00:00:00Z"}})
    server.clock(61)
    early = server.ok("GET", f"/schedules/{moved.json['id']}/runs", headers=AS_ANA)["runs"], server.ok("GET", f"/schedules/{moved.json['id']}", headers=AS_ANA)["status"]
    check("Z-171 (half: a changed schedule, in the server): what was due before the change is claimed by nobody", early, ([], "active"))
    args = {"flowId": "tick", "trigger": {"type": "once", "runAt": "2099-01-01T00:00:00Z"}}
    one = chat("plans")
    [own] = one.start("calling", {"tool": "createCurrentUserSchedule", "args": args})
    record = server.ok("GET", f"/schedules/{json.loads(own)['id']}", headers=AS_ANA)
    check("Z-177 (half: the tools): they make schedules of the user of their session, and of nobody else",
          (record["targetKind"], record["targetUserExternalId"], record["createdBy"]["plane"]), ("user", one.user, "tool"))


def shop_message(server, user, text):
    """A message that the broken network delivers."""
    body = json.dumps({"messageId": uuid.uuid4().hex, "from": user, "body": text})
    at = str(int(datetime.datetime.fromisoformat(server.clock()).timestamp()))
    signed = "sha256=" + hmac.new(SECRET.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "X-Tandem-Timestamp": at, "X-Tandem-Signature": signed}
    return server.call("POST", f"{API}/agents/many/transports/shop", headers=headers, raw=body.encode(), key=None).status


def campaigns(server, chat, check):
    fine, bad, lost = ([f"{kind}-{n:03}" for n in range(count)] for kind, count in (("fine", 190), ("bad", 10), ("lost", 100)))
    everyone = {*fine, *bad, *lost}
    for user in fine + bad:
        chat("many", user).say("hello")
    answers = {shop_message(server, user, "hello") for user in lost}
    made = schedule(server, "many", "tick", everybody())
    began = time.monotonic()
    server.clock(61)
    run = run_of(server, made)
    took = time.monotonic() - began
    got = {}
    for message in server.ok("GET", "/test/outbound")["messages"]:
        if message["text"] == "tick" and message["to"] in everyone:
            got[message["to"]] = got.get(message["to"], 0) + 1
    check("Z-172 (half: a failing recipient): of 300 recipients those behind a broken transport and those whose flow fails hold up and invalidate nobody",
          (answers, run["expandedRecipients"], run["counts"], run["outcome"], run["partial"], got == dict.fromkeys(fine, 1), took < 60),
          ({200}, 300, {"success": 290, "skipped": 0, "failed": 10, "canceledHitl": 0}, "success", True, True, True))
    each = recipients(server, run)
    check("Z-172 (half: outcomes): each recipient has an outcome of their own",
          ({user: each[user] for user in bad}, {each[user] for user in fine + lost}),
          (dict.fromkeys(bad, ("failed", "exception")), {("success", None)}))
    [session] = server.ok("GET", f"/sessions?userExternalId={lost[0]}")["sessions"]
    for _ in range(20):
        server.clock(60)
        texts = server.ok("GET", f"/sessions/{session['id']}/outbox")["outbox"]
        if all(text["status"] == "failed" for text in texts):
            break
    failed = [e["sessionId"] for e in agent_events(server, "many", "response:failed") if e["payload"].get("stage") == "send"]
    check("Z-199 (half: a broken transport): its texts fail alone, after their attempts",
          ([(t["text"], t["status"]) for t in texts], len(set(failed))), ([("model speaks", "failed"), ("tick", "failed")], 100))


if __name__ == "__main__":
    main(__doc__, AGENTS, [crashes, crashes_meanwhile, suppressed, races, compared, compared_flows, schedules_and_people, schedule_events, schedule_targets, campaigns])
