//! The events of one record of the journal: the record itself and the generic events that follow
//! from it.

use super::state::{FlowRun, node_of, workflow_id};
use crate::flow::FlowEffect;
use serde_json::{Value, json};
use tandem_record::conversation::{FlowFailure, FlowRecord, FlowRunStart, ParentNode};
use tandem_record::{
    DefinitionHash, DrainPolicy, ErrorInfo, Event, NodeId, NodeStatus, Object, ParentCause,
    ParentLink, RunOptions, RunRequest, RunStatus, Seq, Timestamp, Transport,
};

/// The prefix of the node types that effects are shown as.
const TYPE_PREFIX: &str = "vendor.tandem.flow.";

/// The code of a run that did something else than its journal says.
const DIVERGED: &str = "replay_diverged";

impl FlowRun {
    /// The events of one record, in order. The first event of a run starts it; an event that ends it is
    /// the last.
    pub(super) fn derive(&self, record: &FlowRecord, now: Timestamp) -> Vec<Event> {
        let stored = Event::Flow(Box::new(record.clone()));
        let mut events = vec![stored];
        match record {
            FlowRecord::Started(start) => events.insert(0, run_started(start)),
            FlowRecord::Segment { .. }
            | FlowRecord::Host { .. }
            | FlowRecord::Hook { .. }
            | FlowRecord::Resumed { .. } => {}
            FlowRecord::Effect { step, effect, .. } => events.push(Event::NodeStarted {
                node: node_of(*step),
                type_id: type_id(effect),
                attempt: 1,
                execution: 0,
                work: None,
                deadline: None,
                resets: Vec::new(),
                trigger: None,
            }),
            FlowRecord::Paused { pause, question } => {
                events.extend(self.pause_events(pause, question, now));
                events.extend(self.retry_events(pause, question));
            }
            FlowRecord::Result { step, value, error } => {
                events.extend(self.resolution_events(value.as_ref()));
                events.push(self.step_ended(*step, value.as_ref(), error.as_ref(), now));
            }
            FlowRecord::Ended { reason, cancelled } => {
                events.extend(self.leave_step(reason.as_deref(), *cancelled, now));
                events.push(self.run_ended(reason.as_ref(), *cancelled, now));
            }
            FlowRecord::Failed { failure } => {
                events.extend(self.leave_step(Some(&failure.code), true, now));
                events.push(self.run_failed(failure, now));
            }
            FlowRecord::Diverged {
                step,
                expected,
                actual,
            } => events.extend([
                self.diverged(*step, expected, actual),
                Event::RunPaused {
                    reason: Some(DIVERGED.to_owned()),
                    policy: DrainPolicy::Immediate,
                    interrupted: Vec::new(),
                },
            ]),
        }
        events
    }

    fn step_ended(
        &self,
        step: u32,
        value: Option<&Value>,
        error: Option<&Value>,
        now: Timestamp,
    ) -> Event {
        let node = node_of(step);
        match error {
            None => {
                let result = value.map(|value| ("result".to_owned(), value.clone()));
                self.step_completed(node, result.into_iter().collect(), now)
            }
            Some(error) => Event::NodeFailed {
                node,
                error: thrown(error),
                attempts: 1,
                child: None,
            },
        }
    }

    fn step_completed(&self, node: NodeId, outputs: Object, now: Timestamp) -> Event {
        let started = self.state.steps.last().map(|step| step.started_at);
        Event::NodeCompleted {
            node,
            outputs,
            duration_ms: now.ms_since(started.unwrap_or(now)),
            cost: None,
            child: None,
            untrusted: false,
        }
    }

    /// The end of the effect that is performed when the run ends.
    fn leave_step(&self, reason: Option<&str>, cancelled: bool, now: Timestamp) -> Vec<Event> {
        let last = self.state.steps.last();
        if last.is_none_or(|step| step.status.is_settled()) {
            return Vec::new();
        }
        let node = node_of(self.last_step());
        let is_waiting = self.state.open.is_some() && self.state.resumed.is_none();
        if cancelled || is_waiting {
            return vec![Event::NodeCancelled {
                node,
                reason: reason.unwrap_or("ended").to_owned(),
                child: None,
            }];
        }
        let mut events = self.resolution_events(None);
        events.push(self.step_completed(node, Object::new(), now));
        events
    }

    fn run_ended(&self, reason: Option<&String>, cancelled: bool, now: Timestamp) -> Event {
        let duration_ms = now.ms_since(self.state.created_at);
        if self.is_diverged() {
            let error = ErrorInfo::new(DIVERGED, "the run was given up after it diverged");
            return Event::RunFailed {
                error,
                failed_node: None,
                duration_ms,
            };
        }
        if cancelled {
            return Event::RunCancelled {
                reason: reason.cloned(),
                by: None,
                by_parent: None,
                duration_ms,
            };
        }
        let mut outputs = Object::new();
        outputs.extend(reason.map(|reason| ("reason".to_owned(), json!(reason))));
        outputs.insert("answers".to_owned(), json!(self.state.answers));
        Event::RunCompleted {
            outputs,
            duration_ms,
        }
    }

    fn run_failed(&self, failure: &FlowFailure, now: Timestamp) -> Event {
        let code = match self.is_diverged() {
            true => DIVERGED,
            false => &failure.code,
        };
        let mut error = ErrorInfo::new(code, &failure.message);
        error.details = failure.details.clone();
        let last = self.state.steps.last();
        let threw = last.is_some_and(|step| step.status == NodeStatus::Failed);
        Event::RunFailed {
            error,
            failed_node: threw.then(|| node_of(self.last_step())),
            duration_ms: now.ms_since(self.state.created_at),
        }
    }

    fn diverged(&self, step: u32, expected: &Value, actual: &Value) -> Event {
        let kind = match (expected.is_null(), actual.is_null()) {
            (_, true) => "missing",
            (true, _) => "extra",
            _ if expected.get("type") != actual.get("type") => "type-mismatch",
            _ => "output",
        };
        let recorded = self.state.steps.get(step as usize).map(|step| step.seq);
        Event::ReplayDiverged {
            source: self.id.clone(),
            sequence: recorded.or(self.state.head).unwrap_or(Seq(0)),
            kind: kind.to_owned(),
        }
    }

    /// Parked for an operator.
    pub(super) fn is_diverged(&self) -> bool {
        self.state.status == RunStatus::Paused
    }
}

/// The link to the workflow whose node started the flow, for readers of runs.
fn parent_link(parent: &ParentNode) -> ParentLink {
    ParentLink {
        run_id: parent.run_id.clone(),
        node_id: parent.node_id.clone(),
        dispatched_at: parent.dispatched_at,
        lineage: Vec::new(),
        harvest: Vec::new(),
        cause: ParentCause::SubWorkflow,
        // A flow starts no runs of the tree.
        root: None,
    }
}

fn run_started(start: &FlowRunStart) -> Event {
    let inputs = match &start.input {
        None => Object::new(),
        Some(Value::Object(fields)) => fields.clone(),
        Some(other) => [("input".to_owned(), other.clone())].into_iter().collect(),
    };
    let mut metadata = Object::new();
    metadata.insert("agentId".to_owned(), json!(start.agent_id));
    metadata.insert("flowId".to_owned(), json!(start.flow_id));
    metadata.insert("origin".to_owned(), json!(start.origin));
    let session = start.session_id.as_ref();
    metadata.extend(session.map(|id| ("sessionId".to_owned(), json!(id))));
    Event::RunStarted {
        workflow_id: workflow_id(start),
        definition: DefinitionHash::new(&start.version),
        request: Box::new(RunRequest {
            owner: start.owner.clone(),
            inputs,
            erased_defaults: Vec::new(),
            untrusted_inputs: Vec::new(),
            sensitive_inputs: Vec::new(),
            options: RunOptions {
                configurable: None,
                tags: None,
                metadata: Some(metadata),
            },
            scope_id: None,
            callback_url: None,
            callback_may_answer: false,
            parent: start.parent.as_ref().map(parent_link),
            claimed_parent: None,
            waiting_session: None,
            conformance_role: false,
            execution_model: None,
            isolated_memory: false,
            transport: Transport::Rest,
            trace: None,
            memory: None,
            forked_from: start.forked_from.clone(),
            forked_by: Vec::new(),
            levels_above: 0,
        }),
        engine_version: crate::ENGINE_VERSION,
        variables: Object::new(),
    }
}

fn type_id(effect: &Value) -> String {
    let named = effect.get("type").and_then(Value::as_str);
    let known = named.filter(|name| FlowEffect::TYPES.contains(name));
    format!("{TYPE_PREFIX}{}", known.unwrap_or("invalid"))
}

/// An error that was thrown into the code.
fn thrown(error: &Value) -> ErrorInfo {
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let code = text("code").unwrap_or("failed");
    ErrorInfo::new(code, text("message").unwrap_or_default())
}
