#!/usr/bin/env python3
"""A person takes a conversation over: the user in one window, the admin in another, in headless Chromium.

    takeover.py --binary target/release/tandem [--screenshots DIR]

The user asks for a person. The admin takes the conversation over with the button, both write and see each other's
texts while the agent is silent, the admin hands back with a note, and the agent answers again. Then the page shows what
the agent would have said, also where a flow waits. A bridge to a desk is shown side by side, and written to. The pages of schedules are opened too. Without Chromium the test fails in CI and is skipped
with a notice elsewhere.
"""
import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from chat import HOSTILE, LIVE, ONLINE, OWNED, messages, no_overflow, say, waits  # noqa: E402
from devtools import Browser, find_chromium  # noqa: E402
from host import ROOT, Host, Tally, eventually  # noqa: E402

MAIN = "document.querySelector('main').textContent"
COLUMNS = "document.querySelector('.bridge-messages').textContent"
TRANSCRIPT = "document.querySelector('#transcript-scroll').textContent"
AGENT = """
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You are the desk of a shop.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'How can I help you today?' } } },
  transports: { web: { title: 'Shop desk' } },
  adminAuth: { builtin: 'keys', roles: { planner: ['schedule.manage'] } },
  hitl: {
    humanKeyword: 'person', escalationDefaults: { autoAckText: 'A colleague comes.' },
    targets: { finance: { transport: 'loopback', address: 'finance', label: 'Finance' } },
  },
  beforeLLM: async ({ text }) => (['refund', 'order'].includes(text)
    ? { action: 'route_flow', flowId: text } : { action: 'continue' }),
  flows: {
    refund: async function* (ctx) {
      yield* ctx.proxyToAdmin({ target: 'finance' });
      for (;;) {
        const input = yield* ctx.waitForAdminInput({
          processBeforeForward: async ({ text }) => {
            if (text.includes('secret')) throw new Error('not for users');
            if (text.includes('think')) return { forwardToUser: false, reason: 'advice' };
            return text.includes('APPROVE') ? { text: 'Your refund is approved.', reason: 'decided' } : {};
          },
        });
        if (input.text.includes('APPROVE')) return;
      }
    },
    order: async function* (ctx) {
      const order = yield { type: 'ask', key: 'order', text: 'What is its number?' };
      yield { type: 'say', text: `I look for ${order}.` };
      yield { type: 'ask', key: 'more', text: 'Anything else?' };
    },
    offer: async function* (ctx) { yield { type: 'say', text: 'New tea has arrived.' }; },
  },
  scheduler: { timezone: 'Europe/Berlin' },
  schedules: {
    spring: { flowId: 'offer', trigger: { type: 'cron', expr: '* * * * *' }, allowSessionBootstrap: true,
      onMissed: { policy: 'catch_up', maxRuns: 1 },
      target: { kind: 'segment', campaignId: 'spring', segment: { type: 'all' } } },
    morning: { flowId: 'offer', trigger: { type: 'cron', expr: '30 8 * * mon-fri' },
      target: { kind: 'user', userExternalId: 'ana' } },
  },
});
"""


def ask_for_a_person(visitor, base):
    visitor.open(f"{base}/chat/shop")
    visitor.wait(ONLINE, "an open channel")
    say(visitor, "Hello")
    waits(visitor, "How can I help you today?")
    say(visitor, "person")
    waits(visitor, "A colleague comes.")


def take_over(page, base):
    """The escalation is listed, and a button takes the conversation over."""
    page.open(f"{base}/console/escalations")
    page.wait("document.querySelector('#escalation-rows a') !== null", "the escalation")
    page.wait(LIVE, "a live list")
    page.click("#escalation-rows .c-run a")
    page.wait("document.querySelector('#conversation') !== null", "the page of the conversation")
    page.wait(LIVE, "a live conversation")
    page.wait(f"{MAIN}.includes('The user waits for a person.')", "the user waiting")
    page.click("#action-takeover")
    page.wait(f"{MAIN}.includes('has the conversation. The agent is silent.')", "the admin having the conversation")
    page.wait(LIVE, "a live conversation after the takeover")


def write(page, text):
    page.type("#reply-text", text)
    page.click("#action-reply")
    page.wait(f"{TRANSCRIPT}.includes({text!r})", f"{text!r} in the transcript")
    page.wait(LIVE, "a live conversation after the text")


def both_write(visitor, page):
    """Each sees what the other writes; the agent says nothing."""
    before = messages(visitor).count("How can I help you today?")
    page.evaluate("window.notReloaded = true")
    say(visitor, "Is somebody there? " + HOSTILE)
    page.wait(f"{TRANSCRIPT}.includes('Is somebody there?')", "the user's text on the desk")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")
    write(page, "Ana here. Which order is it?")
    waits(visitor, "Ana here. Which order is it?")
    say(visitor, "A-17")
    page.wait(f"{TRANSCRIPT}.includes('A-17')", "the order on the desk")
    write(page, "It comes tomorrow.")
    waits(visitor, "It comes tomorrow.")
    if messages(visitor).count("How can I help you today?") != before:
        raise AssertionError(f"the agent was not silent: {messages(visitor)}")
    if page.evaluate(OWNED) or visitor.evaluate(OWNED):
        raise AssertionError("hostile text became part of a page")


def hand_back(visitor, page):
    """The agent answers again, and the user sees nothing of the note."""
    page.click(".handback summary")
    page.type("#handback-note", "The order is on its way")
    page.click("#action-handback")
    page.wait("document.querySelector('#action-takeover') !== null", "the button that takes over")
    page.wait(f"{MAIN}.includes('With the agent')", "the agent having the conversation")
    answers = messages(visitor).count("How can I help you today?")
    say(visitor, "Thank you")
    visitor.wait(f"[...document.querySelectorAll('.message .bubble')]"
                 f".filter(b => b.textContent === 'How can I help you today?').length > {answers}", "the agent's answer")
    if any("on its way" in text for text in messages(visitor)):
        raise AssertionError("the user was sent the note")
    page.wait(f"{TRANSCRIPT}.split('How can I help you today?').length === {answers + 2}", "the answer on the desk")


def write_as_desk(page, text, outcome):
    page.type("#bridge-input", text)
    page.click("#action-bridge-input")
    page.wait(f"{COLUMNS}.includes({text!r}) && {COLUMNS}.includes({outcome!r})", f"{text!r} beside the conversation")
    page.wait(LIVE, "a live conversation after the input")


def relay(visitor, page, base):
    """A flow relays to a desk. Both columns follow what is written, and the form writes as the desk."""
    visitor.open(f"{base}/chat/shop")
    visitor.wait(ONLINE, "an open channel")
    say(visitor, "refund")
    page.wait("document.querySelector('#action-bridge-input') !== null", "the form to write as the desk")
    page.wait(f"{COLUMNS}.includes('to Finance began, mode mirror')", "the beginning of the bridge")
    page.type("#bridge-input", "half a tex")
    page.evaluate("window.notReloaded = true")
    say(visitor, "Please hurry " + HOSTILE)
    page.wait(f"{COLUMNS}.includes('] Please hurry')", "the text as the desk got it")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")
    if page.evaluate("document.querySelector('#bridge-input').value") != "half a tex":
        raise AssertionError("what was being written is gone")
    write_as_desk(page, "half a text", "Forwarded")
    waits(visitor, "[Finance] half a text")
    write_as_desk(page, "the secret", "Dropped")
    write_as_desk(page, "I think yes", "For the flow only")
    if any("secret" in text or "think" in text for text in messages(visitor)):
        raise AssertionError("the user got what the filter held back")
    if page.evaluate(OWNED):
        raise AssertionError("hostile text became part of the page")


def end_relay(visitor, page):
    """After its end both columns stay, without the form."""
    write_as_desk(page, "APPROVE", "Forwarded, changed")
    waits(visitor, "[Finance] Your refund is approved.")
    page.wait("document.querySelector('#action-bridge-input') === null", "no form")
    page.wait(f"{COLUMNS}.includes('ended: ')", "the end of the bridge")


def aligned(page, width):
    """What the desk got stands beside what the user wrote, at its height; on a phone below it."""
    both = page.evaluate("""(() => {
      const line = (kind) => [...document.querySelectorAll(`.side-by-side ${kind}`)]
        .find((line) => line.textContent.includes('Please hurry')).getBoundingClientRect();
      const said = line('.said .line'), passed = line('.passed .line');
      return { beside: passed.left >= said.right - 1 && Math.abs(passed.top - said.top) < 2, below: passed.top >= said.bottom - 1 };
    })()""")
    if both != {"beside": width > 620, "below": width <= 620}:
        raise AssertionError(both)


def order(visitor, page):
    """A flow asks, somebody takes over: the comparison goes on with the flow."""
    say(visitor, "order")
    waits(visitor, "What is its number?")
    page.wait("document.querySelector('#action-takeover') !== null", "the button that takes over")
    page.click("#action-takeover")
    page.wait("document.querySelector('#action-reply') !== null", "the form for a text")
    page.wait(LIVE, "a live conversation")
    say(visitor, "B-4")
    page.wait(f"{TRANSCRIPT}.includes('B-4')", "the order on the desk")
    write(page, "It is on its way.")
    page.click("#action-compare")
    page.wait("document.querySelectorAll('.compared').length > 0", "the pairs")
    text = page.evaluate("[...document.querySelectorAll('.compared')].at(-1).textContent")
    for part in ("It is on its way.", "I look for B-4.", "Anything else?", "the flow order waits: ask"):
        if part not in text:
            raise AssertionError(f"the last pair does not show {part!r}: {text}")


def compare(page):
    """What the person said stands beside what the agent would have said, and can be saved."""
    page.wait(LIVE, "a live conversation")
    page.click("#action-compare")
    page.wait("document.querySelectorAll('.compared').length === 2", "two pairs")
    page.wait("!document.querySelector('#save-lines').hidden", "the button for the download")
    text = page.evaluate(MAIN)
    for part in ("Ana here. Which order is it?", "It comes tomorrow.", "How can I help you today?", HOSTILE):
        if part not in text:
            raise AssertionError(f"the page does not show {part!r}: {text}")
    if page.evaluate(OWNED):
        raise AssertionError("hostile text became part of the page")


def download(page):
    """The file has the pairs as lines of JSON."""
    with tempfile.TemporaryDirectory(prefix="tandem-download-") as folder:
        page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        page.click("#save-lines")
        saved = eventually(lambda: list(Path(folder).glob("compared-*.jsonl")), 10, "a saved file")[0]
        pairs = [json.loads(line) for line in eventually(saved.read_text, 10, "its lines").splitlines()]
    answers = [(pair["human"][0]["text"], pair["agent"]["texts"]) for pair in pairs]
    agent = ["How can I help you today?"]
    if answers != [("Ana here. Which order is it?", agent), ("It comes tomorrow.", agent)]:
        raise AssertionError(answers)


def schedules(page, base):
    """The list says when each takes place; the page of one says when next, and offers nothing this key may not do."""
    page.open(f"{base}/console/schedules")
    page.wait("document.querySelectorAll('#schedule-rows a').length === 2", "two schedules")
    page.wait(LIVE, "a live list")
    text = page.evaluate(MAIN)
    for part in ("At 08:30, Monday to Friday", "30 8 * * mon-fri", "Europe/Berlin", "Every minute", "segment all"):
        if part not in text:
            raise AssertionError(f"the list does not show {part!r}: {text}")


def schedule(page, base, name):
    page.open(f"{base}/console/schedules/cfg%3Ashop%3A{name}")
    page.wait("document.querySelectorAll('.occurrences li').length === 5", "five occurrences")
    page.wait(LIVE, "a live page")


def campaign_runs(page, base):
    """A run appears without a reload, with its recipients on a page of its own."""
    schedule(page, base, "spring")
    page.wait("document.querySelector('#schedule-run-rows a') !== null", "a run of the campaign", 90)
    page.wait("document.querySelector('#schedule-run-rows').textContent.includes('1 recipient: ')", "its outcome")
    page.click("#schedule-run-rows a")
    page.wait("location.pathname.startsWith('/console/schedule-runs/')", "the page of the run")
    page.wait("document.querySelector('main td.c-run a') !== null", "the recipient")


def sign_in_as_planner(page, host):
    """A key with the role that manages schedules."""
    scopes = ["runs:read", "runs:create", "runs:cancel"]
    made = host.call("POST", "/v1/host/tandem/keys", {"name": "planner", "scopes": scopes, "roles": ["planner"]})
    page.open(f"{host.base}/console/login")
    page.wait("document.querySelector('#key') !== null", "the form to sign in")
    page.type("#key", made.json["secret"])
    page.click("main button.primary")
    page.wait("document.querySelector('.nav') !== null", "the console after signing in")


def pause_and_resume(page, base):
    """The buttons are there for whom the agent's rules give the right, and not for others."""
    schedule(page, base, "morning")
    page.click("#action-pause")
    page.wait(f"{MAIN}.includes('Nothing while it is paused.')", "the paused schedule")
    page.wait("document.querySelector('#action-resume') !== null", "the button that resumes")
    page.wait(LIVE, "a live page of a paused schedule")
    page.click("#action-resume")
    page.wait("document.querySelectorAll('.occurrences li').length === 5", "the resumed schedule")
    page.wait("document.querySelector('#action-pause') !== null", "the button that pauses")
    page.wait(LIVE, "a live page")


def cancel(page):
    page.click("#action-cancel")
    page.wait(f"{MAIN}.includes('It does not take place any more.')", "the cancelled schedule")
    if not page.dialogs:
        raise AssertionError("nobody asked whether to cancel")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", default="target/release/tandem")
    p.add_argument("--screenshots", default=str(ROOT / "target" / "browser"))
    a = p.parse_args()
    program = find_chromium()
    if not program:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'NOTICE: skipped'}: there is no chromium (apt-get install chromium)")
        return 1 if in_ci else 0
    tally, pictures = Tally(), Path(a.screenshots)
    agents = tempfile.TemporaryDirectory(prefix="tandem-agents-")
    (Path(agents.name) / "shop").mkdir()
    (Path(agents.name) / "shop" / "agent.ts").write_text(AGENT)
    host = Host(a.binary, options=("--agents", agents.name, "--print-login-link")).start()
    browser = None
    sizes = ((1280, 900, False), (390, 844, True))

    def pictured(page, name, part=None):
        """The page fits a desktop and a phone. The picture shows this part of it."""
        for width, height, phone in sizes:
            page.resize(width, height, phone)
            device = "phone" if phone else "desktop"
            tally.attempt(f"{name} fits a {device}", lambda: no_overflow(page))
            if part:
                page.evaluate(f"document.querySelector({part!r}).scrollIntoView()")
            page.screenshot(pictures / f"{name}-{device}.png")
        page.resize(*sizes[0])

    try:
        link = eventually(lambda: re.search(r"http://\S*/console/\S*", host.log()), 10, "a printed link").group(0)
        browser = Browser(program)
        visitor, page = browser.page(), browser.page()
        page.open(link)
        page.wait("location.pathname.startsWith('/console/')", "a page after signing in")
        page.wait("document.querySelector('.nav') !== null", "the navigation")
        tally.attempt("a user asks for a person", lambda: ask_for_a_person(visitor, host.base))
        tally.attempt("the admin takes the conversation over with the button", lambda: take_over(page, host.base))
        tally.attempt("both write, and the agent is silent", lambda: both_write(visitor, page))
        pictured(page, "takeover")
        tally.attempt("after the handback the agent answers again", lambda: hand_back(visitor, page))
        page.wait(LIVE, "a live conversation")
        pictured(page, "handed-back")
        conversation = page.evaluate("location.href")
        tally.attempt("the page shows what the agent would have said", lambda: compare(page))
        pictured(page, "compared-answers")
        tally.attempt("the pairs are saved as lines of JSON", lambda: download(page))
        page.open(conversation)
        page.wait(LIVE, "a live conversation")
        tally.attempt("a bridge is shown side by side", lambda: relay(visitor, page, host.base))
        for width, height, phone in sizes:
            page.resize(width, height, phone)
            tally.attempt(f"both columns are aligned at {width}", lambda: aligned(page, width))
        page.resize(*sizes[0])
        pictured(page, "bridge", ".bridge-messages")
        tally.attempt("the bridge is shown after its end", lambda: end_relay(visitor, page))
        pictured(page, "bridge-ended", ".bridge-messages")
        tally.attempt("a comparison goes on with the flow", lambda: order(visitor, page))
        pictured(page, "compared-flow", ".compared:last-of-type")
        tally.attempt("schedules are listed", lambda: schedules(page, host.base))
        pictured(page, "schedules")
        tally.attempt("a schedule shows what comes next", lambda: schedule(page, host.base, "morning"))
        pictured(page, "schedule")
        tally.attempt("the run of a campaign shows its recipients", lambda: campaign_runs(page, host.base))
        pictured(page, "schedule-run")
        schedule(page, host.base, "spring")
        pictured(page, "campaign")
        if page.evaluate("document.querySelector('#action-pause') !== null"):
            tally.check("a key without the right is offered no buttons", ["it is"])
        tally.attempt("somebody with the right signs in", lambda: sign_in_as_planner(page, host))
        tally.attempt("buttons pause and resume a schedule", lambda: pause_and_resume(page, host.base))
        pictured(page, "schedule-buttons")
        tally.attempt("a button cancels a schedule", lambda: cancel(page))
        tally.check("no errors and no policy violations in the browser", visitor.complaints + page.complaints)
        print(f"screenshots in {pictures}")
        return tally.close()
    finally:
        if browser:
            browser.close()
        host.close()
        agents.cleanup()


if __name__ == "__main__":
    sys.exit(main())
