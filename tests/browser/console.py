#!/usr/bin/env python3
"""Uses the console of `tandem dev` as a new user would, in headless Chromium.

    console.py --binary target/release/tandem [--screenshots DIR]

Opens the printed login link, decides the open question in the inbox, starts a run, watches its
nodes change without a reload, cancels it with the button, opens the history of another run, forks it there,
compares the two runs, and checks the browser's console for errors. Without Chromium the test fails in CI and
is skipped with a notice elsewhere.
"""
import argparse
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import inbox  # noqa: E402
import run_history  # noqa: E402
from devtools import Browser, find_chromium  # noqa: E402
from host import ROOT, Host, Tally, eventually  # noqa: E402

WORKFLOW = "order-pipeline"  # active for about twenty seconds
STATES = "[...document.querySelectorAll('g[data-node]')].map(n => n.dataset.node + ' ' + n.getAttribute('class')).join(', ')"
STATUS = "document.querySelector('[data-part=header]')?.dataset.status"


def runs(page, base):
    page.open(f"{base}/console/runs")
    page.wait("document.querySelector('#run-rows') !== null", "the run list")
    page.wait("document.querySelector('#live')?.dataset.state === 'live'", "a live run list")


def start_run(page, base):
    """Starts a run from its workflow's page and returns its path."""
    page.open(f"{base}/console/workflows/{WORKFLOW}")
    page.wait("document.querySelector('main form[method=post] button') !== null", "the form that starts a run")
    page.click("main form[method=post] button[type=submit]")
    page.wait("location.pathname.startsWith('/console/runs/run-')", "the page of the new run")
    return page.evaluate("location.pathname")


def watch(page):
    """Nodes change and events arrive without a reload."""
    page.evaluate("window.notReloaded = true")
    page.wait("document.querySelector('#live')?.dataset.state === 'live'", "a live run page")
    first = page.evaluate(STATES)
    count = page.evaluate("document.querySelectorAll('#events tr').length")
    if "state-" not in first:
        raise AssertionError(f"no graph: {first!r}")
    page.wait(f"{STATES} !== {first!r}", "a node changing its state", 20)
    page.wait(f"document.querySelectorAll('#events tr').length > {count}", "new events in the timeline")
    if not page.evaluate("window.notReloaded === true"):
        raise AssertionError("the page was reloaded")


def inspect(page):
    page.click("#events tr")
    page.wait("document.querySelector('#inspector-payload').textContent.includes('{')", "a payload in the inspector")


def cancel(page):
    if page.evaluate(STATUS) != "running":
        raise AssertionError(f"the run is {page.evaluate(STATUS)}, too late to cancel")
    page.click("#action-cancel")
    page.wait(f"{STATUS} === 'cancelled'", "the run cancelled")
    if not page.dialogs:
        raise AssertionError("nobody asked whether to cancel")


def listed(page, base, path):
    page.open(f"{base}/console/runs")
    row = f"document.querySelector('#run-rows a[href=\"{path}\"]')?.closest('tr').textContent"
    page.wait(f"({row} ?? '').includes('cancelled')", "the cancelled run in the list")


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
    host = Host(a.binary, command=("dev",), options=()).start()
    browser = None
    try:
        link = eventually(lambda: re.search(r"http://\S*/console/\S*", host.log()), 10, "a printed link").group(0)
        browser = Browser(program)
        page = browser.page()
        inbox.check(page, host, tally, link, pictures)
        tally.attempt("runs are listed live", lambda: runs(page, host.base))
        page.screenshot(pictures / "runs.png")
        path = tally.attempt("a run starts from the workflow's page", lambda: start_run(page, host.base))
        tally.attempt("nodes and events change without a reload", lambda: watch(page))
        tally.attempt("an event shows its payload", lambda: inspect(page))
        page.screenshot(pictures / "run.png")
        tally.attempt("the button cancels the run", lambda: cancel(page))
        page.screenshot(pictures / "cancelled.png")
        tally.attempt("the list shows it as cancelled", lambda: listed(page, host.base, path))
        run_history.check(page, host, tally, pictures)
        tally.check("no errors and no policy violations in the browser", page.complaints)
        print(f"screenshots in {pictures}")
        return tally.close()
    finally:
        if browser:
            browser.close()
        host.close()


if __name__ == "__main__":
    sys.exit(main())
