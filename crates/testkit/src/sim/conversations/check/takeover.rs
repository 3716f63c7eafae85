//! Live takeovers: who speaks while a person has the floor.

use super::{SessionLog, ensure};
use std::collections::BTreeSet;
use tandem_record::conversation::{
    CandidateOrigin, ModelPurpose, SessionEventBody as Body, SessionWork, TakeoverDirection,
};

/// Z-87, Z-89, Z-91: from its start to its end nothing of the agent is queued but what greets it, by whatever turn, that of
/// a schedule too; no turn that began
/// meanwhile asks a model or goes on with a flow; and it ends.
pub(super) fn check(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let mut open = None;
    // Turns under way that began while a person had the floor.
    let mut begun: BTreeSet<Option<u64>> = BTreeSet::new();
    for event in &log.events {
        let body = &event.event.body;
        let turn = event.event.turn;
        let began_meanwhile = begun.contains(&turn);
        let fine = match body {
            Body::LiveTakeoverStarted { escalation_id, .. } => {
                open.replace(escalation_id.clone()).is_none()
            }
            Body::LiveTakeoverEnded(ended) => {
                begun.clear();
                open.take().as_ref() == Some(&ended.escalation_id)
            }
            Body::LiveTakeoverMessage {
                direction: TakeoverDirection::UserToHuman,
                ..
            } => open.is_some(),
            Body::TurnStarted { .. } => {
                if open.is_some() {
                    begun.insert(turn);
                }
                true
            }
            Body::TurnEnded(_) => {
                begun.remove(&turn);
                true
            }
            Body::ResponseQueued {
                candidate, message, ..
            } if open.is_some() => {
                let speaks = matches!(
                    candidate.origin,
                    CandidateOrigin::Classic
                        | CandidateOrigin::Say
                        | CandidateOrigin::Ask
                        | CandidateOrigin::Confirm
                        | CandidateOrigin::TimeoutText
                        | CandidateOrigin::Draft
                        | CandidateOrigin::Fallback
                );
                // A person may let a text through that waited for approval.
                !speaks || message.author.is_some() || event.event.actor.is_some()
            }
            Body::WorkRequested(work) if began_meanwhile => !matches!(
                work.work,
                SessionWork::Model {
                    purpose: ModelPurpose::Chat | ModelPurpose::Router,
                    ..
                }
            ),
            Body::FlowResumed { .. } => !began_meanwhile,
            _ => true,
        };
        ensure(fine, || {
            format!("{id} does not keep its takeover: {body:?}")
        })?;
    }
    ensure(open.is_none(), || format!("{id} ended during {open:?}"))
}
