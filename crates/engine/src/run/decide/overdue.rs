//! A question's time is up. Silence never approves: it fails closed, unless the workflow's author
//! asked for others to be asked, for reminders, or (for anything but an approval) for a default.
//!
//! One firing is one decision, however late it comes: after a clock that jumped, the next people
//! still have their whole time.

use super::answers::outputs_of;
use super::approval::rejected;
use super::resolve::{Closing, close, open_question};
use crate::node::{Kind, Level, OnTimeout};
use crate::run::finish::Done;
use crate::run::state::Suspension;
use crate::run::turn::Turn;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{ClosedInterrupt, Decision, ErrorInfo, Event, NodeId, Object, Seq, Standing};

pub(super) fn deadline(turn: &mut Turn<'_>, node: &NodeId) -> bool {
    let Ok(ix) = open_question(turn, node, None) else {
        return false;
    };
    let state = &turn.run.state.nodes[ix];
    let open = state.suspended.as_ref().expect("open_question found it");
    if open.due.is_none_or(|due| turn.now < due) {
        return false;
    }
    let (level, reminders) = (open.level, open.reminders);
    let interrupt = open.interrupt.id.clone();
    let cause = open.since;
    let def = Arc::clone(&turn.run.def);
    match next(&def.nodes[ix].kind, open) {
        Next::Escalate(next) => {
            let event = Event::InterruptEscalated {
                node: node.clone(),
                interrupt,
                level: level + 1,
                approvers: next.people.approvers.clone(),
                groups: next.people.groups.clone(),
                roles: next.people.roles.clone(),
                deadline: turn.now.plus_ms(next.timeout_ms),
            };
            turn.emit(event, Some(cause));
        }
        Next::Remind { again_in_ms } => {
            let event = Event::InterruptReminded {
                node: node.clone(),
                interrupt,
                count: reminders + 1,
                next: again_in_ms.map(|ms| turn.now.plus_ms(ms)),
            };
            turn.emit(event, Some(cause));
        }
        Next::Default(value) => default(turn, ix, value, cause),
        Next::Reject => reject(turn, ix, cause),
    }
    true
}

/// What a question's author wants to happen when its time is up.
enum Next<'a> {
    Escalate(&'a Level),
    Remind { again_in_ms: Option<u64> },
    Default(&'a Value),
    Reject,
}

fn next<'a>(kind: &'a Kind, open: &Suspension) -> Next<'a> {
    match kind.asking().map(|asking| &asking.on_timeout) {
        Some(OnTimeout::Escalate(levels)) if (open.level as usize) < levels.len() => {
            Next::Escalate(&levels[open.level as usize])
        }
        Some(OnTimeout::Remind {
            every_ms,
            times,
            then_reject,
        }) if open.reminders < *times => {
            let goes_on = open.reminders + 1 < *times || *then_reject;
            Next::Remind {
                again_in_ms: goes_on.then_some(*every_ms),
            }
        }
        Some(OnTimeout::Default(value)) if !is_approval(kind) => Next::Default(value),
        _ => Next::Reject,
    }
}

/// How a question ended that nobody can answer any more, although its timer did not fire yet: late,
/// or kept waiting by a pause.
pub(super) fn lapsed(turn: &Turn<'_>, ix: usize) -> Option<ClosedInterrupt> {
    let open = turn.run.state.nodes[ix].suspended.as_ref()?;
    let due = open.due.filter(|due| turn.now >= *due)?;
    let node = &turn.run.def.nodes[ix];
    let outcome = match next(&node.kind, open) {
        Next::Escalate(_) | Next::Remind { .. } => return None,
        Next::Default(_) => "defaulted",
        Next::Reject => "rejected",
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

/// Goes on with the answer the author wrote down for this.
fn default(turn: &mut Turn<'_>, ix: usize, value: &Value, cause: Seq) {
    let closing = Closing {
        reason: Some("timeout"),
        ..Closing::of("defaulted", value.clone())
    };
    let clarifies = matches!(turn.run.def.nodes[ix].kind, Kind::ClarificationGate(_));
    let answers = value.get("answers").and_then(Value::as_object);
    if let Some(answers) = answers.filter(|_| clarifies) {
        let event = Event::ClarificationResolved {
            node: turn.run.def.nodes[ix].id.clone(),
            answers: answers.clone(),
            by: None,
        };
        turn.emit(event, Some(cause));
    }
    let resumed = close(turn, ix, closing);
    turn.complete_node(ix, Done::with(outputs_of(value)), resumed);
}

fn reject(turn: &mut Turn<'_>, ix: usize, cause: Seq) {
    let approval = is_approval(&turn.run.def.nodes[ix].kind);
    if approval {
        let decision = Decision {
            action: "timeout".to_owned(),
            by: None,
            voter: None,
            said_by: None,
            standing: Standing::default(),
            feedback: None,
            refine: None,
            edited: None,
        };
        let event = Event::ApprovalReceived {
            node: turn.run.def.nodes[ix].id.clone(),
            decision: Box::new(decision),
            redo: None,
        };
        turn.emit(event, Some(cause));
    } else if matches!(turn.run.def.nodes[ix].kind, Kind::ConversationGate(_)) {
        turn.time_out_conversation(ix);
    }
    let closing = Closing {
        reason: Some("timeout"),
        ..Closing::of("rejected", Value::Null)
    };
    let resumed = close(turn, ix, closing);
    if approval {
        let outputs = Object::from_iter([
            ("action".to_owned(), json!("reject")),
            ("reason".to_owned(), json!("timeout")),
        ]);
        rejected(turn, ix, outputs, resumed);
    } else {
        let error = ErrorInfo::new("interrupt_timeout", "nobody answered in time");
        turn.fail_node(ix, error, Some(resumed), None);
    }
}
