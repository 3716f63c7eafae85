//! The discovery document, generated from what the binary wired together. Nothing is typed by
//! hand as a promise: a family appears when its switch is on, with the values the engine enforces.

use super::payload::Fields;
use super::project::EVENT_LOG_SCHEMA_VERSION;
use serde_json::{Value, json};
use tandem_record::Object;

/// What this process serves, as far as the reader may know.
#[derive(Debug, Clone)]
pub struct Wired<'a> {
    pub host_version: &'a str,
    pub host_id: &'a str,
    pub engine_version: u32,
    pub max_node_executions: u64,
    pub max_run_duration_ms: u64,
    pub max_request_body_bytes: usize,
    /// Published fixtures that are registered for every tenant and whose types are all served.
    pub fixtures: &'a [String],
    pub pause_resume: bool,
    pub debug_bundle: bool,
    pub idempotency_seconds: u64,
    pub key_rotation_grace_seconds: Option<u64>,
    pub auth_scoped: bool,
    pub sub_workflow_input_mapping: bool,
    /// Span export is configured and compiled in.
    pub otel: bool,
    pub metrics: &'a [&'a str],
    pub stream_modes: &'a [&'a str],
    pub node_types: Vec<&'a str>,
    /// Kinds of question this host asks; empty for a reader who may not answer any.
    pub interrupt_kinds: &'a [&'a str],
    pub test_seams: bool,
    /// Bytes of one memory entry; absent when there is no memory.
    pub memory_entry_bytes: Option<usize>,
    /// Ways a run can be forked; empty for a reader who may not fork any.
    pub fork_modes: &'a [&'a str],
}

/// The document for one reader.
pub fn document(wired: &Wired<'_>) -> Value {
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
    // The envelopes are a property of the host, not of the reader.
    out.set("supportedEnvelopes", ENVELOPES);
    let versions: Object = ENVELOPES
        .iter()
        .map(|e| ((*e).to_owned(), json!(1)))
        .collect();
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
    if wired.pause_resume {
        let policies = ["immediate", "drain-current-node"];
        out.set(
            "runs",
            json!({"pauseResume": {"supported": true, "drainPolicies": policies}}),
        );
    }
    if wired.debug_bundle {
        out.set("debugBundle", json!({"supported": true}));
    }
    out.set(
        "compliance",
        json!({"defaultMode": "mask", "supportedClasses": ["public", "pii"]}),
    );
    out.set(
        "idempotency",
        json!({
            "supported": true,
            "layer1RetentionSeconds": wired.idempotency_seconds,
            "crossRegion": "single-region",
        }),
    );
    if !wired.interrupt_kinds.is_empty() {
        out.set(
            "interrupts",
            json!({
                "supportedKinds": wired.interrupt_kinds,
                "approvalActions": ["accept", "reject", "refine", "edit-accept", "ask"],
            }),
        );
    }
    out.set(
        "subWorkflow",
        json!({"inputMapping": wired.sub_workflow_input_mapping}),
    );
    if let Some(bytes) = wired.memory_entry_bytes {
        out.set("memory", memory(bytes));
        out.set("agents", json!({"memoryBackends": ["long-term"]}));
    }
    if !wired.fork_modes.is_empty() {
        out.set(
            "replay",
            json!({
                "supported": true,
                "modes": wired.fork_modes,
                "sideEffectSuppression": "recorded-outcome",
            }),
        );
    }
    out.set("conversationPrimitive", false);
    if wired.auth_scoped {
        out.set(
            "discovery",
            json!({"authScoped": {"supported": true, "mode": "same-endpoint"}}),
        );
    }
    out.opt("auth", auth(wired));
    out.set("observability", observability(wired));
    if !wired.fixtures.is_empty() {
        out.set("fixtures", wired.fixtures);
    }
    let mut extensions = json!({
        "hostId": wired.host_id,
        "streamModes": wired.stream_modes,
        "nodeTypes": wired.node_types,
    });
    if !wired.interrupt_kinds.is_empty() {
        extensions["interrupts"] = json!({
            "profiles": INTERRUPT_PROFILES,
            "signedCallbackTokens": true,
        });
    }
    out.set("extensions", extensions);
    Value::Object(out.0)
}

/// Envelope types the host understands.
const ENVELOPES: [&str; 2] = ["clarification.request", "error"];
/// Interrupt profiles whose every rule is served.
const INTERRUPT_PROFILES: [&str; 3] = [
    "openwop-interrupt-quorum",
    "openwop-interrupt-auth-required",
    "openwop-interrupt-cascade-cancel",
];

fn memory(max_entry_bytes: usize) -> Value {
    json!({
        "supported": true,
        "maxEntrySizeBytes": max_entry_bytes,
        "ttlSupported": true,
        "writable": true,
        "attribution": {"supported": true, "emitsWriteEvents": true},
    })
}

fn auth(wired: &Wired<'_>) -> Option<Value> {
    let grace = wired.key_rotation_grace_seconds?;
    let mut profiles = vec!["openwop-auth-api-key-rotation"];
    if !wired.interrupt_kinds.is_empty() {
        profiles.extend(INTERRUPT_PROFILES);
    }
    Some(json!({
        "profiles": profiles,
        "rotation": {"supported": true, "minGraceSeconds": grace},
    }))
}

fn observability(wired: &Wired<'_>) -> Value {
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
    if wired.otel {
        let protocols = ["http/protobuf", "http/json"];
        out.set(
            "otel",
            json!({"supported": true, "protocol": protocols[0], "exportProtocols": protocols}),
        );
    }
    out.set(
        "metrics",
        json!({"supported": true, "names": wired.metrics}),
    );
    if wired.test_seams {
        out.set(
            "testSeams",
            json!({"otelScrape": true, "debugBundleExport": false}),
        );
    }
    Value::Object(out.0)
}
