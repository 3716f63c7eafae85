//! `GET /.well-known/openwop`: the capabilities of this host, generated from the configuration.
//!
//! Capabilities are public: every key sees what an anonymous caller sees, and additionally its
//! tenant and its scopes that some route takes. It is not held to the rate of its key, since it may leave the key
//! out. An invalid credential is refused.

use super::ancestry::vendor_kinds_url;
use crate::api::{ApiState, SharedState};
use crate::caller;
use crate::http_metrics::ADVERTISED;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tandem_access::{Scope, ScopeSet, TEST_PREFIX};
use tandem_app::{CHECKPOINT_ENTRIES, CHECKPOINT_SECONDS};
use tandem_record::{DrainPolicy, ForkMode};
use tandem_wire::v1::capabilities::{
    self, AgentCapabilities, AuditLog, Compaction, EnvelopeLimits, HostCapabilities,
    ModelCapabilities, TestingCapabilities,
};
use tandem_wire::v1::stream;

/// Minimum time that an old key works beside its successor. Actually it works until it is revoked.
const ROTATION_GRACE_SECONDS: u64 = 24 * 3600;

/// Interrupt kinds of the served node types.
const INTERRUPT_KINDS: [&str; 6] = [
    "approval",
    "clarification",
    "external-event",
    "custom",
    "low-confidence",
    "conversation.exchange",
];

/// Node types that are useful only with agents.
const SUPERVISED_TYPES: [&str; 2] = ["core.orchestrator.supervisor", "core.dispatch"];

#[utoipa::path(
    get, path = "/.well-known/openwop", tag = "discovery", operation_id = "discover",
    responses((status = 200, description = "The capabilities document", body = Value),
              (status = 304, description = "Unchanged since the given ETag"))
)]
pub(super) async fn discover(
    State(api): State<SharedState>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let mut document = document(&api);
    let cache = if parts.headers.contains_key(header::AUTHORIZATION) {
        let identity = caller::look_up(&parts, &api).await?;
        let served = |scope: &Scope| api.test_seams || *scope != Scope::Test;
        let scopes: ScopeSet = identity.scopes.iter().filter(served).collect();
        let mut caller = json!({
            "tenant": identity.tenant,
            "scopes": scopes.to_stored(),
        });
        if let Some(workspace) = &identity.workspace {
            caller["workspace"] = json!(workspace);
        }
        document["extensions"]["caller"] = caller;
        "private, max-age=300"
    } else {
        "public, max-age=300"
    };
    let body = document.to_string();
    let hash = Sha256::digest(&body);
    let hash: String = hash[..16].iter().map(|b| format!("{b:02x}")).collect();
    let etag = format!("\"{hash}\"");
    let is_unchanged = matches(&parts.headers, &etag);
    let mut response = if is_unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
    let etag = HeaderValue::try_from(etag).expect("hexadecimal digits are valid in a header");
    headers.insert(header::ETAG, etag);
    Ok(response)
}

fn matches(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(header::IF_NONE_MATCH).iter();
    sent.filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|tag| tag == etag || tag == "*")
}

fn document(api: &ApiState) -> Value {
    let limits = api.app.limits();
    let policy = api.app.agent_policy();
    let mut kinds: Vec<&str> = INTERRUPT_KINDS.to_vec();
    kinds.extend(policy.vendor_kind().map(|own| own.kind.as_str()));
    let agents = policy.is_supported().then(|| AgentCapabilities {
        floor: policy.advertised_floor(),
        escalation_kind: policy.advertised_kind(),
        vendor_kinds_url: policy.vendor_kind().map(|_| vendor_kinds_url(api)),
        ask_user_routings: &tandem_app::ASK_USER_ROUTINGS,
        fan_out_policies: &tandem_app::FAN_OUT_POLICIES,
        join_modes: &tandem_app::JOIN_MODES,
        max_fan_out: tandem_app::MAX_FAN_OUT,
        max_loop_iterations: limits.max_loop_iterations,
        reasoning_token_limit: tandem_app::REASONING_TOKEN_LIMIT,
        sibling_writes: tandem_app::SIBLING_WRITES,
        ancestry: api.serves_ancestry(),
        memory: true,
        // The engine replays models in this mode, whichever providers are configured.
        replays_models: ForkMode::ALL.contains(&ForkMode::Replay),
        stateful_resume: true,
        verifier: true,
        version_cap: policy.model_cap(),
    });
    let providers = api.app.providers();
    let models = (!providers.is_empty()).then(|| ModelCapabilities {
        providers: providers.advertised().collect(),
        max_attempts: tandem_app::MAX_ATTEMPTS,
        budget_multiplier: tandem_app::BUDGET_MULTIPLIER,
    });
    let tools = !api.app.tools().is_empty();
    let of_use = |type_id: &&str| {
        let asks = tandem_app::MODEL_NODE_TYPES.contains(type_id);
        let calls = tandem_app::TOOL_NODE_TYPES.contains(type_id);
        let supervises = SUPERVISED_TYPES.contains(type_id);
        (!asks || providers.advertised().next().is_some())
            && (!calls || tools)
            && (!supervises || policy.is_supported())
    };
    let mut node_types: Vec<&str> = tandem_app::advertised_types().filter(of_use).collect();
    node_types.extend(api.app.packs().ids());
    capabilities::document(&HostCapabilities {
        host_version: api.host.version,
        host_id: api.app.host_id(),
        engine_version: tandem_app::ENGINE_VERSION,
        max_node_executions: limits.max_node_executions,
        max_run_duration_ms: limits.max_run_duration_ms,
        max_request_body_bytes: api.settings.max_body_bytes,
        envelope_limits: EnvelopeLimits {
            clarification_rounds: tandem_app::CLARIFICATION_ROUNDS,
            // The first attempt is not a retry.
            schema_rounds: tandem_app::MAX_ATTEMPTS - 1,
            per_turn: tandem_app::ENVELOPES_PER_TURN,
        },
        fixtures: &api.fixtures,
        drain_policies: &DrainPolicy::ALL,
        debug_bundle: true,
        idempotency_seconds: api.settings.idempotency_seconds,
        audit_log: Some(AuditLog {
            public_key: api.app.audit_public_key().to_spki(),
            checkpoint_entries: CHECKPOINT_ENTRIES,
            checkpoint_seconds: CHECKPOINT_SECONDS,
        }),
        key_rotation_grace_seconds: Some(ROTATION_GRACE_SECONDS),
        auth_scoped: true,
        sub_workflow_input_mapping: true,
        otel: api.otel,
        metrics: &ADVERTISED,
        stream_modes: &stream::SUPPORTED,
        node_types,
        interrupt_kinds: &kinds,
        approval_actions: &tandem_app::APPROVAL_ACTIONS,
        max_future_horizon: Some(tandem_app::MAX_FUTURE_HORIZON),
        webhooks: api.app.has_webhooks(),
        test_seams: api.test_seams,
        mock_agent: api.app.has_conformance_types(),
        testing: TestingCapabilities {
            mock_providers: match api.app.has_mock_providers() {
                true => &tandem_app::MOCK_PROVIDERS,
                false => &[],
            },
            test_key_prefix: TEST_PREFIX,
        },
        memory_entry_bytes: Some(tandem_app::MAX_ENTRY_BYTES),
        compaction: tandem_app::compaction_batch_size(limits).map(|sources| Compaction {
            max_input_entries: sources,
            max_output_bytes: tandem_app::MAX_ENTRY_BYTES,
        }),
        fork_modes: &ForkMode::ALL,
        models,
        tools,
        agents,
        packs: api.packs.as_ref(),
    })
}
