//! The discovery document, generated from what the binary serves. No promise is written by hand: a
//! family appears when its switch is on, with the values the engine enforces.

mod agents;
mod packs;
mod testing;
#[cfg(test)]
mod tests;

pub use agents::AgentCapabilities;
pub use packs::WasmPacks;
pub use testing::TestingCapabilities;

use super::memory_and_lineage::COMPACTION_TRIGGER;
use super::project::EVENT_LOG_SCHEMA_VERSION;
use super::webhook::SIGNATURE_ALGORITHM;
use crate::fields::{Fields, WriteFields};
use serde_json::{Value, json};
use tandem_record::{DrainPolicy, ForkMode, Object};

/// What this process serves, as far as the reader may see it.
#[derive(Debug, Clone)]
pub struct HostCapabilities<'a> {
    pub host_version: &'a str,
    pub host_id: &'a str,
    pub engine_version: u32,
    pub max_node_executions: u64,
    pub max_run_duration_ms: u64,
    pub max_request_body_bytes: usize,
    pub envelope_limits: EnvelopeLimits,
    /// Published fixtures that are registered for every tenant and whose node types are all served.
    pub fixtures: &'a [String],
    /// Ways a run can be paused.
    pub drain_policies: &'a [DrainPolicy],
    pub debug_bundle: bool,
    pub idempotency_seconds: u64,
    pub key_rotation_grace_seconds: Option<u64>,
    /// Present when the audit log is chained, sealed and can be verified.
    pub audit_log: Option<AuditLog>,
    pub auth_scoped: bool,
    pub sub_workflow_input_mapping: bool,
    /// How spans are exported; absent when export is not configured or not compiled in.
    pub otel: Option<&'static str>,
    pub metrics: &'a [&'a str],
    pub stream_modes: &'a [&'a str],
    pub node_types: Vec<&'a str>,
    /// Interrupt kinds of this host; empty for a reader who may not answer any.
    pub interrupt_kinds: &'a [&'a str],
    /// Actions that answer an approval.
    pub approval_actions: &'a [&'a str],
    /// Run events are delivered to subscribers.
    pub webhooks: bool,
    pub test_seams: bool,
    /// The mock agent of conformance tests exists.
    pub mock_agent: bool,
    pub testing: TestingCapabilities<'a>,
    /// Bytes of one memory entry; absent when there is no memory.
    pub memory_entry_bytes: Option<usize>,
    /// Limits of note compaction; absent when it is off.
    pub compaction: Option<Compaction>,
    /// Ways a run can be forked; empty for a reader who may not fork any.
    pub fork_modes: &'a [ForkMode],
    /// Models that nodes can call; absent where there is none, or for a reader who may not start
    /// runs.
    pub models: Option<ModelCapabilities<'a>>,
    /// Nodes can call tools of MCP servers.
    pub tools: bool,
    /// Supervisors and workers; absent where they are switched off.
    pub agents: Option<AgentCapabilities<'a>>,
    /// Runs start by the clock: how far ahead, as a duration of ISO 8601.
    pub max_future_horizon: Option<&'a str>,
    /// WebAssembly packs; absent where none are configured, or for a reader who may not start runs.
    pub packs: Option<&'a WasmPacks>,
}

/// Limits on model answers.
#[derive(Debug, Clone, Copy)]
pub struct EnvelopeLimits {
    pub clarification_rounds: u32,
    pub schema_rounds: u32,
    pub per_turn: u32,
}

/// Limits of one compaction: entries it reads and entries it leaves.
#[derive(Debug, Clone, Copy)]
pub struct Compaction {
    pub max_input_entries: usize,
    pub max_output_bytes: usize,
}

/// Models that nodes can call.
#[derive(Debug, Clone)]
pub struct ModelCapabilities<'a> {
    /// Provider names chosen by the operator.
    pub providers: Vec<&'a str>,
    /// Attempts to get JSON that fits the schema.
    pub max_attempts: u32,
    /// Growth of the output budget after a truncated answer.
    pub budget_multiplier: u64,
}

/// How the audit log is sealed.
#[derive(Debug, Clone)]
pub struct AuditLog {
    /// Base64 of the DER form (SPKI).
    pub public_key: String,
    pub checkpoint_entries: u64,
    pub checkpoint_seconds: u64,
}

/// The document for one reader.
pub fn document(host: &HostCapabilities<'_>) -> Value {
    let mut out = Fields::default();
    out.set("protocolVersion", "1.0");
    out.set("protocolVersions", ["1.0"]);
    let vendor_kinds = host
        .agents
        .as_ref()
        .and_then(|a| a.vendor_kinds_url.as_ref());
    let mut implementation = Fields::default();
    implementation.set("name", "tandem");
    implementation.set("version", host.host_version);
    implementation.set("vendor", "tandem");
    implementation.opt("vendorExtensionsUrl", vendor_kinds);
    out.set("implementation", implementation.0);
    out.set("engineVersion", host.engine_version);
    out.set("eventLogSchemaVersion", EVENT_LOG_SCHEMA_VERSION);
    out.set("minClientVersion", "1.0");
    out.set("supportedTransports", ["rest"]);
    // Envelopes are a property of the host, not of the reader.
    let envelopes = envelopes(host);
    out.set("supportedEnvelopes", &envelopes);
    let versions: Object = envelopes
        .iter()
        .map(|e| ((*e).to_owned(), json!(1)))
        .collect();
    out.set("schemaVersions", versions);
    let mut limits = json!({
        "clarificationRounds": host.envelope_limits.clarification_rounds,
        "schemaRounds": host.envelope_limits.schema_rounds,
        "envelopesPerTurn": host.envelope_limits.per_turn,
        "maxNodeExecutions": host.max_node_executions,
        "maxRunDurationMs": host.max_run_duration_ms,
        "maxRequestBodyBytes": host.max_request_body_bytes,
    });
    if let Some(agents) = &host.agents {
        limits["maxLoopIterations"] = json!(agents.max_loop_iterations);
    }
    out.set("limits", limits);
    if !host.drain_policies.is_empty() {
        let policies = host.drain_policies;
        out.set(
            "runs",
            json!({"pauseResume": {"supported": true, "drainPolicies": policies}}),
        );
    }
    if host.debug_bundle {
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
            "layer1RetentionSeconds": host.idempotency_seconds,
            "crossRegion": "single-region",
        }),
    );
    if !host.interrupt_kinds.is_empty() {
        out.set(
            "interrupts",
            json!({
                "supportedKinds": host.interrupt_kinds,
                "approvalActions": host.approval_actions,
            }),
        );
    }
    if !host.interrupt_kinds.is_empty() {
        let routing = json!({"supported": true, "refKinds": ["group", "role"]});
        out.set("interrupt", json!({"approverRouting": routing}));
    }
    if host.webhooks {
        out.set(
            "webhooks",
            json!({
                "supported": true,
                "signatureAlgorithms": [SIGNATURE_ALGORITHM],
                // Events are stored and retried, but the term also includes the trigger bridge's
                // events.
                "durable": false,
            }),
        );
    }
    if let Some(horizon) = host.max_future_horizon {
        out.set(
            "scheduling",
            json!({
                "supported": true,
                "cron": true,
                "delayed": true,
                "calendar": false,
                "maxFutureHorizon": horizon,
            }),
        );
    }
    out.set(
        "subWorkflow",
        json!({"inputMapping": host.sub_workflow_input_mapping}),
    );
    if let Some(bytes) = host.memory_entry_bytes {
        out.set("memory", memory(bytes, host.compaction));
    }
    if !host.fork_modes.is_empty() {
        out.set(
            "replay",
            json!({
                "supported": true,
                "modes": host.fork_modes,
                "sideEffectSuppression": "recorded-outcome",
            }),
        );
    }
    let conversations = host.node_types.contains(&"core.conversationGate");
    out.set("conversationPrimitive", conversations);
    if let Some(models) = &host.models {
        models_document(models, &mut out);
    }
    if host.tools {
        // This host calls tools of other servers; it is not an MCP server itself. The published schema
        // closes this object, so the list of servers (M-14) is among the extensions.
        out.set("mcp", json!({"supported": true}));
    }
    match &host.agents {
        Some(agents) => agents::multi_agent(host, agents, &mut out),
        None => out.set("agents", json!({"supported": false})),
    }
    out.set("conformance", json!({"mockAgent": host.mock_agent}));
    if let Some(packs) = host.packs {
        out.set("nodePackRuntimes", packs::document(packs));
    }
    if host.auth_scoped {
        out.set(
            "discovery",
            json!({"authScoped": {"supported": true, "mode": "same-endpoint"}}),
        );
    }
    out.opt("auth", auth(host));
    out.set("observability", observability(host));
    out.set("testing", testing::document(&host.testing));
    if !host.fixtures.is_empty() {
        out.set("fixtures", host.fixtures);
    }
    let mut extensions = json!({
        "hostId": host.host_id,
        "streamModes": host.stream_modes,
        "nodeTypes": host.node_types,
    });
    if !host.interrupt_kinds.is_empty() {
        extensions["interrupts"] = json!({
            "profiles": INTERRUPT_PROFILES,
            "signedCallbackTokens": true,
        });
    }
    if host.tools {
        let mounted: [&str; 0] = [];
        extensions["mcp"] = json!({"serverUrls": mounted});
    }
    if let Some(url) = vendor_kinds {
        extensions["vendorExtensionsUrl"] = json!(url);
    }
    out.set("extensions", extensions);
    Value::Object(out.0)
}

fn models_document(models: &ModelCapabilities<'_>, out: &mut Fields) {
    if !models.providers.is_empty() {
        // Keys belong to the operator; callers cannot supply one.
        let byok: [&str; 0] = [];
        out.set(
            "aiProviders",
            json!({"supported": models.providers, "byok": byok}),
        );
    }
    let completion = json!({
        "distinguishesTruncation": true,
        "truncationBudgetMultiplier": models.budget_multiplier,
    });
    let reliability = json!({
        "supported": true,
        "events": ENVELOPE_EVENTS,
        "maxRetryAttempts": models.max_attempts,
        "completion": completion,
    });
    out.set("envelopes", json!({"reliability": reliability}));
}

/// Events about a model answer that could not be used.
const ENVELOPE_EVENTS: [&str; 5] = [
    "envelope.retry.attempted",
    "envelope.retry.exhausted",
    "envelope.refusal",
    "envelope.truncated",
    "envelope.recovery.applied",
];
/// Envelope types the host supports: the interrupts it opens, and its own refusals.
fn envelopes(host: &HostCapabilities<'_>) -> Vec<&'static str> {
    let asks = host.interrupt_kinds.contains(&"clarification");
    let clarification = asks.then_some("clarification.request");
    clarification.into_iter().chain(["error"]).collect()
}
/// Interrupt profiles that are served completely.
const INTERRUPT_PROFILES: [&str; 4] = [
    "openwop-interrupt-quorum",
    "openwop-interrupt-auth-required",
    "openwop-interrupt-external-event",
    "openwop-interrupt-cascade-cancel",
];

fn memory(max_entry_bytes: usize, compaction: Option<Compaction>) -> Value {
    let mut memory = json!({
        "supported": true,
        "maxEntrySizeBytes": max_entry_bytes,
        "ttlSupported": true,
        "writable": true,
        "attribution": {"supported": true, "emitsWriteEvents": true},
    });
    if let Some(compaction) = compaction {
        memory["compaction"] = json!({
            "supported": true,
            "trigger": COMPACTION_TRIGGER,
            "maxInputEntries": compaction.max_input_entries,
            "maxOutputBytes": compaction.max_output_bytes,
        });
    }
    memory
}

fn auth(host: &HostCapabilities<'_>) -> Option<Value> {
    let grace = host.key_rotation_grace_seconds?;
    let mut profiles = vec!["openwop-auth-api-key-rotation"];
    if !host.interrupt_kinds.is_empty() {
        profiles.extend(INTERRUPT_PROFILES);
    }
    if host.audit_log.is_some() {
        profiles.push("openwop-audit-log-integrity");
    }
    let mut auth = json!({
        "profiles": profiles,
        "rotation": {"supported": true, "minGraceSeconds": grace},
    });
    if let Some(log) = &host.audit_log {
        auth["auditLogIntegrity"] = json!({
            "hashChain": true,
            "checkpointSignatureAlgorithm": "ed25519",
            "checkpointPublicKey": log.public_key,
            "checkpointIntervalEntries": log.checkpoint_entries,
            "checkpointIntervalSeconds": log.checkpoint_seconds,
        });
    }
    Some(auth)
}

fn observability(host: &HostCapabilities<'_>) -> Value {
    let mut out = Fields::default();
    out.set("namespace", "openwop");
    out.set(
        "spanNames",
        [
            "openwop.run",
            "openwop.node.<typeId>",
            "openwop.node.<typeId>.attempt",
            "openwop.activity.<provider>",
            "openwop.interrupt",
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
            "openwop.interrupt_kind",
            "openwop.interrupt_id",
            "openwop.interrupt_count",
            "openwop.compliance_class",
            "openwop.pii_present",
        ],
    );
    if let Some(protocol) = host.otel {
        let protocols = ["http/protobuf", "http/json"];
        out.set(
            "otel",
            json!({"supported": true, "protocol": protocol, "exportProtocols": protocols}),
        );
    }
    out.set("metrics", json!({"supported": true, "names": host.metrics}));
    if host.test_seams {
        out.set(
            "testSeams",
            json!({"otelScrape": true, "debugBundleExport": false}),
        );
    }
    Value::Object(out.0)
}
