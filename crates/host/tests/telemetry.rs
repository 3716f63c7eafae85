//! Spans of a run arrive at a collector, with the trace of its caller; so do metrics.
#![cfg(feature = "otel")]

mod server;

use serde_json::Value;
use server::Server;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Receives one OTLP request and answers it.
fn receive(collector: &TcpListener) -> (String, Value) {
    let (mut connection, _) = collector.accept().unwrap();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    connection.write_all(answer.as_bytes()).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_run_is_exported_as_spans_of_its_callers_trace() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let server = Server::exporting_to(&endpoint);
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    server.post(
        "/v1/runs",
        &[("traceparent", &traceparent)],
        r#"{"workflowId": "hello", "tags": ["blue"]}"#,
    );

    let (head, body) = receive(&collector);
    assert!(head.starts_with("POST /v1/traces "), "{head}");
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let named = |name: &str| {
        let found = spans.iter().find(|span| span["name"] == name);
        found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
    };
    let attribute = |span: &Value, key: &str| {
        let found = span["attributes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|a| a["key"] == key);
        found.map(|a| a["value"].clone()).unwrap_or_default()
    };
    let run = named("openwop.run");
    assert_eq!(
        (&run["traceId"], &run["parentSpanId"]),
        (&TRACE.into(), &PARENT.into())
    );
    assert_eq!(
        attribute(run, "openwop.workflow_id")["stringValue"],
        "hello"
    );
    assert_eq!(attribute(run, "openwop.run.tag.0")["stringValue"], "blue");
    let node = named("openwop.node.core.delay");
    assert_eq!(node["parentSpanId"], run["spanId"]);
    assert_eq!(attribute(node, "openwop.node_id")["stringValue"], "think");
    let attempt = named("openwop.node.core.delay.attempt");
    assert_eq!(attempt["parentSpanId"], node["spanId"]);
}

#[test]
fn metrics_are_exported_under_the_protocols_names() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/numbers", collector.local_addr().unwrap());
    let server = Server::exporting_metrics_to(&endpoint);
    server.post("/v1/runs", &[], r#"{"workflowId": "hello"}"#);

    // The first exports may have been made before the run ended.
    let metrics = loop {
        let (head, body) = receive(&collector);
        assert!(head.starts_with("POST /numbers "), "{head}");
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
        let metrics = metrics.as_array().unwrap().clone();
        if number(&metrics, "openwop.run.completed") == Some(1.0) {
            break metrics;
        }
    };
    assert_eq!(number(&metrics, "openwop.run.created"), Some(1.0));
    let ended = &named(&metrics, "openwop.run.completed")["sum"]["dataPoints"][0];
    assert_eq!(ended["attributes"][0]["key"], "openwop.run_status");
    assert_eq!(ended["attributes"][0]["value"]["stringValue"], "completed");
    let duration = named(&metrics, "openwop.run.duration");
    assert_eq!(duration["unit"], "s");
    let point = &duration["histogram"]["dataPoints"][0];
    let bounds = point["explicitBounds"].as_array().unwrap().len();
    let counts = point["bucketCounts"].as_array().unwrap();
    assert_eq!(counts.len(), bounds + 1);
    let total: u64 = counts.iter().map(whole).sum();
    assert_eq!((total, whole(&point["count"])), (1, 1));
}

fn named<'a>(metrics: &'a [Value], name: &str) -> &'a Value {
    let found = metrics.iter().find(|metric| metric["name"] == name);
    found.unwrap_or_else(|| panic!("no metric {name} in {metrics:#?}"))
}

/// A counter without series is not exported.
fn number(metrics: &[Value], name: &str) -> Option<f64> {
    let found = metrics.iter().find(|metric| metric["name"] == name)?;
    found["sum"]["dataPoints"][0]["asDouble"].as_f64()
}

/// OTLP encodes 64-bit integers as text.
fn whole(value: &Value) -> u64 {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string()).parse().unwrap()
}
