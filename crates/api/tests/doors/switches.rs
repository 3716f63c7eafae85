//! What an operator may leave out, from outside: types for conformance tests, agents, versions of the
//! execution model, the ancestry endpoint. What is not advertised is not done.

use crate::crew::{started, supervised};
use crate::stage::{Operator, Stage, chain, noop};
use serde_json::{Value, json};
use tandem_access::{NewKey, Scope};
use tandem_record::TenantId;
use tandem_runtime::{AgentPolicy, Permissions};

const MOCK: &str = "core.conformance.mock-agent";

fn mock(config: Value) -> Value {
    json!({"id": "act", "typeId": MOCK, "config": config})
}

async fn without_conformance() -> Stage {
    Stage::run_by(Operator {
        conformance: false,
        ..Operator::default()
    })
    .await
}

async fn at_version(version: u64) -> Stage {
    let policy = AgentPolicy::new(Some(0.9), Some("x-host-tandem-doubt")).unwrap();
    Stage::advised(policy.capped(Some(version)).unwrap()).await
}

async fn without_agents() -> Stage {
    Stage::advised(AgentPolicy::default().switched(false)).await
}

async fn told(stage: &Stage) -> Value {
    stage.get("/.well-known/openwop").await.ok(200)
}

async fn put(stage: &Stage, key: &str, document: Value) -> crate::stage::Reply {
    let id = document["id"].as_str().unwrap();
    let path = format!("/v1/host/tandem/workflows/{id}");
    let body = document.to_string();
    stage.call_as(key, "PUT", &path, &[], body).await
}

async fn create_as(stage: &Stage, key: &str, workflow: &str) -> crate::stage::Reply {
    let body = json!({"workflowId": workflow}).to_string();
    stage.call_as(key, "POST", "/v1/runs", &[], body).await
}

/// A key of the tenant that the operator gave the role.
async fn tester(stage: &Stage) -> String {
    let scopes = Scope::all().iter().copied();
    let mut new = NewKey::new("tester", TenantId::new("default"), scopes);
    new.roles = vec!["conformance".to_owned()];
    stage.mint(new).await
}

async fn types(stage: &Stage, run: &str) -> Vec<String> {
    let log = stage.log(run).await;
    let events = log["events"].as_array().unwrap().iter();
    let types = events.map(|event| event["type"].as_str().unwrap().to_owned());
    types.collect()
}

#[tokio::test]
async fn conformance_types_need_the_name_or_the_role_when_registered_and_when_run() {
    // R-0023-17, R-0023-26 (half: hooks outside conformance workflows need the role too)
    let stage = Stage::new().await;
    let tester = tester(&stage).await;
    let mut hooked = supervised(json!([{"kind": "terminate", "reason": "done"}]));
    hooked["id"] = json!("crew");
    let acting = chain("acting", &[mock(json!({"mockReasoning": true}))]);
    for (document, type_id, node) in [
        (acting, MOCK, "act"),
        (hooked, "core.orchestrator.supervisor", "lead"),
    ] {
        let id = document["id"].as_str().unwrap().to_owned();
        let refused = put(&stage, &stage.key, document.clone()).await;
        let details = refused.refused(400, "validation_error");
        assert_eq!(details["offendingTypeId"], type_id);
        assert_eq!(details["nodeId"], node);
        put(&stage, &tester, document).await.ok(201);
        // Registered, and still no run of whoever has no such role.
        let refused = create_as(&stage, &stage.key, &id).await;
        let details = refused.refused(400, "validation_error");
        assert_eq!(details["reason"], "typeId_refused");
        assert_eq!(details["offendingTypeId"], type_id);
        assert_eq!(details["nodeId"], node);
        create_as(&stage, &tester, &id).await.ok(201);
    }
    let call =
        json!({"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "acting"}});
    let run = stage.start("around", &[call]).await;
    stage.advance(0).await;
    let ended = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(ended["status"], "failed", "nor by way of a parent");
    let run = create_as(&stage, &tester, "around").await.ok(201)["runId"].clone();
    stage.advance(0).await;
    let path = format!("/v1/runs/{}", run.as_str().unwrap());
    assert_eq!(stage.get(&path).await.ok(200)["status"], "completed");
}

#[tokio::test]
async fn a_branch_of_a_tested_run_needs_the_role_as_well() {
    let stage = Stage::new().await;
    let tester = tester(&stage).await;
    let nodes = [mock(json!({"mockReasoning": true})), noop("z")];
    put(&stage, &tester, chain("acting", &nodes)).await.ok(201);
    let run = create_as(&stage, &tester, "acting").await.ok(201)["runId"].clone();
    let path = format!("/v1/runs/{}:fork", run.as_str().unwrap());
    for from in [0, 2] {
        let branch = json!({"mode": "branch", "fromSeq": from}).to_string();
        let refused = stage
            .call_as(&stage.key, "POST", &path, &[], branch.clone())
            .await;
        refused.refused(400, "validation_error");
        stage
            .call_as(&tester, "POST", &path, &[], branch)
            .await
            .ok(201);
    }
    let replay = json!({"mode": "replay"}).to_string();
    stage
        .call_as(&stage.key, "POST", &path, &[], replay)
        .await
        .ok(201);
}

#[tokio::test]
async fn without_the_switch_conformance_types_neither_exist_nor_are_told_of() {
    // R-0023-18 (half: nobody can register them), R-0023-20
    // R-0023-21 (half: not advertised where it is not registered)
    // R-0023-26 (half: no hook is honoured without the advertisement)
    let stage = without_conformance().await;
    let tester = tester(&stage).await;
    let echo = json!({"id": "n", "typeId": "conformance.secret.echo", "config": {"secretId": "s"}});
    let effect = json!({"id": "n", "typeId": "core.conformance.side-effect", "config": {}});
    for key in [&stage.key, &tester] {
        for node in [mock(json!({})), echo.clone(), effect.clone()] {
            let sent = put(
                &stage,
                key,
                chain("conformance-x", std::slice::from_ref(&node)),
            )
            .await;
            let details = sent.refused(400, "validation_error");
            assert_eq!(details["offendingTypeId"], node["typeId"]);
            assert!(
                sent.text.contains("is not a node type of this host"),
                "{sent:?}"
            );
        }
        let end = json!([{"kind": "terminate", "reason": "done"}]);
        let sent = put(&stage, key, supervised(end)).await;
        sent.refused(400, "validation_error");
    }
    let told = told(&stage).await;
    assert_eq!(told["conformance"]["mockAgent"], false);
    assert!(
        !told["extensions"]["nodeTypes"]
            .to_string()
            .contains("conformance")
    );
}

#[tokio::test]
async fn fixtures_are_named_where_what_they_need_exists() {
    // R-0023-22 (half: without agents or conformance types they are not named)
    let fixtures = |stage: Stage| async move {
        let act = chain("conformance-act", &[mock(json!({"mockReasoning": true}))]);
        let hook = json!({"id": "h", "typeId": "core.identity", "config": {"memoryAction": "write-then-read"}});
        let plain = chain("conformance-plain", &[noop("n")]);
        for document in [act, chain("conformance-hook", &[hook]), plain] {
            let permissions = Permissions::default();
            let _ = stage.runtime.register(None, &document, permissions).await;
        }
        tandem_api::runnable_fixtures(&stage.runtime, |_| false)
            .await
            .unwrap()
    };
    let all = ["conformance-act", "conformance-hook", "conformance-plain"];
    assert_eq!(fixtures(Stage::new().await).await, all);
    assert_eq!(fixtures(without_agents().await).await, all[1..]);
    assert_eq!(fixtures(without_conformance().await).await, all[2..]);
}

#[tokio::test]
async fn without_agents_nothing_is_said_or_supervised() {
    // R-0023-8 (half: what is advertised and what is refused)
    let stage = without_agents().await;
    let told = told(&stage).await;
    assert_eq!(told["agents"], json!({"supported": false}));
    for family in ["multiAgent", "orchestrator", "dispatch"] {
        assert!(told[family].is_null(), "{family}");
    }
    let lines = json!({"mockReasoning": true, "mockToolCalls": [{"toolId": "t"}],
                       "mockHandoff": {"toAgentId": "core.next"}, "mockConfidence": 0.1});
    let run = stage.start("conformance-agent", &[mock(lines)]).await;
    let types = types(&stage, &run).await;
    assert!(!types.iter().any(|t| t.starts_with("agent.")), "{types:?}");
    let shown = stage.get(&format!("/v1/runs/{run}")).await.ok(200);
    assert_eq!(shown["status"], "completed");
    let end = json!([{"kind": "terminate", "reason": "done"}]);
    let refused = put(&stage, &stage.key, supervised(end)).await;
    let details = refused.refused(400, "capability_required");
    assert_eq!(details["requiredCapability"], "agents.orchestrator");
    assert_eq!(details["offendingTypeId"], "core.orchestrator.supervisor");
}

#[tokio::test]
async fn a_host_held_at_a_version_advertises_and_does_no_more() {
    // R-0039-11, R-0039-28 (half: a version brings all below it and nothing above)
    // R-0044-11 (half: the kind is neither told nor used below version two)
    // R-0040-16 (half: nothing is told of it below version three)
    let unsure = json!([{"kind": "next-worker", "nextWorkerIds": ["worker"], "confidence": 0.2}]);
    for version in 1..=6 {
        let stage = at_version(version).await;
        let told = told(&stage).await;
        let model = &told["multiAgent"]["executionModel"];
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
        let explained = told["implementation"].get("vendorExtensionsUrl").is_some();
        assert_eq!(explained, version >= 2);
        let run = started(&stage, unsure.clone()).await;
        let types = types(&stage, &run).await;
        let escalated = types.iter().any(|t| t.ends_with("confidence-escalated"));
        assert_eq!(escalated, version >= 2, "{version}: {types:?}");
        let begun = types.iter().any(|t| t == "core.workflowChain.event");
        assert_eq!(begun, version < 2, "{version}: {types:?}");
    }
}

#[tokio::test]
async fn where_ancestry_is_not_advertised_no_run_has_any() {
    // R-0040-15 (half: 404 where it is not advertised, also for runs there are)
    let off = Operator {
        ancestry: false,
        ..Operator::default()
    };
    let (off, second, third) = (
        Stage::run_by(off).await,
        at_version(2).await,
        at_version(3).await,
    );
    for (stage, served) in [
        (off, false),
        (second, false),
        (third, true),
        (without_agents().await, false),
    ] {
        let told = told(&stage).await;
        let across = &told["multiAgent"]["executionModel"]["crossHostCausation"];
        assert_eq!(
            across["ancestryEndpointSupported"] == true,
            served,
            "{across}"
        );
        let run = stage.start("w", &[noop("a")]).await;
        let asked = stage.get(&format!("/v1/runs/{run}/ancestry")).await;
        if served {
            asked.ok(200);
        } else {
            asked.refused(404, "not_found");
        }
        let api = stage.get("/v1/openapi.json").await.ok(200);
        let described = api["paths"].get("/v1/runs/{runId}/ancestry").is_some();
        assert_eq!(described, served);
    }
}

#[tokio::test]
async fn a_claimed_cause_is_told_only_where_causes_cross_hosts() {
    let claim = |event: &str| {
        let parent = json!({"runId": "run-far", "hostId": "far", "eventId": event,
            "wellKnownUrl": "https://far.example/.well-known/openwop"});
        json!({"workflowId": "w", "metadata": {"openwop": {"parent": parent}}})
    };
    for (version, crosses) in [(2, false), (3, true)] {
        let stage = at_version(version).await;
        stage.register("w", &[noop("a")]).await;
        let run = stage.post("/v1/runs", claim("run-far:1")).await.ok(201)["runId"].clone();
        let log = stage.log(run.as_str().unwrap()).await;
        let cause = &log["events"][0]["causationId"];
        assert_eq!(*cause == "run-far:1", crosses, "{version}: {cause}");
        let longest = stage.post("/v1/runs", claim(&"e".repeat(128))).await;
        longest.ok(201);
        let longer = stage.post("/v1/runs", claim(&"e".repeat(129))).await;
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
async fn limits_and_lists_are_those_of_the_engine() {
    let stage = Stage::new().await;
    let told = told(&stage).await;
    let limits = &told["limits"];
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
    assert_eq!(told["interrupts"]["approvalActions"], actions);
    assert_eq!(
        told["runs"]["pauseResume"]["drainPolicies"],
        json!(["immediate", "drain-current-node"])
    );
    assert_eq!(told["replay"]["modes"], json!(["replay", "branch"]));
    let versions = told["schemaVersions"].as_object().unwrap().keys();
    let mut supported: Vec<&str> = versions.map(String::as_str).collect();
    supported.sort_unstable();
    assert_eq!(json!(supported), told["supportedEnvelopes"]);
    let routes = told["extensions"]["caller"]["scopes"].to_string();
    for gone in ["packs:publish", "workspace:read"] {
        assert!(!routes.contains(gone), "{gone} is asked for by no route");
    }
}

#[tokio::test]
async fn nothing_is_advertised_of_servers_this_host_is_not() {
    // R-0040-5 (half: no MCP tool is served), R-0040-6 (half: A2A is not spoken)
    // R-0039-18 (half: writes of siblings are advertised as advisory), R-0039-26
    // R-0044-9 (half: no capability names the status)
    let stage = Stage::new().await;
    let told = told(&stage).await;
    assert!(told["mcp"]["serverMount"].is_null());
    assert!(told["a2a"].is_null());
    assert_eq!(told["supportedTransports"], json!(["rest"]));
    let model = told["multiAgent"]["executionModel"].as_object().unwrap();
    assert_eq!(model["crossChildMemoryConcurrency"], "advisory");
    assert!(
        !model
            .keys()
            .any(|name| name.to_lowercase().contains("status"))
    );
}
