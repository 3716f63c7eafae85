//! A run's trace spans, and the metrics.

use crate::test_server::{TestServer, chain};
use serde_json::{Value, json};

async fn spans(server: &TestServer, run: &str) -> Vec<Value> {
    let path = format!("/v1/host/sample/test/otel/spans?runId={run}");
    let response = server.get(&path).await.ok(200);
    response["spans"].as_array().unwrap().clone()
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

#[tokio::test]
async fn interrupt_span_lasts_from_request_to_resolution() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let mut document = chain("careful", &[gate]);
    document["metadata"] = json!({"complianceClass": "pii"});
    let put = server
        .put("/v1/host/tandem/workflows/careful", document)
        .await;
    assert!(put.status.is_success(), "{put:?}");
    let run = server.create("careful").await;
    let snapshot = server.get(&format!("/v1/runs/{run}")).await.ok(200);
    let open = spans(&server, &run).await;
    let interrupt = named(&open, "openwop.interrupt");
    assert_eq!(interrupt["endedAt"], Value::Null);
    assert_eq!(
        interrupt["attributes"]["openwop.interrupt_kind"],
        "approval"
    );
    let id = &snapshot["interrupt"]["interruptId"];
    assert_eq!(&interrupt["attributes"]["openwop.interrupt_id"], id);
    let node = named(&open, "openwop.node.core.approvalGate");
    assert_eq!(interrupt["parentSpanId"], node["spanId"]);

    let accept = json!({"resumeValue": {"action": "accept"}});
    let path = format!("/v1/runs/{run}/interrupts/gate");
    server.post(&path, accept).await.ok(200);
    let closed = spans(&server, &run).await;
    assert!(named(&closed, "openwop.interrupt")["endedAt"].is_string());
    for span in &closed {
        assert_eq!(
            span["attributes"]["openwop.compliance_class"], "pii",
            "{span}"
        );
    }
    let whole = named(&closed, "openwop.run");
    assert_eq!(whole["attributes"]["openwop.pii_present"], true);
}

#[tokio::test]
async fn outbound_call_span_is_child_of_its_attempt() {
    let server = TestServer::new().await;
    let config = json!({"url": "https://example.com/x", "method": "GET"});
    let call = json!({"id": "call", "typeId": "vendor.tandem.http", "config": config});
    let run = server.start("calling", &[call]).await;
    server.advance(0).await;
    let spans = spans(&server, &run).await;
    let activity = named(&spans, "openwop.activity.http");
    let attempt = named(&spans, "openwop.node.vendor.tandem.http.attempt");
    assert_eq!(activity["parentSpanId"], attempt["spanId"]);
    assert!(activity["endedAt"].is_string());
    assert!(
        activity["attributes"]
            .get("openwop.compliance_class")
            .is_none()
    );
}

#[tokio::test]
async fn metrics_count_interrupts_nodes_and_backlog() {
    let server = TestServer::new().await;
    let gate = json!({"id": "gate", "typeId": "core.approvalGate", "config": {}});
    let run = server.start("asking", &[gate]).await;
    let accept = json!({"resumeValue": {"action": "accept"}});
    let path = format!("/v1/runs/{run}/interrupts/gate");
    server.post(&path, accept).await.ok(200);
    let text = server.call_as("", "GET", "/metrics", &[], "").await.text;
    for line in [
        "openwop_interrupt_requested_total 1",
        "openwop_interrupt_duration_seconds_count 1",
        "openwop_node_duration_seconds_count 1",
        "openwop_run_backlog_seconds_count 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
