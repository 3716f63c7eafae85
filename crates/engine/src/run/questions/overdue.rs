//! The timeout of an interrupt. A timeout never approves: it fails closed, unless the author
//! configured an escalation, reminders, or (for anything but an approval) a default.
//!
//! One firing is one decision, however late it comes: after a jump of the clock, the next
//! escalation level still has its full time.

use super::answer::{Closing, close, open_question};
use super::answers::outputs_of;
use super::approval::rejected;
use super::state::Suspension;
use crate::node::{EscalationLevel, Kind, OnTimeout};
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use crate::run::state::Run;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{
    ApprovalDecision, ClosedInterrupt, DeciderSnapshot, ErrorInfo, Event, NodeId, Object, Seq,
    Timestamp,
};

pub(in crate::run) fn deadline_passed(draft: &mut DecisionDraft<'_>, node: &NodeId) -> bool {
    let Ok(ix) = open_question(draft, node, None) else {
        return false;
    };
    let open = draft
        .run
        .open_interrupt(ix)
        .expect("open_question found it");
    if open.due.is_none_or(|due| draft.now < due) {
        return false;
    }
    let (level, reminders) = (open.level, open.reminders);
    let interrupt = open.interrupt.id.clone();
    let cause = open.since;
    let def = Arc::clone(&draft.run.def);
    match timeout_action(&def.nodes[ix].kind, open) {
        TimeoutAction::Escalate(next) => {
            let event = Event::InterruptEscalated {
                node: node.clone(),
                interrupt,
                level: level + 1,
                approvers: next.deciders.approvers.clone(),
                groups: next.deciders.groups.clone(),
                roles: next.deciders.roles.clone(),
                deadline: draft.now.plus_ms(next.timeout_ms),
            };
            draft.emit(event, Some(cause));
        }
        TimeoutAction::Remind { again_in_ms } => {
            let event = Event::InterruptReminded {
                node: node.clone(),
                interrupt,
                count: reminders + 1,
                next: again_in_ms.map(|ms| draft.now.plus_ms(ms)),
            };
            draft.emit(event, Some(cause));
        }
        TimeoutAction::Reject if matches!(def.nodes[ix].kind, Kind::ChatFlow(_)) => {
            draft.time_out_flow(ix);
        }
        TimeoutAction::Default(value) => default(draft, ix, value, cause),
        TimeoutAction::Reject => reject(draft, ix, cause),
    }
    true
}

/// What the author configured for the timeout.
enum TimeoutAction<'a> {
    Escalate(&'a EscalationLevel),
    Remind { again_in_ms: Option<u64> },
    Default(&'a Value),
    Reject,
}

fn timeout_action<'a>(kind: &'a Kind, open: &Suspension) -> TimeoutAction<'a> {
    match kind.interrupt_settings().map(|asking| &asking.on_timeout) {
        Some(OnTimeout::Escalate(levels)) if (open.level as usize) < levels.len() => {
            TimeoutAction::Escalate(&levels[open.level as usize])
        }
        Some(OnTimeout::Remind {
            every_ms,
            times,
            then_reject,
        }) if open.reminders < *times => {
            let goes_on = open.reminders + 1 < *times || *then_reject;
            TimeoutAction::Remind {
                again_in_ms: goes_on.then_some(*every_ms),
            }
        }
        Some(OnTimeout::Default(value)) if !is_approval(kind) => TimeoutAction::Default(value),
        _ => TimeoutAction::Reject,
    }
}

impl Run {
    /// From when on nobody can answer a question any more, whether or not its timer fired by then.
    /// `None` while others are asked first, or the same people again.
    pub(in crate::run) fn expiry(&self, ix: usize, open: &Suspension) -> Option<Timestamp> {
        match timeout_action(&self.def.nodes[ix].kind, open) {
            TimeoutAction::Escalate(_) | TimeoutAction::Remind { .. } => None,
            TimeoutAction::Default(_) | TimeoutAction::Reject => self.due_at(open),
        }
    }
}

/// How a question ended that nobody can answer any more, although its timer did not fire yet.
pub(in crate::run) fn expired_question(
    draft: &DecisionDraft<'_>,
    ix: usize,
) -> Option<ClosedInterrupt> {
    let open = draft.run.open_interrupt(ix)?;
    let node = &draft.run.def.nodes[ix];
    let due = draft.run.expiry(ix, open);
    let due = due.filter(|due| draft.now >= *due)?;
    let outcome = match timeout_action(&node.kind, open) {
        TimeoutAction::Escalate(_) | TimeoutAction::Remind { .. } => return None,
        TimeoutAction::Default(_) => "defaulted",
        TimeoutAction::Reject => "rejected",
    };
    Some(ClosedInterrupt {
        interrupt: open.interrupt.id.clone(),
        node: node.id.clone(),
        outcome: outcome.to_owned(),
        by: None,
        at: due,
        asked_at: Some(open.interrupt.requested_at),
        overdue: true,
    })
}

fn is_approval(kind: &Kind) -> bool {
    matches!(kind, Kind::ApprovalGate(_))
}

/// Continues with the author's default answer.
fn default(draft: &mut DecisionDraft<'_>, ix: usize, value: &Value, cause: Seq) {
    let closing = Closing {
        reason: Some("timeout"),
        ..Closing::of("defaulted", value.clone())
    };
    let clarifies = matches!(draft.run.def.nodes[ix].kind, Kind::ClarificationGate(_));
    let answers = value.get("answers").and_then(Value::as_object);
    if let Some(answers) = answers.filter(|_| clarifies) {
        let event = Event::ClarificationResolved {
            node: draft.run.def.nodes[ix].id.clone(),
            answers: answers.clone(),
            by: None,
        };
        draft.emit(event, Some(cause));
    }
    let resumed = close(draft, ix, closing);
    draft.complete_node(ix, Done::with(outputs_of(value)), resumed);
}

fn reject(draft: &mut DecisionDraft<'_>, ix: usize, cause: Seq) {
    let approval = is_approval(&draft.run.def.nodes[ix].kind);
    if approval {
        let decision = ApprovalDecision {
            action: "timeout".to_owned(),
            by: None,
            voter: None,
            claimed_by: None,
            decider: DeciderSnapshot::default(),
            feedback: None,
            refine: None,
            edited: None,
        };
        let event = Event::ApprovalReceived {
            node: draft.run.def.nodes[ix].id.clone(),
            decision: Box::new(decision),
            redo: None,
        };
        draft.emit(event, Some(cause));
    } else if matches!(draft.run.def.nodes[ix].kind, Kind::ConversationGate(_)) {
        draft.time_out_conversation(ix);
    }
    let closing = Closing {
        reason: Some("timeout"),
        ..Closing::of("rejected", Value::Null)
    };
    let resumed = close(draft, ix, closing);
    if approval {
        let outputs = Object::from_iter([
            ("action".to_owned(), json!("reject")),
            ("reason".to_owned(), json!("timeout")),
        ]);
        rejected(draft, ix, outputs, resumed);
    } else {
        let error = ErrorInfo::new("interrupt_timeout", "no answer arrived in time");
        draft.fail_node(ix, error, Some(resumed), None);
    }
}
