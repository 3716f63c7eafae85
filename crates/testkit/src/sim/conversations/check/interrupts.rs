//! Who won: replies, deadlines and decisions of admins.

use super::{Logs, SessionLog, ensure};
use crate::sim::conversations::Conversations;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    EscalationRecord, EscalationResolution, EscalationVote, SessionEventBody as Body,
};
use tandem_record::{EscalationId, InterruptId};

/// Z-75, Z-190: every interrupt is left once at most, whoever was faster; every escalation is closed once.
pub(super) fn check(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let mut paused: BTreeSet<&InterruptId> = BTreeSet::new();
    let mut resumed: BTreeSet<&InterruptId> = BTreeSet::new();
    let mut confirmed: BTreeSet<&InterruptId> = BTreeSet::new();
    let mut open: BTreeMap<&EscalationId, u32> = BTreeMap::new();
    let mut votes: BTreeSet<(&EscalationId, &str)> = BTreeSet::new();
    for event in &log.events {
        let fine = match &event.event.body {
            Body::InterruptPaused { interrupt_id, .. } => paused.insert(interrupt_id),
            Body::InterruptResumed { interrupt_id, .. } => {
                paused.contains(interrupt_id) && resumed.insert(interrupt_id)
            }
            Body::ConfirmResolved { interrupt_id, .. }
            | Body::ConfirmTimedOut { interrupt_id, .. } => {
                !resumed.contains(interrupt_id) && confirmed.insert(interrupt_id)
            }
            Body::EscalationCreated(escalation) => open
                .insert(&escalation.id, escalation.required_approvals)
                .is_none(),
            Body::EscalationVoted {
                escalation_id,
                vote,
            } => open.contains_key(escalation_id) && votes.insert((escalation_id, &vote.by)),
            Body::EscalationResolved {
                escalation_id,
                resolution,
                ..
            } => {
                let given = votes.iter().filter(|(of, _)| *of == escalation_id).count();
                let needed = open.remove(escalation_id);
                needed.is_some_and(|needed| {
                    !resolution.approved || needed <= 1 || given as u32 == needed
                })
            }
            Body::EscalationTimedOut { escalation_id, .. }
            | Body::EscalationCanceled { escalation_id, .. } => {
                open.remove(escalation_id).is_some()
            }
            _ => true,
        };
        ensure(fine, || {
            format!(
                "{id} does this twice, or out of turn: {:?}",
                event.event.body
            )
        })?;
    }
    ensure(open.is_empty(), || {
        format!("{id} ended with escalations {open:?}")
    })?;
    let ended = log
        .folded
        .escalations()
        .all(|e: &EscalationRecord| !e.is_open());
    ensure(ended, || format!("{id} has open escalations after its end"))
}

/// Z-152: whoever was told that their decision counts is the one in the log, by every route.
pub(super) fn check_decisions(sim: &Conversations, logs: &Logs) -> Result<(), String> {
    let mut resolutions: BTreeMap<EscalationId, EscalationResolution> = BTreeMap::new();
    let mut votes: Vec<(EscalationId, EscalationVote)> = Vec::new();
    for session in logs.sessions.values() {
        for event in &session.events {
            match &event.event.body {
                Body::EscalationResolved {
                    escalation_id,
                    resolution,
                    ..
                } => {
                    let earlier = resolutions.insert(escalation_id.clone(), resolution.clone());
                    ensure(earlier.is_none(), || {
                        format!("{escalation_id} is resolved twice")
                    })?;
                }
                Body::EscalationVoted {
                    escalation_id,
                    vote,
                } => votes.push((escalation_id.clone(), vote.clone())),
                _ => {}
            }
        }
    }
    for decided in &sim.observed.lock().decisions {
        let winner = resolutions.get(&decided.escalation);
        let won = winner.is_some_and(|won| {
            won.message.as_deref() == Some(&decided.message) && won.resolved_by == decided.by
        });
        let voted = votes.iter().any(|(escalation, vote)| {
            *escalation == decided.escalation
                && vote.by == decided.by
                && vote.message.as_deref() == Some(&decided.message)
        });
        ensure(decided.accepted != Some(true) || won || voted, || {
            format!("{decided:?} was accepted, but the log has {winner:?}")
        })?;
        ensure(decided.accepted != Some(false) || !won, || {
            format!("{decided:?} was refused, but the log has it")
        })?;
    }
    Ok(())
}
