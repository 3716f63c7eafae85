//! What readers of a run see of a flow that waits: the kind, the data and the status of its
//! interrupt.

use super::state::{FlowRun, node_of};
use crate::flow::is_function;
use serde_json::{Value, json};
use tandem_record::conversation::{EscalationPriority, FlowPause, WaitFor};
use tandem_record::{Event, Interrupt, NodeId, Object, RunStatus, Timestamp};

/// The id of the question a confirmation is shown as.
pub(super) const CONFIRM_QUESTION: &str = "confirm";

/// What an admin may do with an escalation.
const ESCALATION_ACTIONS: [&str; 3] = ["accept", "reject", "edit-accept"];

/// Why a run is not paused any more.
const RETRIED: &str = "divergence_retried";

/// How a pause is shown.
pub(super) enum ShownPause {
    /// The user is asked: the id and the text of the question, and what an answer looks like.
    Clarification {
        id: String,
        text: String,
        schema: Option<Value>,
    },
    Approval {
        escalation: String,
        title: String,
        data: Value,
        priority: Option<u8>,
    },
    /// Only the runtime continues the run.
    ExternalEvent {
        event_type: &'static str,
        correlation: Object,
    },
}

impl ShownPause {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Clarification { .. } => "clarification",
            Self::Approval { .. } => "approval",
            Self::ExternalEvent { .. } => "external-event",
        }
    }

    fn status(&self) -> RunStatus {
        match self {
            Self::Clarification { .. } => RunStatus::WaitingInput,
            Self::Approval { .. } => RunStatus::WaitingApproval,
            Self::ExternalEvent { .. } => RunStatus::WaitingExternal,
        }
    }

    fn data(&self) -> Value {
        match self {
            Self::Clarification { id, text, schema } => {
                let mut question = json!({"id": id, "question": text});
                if let Some(schema) = schema {
                    question["schema"] = schema.clone();
                }
                json!({"questions": [question]})
            }
            Self::Approval {
                escalation,
                title,
                data,
                ..
            } => json!({
                "artifactId": escalation,
                "artifactType": "escalation",
                "title": title,
                "artifactData": data,
                "actions": ESCALATION_ACTIONS,
            }),
            Self::ExternalEvent {
                event_type,
                correlation,
            } => json!({"eventType": event_type, "correlation": correlation}),
        }
    }
}

impl FlowRun {
    /// The events of a pause. A repeated question is no new interrupt.
    pub(super) fn pause_events(
        &self,
        pause: &FlowPause,
        effect: &Value,
        now: Timestamp,
    ) -> Vec<Event> {
        let open = self.state.open.as_ref();
        let is_repeated =
            open.is_some_and(|open| open.pause.interrupt_id() == pause.interrupt_id());
        if is_repeated {
            return Vec::new();
        }
        let shown = self.shown_pause(pause, effect);
        let node = node_of(self.last_step());
        let id = pause.interrupt_id().clone();
        let key = self.interrupt_key(&node);
        let interrupt = Interrupt {
            id: id.clone(),
            kind: shown.kind().to_owned(),
            key: key.clone(),
            data: shown.data(),
            resume_schema: None,
            timeout_ms: pause.deadline().map(|deadline| deadline.ms_since(now)),
            requested_at: now,
            due: pause.deadline(),
            priority: match &shown {
                ShownPause::Approval { priority, .. } => *priority,
                _ => None,
            },
            hidden: None,
        };
        let mut events = vec![Event::InterruptRequested {
            node: node.clone(),
            interrupt: Box::new(interrupt),
        }];
        match &shown {
            ShownPause::Clarification { .. } => events.push(Event::ClarificationRequested {
                node: node.clone(),
                interrupt: id.clone(),
                questions: shown.data()["questions"].clone(),
            }),
            ShownPause::Approval {
                escalation, title, ..
            } => events.push(Event::ApprovalRequested {
                node: node.clone(),
                interrupt: id.clone(),
                artifact_id: escalation.clone(),
                artifact_type: "escalation".to_owned(),
                title: title.clone(),
                actions: ESCALATION_ACTIONS.map(str::to_owned).to_vec(),
                approvers: Vec::new(),
                required: 1,
            }),
            ShownPause::ExternalEvent { .. } => {}
        }
        events.push(self.suspended(pause, &shown));
        events
    }

    /// The events of a diverged run that waits again where it waited.
    pub(super) fn retry_events(&self, pause: &FlowPause, effect: &Value) -> Vec<Event> {
        if !self.is_diverged() {
            return Vec::new();
        }
        let shown = self.shown_pause(pause, effect);
        let resumed = Event::RunResumed {
            reason: Some(RETRIED.to_owned()),
        };
        vec![resumed, self.suspended(pause, &shown)]
    }

    fn interrupt_key(&self, node: &NodeId) -> String {
        format!("{}:{node}:1", self.id)
    }

    fn suspended(&self, pause: &FlowPause, shown: &ShownPause) -> Event {
        let node = node_of(self.last_step());
        Event::NodeSuspended {
            key: self.interrupt_key(&node),
            node,
            interrupt: pause.interrupt_id().clone(),
            kind: shown.kind().to_owned(),
            status: shown.status(),
            reason: Some(pause.name().to_owned()),
            mirrors: None,
            data: None,
            child: None,
            low_confidence: None,
        }
    }

    pub(super) fn last_step(&self) -> u32 {
        u32::try_from(self.state.steps.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn shown_pause(&self, pause: &FlowPause, effect: &Value) -> ShownPause {
        match pause {
            FlowPause::Ask { key, .. } => ShownPause::Clarification {
                id: key.clone(),
                text: text_of(effect, "text"),
                schema: None,
            },
            FlowPause::Confirm { .. } => confirmation(Some(effect)),
            FlowPause::Wait {
                wait_for,
                escalation_id,
                ..
            } => match wait_for {
                WaitFor::ConfirmResponse => confirmation(self.state.confirm.as_ref()),
                WaitFor::AdminResolution => {
                    let id = escalation_id.as_ref().map(ToString::to_string);
                    self.approval(id.unwrap_or_default())
                }
                WaitFor::LiveHandback => {
                    let escalation = escalation_id.as_ref();
                    let named = escalation.map(|id| ("escalationId".to_owned(), json!(id)));
                    let correlation =
                        named.map_or_else(|| self.session(), |id| [id].into_iter().collect());
                    ShownPause::ExternalEvent {
                        event_type: "tandem.handback",
                        correlation,
                    }
                }
                WaitFor::Timeout => ShownPause::ExternalEvent {
                    event_type: "tandem.timer",
                    correlation: self.session(),
                },
            },
            FlowPause::Workflow { run_id, .. } => ShownPause::ExternalEvent {
                event_type: "tandem.run_finished",
                correlation: [("runId".to_owned(), json!(run_id))].into_iter().collect(),
            },
            FlowPause::ProxyWait { proxy_id, .. } => ShownPause::ExternalEvent {
                event_type: "tandem.proxy_input",
                correlation: [("proxyId".to_owned(), json!(proxy_id))]
                    .into_iter()
                    .collect(),
            },
        }
    }

    fn session(&self) -> Object {
        let session = self
            .state
            .start
            .as_ref()
            .and_then(|start| start.session_id.as_ref());
        session
            .map(|id| ("sessionId".to_owned(), json!(id)))
            .into_iter()
            .collect()
    }

    fn approval(&self, escalation: String) -> ShownPause {
        let effect = self.state.escalate.as_ref();
        let field = |name: &str| effect.and_then(|effect| effect.get(name));
        let mut data = match field("metadata") {
            Some(Value::Object(metadata)) => metadata.clone(),
            _ => Object::new(),
        };
        // What the author put under this name is about the case, so it stays.
        data.entry("context")
            .or_insert_with(|| self.reviewer_context());
        let priority = field("priority")
            .cloned()
            .and_then(|p| serde_json::from_value(p).ok());
        ShownPause::Approval {
            escalation,
            title: field("reason")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            data: Value::Object(data),
            priority: Some(inbox_priority(priority.unwrap_or_default())),
        }
    }

    /// What a reviewer may want to know beside the author's own data.
    fn reviewer_context(&self) -> Value {
        let start = self.state.start.as_ref();
        json!({
            "agentId": start.map(|start| &start.agent_id),
            "flowId": start.map(|start| &start.flow_id),
            "sessionId": start.and_then(|start| start.session_id.as_ref()),
            "answers": self.state.answers,
        })
    }
}

fn confirmation(effect: Option<&Value>) -> ShownPause {
    let schema = effect.and_then(|effect| effect.get("responseSchema"));
    // A schema that is code has no form that a reader could check.
    let schema = match schema {
        None => Some(json!({"type": "boolean"})),
        Some(schema) if is_function(schema) => None,
        Some(schema) => Some(schema.clone()),
    };
    ShownPause::Clarification {
        id: CONFIRM_QUESTION.to_owned(),
        text: effect
            .map(|effect| text_of(effect, "question"))
            .unwrap_or_default(),
        schema,
    }
}

fn text_of(effect: &Value, field: &str) -> String {
    effect
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The inbox sorts by numbers from 0 to 9.
fn inbox_priority(priority: EscalationPriority) -> u8 {
    match priority {
        EscalationPriority::Low => 2,
        EscalationPriority::Normal => 5,
        EscalationPriority::High => 7,
        EscalationPriority::Critical => 9,
    }
}
