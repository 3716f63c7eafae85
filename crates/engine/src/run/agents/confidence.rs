//! An agent that says it is unsure is held until somebody ratifies what it decided. Separate from
//! the floor: this is about `agent.decided`, the floor about the supervisor's published decision.

use super::voice::Voice;
use crate::run::start::Question;
use crate::run::state::Run;
use crate::run::turn::Turn;
use serde_json::{Value, json};
use tandem_record::{Cause, Doubt, Said, Seq};

/// Below this an agent's decision is held, unless the run says otherwise.
const DEFAULT_THRESHOLD: f64 = 0.7;

impl Run {
    fn configurable(&self, key: &str) -> Option<&Value> {
        let options = &self.request().options;
        options.configurable.as_ref()?.get(key)
    }

    fn escalation_threshold(&self) -> f64 {
        let asked = self.configurable("escalationThreshold");
        asked.and_then(Value::as_f64).unwrap_or(DEFAULT_THRESHOLD)
    }

    /// How much of an agent's reasoning is recorded: `summary`, `full` or `off`.
    pub(super) fn reasoning_verbosity(&self) -> &str {
        let asked = self.configurable("reasoningVerbosity");
        asked.and_then(Value::as_str).unwrap_or("summary")
    }
}

impl Turn<'_> {
    /// Records what an agent decided, and gives its place; gives the question that holds it when it is too unsure.
    pub(super) fn agent_decided(
        &mut self,
        voice: &Voice,
        decision: &Value,
        confidence: Option<f64>,
        reasoning: Option<String>,
        cause: Cause,
    ) -> (Option<Seq>, Option<Box<Question>>) {
        let said = Said::Decided {
            decision: decision.clone(),
            confidence,
            reasoning,
        };
        let decided = self.say_caused(voice, said, cause);
        let threshold = self.run.escalation_threshold();
        // What nobody said holds nothing up.
        let observed = confidence.filter(|_| decided.is_some());
        let observed = observed.filter(|c| c.is_finite() && *c < threshold);
        let question = observed.map(|observed| {
            Box::new(Question {
                kind: "low-confidence".to_owned(),
                data: json!({
                    "agentId": voice.agent_id,
                    "threshold": threshold,
                    "observed": observed,
                    "decision": decision,
                    "actions": ["accept", "edit-accept", "reject"],
                }),
                resume_schema: None,
                timeout_ms: None,
                status: None,
                doubt: Some(Doubt {
                    agent_id: voice.agent_id.clone(),
                    threshold,
                    observed,
                }),
            })
        });
        (decided, question)
    }
}
