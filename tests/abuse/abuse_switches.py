"""Features that an operator switched off stay off in the real process, also for workflows stored while they were on."""
from host import Host, chain, node

MOCK = "core.conformance.mock-agent"


def discovery(host):
    return host.get("/.well-known/openwop")


def refused(reply, status, code):
    assert reply.status == status and reply.json["error"] == code, reply


def put(host, document):
    return host.call("PUT", f"/v1/host/tandem/workflows/{document['id']}", document)


def check_conformance_types_are_not_served_when_switched_off(binary):
    """A workflow registered on a test host does not run on a production host; its old runs stay readable."""
    host = Host(binary).start()
    try:
        document = chain("conformance-stored", node("act", MOCK, mockReasoning=True))
        assert put(host, document).status == 201
        run = host.create("conformance-stored")
        host.ended(run)
        assert discovery(host)["conformance"]["mockAgent"] is True
        host.stop()
        host.options = []
        host.start()
        assert discovery(host)["conformance"]["mockAgent"] is False
        reply = host.call("POST", "/v1/runs", {"workflowId": "conformance-stored"})
        refused(reply, 400, "validation_error")
        assert reply.json["details"]["offendingTypeId"] == MOCK, reply
        branch = host.call("POST", f"/v1/runs/{run}:fork", {"mode": "branch", "fromSeq": 1})
        refused(branch, 400, "validation_error")
        again = put(host, {**document, "id": "conformance-again"})
        refused(again, 400, "validation_error")
        assert host.run(run)["status"] == "completed"
        assert any(e["type"] == "agent.reasoned" for e in host.events(run))
    finally:
        host.close()


def check_invalid_setting_is_rejected_at_start(binary):
    """Switches and versions out of range are refused with exit code 1."""
    for name, value in (("TANDEM_CONFORMANCE", "perhaps"), ("TANDEM_MULTI_AGENT", "2"), ("TANDEM_ANCESTRY", "none"),
                        ("TANDEM_EXECUTION_MODEL_VERSION", "0"), ("TANDEM_EXECUTION_MODEL_VERSION", "7"),
                        ("TANDEM_HOST_ID", "http://plain.example"), ("TANDEM_HOST_ID", "a b")):
        host = Host(binary, env={name: value})
        try:
            host.start()
            raise AssertionError(f"{name}={value} was accepted")
        except AssertionError as why:
            assert "tandem ended with 1" in str(why), why
        finally:
            host.close()


def check_agents_and_ancestry_are_not_served_when_switched_off(binary):
    host = Host(binary, env={"TANDEM_MULTI_AGENT": "off", "TANDEM_ANCESTRY": "off"}).start()
    try:
        told = discovery(host)
        assert told["agents"] == {"supported": False} and "multiAgent" not in told, told
        lead = chain("led", node("lead", "core.orchestrator.supervisor", endpoint={"url": "http://127.0.0.1:9/"}),
                     node("send", "core.dispatch"))
        refused(put(host, lead), 400, "capability_required")
        assert put(host, chain("conformance-act", node("act", MOCK, mockReasoning=True, mockConfidence=0.1))).status == 201
        run = host.create("conformance-act")
        host.ended(run)
        spoken = [e["type"] for e in host.events(run) if e["type"].startswith("agent.")]
        assert spoken == [], spoken
        refused(host.call("GET", f"/v1/runs/{run}/ancestry"), 404, "not_found")
    finally:
        host.close()
