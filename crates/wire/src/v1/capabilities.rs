use serde_json::{Value, json};

pub struct Wired<'a> {
    pub host_version: &'a str,
    pub host_id: &'a str,
    pub max_node_executions: u64,
    pub max_run_duration_ms: u64,
    pub max_request_body_bytes: usize,
    pub fixtures: &'a [String],
    pub pause_resume: bool,
    pub debug_bundle: bool,
    pub idempotency_seconds: u64,
    pub key_rotation_grace_seconds: Option<u64>,
    pub auth_scoped: bool,
    pub sub_workflow_input_mapping: bool,
    pub otel: bool,
    pub metrics: &'a [&'a str],
    pub stream_modes: &'a [&'a str],
    pub node_types: Vec<&'a str>,
}

pub fn document(wired: &Wired<'_>) -> Value {
    let mut doc = json!({
        "protocolVersion": "1.0",
        "implementation": {"name": "tandem", "version": wired.host_version},
        "supportedEnvelopes": ["clarification.request"],
        "schemaVersions": {"clarification.request": 1},
        "limits": {
            "clarificationRounds": 3, "schemaRounds": 2, "envelopesPerTurn": 5,
            "maxNodeExecutions": wired.max_node_executions,
            "maxRunDurationMs": wired.max_run_duration_ms,
            "maxRequestBodyBytes": wired.max_request_body_bytes,
        },
        "fixtures": wired.fixtures,
    });
    if wired.pause_resume {
        doc["runs"] = json!({"pauseResume": {"supported": true}});
    }
    if wired.debug_bundle {
        doc["debugBundle"] = json!({"supported": true});
    }
    doc
}
