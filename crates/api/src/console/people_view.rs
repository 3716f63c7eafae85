//! Decisions of people in a run, collected while the log is read.

use super::shown_bytes::{ShownBytes, line};
use crate::routes::title;
use serde_json::Value;
use std::collections::VecDeque;
use tandem_app::{accepted_edit, count_vote};
use tandem_console::{AnsweredView, VoteView};
use tandem_record::{Event, RecordedEvent, Vote};
use tandem_wire::v1::time::rfc3339;

/// Questions shown on a page; a loop may have thousands.
const SHOWN: usize = 20;

/// The newest questions so far.
#[derive(Default)]
pub(super) struct AnsweredCollector(VecDeque<TrackedQuestion>);

struct TrackedQuestion {
    view: AnsweredView,
    proposed: Option<Value>,
    votes: Vec<Vote>,
}

impl AnsweredCollector {
    pub(super) fn collect(events: &[RecordedEvent], shown: &mut ShownBytes) -> Vec<AnsweredView> {
        let mut people = Self::default();
        events.iter().for_each(|recorded| people.apply(recorded));
        people.view(shown)
    }

    pub(super) fn apply(&mut self, recorded: &RecordedEvent) {
        match &recorded.event {
            Event::InterruptRequested { node, interrupt } => {
                if self.0.len() == SHOWN {
                    self.0.pop_front();
                }
                let data = &interrupt.data;
                let proposed = data.get("artifactData").or_else(|| data.get("decision"));
                self.0.push_back(TrackedQuestion {
                    view: AnsweredView {
                        interrupt_id: interrupt.id.to_string(),
                        title: line(&title(&interrupt.kind, data)),
                        node_id: node.to_string(),
                        ..AnsweredView::default()
                    },
                    proposed: proposed.cloned(),
                    votes: Vec::new(),
                });
            }
            Event::ApprovalReceived { node, decision, .. } if decision.action != "timeout" => {
                let open = |question: &&mut TrackedQuestion| {
                    question.view.outcome.is_none() && question.view.node_id == node.as_str()
                };
                if let Some(question) = self.0.iter_mut().rev().find(open) {
                    let shown = question.shown().cloned();
                    count_vote(&mut question.votes, decision, shown.as_ref(), recorded.at);
                    question.record_edit(decision.edited.clone());
                }
            }
            Event::InterruptResolved { resolution, .. } => {
                let id = resolution.interrupt.as_str();
                let mut meant = self.0.iter_mut().rev();
                if let Some(question) = meant.find(|question| question.view.interrupt_id == id) {
                    let outcome = resolution.outcome.as_deref().unwrap_or("resolved");
                    question.view.outcome = Some(outcome.to_owned());
                    question.view.at = Some(rfc3339(recorded.at));
                    question.record_edit(accepted_edit(&resolution.value));
                }
            }
            _ => {}
        }
    }

    pub(super) fn view(&self, shown: &mut ShownBytes) -> Vec<AnsweredView> {
        let newest = self.0.iter().rev();
        newest.map(|question| question.within(shown)).collect()
    }
}

impl TrackedQuestion {
    /// With as much of its values as a page has room for.
    fn within(&self, shown: &mut ShownBytes) -> AnsweredView {
        let votes = self.votes.iter().map(|given| {
            let mut vote = vote(given.clone());
            vote.feedback = vote.feedback.map(|text| shown.text(&text));
            vote
        });
        let votes = votes.collect();
        let edit = self.view.edit.as_ref();
        AnsweredView {
            interrupt_id: self.view.interrupt_id.clone(),
            title: self.view.title.clone(),
            node_id: self.view.node_id.clone(),
            outcome: self.view.outcome.clone(),
            at: self.view.at.clone(),
            votes,
            edit: edit.map(|(before, after)| (shown.value(before), shown.value(after))),
        }
    }

    /// The proposal with the changes so far.
    fn shown(&self) -> Option<&Value> {
        let edited = self.view.edit.as_ref().map(|(_, after)| after);
        edited.or(self.proposed.as_ref())
    }

    fn record_edit(&mut self, edited: Option<Value>) {
        let edited = edited.filter(|edited| Some(edited) != self.shown());
        if let (Some(before), Some(after)) = (&self.proposed, edited) {
            self.view.edit = Some((before.clone(), after));
        }
    }
}

pub(super) fn vote(vote: Vote) -> VoteView {
    VoteView {
        voter: vote.voter,
        claimed_by: vote.claimed_by,
        delegate: vote.delegate,
        action: vote.action,
        at: rfc3339(vote.at),
        feedback: vote.feedback,
    }
}
