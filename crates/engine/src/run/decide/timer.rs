//! A timer fired. Its key says which one; the state decides whether it still applies.
//!
//! The timers of a run act in the order of their times, whichever of them is fired first: after a
//! jump of the clock or a time without a host, several are due at once.

use crate::run::draft::DecisionDraft;
use crate::run::required_work::required_timers;
use serde_json::json;
use std::collections::BTreeSet;
use tandem_record::{
    CapKind, ErrorInfo, Event, NodeId, NodeStatus, Reply, TimerKey, Timestamp, Work,
};

/// Due timers that act in one decision. A timer that is not reached stays due and is fired again.
const MAX_DUE_PER_DECISION: usize = 32;

pub(super) fn fired(draft: &mut DecisionDraft<'_>, key: &TimerKey) -> Reply {
    let mut reply = Reply::Unchanged;
    let mut acted = BTreeSet::new();
    for _ in 0..MAX_DUE_PER_DECISION {
        let mut due = due_timers(draft);
        if !due.iter().any(|(_, waiting)| waiting == key) {
            break;
        }
        due.retain(|timer| !acted.contains(timer));
        let Some((at, first)) = due.into_iter().min() else {
            break;
        };
        if act(draft, &first) {
            draft.advance();
            reply = Reply::Accepted;
        }
        if first == *key || draft.needs.is_some() || draft.cx.work.exceeded() {
            break;
        }
        acted.insert((at, first));
    }
    reply
}

/// The timers that are due now. Time does not pass for a paused run. Timers from before the pause are
/// set again on resume.
fn due_timers(draft: &DecisionDraft<'_>) -> Vec<(Timestamp, TimerKey)> {
    let timers = required_timers(&draft.run, draft.cx.limits).into_iter();
    let due = timers.filter(|(_, due)| *due <= draft.now);
    due.map(|(key, due)| (due, key)).collect()
}

fn act(draft: &mut DecisionDraft<'_>, key: &TimerKey) -> bool {
    match key {
        TimerKey::RunDeadline => run_deadline(draft),
        TimerKey::NodeWake { node, attempt } => node_wake(draft, node, *attempt),
        TimerKey::NodeDeadline { node, attempt } => node_deadline(draft, node, *attempt),
        TimerKey::InterruptDeadline { node } => crate::run::questions::deadline_passed(draft, node),
        TimerKey::Trigger { id } => trigger(draft, id),
    }
}

fn run_deadline(draft: &mut DecisionDraft<'_>) -> bool {
    let (limit, due) = draft.run.duration_limit(draft.cx.limits);
    if draft.now < due {
        return false;
    }
    // Always more than the limit, even when the timer fired exactly on the limit.
    let observed = draft.run.elapsed_ms(draft.now).max(limit + 1);
    let event = Event::CapBreached {
        kind: CapKind::RunDuration,
        limit,
        observed,
        node: None,
    };
    let cause = draft.emit(event, draft.run.head());
    let error = ErrorInfo::new(
        "run_timeout",
        format!("the run took longer than {limit} ms"),
    )
    .with_details(json!({"elapsedMs": observed}));
    draft.fail_run(error, None, Some(cause));
    true
}

/// The node, if this attempt of it is running.
fn running(draft: &DecisionDraft<'_>, node: &NodeId, attempt: u32) -> Option<usize> {
    let ix = draft.run.def.index(node)?;
    let state = draft.run.node(ix);
    (state.status == NodeStatus::Running && state.attempt == attempt).then_some(ix)
}

fn node_wake(draft: &mut DecisionDraft<'_>, node: &NodeId, attempt: u32) -> bool {
    let Some(ix) = running(draft, node, attempt) else {
        return false;
    };
    let state = draft.run.node(ix);
    let cause = state.last.expect("a running node was started by an event");
    if let Some(at) = state.retry_at {
        if draft.now < at {
            return false;
        }
        if draft.within_execution_limit(ix) {
            draft.retry_now(ix);
        }
        return true;
    }
    let until = match &state.work {
        Some(Work::Model {
            mock: Some(call), ..
        }) if draft.now >= call.due => {
            draft.run_mock_call(ix);
            return true;
        }
        Some(Work::Sleep { until, .. }) => *until,
        _ => return false,
    };
    if draft.now < until {
        return false;
    }
    draft.wake(ix, cause);
    true
}

fn node_deadline(draft: &mut DecisionDraft<'_>, node: &NodeId, attempt: u32) -> bool {
    let Some(ix) = running(draft, node, attempt) else {
        return false;
    };
    let state = draft.run.node(ix);
    let cause = state.last.expect("a running node was started by an event");
    if state.deadline.is_none_or(|deadline| draft.now < deadline) {
        return false;
    }
    draft.give_up_child(ix);
    let error = ErrorInfo::new("node_timeout", "the node took too long").retryable();
    let cause = draft.end_call(ix, &error, cause);
    draft.fail_or_retry(ix, error, cause);
    true
}

/// Whether this trigger is due. Advancing the run fires every trigger that is due.
fn trigger(draft: &DecisionDraft<'_>, id: &str) -> bool {
    let due = draft.run.armed_triggers().get(id);
    due.is_some_and(|due| draft.now >= *due)
        && !draft.run.is_draining()
        && !draft.run.trigger_is_busy(id)
}
