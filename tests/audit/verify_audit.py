#!/usr/bin/env python3
"""Verifies an exported audit log and decision receipts. Written from docs/audit.md, not from the Rust code.

    verify_audit.py --public-key KEY log.ndjson
    verify_audit.py --public-key KEY --receipt receipt.json

Needs the standard library, and the package `cryptography` for Ed25519. Exits 1 when anything differs from what was signed.
"""
import argparse
import base64
import hashlib
import json
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

RECEIPT_DOMAIN = b"tandem:receipt:v1\x00"
SPACING = 1000  # maximum number of entries in one checkpoint


class VerificationError(Exception):
    """Why the verification failed."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(value):
    """The part of RFC 8785 that entries and receipts need: text, whole numbers, true, false, null, lists, objects."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return b"{" + b",".join(canonical(key) + b":" + canonical(value[key]) for key in keys) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(canonical, value)) + b"]"
    if isinstance(value, float):
        raise VerificationError("a fraction where none belongs")
    return json.dumps(value, ensure_ascii=False).encode()


def parse(text):
    def closed(pairs):
        if len({name for name, _ in pairs}) != len(pairs):
            raise VerificationError("a name twice in one object")
        return dict(pairs)
    try:
        return json.loads(text, object_pairs_hook=closed)
    except ValueError as error:
        raise VerificationError(f"not JSON: {error}") from None


def unbase64(text):
    try:
        raw = base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise VerificationError("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise VerificationError("base64 with stray bits")
    return raw


def load_key(spki):
    try:
        key = load_der_public_key(unbase64(spki))
    except ValueError:
        raise VerificationError("not a public key") from None
    if not isinstance(key, Ed25519PublicKey):
        raise VerificationError("not an Ed25519 key")
    return key


def check_signature(key, signature, message):
    try:
        key.verify(unbase64(signature), message)
    except InvalidSignature:
        raise VerificationError("the signature does not match") from None


def merkle_root(leaves):
    while len(leaves) > 1:
        pairs = [leaves[i:i + 2] for i in range(0, len(leaves), 2)]
        leaves = [sha256("".join(pair).encode()) if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0]


def only(value, *names):
    if not isinstance(value, dict) or set(value) != set(names):
        raise VerificationError(f"an object that should have exactly {', '.join(names)}")
    return [value[name] for name in names]


def check_log(lines, trusted):
    """Verifies an export, given as bytes split into lines; returns its content."""
    key, before, seq, sealed, leaves, seals, withheld, ended = None, None, 0, 0, [], 0, 0, False
    entries = []
    for raw in lines:
        if ended:
            raise VerificationError("something follows after the end")
        if not (raw.startswith(b"{") and raw.endswith(b"}")):
            raise VerificationError("a line that is not an object")
        try:
            (kind, value), = parse(raw.decode()).items()
        except (ValueError, AttributeError):
            raise VerificationError("a line that is not an object with one member") from None
        if (key is None) != (kind == "audit"):
            raise VerificationError("the title is not the first line")
        if kind == "audit":
            form, named = only(value, "format", "publicKey")
            if form != "tandem-audit-1" or named != trusted:
                raise VerificationError("not an export, or signed with another key")
            key = load_key(named)
        elif kind in ("entry", "withheld"):
            seq += 1
            if kind == "entry":
                if value.get("seq") != seq or "prevHash" not in value or value["prevHash"] != before:
                    raise VerificationError(f"the chain is broken at entry {seq}")
                if canonical({"entry": value}) != raw:
                    raise VerificationError(f"entry {seq} is not in canonical form")
                before = sha256(canonical(value))
                entries.append(value)
            else:
                before, number = only(value, "hash", "seq")
                if number != seq:
                    raise VerificationError(f"entry {number} stands where entry {seq} belongs")
                withheld += 1
            leaves.append(before)
        elif kind == "checkpoint":
            name, at, root, signature = only(value, "checkpoint", "atSequence", "merkleRoot", "signature")
            seals += 1
            if name != f"cp-{seals}" or at != seq or len(leaves) != at - sealed or not 0 < len(leaves) <= SPACING:
                raise VerificationError(f"checkpoint {name} is out of place")
            if merkle_root(leaves) != root:
                raise VerificationError(f"checkpoint {name} does not seal these entries")
            check_signature(key, signature, bytes.fromhex(root))
            sealed, leaves = at, []
        elif kind == "end":
            count, last = only(value, "entries", "hash")
            if (count, last) != (seq, before):
                raise VerificationError("it does not end where it says it does")
            ended = True
        else:
            raise VerificationError(f"a line of an unknown kind {kind!r}")
    if not ended:
        raise VerificationError("it was cut off")
    if sealed < seq:
        raise VerificationError(f"no signature covers its entries after {sealed}")
    return {"entries": entries, "count": seq, "withheld": withheld, "checkpoints": seals}


def check_log_bytes(data, trusted):
    if not data.endswith(b"\n"):
        raise VerificationError("it was cut off")
    return check_log(data[:-1].split(b"\n"), trusted)


def check_receipt(data, trusted):
    """Verifies a receipt, given as bytes; returns it."""
    try:
        receipt = parse(data.decode())
    except UnicodeDecodeError:
        raise VerificationError("not text") from None
    if not isinstance(receipt, dict) or not isinstance(receipt.get("signature"), str):
        raise VerificationError("no signature")
    if receipt.get("format") != "tandem-receipt-1" or receipt.get("publicKey") != trusted:
        raise VerificationError("not a receipt, or signed with another key")
    signed = {name: value for name, value in receipt.items() if name != "signature"}
    check_signature(load_key(trusted), receipt["signature"], RECEIPT_DOMAIN + canonical(signed))
    return receipt


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--public-key", required=True, help="base64 of DER SPKI, from a source you trust")
    options.add_argument("--receipt", action="store_true", help="the file is a decision receipt")
    options.add_argument("file", type=Path)
    given = options.parse_args()
    try:
        if given.receipt:
            receipt = check_receipt(given.file.read_bytes(), given.public_key)
            print(f"ok: {receipt['interruptId']} {receipt['decision']['outcome']}, entry {receipt['auditSequence']}")
        else:
            report = check_log_bytes(given.file.read_bytes(), given.public_key)
            print(f"ok: {report['count']} entries, {report['checkpoints']} checkpoints, "
                  "sealed up to its end")
    except VerificationError as wrong:
        print(f"WRONG: {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
