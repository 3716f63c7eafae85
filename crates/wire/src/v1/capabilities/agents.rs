//! The agent part of discovery: the execution model up to the served version, and related families.

use super::HostCapabilities;
use crate::fields::{Fields, WriteFields};
use serde_json::json;

/// The multi-agent execution model as this host serves it.
#[derive(Debug, Clone)]
pub struct AgentCapabilities<'a> {
    /// The operator's confidence floor, when it is stricter than the protocol's.
    pub floor: Option<f64>,
    pub escalation_kind: Option<&'a str>,
    /// Where this host's own interrupt kinds are documented.
    pub vendor_kinds_url: Option<String>,
    pub ask_user_routings: &'a [&'a str],
    pub fan_out_policies: &'a [&'a str],
    pub join_modes: &'a [&'a str],
    pub max_fan_out: u32,
    pub max_loop_iterations: u64,
    pub reasoning_token_limit: usize,
    /// How concurrent writes of siblings are merged, as a protocol term.
    pub sibling_writes: &'a str,
    /// The ancestry endpoint is served.
    pub ancestry: bool,
    /// Memory across sub-runs, and forks that read it as it was: required for version 2.
    pub memory: bool,
    /// Replays answer model calls from the record and refuse what is not recorded: version 4.
    pub replays_models: bool,
    /// Iterations are counted, read memory as of their start and survive waits: version 5.
    pub stateful_resume: bool,
    /// Results are verified before they count: version 6.
    pub verifier: bool,
    /// The operator advertises nothing above this version.
    pub version_cap: Option<u32>,
}

/// The highest version whose lower versions are all served. Without memory across sub-runs it is 1.
fn version(agents: &AgentCapabilities<'_>) -> usize {
    // Version 3, causation across hosts, has no requirement that could be missing.
    let supported = [
        true,
        agents.memory,
        true,
        agents.replays_models,
        agents.stateful_resume,
        agents.verifier,
    ];
    let reached = supported.iter().take_while(|reached| **reached).count();
    let cap = agents.version_cap.and_then(|cap| usize::try_from(cap).ok());
    reached.min(cap.unwrap_or(supported.len()))
}

pub(super) fn multi_agent(
    host: &HostCapabilities<'_>,
    agents: &AgentCapabilities<'_>,
    out: &mut Fields,
) {
    let mut model = Fields::default();
    model.set("supported", true);
    let version = version(agents);
    model.set("version", version);
    if version >= 2 {
        model.opt("confidenceEscalationFloor", agents.floor);
        model.opt("confidenceEscalationInterruptKind", agents.escalation_kind);
        model.set("crossChildMemoryConcurrency", agents.sibling_writes);
    }
    if version >= 3 {
        model.set(
            "crossHostCausation",
            json!({
                "supported": true,
                "hostId": host.host_id,
                "ancestryEndpointSupported": agents.ancestry,
            }),
        );
    }
    if version >= 4 {
        model.set(
            "replayDeterminism",
            json!({
                "supported": true,
                "llmCacheKeyRecipe": "spec-rfc-0041",
                "refusalDivergenceEmission": true,
            }),
        );
    }
    if version >= 5 {
        model.set("statefulResume", true);
    }
    if version >= 6 {
        model.set("verifier", json!({"supported": true, "gating": true}));
    }
    out.set("multiAgent", json!({"executionModel": model.0}));
    let mut agents_document = Fields::default();
    for feature in ["supported", "orchestrator", "dispatch", "dispatchMapping"] {
        agents_document.set(feature, true);
    }
    agents_document.set(
        "reasoning",
        json!({
            "verbosity": "summary",
            "tokenLimit": agents.reasoning_token_limit,
            "streaming": true,
        }),
    );
    if agents.memory {
        agents_document.set("memoryBackends", ["long-term"]);
    }
    out.set("agents", agents_document.0);
    // The same under the older names.
    out.set("orchestrator", json!({"supported": true}));
    out.set(
        "dispatch",
        json!({
            "supported": true,
            "models": ["child-run"],
            "askUserRoutings": agents.ask_user_routings,
            "fanOutSupported": true,
            "fanOutPolicies": agents.fan_out_policies,
            "joinModes": agents.join_modes,
            "maxFanOut": agents.max_fan_out,
        }),
    );
}
