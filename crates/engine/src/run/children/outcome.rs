//! What a child's report means for the node that waits for it.

use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use serde_json::json;
use tandem_record::{ErrorInfo, Event, NodeId, NodeStatus, Object, RunId, RunStatus, Seq, Work};

/// The node that waits for this child, and its newest event.
pub(in crate::run) fn awaiting_node(
    draft: &DecisionDraft<'_>,
    node: &NodeId,
    child: &RunId,
) -> Option<(usize, Seq)> {
    if draft.run.phase().is_terminal() {
        return None;
    }
    let ix = draft.run.def.index(node)?;
    let state = draft.run.node(ix);
    let mut awaited = draft.run.awaited_children(ix);
    let waits = awaited.any(|(awaited, _)| awaited == child);
    let open = matches!(state.status, NodeStatus::Running | NodeStatus::Suspended);
    (waits && open).then_some((ix, state.last?))
}

/// Removes the mirrored wait of a child before the node continues.
pub(in crate::run) fn resume_child_mirror(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    child: &RunId,
    cause: Seq,
) -> Seq {
    let waits = draft.run.open_interrupts(ix);
    let ours = waits.iter().filter(|s| s.mirrors.is_some());
    let mut ours = ours.filter(|s| s.child.as_ref().is_none_or(|c| c == child));
    let Some(over) = ours.next() else {
        return cause;
    };
    // With several waits the event has to name the one that is over.
    let several = waits.len() > 1;
    let interrupt = several.then(|| over.interrupt.id.clone());
    let node = draft.run.def.nodes[ix].id.clone();
    draft.emit(
        Event::NodeResumed {
            node,
            interrupt,
            value: None,
        },
        Some(cause),
    )
}

pub(in crate::run) fn child_ended(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    status: RunStatus,
    (variables, untrusted): (Object, Vec<String>),
    error: Option<ErrorInfo>,
    cause: Seq,
) {
    let Some(Work::Child {
        child,
        outputs,
        absorb_failure,
        ..
    }) = draft.run.node(ix).work.clone()
    else {
        unreachable!("awaiting_node() saw this node wait for a child");
    };
    let node = draft.run.def.nodes[ix].id.clone();
    let done = |status: RunStatus| Done {
        outputs: Object::from_iter([
            ("childRunId".to_owned(), json!(child)),
            ("childStatus".to_owned(), json!(status.as_str())),
        ]),
        child: Some(status),
        ..Done::default()
    };
    match status {
        RunStatus::Completed => {
            if let Err(error) = draft.admit_merge(&outputs, &variables) {
                draft.fail_node(ix, error, Some(cause), Some(status));
                return;
            }
            let mut cause = cause;
            for (ours, theirs) in &outputs {
                // A variable the child never set does not change the parent's.
                if let Some(value) = variables.get(theirs) {
                    let marked = untrusted.contains(theirs);
                    cause = draft.set_variable_with_trust(
                        ours,
                        Some(value.clone()),
                        &node,
                        marked,
                        cause,
                    );
                }
            }
            draft.complete_node(ix, done(status), cause);
        }
        RunStatus::Failed if absorb_failure => draft.complete_node(ix, done(status), cause),
        RunStatus::Failed => {
            let inner = error.unwrap_or_else(|| ErrorInfo::new("child_failed", "no reason given"));
            let message = format!("child run {child} failed: {}", inner.message);
            let error = ErrorInfo::new("child_failed", message).with_details(json!({
                "childRunId": child,
                "childError": {"code": inner.code, "message": inner.message},
            }));
            draft.fail_node(ix, error, Some(cause), Some(status));
        }
        _ => draft.cancel_node(ix, "child-cancelled", Some(cause), Some(status)),
    }
}
