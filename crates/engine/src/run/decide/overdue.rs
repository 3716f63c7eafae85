//! A question's time is up. Silence never approves: it fails closed, unless the workflow's author
//! asked for others to be asked, for reminders, or (for anything but an approval) for a default.
//!
//! One firing is one decision, however late it comes: after a clock that jumped, the next people
//! still have their whole time.

use super::answers::outputs_of;
use super::approval::rejected;
use super::resolve::{Closing, close, open_question};
use crate::node::{Kind, OnTimeout};
use crate::run::finish::Done;
use crate::run::turn::Turn;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{Decision, ErrorInfo, Event, NodeId, Object, Seq, Standing};

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
    let cause = state.last.unwrap_or(Seq(0));
    let def = Arc::clone(&turn.run.def);
    match def.nodes[ix].kind.asking().map(|asking| &asking.on_timeout) {
        Some(OnTimeout::Escalate(levels)) if (level as usize) < levels.len() => {
            let next = &levels[level as usize];
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
        Some(OnTimeout::Remind {
            every_ms,
            times,
            then_reject,
        }) if reminders < *times => {
            let count = reminders + 1;
            let goes_on = count < *times || *then_reject;
            let event = Event::InterruptReminded {
                node: node.clone(),
                interrupt,
                count,
                next: goes_on.then(|| turn.now.plus_ms(*every_ms)),
            };
            turn.emit(event, Some(cause));
        }
        Some(OnTimeout::Default(value)) if !is_approval(&def.nodes[ix].kind) => {
            default(turn, ix, value, cause);
        }
        _ => reject(turn, ix, cause),
    }
    true
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
    let cause = match value.get("answers").and_then(Value::as_object) {
        Some(answers) if matches!(turn.run.def.nodes[ix].kind, Kind::ClarificationGate(_)) => {
            let event = Event::ClarificationResolved {
                node: turn.run.def.nodes[ix].id.clone(),
                answers: answers.clone(),
                by: None,
            };
            turn.emit(event, Some(cause))
        }
        _ => cause,
    };
    let resumed = close(turn, ix, closing, cause);
    turn.complete_node(ix, Done::with(outputs_of(value)), resumed);
}

fn reject(turn: &mut Turn<'_>, ix: usize, cause: Seq) {
    let approval = is_approval(&turn.run.def.nodes[ix].kind);
    let cause = if approval {
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
        turn.emit(event, Some(cause))
    } else if matches!(turn.run.def.nodes[ix].kind, Kind::ConversationGate(_)) {
        turn.time_out_conversation(ix)
    } else {
        cause
    };
    let closing = Closing {
        reason: Some("timeout"),
        ..Closing::of("rejected", Value::Null)
    };
    let resumed = close(turn, ix, closing, cause);
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
