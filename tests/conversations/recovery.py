#!/usr/bin/env python3
"""What crashes, changed code and passed deadlines leave behind: nothing that was decided is lost, and everything
happens in its order.

    recovery.py --binary target/release/tandem
"""
import sqlite3

from desk import ROLES, admin_auth, flow, main, source

ESCALATING = flow("deciding", """
  yield { type: 'say', text: 'ORIGINAL' };
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'decide' };
  const r = yield { type: 'interrupt.wait', waitFor: 'admin_resolution', timeoutSeconds: 600 };
  yield { type: 'say', text: `decided ${r.outcome} ${r.approved}` };""")
FLOWS = [
    ESCALATING,
    flow("asking", "const x = yield { type: 'ask', key: 'x', text: 'x?' };\nyield { type: 'say', text: 'x=' + x };"),
    flow("sleeping", """
  yield { type: 'say', text: 'ORIGINAL' };
  yield { type: 'interrupt.wait', waitFor: 'timeout', timeoutSeconds: 100 };"""),
    flow("confirming", "yield { type: 'interrupt.confirm', question: 'Sure?', timeoutSeconds: ctx.input };"),
    flow("reminding", """
  yield { type: 'interrupt.escalate', mode: 'async_resolution', reason: 'r', timeoutSeconds: 20 };
  yield { type: 'ask', key: 'k', text: '?', reminders: [{ afterSeconds: 10, text: 'r1' }, { afterSeconds: 30, text: 'r2' }] };"""),
    flow("hungry", """
  let all = [];
  try { for (;;) all.push(new Array(1e5).fill(1)); } catch (e) { all = null; yield { type: 'say', text: 'went on' }; }
  yield { type: 'tool', name: 'note', args: {} };"""),
    flow("deep", """
  const f = () => f();
  try { f(); } catch (e) { yield { type: 'say', text: 'went on' }; }
  yield { type: 'tool', name: 'note', args: {} };"""),
]
LIMITED = source(rateLimitPerUserPerMinute="2", rateLimitMessage="'slow down'")
RIGHTS = [*ROLES["boss"], "hitl.takeover.start", "hitl.takeover.message", "hitl.takeover.end"]
AGENTS = {
    "desk": source(*FLOWS, fallbackReply="'Oops.'", adminAuth=admin_auth(roles={**ROLES, "boss": RIGHTS})),
    "limited": LIMITED,
}


def change_code(server, before, after):
    """Replaces a text in the stored sources of agents while the server is down."""
    server.kill()
    with sqlite3.connect(server.directory / "tandem.db") as database:
        for row, document in database.execute("SELECT rowid, document FROM definitions").fetchall():
            text = document if isinstance(document, str) else document.decode()
            changed = text.replace(before, after)
            if changed != text:
                changed = changed if isinstance(document, str) else changed.encode()
                database.execute("UPDATE definitions SET document = ? WHERE rowid = ?", [changed, row])
    database.close()
    server.start()


def status_of(server, run):
    return server.call("GET", f"/v1/runs/{run}").json["status"]


def agent_events(server, agent_id, kind):
    """The events of one kind of an agent, in the order of their commits."""
    found, after = [], -1
    while True:
        page = server.ok("GET", f"/agents/{agent_id}/events?after={after}")
        if not page["events"]:
            return [e for e in found if e["type"] == kind]
        found, after = found + page["events"], page["lastPosition"]


def crashed_admins(server, chat, check):
    found = {}
    for point in ("before_commit", "after_commit"):
        one = chat("desk")
        one.start("deciding")
        server.crash(point, lambda: one.resolve(True))
        again = one.resolve(True) if point == "before_commit" else None
        kinds = one.types()
        found[point] = (one.delivered()[-1], kinds.count("admin.authz.granted"), kinds.count("hitl.escalation.resolved"), again and again.status)
    decided = ("decided resolved true", 1, 1)
    check("Z-226 (half: before and after the commit of a decision), Z-258 (half: of a decision), Z-152 (half: a crash around it): it is made, or it was never allowed",
          found, {"before_commit": (*decided, 200), "after_commit": (*decided, None)})
    two = chat("desk")
    two.say("hello")
    server.crash("after_commit", lambda: two.admin("POST", "/flows", {"flowId": "asking"}))
    check("Z-226, Z-258 (half: a flow that an admin started)", (two.delivered()[-1], two.paused_on), ("x?", "ask"))
    three = chat("desk")
    three.start("asking")
    server.crash("after_commit", lambda: three.admin("POST", "/takeover", {}))
    check("Z-90, Z-226 (half: a takeover takes effect within one commit)", three.mode, "live_takeover")
    server.crash("after_commit", lambda: three.admin("POST", "/takeover/messages", {"messageId": "h1", "text": "Ana here"}))
    check("Z-92, Z-226 (half: a text of a person)", three.delivered()[-1], "Ana here")
    server.crash("after_commit", lambda: three.admin("POST", "/handback", {}))
    server.clock()
    check("Z-93, Z-226 (half: a handback)", three.mode, None)
    server.crash("after_commit", lambda: three.admin("POST", "/mode", {"agentMode": "off"}))
    check("Z-241, Z-226 (half: the mode)", three.say("hello"), [])
    refused = two.admin("POST", "/resolve", {"approved": True})
    last = two.events("admin.authz.granted")[-1]["payload"]["action"]
    check("Z-144 (half: a right is recorded also where the session refuses)", (refused.status, last),
          (404, "hitl.escalation.resolve"))


def diverged_decisions(server, chat, check):
    one, two = chat("desk"), chat("desk")
    one.start("deciding")
    two.start("deciding")
    run = one.flow["flowRunId"]
    change_code(server, "ORIGINAL", "CHANGED")
    resolved = one.resolve(True).status
    server.clock(601)
    parked = one.flow, two.flow
    change_code(server, "CHANGED", "ORIGINAL")
    retried = server.admin("POST", f"/runs/{run}/divergence", {"action": "retry"}).status
    check("Z-152, Z-78, Z-216: a decision whose turn diverged is handed over by the retry",
          (resolved, parked, retried, one.delivered()[-1]), (200, (None, None), 200, "decided resolved true"))
    check("Z-216 (half: the user wrote nothing, and the next message gets the fallback reply once)",
          (two.delivered()[-1], two.say("hello"), two.say("hello")), ("ORIGINAL", ["Oops."], ["model speaks"]))


def retried_questions(server, chat, check):
    found = {}
    for flow_id, text, question in (("asking", "yes", "x?"), ("confirming", "yes", "Sure?")):
        one = chat("desk")
        one.start(flow_id, 300 if flow_id == "confirming" else None)
        run = one.flow["flowRunId"]
        before = status_of(server, run), one.question()["interruptId"]
        change_code(server, question, "CHANGED?")
        one.say(text)
        parked = status_of(server, run)
        change_code(server, "CHANGED?", question)
        server.admin("POST", f"/runs/{run}/divergence", {"action": "retry"})
        after = status_of(server, run), one.question()["interruptId"]
        found[flow_id] = parked, before == after, after[0]
    check("Z-216 (half: a retried run waits again, and the inbox shows its question)", found,
          dict.fromkeys(("asking", "confirming"), ("paused", True, "waiting-input")))


def deadlines(server, chat, check):
    found = {}
    for how in ("jump", "down"):
        people = {}
        for seconds in (100, 50, 10, 75, 20):
            one = chat("desk")
            one.start("confirming", seconds)
            people[one.session_id] = seconds
        if how == "down":
            server.kill()
            server.start_with(TANDEM_TEST_CLOCK_ADVANCE="200")
        server.clock(200 if how == "jump" else 0)
        ended = [e for e in agent_events(server, "desk", "hitl.confirm.timed_out") if e["sessionId"] in people]
        found[how] = [people[e["sessionId"]] for e in ended]
    check("Z-192 (half: the order between sessions): deadlines of several sessions take effect in their order, after a jump and after downtime",
          found, dict.fromkeys(("jump", "down"), [10, 20, 50, 75, 100]))
    one = chat("desk")
    one.start("reminding")
    server.clock(100)
    order = [e["payload"].get("candidate", {}).get("text") or e["payload"].get("text") or e["type"]
             for e in one.events("response:prepared", "hitl.escalation.timed_out")]
    check("Z-192 (half: those of one session)", order[1:], ["r1", "hitl.escalation.timed_out", "r2"])


def order_of_an_ask(server, chat, check):
    one = chat("desk")
    one.start("asking")
    wanted = ["flow.started", "response:prepared", "flow.paused", "response:sent"]
    check("§12.1: the events of a question", [kind for kind in one.types() if kind in wanted], wanted)


def ended_sessions(server, chat, check):
    one = chat("desk")
    one.start("deciding")
    escalation, item = one.get()["hitl"]["escalationId"], one.question()["interruptId"]
    one.admin("POST", "/end", {})
    routes = [(f"/escalations/{escalation}/resolve", {"approved": True}),
              (f"/interrupts/{item}:resolve", {"resumeValue": {"action": "accept"}})]
    answers = [server.admin("POST", path, body) for path, body in routes]
    check("§7.3, Z-203: nothing of an ended session can be decided, by whichever route",
          [(answer.status, answer.json["error"]) for answer in answers], [(410, "interrupt_gone")] * 2)


def refused_by_rate(server, chat, check):
    one = chat("limited")
    for number in range(5):
        one.post("x", mid=f"{one.user}-{number}")
    told = one.delivered().count("slow down")
    events = agent_events(server, "limited", "transport:inbound:ratelimited")
    check("Z-11: one event for each refusal", (told, len(events)), (3, 3))
    again = one.post("x", mid=f"{one.user}-0").json["status"]
    check("Z-8: a message that was answered before is a duplicate, also while the limit holds",
          (again, one.delivered().count("slow down")), ("duplicate", 3))


def limits(server, chat, check):
    found = {}
    for flow_id in ("hungry", "deep"):
        one = chat("desk")
        told = one.start(flow_id)
        found[flow_id] = told, [p["error"]["code"] for p in one.payloads("flow.failed")], len(one.tool_calls("note"))
    check("Z-209: code cannot catch the limits of memory and stack", found,
          dict.fromkeys(("hungry", "deep"), (["Oops."], ["flow_limit"], 0)))


if __name__ == "__main__":
    main(__doc__, AGENTS, [crashed_admins, diverged_decisions, retried_questions, deadlines, order_of_an_ask, ended_sessions,
                           refused_by_rate, limits])
