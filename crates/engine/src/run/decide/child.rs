//! A child run reports to the node that started it.

use crate::run::children::{awaiting_node, child_ended, resume_child_mirror};
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::scheduling::RUN_CANCELLED;
use tandem_record::{ChildOutcome, Event, NodeId, Reply};

pub(super) fn reported(
    draft: &mut DecisionDraft<'_>,
    node: &NodeId,
    outcome: ChildOutcome,
) -> Reply {
    let reporter = match &outcome {
        ChildOutcome::Waiting { child, .. }
        | ChildOutcome::Resumed { child }
        | ChildOutcome::Ended { child, .. } => child,
    };
    let Some((ix, cause)) = awaiting_node(draft, node, reporter) else {
        return Reply::Unchanged;
    };
    match outcome {
        ChildOutcome::Waiting {
            asker,
            node: asking,
            status,
            interrupt,
            kind,
            key,
            data,
            child,
        } => {
            // The parent mirrors the wait; the interrupt itself belongs to the child.
            let cause = resume_child_mirror(draft, ix, &child, cause);
            draft.emit(
                Event::NodeSuspended {
                    node: node.clone(),
                    key: key.unwrap_or_else(|| format!("{asker}:{asking}")),
                    data,
                    interrupt,
                    kind,
                    status,
                    reason: Some("child-waiting".to_owned()),
                    mirrors: Some((asker, asking)),
                    child: Some(child),
                    low_confidence: None,
                },
                Some(cause),
            );
        }
        ChildOutcome::Resumed { child } => {
            resume_child_mirror(draft, ix, &child, cause);
        }
        ChildOutcome::Ended {
            child,
            status,
            variables,
            untrusted,
            error,
        } => {
            let checks = draft.run.awaits_verdict(ix);
            let dispatches = draft.run.dispatching(ix).is_some() && !checks;
            if draft.run.phase() == Phase::Cancelling && dispatches {
                draft.worker_ended(ix, &child, status, (variables, untrusted), error);
                if !draft.run.holds_up_cancel(ix) {
                    draft.cancel_node(ix, RUN_CANCELLED, draft.run.node(ix).last, None);
                }
                draft.finish_cancel_if_no_children();
                return Reply::Accepted;
            }
            if draft.run.phase() == Phase::Cancelling {
                draft.cancel_node(ix, RUN_CANCELLED, Some(cause), Some(status));
                draft.finish_cancel_if_no_children();
                return Reply::Accepted;
            }
            let cause = resume_child_mirror(draft, ix, &child, cause);
            if checks {
                draft.verifier_run_ended(ix, status, &variables, error, cause);
            } else if dispatches {
                // Advancing the run derives what follows, also after a pause.
                draft.worker_ended(ix, &child, status, (variables, untrusted), error);
            } else {
                child_ended(draft, ix, status, (variables, untrusted), error, cause);
            }
        }
    }
    draft.advance();
    Reply::Accepted
}
