//! Open interrupts after they were opened: who may decide one now, until when, and how votes count.

use super::approval::is_name;
use super::state::Suspension;
use crate::node::OnTimeout;
use crate::run::state::Run;
use serde_json::Value;
use tandem_record::{
    ApprovalDecision, DecisionPolicy, InterruptId, NodeId, NodeStatus, Principal, Seq, Timestamp,
    Vote,
};

fn accepts(vote: &Vote) -> bool {
    matches!(vote.action.as_str(), "accept" | "edit-accept")
}

/// Whether a decision changes the artifact that is shown. An equal edit is a vote for it as it is.
pub(super) fn changes_artifact(decision: &ApprovalDecision, shown: Option<&Value>) -> bool {
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
    let established = acting_for.or(decision.decider.link_of.as_ref());
    let submitter = decision.submitter();
    let vote = Vote {
        voter: claimed
            .or_else(|| established.map(Principal::as_str))
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

    /// The name that an answer to an open approval claims under `key`, where such a name counts.
    pub fn claimed_name<'v>(
        &self,
        node: &NodeId,
        interrupt: Option<&InterruptId>,
        value: &'v Value,
        key: &str,
    ) -> Option<&'v str> {
        let (ix, open) = self.open_at(node, interrupt)?;
        let approves = ["approval", "low-confidence"].contains(&open.interrupt.kind.as_str());
        let counts = approves && !self.policy_at(ix, open).requires_identity();
        let name = value.get(key).and_then(Value::as_str);
        // Another name is refused when the answer is read.
        name.filter(|name| counts && is_name(name))
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
        let state = self.node(ix);
        let open = self.open_interrupt(ix)?;
        let own = state.status == NodeStatus::Suspended && open.mirrors.is_none();
        let meant = interrupt.is_none_or(|wanted| *wanted == open.interrupt.id);
        (own && meant).then_some((ix, open))
    }

    /// The event that opened the node's interrupt.
    pub(in crate::run) fn question_seq(&self, ix: usize) -> Option<Seq> {
        self.open_interrupt(ix).map(|open| open.since)
    }

    pub(in crate::run) fn policy_at(&self, ix: usize, open: &Suspension) -> DecisionPolicy {
        let request = self.started_request();
        let owner = request.and_then(|r| r.owner.principal.as_ref());
        let forked_by = request.into_iter().flat_map(|r| &r.forked_by);
        let initiators = owner.into_iter().chain(forked_by).cloned().collect();
        let asking = self.def.nodes[ix].kind.interrupt_settings();
        asking
            .filter(|_| open.mirrors.is_none())
            .map(|asking| asking.policy(open.level, initiators))
            .unwrap_or_default()
    }

    /// When the timeout action of an open interrupt runs. Unknown during a pause, which extends it,
    /// unless the time was over when the pause began.
    pub(super) fn due_at(&self, open: &Suspension) -> Option<Timestamp> {
        let paused_at = self.paused_at();
        open.due.filter(|due| paused_at.is_none_or(|at| *due <= at))
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
                let ends = self.due_at(open).map(|due| due.plus_ms(every_ms * left));
                ends.filter(|_| *then_reject)
            }
            _ => self.due_at(open),
        }
    }
}
