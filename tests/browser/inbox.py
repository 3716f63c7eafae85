"""The inbox, used with the keyboard and on a phone: open a question, correct a form, approve, see the run complete,
reload without losing anything."""
import json

from host import KEY, eventually, node, workflow

CARD_OPEN = "document.querySelector('#card')?.dataset.open !== undefined"
OUTCOME = "document.querySelector('#card-outcome')?.textContent"
LIVE = "document.querySelector('#live')?.dataset.state === 'live'"
# The escalation of the sample conversation stays open; these are the others.
OTHERS = "[...document.querySelectorAll('#inbox-rows li[data-id]')].filter(li => !li.textContent.includes('euro for order'))"
ROWS = f"{OTHERS}.length"
STATUS = "document.querySelector('[data-part=header]')?.dataset.status"
FOCUS = "document.activeElement"
AMOUNT = "[name=\"v/editedArtifactData/amount\"]"


def enabled_approvals(page):
    """The enabled approval buttons."""
    buttons = "[...document.querySelectorAll('#decide button[name=action]')]"
    return page.evaluate(f"{buttons}.filter(b => !b.hidden && !b.disabled && b.value.includes('accept'))"
                         ".map(b => b.value).join()")


def opens(page, link):
    """The login link opens the inbox with the open refund."""
    page.open(link)
    page.wait("location.pathname === '/console/inbox'", "the inbox after signing in")
    page.wait("document.querySelector('#inbox-rows')?.textContent.includes('Refund')", "the waiting refund")
    page.wait(LIVE, "a live inbox")


def choose(page):
    """With the keyboard only: selects the question, opens it, checks its content."""
    page.press("j")
    page.wait(f"{FOCUS}.matches('a.question')", "focus on the first question")
    page.press("Enter")
    page.wait(CARD_OPEN, "the card")
    page.wait(LIVE, "a live card")
    text = page.evaluate("document.querySelector('#card').textContent")
    for part in ("Refund ada@example.com 129 EUR?", "Arrived broken", "What happens next", "Pay out", "Decline politely",
                 "Events before this question", "run.started"):
        if part not in text:
            raise AssertionError(f"the card does not show {part!r}: {text}")
    return page.evaluate("location.pathname")


def correct(page):
    """An invalid value is refused with an error beside its field; the entered values stay."""
    page.evaluate("window.notReloaded = true")
    page.press("?")
    page.wait("document.querySelector('#keys-help').open", "the help")
    page.press("?")
    page.wait("!document.querySelector('#keys-help').open", "the help gone")
    page.press("e")
    page.wait(f"document.querySelector('#edit').open && {FOCUS}.closest('#edit') !== null", "focus in the form")
    amount = AMOUNT
    if enabled_approvals(page) != "accept":
        raise AssertionError(f"nothing is changed, yet {enabled_approvals(page)!r} is offered")
    kinds = page.evaluate("[...document.querySelectorAll('#edit input, #edit select')].map(e => e.type).join()")
    for kind in ("number", "email", "date", "checkbox", "select-one"):
        if kind not in kinds:
            raise AssertionError(f"no {kind} field among {kinds}")
    page.evaluate("document.querySelector('#decide').noValidate = true")
    page.type(amount, "9999")
    if enabled_approvals(page) != "edit-accept":
        raise AssertionError(f"there are changes, yet {enabled_approvals(page)!r} is offered")
    page.click("#decide button[value=edit-accept]")
    page.wait(f"document.querySelector('{amount}')?.getAttribute('aria-invalid') === 'true'", "the complaint")
    shown = page.evaluate(f"document.querySelector('{amount}').closest('.field').textContent")
    if "maximum" not in shown or page.evaluate(f"document.querySelector('{amount}').value") != "9999":
        raise AssertionError(f"not beside its field: {shown!r}")
    if not page.evaluate(CARD_OPEN):
        raise AssertionError("the card left without a decision")
    if page.evaluate(f"{FOCUS} !== document.querySelector('{amount}')"):
        raise AssertionError("the focus is not on the wrong field")
    page.press("Escape")


def approve(page):
    """A new value, then the key of an approval: the edit is recorded, and the card changes when the event
    arrives."""
    page.evaluate("""new MutationObserver(() => {
        const sent = document.querySelector('form[data-state=sent] button[value=edit-accept]');
        if (sent) window.sawSent = sent.textContent;
    }).observe(document.querySelector('.inbox-card'), {subtree: true, childList: true, attributes: true})""")
    page.press("e")
    page.type(AMOUNT, "99")
    page.press("Escape")
    if page.evaluate("document.querySelector('#edited-note').hidden"):
        raise AssertionError("the card does not say that there are changes")
    page.press("a")
    page.wait(f"{OUTCOME} === 'Approved with changes'", "the decision")
    text = page.evaluate("document.querySelector('#card .changes').textContent")
    if "129" not in text or "99" not in text:
        raise AssertionError(f"before and after are not shown: {text!r}")
    page.wait(f"{ROWS} === 0", "the question gone from the list")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")
    if page.evaluate("window.sawSent") != "Sent…":
        raise AssertionError("the button never said that it was sent")


def completes(page, host):
    page.click("#card .notice.ended a")
    page.wait(f"{STATUS} === 'completed'", "the run completed", 20)
    page.wait("document.querySelector('.people .changes')?.textContent.includes('99')", "the change on the run's page")
    run = page.evaluate("location.pathname.split('/').pop()")
    received = [e["payload"] for e in host.events(run) if e["type"] == "approval.received"]
    if [(r["action"], r["editedArtifactData"]["amount"]) for r in received] != [("edit-accept", 99)]:
        raise AssertionError(f"recorded: {json.dumps(received)}")


def reload(page, base, question):
    page.call("Page.reload")
    page.wait(f"{STATUS} === 'completed'", "the run after a reload")
    page.open(base + question)
    page.wait(f"{OUTCOME} === 'Approved with changes'", "the decision after a reload")
    if page.evaluate(CARD_OPEN):
        raise AssertionError("a decided question is open")


def ask(host):
    """Starts a run with a set of questions and one with a long proposed text."""
    questions = [{"id": "colour", "question": "Which colour?", "schema": {"enum": ["red", "blue"]}},
                 {"id": "count", "question": "How many?", "schema": {"type": "integer", "minimum": 1}},
                 {"id": "why", "question": "Why?"}]
    host.call("PUT", "/v1/host/tandem/workflows/survey",
              workflow("survey", [node("ask", "core.clarificationGate", questions=questions)]))
    long = {"note": "word " * 2000, "unbroken": "x" * 900, "lines": [{"sku": "a", "n": 1}]}
    host.call("PUT", "/v1/host/tandem/workflows/long",
              workflow("long", [node("gate", "core.approvalGate", title="A long proposal " + "y" * 120,
                                     actions=["accept", "reject", "edit-accept"], artifactData=long)]))
    return host.create("survey"), host.create("long")


def no_overflow(page, what):
    page.wait("document.readyState === 'complete'", "the page with its styles")  # without them the layout is wide
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        raise AssertionError(f"{what} is {wide} px too wide")


def phone(page, host, pictures):
    """390 px: nothing overflows, and a set of questions is answered by tapping."""
    survey, _ = ask(host)
    page.resize(390, 844, True)
    try:
        page.open(f"{host.base}/console/inbox?sort=newest")
        page.wait(f"{ROWS} === 2", "both questions")
        no_overflow(page, "the list")
        page.screenshot(pictures / "inbox-phone.png")
        page.click("#inbox-rows li:first-child a")
        page.wait(f"{CARD_OPEN} && document.querySelector('#card').textContent.includes('long proposal')", "the card")
        page.evaluate("document.querySelectorAll('#card details').forEach(d => d.open = true)")
        no_overflow(page, "the card")
        page.screenshot(pictures / "card-phone.png")
        if page.evaluate("getComputedStyle(document.querySelector('.inbox-list')).display") != "none":
            raise AssertionError("list and card share a phone's screen")
        page.click("#card .back a")
        page.wait("location.pathname === '/console/inbox'", "back in the list")
        page.click("#inbox-rows li:nth-child(2) a")
        page.wait(f"{CARD_OPEN} && document.querySelector('[name=\"v/answers/why\"]') !== null", "the questions")
        page.wait(LIVE, "a live card")
        page.evaluate("document.querySelector('[name=\"v/answers/colour\"]').value = '1'")
        page.type("[name='v/answers/count']", "3")
        page.type("[name='v/answers/why']", "Because.")
        no_overflow(page, "the form")
        page.click("#decide button[type=submit]")
        page.wait(f"{OUTCOME} === 'Answered'", "the answers taken")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    run = host.ended(survey)
    if run["status"] != "completed":
        raise AssertionError(f"the survey is {run['status']}")
    answered = [e for e in host.events(survey) if e["type"] == "clarification.resolved"]
    expected = {"colour": "blue", "count": 3, "why": "Because."}
    if answered[0]["payload"]["answers"] != expected:
        raise AssertionError(f"answers: {json.dumps(answered[0]['payload'])}")


def decided_on_phone(page, host, question, pictures):
    """The edit is readable on a narrow screen, on the card and on the run page."""
    page.resize(390, 844, True)
    try:
        page.open(host.base + question)
        page.wait("document.querySelector('#card .changes') !== null", "the changes")
        no_overflow(page, "the decided card")
        page.screenshot(pictures / "decided-phone.png")
        page.click("#card .notice.ended a")
        page.wait("document.querySelector('.people .changes') !== null", "the changes on the run's page")
        no_overflow(page, "the run's page")
        page.evaluate("document.querySelector('.people').scrollIntoView()")
        page.screenshot(pictures / "run-decided-phone.png")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def decided_by_somebody_else(page, host):
    """Somebody else decides: the card is updated live and names the decider."""
    page.open(f"{host.base}/console/inbox")
    page.wait(f"{ROWS} === 1", "one question left")
    page.evaluate(f"{OTHERS}[0].querySelector('a.question').click()")
    page.wait(f"{CARD_OPEN}", "the card")
    page.wait(LIVE, "a live card")
    question = page.evaluate("document.querySelector('#card').dataset.id")
    body = {"resumeValue": {"action": "reject", "feedback": "no"}}
    reply = host.call("POST", f"/v1/host/tandem/interrupts/{question}:resolve", body, key=KEY)
    if reply.status != 200:
        raise AssertionError(repr(reply))
    page.wait(f"{OUTCOME} === 'Rejected'", "the other's decision")
    eventually(lambda: page.evaluate(f"{ROWS} === 0"), 10, "an empty inbox")


def check(page, host, tally, link, pictures):
    tally.attempt("the printed link leads to the waiting refund", lambda: opens(page, link))
    page.screenshot(pictures / "inbox.png")
    question = tally.attempt("a question opens with the keyboard", lambda: choose(page))
    page.screenshot(pictures / "card.png")
    tally.attempt("a value that does not fit is refused beside its field", lambda: correct(page))
    page.screenshot(pictures / "edit.png")
    expected = [c for c in page.complaints if "400 (Bad Request)" in c]
    page.complaints = [c for c in page.complaints if c not in expected]
    tally.attempt("a key approves with the changes, and the event takes the card away", lambda: approve(page))
    page.screenshot(pictures / "decided.png")
    tally.attempt("the run completes with what was changed", lambda: completes(page, host))
    page.screenshot(pictures / "run-decided.png")
    tally.attempt("after a reload nothing is lost", lambda: reload(page, host.base, question))
    tally.attempt("what was changed fits on a phone", lambda: decided_on_phone(page, host, question, pictures))
    tally.attempt("it works on a phone's width", lambda: phone(page, host, pictures))
    tally.attempt("a decision of somebody else takes the card away", lambda: decided_by_somebody_else(page, host))
