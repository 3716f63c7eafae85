#!/usr/bin/env python3
"""Sections 4.6 to 4.8: confirmations, escalations, waits, with the agents of `effects.py`.

    interrupts.py --binary target/release/tandem
"""
from desk import at_once, in_order, json, main
from effects import AGENTS


def confirming(server, chat, check):
    ann, bob, eve = chat("desk"), chat("desk"), chat("desk")
    for one in (ann, bob, eve):
        one.start("confirming")
    asked = ann.mode, ann.paused_on
    positive, negative = ann.say("OK!"), bob.say("no, thanks")
    server.restart(TANDEM_TEST_CLOCK_ADVANCE="61")
    timed = eve.delivered()[1:]
    check("Z-67, Z-73: a confirmation asks, is kept, pauses, and gives true, false, or false when its time is over",
          (asked, positive, negative, timed),
          (("pending_confirm", "confirm"), ["true", "confirm/positive/OK!"], ["false", "confirm/negative/no, thanks"],
           ["false", "confirm/timed_out/-"]))
    default, given = chat("desk"), chat("desk")
    default.start("confirming")
    given.start("confirming", {"timeoutSeconds": 3600})
    first = given.flow["deadline"]
    server.restart()
    server.clock(61)
    check("Z-68: the deadline is the effect's or the default, an instant, and survives a restart",
          (default.flow, given.paused_on, given.flow["deadline"] == first), (None, "confirm", True))
    late = default.say("yes")
    raced = chat("desk")
    raced.start("confirming")
    at_once(lambda: raced.send("yes"), lambda: server.clock(60))
    server.clock(1)
    ends = raced.payloads("hitl.confirm.resolved", "hitl.confirm.timed_out")
    check("Z-75: a reply after the end of its time is an ordinary message; of reply and deadline one wins",
          (late, len(ends), len(raced.payloads("hitl.interrupt.resumed"))), (["model speaks"], 1, 1))
    types = in_order(eve.types(), "hitl.confirm.requested", "hitl.interrupt.paused", "hitl.confirm.timed_out", "hitl.interrupt.resumed")
    check("Z-265 (half: a confirmation): the events of a confirmation are of its kind",
          (types, {p["kind"] for p in eve.payloads("hitl.interrupt.paused", "hitl.interrupt.resumed")}), (True, {"confirm"}))
    unclear = chat("desk")
    unclear.start("confirming")
    before = unclear.flow["deadline"]
    replies = [unclear.say("do you know noon?"), unclear.say("yes or no"), unclear.flow["deadline"] == before, unclear.say("perhaps")]
    declined = chat("strict")
    declined.start("confirming")
    check("Z-72 (half: confirmations): unclear replies are asked again, then declined, or declined at once where it is set",
          (replies, [(p["attempt"], p["text"]) for p in unclear.payloads("hitl.confirm.unrecognized")],
           unclear.payloads("hitl.confirm.resolved")[0]["reason"], declined.say("perhaps")),
          ([["Sure?"], ["Sure?"], True, ["false", "confirm/unrecognized/perhaps"]], [(1, "do you know noon?"), (2, "yes or no")],
           "unrecognized", ["false", "confirm/unrecognized/perhaps"]))
    words, defaults = chat("desk"), chat("strict")
    words.start("words")
    by_effect = words.say("yes"), words.say("aye"), words.say("yes")
    defaults.start("words")
    check("Z-70: words come from the effect, else from the configuration, else from the language; one list replaces only itself",
          (by_effect, defaults.say("no"), defaults.say("da")), ((["A?"], ["B?"], ["true,true"]), ["B?"], ["false,true"]))
    ended, thrown = chat("strict"), chat("throwing")
    ended.start("confirming")
    thrown.start("confirming")
    server.clock(301)
    check("Z-74: when nobody answers the flow goes on, ends, or gets an error, as configured",
          (timed[0], ended.payloads("flow.ended"), ended.delivered(), thrown.delivered()[1:]),
          ("false", [{"reason": "confirm_timed_out"}], ["Sure?"], ["InterruptTimeout:timed_out"]))


def forms(server, chat, check):
    ann = chat("desk")
    ann.start("forms")
    steps = [ann.say(text) for text in ('{"seats": 0}', '{"seats": 3}', "12,5", "no", "aisle", "no", "cancel")]
    last = json.loads(steps[-1][0])
    model = chat("extract")
    model.start("extracting")
    extracted = model.say("about a dozen")
    read = [c["purpose"] for c in model.model_calls()]
    check("Z-71, Z-264: a reply is read as JSON, as the scalar of the schema, by the model, as a refusal, in this order",
          (steps[0], last, extracted, read),
          (["Which?"], [{"seats": 3}, 12.5, False, "Aisle", "no", None], ['{"n":12}'], ["extract"]))


def escalating(server, chat, check):
    ann = chat("acking")
    said = ann.start("escalating")
    created, state = ann.payloads("hitl.escalation.created")[0], (ann.mode, ann.paused_on)
    record = server.admin("GET", f"/escalations/{created['escalationId']}").json
    check("Z-76: an escalation is a record, a state of the session and events, and the flow waits for it",
          (state, record["status"], record["priority"], record["metadata"], record["reason"],
           in_order(ann.types(), "hitl.escalation.created", "hitl.interrupt.paused")),
          (("pending_admin_resolution", "admin_resolution"), "open", "high", {"a": 1}, "r", True))
    check("Z-77: the effect itself does not wait, and the user is told once",
          sorted(said), ["Asking.", "async_resolution,open,string,string"])
    early = chat("desk")
    early.start("early")
    early.resolve(message="fine")
    waiting = early.paused_on
    [told] = [json.loads(text) for text in early.say("7")]
    check("Z-78: a decision that comes before the wait is kept for it",
          (waiting, told["outcome"], told["approved"], told["message"]), ("ask", "resolved", True, "fine"))
    twofold = chat("desk").start("twofold")[0].split(" ")
    waits = ["FlowEffectError:nothing_to_wait_for"] * 2
    check("Z-79: a second escalation while one is open is thrown back", twofold[2:4], ["ok", "FlowEffectError:escalation_open"])
    check("Z-85: a wait for what nobody was asked is thrown back", twofold[:2], waits)
    modes = [(chat(agent).start("live"), chat(agent).start("escalating")) for agent in ("adminless", "endless", "retrying")]
    one = chat("endless")
    one.start("live")
    check("Z-81 (half: without admins): an unavailable mode ends the flow, answers without it, or is tried as the other",
          (modes, one.payloads("flow.ended")),
          ([(["model speaks"], ["model speaks"]), ([], []), ([], [])], [{"reason": "escalation_unavailable"}]))
    timed, own = chat("acking"), chat("acking")
    timed.start("escalating")
    own.start("escalating", {"e": {"timeoutSeconds": 60}})
    server.clock(61)
    first = own.payloads("hitl.escalation.timed_out"), timed.paused_on
    server.clock(600)
    told = json.loads(own.delivered()[-1])
    late = server.admin("POST", f"/escalations/{own.payloads('hitl.escalation.created')[0]['escalationId']}/resolve", {"approved": True})
    check("Z-82: an escalation ends at its own deadline or the default; the flow goes on without a decision",
          (len(first[0]), first[1], told["outcome"], told["approved"], timed.flow, late.status),
          (1, "admin_resolution", "timed_out", False, None, 409))


def waits(server, chat, check):
    ann = chat("desk")
    ann.start("escalating")
    ann.resolve(False, message="No.", actionData={"x": 1})
    told = json.loads(ann.delivered()[-1])
    asked = chat("desk")
    asked.start("replying")
    asked.say("no")
    state = asked.paused_on
    reply = json.loads(asked.say("aye")[-1])
    asleep = chat("desk")
    asleep.start("sleeping")
    server.clock(3600)
    woke = json.loads(asleep.delivered()[-1])
    check("Z-83: a wait ends with the decision, the reply or the time, and its payload says which",
          ({k: told[k] for k in ("outcome", "approved", "message", "actionData", "resolvedBy", "queuedInbound")}, "resolvedAt" in told,
           state, reply, woke["outcome"], woke["queuedInbound"]),
          ({"outcome": "resolved", "approved": False, "message": "No.", "actionData": {"x": 1}, "resolvedBy": "ana", "queuedInbound": []},
           True, "confirm_response", {"outcome": "positive", "value": True, "text": "aye"}, "elapsed", []))
    check("Z-265 (half: a wait): the events of a wait are of its kind",
          {p["kind"] for p in asleep.payloads("hitl.interrupt.paused", "hitl.interrupt.resumed")}, {"wait"})
    short = chat("desk")
    short.start("escalating", {"w": {"timeoutSeconds": 30}})
    server.clock(31)
    told = json.loads(short.delivered()[-1])
    late = server.admin("POST", f"/escalations/{told['escalationId']}/resolve", {"approved": True})
    unbounded = chat("desk").start("twofold")[0].split(" ")[4]
    check("Z-84 (half: decisions and sleeps): the earlier deadline counts and closes the escalation; a sleep needs its time",
          (told["outcome"], told["timedOut"], late.status, late.json["error"], unbounded),
          ("timed_out", True, 409, "interrupt_already_resolved", "FlowEffectError:bad_effect"))
    denied = chat("desk")
    denied.start("escalating")
    before = denied.get()["flow"]
    tried = [denied.resolve(who=None).status, denied.resolve(who="vic").status, denied.resolve(approved="maybe").status]
    check("Z-86: a denied or invalid decision resumes nothing and moves no deadline",
          (tried, denied.get()["flow"] == before), ([401, 403, 400], True))


def deadlines(server, chat, check):
    """Deadlines of many sessions that pass while the server is down."""
    seconds = [500, 60, 320, 200, 440, 120, 380, 260, 90, 150]
    sessions = []
    for number in seconds:
        one = chat("desk")
        one.start("confirming", {"timeoutSeconds": number})
        sessions.append(one)
    server.kill()
    server.start_with(TANDEM_TEST_CLOCK_ADVANCE="600")
    texts = [one.delivered()[1:] for one in sessions]
    said = [one.say("yes") for one in sessions]
    check("Z-192 (half: many sessions): the deadlines of all of them that passed while the server was down fire at the start, once each, before new messages",
          (texts, said, [len(one.events("hitl.confirm.timed_out")) for one in sessions]),
          ([["false", "confirm/timed_out/-"]] * len(seconds), [["model speaks"]] * len(seconds), [1] * len(seconds)))


if __name__ == "__main__":
    main(__doc__, AGENTS, [confirming, forms, escalating, waits, deadlines])
