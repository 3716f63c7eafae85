//! `core.orchestrator.supervisor`: where the decision of an iteration comes from.

use super::ParseContext;
use super::decision::OrchestratorDecision;
use super::http::{self, HttpConfig};
use super::settings::{Setting, object, value};
use super::verifier::{self, Verifier, keys};
use crate::conformance::scripts;
use serde_json::{Value, json};
use tandem_record::Object;

#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) source: DecisionSource,
    /// Scripted, in place of a live agent's confidence.
    pub(crate) scripted_confidence: Option<f64>,
    pub(crate) agent_id: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) iteration_cap: Option<u64>,
    /// Checks a result before it counts.
    pub(crate) verifier: Option<Verifier>,
    /// Criteria that a decision to end the run has to state.
    pub(crate) success_criteria: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum DecisionSource {
    /// Scripted: the same decision in every iteration.
    Pending(OrchestratorDecision),
    /// Scripted: the n-th decision of the run, then the end.
    Plan(Vec<OrchestratorDecision>),
    /// An agent behind an HTTP endpoint decides.
    Endpoint(Box<HttpConfig>),
    /// A preceding node made the decision; it arrives at the port `decision`.
    Port,
}

pub(super) const SETTINGS: &[Setting] = &[
    value("agentId"),
    value("prompt"),
    value("iterationCap"),
    value("successCriteria"),
    object("endpoint", http::SETTINGS),
    object("verifier", verifier::SETTINGS),
    value(scripts::DISPATCH_PLAN),
    value(scripts::DECISIONS),
    value(scripts::CONFIDENCE),
    value(scripts::PENDING_DECISION),
];

pub(crate) const MIN_AGENT_ID_CHARS: usize = 3;
pub(super) const MAX_AGENT_ID_CHARS: usize = 256;

impl Supervisor {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        scripts::admit_supervisor_scripts(config, cx)?;
        let agent_id = agent_id(config, cx)?;
        Some(Self {
            source: source(config, cx)?,
            scripted_confidence: scripts::scripted_confidence(config, cx)?,
            agent_id,
            prompt: cx.text(config, "prompt")?,
            iteration_cap: cx.whole(config, "iterationCap", 1)?,
            verifier: Verifier::parse(config, cx)?,
            success_criteria: keys(config, "successCriteria", cx)?,
        })
    }
}

fn source(config: &Object, cx: &mut ParseContext<'_>) -> Option<DecisionSource> {
    if let Some(scripted) = scripts::scripted_decisions(config, cx)? {
        return Some(scripted);
    }
    match config.get("endpoint") {
        None | Some(Value::Null) => {}
        Some(Value::Object(config)) => {
            let endpoint = endpoint(config, "endpoint", cx)?;
            return Some(DecisionSource::Endpoint(Box::new(endpoint)));
        }
        Some(_) => return cx.bad("endpoint", "must be an object with a url"),
    }
    Some(scripts::implicit_plan(cx).unwrap_or(DecisionSource::Port))
}

/// An agent behind an endpoint: a call whose body the host writes and whose answer it reads.
pub(super) fn endpoint(
    endpoint: &Object,
    at: &str,
    cx: &mut ParseContext<'_>,
) -> Option<HttpConfig> {
    let mut request = endpoint.clone();
    for key in ["body", "output"] {
        if request.contains_key(key) {
            return cx.bad(&format!("{at}/{key}"), "is chosen by the supervisor");
        }
    }
    request.entry("method").or_insert_with(|| json!("POST"));
    if request
        .get("url")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return cx.bad(&format!("{at}/url"), "url is required");
    }
    let before = cx.problems.len();
    let parsed = HttpConfig::parse(&request, cx);
    for problem in &mut cx.problems[before..] {
        let inner = format!("/config/{at}/");
        problem.path = problem.path.replacen("/config/", &inner, 1);
    }
    parsed
}

/// An agent's own id; the protocol limits its length.
pub(crate) fn agent_id(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<String>> {
    let id = cx.text(config, "agentId")?;
    let fits =
        |id: &String| (MIN_AGENT_ID_CHARS..=MAX_AGENT_ID_CHARS).contains(&id.chars().count());
    if id.as_ref().is_some_and(|id| !fits(id)) {
        let message = format!("has {MIN_AGENT_ID_CHARS} to {MAX_AGENT_ID_CHARS} characters");
        return cx.bad("agentId", message);
    }
    Some(id)
}

/// An optional number from 0 to 1.
pub(crate) fn fraction(
    config: &Object,
    key: &str,
    cx: &mut ParseContext<'_>,
) -> Option<Option<f64>> {
    match config.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(value) => match value.as_f64().filter(|n| (0.0..=1.0).contains(n)) {
            Some(n) => Some(Some(n)),
            None => cx.bad(key, "must be a number from 0 to 1"),
        },
    }
}
