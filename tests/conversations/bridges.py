#!/usr/bin/env python3
"""Section 4.10: bridges between users and desks, with kill -9 at every crash point, and what a desk may and may not do.

    bridges.py --binary target/release/tandem
"""
import os
import threading
import uuid

from desk import API, Outside, admin_auth, flow, in_order, json, main, source, token

TARGETS = {
    "finance": {"transport": "loopback", "address": "finance-desk", "label": "Finance"},
    "legal": {"transport": "loopback", "address": "legal-desk", "allowedActors": ["leo"]},
    "night": {"transport": "loopback", "address": "night-desk"},
    "crm": {"transport": "crm", "address": "crm-desk"},
    "closed": {"transport": "loopback", "address": "closed-desk", "fallbackTarget": "night",
               "hours": {"timezone": "UTC", "week": {"mon": [["09:00", "09:01"]]}}},
}
# A network that keeps what it is sent.
NETWORK = Outside(lambda path, body: (200, {"messageId": uuid.uuid4().hex}))
os.environ["CRM_SECRET"] = "a-secret-of-both-sides"
BOSS = ["hitl.takeover.start", "hitl.takeover.end", "hitl.proxy.input", "hitl.proxy.stop", "hitl.proxy.view", "hitl.escalation.view", "hitl.escalation.resolve", "flow.manage"]
DESKS = [{"transport": "loopback", "address": address, "actorId": actor, "role": "boss"}
         for address, actor in (("finance-desk", "fin"), ("legal-desk", "kim"), ("night-desk", "nia"), ("chat-ana", "ana"))]
AUTH = json.loads(admin_auth())
AUTH = json.dumps({**AUTH, "roles": {**AUTH["roles"], "boss": BOSS}, "chat": DESKS})
CODE_AUTH = """{
    resolveActor: async ({ inbound, request }) => {
      const from = inbound?.from ?? request?.headers['x-desk'];
      if (from === 'broken') throw new Error('no');
      return from === 'finance-desk' ? { id: 'fin' } : null;
    },
    can: async (action, actor, session) => action.startsWith('hitl.proxy.') && actor.id === 'fin' && session?.id !== '',
  }"""
SAY = "`${r.outcome}|${r.text ?? ''}|${r.forwarded ?? ''}|${r.forwardedText ?? ''}|${r.ended ?? ''}|${r.actor?.id ?? ''}`"
REVIEW = flow("review", """
  const i = ctx.input ?? {};
  yield { type: 'interrupt.proxy.start', target: i.target ?? 'finance', ...i.start };
  const r = yield { type: 'interrupt.proxy.wait', ...i.wait, processBeforeForward: async (input, hook) => {
    if (input.text.includes('secret')) throw new Error('leak');
    if (input.text.includes('loop')) for (;;) {}
    if (input.text.includes('wrong')) return { forwardToUsr: false };
    if (input.text.includes('NAME')) return { text: 'Hello ' + (await hook.session.kv.get('name')) };
    if (input.text.includes('END')) return { endProxy: true, reason: 'filter says so' };
    if (input.text.includes('APPROVE')) return { forwardToUser: true, text: 'Approved.' };
    return {};
  } };
  yield { type: 'say', text: """ + SAY + """ };""")
PLAIN = flow("plain", """
  const i = ctx.input ?? {};
  if (i.name) await ctx.session.kv.set('name', i.name);
  const p = yield { type: 'interrupt.proxy.start', target: i.target ?? 'finance', ...i.start };
  if (i.ask) yield { type: 'ask', key: 'x', text: 'x?' };
  const r = yield { type: 'interrupt.proxy.wait', ...i.wait };
  yield { type: 'say', text: """ + SAY + """ };
  if (i.after) yield { type: 'ask', key: 'y', text: p.target };""")
HELPERS = flow("helpers", """
  const p = yield* ctx.proxyToAdmin({ target: 'finance', mode: 'shadow' });
  const r = yield* ctx.waitForAdminInput({ timeoutSeconds: 600 });
  const s = yield* ctx.proxyToAdmin({ stop: true, reason: 'enough' });
  yield { type: 'say', text: [p.mode, r.outcome, s.stopped, s.proxyId === p.proxyId].join('|') };""")
CHANGING = flow("changing", """
  let seen = 0;
  yield { type: 'interrupt.proxy.start', target: 'finance' };
  yield { type: 'interrupt.proxy.wait', processBeforeForward: async () => { seen += 1; return {}; } };
  yield { type: 'say', text: 'seen ' + seen };""")
GENERATOR = flow("generator", """
  yield { type: 'interrupt.proxy.start', target: 'finance' };
  try { yield { type: 'interrupt.proxy.wait', processBeforeForward: async function* () {} }; }
  catch (e) { yield { type: 'say', text: e.code }; }""")
TWICE = flow("twice", """
  const first = yield { type: 'interrupt.proxy.start', target: 'finance' };
  try {
    const second = yield { type: 'interrupt.proxy.start', target: 'night', ...ctx.input.again };
    yield { type: 'say', text: 'replaced:' + second.replaced };
  } catch (e) { yield { type: 'say', text: e.code + ':' + e.proxyId }; }
  yield { type: 'ask', key: 'x', text: '' };""")
NAMED = flow("named", """
  try { yield { type: 'interrupt.proxy.start', target: ctx.input.target }; } catch (e) { yield { type: 'say', text: e.code }; }""")
PAIR = flow("pair", """
  yield { type: 'interrupt.proxy.start', target: 'finance' };
  const a = yield { type: 'interrupt.proxy.wait' }, b = yield { type: 'interrupt.proxy.wait' };
  yield { type: 'interrupt.proxy.stop' };
  try { yield { type: 'interrupt.proxy.wait' }; } catch (e) { yield { type: 'say', text: [a.text, b.text, e.code].join() }; }""")
WHOLE = flow("whole", """
  const i = ctx.input ?? {};
  yield { type: 'interrupt.proxy.start', target: i.target ?? 'finance', ...i.start };
  if (i.ask) yield { type: 'ask', key: 'x', text: 'x?' };
  const r = yield { type: 'interrupt.proxy.wait', ...i.wait, processBeforeForward: async (input, hook) => {
    if (input.text === 'STOP') return { endProxy: true };
    if (input.text === 'APPROVE') return { forwardToUser: true, text: 'Approved.' };
    if (input.text === 'HIDE') return { forwardToUser: false, reason: 'not for them' };
    return {};
  } };
  yield { type: 'say', text: JSON.stringify(r) };
  if (i.after) yield { type: 'ask', key: 'y', text: 'y?' };""")
HITL = json.dumps({"targets": {name: target for name, target in TARGETS.items() if name != "crm"}})
AGENTS = {
    "desk": source(REVIEW, PLAIN, HELPERS, GENERATOR, TWICE, NAMED, PAIR, WHOLE, hitl=HITL, adminAuth=AUTH),
    "networked": source(WHOLE, hitl=json.dumps({"targets": TARGETS}), adminAuth=AUTH,
                        transports=f"{{ loopback: {{}}, crm: {{ kind: 'webhook', url: '{NETWORK.url}', secretEnv: 'CRM_SECRET' }} }}"),
    "busy": source(REVIEW, PLAIN, hitl=HITL, adminAuth=AUTH),
    "rooms": source(REVIEW, hitl=HITL, adminAuth=AUTH),
    "crashing": source(REVIEW, hitl=HITL, adminAuth=AUTH),
    "keyed": source(REVIEW, hitl=HITL, adminAuth="{ builtin: 'keys' }"),
    "coded": source(REVIEW, hitl=HITL, adminAuth=CODE_AUTH),
    "strict": source(CHANGING, hitl=HITL, adminAuth=AUTH, strict="true"),
}


class Desk:
    """An address at which admins write to the bridges of an agent."""

    def __init__(self, server, agent="desk", address="finance-desk"):
        self.server, self.agent, self.address = server, agent, address

    def write(self, text, mid=None, **more):
        body = {"messageId": mid or uuid.uuid4().hex, "from": self.address, "body": text, **more}
        return self.server.ok("POST", f"/agents/{self.agent}/inbound?wait=true", body)

    def received(self):
        self.server.clock()
        return self.server.ok("GET", f"/test/outbound?to={self.address}")["messages"]

    def texts(self, ending=None):
        return [m["text"] for m in self.received() if ending is None or m["text"].endswith(ending)]


def begin(chat, what="review", **value):
    chat.start(what, value or None)
    return chat.get()["hitl"]["proxyId"]


def short(proxy):
    return proxy.split("-")[1][:6]


def send_input(server, proxy, text, mid=None, who="ana"):
    return server.admin("POST", f"/proxies/{proxy}/input", {"messageId": mid or uuid.uuid4().hex, "text": text}, who)


def relaying(server, chat, check):
    one, desk = chat("desk"), Desk(server)
    proxy = begin(one, "plain", ask=True, name="Ada")
    one.say("my answer")
    told = desk.texts("my answer")
    send_input(server, proxy, "hello")
    check("Z-31: a message that answers a question is forwarded too, with a label that names the user and the bridge",
          (told, one.delivered()), ([f"[{one.user} #{short(proxy)}] my answer"], ["x?", "[Finance] hello", "admin_input|hello|true|hello|false|ana"]))
    two = chat("desk")
    proxy = begin(two, "plain", ask=True, start={"mode": "shadow"})
    answers = [send_input(server, proxy, f"advice {n}").status for n in range(3)]
    quiet = two.delivered()
    two.say("my answer")
    check("Z-107 (half: without a filter): input that nobody waits for is kept where it is not forwarded, and the next wait takes the oldest",
          (answers, quiet, two.delivered()[1:]), ([200] * 3, ["x?"], ["admin_input|advice 0|false||false|ana"]))
    three = chat("desk")
    begin(three, "helpers")
    send_input(server, three.get()["hitl"]["proxyId"], "ok")
    check("Z-114 (half: helpers of bridges), Z-115 (half: helpers of bridges): the helpers of bridges yield their effects and give their results", three.delivered(), ["shadow|admin_input|true|true"])
    four = chat("desk")
    four.start("generator")
    check("Z-102 (half: a generator as filter): a generator in the place of the filter is a bad effect", four.delivered(), ["bad_effect"])
    five = chat("desk")
    proxy = begin(five, "plain", target="closed", after=True)
    send_input(server, proxy, "x")
    check("Z-239 (half: a bridge to the fallback of a target): a bridge to a target that is closed goes to its fallback",
          (five.delivered()[-1], five.payloads("hitl.proxy.started")[0]["target"]), ("night", "night"))
    keys = chat("desk")
    proxy = begin(keys)
    found = {name.removeprefix("__zupa.hitl."): value for name, value in keys.keys().items() if name.startswith("__zupa.hitl.proxy")}
    view, listed = keys.get()["hitl"], server.admin("GET", f"/proxies?sessionId={keys.session_id}").json["proxies"]
    check("Z-193 (half: keys of bridges): the reserved keys, the session and the list name the bridge, its target and its mode", (found, view["mode"], view["proxyId"], [p["status"] for p in listed]),
          ({"proxyId": proxy, "proxyTarget": "finance", "proxyMode": "mirror"}, "proxy", proxy, ["active"]))
    node = server.call("GET", f"/v1/runs/{keys.flow['flowRunId']}").json
    check("Z-265 (half: the kind of a wait for input), §10.1: a wait for input is of the kind proxy_wait, and its run waits for something external", (node["status"], [p["kind"] for p in keys.payloads("hitl.interrupt.paused")]),
          ("waiting-external", ["proxy_wait"]))


def starting(server, chat, check):
    told, kinds = {}, {}
    for name, again in (("refused", {}), ("replaced", {"replace": True})):
        one = chat("desk")
        one.start("twice", {"again": again})
        told[name] = one.delivered()
        kinds[name] = [e["type"].split(".")[-1] + ":" + str(e["payload"].get("reason") or e["payload"]["target"])
                       for e in one.events("hitl.proxy.started", "hitl.proxy.stopped")]
        begun = one.payloads("hitl.proxy.started")
        told[name] = [text.replace(begun[0]["proxyId"], "first") for text in told[name]]
    listed = server.admin("GET", f"/proxies?status=active&sessionId={one.session_id}").json["proxies"]
    check("Z-94 (half: in the real server), Z-95 (half: with the id of the active bridge): a second bridge is refused with the id of the first, or replaces it",
          (told, kinds, [p["target"] for p in listed], begun[1]["replaces"] == begun[0]["proxyId"]),
          ({"refused": ["proxy_active:first"], "replaced": ["replaced:first"]},
           {"refused": ["started:finance"], "replaced": ["started:finance", "stopped:replaced", "started:night"]}, ["night"], True))
    raw = {}
    for target in ("nope", "finance-desk", "+5511999999999", "http://127.0.0.1/x", "__proto__", ""):
        one = chat("desk")
        one.start("named", {"target": target})
        raw[target] = one.delivered(), one.payloads("hitl.proxy.started")
    check("Z-96 (half: in the real server): no address, number or URL is a target, only a registered key", raw,
          {target: (["bad_effect" if not target else "unknown_target"], []) for target in raw})
    one = chat("desk")
    proxy = begin(one, "pair")
    states = []
    for text in ("first", "second"):
        states.append(one.paused_on)
        send_input(server, proxy, text)
    check("Z-99 (half: each wait pauses until an input), Z-100 (half: one wait takes one input): each wait pauses until one input comes, and without a bridge there is none",
          (states, one.delivered()), (["proxy_input"] * 2, ["[Finance] first", "[Finance] second", "first,second,no_proxy"]))
    life = chat("desk")
    proxy = begin(life, "plain", start={"timeoutSeconds": 60}, after=True)
    server.restart()
    server.clock(61)
    check("Z-98 (half: over a restart): the time of a bridge outlives a restart, ends the bridge, and the wait with it",
          (life.delivered(), life.payloads("hitl.proxy.timed_out"), life.payloads("hitl.proxy.stopped"), life.get()["hitl"]["proxyId"]),
          (["timed_out|||||", "finance"], [{"proxyId": proxy, "scope": "bridge", "behavior": "continue"}],
           [{"proxyId": proxy, "reason": "timeout"}], None))


def filtering(server, chat, check):
    one, desk = chat("desk"), Desk(server)
    one.start("plain", {"name": "Ada", "ask": True})
    one.admin("DELETE", "/flows/active")
    proxy = begin(one)
    before = len(desk.texts())
    outcomes = [(send_input(server, proxy, text).status, one.paused_on, len(desk.texts()) - before) for text in ("a secret", "wrong", "loop")]
    silent = one.delivered()[1:]
    send_input(server, proxy, "NAME?")
    check("Z-104: a filter that throws, answers nonsense or never ends lets nothing through; the flow waits on and the desk is told",
          (outcomes, silent, len(one.failures("processBeforeForward")), one.delivered()[1:]),
          ([(200, "proxy_input", 1), (200, "proxy_input", 2), (200, "proxy_input", 3)], [], 3,
           ["[Finance] Hello Ada", "admin_input|NAME?|true|Hello Ada|false|ana"]))
    two = chat("desk")
    proxy = begin(two)
    run = two.flow["flowRunId"]
    send_input(server, proxy, "END")
    hooks = [r["record"] for r in two.get("/journal")["records"] if r["type"] == "flow.hook"]
    check("Z-103 (half: a reason that is given), Z-218: the filter's decision is used and in the journal; a bridge it ends is stopped after forwarding",
          (two.delivered(), two.payloads("hitl.proxy.stopped"), [h["decision"] for h in hooks], bool(run),
           in_order(two.types(), "hitl.proxy.input_received", "flow.hook", "hitl.proxy.forwarded", "hitl.proxy.stopped", "hitl.interrupt.resumed")),
          (["[Finance] END", "admin_input|END|true|END|true|ana"], [{"proxyId": proxy, "reason": "filter says so"}],
           [{"endProxy": True, "reason": "filter says so"}], True, True))
    strict = chat("strict")
    send_input(server, begin(strict, "changing"), "x")
    # Without the instance of the flow the change is lost at once.
    is_kept = strict.delivered() == ["[Finance] x", "seen 1"]
    check("Z-218 (half: captured variables): what a filter changes of captured variables is reported in strict mode",
          (is_kept or strict.delivered() == ["[Finance] x", "seen 0"], "flow.nondeterministic" in strict.types()), (True, is_kept))


def desks(server, chat, check):
    one, two, desk = chat("busy"), chat("busy"), Desk(server, "busy")
    first, second = begin(one), begin(two)
    answer = desk.write("APPROVE")
    told = desk.texts()[-1]
    by_number = desk.write(f"#{short(second)} APPROVE this")
    said = one.delivered(), two.delivered()
    check("Z-110 (half: several bridges): with several bridges the desk is told to quote or to name one, and nothing is forwarded; a number names one",
          (answer["sessionId"], "#1a2b3c" in told, by_number["status"], said),
          (None, True, "processed", ([], ["[Finance] Approved.", f"admin_input|APPROVE this|true|Approved.|false|fin"])))
    three = chat("busy")
    third = begin(three)
    three.say("quote me")
    one.say("not me")
    quoted = next(m["id"] for m in desk.received() if m["text"].endswith("quote me"))
    desk.write("APPROVE", quotedMessageId=quoted)
    late = desk.write("APPROVE", quotedMessageId=quoted)
    ended = desk.texts()[-1]
    desk.write("APPROVE")
    check("Z-110 (half: quotes): a quoted message names its bridge, the only one is found by itself, and one that has ended is told",
          (three.delivered()[0], late["sessionId"], "over" in ended, one.delivered()[0], bool(third)),
          ("[Finance] Approved.", None, True, "[Finance] Approved.", True))
    four = chat("busy")
    proxy = begin(four)
    four.say("echo")
    sent = next(m for m in desk.received() if m["text"].endswith("echo"))
    echoed = desk.write(sent["text"], mid=sent["id"])["status"]
    hopped = desk.write("APPROVE", relayed=True)["status"]
    four.send("mine", relayed=True)
    users = [u["externalUserId"] for u in server.ok("GET", "/agents/busy/users")["users"]]
    check("Z-111 (half: echoes, hop marks and desks inward): own messages and those that a bridge relayed go nowhere, and a desk with a bridge is no user",
          (echoed, hopped, four.delivered(), desk.texts("mine"), four.paused_on, "finance-desk" in users),
          ("duplicate", "duplicate", [], [], "proxy_input", False))
    stopped = desk.write("/proxy stop")
    check("Z-156 (half: `/proxy stop` in the desk's chat), Z-252, Z-27 (half: a bridge as target), Z-154 (half: bridges): a command of the desk stops its bridge, by the right hitl.proxy.stop",
          (stopped["outbound"][0]["text"], four.payloads("hitl.proxy.stopped")[0]["reason"],
           [p["action"] for p in four.payloads("admin.authz.granted")], four.delivered()),
          (f"The bridge #{short(proxy)} is stopped.", "stopped_by_admin", ["hitl.proxy.stop"], ["stopped|||||"]))
    five = chat("busy")
    proxy = begin(five)
    Desk(server, "busy", "chat-ana").write(f"/proxy stop {proxy}")
    again = server.admin("POST", f"/proxies/{proxy}/stop", {}).json
    unknown = server.admin("POST", "/proxies/pxy-none/stop", {}).status
    gone = send_input(server, proxy, "x")
    check("Z-108 (half: over HTTP): a stopped bridge is stopped again without effect, and takes no input", (five.delivered(), again, unknown, gone.status, gone.json["error"]),
          (["stopped|||||"], {"stopped": False, "proxyId": proxy}, 404, 409, "proxy_stopped"))
    own = chat("busy", "finance-desk")
    own.start("plain")
    check("Z-111 (half: a target at the user's own address): a bridge to the user's own address is refused at its start", own.payloads("flow.failed")[0]["error"]["message"].split(":")[0], "target_is_user")


def rights(server, chat, check):
    one = chat("desk")
    proxy = begin(one, "plain", target="legal")
    Desk(server, address="legal-desk").write("APPROVE")
    api = send_input(server, proxy, "APPROVE").status
    viewer = [send_input(server, proxy, "x", who=who).status for who in (None, "vic")]
    lists = [server.admin("GET", "/proxies?agentId=desk", who=who).status for who in ("ana", "vic", None)]
    stops = [server.admin("POST", f"/proxies/{proxy}/stop", {}, who).status for who in (None, "vic")]
    denied = [(p["action"], p["reason"], p.get("proxyId") == proxy) for p in one.payloads("admin.authz.denied")]
    check("Z-101 (half: the right), Z-144 (half: bridges), Z-145 (half: bridges): only actors of the target with the right write, and every denial is recorded",
          (api, viewer, lists, stops, one.delivered(), denied),
          (403, [401, 403], [200, 403, 401], [401, 403], [],
           [("hitl.proxy.input", "forbidden", True), ("hitl.proxy.input", "forbidden", True), ("hitl.proxy.input", "no_actor", True),
            ("hitl.proxy.input", "forbidden", True), ("hitl.proxy.stop", "no_actor", True), ("hitl.proxy.stop", "forbidden", True)]))
    two = chat("coded")
    proxy = begin(two)
    headers = [{"X-Desk": who} for who in ("stranger", "broken", "finance-desk")]
    statuses = [server.call("POST", f"{API}/proxies/{proxy}/input", {"messageId": f"h-{n}", "text": "secret"}, more, timeout=40).status
                for n, more in enumerate(headers)]
    Desk(server, "coded").write("APPROVE")
    check("Z-101 (half: rules in code, over HTTP and in chat), Z-146 (half: bridges): rules in code decide on both ways, and what they do not answer is a denial", (statuses, two.delivered()),
          ([401, 403, 200], ["[Finance] Approved.", "admin_input|APPROVE|true|Approved.|false|fin"]))
    keyed = chat("keyed")
    proxy = begin(keyed)
    by_scope = {}
    for scope in ("conversations:takeover", "approvals:respond"):
        made = server.call("POST", f"{API}/keys", {"name": scope, "scopes": [scope, "runs:read"]})
        key = made.json["secret"]
        listed = server.call("GET", f"{API}/proxies?agentId=keyed", key=key).status
        body = {"messageId": scope, "text": "APPROVE"}
        by_scope[scope] = (made.status, listed, server.call("POST", f"{API}/proxies/{proxy}/input", body, key=key, timeout=40).status)
    check("Z-149 (half: the scope `conversations:takeover` for bridges): a key with that scope lists bridges and writes, one without it does not", (by_scope, keyed.delivered()[:1]),
          ({"conversations:takeover": (201, 200, 200), "approvals:respond": (201, 403, 403)}, ["[Finance] Approved."]))
    three = chat("desk")
    proxy = begin(three, "plain")
    racing = [threading.Thread(target=send_input, args=(server, proxy, "one", "same")) for _ in range(4)]
    [t.start() for t in racing], [t.join() for t in racing]
    both = send_input(server, proxy, "one", "same").json
    check("Z-109 (half: the same id at once and again), Z-190 (half: input): copies of one input are relayed once and advance the flow once",
          (three.delivered(), both, len(three.payloads("hitl.proxy.input_received"))),
          (["[Finance] one", "admin_input|one|true|one|false|ana"], {"status": "duplicate"}, 1))


def workspaces(server, chat, check):
    scopes = ["runs:create", "runs:read", "conversations:takeover"]
    keys = {name: server.call("POST", f"{API}/keys", {"name": name, "scopes": scopes, "workspace": name}).json["secret"] for name in ("red", "blue")}
    bound = server.call("POST", f"{API}/keys", {"name": "bound", "scopes": scopes, "agent": "coded"}).json["secret"]
    admin = {"X-Admin-Token": token("ana")}

    def write(name, sender, text):
        body = {"messageId": uuid.uuid4().hex, "from": sender, "body": text}
        return server.call("POST", f"{API}/agents/rooms/inbound?wait=true", body, key=keys[name], timeout=40).json

    sessions = {name: write(name, "ada", "start review")["sessionId"] for name in keys}
    listed = {name: server.call("GET", f"{API}/proxies?agentId=rooms", headers=admin, key=key).json["proxies"] for name, key in keys.items()}
    red = listed["red"][0]["proxyId"]
    refused = [server.call("POST", f"{API}/proxies/{red}/{what}", body, admin, key=key, timeout=40).status
               for what, body in (("input", {"messageId": "x", "text": "x"}), ("stop", {})) for key in (keys["blue"], bound)]
    of_key = server.call("GET", f"{API}/proxies", headers={"X-Desk": "finance-desk"}, key=bound).json["proxies"]
    write("blue", "finance-desk", "APPROVE")
    active = {name: server.call("GET", f"{API}/proxies?status=active&agentId=rooms", headers=admin, key=key).json["proxies"] for name, key in keys.items()}
    pages, cursor = [], ""
    while cursor is not None:
        page = server.call("GET", f"{API}/proxies?agentId=rooms&limit=1{cursor}", headers=admin).json
        pages.append([p["sessionId"] for p in page["proxies"]])
        cursor = f"&cursor={page['nextCursor']}" if "nextCursor" in page else None
    check("Z-155 (half: bridges): those of another workspace or agent are not found, listed or written to",
          ({name: [p["sessionId"] for p in found] for name, found in listed.items()}, refused, {p["agentId"] for p in of_key},
           {name: len(found) for name, found in active.items()}, [p for p in pages if p]),
          ({name: [session] for name, session in sessions.items()}, [404] * 4, {"coded"}, {"red": 1, "blue": 0}, [[sessions["blue"]], [sessions["red"]]]))


def results(server, chat, check):
    """What a wait gives the flow, field by field."""
    def told(one):
        return json.loads(one.delivered()[-1])
    got, wanted = {}, {}
    for name, text, start in (("forwarded", "APPROVE", {}), ("not forwarded", "HIDE", {}), ("ended", "STOP", {}), ("by the mode", "hello", {"mode": "shadow"}),
                              ("over the mode", "APPROVE", {"mode": "shadow"})):
        one = chat("desk")
        proxy, mid = begin(one, "whole", start=start), uuid.uuid4().hex
        send_input(server, proxy, text, mid)
        got[name], stops = told(one), one.payloads("hitl.proxy.stopped")
        [received] = one.events("hitl.proxy.input_received")
        common = {"outcome": "admin_input", "proxyId": proxy, "target": "finance", "inputId": mid, "text": text, "at": received["at"],
                  "actor": {"id": "ana", "role": "boss", "channel": "ui_api"}, "ended": name == "ended", "forwarded": True}
        own = {"forwarded": {"forwardedText": "Approved."}, "not forwarded": {"forwarded": False, "reason": "not for them"},
               "ended": {"forwardedText": "STOP"}, "by the mode": {"forwarded": False}, "over the mode": {"forwardedText": "Approved."}}[name]
        wanted[name] = {**common, **own}
        got[name]["stop"], wanted[name]["stop"] = stops[0]["reason"], "hook" if name == "ended" else "flow_ended"
    check("Z-103 (half: the defaults): a decision that says nothing forwards as the bridge does, keeps the text, and ends a bridge for the reason `hook`",
          {name: found == wanted[name] or found for name, found in got.items()}, dict.fromkeys(wanted, True))
    by_chat = chat("desk")
    proxy = begin(by_chat, "whole")
    Desk(server).write(f"#{short(proxy)} hello")
    late, stopped = chat("desk"), chat("desk")
    timed = begin(late, "whole", wait={"timeoutSeconds": 60, "timeoutBehavior": "fallback_escalation"})
    quiet = chat("desk")
    silent = begin(quiet, "whole", wait={"timeoutSeconds": 60})
    outside = begin(stopped, "whole")
    server.admin("POST", f"/proxies/{outside}/stop", {"reason": "lunch"})
    server.clock(61)
    escalation = late.payloads("hitl.escalation.created")[0]["escalationId"]
    at = {name: one.events("hitl.proxy.timed_out")[0]["at"] for name, one in (("late", late), ("quiet", quiet))}
    check("Z-105: the result of an input, of a timeout and of a stop from outside has these fields and no others",
          (told(by_chat)["actor"], told(late), told(quiet), told(stopped)),
          ({"id": "fin", "role": "boss", "channel": "chat:loopback"},
           {"outcome": "timed_out", "timedOut": True, "proxyId": timed, "behavior": "fallback_escalation", "escalationId": escalation, "at": at["late"]},
           {"outcome": "timed_out", "timedOut": True, "proxyId": silent, "behavior": "continue", "at": at["quiet"]},
           {"outcome": "stopped", "proxyId": outside, "reason": "lunch"}))
    kept = chat("desk")
    proxy = begin(kept, "whole", ask=True, start={"mode": "shadow"})
    send_input(server, proxy, "APPROVE", "kept-1")
    send_input(server, proxy, "STOP", "kept-2")
    before = kept.delivered()
    kept.say("7")
    check("Z-107 (half: with a filter): the next wait takes the oldest input that was kept, and asks its own filter about it",
          (before, kept.delivered()[1], told(kept)["inputId"], told(kept)["forwardedText"], len(kept.events("flow.hook"))),
          (["x?"], "[Finance] Approved.", "kept-1", "Approved.", 1))


def one_input(server, chat, check):
    """The steps of one input, in the chat of a desk and over the API."""
    one, desk = chat("desk"), Desk(server)
    proxy, mid = begin(one, "whole", after=True), uuid.uuid4().hex
    statuses = [desk.write(f"#{short(proxy)} APPROVE", mid)["status"] for _ in range(2)]
    steps = ["admin.authz.granted", "hitl.proxy.input_received", "flow.hook", "hitl.proxy.forwarded", "hitl.interrupt.resumed", "response:sent"]
    kinds = [t for t in one.types() if t in steps[:5]]
    closed = chat("desk")
    legal = begin(closed, "whole", target="legal")
    kim = Desk(server, address="legal-desk")
    denied = [kim.write(f"#{short(legal)} APPROVE", "same")["status"] for _ in range(2)]
    by_api = [send_input(server, proxy, "once more", "free", who).status for who in ("vic", "ana")]
    check("Z-101 (half: the order): an id is claimed, then the right is looked at, then the input is recorded, filtered, forwarded and used, then sent",
          (statuses, kinds, in_order(one.types(), *steps), denied, len(closed.events("admin.authz.denied")), closed.payloads("hitl.proxy.input_received"),
           by_api),
          (["processed", "duplicate"], steps[:5], True, ["processed", "duplicate"], 1, [], [403, 200]))
    plain = chat("desk")
    proxy = begin(plain, "plain", target="night", ask=True)
    plain.say("my answer")
    send_input(server, proxy, "hello")
    check("Z-97 (half: a target without a label): nothing stands before texts to the user; before texts to the desk stand user and bridge",
          (Desk(server, address="night-desk").texts("my answer"), plain.delivered()[1]), ([f"[{plain.user} #{short(proxy)}] my answer"], "hello"))
    out = chat("networked")
    proxy = begin(out, "whole", target="crm", ask=True)
    out.say("over there")
    out.delivered()
    sent = [body for _, _, body in NETWORK.requests if body.get("text", "").endswith("over there")]
    check("Z-111 (half: hop marks outward): what a bridge relays carries the mark to the network it goes to",
          [(body["to"], body["relayed"]) for body in sent], [("crm-desk", True)])


def one_address(server, chat, check):
    """A desk that several conversations write to."""
    ann, bob = chat("busy"), chat("busy")
    begin(ann), begin(bob)
    desk = Desk(server, "busy")
    before = len(desk.texts())
    server.ok("POST", "/test/transport", {"failNext": 3})
    for one, text in ((ann, "first"), (bob, "second"), (ann, "third"), (bob, "fourth")):
        one.say(text)
    for _ in range(4):
        server.clock(60)
    texts = [text.split("] ")[1] for text in desk.texts()[before:]]
    [first, third], [second, _] = ([o for o in one.get("/outbox")["outbox"] if o["to"] == "finance-desk"] for one in (ann, bob))
    turn = ann.events("hitl.proxy.forwarded")[0]["turnId"]
    shown = {**first, "at": bool(first["at"]), "key": bool(first["key"]), "providerMessageId": bool(first["providerMessageId"])}
    check("Z-197 (half: an address of several sessions, and what is shown of an intent): texts to one desk arrive in their order, whichever conversation they are of",
          (texts, shown, len({o["key"] for o in (first, second, third)})),
          (["first", "second", "third", "fourth"],
           {"key": True, "sessionId": ann.session_id, "turnId": turn, "to": "finance-desk", "transport": "loopback", "origin": "proxy", "status": "sent",
            "text": f"[{ann.user} #{short(ann.get()['hitl']['proxyId'])}] first", "providerMessageId": True, "at": True}, 3))


def takeovers(server, chat, check):
    one, desk = chat("desk"), Desk(server)
    proxy = begin(one, "pair")
    one.admin("POST", "/takeover", {})
    answers = [send_input(server, proxy, text).status for text in ("first", "second")]
    held = one.delivered(), one.payloads("hitl.proxy.input_received"), one.paused_on
    ended = one.admin("POST", "/handback", {}).status
    server.clock()
    mixed = chat("desk")
    proxy = begin(mixed, "plain", wait={"timeoutSeconds": 60}, after=True)
    mixed.admin("POST", "/takeover", {})
    server.clock(61)
    late = send_input(server, proxy, "too late").status
    mixed.admin("POST", "/handback", {})
    check("Z-89 (half: input of admins): during a takeover input is held, and follows the handback in its order, also behind a deadline",
          (answers, held, ended, one.delivered(), in_order(one.types(), "hitl.live_takeover.ended", "hitl.proxy.input_received", "hitl.interrupt.resumed"),
           one.payloads("hitl.live_takeover.ended")[0]["heldItems"], late, mixed.delivered()),
          ([200] * 2, ([], [], "proxy_input"), 200, ["[Finance] first", "[Finance] second", "first,second,no_proxy"], True, 2, 200,
           ["timed_out|||||", "finance", "[Finance] too late"]))
    events = [e for c in (one, mixed) for e in c.events() if e["type"].startswith("hitl.proxy.")]
    kept = chat("desk")
    proxy = begin(kept, "plain", ask=True, start={"mode": "shadow", "timeoutSeconds": 60})
    send_input(server, proxy, "advice")
    kept.say("my answer")
    events += [e for e in kept.events() if e["type"].startswith("hitl.proxy.")]
    wanted = ("eventId", "at", "sequence", "agentId", "sessionId", "userId", "requestId", "turnId", "flowId", "flowRunId", "channel")
    ids = {e["payload"]["proxyId"] for e in events}
    of_admins = [e for e in events if e["type"] in ("hitl.proxy.input_received", "hitl.proxy.input_taken")]
    check("Z-201 (half: bridges): every event of a bridge names its session, user, turn, request, flow and cause, and those of admins the actor",
          ({e["type"].removeprefix("hitl.proxy.") for e in events}, {(e["type"], f) for e in events for f in wanted if e.get(f) in (None, "")},
           [e["type"] for e in events if "causationId" not in e], len(ids), {e["actor"] and e["actor"]["id"] for e in of_admins}),
          ({"started", "input_received", "input_taken", "forwarded", "timed_out", "stopped"}, set(), [], 3, {"ana"}))


CRASHES = ("after_claim", "before_commit", "after_commit", "before_send", "after_send", "after_hook")


def crashes(server, chat, check):
    desk = Desk(server, "crashing")
    got, wanted = {}, {}
    for point in CRASHES:
        for way in ("chat", "api"):
            one = chat("crashing")
            proxy, mid = begin(one), uuid.uuid4().hex

            def act(one=one, proxy=proxy, mid=mid, way=way):
                return desk.write("APPROVE", mid=mid) if way == "chat" else send_input(server, proxy, "APPROVE", mid)

            server.crash(point, act)
            act()
            again = act()
            again = again["status"] if way == "chat" else again.json["status"]
            forwards = [p["direction"] for p in one.payloads("hitl.proxy.forwarded")]
            got[point, way] = (one.delivered(), forwards, again, one.flow, one.payloads("hitl.proxy.started")[0]["proxyId"] == proxy)
            wanted[point, way] = (["[Finance] Approved.", f"admin_input|APPROVE|true|Approved.|false|{'fin' if way == 'chat' else 'ana'}"],
                                  ["admin_to_user"], "duplicate", None, True)
    check("Z-109 (half: an admin's text over crashes), Z-258 (half: the filter at `after_hook`), Z-226 (half: the filter at `after_hook`), Z-218 (half: after a crash): killed at every crash point, an admin's text reaches the user once",
          {k: v == wanted[k] or v for k, v in got.items()}, dict.fromkeys(wanted, True))
    got = {}
    for point in ("after_claim", "before_commit", "after_commit", "before_send", "after_send"):
        one, mid, text = chat("crashing"), uuid.uuid4().hex, f"hurry {point}"
        begin(one)
        server.crash(point, lambda one=one, mid=mid, text=text: one.send(text, mid))
        one.send(text, mid)
        again = one.send(text, mid)["status"]
        got[point] = (len(desk.texts(text)), len(one.payloads("hitl.proxy.forwarded")), again, one.paused_on)
    check("Z-109 (half: a user's text over crashes): killed at every crash point, a user's text reaches the desk once", got,
          {point: (1, 1, "duplicate", "proxy_input") for point in got})
    one = chat("crashing")
    proxy = begin(one, wait={"timeoutSeconds": 60, "timeoutBehavior": "fallback_escalation", "timeoutMessageToUser": "Nobody answers."})
    server.kill()
    server.start_with(TANDEM_TEST_CLOCK_ADVANCE="90")
    late = send_input(server, proxy, "APPROVE").status
    check("Z-106 (half: the time is over while the server is down), Z-192 (half: a wait for input): the wait ends at the start as its behavior says, and input comes too late",
          (one.delivered(), late, one.payloads("hitl.escalation.created")[0]["reason"]),
          (["Nobody answers.", "timed_out|||||"], 409, "proxy_timeout"))


if __name__ == "__main__":
    main(__doc__, AGENTS, [relaying, starting, filtering, desks, rights, workspaces, results, one_input, one_address, takeovers, crashes])
