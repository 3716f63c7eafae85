#!/usr/bin/env python3
"""Section 4.9: live takeovers, also across crashes and beside calls that are under way; what the agent would have said.

    takeovers.py --binary target/release/tandem
"""
import http.client
import threading

from desk import API, KEY, admin_auth, at_once, eventually, flow, in_order, json, main, script, source

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
    flow("calling", """
  yield { type: 'ask', key: 'x', text: 'x?' };
  yield { type: 'interrupt.escalate', mode: 'live_takeover', reason: 'stuck' };
  yield { type: 'interrupt.wait', waitFor: 'live_handback' };
  yield { type: 'say', text: 'back' };"""),
]
RIGHTS = ["hitl.takeover.start", "hitl.takeover.message", "hitl.takeover.end", "hitl.escalation.view", "hitl.escalation.resolve"]
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
AGENTS = {"desk": source(*FLOWS, adminAuth=AUTH, tools=TOOLS, model=MODEL)}


def take(one, who="ana"):
    return one.admin("POST", "/takeover", {}, who)


def write(one, text, mid, who="ana"):
    return one.admin("POST", "/takeover/messages", {"messageId": mid, "text": text}, who)


def hand_back(one, who="ana", **more):
    return one.admin("POST", "/handback", more, who)


def crashes(server, chat, check):
    one = chat("desk")
    one.say("hello")
    # The first commit records that it is allowed.
    server.crash("after_commit", lambda: take(one))
    check("a takeover that was allowed and not begun is begun by the next request", (one.mode, take(one).status), (None, 200))
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
    asleep = chat("desk")
    asleep.start("sleeping")
    take(asleep)
    server.clock(700)
    held = asleep.delivered()
    hand_back(asleep)
    check("Z-89: what becomes due is held, and follows the handback", (held, asleep.delivered()), ([], ["awake"]))
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
    stuck.start("calling")
    stuck.say("help")
    take(stuck)
    stuck.say("hello?")
    write(stuck, "I am here.", "f-10")
    [(texts, actions)] = answers(server, stuck)
    check("a flow that asks for a person is said to do so", (texts, "asks for a person" in actions), ([], True))


if __name__ == "__main__":
    main(__doc__, AGENTS, [crashes, races, compared, compared_flows])
