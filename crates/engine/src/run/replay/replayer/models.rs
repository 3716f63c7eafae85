//! Model calls in a replay. The recorded answer replaces the call; it is found by the content key
//! of the request, and the provider is not called. A request without a recorded answer fails the
//! replay; no other answer is used.
//!
//! A mock provider that answers by program gives another answer each time, so it is called again
//! and the answers are compared. If one of the two answers is a refusal and the other is not, the
//! replay ends there.

use super::{Replayer, event_kind, settles};
use crate::model::AnswerVerdict;
use crate::node::Kind;
use crate::run::calls::{Call, ModelNeed, ReplayedModelAnswer};
use serde_json::json;
use tandem_record::{
    EnvelopeEventKind, ErrorInfo, Event, ModelAnswer, NodeId, RefusalDivergence, Seq, Work,
};

/// The meaning of the source's next event for a node that calls a model.
pub(super) enum ModelStep {
    /// It made its first call, or repeated a call.
    Called,
    /// It received an answer. The events up to `end` follow from it.
    Answered { end: usize },
}

impl Replayer<'_, '_> {
    /// Whether a node that calls a model has to repeat the next event.
    pub(super) fn model_step(&self) -> Option<(usize, ModelStep)> {
        let event = &self.log[self.next].event;
        let ix = self.draft.run.def.index(event.node()?)?;
        let asks = matches!(self.draft.run.def.nodes[ix].kind, Kind::Model(_));
        if !asks || !self.draft.is_repeatable(ix) {
            return None;
        }
        match event {
            Event::NodeStarted {
                work: Some(Work::Model { .. }),
                ..
            } if self.next >= self.from => Some((ix, ModelStep::Called)),
            Event::ModelAnswered(answered) if !self.is_called_again(&answered.node) => {
                let end = self.end_of_answer(&answered.node);
                (end > self.from).then_some((ix, ModelStep::Answered { end }))
            }
            _ => None,
        }
    }

    /// Whether nothing followed from the next event, an answer, and the same call was made again. A branch does
    /// that whose copied events end between the two.
    fn is_called_again(&self, node: &NodeId) -> bool {
        let later = self.log[self.next + 1..].iter().map(|r| &r.event);
        let mut before_it_settles = later
            .filter(|event| event.node() == Some(node))
            .take_while(|event| !matches!(event, Event::ModelRetried(_)) && !settles(event, node));
        before_it_settles.any(|event| matches!(event, Event::ModelAnswered(_)))
    }

    /// The end of the events that follow from the next event: one decision recorded all of them.
    fn end_of_answer(&self, node: &NodeId) -> usize {
        let rest = self.log[self.next..].iter();
        let own = rest.take_while(|r| r.event.node() == Some(node));
        let mut end = self.next;
        for recorded in own {
            end += 1;
            let retried = matches!(recorded.event, Event::ModelRetried(_));
            if retried || settles(&recorded.event, node) {
                break;
            }
        }
        end
    }

    pub(super) fn replay_model_step(&mut self, ix: usize, step: ModelStep) {
        match step {
            ModelStep::Called => {
                let same = self.has_same_request_key(ix);
                let at = self.log[self.next].seq;
                self.copy_event();
                if !same {
                    self.emit_divergence(at, "output");
                    self.fail_without_recorded_answer(ix);
                }
            }
            ModelStep::Answered { end } => self.replay_answer(ix, end),
        }
    }

    /// Whether the replay's call has the same key as the source's.
    fn has_same_request_key(&self, ix: usize) -> bool {
        let recorded = &self.log[self.next].event;
        let Kind::Model(config) = &self.draft.run.def.nodes[ix].kind else {
            return false;
        };
        let Event::NodeStarted {
            execution,
            work: Some(Work::Model { request, .. }),
            ..
        } = recorded
        else {
            return false;
        };
        let call = self
            .draft
            .run
            .port_values(ix, self.draft.cx.limits, self.draft.cx.work)
            .and_then(|inputs| {
                let then = Some(&**request);
                let draft = &self.draft;
                draft.model_call(ix, config, &inputs, *execution, then)
            });
        let Ok(call) = call else {
            return false;
        };
        let mut requested = recorded.clone();
        if let Event::NodeStarted { work, .. } = &mut requested {
            *work = Some(call);
        }
        key(&(self.redact)(&requested)) == key(recorded)
    }

    /// Applies an answer to the node and executes what follows from it.
    fn replay_answer(&mut self, ix: usize, end: usize) {
        let recorded = &self.log[self.next];
        let Event::ModelAnswered(answered) = &recorded.event else {
            unreachable!("only an answer is replayed");
        };
        let call = self.draft.run.call_of(ix);
        let Some(call) = call.filter(|call| call.key == answered.key) else {
            self.emit_divergence(recorded.seq, "missing");
            return self.fail_without_recorded_answer(ix);
        };
        let answer = match self.replay_model_answer(ix, &call) {
            Some(ReplayedModelAnswer::Answer(answer)) => answer,
            Some(ReplayedModelAnswer::NotCalled) => return,
            Some(ReplayedModelAnswer::Exhausted) | None => answered.answer.clone(),
        };
        let cause = self.draft.run.node(ix).last;
        let cause = cause.expect("a node that waits has started");
        self.draft.now = self.log[end - 1].at;
        if self.refusal_differs(ix, &answer) {
            return self.end_at_refusal(ix, &call, answer, cause);
        }
        self.reuse_recorded(self.from);
        self.draft.model_answered(ix, answer, cause);
        self.draft.replay.already_recorded.clear();
        let same_course = self.followed_same_path(end);
        self.compare(end);
        // Another text is only a difference. Another path has no record to follow.
        if !same_course {
            self.fail_without_recorded_answer(ix);
        }
    }

    /// Whether the new events are of the same kinds as the source's up to `end`, and a call that
    /// follows from them is the same call.
    fn followed_same_path(&self, end: usize) -> bool {
        let done = self.draft.drafted()[self.first_uncompared()..].iter();
        let source = self.log[self.next..end].iter();
        let kinds = done.clone().map(|r| event_kind(&r.event));
        kinds.eq(source.clone().map(|r| event_kind(&r.event)))
            && done.last().and_then(|r| key(&r.event)) == source.last().and_then(|r| key(&r.event))
    }

    /// The new answer of a provider that answers by program. `None` when the recorded answer is
    /// used.
    fn replay_model_answer(&mut self, ix: usize, call: &Call) -> Option<ReplayedModelAnswer> {
        let by_program = self
            .draft
            .cx
            .providers
            .is_programmed(&call.request.provider);
        // The answers of a run's mock provider are recorded, and would be the same again.
        if self.next < self.from || !by_program || call.script.is_some() {
            return None;
        }
        let execution = self.draft.run.node(ix).execution - 1;
        let effect = self.draft.run.call_id(ix, execution, call.round);
        let replayed = self.draft.cx.model_answers.answer_to(&effect);
        if replayed == ReplayedModelAnswer::NotCalled {
            let need = ModelNeed {
                effect,
                node: self.draft.run.def.nodes[ix].id.clone(),
                request: call.request.clone(),
            };
            self.draft.needs = Some(crate::run::refusal::Need::Model(Box::new(need)));
        }
        Some(replayed)
    }

    /// Whether exactly one of source and replay was refused and the other got a usable answer.
    fn refusal_differs(&self, ix: usize, answer: &ModelAnswer) -> bool {
        let now = self.is_refused(ix, answer);
        now.zip(self.source_refused(ix))
            .is_some_and(|(now, then)| now != then)
    }

    /// Whether an answer is a refusal or usable; `None` when it is neither.
    fn is_refused(&self, ix: usize, answer: &ModelAnswer) -> Option<bool> {
        match self.draft.validate_answer(ix, answer).verdict {
            AnswerVerdict::Refused(_) => Some(true),
            AnswerVerdict::Accepted(_) => Some(false),
            AnswerVerdict::Truncated | AnswerVerdict::Unusable { .. } => None,
        }
    }

    /// Whether the source's last answer at the current node was a refusal.
    fn source_refused(&self, ix: usize) -> Option<bool> {
        let node = &self.draft.run.def.nodes[ix].id;
        let rest = self.log[self.next..].iter();
        let of_node = rest.take_while(|r| !settles(&r.event, node));
        let answers = of_node.filter_map(|r| match &r.event {
            Event::ModelAnswered(answered) if answered.node == *node => Some(&answered.answer),
            _ => None,
        });
        self.is_refused(ix, answers.last()?)
    }

    /// Ends the replay at the node with the different answer; nothing after it is executed.
    fn end_at_refusal(&mut self, ix: usize, call: &Call, answer: ModelAnswer, cause: Seq) {
        let sequence = self.log[self.next].seq;
        let source_refused = self.source_refused(ix) == Some(true);
        let (answer, mut cause) = self.draft.record_model_answer(ix, call, answer, cause);
        let reason = answer.refusal.as_ref().and_then(|r| r.text.clone());
        if let Some(refusal) = answer.refusal {
            let step = EnvelopeEventKind::Refused(refusal);
            cause = self.draft.emit_envelope_event(ix, call, step, cause);
        }
        let node = self.draft.run.def.nodes[ix].id.clone();
        let divergence = RefusalDivergence {
            node: node.clone(),
            source: self.source(),
            sequence,
            source_refused,
            reason,
        };
        let (original, replayed) = divergence.kinds();
        let details = json!({
            "atSequence": sequence, "nodeId": node,
            "originalEnvelopeKind": original, "replayEnvelopeKind": replayed,
        });
        let diverged = Event::ReplayDivergedAtRefusal(Box::new(divergence));
        let cause = self.draft.emit(diverged, Some(cause));
        let message = "the model refused in one of source and replay, and answered in the other";
        let error = ErrorInfo::new("replay_diverged_at_refusal", message).with_details(details);
        self.end(ix, error, cause);
    }

    fn emit_divergence(&mut self, sequence: Seq, kind: &str) {
        let event = Event::ReplayDiverged {
            source: self.source(),
            sequence,
            kind: kind.to_owned(),
        };
        self.draft.emit(event, self.draft.run.head());
    }

    /// Fails the replay: the source recorded no answer to this request.
    fn fail_without_recorded_answer(&mut self, ix: usize) {
        let message = "the source recorded no answer to this request";
        let cause = self.draft.run.head().unwrap_or(Seq(0));
        self.end(ix, ErrorInfo::new("replay_source_missing", message), cause);
    }

    /// Fails the node and the run, whatever the author configured for a failure of the node.
    fn end(&mut self, ix: usize, error: ErrorInfo, cause: Seq) {
        let state = self.draft.run.node(ix);
        let failed = Event::NodeFailed {
            node: self.draft.run.def.nodes[ix].id.clone(),
            error: error.clone(),
            attempts: state.attempt + 1,
            child: None,
        };
        let cause = self.draft.emit(failed, Some(cause));
        self.draft.fail_run(error, Some(ix), Some(cause));
    }
}

/// The key of the call an event is about.
fn key(event: &Event) -> Option<&str> {
    let work = match event {
        Event::NodeStarted { work, .. } => work.as_ref(),
        Event::ModelRetried(retry) => Some(&retry.work),
        _ => None,
    };
    match work {
        Some(Work::Model { key, .. }) => Some(key),
        _ => None,
    }
}
