//! Host options that an operator can switch off: conformance node types, agents, versions of the
//! execution model, the ancestry endpoint. What is not advertised is not served.

use crate::supervisor::{started, supervised};
use crate::test_server::{HostOptions, TestServer, chain, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::TenantId;
use tandem_runtime::{AgentPolicy, Permissions};

const MOCK: &str = "core.conformance.mock-agent";

fn mock(config: Value) -> Value {
    json!({"id": "act", "typeId": MOCK, "config": config})
}

async fn without_conformance() -> TestServer {
    TestServer::with_options(HostOptions {
        conformance: false,
        ..HostOptions::default()
    })
    .await
}

async fn at_version(version: u64) -> TestServer {
    let policy = AgentPolicy::new(Some(0.9), Some("x-host-tandem-doubt")).unwrap();
    TestServer::with_agent_policy(policy.with_model_cap(Some(version)).unwrap()).await
}

async fn without_agents() -> TestServer {
    TestServer::with_agent_policy(AgentPolicy::default().with_agents_supported(false)).await
}

async fn discovery(server: &TestServer) -> Value {
    server.get("/.well-known/openwop").await.ok(200)
}

async fn put(server: &TestServer, key: &str, document: Value) -> crate::test_server::Reply {
    let id = document["id"].as_str().unwrap();
    let path = format!("/v1/host/tandem/workflows/{id}");
    let body = document.to_string();
    server.call_as(key, "PUT", &path, &[], body).await
}

async fn create_as(server: &TestServer, key: &str, workflow: &str) -> crate::test_server::Reply {
    let body = json!({"workflowId": workflow}).to_string();
    server.call_as(key, "POST", "/v1/runs", &[], body).await
}

/// A key with the conformance role.
async fn tester(server: &TestServer) -> String {
    let scopes = Scope::all().iter().copied();
    let mut new = NewKey::new("tester", TenantId::new("default"), scopes);
    new.roles = vec!["conformance".to_owned()];
    server.mint(new).await
}

async fn types(server: &TestServer, run: &str) -> Vec<String> {
    let log = server.log(run).await;
    let events = log["events"].as_array().unwrap().iter();
    let types = events.map(|event| event["type"].as_str().unwrap().to_owned());
    types.collect()
}

#[tokio::test]
async fn conformance_types_need_prefix_or_role_to_register_and_run() {
    // R-0023-17 (half: where it is advertised, by prefix or role)
    // R-0023-26 (half: hooks outside conformance workflows need the role too)
    let server = TestServer::new().await;
    let tester = tester(&server).await;
    let prefixed = chain(
        "conformance-acting",
        &[mock(json!({"mockReasoning": true}))],
    );
    put(&server, &server.key, prefixed).await.ok(201);
    create_as(&server, &server.key, "conformance-acting")
        .await
        .ok(201);
    let mut hooked = supervised(json!([{"kind": "terminate", "reason": "done"}]));
    hooked["id"] = json!("supervised");
    let acting = chain("acting", &[mock(json!({"mockReasoning": true}))]);
    for (document, type_id, node) in [
        (acting, MOCK, "act"),
        (hooked, "core.orchestrator.supervisor", "lead"),
    ] {
        let id = document["id"].as_str().unwrap().to_owned();
        let refused = put(&server, &server.key, document.clone()).await;
        let details = refused.refused(400, "validation_error");
        assert_eq!(details["offendingTypeId"], type_id);
        assert_eq!(details["nodeId"], node);
        put(&server, &tester, document).await.ok(201);
        // The workflow is registered, but a caller without the role cannot run it.
        let refused = create_as(&server, &server.key, &id).await;
        let details = refused.refused(400, "validation_error");
        assert_eq!(details["reason"], "typeId_refused");
        assert_eq!(details["offendingTypeId"], type_id);
        assert_eq!(details["nodeId"], node);
        create_as(&server, &tester, &id).await.ok(201);
    }
    let call =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "acting"}});
    let run = server.start("around", &[call]).await;
    server.advance(0).await;
    let ended = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "failed", "nor by way of a parent");
    let run = create_as(&server, &tester, "around").await.ok(201)["runId"].clone();
    server.advance(0).await;
    let path = format!("/v1/runs/{}", run.as_str().unwrap());
    assert_eq!(server.get(&path).await.ok(200)["status"], "completed");
}

#[tokio::test]
async fn branch_of_conformance_run_needs_the_role() {
    let server = TestServer::new().await;
    let tester = tester(&server).await;
    let nodes = [mock(json!({"mockReasoning": true})), noop("z")];
    put(&server, &tester, chain("acting", &nodes)).await.ok(201);
    let run = create_as(&server, &tester, "acting").await.ok(201)["runId"].clone();
    let path = format!("/v1/runs/{}:fork", run.as_str().unwrap());
    for from in [0, 2] {
        let branch = json!({"mode": "branch", "fromSeq": from}).to_string();
        let refused = server
            .call_as(&server.key, "POST", &path, &[], branch.clone())
            .await;
        refused.refused(400, "validation_error");
        server
            .call_as(&tester, "POST", &path, &[], branch)
            .await
            .ok(201);
    }
    let replay = json!({"mode": "replay"}).to_string();
    server
        .call_as(&server.key, "POST", &path, &[], replay)
        .await
        .ok(201);
}

#[tokio::test]
async fn conformance_types_are_absent_when_disabled() {
    // R-0023-17 (half: neither prefix nor role suffices where it is not advertised)
    // R-0023-18 (half: they cannot be registered), R-0023-20
    // R-0023-21 (half: not advertised where it is not registered)
    // R-0023-26 (half: no hook works without the advertisement)
    let server = without_conformance().await;
    let tester = tester(&server).await;
    let echo = json!({"id": "n", "typeId": "conformance.secret.echo", "config": {"secretId": "s"}});
    let effect = json!({"id": "n", "typeId": "core.conformance.side-effect", "config": {}});
    for key in [&server.key, &tester] {
        let nodes = [mock(json!({})), echo.clone(), effect.clone()];
        let named = ["conformance-x", "production"].map(|id| nodes.clone().map(|node| (id, node)));
        for (id, node) in named.into_iter().flatten() {
            let sent = put(&server, key, chain(id, std::slice::from_ref(&node))).await;
            let details = sent.refused(400, "validation_error");
            assert_eq!(details["offendingTypeId"], node["typeId"]);
            assert!(
                sent.text.contains("is not a node type of this host"),
                "{sent:?}"
            );
        }
        let end = json!([{"kind": "terminate", "reason": "done"}]);
        let sent = put(&server, key, supervised(end)).await;
        sent.refused(400, "validation_error");
    }
    let discovery = discovery(&server).await;
    assert_eq!(discovery["conformance"]["mockAgent"], false);
    assert!(
        !discovery["extensions"]["nodeTypes"]
            .to_string()
            .contains("conformance")
    );
}

#[tokio::test]
async fn fixtures_are_listed_only_when_supported() {
    // R-0023-22 (half: without agents or conformance types they are not listed)
    let fixtures = |server: TestServer| async move {
        let act = chain("conformance-act", &[mock(json!({"mockReasoning": true}))]);
        let hook = json!({"id": "h", "typeId": "core.identity", "config": {"memoryAction": "write-then-read"}});
        let plain = chain("conformance-plain", &[noop("n")]);
        for document in [act, chain("conformance-hook", &[hook]), plain] {
            let permissions = Permissions::default();
            let _ = server.runtime.register(None, &document, permissions).await;
        }
        tandem_api::runnable_fixtures(&server.runtime, |_| false)
            .await
            .unwrap()
    };
    let all = ["conformance-act", "conformance-hook", "conformance-plain"];
    assert_eq!(fixtures(TestServer::new().await).await, all);
    assert_eq!(fixtures(without_agents().await).await, all[1..]);
    assert_eq!(fixtures(without_conformance().await).await, all[2..]);
}

#[tokio::test]
async fn without_agents_no_agent_events_and_no_supervisors() {
    // R-0023-8 (half: what is advertised and what is refused)
    let server = without_agents().await;
    let discovery = discovery(&server).await;
    assert_eq!(discovery["agents"], json!({"supported": false}));
    for family in ["multiAgent", "orchestrator", "dispatch"] {
        assert!(discovery[family].is_null(), "{family}");
    }
    let lines = json!({"mockReasoning": true, "mockToolCalls": [{"toolId": "t", "result": 1}],
                       "mockHandoff": {"toAgentId": "core.next"}, "mockConfidence": 0.1});
    let run = server.start("conformance-agent", &[mock(lines)]).await;
    let types = types(&server, &run).await;
    assert!(!types.iter().any(|t| t.starts_with("agent.")), "{types:?}");
    let shown = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(shown["status"], "completed");
    let end = json!([{"kind": "terminate", "reason": "done"}]);
    let refused = put(&server, &server.key, supervised(end)).await;
    let details = refused.refused(400, "capability_required");
    assert_eq!(details["requiredCapability"], "agents.orchestrator");
    assert_eq!(details["offendingTypeId"], "core.orchestrator.supervisor");
}

#[tokio::test]
async fn capped_host_advertises_and_serves_only_that_version() {
    // R-0039-11, R-0039-28 (half: a version includes all lower ones and nothing above)
    // R-0044-11 (half: the kind is neither advertised nor used below version 2)
    // R-0040-16 (half: not advertised below version 3)
    let unsure = json!([{"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2}]);
    for version in 1..=6 {
        let server = at_version(version).await;
        let discovery = discovery(&server).await;
        let model = &discovery["multiAgent"]["executionModel"];
        assert_eq!(model["version"], version);
        for (since, name) in [
            (2, "confidenceEscalationFloor"),
            (2, "confidenceEscalationInterruptKind"),
            (2, "crossChildMemoryConcurrency"),
            (3, "crossHostCausation"),
            (4, "replayDeterminism"),
            (5, "statefulResume"),
            (6, "verifier"),
        ] {
            assert_eq!(
                model.get(name).is_some(),
                version >= since,
                "{name} at {version}"
            );
        }
        let explained = discovery["implementation"]
            .get("vendorExtensionsUrl")
            .is_some();
        assert_eq!(explained, version >= 2);
        let run = started(&server, unsure.clone()).await;
        let types = types(&server, &run).await;
        let escalated = types.iter().any(|t| t.ends_with("confidence-escalated"));
        assert_eq!(escalated, version >= 2, "{version}: {types:?}");
        let begun = types.iter().any(|t| t == "core.workflowChain.event");
        assert_eq!(begun, version < 2, "{version}: {types:?}");
    }
}

#[tokio::test]
async fn ancestry_gets_404_when_not_advertised() {
    // R-0040-15 (half: 404 where it is not advertised, also for existing runs)
    let off = HostOptions {
        ancestry: false,
        ..HostOptions::default()
    };
    let (off, second, third) = (
        TestServer::with_options(off).await,
        at_version(2).await,
        at_version(3).await,
    );
    for (server, served) in [
        (off, false),
        (second, false),
        (third, true),
        (without_agents().await, false),
    ] {
        let discovery = discovery(&server).await;
        let across = &discovery["multiAgent"]["executionModel"]["crossHostCausation"];
        assert_eq!(
            across["ancestryEndpointSupported"] == true,
            served,
            "{across}"
        );
        let run = server.start("w", &[noop("a")]).await;
        let response = server.get(&format!("/v1/runs/{run}/ancestry")).await;
        if served {
            response.ok(200);
        } else {
            response.refused(404, "not_found");
        }
        let api = server.get("/v1/openapi.json").await.ok(200);
        let described = api["paths"].get("/v1/runs/{runId}/ancestry").is_some();
        assert_eq!(described, served);
    }
}

#[tokio::test]
async fn claimed_cause_is_recorded_only_with_cross_host_causation() {
    let claim = |event: &str| {
        let parent = json!({"runId": "run-far", "hostId": "far", "eventId": event,
            "wellKnownUrl": "https://far.example/.well-known/openwop"});
        json!({"workflowId": "w", "metadata": {"openwop": {"parent": parent}}})
    };
    for (version, crosses) in [(2, false), (3, true)] {
        let server = at_version(version).await;
        server.register("w", &[noop("a")]).await;
        let run = server.post("/v1/runs", claim("run-far:1")).await.ok(201)["runId"].clone();
        let log = server.log(run.as_str().unwrap()).await;
        let cause = &log["events"][0]["causationId"];
        assert_eq!(*cause == "run-far:1", crosses, "{version}: {cause}");
        let longest = server.post("/v1/runs", claim(&"e".repeat(128))).await;
        longest.ok(201);
        let longer = server.post("/v1/runs", claim(&"e".repeat(129))).await;
        if crosses {
            let details = longer.refused(400, "validation_error");
            let path = &details["errors"][0]["path"];
            assert_eq!(path, "/metadata/openwop/parent/eventId");
        } else {
            longer.ok(201);
        }
    }
}

#[tokio::test]
async fn advertised_limits_match_the_engine() {
    let server = TestServer::new().await;
    let discovery = discovery(&server).await;
    let limits = &discovery["limits"];
    assert_eq!(limits["schemaRounds"], tandem_runtime::MAX_ATTEMPTS - 1);
    assert_eq!(
        limits["envelopesPerTurn"],
        tandem_runtime::ENVELOPES_PER_TURN
    );
    assert_eq!(
        limits["clarificationRounds"],
        tandem_runtime::CLARIFICATION_ROUNDS
    );
    let actions = json!(tandem_runtime::APPROVAL_ACTIONS);
    assert_eq!(discovery["interrupts"]["approvalActions"], actions);
    assert_eq!(
        discovery["runs"]["pauseResume"]["drainPolicies"],
        json!(["immediate", "drain-current-node"])
    );
    assert_eq!(discovery["replay"]["modes"], json!(["replay", "branch"]));
    let versions = discovery["schemaVersions"].as_object().unwrap().keys();
    let mut supported: Vec<&str> = versions.map(String::as_str).collect();
    supported.sort_unstable();
    assert_eq!(json!(supported), discovery["supportedEnvelopes"]);
    let routes = discovery["extensions"]["caller"]["scopes"].to_string();
    for gone in ["packs:publish", "workspace:read"] {
        assert!(!routes.contains(gone), "{gone} is asked for by no route");
    }
}

#[tokio::test]
async fn unserved_protocols_are_not_advertised() {
    // R-0040-5 (half: no MCP tool is served), R-0040-6 (half: A2A is not served)
    // R-0039-18: writes of siblings are advertised as advisory. R-0039-26
    // R-0044-9 (half: no capability names the status)
    let server = TestServer::new().await;
    let discovery = discovery(&server).await;
    assert!(discovery["mcp"]["serverMount"].is_null());
    assert!(discovery["a2a"].is_null());
    assert_eq!(discovery["supportedTransports"], json!(["rest"]));
    let model = discovery["multiAgent"]["executionModel"]
        .as_object()
        .unwrap();
    assert_eq!(model["crossChildMemoryConcurrency"], "advisory");
    assert!(
        !model
            .keys()
            .any(|name| name.to_lowercase().contains("status"))
    );
}
