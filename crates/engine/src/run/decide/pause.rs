//! Pause. `immediate` cuts off running nodes, which start again on resume; otherwise they finish
//! first.

use crate::run::draft::DecisionDraft;
use crate::run::refusal::Refusal;
use tandem_record::{DrainPolicy, Event, NodeStatus, Reply, RunStatus};

pub(super) fn pause(
    draft: &mut DecisionDraft<'_>,
    reason: Option<String>,
    policy: DrainPolicy,
) -> Result<Reply, Refusal> {
    let status = draft.run.status();
    if status != RunStatus::Running || draft.run.is_draining() {
        let paused_at = draft.run.paused_at();
        // A draining pause counts as paused: a second pause is refused in the same way.
        let status = match status {
            RunStatus::Running => RunStatus::Paused,
            other => other,
        };
        return Err(Refusal::NotPausable { status, paused_at });
    }
    match policy {
        DrainPolicy::Immediate => {
            // Open interrupts and their votes are kept during a pause.
            let nodes = draft.open_nodes().into_iter();
            let interrupted = nodes
                .filter(|ix| draft.run.node(*ix).status == NodeStatus::Running)
                .filter(|ix| draft.may_cut_off(*ix))
                .map(|ix| draft.run.def.nodes[ix].id.clone())
                .collect();
            draft.emit(
                Event::RunPaused {
                    reason,
                    policy,
                    interrupted,
                },
                None,
            );
        }
        DrainPolicy::DrainCurrentNode => {
            draft.emit(Event::RunPauseRequested { reason }, None);
            draft.advance();
        }
    }
    Ok(Reply::Paused { at: draft.now })
}
