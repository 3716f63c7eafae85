"""Texts with JSON escapes: none makes a request fail, and none hides a credential from redaction."""
import json

from host import Host, Outside, chain, node

TOKEN = "sk-abcdefghijklmnopqrstuvwx"
# A credential directly after an escaped character, which ends in a letter when escaped.
HIDDEN = [f"config:\n{TOKEN}", f"\t{TOKEN}", f"KEY_{TOKEN}", f"\b{TOKEN}", json.dumps({"key": f"\n{TOKEN}"}), f'"{TOKEN}']
# Not a credential, although it looks like one in the escaped text.
HARMLESS = ["\bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "\b\f\x00\x1f\\\"", "\U0001f422 task-of-the-day-and-of-the-night"]


def stored(host):
    """The content of all store files."""
    return b"".join(path.read_bytes() for path in host.directory.glob("tandem.db*"))


def check_escaped_text_neither_fails_requests_nor_hides_credentials(binary):
    outside = Outside(lambda path, body: (200, {"echo": body}))
    host = Host(binary).start()
    try:
        variable = {"type": "variable", "variableName": "text"}
        call = node("call", "vendor.tandem.http", {"body": variable}, url=f"{outside.url}/", method="POST")
        document = chain("ask", node("gate", "core.approvalGate", title="ok?"), call,
                         variables=[{"name": "text", "type": "string"}])
        reply = host.call("PUT", "/v1/host/tandem/workflows/ask", document)
        assert reply.status in (200, 201), reply
        for text in HIDDEN + HARMLESS:
            run = host.create("ask", {"text": text, text: 1})
            answer = {"resumeValue": {"action": "accept", "feedback": text}}
            # The link needs no key.
            token = host.reaches(run, "waiting-approval")["interrupt"]["interruptToken"]
            reply = host.call("POST", f"/v1/interrupts/{token}", answer, key=None)
            assert reply.status == 200, (text, reply)
            ended = host.ended(run)
            assert ended["status"] == "completed", (text, ended)
            told = json.dumps(host.events(run)) + json.dumps(ended)
            assert TOKEN not in told, text
            assert text in HIDDEN or json.dumps(text)[1:-1] in told, (text, "is stored as it is")
        assert host.process.poll() is None and "panicked" not in host.log(), host.log()[-2000:]
        assert TOKEN.encode() not in stored(host)
    finally:
        host.close()
        outside.close()
