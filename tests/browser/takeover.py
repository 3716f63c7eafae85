#!/usr/bin/env python3
"""A person takes a conversation over: the user in one window, the admin in another, in headless Chromium.

    takeover.py --binary target/release/tandem [--screenshots DIR]

The user asks for a person. The admin takes the conversation over with the button, both write and see each other's
texts while the agent is silent, the admin hands back with a note, and the agent answers again. Then the page shows what
the agent would have said. The pages of schedules are opened too. Without Chromium the test fails in CI and is skipped
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
TRANSCRIPT = "document.querySelector('#transcript-scroll').textContent"
AGENT = """
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You are the desk of a shop.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'How can I help you today?' } } },
  transports: { web: { title: 'Shop desk' } },
  adminAuth: { builtin: 'keys', roles: { planner: ['schedule.manage'] } },
  hitl: { humanKeyword: 'person', escalationDefaults: { autoAckText: 'A colleague comes.' } },
  flows: {
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

    def pictured(page, name):
        """The page fits a desktop and a phone."""
        for width, height, phone in sizes:
            page.resize(width, height, phone)
            device = "phone" if phone else "desktop"
            tally.attempt(f"{name} fits a {device}", lambda: no_overflow(page))
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
        tally.attempt("the page shows what the agent would have said", lambda: compare(page))
        pictured(page, "compared-answers")
        tally.attempt("the pairs are saved as lines of JSON", lambda: download(page))
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
