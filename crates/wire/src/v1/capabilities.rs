//! The discovery document, generated from what the binary wired together. Nothing is typed by
//! hand as a promise: a family appears when its switch is on, with the values the engine enforces.

use super::payload::Fields;
use super::project::EVENT_LOG_SCHEMA_VERSION;
use super::stream;
use serde_json::{Value, json};

/// What this process serves.
#[derive(Debug, Clone)]
pub struct Wired {
    pub host_version: String,
    pub engine_version: u32,
    pub max_node_executions: u64,
    pub max_run_duration_ms: u64,
    pub max_request_body_bytes: u64,
    /// Published fixtures that are registered for every tenant and whose types are all served.
    pub fixtures: Vec<String>,
    pub idempotency_seconds: u64,
    pub effect_identity_seconds: u64,
    pub key_rotation_grace_seconds: Option<u64>,
    pub otel_protocols: Vec<String>,
    pub metric_names: Vec<String>,
    pub node_types: Vec<String>,
    pub host_routes: bool,
    /// Test seams are on: spans can be read back.
    pub test_seams: bool,
    /// Kinds of question this host can ask people; empty while it asks none.
    pub interrupt_kinds: Vec<String>,
}

/// The public document; everything a bearer may add is in [`scoped`].
pub fn document(wired: &Wired) -> Value {
    let mut out = Fields::default();
    out.set("protocolVersion", "1.0");
    out.set("protocolVersions", ["1.0"]);
    out.set(
        "implementation",
        json!({"name": "tandem", "version": wired.host_version, "vendor": "tandem"}),
    );
    out.set("engineVersion", wired.engine_version);
    out.set("eventLogSchemaVersion", EVENT_LOG_SCHEMA_VERSION);
    out.set("minClientVersion", "1.0");
    out.set("supportedTransports", ["rest"]);
    let envelopes = envelopes(wired);
    let versions: serde_json::Map<String, Value> = envelopes
        .iter()
        .map(|e| ((*e).to_owned(), json!(1)))
        .collect();
    out.set("supportedEnvelopes", envelopes);
    out.set("schemaVersions", versions);
    out.set(
        "limits",
        json!({
            "clarificationRounds": 3,
            "schemaRounds": 2,
            "envelopesPerTurn": 5,
            "maxNodeExecutions": wired.max_node_executions,
            "maxRunDurationMs": wired.max_run_duration_ms,
            "maxRequestBodyBytes": wired.max_request_body_bytes,
        }),
    );
    out.set(
        "runs",
        json!({"pauseResume": {
            "supported": true,
            "drainPolicies": ["immediate", "drain-current-node"],
        }}),
    );
    out.set("debugBundle", json!({"supported": true}));
    out.set(
        "compliance",
        json!({"defaultMode": "mask", "supportedClasses": ["public", "pii"]}),
    );
    out.set(
        "idempotency",
        json!({
            "supported": true,
            "layer1RetentionSeconds": wired.idempotency_seconds,
            "layer2RetentionSeconds": wired.effect_identity_seconds,
            "crossRegion": "single-region",
        }),
    );
    out.set("subWorkflow", json!({"inputMapping": true}));
    out.set("conversationPrimitive", false);
    out.set(
        "discovery",
        json!({"authScoped": {"supported": true, "mode": "same-endpoint"}}),
    );
    out.opt("auth", auth(wired));
    out.set("observability", observability(wired));
    out.set("fixtures", &wired.fixtures);
    out.set("extensions", json!({"streamModes": stream::SUPPORTED}));
    Value::Object(out.0)
}

/// What a caller with a key sees besides: which node types it may use.
pub fn scoped(wired: &Wired) -> Value {
    let mut document = document(wired);
    if let Some(extensions) = document.get_mut("extensions") {
        extensions["nodeTypes"] = json!(wired.node_types);
        if wired.host_routes {
            extensions["hostPrefix"] = json!("/v1/host/tandem");
        }
    }
    document
}

fn envelopes(wired: &Wired) -> Vec<&'static str> {
    let mut envelopes = vec!["error"];
    if wired
        .interrupt_kinds
        .iter()
        .any(|kind| kind == "clarification")
    {
        envelopes.insert(0, "clarification.request");
    }
    envelopes
}

fn auth(wired: &Wired) -> Option<Value> {
    let grace = wired.key_rotation_grace_seconds?;
    Some(json!({
        "profiles": ["openwop-auth-api-key-rotation"],
        "rotation": {"supported": true, "minGraceSeconds": grace},
    }))
}

fn observability(wired: &Wired) -> Value {
    let mut out = Fields::default();
    out.set("namespace", "openwop");
    out.set(
        "spanNames",
        [
            "openwop.run",
            "openwop.node.<typeId>",
            "openwop.node.<typeId>.attempt",
        ],
    );
    out.set(
        "spanAttributes",
        [
            "openwop.run_id",
            "openwop.workflow_id",
            "openwop.protocol_version",
            "openwop.node_id",
            "openwop.node_type",
            "openwop.node_attempt",
            "openwop.event_seq",
        ],
    );
    let protocols = &wired.otel_protocols;
    if let Some(first) = protocols.first() {
        out.set(
            "otel",
            json!({"supported": true, "protocol": first, "exportProtocols": protocols}),
        );
    }
    out.set(
        "metrics",
        json!({"supported": true, "names": wired.metric_names}),
    );
    if wired.test_seams {
        out.set(
            "testSeams",
            json!({"otelScrape": true, "debugBundleExport": false}),
        );
    }
    Value::Object(out.0)
}
