#!/usr/bin/env python3
"""Sections 5 and 6: hooks before and after the model, responses, structured output, the router.

    hooks.py --binary target/release/tandem
"""
from desk import API, admin_auth, flow, in_order, json, main, noting, script, source

FLOWS = [
    flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?' };\nyield { type: 'say', text: 'x=' + x };"),
    flow("three", "for (const n of ['a', 'b', 'c']) yield { type: 'say', text: n };"),
    flow("confirming", "const r = yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: 60 };\nyield { type: 'say', text: 'r=' + r };"),
    flow("deciding", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'say', text: 'approved=' + r.approved };"""),
    flow("telling", """
  yield { type: 'say', text: 'asking' };
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };"""),
    flow("order", "yield { type: 'say', text: 'ordering for ' + (ctx.input?.mood ?? 'nobody') };"),
    flow("timed", "yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 60 };\nyield { type: 'say', text: 'woken' };"),
    flow("decided", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  yield { type: 'say', text: 'told ' + r.message };"""),
    flow("handed", """
  yield { type: 'interrupt.escalate', mode: 'live_takeover', reason: 'speak' };
  const r = yield { type: 'interrupt.wait', waitFor: 'live_handback' };
  yield { type: 'say', text: 'noted ' + r.note };"""),
    flow("bridged", """
  yield { type: 'interrupt.proxy.start', target: 'finance', mode: 'shadow' };
  const r = yield { type: 'interrupt.proxy.wait' };
  yield { type: 'say', text: 'advised ' + r.text };"""),
    flow("working", "const r = yield { type: 'workflow.run', workflowId: 'slow-work' };\nyield { type: 'say', text: 'worked ' + r.status };"),
    flow("beside", "await ctx.resources.transport.sendText(ctx.replyTarget, 'beside');\nyield { type: 'say', text: 'said' };"),
]
SCHEMA = """{ type: 'object', required: ['reply'], properties: { reply: { type: 'string' }, mood: { type: 'string' },
    flow: { type: ['string', 'null'] }, sessionEnded: { type: 'boolean' } } }"""
BEFORE = """
      const m = /^start (\\w+)/.exec(input.text);
      if (m) return { action: 'route_flow', flowId: m[1] };
      if (input.text === 'hours?') return { action: 'skip_llm', draftReply: 'At nine.' };
      if (input.text === 'object') return { action: 'skip_llm', structured: { reply: 'From the object.', n: 1 } };
      if (input.text === 'shh') return { action: 'skip_llm' };
      if (input.text === 'stop') return { action: 'end', reason: 'closed' };
      if (input.text === 'on') return { action: 'continue' };"""
EDITS = """
      const text = input.candidate.text;
      if (['x?', 'b', 'drop it', 'Sure?'].includes(text)) return { action: 'cancel', reason: 'not this' };
      if (text === 'c') return { action: 'continue' };
      return { action: 'replace', reply: '<' + text + '>' };"""
REPLY = json.dumps({"reply": "model speaks", "mood": "good"})


RIGHTS = ["hitl.escalation.view", "hitl.escalation.resolve", "hitl.takeover.start", "hitl.takeover.end", "hitl.proxy.input"]
AUTH = admin_auth(roles={"boss": RIGHTS, "viewer": []})
# What a hook might answer or do to open an interrupt.
GRASPING = """async (input, ctx) => {
      const word = input.text ?? input.candidate?.text ?? input.reply ?? '';
      const seen = (await ctx.session.kv.get('errors')) ?? [];
      if (word.startsWith('key')) try { await ctx.session.kv.set('__zupa.hitl.mode', 'live_takeover'); await ctx.session.kv.set('errors', [...seen, 'set']); }
        catch (e) { await ctx.session.kv.set('errors', [...seen, e.code]); }
      if (word.startsWith('effect')) return { type: 'interrupt.confirm', question: 'Really?' };
      if (word.startsWith('action')) return { action: 'interrupt.escalate', mode: 'live_takeover', reason: 'mine' };
      if (word.startsWith('beside')) return { action: 'continue', interrupt: { type: 'interrupt.confirm', question: 'Really?' },
        hitl: { mode: 'pending_confirm' }, escalate: { mode: 'live_takeover', reason: 'mine' } };
      if (word.startsWith('helper')) return typeof ctx.confirm === 'function' ? ctx.confirm({ question: 'Really?' }) : undefined;
    }"""


def broken(body, **more):
    return source(*FLOWS, beforeLLM=f"async () => {{ {body} }}", beforeResponse=f"async () => {{ {body} }}", hookTimeoutMs="150",
                  onResponse=f"async () => {{ {body} }}", **more)


def detector(**more):
    return json.dumps({"mode": "detector", "prompt": "Which flow fits?", "minConfidence": 0.6, **more})


def routed(word, **answer):
    return {"when": {"purpose": "router", "contains": word}, "times": 0, **answer}


ROUTES = [routed("book", structured={"flow": "asking", "confidence": 0.9}), routed("unsure", structured={"flow": "asking", "confidence": 0.5}),
          routed("quiet", structured={"flow": "asking"}), routed("strange", structured={"flow": "nowhere", "confidence": 1}),
          routed("empty", structured={"confidence": 1}), routed("garble", text="{ not json"), routed("down", fail="no model")]
AGENTS = {
    "desk": source(*FLOWS, beforeLLM=noting("before", BEFORE), beforeResponse=noting("response"), onResponse=noting("report"),
                   outputSchema=SCHEMA, model=script({"when": {"contains": "bye"}, "times": 0, "structured": {
                       "reply": "Bye.", "sessionEnded": True}}, otherwise=REPLY), commands="""{
                       hello: { description: 'Greets', handler: async () => 'hello' } }"""),
    "plain": source(*FLOWS, beforeLLM=noting("before", BEFORE), onResponse=noting("report")),
    "grasping": source(beforeLLM=GRASPING, beforeResponse=GRASPING, onResponse=GRASPING, outputSchema=SCHEMA, model=script(
        *({"when": {"contains": word}, "times": 0, "structured": {"reply": f"{word} as well", "mood": "good"}}
          for word in ("key", "effect", "action", "beside", "helper")), otherwise=REPLY)),
    "triggered": source(*FLOWS, beforeLLM=noting("before", BEFORE), beforeResponse=noting("response"), onResponse=noting("report"), adminAuth=AUTH,
                        flowRouter=detector(), workflows="['slow-work']", model=script(*ROUTES),
                        hitl="{ targets: { finance: { transport: 'loopback', address: 'finance-desk' } } }"),
    "editing": source(*FLOWS, beforeLLM=noting("before", BEFORE), beforeResponse=noting("response", EDITS), onResponse=noting("report"),
                      model=script({"when": {"contains": "quietly"}, "times": 0, "text": "drop it"})),
    "replyless": source(*FLOWS, beforeLLM=None, outputSchema="withReply({ mood: { type: 'string' } })", fallbackReply="'Oops.'",
                        maxIdempotentRetries="0", beforeResponse="async ({ candidate }) => candidate.text === 'hush' ? { action: 'cancel' } : undefined",
                        model=script({"when": {"contains": "silently"}, "structured": {"reply": "hush", "mood": "bad", "modality": None, "sessionEnded": False}},
                                     {"structured": {"mood": "good"}, "times": 0})),
    "modal": source(*FLOWS, beforeLLM=None, outputSchema=SCHEMA, model=script(otherwise=REPLY), onResponse=noting("report"),
                    beforeResponse="async () => ({ action: 'replace', reply: 'other', structured: { reply: 'other', mood: 'new' } })"),
    "throwing": broken("throw new Error('down');"),
    "hanging": broken("await new Promise(() => {});"),
    "garbled": broken("return { action: 'explode' };"),
    "closed": broken("throw new Error('down');", hooks="{ onError: { beforeResponse: 'cancel' } }"),
    "shut": broken("throw new Error('down');", hooks="{ onError: 'cancel' }"),
    "two": source(*FLOWS, onResponse="""async (structured, ctx) => {
        await ctx.session.kv.set('last', structured.reply); throw new Error('late'); }"""),
    "slow": source(*FLOWS, onResponse="""async (structured, ctx, meta) => {
        const running = (await ctx.session.kv.get('running')) ?? [];
        await ctx.session.kv.set('running', [...running, structured.reply]); }""", outputSchema=SCHEMA, model=script(otherwise=REPLY)),
    "detector": source(*FLOWS, beforeLLM=None, flowRouter=detector(), model=script(*ROUTES), maxIdempotentRetries="0"),
    "to_flow": source(*FLOWS, beforeLLM=None, flowRouter=detector(fallback="three"), model=script(*ROUTES), maxIdempotentRetries="0"),
    "schema": source(*FLOWS, beforeLLM=None, outputSchema=SCHEMA, flowRouter="{ mode: 'schema_flow', field: 'flow' }", tools="""[
        { name: 'mood', handler: async () => 'joy' }]""", model=script(
            {"when": {"contains": "one", "afterTool": "mood"}, "structured": {"reply": "dropped", "flow": "order", "mood": "joy"}},
            {"when": {"contains": "one"}, "toolCalls": [{"name": "mood"}]},
            {"when": {"contains": "two"}, "structured": {"reply": "kept", "flow": "nowhere"}},
            {"when": {"contains": "three"}, "structured": {"reply": "plain", "flow": None}})),
    "schema_flow": source(*FLOWS, beforeLLM=None, outputSchema=SCHEMA,
                          flowRouter="{ mode: 'schema_flow', field: 'flow', fallback: 'order' }", model=script(
                              {"structured": {"reply": "dropped", "flow": None}, "times": 0})),
}


def reports(one):
    return [(n["input"], n["meta"]) for n in one.noted("report")]


def before_llm(server, chat, check):
    ann = chat("desk")
    said = [ann.say(text) for text in ("plain text", "on", "hours?", "object", "shh", "start three", "stop")]
    check("Z-117: the hook continues by nothing or by continue, gives a draft, chooses a flow, or ends the turn",
          said, [["model speaks"], ["model speaks"], ["At nine."], ["From the object."], [], ["a", "b", "c"], []])
    bob = chat("desk")
    bob.start("asking")
    skipped = bob.say("hours?"), bob.say("shh"), bob.paused_on, bob.model_calls(), bob.say("7")
    sources = [meta["source"] for _, meta in reports(bob)]
    check("Z-118: a draft is sent without any inference and leaves a waiting flow alone",
          (skipped, sources), ((["At nine."], [], "ask", [], ["x=7"]), ["flow", "short_circuit", "flow"]))
    eve = chat("plain")
    eve.start("asking")
    routed = eve.start("three"), eve.payloads("flow.ended")[0]["reason"], eve.model_calls(), eve.start("nowhere"), eve.failures("beforeLLM")
    held = chat("plain")
    held.start("confirming")
    refused = held.start("three"), held.paused_on, held.failures("beforeLLM")
    check("Z-119: a chosen flow starts without inference and ends one that asks; it is refused during an interrupt and when unknown",
          (routed, refused), ((["a", "b", "c"], "preempted", [], ["model speaks"], ["unknown_flow"]), (["Sure?"], "confirm", ["hitl_active"])))
    end = chat("plain")
    end.say("stop")
    outcome = end.payloads("runtime:inbound:processed")[0]
    check("Z-120: end stores the message and does nothing else",
          (outcome["outcome"], [m["text"] for m in end.messages()], end.noted("report"), end.model_calls(), end.delivered()),
          ("ended_by_policy", ["stop"], [], [], []))


def before_response(server, chat, check):
    ann = chat("editing")
    texts = [ann.say("hi"), ann.start("three"), ann.say("hours?"), ann.start("asking"), ann.paused_on, ann.say("7"), ann.say("quietly")]
    check("Z-121: the hook continues, cancels or replaces",
          texts[:3], [["<model speaks>"], ["<a>", "c"], ["<At nine.>"]])
    confirm = chat("editing")
    silent = confirm.start("confirming"), confirm.paused_on, confirm.say("yes")
    by_timer = chat("editing")
    by_timer.start("confirming")
    server.clock(61)
    check("Z-122: it applies to what the model, flows, drafts and timers say",
          (texts[2], texts[5], by_timer.delivered()), (["<At nine.>"], ["<x=7>"], ["<r=false>"]))
    cancelled = [(o["text"], o["reason"]) for o in ann.get("/outbox")["outbox"] if o["status"] == "canceled"]
    ann.say("more")
    history = [m["content"] for m in ann.model_calls()[-1]["messages"]]
    check("Z-124 (half: not sent, not remembered): a cancelled question is not sent, and the flow waits all the same",
          (texts[3:5], silent, texts[6], "x?" in history or "b" in history, "x?" in ann.delivered()),
          ([[], "ask"], ([], "confirm", ["<r=true>"]), [], False, False))
    check("Z-124 (half: kept as canceled): a cancelled text is in the ledger as such",
          (cancelled, [p["index"] for p in ann.payloads("response:canceled")][:2]),
          ([("b", "not this"), ("x?", "not this"), ("drop it", "not this")], [1, 0]))
    stored = [m["text"] for m in ann.messages() if m["role"] == "assistant"]
    original = [p["text"] for p in ann.payloads("response:prepared")]
    modal = chat("modal")
    modal.say("hi")
    check("Z-125: the replaced text is remembered and in the ledger, the original in the event; the structured answer is replaced too",
          ("<model speaks>" in history, "<model speaks>" in stored, "model speaks" in stored, "model speaks" in original,
           reports(modal)[0][0]), (True, True, False, True, {"reply": "other", "mood": "new"}))
    bob = chat("desk")
    bob.say("/hello")
    bob.start("three")
    bob.start("beside")
    seen = [(n["input"]["candidate"]["index"], n["input"]["candidate"]["text"], n["input"]["candidate"]["origin"])
            for n in bob.noted("response")]
    check("Z-123: it is called once for each candidate, not for commands and side messages",
          seen, [(0, "a", "say"), (1, "b", "say"), (2, "c", "say"), (0, "said", "say")])


def failing(server, chat, check):
    told = []
    for agent in ("throwing", "hanging", "garbled"):
        one = chat(agent)
        told.append((one.say("hi"), len(one.failures("beforeLLM")), len(one.failures("beforeResponse")), one.say("again")))
    check("Z-126: a hook that throws, hangs or answers nonsense counts as continue and is reported",
          told, [(["model speaks"], 1, 1, ["model speaks"])] * 3)
    ann = chat("desk")
    ann.say("hi", mid=f"{ann.user}-1")
    ann.say("hi", mid=f"{ann.user}-1")
    server.crash("before_send", lambda: ann.send("again", mid=f"{ann.user}-2"))
    check("Z-127: a recorded decision is used after a crash and for duplicates; no hook is called again",
          (ann.delivered(), len(ann.noted("before")), len(ann.noted("response"))), (["model speaks"] * 2, 2, 2))
    closed, shut = chat("closed"), chat("shut")
    check("Z-128: a gate can fail closed, for each hook", (closed.say("hi"), shut.say("hi"), closed.failures("beforeResponse") != []),
          ([], [], True))


def on_response(server, chat, check):
    two = chat("two")
    texts = two.start("three")
    server.clock()
    check("Z-129, Z-134 (half: nothing is undone): the report comes after sending and storing, with two arguments or three, and cannot harm",
          (texts, two.keys()["last"], two.failures("onResponse") != [], two.start("three"),
           in_order(two.types(), "response:sent", "response:persisted", "runtime:report:started")),
          (["a", "b", "c"], "a\nb\nc", True, ["a", "b", "c"], True))
    ann = chat("desk")
    for text in ("hi", "start three", "hours?", "shh", "/hello"):
        ann.say(text, mid=f"{ann.user}-{text}")
    ann.say("hi", mid=f"{ann.user}-hi")
    plain, cancelled = chat("plain"), chat("editing")
    plain.say("hi")
    cancelled.start("asking")
    check("Z-130: once for a turn with a candidate: the structured object, or all texts; not for commands, duplicates and silence",
          ([given for given, _ in reports(ann)], reports(plain), [m["policy"]["beforeResponseAction"] for _, m in reports(cancelled)]),
          ([{"reply": "model speaks", "mood": "good"}, {"reply": "a\nb\nc", "replies": ["a", "b", "c"]},
            {"reply": "At nine.", "replies": ["At nine."]}], [], ["cancel"]))
    metas = [meta for _, meta in reports(ann)]
    held = chat("desk")
    held.start("telling")
    pending = reports(held)[0][1]
    meta = metas[1]
    check("Z-131: the third argument says the source, the flow, what the hooks did and the state",
          ([m["source"] for m in metas], meta["flowId"], meta["policy"]["beforeLLMAction"], meta["hitlState"], bool(meta["turnId"]),
           bool(meta["requestId"]), bool(meta["flowRunId"]), pending["hitlState"], pending["escalationId"] == held.get()["hitl"]["escalationId"]),
          (["classic", "flow", "short_circuit"], "three", "route_flow", "none", True, True, True, "pending_admin_resolution", True))
    bob, timed = chat("desk"), chat("desk")
    bob.start("deciding")
    bob.resolve()
    timed.start("confirming")
    server.clock(61)
    both = [(m["source"], m["hitlState"]) for one in (bob, timed) for _, m in reports(one)]
    check("Z-132: a turn of a timer or of a decision is the flow's", [s for s, _ in both], ["flow", "flow", "flow"])
    confirmed = chat("desk")
    confirmed.start("confirming")
    confirmed.say("yes")
    edited = chat("editing")
    edited.start("three")
    check("Z-133: the state is that after the turn, or what the turn consumed; of several actions the strongest is told",
          ([s for _, s in both], [m["hitlState"] for _, m in reports(confirmed)],
           reports(edited)[0][1]["policy"]["beforeResponseAction"]),
          (["resolved", "pending_confirm", "timed_out"], ["pending_confirm", "resolved"], "cancel"))
    crashed = chat("slow")
    crashed.say("hello")
    server.crash("after_hook", lambda: crashed.send("start three", mid=f"{crashed.user}-1"))
    server.clock()
    check("Z-134 (half: after a crash): the report is made by a worker, again if it was interrupted",
          ("a\nb\nc" in crashed.keys()["running"], crashed.delivered()[1:]), (True, ["a", "b", "c"]))
    many = chat("slow")
    for text in ("start three", "one", "start order", "two", "start three"):
        many.post(text)
    server.clock()
    many.session_id = server.ok("GET", f"/sessions?userExternalId={many.user}")["sessions"][0]["id"]
    check("Z-262: reports of one session are made one at a time, in the order of the turns", many.keys()["running"],
          ["a\nb\nc", "model speaks", "ordering for nobody", "model speaks", "a\nb\nc"])


def structured(server, chat, check):
    ann = chat("desk")
    texts = ann.say("bye")
    server.clock()
    ended = ann.get()["endedAt"] is not None
    lacking = chat("replyless")
    missing = lacking.say("hi"), lacking.say("silently"), lacking.messages()[-1]["role"]
    check("Z-135: a structured answer has to have a reply, silence is a hook's; sessionEnded ends the session after its turn",
          (texts, ended, missing), (["Bye."], True, (["Oops."], [], "user")))
    sent = ann.events("response:sent")[0]
    prepared, persisted = ann.payloads("response:prepared")[0], ann.payloads("response:persisted")[0]
    check("Z-136 (half: prepared, sent, persisted): the events name request, session and source",
          (prepared["source"], bool(sent["requestId"]), sent["sessionId"] == ann.session_id, persisted is not None),
          ("classic", True, True, True))


def router(server, chat, check):
    ann = chat("detector")
    words = {"book": "selected", "unsure": "low_confidence", "quiet": "low_confidence", "strange": "unknown_flow", "empty": "missing",
             "garble": "parse_error"}
    told = {}
    for word, reason in words.items():
        one = chat("detector")
        texts = one.say(f"{word} please")
        [decision] = one.payloads("flow.router.decided")
        told[word] = (texts, decision["mode"], decision["reason"], decision["fallbackUsed"])
    check("Z-137, Z-142 (half: its reasons): one call with the routing prompt selects the flow",
          told, {word: (["x?"] if reason == "selected" else ["model speaks"], "detector", reason, reason != "selected")
                 for word, reason in words.items()})
    down, other = chat("detector").say("down please"), chat("to_flow").say("strange please")
    check("Z-139 (half: the detector): doubt, nonsense and failure lead to the fallback: the model, or a flow",
          (down, other, chat("to_flow").say("garble please")), (["model speaks"], ["a", "b", "c"], ["a", "b", "c"]))
    for number in range(9):
        ann.say(f"text {number} garble")
    server.crash("before_commit", lambda: ann.send("book now", mid=f"{ann.user}-1"))
    server.clock()
    calls = ann.model_calls("router")
    last = json.dumps(calls[-1]["messages"])
    shown = [f"text {n} garble" in last for n in range(9)]
    check("Z-140 (half: what it is given): the prompt, the flows with their descriptions, the last six messages and the text",
          ("Which flow fits?" in last, "asking" in last, "book now" in last, shown[:5], shown[-1]), (True, True, True, [False] * 5, True))
    crashed = chat("detector")
    crashed.say("garble")
    server.crash("before_send", lambda: crashed.send("book now", mid=f"{crashed.user}-1"))
    server.clock()
    answered = [p for p in crashed.payloads("model:answered") if p["purpose"] == "router"]
    check("Z-140 (half: its output is recorded, and after a crash the recorded one is used)",
          (crashed.delivered()[-1], len(crashed.model_calls("router")), len(answered)), ("x?", 2, 2))


def triggers(server, chat, check):
    """Turns that no message causes."""
    wait = {"id": "wait", "typeId": "core.delay", "name": "wait", "position": {"x": 0, "y": 0}, "config": {"delayMs": 1000}, "inputs": {}}
    document = {"id": "slow-work", "name": "slow-work", "version": "1.0.0", "nodes": [wait], "edges": [], "variables": [], "metadata": {},
                "settings": {}, "triggers": [{"id": "t", "type": "manual"}]}
    made = server.call("PUT", f"{API}/workflows/slow-work", document).status
    causes = {
        "timer": ("timed", lambda one: server.clock(60), "woken"),
        "resolution": ("decided", lambda one: one.resolve(message="/help book"), "told /help book"),
        "handback": ("handed", lambda one: one.admin("POST", "/handback", {"note": "/help book"}), "noted /help book"),
        "proxy_input": ("bridged", lambda one: server.admin("POST", f"/proxies/{one.get()['hitl']['proxyId']}/input",
                                                            {"messageId": one.user, "text": "/help book"}), "advised /help book"),
        "workflow": ("working", lambda one: server.clock(5), "worked completed"),
    }
    got = {}
    for trigger, (flow_id, cause, text) in causes.items():
        one = chat("triggered")
        one.start(flow_id)
        before, after = len(one.noted("before")), one.events()[-1]["sequence"]
        cause(one)
        delivered = one.delivered()[-1:]
        last = [e for e in one.events() if e["sequence"] > after]
        [began] = [e for e in last if e["type"] == "runtime:inbound:received"]
        of_turn = [e["type"] for e in last if e["turnId"] == began["turnId"]]
        steps = in_order(of_turn, "response:prepared", "hook:decided", "transport:outbound", "response:sent", "response:persisted")
        hooks = [n["input"]["candidate"]["text"] for n in one.noted("response") if n["input"]["turnId"] == began["turnId"]]
        reported = [(meta["source"], value["reply"]) for value, meta in reports(one) if meta["turnId"] == began["turnId"]]
        got[trigger] = (began["payload"]["trigger"], delivered, len(one.noted("before")) - before, one.model_calls(), "command:handled" in of_turn,
                        "flow.router.decided" in of_turn, steps, hooks, reported) == (
                            trigger, [text], 0, [], False, False, True, [text], [("flow", text)]) or (began, delivered, of_turn, hooks, reported)
    check("Z-20: turns of timers, resolutions, handbacks, inputs and workflows go to the flow that waits, past commands, first hook and router; its texts take the other steps",
          (made, got), (201, dict.fromkeys(causes, True)))


def grasping(server, chat, check):
    got = {}
    for word in ("key", "effect", "action", "beside", "helper"):
        one = chat("grasping")
        texts = one.say(f"{word} please")
        one.delivered()
        hitl = [t for t in one.types() if t.startswith(("hitl.", "flow."))]
        interrupts = server.ok("GET", f"/interrupts?status=open&sessionId={one.session_id}")["interrupts"]
        got[word] = (texts, hitl, one.mode, interrupts, sorted({p["stage"] for p in one.payloads("response:failed")}), one.noted("errors"))
    failed = ["beforeLLM", "beforeResponse"]
    plain = {word: ([f"{word} as well"], [], None, [], [], []) for word in got}
    check("Z-18 (half: hooks): whatever a hook before, after or at the end of a response answers or writes, it opens no interrupt",
          got, {**plain, "key": (["key as well"], [], None, [], [], ["reserved_key"] * 3), "effect": (["effect as well"], [], None, [], failed, []),
                "action": (["action as well"], [], None, [], failed, [])})


def schema_router(server, chat, check):
    ann = chat("schema")
    texts = ann.say("one"), ann.say("two"), ann.say("three")
    check("Z-138, Z-141: a field of the agent's own answer selects the flow, after its tools and without another call",
          (texts, len(ann.model_calls()), ann.payloads("flow.started")[0]["input"], chat("schema_flow").say("hi")),
          ((["ordering for joy"], ["kept"], ["plain"]), 4, {"reply": "dropped", "flow": "order", "mood": "joy"}, ["ordering for nobody"]))


if __name__ == "__main__":
    main(__doc__, AGENTS, [before_llm, before_response, failing, on_response, structured, router, schema_router, triggers, grasping])
