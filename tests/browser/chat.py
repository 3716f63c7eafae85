#!/usr/bin/env python3
"""Chats with an agent in one window and decides its escalation in another, in headless Chromium.

    chat.py --binary target/release/tandem [--screenshots DIR]

The visitor writes hostile text, asks for a refund and confirms it with a button. The escalation appears in the
console's inbox and on the desk, is decided there, and the flow goes on in the visitor's window. Both windows are
reloaded and lose nothing. The chat is also opened on another site by its script tag. Without Chromium the test
fails in CI and is skipped with a notice elsewhere.
"""
import argparse
import functools
import http.server
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from devtools import Browser, find_chromium  # noqa: E402
from host import ROOT, Host, Tally, eventually  # noqa: E402

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
LOG = "document.querySelector('#messages').textContent"
ONLINE = "document.querySelector('#connection')?.dataset.state === 'open'"
LIVE = "document.querySelector('#live')?.dataset.state === 'live'"
OWNED = "document.title === 'owned' || document.querySelector('main img[src=x]') !== null"
OVERFLOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

AGENT = """
import { createAgent } from 'tandem';

export default createAgent({
  prompt: 'You are the desk of a shop.',
  model: { provider: 'scripted', script: { answers: [], otherwise: { text: 'How can I help you today?' } } },
  finalizationStrategy: 'streaming',
  transports: { web: { title: 'Shop desk', origins: ['ORIGIN'] } },
  adminAuth: { builtin: 'keys' },
  flows: {
    refund: async function* (ctx) {
      const order = yield { type: 'ask', key: 'order', text: 'Which order is it about?' };
      const sure = yield { type: 'interrupt.confirm', question: 'Shall I ask for a refund of 700 EUR?' };
      if (!sure) { yield { type: 'say', text: 'Then not.' }; return; }
      yield { type: 'interrupt.escalate', mode: 'async_resolution', priority: 'high',
              reason: 'Refund of 700 EUR for order ' + order, metadata: { amount: 700, order } };
      yield { type: 'say', text: 'A colleague looks at it.' };
      const decision = yield { type: 'interrupt.wait', waitFor: 'admin_resolution' };
      yield { type: 'say', text: decision.approved ? 'Your refund was approved.' : 'Your refund was declined.' };
    },
  },
  beforeLLM: async (input) => input.text.includes('refund') ? { action: 'route_flow', flowId: 'refund' } : undefined,
});
"""


def say(page, text):
    page.type("#text", text)
    page.press("Enter")


def waits(page, text, what=None):
    page.wait(f"{LOG}.includes({text!r})", what or f"the text {text!r}")


def messages(page):
    return page.evaluate("[...document.querySelectorAll('.message .bubble')].map(b => b.textContent)")


def talk(page, base):
    """The visitor writes; what they write is shown as text."""
    page.open(f"{base}/chat/shop")
    page.wait(ONLINE, "an open channel")
    say(page, HOSTILE)
    waits(page, "How can I help you today?")
    page.wait("document.querySelectorAll('.message.pending').length === 0", "an acknowledged message")
    if HOSTILE not in messages(page):
        raise AssertionError(f"the text is not shown as it was written: {messages(page)}")
    if page.evaluate(OWNED):
        raise AssertionError("hostile text became part of the page")


def ask_for_refund(page, pictures):
    say(page, "I want a refund")
    waits(page, "Which order is it about?")
    say(page, "A-17 " + HOSTILE)
    waits(page, "Shall I ask for a refund of 700 EUR?")
    page.wait("document.querySelectorAll('#options button').length === 2", "two buttons")
    page.screenshot(pictures / "chat-question.png")
    page.click("#options button")
    waits(page, "A colleague looks at it.")
    page.wait("document.querySelector('#options').hidden", "no buttons after the answer")


def desk(page, base):
    """The conversation is on the desk, with its transcript, its flow and its open question."""
    page.open(f"{base}/console/conversations")
    page.wait("document.querySelector('#conversation-rows')?.textContent.includes('Waits for a decision')", "the conversation")
    page.click("#conversation-rows a")
    page.wait("document.querySelector('#conversation') !== null", "the page of the conversation")
    page.wait(LIVE, "a live conversation")
    text = page.evaluate("document.querySelector('main').textContent")
    for part in ("A colleague looks at it.", HOSTILE, "admin_resolution", "Decide in the inbox"):
        if part not in text:
            raise AssertionError(f"the desk does not show {part!r}: {text}")
    if page.evaluate(OWNED):
        raise AssertionError("hostile text became part of the console")


def flow_run(page):
    """The flow of the conversation is a run like others."""
    page.click("[data-part=flow] a.id")
    page.wait("location.pathname.startsWith('/console/runs/flow-')", "the page of the flow run")
    page.wait("document.querySelector('[data-part=header]')?.dataset.status === 'waiting-approval'", "its status")
    page.call("Page.navigateToHistoryEntry", entryId=page.call("Page.getNavigationHistory")["entries"][-2]["id"])
    page.wait("document.querySelector('#conversation') !== null", "the conversation again")
    page.wait(LIVE, "a live conversation")


def desk_follows(page, visitor):
    page.evaluate("window.notReloaded = true")
    say(visitor, "Is somebody there?")
    page.wait("document.querySelector('#transcript-scroll').textContent.includes('Is somebody there?')", "the new message")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")


def decide(page, visitor):
    page.click("[data-part=questions] a.button")
    page.wait("document.querySelector('#card')?.dataset.open !== undefined", "the card in the inbox")
    page.wait(LIVE, "a live inbox")
    text = page.evaluate("document.querySelector('#card').textContent")
    for part in ("Refund of 700 EUR", "Last messages", "I want a refund"):
        if part not in text:
            raise AssertionError(f"the card does not show {part!r}: {text}")
    if page.evaluate(OWNED):
        raise AssertionError("hostile text became part of the inbox")


def approve(page, visitor):
    page.click("#decide button[value=accept]")
    page.wait("document.querySelector('#card-outcome')?.textContent === 'Approved'", "the decision")
    waits(visitor, "Your refund was approved.")


def reload_both(page, visitor):
    before = messages(visitor)
    visitor.call("Page.reload")
    visitor.wait(ONLINE, "an open channel after a reload")
    waits(visitor, "Your refund was approved.")
    if messages(visitor) != before:
        raise AssertionError(f"before {before}, after {messages(visitor)}")
    page.call("Page.reload")
    page.wait("document.querySelector('#card-outcome')?.textContent === 'Approved'", "the decision after a reload")


def survives_restart(visitor, host):
    """What is written while the host is away is sent once it is back, once."""
    host.stop()
    visitor.wait(f"!({ONLINE})", "a closed channel")
    say(visitor, "Written while you were away")
    if visitor.evaluate("document.querySelectorAll('.message.pending').length") != 1:
        raise AssertionError("the message is not shown as waiting")
    host.start()
    visitor.wait("document.querySelectorAll('.message.pending').length === 0", "the message acknowledged", 40)
    visitor.wait(f"{LOG}.split('How can I help you today?').length === 3", "its answer")
    if messages(visitor).count("Written while you were away") != 1:
        raise AssertionError(messages(visitor))


def no_overflow(page):
    if page.evaluate(OVERFLOW):
        raise AssertionError("the page is wider than the window")


class Site:
    """Another site that shows the chat."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-site-")
        quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        handler = functools.partial(quiet, directory=self.folder.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def write(self, base):
        tag = f'<script src="{base}/chat/embed.js" data-agent="shop" data-label="Ask us" async></script>'
        page = f"<!doctype html><meta name=viewport content='width=device-width'><title>Shop</title><link rel=icon href='data:,'><h1>A shop</h1>{tag}"
        (Path(self.folder.name) / "index.html").write_text(page)

    def close(self):
        self.server.shutdown()
        self.folder.cleanup()


def embedded(page, site):
    """One script tag shows the button; the frame opens the chat."""
    page.open(site.origin + "/index.html")
    page.wait("[...document.body.children].some(e => e.tagName === 'DIV')", "the button of the chat")
    # The button is in a closed shadow tree: found by its place.
    width, height = page.evaluate("[innerWidth, innerHeight]")
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=width - 50, y=height - 45, button="left", clickCount=1)
    frames = lambda: page.call("Page.getFrameTree")["frameTree"].get("childFrames", [])  # noqa: E731
    shown = eventually(lambda: [f for f in frames() if "/chat/shop" in f["frame"]["url"]], 10, "the frame of the chat")
    if shown[0]["frame"].get("unreachableUrl"):
        raise AssertionError("the frame was refused")


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
    tally, pictures, site = Tally(), Path(a.screenshots), Site()
    agents = tempfile.TemporaryDirectory(prefix="tandem-agents-")
    (Path(agents.name) / "shop").mkdir()
    (Path(agents.name) / "shop" / "agent.ts").write_text(AGENT.replace("ORIGIN", site.origin))
    host = Host(a.binary, options=("--agents", agents.name, "--print-login-link")).start()
    browser = None
    try:
        link = eventually(lambda: re.search(r"http://\S*/console/\S*", host.log()), 10, "a printed link").group(0)
        browser = Browser(program)
        visitor, page = browser.page(), browser.page()
        tally.attempt("a visitor talks to the agent, hostile text stays text", lambda: talk(visitor, host.base))
        tally.attempt("a flow asks, and a button confirms", lambda: ask_for_refund(visitor, pictures))
        page.open(link)
        page.wait("location.pathname === '/console/inbox'", "the inbox after signing in")
        tally.attempt("the desk shows the conversation", lambda: desk(page, host.base))
        tally.attempt("its flow is a run", lambda: flow_run(page))
        tally.attempt("the desk follows the conversation", lambda: desk_follows(page, visitor))
        page.screenshot(pictures / "desk-conversation.png")
        tally.attempt("the escalation is a card of the inbox", lambda: decide(page, visitor))
        page.screenshot(pictures / "escalation.png")
        tally.attempt("the flow goes on in the other window after the decision", lambda: approve(page, visitor))
        tally.attempt("both windows are reloaded and lose nothing", lambda: reload_both(page, visitor))
        for width, height, phone in ((1280, 900, False), (390, 844, True)):
            name = "phone" if phone else "desktop"
            visitor.resize(width, height, phone)
            tally.attempt(f"the chat fits a {name}", lambda: no_overflow(visitor))
            visitor.screenshot(pictures / f"chat-{name}.png")
            page.resize(width, height, phone)
            for path, shot in (("/console/conversations", "desk"), (None, "desk-conversation")):
                if path:
                    page.open(host.base + path)
                    page.wait("document.querySelector('#conversation-rows a') !== null", "the list")
                else:
                    page.click("#conversation-rows a")
                    page.wait("document.querySelector('#conversation') !== null", "the conversation")
                page.wait(LIVE, "a live page")
                tally.attempt(f"{shot} fits a {name}", lambda: no_overflow(page))
                page.screenshot(pictures / f"{shot}-{name}.png")
        visitor.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        visitor.screenshot(pictures / "chat-dark.png")
        tally.check("no errors and no policy violations in the browser", visitor.complaints + page.complaints)
        tally.attempt("a message written while the host is away arrives once", lambda: survives_restart(visitor, host))
        site.write(host.base)
        guest = browser.page()
        tally.attempt("one script tag shows the chat on another site", lambda: embedded(guest, site))
        guest.wait("true", "a moment")
        guest.screenshot(pictures / "chat-embedded.png")
        tally.check("no errors on the other site", guest.complaints)
        print(f"screenshots in {pictures}")
        return tally.close()
    finally:
        if browser:
            browser.close()
        host.close()
        site.close()
        agents.cleanup()


if __name__ == "__main__":
    sys.exit(main())
