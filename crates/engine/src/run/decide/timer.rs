//! A timer fired. Its name says which; the state says whether it still means anything.

use crate::run::state::Phase;
use crate::run::turn::Turn;
use serde_json::json;
use tandem_record::{CapKind, ErrorInfo, Event, NodeId, NodeStatus, Reply, TimerKey, Work};

pub(super) fn fired(turn: &mut Turn<'_>, key: &TimerKey) -> Reply {
    // No time passes for a paused run; one set before the pause is set again when it is over.
    if turn.run.state.phase != Phase::Running {
        return Reply::Unchanged;
    }
    let acted = match key {
        TimerKey::RunDeadline => run_deadline(turn),
        TimerKey::NodeWake { node, attempt } => node_wake(turn, node, *attempt),
        TimerKey::NodeDeadline { node, attempt } => node_deadline(turn, node, *attempt),
        TimerKey::InterruptDeadline { node } => super::overdue::deadline(turn, node),
        TimerKey::Trigger { id } => trigger(turn, id),
    };
    if !acted {
        return Reply::Unchanged;
    }
    turn.advance();
    Reply::Accepted
}

fn run_deadline(turn: &mut Turn<'_>) -> bool {
    let (limit, due) = turn.run.duration_limit(turn.cx.limits);
    if turn.now < due {
        return false;
    }
    // Strictly more than the limit, even when the timer fired on the very millisecond.
    let observed = turn.run.elapsed_ms(turn.now).max(limit + 1);
    let event = Event::CapBreached {
        kind: CapKind::RunDuration,
        limit,
        observed,
        node: None,
    };
    let cause = turn.emit(event, turn.run.state.head);
    let error = ErrorInfo::new(
        "run_timeout",
        format!("the run took longer than {limit} ms"),
    )
    .with_details(json!({"elapsedMs": observed}));
    turn.fail_run(error, None, Some(cause));
    true
}

/// The node, if it is running this very attempt.
fn running(turn: &Turn<'_>, node: &NodeId, attempt: u32) -> Option<usize> {
    let ix = turn.run.def.index(node)?;
    let state = &turn.run.state.nodes[ix];
    (state.status == NodeStatus::Running && state.attempt == attempt).then_some(ix)
}

fn node_wake(turn: &mut Turn<'_>, node: &NodeId, attempt: u32) -> bool {
    let Some(ix) = running(turn, node, attempt) else {
        return false;
    };
    let state = &turn.run.state.nodes[ix];
    let cause = state.last.expect("a running node was started by an event");
    if let Some(at) = state.retry_at {
        if turn.now < at {
            return false;
        }
        if turn.within_execution_limit(ix) {
            turn.retry_now(ix);
        }
        return true;
    }
    let until = match &state.work {
        Some(Work::Model {
            mock: Some(call), ..
        }) if turn.now >= call.due => {
            turn.speak(ix);
            return true;
        }
        Some(Work::Sleep { until, .. }) => *until,
        _ => return false,
    };
    if turn.now < until {
        return false;
    }
    turn.wake(ix, cause);
    true
}

fn node_deadline(turn: &mut Turn<'_>, node: &NodeId, attempt: u32) -> bool {
    let Some(ix) = running(turn, node, attempt) else {
        return false;
    };
    let state = &turn.run.state.nodes[ix];
    let cause = state.last.expect("a running node was started by an event");
    if state.deadline.is_none_or(|deadline| turn.now < deadline) {
        return false;
    }
    turn.give_up_child(ix);
    let error = ErrorInfo::new("node_timeout", "the node took too long").retryable();
    let cause = turn.end_call(ix, &error, cause);
    turn.fail_or_retry(ix, error, cause);
    true
}

/// Advancing fires every trigger that is due; here only whether this one is.
fn trigger(turn: &Turn<'_>, id: &str) -> bool {
    let due = turn.run.state.armed.get(id);
    due.is_some_and(|due| turn.now >= *due)
        && turn.run.state.draining.is_none()
        && !turn.run.trigger_is_busy(id)
}
