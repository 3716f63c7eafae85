//! The events that end the question of a flow.

use super::question::ShownPause;
use super::state::{FlowRun, OpenPause, node_of};
use serde_json::{Value, json};
use tandem_record::conversation::{FlowPause, ResumedBy, WaitFor};
use tandem_record::{ApprovalDecision, DeciderSnapshot, Event, Object, Principal, Resolution};

/// How a question ended, in the words of runs.
struct Outcome {
    name: &'static str,
    /// What a client of runs would have sent to get here.
    value: Value,
    by: Option<Principal>,
}

impl FlowRun {
    /// Ends the open question, if one is open. `result` is what the code is handed.
    pub(super) fn resolution_events(&self, result: Option<&Value>) -> Vec<Event> {
        let Some(open) = &self.state.open else {
            return Vec::new();
        };
        let by = self.state.resumed.as_ref().map(|(by, _)| *by);
        let node = node_of(open.step);
        let interrupt = open.pause.interrupt_id().clone();
        let shown = self.shown_pause(&open.pause, &Value::Null);
        let (mut events, outcome) = match &shown {
            ShownPause::Clarification { id, .. } => self.answer(open, id, by, result),
            ShownPause::Approval { .. } => self.decision(open, by, result),
            ShownPause::ExternalEvent { .. } => {
                let value = result.cloned().unwrap_or_default();
                (Vec::new(), Outcome::of(ending(by, "received"), value))
            }
        };
        events.push(Event::InterruptResolved {
            node: node.clone(),
            resolution: Box::new(Resolution {
                interrupt: interrupt.clone(),
                kind: shown.kind().to_owned(),
                value: outcome.value.clone(),
                by: outcome.by,
                decider: DeciderSnapshot::default(),
                event_id: None,
                outcome: Some(outcome.name.to_owned()),
                reason: None,
            }),
        });
        events.push(Event::NodeResumed {
            node,
            interrupt: Some(interrupt),
            value: Some(outcome.value),
        });
        events
    }

    /// The user answered a question, or did not.
    fn answer(
        &self,
        open: &OpenPause,
        question: &str,
        by: Option<ResumedBy>,
        result: Option<&Value>,
    ) -> (Vec<Event>, Outcome) {
        let name = ending(by, "answered");
        if name != "answered" {
            return (Vec::new(), Outcome::of(name, Value::Null));
        }
        let answer = match &open.pause {
            // The wait returns the answer together with how it was read.
            FlowPause::Wait {
                wait_for: WaitFor::ConfirmResponse,
                ..
            } => result.and_then(|result| result.get("value")),
            _ => result,
        };
        let answer = answer.cloned().unwrap_or_default();
        let answers: Object = [(question.to_owned(), answer)].into_iter().collect();
        let answered_by = self.state.answered_by.clone().map(Principal::from);
        let resolved = Event::ClarificationResolved {
            node: node_of(open.step),
            answers: answers.clone(),
            by: answered_by.clone(),
        };
        let outcome = Outcome {
            by: answered_by,
            ..Outcome::of(name, json!({"answers": answers}))
        };
        (vec![resolved], outcome)
    }

    /// An admin decided about an escalation, or nobody did.
    fn decision(
        &self,
        open: &OpenPause,
        by: Option<ResumedBy>,
        result: Option<&Value>,
    ) -> (Vec<Event>, Outcome) {
        let field = |name: &str| result.and_then(|result| result.get(name));
        let is_approved = field("approved") == Some(&Value::Bool(true));
        let edited = field("actionData").filter(|_| is_approved).cloned();
        let (action, name) = match (ending(by, "decided"), is_approved, &edited) {
            ("timeout", ..) => ("timeout", "timeout"),
            ("cancelled", ..) => {
                return (Vec::new(), Outcome::of("cancelled", Value::Null));
            }
            (_, true, None) => ("accept", "accepted"),
            (_, true, Some(_)) => ("edit-accept", "accepted"),
            (_, false, _) => ("reject", "rejected"),
        };
        let text = |name: &str| field(name).and_then(Value::as_str).map(str::to_owned);
        let decider = text("resolvedBy").map(Principal::from);
        let feedback = text("message");
        let mut value = json!({"action": action});
        if let Some(feedback) = &feedback {
            value["feedback"] = json!(feedback);
        }
        if let Some(edited) = &edited {
            value["editedArtifactData"] = edited.clone();
        }
        let received = Event::ApprovalReceived {
            node: node_of(open.step),
            decision: Box::new(ApprovalDecision {
                action: action.to_owned(),
                by: decider.clone(),
                voter: None,
                claimed_by: None,
                decider: DeciderSnapshot::default(),
                feedback,
                refine: None,
                edited,
            }),
            redo: None,
        };
        let outcome = Outcome {
            by: decider,
            ..Outcome::of(name, value)
        };
        (vec![received], outcome)
    }
}

impl Outcome {
    fn of(name: &'static str, value: Value) -> Self {
        Self {
            name,
            value,
            by: None,
        }
    }
}

/// `usual`, unless nobody acted.
fn ending(by: Option<ResumedBy>, usual: &'static str) -> &'static str {
    match by {
        Some(ResumedBy::Timeout) => "timeout",
        Some(ResumedBy::Canceled | ResumedBy::Stopped) => "cancelled",
        _ => usual,
    }
}
