#!/usr/bin/env python3
"""Attacks the real binary and checks that other callers are not affected.

    run.py --binary target/release/tandem [--only TEXT]...

Every `abuse_*.py` beside this file is one topic. Each function `check_*(binary)` of such a file starts the hosts it needs,
attacks them and raises when a bound does not hold. A check is bounded in requests and in time, and talks to loopback only.
"""
import argparse
import importlib.util
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from host import Tally  # noqa: E402


def checks():
    for path in sorted(HERE.glob("abuse_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and callable(check):
                yield f"{path.stem.removeprefix('abuse_')}.{name.removeprefix('check_')}", check


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    tally = Tally()
    for name, check in checks():
        if arguments.only and not any(text in name for text in arguments.only):
            continue
        began = time.monotonic()
        tally.attempt(name, lambda check=check: check(arguments.binary))
        print(f"      {time.monotonic() - began:.1f} s", flush=True)
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
