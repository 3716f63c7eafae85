"""Requests generated from the OpenAPI document, valid and invalid, by schemathesis: no response is a server error, nothing
panics, and the process still serves afterwards."""
import importlib.util
import re
import subprocess
import sys

from host import KEY, ROOT, Host

SECONDS = 60
SEED = "20261117"
# Streams do not end by themselves; the test routes stop the process and move its clock by design.
LEFT_OUT = r"/events$|/live$|/test/|/sample/"
# One worker: CPython counts the recursion of `ast.parse` for all threads together, and with two workers the generator
# sometimes fails with "AST constructor recursion depth mismatch".


def check_generated_requests_get_no_server_error(binary):
    if importlib.util.find_spec("schemathesis") is None:
        raise AssertionError("the Python package schemathesis is missing: python3 -m pip install schemathesis")
    host = Host(binary, workflows=[ROOT / "examples"], options=[]).start()
    try:
        command = [
            sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
            f"{host.base}/v1/openapi.json", "--checks", "not_a_server_error", "--max-time", str(SECONDS),
            "--phases", "coverage,fuzzing", "--workers", "1", "--seed", SEED, "--request-timeout", "20",
            "--exclude-path-regex", LEFT_OUT, "--header", f"Authorization: Bearer {KEY}", "--warnings", "off",
            "--suppress-health-check", "all", "--generation-database", "none", "--no-color",
        ]
        done = subprocess.run(command, cwd=host.directory, capture_output=True, text=True, timeout=SECONDS * 4)
        report = done.stdout[-6000:] + done.stderr[-2000:]
        if done.returncode != 0:
            raise AssertionError(f"schemathesis found a fault:\n{report}")
        if not re.search(r"\d+ generated|Test cases:\s*\n?\s*\d+", done.stdout):
            raise AssertionError(f"schemathesis generated nothing:\n{report}")
        host.get("/healthz")
        if "panicked" in host.log():
            raise AssertionError(f"a task panicked: {host.log()[-3000:]}")
    finally:
        host.close()
