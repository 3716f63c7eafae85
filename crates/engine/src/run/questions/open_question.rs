//! Open interrupts after they were opened: who may decide one now, until when, what happened to it
//! while it was open, and early external events.

use crate::node::OnTimeout;
use crate::run::state::{EarlyEvent, NodeState, Run, Suspension};
use serde_json::Value;
use tandem_record::{
    ApprovalDecision, ClosedInterrupt, DecisionPolicy, Event, InterruptId, NodeId, NodeStatus,
    Principal, RecordedEvent, Resolution, Seq, Timestamp, Vote,
};

fn accepts(vote: &Vote) -> bool {
    matches!(vote.action.as_str(), "accept" | "edit-accept")
}

/// Whether a decision changes the artifact that is shown. An equal edit is a vote for it as it is.
fn changes_artifact(decision: &ApprovalDecision, shown: Option<&Value>) -> bool {
    let edited = decision.edited.as_ref();
    edited.is_some() && edited != shown
}

/// Each voter has one vote: a later one replaces an earlier one, and whoever acts for another uses
/// up their own vote too. `shown` is the artifact as it was when the vote was given.
pub fn count_vote(
    votes: &mut Vec<Vote>,
    decision: &ApprovalDecision,
    shown: Option<&Value>,
    at: Timestamp,
) {
    let claimed = decision.claimed_voter();
    let acting_for = decision.decider.acting_for.as_ref();
    let submitter = decision.submitter();
    let vote = Vote {
        voter: claimed
            .or_else(|| acting_for.map(Principal::as_str))
            .unwrap_or(submitter)
            .to_owned(),
        claimed_by: claimed.map(|_| submitter.to_owned()),
        via_link: decision.by.is_none(),
        delegate: acting_for.map(|_| submitter.to_owned()),
        action: decision.action.clone(),
        at,
        feedback: decision.feedback.clone(),
    };
    votes.retain(|earlier| !earlier.has_same_voter(&vote));
    if changes_artifact(decision, shown) {
        // Who accepted before accepted something else.
        votes.retain(|vote| !accepts(vote));
    }
    votes.push(vote);
}

impl Run {
    /// The decision policy of a node's open interrupt; `None` when the node has no such interrupt
    /// open.
    pub fn decision_policy(
        &self,
        node: &NodeId,
        interrupt: Option<&InterruptId>,
    ) -> Option<DecisionPolicy> {
        let (ix, open) = self.open_at(node, interrupt)?;
        Some(self.policy_at(ix, open))
    }

    /// What the open question of a node shows now.
    pub fn shown_data(&self, node: &NodeId, interrupt: Option<&InterruptId>) -> Option<&Value> {
        let (_, open) = self.open_at(node, interrupt)?;
        Some(&open.interrupt.data)
    }

    fn open_at(
        &self,
        node: &NodeId,
        interrupt: Option<&InterruptId>,
    ) -> Option<(usize, &Suspension)> {
        let ix = self.def.index(node)?;
        let state = &self.state.nodes[ix];
        let open = state.suspended.as_ref()?;
        let own = state.status == NodeStatus::Suspended && open.mirrors.is_none();
        let meant = interrupt.is_none_or(|wanted| *wanted == open.interrupt.id);
        (own && meant).then_some((ix, open))
    }

    /// The event that opened the node's interrupt.
    pub(in crate::run) fn question_seq(&self, ix: usize) -> Option<Seq> {
        self.state.nodes[ix]
            .suspended
            .as_ref()
            .map(|open| open.since)
    }

    pub(in crate::run) fn policy_at(&self, ix: usize, open: &Suspension) -> DecisionPolicy {
        let request = self.state.request.as_ref();
        let initiator = request.and_then(|r| r.owner.principal.as_ref());
        let asking = self.def.nodes[ix].kind.interrupt_settings();
        asking
            .filter(|_| open.mirrors.is_none())
            .map(|asking| asking.policy(open.level, initiator))
            .unwrap_or_default()
    }

    /// Until when the current deciders can decide. Reminders alone are no deadline.
    pub(in crate::run) fn deadline_at(&self, ix: usize, open: &Suspension) -> Option<Timestamp> {
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
    pub(in crate::run) fn apply_to_questions(&mut self, event: &Event, recorded: &RecordedEvent) {
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
    pub(in crate::run) fn consume_early_event(&mut self, resolution: &Resolution) {
        if let Some(used) = &resolution.event_id {
            self.state.early.retain(|event| event.id != *used);
        }
    }

    /// Counts a vote, and stores its edits for the other voters.
    pub(in crate::run) fn count_vote(
        &mut self,
        node: &NodeId,
        decision: &ApprovalDecision,
        at: Timestamp,
    ) {
        self.with_open(node, |open| {
            let shown = open.interrupt.data.get("artifactData");
            let changed = changes_artifact(decision, shown);
            count_vote(&mut open.votes, decision, shown, at);
            if let Some(edited) = decision.edited.as_ref().filter(|_| changed) {
                let shown = &mut open.interrupt.data["artifactData"];
                let before = std::mem::replace(shown, edited.clone());
                open.proposed.get_or_insert(before);
            }
        });
    }

    /// Closes an interrupt when its node ends.
    pub(in crate::run) fn close_open_question(&mut self, node: &NodeId, at: Timestamp) {
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
