"""The history of a run: move the slider, see variables, memory and graph of that event, fork there, compare the two runs."""
from host import chain, node

SEQ = "Number(document.querySelector('[data-part=moment]')?.dataset.seq)"
STATUS = "document.querySelector('[data-part=header]')?.dataset.status"
SLIDER = "document.querySelector('#moment-seq')"


def part(name):
    return f"document.querySelector('[data-part={name}]').textContent"


def prepare(host):
    """A run that sets a variable, writes memory, opens an interrupt, and sets the variable again."""
    document = chain("timeline", node("first", "core.setVariable", name="colour", value="red"),
                     node("note", "vendor.tandem.memory", action="put", key="customer", value="Ada", tags=["crm"]),
                     node("gate", "core.approvalGate", title="Paint it?", actions=["accept", "reject"]),
                     node("second", "core.setVariable", name="colour", value="blue"),
                     variables=[{"name": "colour", "type": "string", "defaultValue": "none"}])
    reply = host.call("PUT", "/v1/host/tandem/workflows/timeline", document)
    if reply.status not in (200, 201):
        raise AssertionError(repr(reply))
    run = host.create("timeline")
    waits = host.reaches(run, "waiting-approval")
    answer = {"resumeValue": {"action": "accept"}}
    reply = host.call("POST", f"/v1/host/tandem/interrupts/{waits['interrupt']['interruptId']}:resolve", answer)
    if reply.status != 200:
        raise AssertionError(repr(reply))
    host.ended(run)
    return run


def sequence(host, run, kind, node_id):
    return next(e["sequence"] for e in host.events(run) if e["type"] == kind and e.get("nodeId") == node_id)


def opens(page, host, run):
    """From the run page to the history page of the newest event."""
    page.open(f"{host.base}/console/runs/{run}")
    page.wait("document.querySelector('#history') !== null", "the link to the past")
    page.click("#history")
    last = host.run(run)["lastSequence"]
    page.wait(f"location.pathname === '/console/runs/{run}/at/{last}'", "the newest moment")
    page.wait(f"{SEQ} === {last} && {part('variables')}.includes('blue')", "the run as it ended")
    return last


def slide(page, host, run, last):
    """Moves the slider without a reload: by dragging, with the arrow keys, and by the links."""
    page.evaluate("window.notReloaded = true")
    page.evaluate(f"{SLIDER}.value = 0; {SLIDER}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    page.wait(f"{SEQ} === 0 && {part('variables')}.includes('none')", "the beginning")
    page.wait(f"location.pathname === '/console/runs/{run}/at/0'", "the address that follows")
    noted = sequence(host, run, "node.completed", "note")
    page.evaluate(f"{SLIDER}.focus()")
    for _ in range(noted):
        page.press("ArrowRight")
    page.wait(f"{SEQ} === {noted} && {part('variables')}.includes('red')", "the first variable")
    page.wait(f"{part('memory')}.includes('customer') && {part('memory')}.includes('Ada')", "what it remembered")
    if page.evaluate("document.querySelector('#past-graph [data-node=second]').classList.contains('state-completed')"):
        raise AssertionError("the graph shows what had not happened yet")
    page.click("#moment-previous")
    page.wait(f"{SEQ} === {noted - 1}", "one event before")
    page.evaluate("document.activeElement.blur()")
    page.press("ArrowRight")
    page.wait(f"{SEQ} === {noted}", "the event again, from anywhere on the page")
    if page.evaluate(f"{SLIDER}.value") != str(noted) or page.evaluate(f"{SLIDER}.max") != str(last):
        raise AssertionError("the slider is not where the page is")
    if page.evaluate("document.querySelector('.around [aria-current]')?.textContent.includes('node.completed')") is not True:
        raise AssertionError("the event of the moment is not marked")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")


def fork(page, host, run):
    """A branch opens the interrupt again that was resolved in its source."""
    page.click("#fork-branch")
    page.click("#fork button[type=submit]")
    page.wait(f"location.pathname.startsWith('/console/runs/run-') && !location.pathname.includes('{run}')", "the fork")
    page.wait(f"{STATUS} === 'waiting-approval'", "the question asked again")
    origin = page.evaluate("document.querySelector('#forked-from')?.getAttribute('href')")
    if origin != f"/console/runs/{run}":
        raise AssertionError(f"forked from {origin}")
    return page.evaluate("location.pathname").rsplit("/", 1)[1]


def compare(page, host, run, made):
    page.click("#compare-source")
    page.wait(f"location.pathname === '/console/runs/{run}/diff/{made}'", "the comparison")
    page.wait("document.querySelector('#verdict')?.textContent.includes('The runs differ from event')", "where they part")
    text = page.evaluate("document.querySelector('main').textContent")
    for expected in ("completed", "waiting-approval", "blue", "red", "Not in B.", "run.completed"):
        if expected not in text:
            raise AssertionError(f"{expected!r} is not in the comparison: {text[:2000]}")
    parted = host.get(f"/v1/runs/{run}:diff?against={made}")["divergedAtSeq"]
    if page.evaluate("document.querySelector('#verdict strong').textContent") != str(parted):
        raise AssertionError("page and API part at different events")


def phone(page, host, run, made, pictures):
    """390 px: nothing overflows, and the slider is moved by a tap."""
    page.resize(390, 844, True)
    try:
        for name, path in (("moment", f"{run}/at/3"), ("comparison", f"{run}/diff/{made}"), ("fork", made)):
            page.open(f"{host.base}/console/runs/{path}")
            page.wait(f"location.pathname === '/console/runs/{path}' && document.readyState === 'complete'", name)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                raise AssertionError(f"the {name} is {wide} px too wide")
            page.screenshot(pictures / f"{name}-phone.png")
        page.open(f"{host.base}/console/runs/{run}/at/0")
        page.wait(f"{SEQ} === 0 && document.querySelector('#moment-show')?.hidden", "the moment and its script")
        page.click("#moment-seq")
        page.wait(f"{SEQ} > 0", "a moment in the middle")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def without_javascript(page, host, run):
    """The same without a script: the slider is a form, the links are pages."""
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(f"{host.base}/console/runs/{run}/at/1")
        page.wait(f"{SEQ} === 1 && document.querySelector('#moment-show') !== null", "the moment")
        if page.evaluate("document.querySelector('#moment-show').hidden"):
            raise AssertionError("no button to move without a script")
        page.evaluate(f"{SLIDER}.value = 2")
        page.click("#moment-show")
        page.wait(f"location.pathname.endsWith('/at/2') && {SEQ} === 2", "the chosen moment")
        page.click("#moment-next")
        page.wait(f"location.pathname.endsWith('/at/3') && {SEQ} === 3", "the next moment")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def check(page, host, tally, pictures):
    run = tally.attempt("a run with a past", lambda: prepare(host))
    last = tally.attempt("the run's page leads to its newest moment", lambda: opens(page, host, run))
    page.screenshot(pictures / "past-end.png")
    tally.attempt("the slider shows variables and memory as they were", lambda: slide(page, host, run, last))
    page.screenshot(pictures / "past.png")
    made = tally.attempt("a branch from a moment asks again", lambda: fork(page, host, run))
    page.screenshot(pictures / "fork.png")
    tally.attempt("the fork stands beside its source", lambda: compare(page, host, run, made))
    page.screenshot(pictures / "comparison.png")
    tally.attempt("the past fits on a phone", lambda: phone(page, host, run, made, pictures))
    tally.attempt("the past works without a script", lambda: without_javascript(page, host, run))
