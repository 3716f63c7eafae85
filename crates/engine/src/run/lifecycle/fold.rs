//! Applies the events of a run as a whole to its lifecycle.

use super::state::{Cancelling, Draining, Lifecycle, Phase};
use crate::graph::channel;
use serde_json::{Value, json};
use tandem_record::{
    ErrorInfo, ModelAnswered, NodeId, Object, Principal, RunId, RunRequest, Timestamp,
};

impl Lifecycle {
    pub(in crate::run) fn start(
        &mut self,
        request: &RunRequest,
        engine_version: u32,
        at: Timestamp,
    ) {
        self.phase = Phase::Running;
        self.created_at = at;
        self.request = Some(Box::new(request.clone()));
        self.engine_version = engine_version;
    }

    pub(in crate::run) fn drain(&mut self, reason: Option<&String>) {
        self.draining = Some(Draining {
            reason: reason.cloned(),
        });
    }

    pub(in crate::run) fn pause(&mut self, at: Timestamp) {
        self.phase = Phase::Paused;
        self.draining = None;
        self.paused_at = Some(at);
    }

    /// Ends a pause. Returns by how much it extends every time limit.
    pub(in crate::run) fn resume(&mut self, at: Timestamp) -> Option<u64> {
        self.phase = Phase::Running;
        let paused_at = self.paused_at.take()?;
        // A branch does not count pauses from before its start: there its limits begin again.
        let counted = at.ms_since(paused_at.max(self.begun_at()));
        self.paused_ms = self.paused_ms.saturating_add(counted);
        Some(counted)
    }

    pub(in crate::run) fn begin_cancel(
        &mut self,
        reason: Option<&String>,
        by: Option<&Principal>,
        by_parent: Option<&RunId>,
    ) {
        self.phase = Phase::Cancelling;
        self.draining = None;
        self.paused_at = None;
        self.cancelling = Some(Cancelling {
            reason: reason.cloned(),
            by: by.cloned(),
            by_parent: by_parent.cloned(),
        });
    }

    pub(in crate::run) fn complete(&mut self, outputs: &Object, at: Timestamp) {
        self.outputs = Some(outputs.clone());
        self.end(Phase::Completed, at);
    }

    pub(in crate::run) fn fail(
        &mut self,
        error: &ErrorInfo,
        failed_node: Option<&NodeId>,
        at: Timestamp,
    ) {
        self.error = Some(error.clone());
        self.failed_node = failed_node.cloned();
        self.end(Phase::Failed, at);
    }

    pub(in crate::run) fn cancel(&mut self, at: Timestamp) {
        self.end(Phase::Cancelled, at);
    }

    fn end(&mut self, phase: Phase, at: Timestamp) {
        self.phase = phase;
        self.ended_at = Some(at);
        self.draining = None;
        self.paused_at = None;
    }

    /// Adds the cost attributes of a node.
    pub(in crate::run) fn add_costs(&mut self, cost: Option<&Object>) {
        for (name, value) in cost.into_iter().flatten() {
            self.add_cost(name, value);
        }
    }

    /// Adds the tokens of an answer to those of the run.
    pub(in crate::run) fn count_tokens(&mut self, answered: &ModelAnswered) {
        let Some(usage) = answered.answer.usage else {
            return;
        };
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        for (name, value) in [
            ("tokens.input", json!(input)),
            ("tokens.output", json!(output)),
            ("tokens.total", json!(input.saturating_add(output))),
            ("provider", json!(answered.provider)),
            ("model", json!(answered.model)),
        ] {
            self.add_cost(&format!("openwop.cost.{name}"), &value);
        }
    }

    fn add_cost(&mut self, name: &str, value: &Value) {
        let sum = match (self.cost.get(name), value) {
            (Some(old), new) if old.is_number() && new.is_number() => {
                channel::fold(Some(old.clone()), new, "counter", None, None, Timestamp(0))
            }
            _ => value.clone(),
        };
        self.cost.insert(name.to_owned(), sum);
    }
}
