//! A replay: follows the source's log event by event, at the source's times. Work that a node did
//! by itself is executed again and compared; everything else is copied as recorded. A node that
//! called a model executes again what followed from the recorded answers ([`models`]).

mod models;

use super::branch::entry;
use super::log_index;
use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::RUN_CANCELLED;
use tandem_record::{
    AgentEventKind, Cause, ErrorInfo, Event, NodeId, RecordedEvent, RunId, Seq,
    VerificationSubject, Work,
};

pub(super) fn replay<'a>(
    draft: DecisionDraft<'a>,
    log: &[RecordedEvent],
    from: Seq,
    redact: &dyn Fn(&Event) -> Event,
) -> DecisionDraft<'a> {
    let log = without_cancel(log, log_index(from));
    let mut replayer = Replayer {
        draft,
        redact,
        log,
        from: log_index(from),
        next: 0,
        replay_seqs: Vec::with_capacity(log.len()),
    };
    replayer.draft.replay.replaying = true;
    replayer.draft.replay.first_own_seq = from;
    replayer.draft.plan_replay_reads(log);
    replayer.draft.replay.artifact_owner = artifact_owner(&replayer.draft, log);
    while replayer.next < log.len() && replayer.draft.needs.is_none() && !replayer.is_over() {
        replayer.step();
    }
    if replayer.draft.needs.is_none() && !replayer.is_over() {
        replayer.end_beyond_source();
    }
    replayer.draft
}

/// The run whose id names the source's artifacts. They are passed on as data, so repeated work
/// keeps the name.
fn artifact_owner(draft: &DecisionDraft<'_>, log: &[RecordedEvent]) -> Option<RunId> {
    let named_by_engine = |node: &NodeId| {
        let kind = draft
            .run
            .def
            .index(node)
            .map(|ix| &draft.run.def.nodes[ix].kind);
        matches!(kind, Some(Kind::Conformance(kind)) if kind.leaves_artifact_unnamed())
    };
    log.iter().find_map(|recorded| match &recorded.event {
        Event::ArtifactCreated {
            artifact_id, node, ..
        } if named_by_engine(node) => {
            let owner = artifact_id.strip_suffix(node.as_str())?;
            owner.strip_suffix(':').map(RunId::from)
        }
        _ => None,
    })
}

struct Replayer<'a, 'b> {
    draft: DecisionDraft<'a>,
    log: &'b [RecordedEvent],
    redact: &'b dyn Fn(&Event) -> Event,
    from: usize,
    next: usize,
    /// The position in the replay of each event of the source.
    replay_seqs: Vec<Seq>,
}

impl Replayer<'_, '_> {
    /// Whether the replay has ended, with its source or before it.
    fn is_over(&self) -> bool {
        self.draft.run.phase().is_terminal()
    }

    fn step(&mut self) {
        if let Some((ix, step)) = self.model_step() {
            return self.replay_model_step(ix, step);
        }
        let recorded = &self.log[self.next];
        let end = self.end_of_work(&recorded.event);
        match &recorded.event {
            Event::NodeStarted { node, .. } if end.is_some_and(|end| end > self.from) => {
                let ix = self.draft.run.def.index(node);
                let ix = ix.expect("end_of_work found the node");
                let end = end.expect("checked by the guard");
                self.execute_again(ix, end);
            }
            Event::RunCompleted { .. } if self.next >= self.from => {
                self.draft.now = recorded.at;
                self.draft.complete_run();
                self.compare(self.next + 1);
            }
            _ => self.copy_event(),
        }
    }

    /// The end of the work that begins with this event, if the node can repeat it.
    fn end_of_work(&self, event: &Event) -> Option<usize> {
        let Event::NodeStarted { node, work, .. } = event else {
            return None;
        };
        let ix = self.draft.run.def.index(node)?;
        if work.is_some() || !self.draft.is_repeatable(ix) {
            return None;
        }
        let rest = self.log[self.next..].iter();
        let length = rest.take_while(|r| !settles(&r.event, node)).count();
        Some((self.next + length + 1).min(self.log.len()))
    }

    /// Copies one event as it was recorded.
    fn copy_event(&mut self) {
        let recorded = &self.log[self.next];
        let cause = match &recorded.cause {
            Some(Cause::Event(seq)) => {
                let now = self.replay_seqs.get(log_index(*seq)).copied();
                Some(Cause::Event(now.unwrap_or(*seq)))
            }
            other => other.clone(),
        };
        let mut event = recorded.event.clone();
        if let Some(decided) = verified_decision_seq(&mut event) {
            *decided = self
                .replay_seqs
                .get(log_index(*decided))
                .copied()
                .unwrap_or(*decided);
        }
        self.draft.now = recorded.at;
        let seq = self.draft.append_recorded(RecordedEvent {
            seq: self.draft.run.next_seq(),
            at: recorded.at,
            cause,
            event,
        });
        self.replay_seqs.push(seq);
        self.next += 1;
    }

    /// Executes a node again. Events below the fork point are copied, whatever the result is now.
    fn execute_again(&mut self, ix: usize, end: usize) {
        let recorded = &self.log[self.next];
        // The start event is copied with its time; the result is computed at the time the source
        // had it.
        self.draft.now = self.log[end - 1].at;
        self.reuse_recorded(self.from.max(self.next + 1));
        let entry = entry(&self.draft.run, &recorded.event);
        self.draft.start_node(ix, entry);
        self.draft.replay.already_recorded.clear();
        if self.draft.needs.is_none() {
            self.compare(end);
        }
    }

    /// Uses the source's events up to `end` in place of drafted ones.
    fn reuse_recorded(&mut self, end: usize) {
        let history = self.log.iter().take(end).skip(self.next);
        self.draft.replay.already_recorded = history.cloned().collect();
        if let Some(first) = self.draft.replay.already_recorded.front_mut() {
            first.seq = self.draft.run.next_seq();
        }
    }

    /// Compares the new events with the source's events up to `end`, and continues after them.
    fn compare(&mut self, end: usize) {
        let first = self.first_uncompared();
        let done = &self.draft.drafted()[first..];
        let source = &self.log[self.next..end];
        let differs = |(a, b): (&RecordedEvent, &RecordedEvent)| {
            a.event != b.event && (self.redact)(&a.event) != b.event
        };
        let different = done.iter().zip(source).position(differs);
        let kind = match different {
            Some(at) => {
                let same_type = event_kind(&done[at].event) == event_kind(&source[at].event);
                Some((at, if same_type { "output" } else { "type-mismatch" }))
            }
            None if done.len() < source.len() => Some((done.len(), "missing")),
            None if done.len() > source.len() => Some((source.len(), "extra")),
            None => None,
        };
        let last = self.draft.run.head().unwrap_or(Seq(0));
        for at in 0..source.len() {
            self.replay_seqs.push(Seq((first + at) as u64).min(last));
        }
        let sequence = kind.map(|(at, kind)| (Seq((self.next + at) as u64), kind));
        self.next = end;
        if let Some((sequence, kind)) = sequence
            && !self.draft.run.phase().is_terminal()
        {
            let event = Event::ReplayDiverged {
                source: self.source(),
                sequence,
                kind: kind.to_owned(),
            };
            let seq = self.draft.emit(event, self.draft.run.head());
            if let Some(place) = self.replay_seqs.last_mut() {
                *place = seq;
            }
        }
    }

    /// The index of the first drafted event that has not been compared.
    fn first_uncompared(&self) -> usize {
        self.replay_seqs.last().map_or(0, |seq| log_index(*seq) + 1)
    }

    fn source(&self) -> RunId {
        let fork = self.draft.run.request().forked_from.as_ref();
        fork.expect("a replay is a fork").run_id.clone()
    }

    /// The source did not end by itself: work it still waited for has no result to repeat, except
    /// that a sleep is over.
    fn end_beyond_source(&mut self) {
        let missing = || {
            let message = "the source recorded no outcome";
            ErrorInfo::new("replay_source_missing", message)
        };
        for ix in self.draft.open_nodes() {
            let node = self.draft.run.node(ix);
            match (&node.work, node.last) {
                (Some(Work::Sleep { .. }), Some(cause)) if node.retry_at.is_none() => {
                    self.draft.wake(ix, cause);
                }
                (_, cause) => self.draft.fail_node(ix, missing(), cause, None),
            }
        }
        self.draft.advance();
        if !self.draft.run.phase().is_terminal() {
            let cause = self.draft.run.head();
            self.draft.fail_run(missing(), None, cause);
        }
    }
}

/// The log without a cancel. A cancel comes from outside and is not part of the workflow, so a
/// replay continues where the source was cancelled. A cancel below the fork point is kept.
fn without_cancel(log: &[RecordedEvent], from: usize) -> &[RecordedEvent] {
    let cancels = |recorded: &RecordedEvent| match &recorded.event {
        Event::RunCancelRequested { .. } | Event::RunCancelled { .. } => true,
        Event::NodeCancelled { reason, .. } => reason == RUN_CANCELLED,
        _ => false,
    };
    match log.iter().position(cancels) {
        Some(first) if first >= from => &log[..first],
        _ => log,
    }
}

/// The event that a verdict is about, where the verdict names one.
fn verified_decision_seq(event: &mut Event) -> Option<&mut Seq> {
    let verification_subject = match event {
        Event::VerificationRequested(request) => &mut request.verification_subject,
        Event::Agent(agent_event) => match &mut agent_event.kind {
            AgentEventKind::Verified {
                verification_subject,
                ..
            } => verification_subject,
            _ => return None,
        },
        _ => return None,
    };
    match verification_subject {
        VerificationSubject::Decision { decided } => Some(decided),
        VerificationSubject::Output { .. } => None,
    }
}

/// Whether the event ends the work that a node does in one decision.
fn settles(event: &Event, node: &NodeId) -> bool {
    match event {
        Event::NodeCompleted { node: n, .. }
        | Event::NodeFailed { node: n, .. }
        | Event::NodeRetried { node: n, .. } => n == node,
        _ => false,
    }
}

/// Events of one kind have the same discriminant.
fn event_kind(event: &Event) -> std::mem::Discriminant<Event> {
    std::mem::discriminant(event)
}
