//! Pause. `immediate` cuts running nodes off, to be started afresh; otherwise they finish first.

use crate::run::refusal::Refusal;
use crate::run::turn::Turn;
use tandem_record::{DrainPolicy, Event, NodeStatus, Reply, RunStatus};

pub(super) fn pause(
    turn: &mut Turn<'_>,
    reason: Option<String>,
    policy: DrainPolicy,
) -> Result<Reply, Refusal> {
    let status = turn.run.status();
    if status != RunStatus::Running || turn.run.state.draining.is_some() {
        let paused_at = turn.run.state.paused_at;
        // A pause on its way counts as paused: asking twice is refused alike.
        let status = match status {
            RunStatus::Running => RunStatus::Paused,
            other => other,
        };
        return Err(Refusal::NotPausable { status, paused_at });
    }
    match policy {
        DrainPolicy::Immediate => {
            // A question stays put: what was asked, and who has voted, outlives a pause.
            let nodes = turn.open_nodes().into_iter();
            let interrupted = nodes
                .filter(|ix| turn.run.state.nodes[*ix].status == NodeStatus::Running)
                .filter(|ix| turn.may_cut_off(*ix))
                .map(|ix| turn.run.def.nodes[ix].id.clone())
                .collect();
            turn.emit(
                Event::RunPaused {
                    reason,
                    policy,
                    interrupted,
                },
                None,
            );
        }
        DrainPolicy::DrainCurrentNode => {
            turn.emit(Event::RunPauseRequested { reason }, None);
            turn.advance();
        }
    }
    Ok(Reply::Paused { at: turn.now })
}
