#!/usr/bin/env python3
"""Section 4: how flows start and end, and what each of their effects does. Interrupts are in `interrupts.py`.

    effects.py --binary target/release/tandem
"""
import time

from desk import Outside, eventually, flow, main, noting, script, source

CONFIRM = "type: 'interrupt.confirm'"
TELL = "yield { type: 'say', text: JSON.stringify(r ?? null) };"
FLOWS = [
    flow("greet", "yield { type: 'say', text: 'hello ' + (ctx.input?.who ?? 'you') + ' by ' + (ctx.inbound?.body ?? '-') };"),
    flow("asking", """
  const first = await ctx.session.kv.get('never');
  const x = yield { type: 'ask', key: 'x', text: 'x?' };
  yield { type: 'say', text: [x, ctx.answers.x, ctx.inbound.body].join('|') };"""),
    flow("results", """
  const said = yield { type: 'say', text: 'one' };
  const blank = yield { type: 'say', text: '  ' };
  const tool = yield { type: 'tool', name: 'note', args: { a: 1 } };
  const asked = yield { type: 'ask', key: 'k', text: 'k?' };
  yield { type: 'say', text: JSON.stringify([said ?? 'undefined', blank ?? 'undefined', tool, asked]) };"""),
    flow("odd", """
  const seen = [];
  for (const effect of [{ type: 'sayy', text: 'x' }, { type: 'ask', key: 'k' }, { type: 'say', text: 7 }, 'text', null, 5]) {
    try { yield effect; seen.push('performed'); } catch (e) { seen.push(e.name + ':' + e.code + ':' + (e.message.length > 0)); }
  }
  yield { type: 'say', text: [...new Set(seen)].join() + seen.length };
  yield { type: 'say', text: 'kept', extra: { mine: 1 } };
  yield Promise.resolve({ type: 'say', text: 'awaited' });"""),
    flow("twice", """
  yield { type: 'interrupt.confirm', id: 'same', question: 'One?' };
  try { yield { type: 'interrupt.confirm', id: 'same', question: 'Two?' }; } catch (e) { yield { type: 'say', text: e.code }; }
  yield { type: 'tool', name: 'note', args: {} };"""),
    flow("endless", "while (true) yield { type: 'say', text: ' ' };"),
    flow("passing", "yield { type: 'handoff', to: 'passing' };"),
    flow("chatty", "for (let i = 0; i < 60; i++) { const x = yield { type: 'ask', key: 'k', text: 'again?' }; }"),
    flow("bits", "for (const n of ['a', 'b']) yield { type: 'say', text: n };\nyield { type: 'tool', name: 'note', args: {} };"),
    flow("first", """
  try {
    yield { type: 'handoff', to: 'second', input: { from: 'first' } };
  } finally {
    yield { type: 'say', text: 'ignored' };
  }
  yield { type: 'say', text: 'never' };"""),
    flow("second", """
  yield { type: 'say', text: 'second of ' + ctx.input.from };
  yield { type: 'end', reason: 'finished' };
  yield { type: 'say', text: 'never' };"""),
    flow("lost", "yield { type: 'handoff', to: 'nowhere' };"),
    flow("returning", "return { reason: 'returned' };"),
    flow("again", """
  if ((ctx.input?.n ?? 0) < 2) yield { type: 'handoff', to: 'again', input: { n: (ctx.input?.n ?? 0) + 1 } };
  yield { type: 'say', text: 'round ' + ctx.input.n };"""),
    flow("closing", """
  try { yield { type: 'ask', key: 'x', text: 'x?' }; }
  finally { yield { type: 'tool', name: 'pay', args: {} }; }"""),
    flow("tools", """
  const out = [];
  for (const [name, args] of [['nope', {}], ['strict', {}], ['broken', {}], ['slow', {}]]) {
    try { yield { type: 'tool', name, args }; out.push('ok'); }
    catch (e) { out.push([e.name, e.code, e.message.length > 0].join('/')); }
    const soft = yield { type: 'tool', name, args, onError: 'return' };
    out.push(soft.ok + '/' + soft.code);
  }
  out.push(yield { type: 'tool', name: 'shout', args: { text: 'hi' } });
  out.push(JSON.stringify(yield { type: 'tool', name: 'flaky', args: {} }));
  yield { type: 'say', text: out.join(' ') };"""),
    flow("booms", "yield { type: 'say', text: 'one' };\nthrow new Error('boom');"),
    flow("paying", "yield { type: 'tool', name: 'pay', args: { eur: 5 } };\nyield { type: 'say', text: 'paid' };"),
    flow("once", """
  try { yield { type: 'tool', name: 'once', args: {} }; yield { type: 'say', text: 'done' }; }
  catch (e) { yield { type: 'say', text: e.code }; }"""),
    flow("confirming", f"""
  const r = yield {{ {CONFIRM}, question: 'Sure?', ...(ctx.input ?? {{}}) }};
  {TELL}
  yield {{ type: 'say', text: [ctx.lastInterrupt.kind, ctx.lastInterrupt.outcome, ctx.lastInterrupt.text ?? '-'].join('/') }};"""),
    flow("words", f"""
  const a = yield {{ {CONFIRM}, question: 'A?', positiveKeywords: ['aye'] }};
  const b = yield {{ {CONFIRM}, question: 'B?' }};
  yield {{ type: 'say', text: [a, b].join() }};"""),
    flow("forms", f"""
  const object = {{ type: 'object', properties: {{ seats: {{ type: 'integer', minimum: 1 }} }}, required: ['seats'] }};
  const out = [];
  for (const responseSchema of [object, {{ type: 'number' }}, {{ type: 'boolean' }}, {{ enum: ['Window', 'Aisle'] }}, {{ type: 'string' }}, object])
    out.push(yield {{ {CONFIRM}, question: 'Which?', responseSchema }});
  yield {{ type: 'say', text: JSON.stringify(out) }};"""),
    flow("extracting", f"""
  const r = yield {{ {CONFIRM}, question: 'How many?', responseSchema: {{ type: 'object', required: ['n'],
    properties: {{ n: {{ type: 'integer' }} }} }} }};
  {TELL}"""),
    flow("escalating", """
  const e = yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'r', priority: 'high', metadata: { a: 1 }, ...(ctx.input?.e ?? {}) };
  yield { type: 'say', text: [e.mode, e.status, typeof e.escalationId, typeof e.createdAt].join() };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution', ...(ctx.input?.w ?? {}) };
  """ + TELL),
    flow("early", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'r' };
  yield { type: 'ask', key: 'x', text: 'x?' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
  """ + TELL),
    flow("twofold", """
  const out = [];
  for (const effect of [{ type: 'interrupt.wait', waitFor: 'admin_resolution' }, { type: 'interrupt.wait', waitFor: 'live_handback' },
    { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'a' }, { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'b' },
    { type: 'interrupt.wait', waitFor: 'timeout' }])
    try { yield effect; out.push('ok'); } catch (e) { out.push(e.name + ':' + e.code); }
  yield { type: 'say', text: out.join(' ') };"""),
    flow("detaching", "yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: ctx.input ?? 'later' };"),
    flow("live", "yield { type: 'interrupt.escalate', mode: 'live_takeover', reason: 'r' };\nyield { type: 'say', text: 'went on' };"),
    flow("replying", f"""
  yield {{ {CONFIRM}, question: 'Sure?', positiveKeywords: ['aye'] }};
  const r = yield {{ type: 'interrupt.wait', waitFor: 'confirm_response' }};
  """ + TELL),
    flow("sleeping", "const r = yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 3600 };\n" + TELL),
    flow("sugar", """
  const a = yield ctx.confirm({ question: 'A?' });
  const b = yield* ctx.confirm({ question: 'B?' });
  const t = yield* ctx.tool('note', { a: 1 });
  const e = yield ctx.escalate({ mode: 'async_resolution', reason: 'r' });
  const r = yield* ctx.wait({ waitFor: 'admin_resolution' });
  const x = yield* ctx.ask('x', 'x?');
  yield ctx.say([a, b, t, e.status, r.outcome, x].join());
  yield ctx.handoff('returning');"""),
    flow("careless", "const ok = await ctx.confirm({ question: 'Sure?' });\nif (ok) yield { type: 'tool', name: 'pay', args: {} };"),
]
# Answers later than any tool may take.
SLOW = Outside(lambda path, body: time.sleep(3) or (200, {}))
STRICT = "{ type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }"
TOOLS = f"""[
    {{ name: 'note', kind: 'record', returns: 'noted' }}, {{ name: 'pay', kind: 'record', returns: {{ ok: true }} }},
    {{ name: 'once', kind: 'record', returns: {{ ok: true }}, idempotent: false }},
    {{ name: 'strict', kind: 'record', parameters: {STRICT} }},
    {{ name: 'broken', handler: async () => {{ throw new Error('no'); }} }},
    {{ name: 'slow', kind: 'http', url: '{SLOW.url}/slow' }},
    {{ name: 'flaky', kind: 'record', returns: {{ ok: 1 }}, failTimes: 1 }},
    {{ name: 'shout', before: async (args) => ({{ text: args.text + '!' }}), handler: async (args) => args.text.toUpperCase(),
      after: async (result) => '<' + result + '>' }},
  ]"""
QUOTE = """{ bare: async function* (ctx) { yield { type: 'say', text: 'bare' }; },
    quote: { run: async function* (ctx) { yield { type: 'say', text: 'Quote for ' + ctx.input.item }; }, description: 'Makes a quote',
      inputSchema: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] }, asTool: { alias: 'make_quote' } },
    silent: { run: async function* (ctx) {}, asTool: true } }"""


def calls(text, *tools):
    return {"when": {"contains": text}, "times": 1 if text == "bad" else 0, "text": "dropped", "toolCalls": [{"name": n, "args": a} for n, a in tools]}


AGENTS = {
    "desk": source(*FLOWS, tools=TOOLS, toolTimeoutMs="300", maxIdempotentRetries="1", retryBaseDelayMs="1", retryJitterMs="0",
                   fallbackReply="'Oops.'", hitl="{ confirmDefaults: { timeoutSeconds: 60 } }"),
    "hooked": source(*FLOWS, tools=TOOLS, beforeResponse=noting("response"), onResponse=noting("report"), fallbackReply="'Oops.'"),
    "strict": source(*FLOWS, tools=TOOLS, flowLimits="{ maxEffectsPerTurn: 20, maxHandoffsPerTurn: 3, maxJournalRecords: 60 }",
                     fallbackReply="'Oops.'",
                     hitl="{ confirmDefaults: { unrecognized: 'decline', timeoutBehavior: 'end_flow', positiveKeywords: ['da'] } }"),
    "throwing": source(flow("confirming", f"""
  try {{ yield {{ {CONFIRM}, question: 'Sure?' }}; }} catch (e) {{ yield {{ type: 'say', text: e.name + ':' + e.code }}; }}"""),
                       hitl="{ confirmDefaults: { timeoutBehavior: 'throw', timeoutSeconds: 30 } }"),
    "tool": source(flows=QUOTE, tools=TOOLS, flowCommand="true", fallbackReply="'Oops.'", commands="""{
        quick: { description: 'Starts', flow: 'bare' } }""", model=script(
            calls("chair", ("note", {"before": 1}), ("make_quote", {"item": "chair"}), ("pay", {}), ("silent", {})),
            calls("bad", ("make_quote", {"item": 7})), calls("silence", ("silent", {})),
            {"when": {"contains": "tail"}, "toolCalls": [{"name": "make_quote", "args": {"item": "x"}}]}, otherwise="sorry")),
    "routed": source(flow("greet", "yield { type: 'say', text: 'routed' };"), beforeLLM=None, flowRouter="{ mode: 'detector', prompt: 'p' }",
                     model=script({"when": {"purpose": "router"}, "structured": {"flow": "greet"}, "times": 0})),
    "extract": source(*FLOWS, tools=TOOLS, extractionModel=script(
        {"when": {"purpose": "extract", "contains": "dozen"}, "structured": {"n": 12}}, otherwise="?")),
    "acking": source(*FLOWS, tools=TOOLS, hitl="{ escalationDefaults: { autoAckText: 'Asking.', timeoutSeconds: 600 } }"),
    "adminless": source(*FLOWS, tools=TOOLS, adminAuth=None, hitl="{ escalationDefaults: { fallbackMode: 'classic' } }"),
    "endless": source(*FLOWS, tools=TOOLS, adminAuth=None),
    "retrying": source(*FLOWS, tools=TOOLS, adminAuth=None, hitl="{ escalationDefaults: { fallbackMode: 'retry' } }"),
    "live": source(*FLOWS, tools=TOOLS, hitl="{ escalationDefaults: { fallbackMode: 'retry' }, takeover: { adapter: 'desk' }, "
                   "targets: { desk: { transport: 'loopback', address: 'd' } } }"),
}


def starts(server, chat, check):
    ann = chat("tool")
    check("Z-43: a function and a registration are both flows, under the keys of the map",
          (ann.start("bare"), ann.start("quote", {"item": "lamp"})), (["bare"], ["Quote for lamp"]))
    ann.say("a chair")
    ann.say("/flow bare")
    ann.say("/quick")
    made = ann.admin("POST", "/flows", {"flowId": "quote", "input": {"item": "desk"}})
    passing, routed = chat("desk"), chat("routed")
    passing.start("first")
    routed.say("hi")
    origins = [(p["origin"], p.get("input")) for p in ann.payloads("flow.started")]
    check("Z-44 (half: hook, tool, commands, API, router, handoff): each start records where it came from and its input",
          (origins, made.status, [p["origin"] for p in passing.payloads("flow.started")], routed.payloads("flow.started")[0]["origin"],
           chat("desk").say("/flow greet")),
          ([("before_llm", None), ("before_llm", {"item": "lamp"}), ("tool", {"item": "chair"}), ("command", None), ("command", None),
            ("api", {"item": "desk"})], 201, ["before_llm", "handoff"], "router", ["Unknown command. Try /help"]))
    bob = chat("tool")
    bad = bob.start("quote", {"item": 7}), bob.say("bad one"), [p["error"]["code"] for p in bob.payloads("flow.failed")]
    told = [m["content"] for m in bob.model_calls()[-1]["messages"] if m["role"] == "tool"]
    check("Z-44 (half: input that does not fit): the turn goes on as if no flow had been chosen; the model is told",
          (bad, "Invalid tool params" in told[0], bob.payloads("flow.started")), ((["sorry"], ["sorry"], ["invalid_input"]), True, []))
    eve = chat("desk")
    first = eve.start("asking"), eve.start("greet", {"who": "Eve"})
    check("Z-45: the message that started a flow is ctx.inbound and answers no question",
          (first[0], eve.paused_on, first[1]), (["x?"], None, ['hello Eve by start greet {"who": "Eve"}']))


def results(server, chat, check):
    ann = chat("desk")
    said = ann.start("results")
    check("Z-46: an effect gives its result back; the first resume carries none",
          (said, ann.say("now")), (["one", "k?"], ['["undefined","undefined","noted","now"]']))
    check("Z-53: a blank text makes no candidate, and its effect is done",
          (len(ann.payloads("response:prepared")), len(ann.payloads("flow.effect"))), (3, 5))
    odd = chat("desk")
    texts = odd.start("odd")
    kept = [p["effect"] for p in odd.payloads("flow.effect") if p["effect"].get("text") == "kept"]
    check("Z-47: an effect of an unknown type or with bad fields is thrown back, unknown fields are kept",
          (texts[:2], kept[0]["extra"]), (["FlowEffectError:bad_effect:true6", "kept"], {"mine": 1}))
    check("Z-49: a promise is awaited; what is no effect then is thrown back", texts[2:], ["awaited"])
    twice = chat("desk")
    twice.start("twice")
    twice.say("yes")
    run = twice.payloads("hitl.confirm.requested")[0]["interruptId"].split(":")[0]
    steps = [p["step"] for p in twice.payloads("flow.effect")]
    [call] = twice.tool_calls("note")
    interrupt = twice.payloads("hitl.confirm.requested")[0]["interruptId"]
    check("Z-48: effects are numbered; interrupts and calls are named by run and step; an id is given once in a run",
          (steps, interrupt, call["idempotencyKey"], twice.delivered()),
          ([0, 1, 2, 3], f"{run}:0", f"{run}:3", ["One?", "bad_effect"]))
    failed = []
    for name in ("endless", "passing", "chatty"):
        one = chat("strict")
        one.start(name)
        for _ in range(40):
            if one.flow is None:
                break
            one.say("more")
        error = one.payloads("flow.failed")[0]["error"]
        failed.append((error["code"], one.say("hi")))
    check("Z-50 (half: the bounds that are set): effects and handoffs of a turn and records of a run are bounded",
          failed, [("flow_limit", ["model speaks"])] * 3)
    heavy = chat("desk")
    heavy.start("endless")
    again = chat("desk")
    again.start("passing")
    effects = len(heavy.payloads("flow.effect"))
    check("Z-50 (half: the bounds of the brief): 200 effects and 8 handoffs in a turn",
          (effects, len(again.payloads("flow.handoff")), heavy.payloads("flow.failed")[0]["error"]["code"]), (200, 8, "flow_limit"))


def saying(server, chat, check):
    ann = chat("hooked")
    server.ok("POST", "/test/transport", {"paused": True})
    texts = ann.start("bits")
    eventually(lambda: ann.tool_calls("note"), what="the flow went on")
    sent = len([e for e in server.ok("GET", f"/sessions/{ann.session_id}/outbox")["outbox"] if e["status"] == "sent"])
    server.ok("POST", "/test/transport", {"paused": False})
    server.clock(0)
    check("Z-51: a say is a candidate, passes the hook, is an intent of the outbox, and the flow does not wait for its delivery",
          (texts, sent, [n["input"]["candidate"]["text"] for n in ann.noted("response")], ann.delivered()),
          (["a", "b"], 0, ["a", "b"], ["a", "b"]))
    bob = chat("hooked")
    bob.start("asking")
    bob.say("7")
    bob.start("confirming", {"timeoutSeconds": 30})
    server.clock(31)
    bob.say("hi")
    remembered = [m["content"] for m in bob.model_calls()[-1]["messages"] if m["role"] == "assistant"]
    stored = [m["text"] for m in bob.messages() if m["role"] == "assistant"]
    check("Z-52 (half: say, ask and confirm): what flows say is in the ledger and remembered by the model",
          (remembered, stored[:-1] == remembered), (["x?", "7|7|7", "Sure?", "false", "confirm/timed_out/-"], True))


def asking(server, chat, check):
    ann = chat("desk")
    ann.start("asking")
    state = ann.paused_on, ann.mode, ann.keys().get("__zupa.flow.pendingAskKey")
    check("Z-54: an ask sends its text, keeps its key and pauses; the next message is its result and is in ctx.answers",
          (state, ann.say("seven")), (("ask", None, "x"), ["seven|seven|seven"]))
    paused, resumed = ann.payloads("flow.paused"), ann.payloads("flow.resumed")
    check("Z-55: a question is no state of waiting for a person; its events name its key and the reply",
          ([(p["kind"], p["key"]) for p in paused], [p["by"] for p in resumed],
           [t for t in ann.types() if t.startswith("hitl.")]), ([("ask", "x")], ["user_reply"], []))


def tools(server, chat, check):
    ann = chat("desk")
    [text] = ann.start("tools")
    parts = text.split(" ")
    codes = ["not_found", "invalid_args", "failed", "timeout"]
    check("Z-57, Z-58: tools of flows are those of the model, with before, after, limits and retries; what fails is thrown or returned",
          parts, [part for code in codes for part in (f"ToolError/{code}/true", f"false/{code}")] + ["<HI!>", '{"ok":1}'])
    for point, call, texts in (("after_tool_call", "paying", ["paid"]), ("after_tool_call", "once", ["outcome_unknown"])):
        one = chat("desk")
        one.say("hello")
        server.crash(point, lambda: one.send(f"start {call}", mid=f"{one.user}-1"))
        sent = one.delivered()[1:]
        keys = {c["idempotencyKey"] for c in one.tool_calls()}
        if (sent, len(keys)) != (texts, 1):
            break
    effects = [e["type"] for e in one.events("flow.effect")]
    check("Z-59: a call is recorded before and after; after a crash it is repeated under its key, or its outcome is unknown",
          (sent, len(keys), len(effects)), (["outcome_unknown"], 1, 2))


def endings(server, chat, check):
    ann = chat("desk")
    handed = ann.start("first")
    reasons = [p.get("reason") for p in ann.payloads("flow.ended")]
    lost = chat("desk")
    to_nobody = lost.start("lost")
    check("Z-60: a handoff ends one flow and starts the other in the same turn; to nobody, the turn goes on without a flow",
          (handed, reasons, to_nobody, lost.payloads("flow.ended")),
          (["second of first"], ["handoff", "finished"], ["model speaks"], [{"reason": "handoff_unknown_target"}]))
    again = chat("desk")
    texts = again.start("again")
    runs = {e["flowRunId"] for e in again.events("flow.started")}
    check("Z-61: a handoff to the same flow is a fresh run", (texts, len(runs)), (["round 2"], 3))
    returned = chat("desk")
    returned.start("returning")
    check("Z-62: end and return end the run with their reason; nothing behind them runs",
          (reasons[1], returned.payloads("flow.ended")), ("finished", [{"reason": "returned"}]))
    closed = chat("desk")
    closed.start("closing")
    closed.start("greet")
    by_end = chat("desk")
    by_end.start("closing")
    by_end.admin("POST", "/end", {})
    restarted = chat("desk")
    restarted.start("closing")
    server.restart()
    restarted.admin("POST", "/end", {})
    ignored = [[p["effect"]["type"] for p in one.payloads("flow.effect_ignored")] for one in (ann, closed, by_end, restarted)]
    check("Z-63: the flow's finally blocks run when it is left; what they yield is not performed and said to be ignored",
          (ignored, closed.tool_calls("pay")), ([["say"], ["tool"], ["tool"], ["tool"]], []))
    detached = chat("desk")
    detached.start("detaching")
    state = detached.mode, detached.flow, detached.say("hi")
    escalation = detached.payloads("hitl.escalation.created")[0]["escalationId"]
    record = server.admin("GET", f"/escalations/{escalation}").json
    solved = detached.resolve()
    asleep = chat("desk")
    asleep.start("sleeping")
    asleep.admin("DELETE", "/flows/active")
    cleared = [k for k in asleep.keys() if k.startswith("__zupa.flow")]
    server.clock(3600)
    check("Z-64: the end of a flow clears its keys and timers and leaves its escalation open, detached, and blocking nothing",
          (state, record["status"], record["detached"], solved.status, detached.payloads("hitl.escalation.resolved")[0]["detached"],
           detached.delivered(), cleared, [p["by"] for p in asleep.payloads("hitl.interrupt.resumed")], asleep.payloads("flow.ended")),
          ((None, None, ["model speaks"]), "open", True, 200, True, ["model speaks"], [], ["canceled"], [{"reason": "aborted"}]))
    booms = chat("hooked")
    texts = booms.start("booms")
    failed = booms.payloads("flow.failed")[0]["error"]
    last = [p for p in booms.payloads("response:prepared")][-1]
    check("Z-65: an error that leaves a flow fails it, and only it",
          (texts, failed["code"], last["source"], booms.flow, [k for k, v in booms.keys().items() if k.startswith("__zupa.flow.active") and v],
           booms.say("hi")), (["one", "Oops."], "exception", "flow", None, [], ["model speaks"]))
    killed = chat("desk")
    killed.say("hello")
    server.crash("before_commit", lambda: killed.send("start booms", mid=f"{killed.user}-1"))
    check("Z-66: what the author throws is not tried again; a turn that was lost with its process is",
          (killed.delivered()[1:], len(killed.payloads("flow.failed")), len(booms.payloads("flow.failed"))), (["one", "Oops."], 1, 1))


def as_tools(server, chat, check):
    ann = chat("tool")
    texts = ann.say("a chair")
    [call] = ann.model_calls()
    check("Z-112 (half: which flows, by which names): a flow is offered under its alias or its name", [n in call["tools"] for n in ("make_quote", "silent", "bare")],
          [True, True, False])
    refused = ann.payloads("flow.start_refused")
    silent = ann.say("silence"), len(ann.model_calls())
    check("Z-113: tools before it are called, those after it are not; it owns the turn, also when it says nothing",
          (texts, [c["name"] for c in ann.tool_calls()], len(refused), silent), (["Quote for chair"], ["note"], 1, ([], 2)))
    sugar = chat("desk")
    sugar.start("sugar")
    texts = sugar.say("yes"), sugar.say("no")
    sugar.resolve()
    final = sugar.say("7")
    kinds = [p["effect"]["type"] for p in sugar.payloads("flow.effect")]
    check("Z-114 (half: performed), Z-115 (half: performed): helpers yield the canonical effects, by yield and by yield*",
          (texts, final, kinds),
          ((["B?"], []), ["true,false,noted,open,resolved,7"],
           ["interrupt.confirm", "interrupt.confirm", "tool", "interrupt.escalate", "interrupt.wait", "ask", "say", "handoff"]))
    careless = chat("desk")
    careless.start("careless")
    error = careless.payloads("flow.failed")[0]["error"]
    check("Z-116: a helper that is awaited instead of yielded fails the run, and nothing behind it happens",
          (error["code"], "confirm" in error["message"], careless.tool_calls("pay")), ("effect_not_yielded", True, []))


if __name__ == "__main__":
    main(__doc__, AGENTS, [starts, results, saying, asking, tools, endings, as_tools])
