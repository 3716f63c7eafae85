//! Holds an agent's decision with low confidence until a person ratifies it. This is separate from
//! the confidence floor: this module checks `agent.decided`, the floor checks the supervisor's
//! published decision.

use super::emitter::AgentEmitter;
use crate::run::draft::DecisionDraft;
use crate::run::questions::Question;
use crate::run::state::Run;
use serde_json::{Value, json};
use tandem_record::{AgentEventKind, Cause, LowConfidence, Seq};

/// A decision of an agent below this confidence is held, unless the run sets another threshold.
const DEFAULT_THRESHOLD: f64 = 0.7;

impl Run {
    fn configurable(&self, key: &str) -> Option<&Value> {
        let options = &self.request().options;
        options.configurable.as_ref()?.get(key)
    }

    fn escalation_threshold(&self) -> f64 {
        let configured = self.configurable("escalationThreshold");
        configured
            .and_then(Value::as_f64)
            .unwrap_or(DEFAULT_THRESHOLD)
    }

    /// How much of an agent's reasoning is recorded: `summary`, `full` or `off`.
    pub(super) fn reasoning_verbosity(&self) -> &str {
        let configured = self.configurable("reasoningVerbosity");
        configured.and_then(Value::as_str).unwrap_or("summary")
    }
}

impl DecisionDraft<'_> {
    /// Records an agent's decision and returns its sequence number. Also returns the question that
    /// holds the decision when its confidence is too low.
    pub(crate) fn emit_agent_decision(
        &mut self,
        emitter: &AgentEmitter,
        decision: &Value,
        confidence: Option<f64>,
        reasoning: Option<String>,
        cause: Cause,
    ) -> (Option<Seq>, Option<Box<Question>>) {
        let event = AgentEventKind::Decided {
            decision: decision.clone(),
            confidence,
            reasoning,
        };
        let decided = self.emit_agent_event_with_cause(emitter, event, cause);
        let threshold = self.run.escalation_threshold();
        // Without an agent event nothing is held.
        let observed = confidence.filter(|_| decided.is_some());
        let observed = observed.filter(|c| c.is_finite() && *c < threshold);
        let question = observed.map(|observed| {
            Box::new(Question {
                kind: "low-confidence".to_owned(),
                data: json!({
                    "agentId": emitter.agent_id,
                    "threshold": threshold,
                    "observed": observed,
                    "decision": decision,
                    "actions": ["accept", "edit-accept", "reject"],
                }),
                resume_schema: None,
                timeout_ms: None,
                status: None,
                hidden: None,
                low_confidence: Some(LowConfidence {
                    agent_id: emitter.agent_id.clone(),
                    threshold,
                    observed,
                }),
            })
        });
        (decided, question)
    }
}
