//! The flow run of a session as its state knows it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::conversation::{FlowPause, FlowRef, ParentNode, TurnCause, WorkflowResult};
use tandem_record::{EscalationId, FlowId, InterruptId, MessageId, RunId, Timestamp};

/// The flow run of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActiveFlow {
    pub(super) flow: FlowId,
    pub(super) run: RunId,
    pub(super) version: String,
    pub(super) started_at: Timestamp,
    #[serde(default)]
    pub(super) input: Option<Value>,
    /// The node of a workflow that waits for its end.
    pub(super) parent: Option<ParentNode>,
    pub(super) attempt: u32,
    pub(super) answers: BTreeMap<String, String>,
    /// The number of effects produced.
    pub(super) steps: u32,
    /// The effect that is performed now, as the author wrote it.
    pub(super) current: Option<Value>,
    pub(super) pause: Option<FlowPause>,
    /// It came to its pause during a takeover, so that what it asks was not sent.
    #[serde(default)]
    pub(super) is_unasked: bool,
    /// The last `confirm`, for `waitFor: confirm_response`.
    pub(super) last_confirm: Option<Value>,
    pub(super) last_interrupt: Option<Value>,
    /// The escalation it opened last.
    pub(super) escalation: Option<EscalationId>,
    /// Records in its journal.
    pub(super) records: u32,
    /// The message that last advanced it.
    pub(super) last_message: Option<MessageId>,
    /// Ids the author gave to confirmations and escalations.
    pub(super) client_ids: Vec<String>,
    /// A workflow it started that ended before it waited for it.
    pub(super) finished_workflow: Option<(InterruptId, WorkflowResult)>,
    /// What a wait for the handback gets of the last takeover that ended during this run.
    #[serde(default)]
    pub(super) handback: Option<Value>,
    /// What was decided about its question in the turn in which it diverged. A retry hands it over again.
    #[serde(default)]
    pub(super) undelivered: Option<Box<TurnCause>>,
}

/// Whether the author's `id` of an effect names an interrupt.
pub(super) fn client_id(effect: &Value) -> Option<&str> {
    let kind = effect.get("type")?.as_str()?;
    let names_interrupt = matches!(kind, "interrupt.confirm" | "interrupt.escalate");
    effect.get("id")?.as_str().filter(|_| names_interrupt)
}

impl ActiveFlow {
    pub fn flow_id(&self) -> &FlowId {
        &self.flow
    }

    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// The node of a workflow that waits for its end.
    pub fn parent(&self) -> Option<&ParentNode> {
        self.parent.as_ref()
    }

    pub fn pause(&self) -> Option<&FlowPause> {
        self.pause.as_ref()
    }

    pub fn answers(&self) -> &BTreeMap<String, String> {
        &self.answers
    }

    /// The effect that is performed or waited for, as the author wrote it.
    pub fn current_effect(&self) -> Option<&Value> {
        self.current.as_ref()
    }

    /// The number of effects it has produced.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether the flow waits for an answer of the user, a person or a timer.
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    pub(super) fn reference(&self) -> FlowRef {
        FlowRef {
            flow_id: self.flow.clone(),
            flow_run_id: self.run.clone(),
        }
    }
}
