//! Open interrupts after they were opened: who may decide one now, until when, what happened to it
//! while it was open, and early external events.

use super::state::{EarlyEvent, NodeState, Run, Suspension};
use crate::node::OnTimeout;
use tandem_record::{
    ApprovalDecision, ClosedInterrupt, DecisionPolicy, Event, InterruptId, NodeId, NodeStatus,
    RecordedEvent, Resolution, Seq, Timestamp, Vote,
};

fn accepts(vote: &Vote) -> bool {
    matches!(vote.action.as_str(), "accept" | "edit-accept")
}

/// Counts one vote per person. A later vote replaces an earlier one. Whoever acts for another
/// person uses that person's vote and has used their own.
pub fn count_vote(votes: &mut Vec<Vote>, decision: &ApprovalDecision, at: Timestamp) {
    let acting = decision.decider.acting_for.as_ref();
    let hands = decision.by.as_ref().map(ToString::to_string);
    let voter = decision.voter.clone();
    let voter = voter
        .or_else(|| acting.map(ToString::to_string))
        .or_else(|| hands.clone());
    // Votes without a name are never merged.
    let voter = voter.unwrap_or_else(|| format!("anonymous-{}", votes.len()));
    let delegate = acting.and(hands);
    let same = |vote: &Vote| {
        let theirs = [Some(&vote.voter), vote.delegate.as_ref()];
        let ours = [Some(&voter), delegate.as_ref()];
        theirs
            .iter()
            .flatten()
            .any(|name| ours.contains(&Some(*name)))
    };
    votes.retain(|vote| !same(vote));
    if decision.edited.is_some() {
        // Earlier acceptances were for another version of the artifact.
        votes.retain(|vote| !accepts(vote));
    }
    votes.push(Vote {
        voter,
        delegate,
        action: decision.action.clone(),
        at,
        feedback: decision.feedback.clone(),
    });
}

impl Run {
    /// The decision policy of a node's open interrupt; `None` when the node has no such interrupt
    /// open.
    pub fn decision_policy(
        &self,
        node: &NodeId,
        interrupt: Option<&InterruptId>,
    ) -> Option<DecisionPolicy> {
        let ix = self.def.index(node)?;
        let state = &self.state.nodes[ix];
        let open = state.suspended.as_ref()?;
        let own = state.status == NodeStatus::Suspended && open.mirrors.is_none();
        let meant = interrupt.is_none_or(|wanted| *wanted == open.interrupt.id);
        (own && meant).then(|| self.policy_at(ix, open))
    }

    /// The event that opened the node's interrupt.
    pub(super) fn question_seq(&self, ix: usize) -> Option<Seq> {
        self.state.nodes[ix]
            .suspended
            .as_ref()
            .map(|open| open.since)
    }

    pub(super) fn policy_at(&self, ix: usize, open: &Suspension) -> DecisionPolicy {
        let request = self.state.request.as_ref();
        let initiator = request.and_then(|r| r.owner.principal.as_ref());
        let asking = self.def.nodes[ix].kind.interrupt_settings();
        asking
            .filter(|_| open.mirrors.is_none())
            .map(|asking| asking.policy(open.level, initiator))
            .unwrap_or_default()
    }

    /// Until when the current deciders can decide. Reminders alone are no deadline.
    pub(super) fn deadline_at(&self, ix: usize, open: &Suspension) -> Option<Timestamp> {
        let asking = self.def.nodes[ix].kind.interrupt_settings();
        match asking.map(|asking| &asking.on_timeout) {
            Some(OnTimeout::Remind {
                every_ms,
                times,
                then_reject,
            }) => {
                let left = u64::from(times.saturating_sub(open.reminders));
                let ends = open.due.map(|due| due.plus_ms(every_ms * left));
                ends.filter(|_| *then_reject)
            }
            _ => open.due,
        }
    }

    /// Folds events about an open interrupt, and early external events.
    pub(super) fn apply_to_questions(&mut self, event: &Event, recorded: &RecordedEvent) {
        match event {
            Event::InterruptEscalated {
                node,
                level,
                deadline,
                ..
            } => self.with_open(node, |open| {
                open.level = *level;
                open.due = Some(*deadline);
            }),
            Event::InterruptReminded {
                node, count, next, ..
            } => self.with_open(node, |open| {
                open.reminders = *count;
                open.due = *next;
            }),
            Event::DecisionDenied { node, .. } => self.with_open(node, |open| open.denials += 1),
            Event::ConversationOpened { node, turn, .. }
            | Event::ConversationExchanged { node, turn, .. }
            | Event::ConversationClosed { node, turn, .. } => {
                self.with_open(node, |open| open.turns.push(turn.clone()));
            }
            Event::ExternalEventReceived {
                event_id,
                event_type,
                payload,
                by,
            } => {
                self.state.event_ids.insert(event_id.clone());
                self.state.early.push(EarlyEvent {
                    id: event_id.clone(),
                    kind: event_type.clone(),
                    payload: payload.clone(),
                    by: by.clone(),
                    received: recorded.seq,
                });
            }
            _ => {}
        }
    }

    /// Removes an early event that answered an interrupt.
    pub(super) fn consume_early_event(&mut self, resolution: &Resolution) {
        if let Some(used) = &resolution.event_id {
            self.state.early.retain(|event| event.id != *used);
        }
    }

    /// Counts a vote, and stores its edits for the other voters.
    pub(super) fn count_vote(&mut self, node: &NodeId, decision: &ApprovalDecision, at: Timestamp) {
        self.with_open(node, |open| {
            count_vote(&mut open.votes, decision, at);
            if let Some(edited) = &decision.edited {
                let shown = &mut open.interrupt.data["artifactData"];
                let before = std::mem::replace(shown, edited.clone());
                open.proposed.get_or_insert(before);
            }
        });
    }

    /// Closes an interrupt when its node ends.
    pub(super) fn close_open_question(&mut self, node: &NodeId, at: Timestamp) {
        let Some(ix) = self.def.index(node) else {
            return;
        };
        let open = self.state.nodes[ix].suspended.as_ref();
        if let Some(open) = open.filter(|s| s.mirrors.is_none()) {
            let closed = ClosedInterrupt::cancelled(&open.interrupt, node, at);
            self.state.closed.push(closed);
        }
    }

    fn with_open(&mut self, node: &NodeId, change: impl FnOnce(&mut Suspension)) {
        let found = self.def.index(node).map(|ix| &mut self.state.nodes[ix]);
        if let Some(NodeState {
            suspended: Some(open),
            ..
        }) = found
        {
            change(open);
        }
    }
}
