//! A replay: the source's log is followed event by event, in the source's time. What a node did
//! by itself it does again, and is compared; everything else is repeated as it was recorded. A node
//! that asked a model does again what followed from the recorded answers ([`models`]).

mod models;

use super::branch::entry;
use super::place;
use crate::node::Kind;
use crate::run::finish::RUN_CANCELLED;
use crate::run::turn::Turn;
use crate::run::turn_view::reads;
use tandem_record::{Cause, ErrorInfo, Event, Judged, NodeId, Recorded, RunId, Said, Seq, Work};

pub(super) fn replay<'a>(
    turn: Turn<'a>,
    log: &[Recorded],
    from: Seq,
    clean: &dyn Fn(&Event) -> Event,
) -> Turn<'a> {
    let log = without_cancel(log, place(from));
    let mut tape = Tape {
        turn,
        clean,
        log,
        from: place(from),
        next: 0,
        places: Vec::with_capacity(log.len()),
    };
    tape.turn.replaying = true;
    tape.turn.floor = from;
    tape.turn.ahead = reads(&tape.turn, log);
    tape.turn.artifact_owner = artifact_owner(&tape.turn, log);
    while tape.next < log.len() && tape.turn.needs.is_none() && !tape.is_over() {
        tape.step();
    }
    if tape.turn.needs.is_none() && !tape.is_over() {
        tape.run_out();
    }
    tape.turn
}

/// The run after which the source's artifacts are named: they are passed on as data, so what is made
/// again keeps its name.
fn artifact_owner(turn: &Turn<'_>, log: &[Recorded]) -> Option<RunId> {
    let named_by_engine = |node: &NodeId| {
        let kind = turn
            .run
            .def
            .index(node)
            .map(|ix| &turn.run.def.nodes[ix].kind);
        matches!(
            kind,
            Some(Kind::ArtifactEmit {
                artifact_id: None,
                ..
            })
        )
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

struct Tape<'a, 'b> {
    turn: Turn<'a>,
    log: &'b [Recorded],
    clean: &'b dyn Fn(&Event) -> Event,
    from: usize,
    next: usize,
    /// Where each event of the source is in the replay.
    places: Vec<Seq>,
}

impl Tape<'_, '_> {
    /// The replay has ended, with its source or before it.
    fn is_over(&self) -> bool {
        self.turn.run.state.phase.is_terminal()
    }

    fn step(&mut self) {
        if let Some((ix, step)) = self.model_step() {
            return self.follow_model(ix, step);
        }
        let recorded = &self.log[self.next];
        let end = self.end_of_work(&recorded.event);
        match &recorded.event {
            Event::NodeStarted { node, .. } if end.is_some_and(|end| end > self.from) => {
                let ix = self.turn.run.def.index(node);
                let ix = ix.expect("end_of_work found the node");
                let end = end.expect("checked by the guard");
                self.do_again(ix, end);
            }
            Event::RunCompleted { .. } if self.next >= self.from => {
                self.turn.now = recorded.at;
                self.turn.complete_run();
                self.compare(self.next + 1);
            }
            _ => self.repeat(),
        }
    }

    /// Where the work ends that begins with this event, if the node can do it again.
    fn end_of_work(&self, event: &Event) -> Option<usize> {
        let Event::NodeStarted { node, work, .. } = event else {
            return None;
        };
        let ix = self.turn.run.def.index(node)?;
        if work.is_some() || !self.turn.is_repeatable(ix) {
            return None;
        }
        let rest = self.log[self.next..].iter();
        let length = rest.take_while(|r| !settles(&r.event, node)).count();
        Some((self.next + length + 1).min(self.log.len()))
    }

    /// One event, as it was recorded.
    fn repeat(&mut self) {
        let recorded = &self.log[self.next];
        let cause = match &recorded.cause {
            Some(Cause::Event(seq)) => {
                let now = self.places.get(place(*seq)).copied();
                Some(Cause::Event(now.unwrap_or(*seq)))
            }
            other => other.clone(),
        };
        let mut event = recorded.event.clone();
        if let Some(decided) = judged(&mut event) {
            *decided = self
                .places
                .get(place(*decided))
                .copied()
                .unwrap_or(*decided);
        }
        self.turn.now = recorded.at;
        let seq = self.turn.adopt(Recorded {
            seq: self.turn.run.next_seq(),
            at: recorded.at,
            cause,
            event,
        });
        self.places.push(seq);
        self.next += 1;
    }

    /// A node works again. What lies below the fork point is history, whatever it gives now.
    fn do_again(&mut self, ix: usize, end: usize) {
        let recorded = &self.log[self.next];
        // That it started then is a fact; what it gives is found out when it gave it.
        self.turn.now = self.log[end - 1].at;
        self.know(self.from.max(self.next + 1));
        let entry = entry(&self.turn.run, &recorded.event);
        self.turn.start_node(ix, entry);
        self.turn.already.clear();
        if self.turn.needs.is_none() {
            self.compare(end);
        }
    }

    /// What comes next is told as the source told it, up to `end`.
    fn know(&mut self, end: usize) {
        let history = self.log.iter().take(end).skip(self.next);
        self.turn.already = history.cloned().collect();
        if let Some(first) = self.turn.already.front_mut() {
            first.seq = self.turn.run.next_seq();
        }
    }

    /// Holds what was just done against the source's events up to `end`, and goes on after them.
    fn compare(&mut self, end: usize) {
        let first = self.first_undone();
        let done = &self.turn.drafted()[first..];
        let told = &self.log[self.next..end];
        let differs = |(a, b): (&Recorded, &Recorded)| {
            a.event != b.event && (self.clean)(&a.event) != b.event
        };
        let different = done.iter().zip(told).position(differs);
        let kind = match different {
            Some(at) => {
                let same_type = name(&done[at].event) == name(&told[at].event);
                Some((at, if same_type { "output" } else { "type-mismatch" }))
            }
            None if done.len() < told.len() => Some((done.len(), "missing")),
            None if done.len() > told.len() => Some((told.len(), "extra")),
            None => None,
        };
        let last = self.turn.run.state.head.unwrap_or(Seq(0));
        for at in 0..told.len() {
            self.places.push(Seq((first + at) as u64).min(last));
        }
        let sequence = kind.map(|(at, kind)| (Seq((self.next + at) as u64), kind));
        self.next = end;
        if let Some((sequence, kind)) = sequence
            && !self.turn.run.state.phase.is_terminal()
        {
            let event = Event::ReplayDiverged {
                source: self.source(),
                sequence,
                kind: kind.to_owned(),
            };
            let seq = self.turn.emit(event, self.turn.run.state.head);
            if let Some(place) = self.places.last_mut() {
                *place = seq;
            }
        }
    }

    /// Where what was done last begins among the drafted events.
    fn first_undone(&self) -> usize {
        self.places.last().map_or(0, |seq| place(*seq) + 1)
    }

    fn source(&self) -> RunId {
        let fork = self.turn.run.request().forked_from.as_ref();
        fork.expect("a replay is a fork").run_id.clone()
    }

    /// The source has not ended by itself: what it still waited for has no outcome to repeat, but a
    /// sleep is over.
    fn run_out(&mut self) {
        let missing = || {
            let message = "the source recorded no outcome";
            ErrorInfo::new("replay_source_missing", message)
        };
        for ix in self.turn.open_nodes() {
            let node = &self.turn.run.state.nodes[ix];
            match (&node.work, node.last) {
                (Some(Work::Sleep { .. }), Some(cause)) if node.retry_at.is_none() => {
                    self.turn.wake(ix, cause);
                }
                (_, cause) => self.turn.fail_node(ix, missing(), cause, None),
            }
        }
        self.turn.advance();
        if !self.turn.run.state.phase.is_terminal() {
            let cause = self.turn.run.state.head;
            self.turn.fail_run(missing(), None, cause);
        }
    }
}

/// A cancel comes from outside and is no part of what the workflow does: a replay goes on where the
/// source was cancelled. A cancel below the fork point is history and stays.
fn without_cancel(log: &[Recorded], from: usize) -> &[Recorded] {
    let cancels = |recorded: &Recorded| match &recorded.event {
        Event::RunCancelRequested { .. } | Event::RunCancelled { .. } => true,
        Event::NodeCancelled { reason, .. } => reason == RUN_CANCELLED,
        _ => false,
    };
    match log.iter().position(cancels) {
        Some(first) if first >= from => &log[..first],
        _ => log,
    }
}

/// The event a critic's verdict is about, where the verdict names one.
fn judged(event: &mut Event) -> Option<&mut Seq> {
    let judged = match event {
        Event::VerificationAsked(asked) => &mut asked.judged,
        Event::Agent(fact) => match &mut fact.said {
            Said::Verified { judged, .. } => judged,
            _ => return None,
        },
        _ => return None,
    };
    match judged {
        Judged::Decision { decided } => Some(decided),
        Judged::Output { .. } => None,
    }
}

/// Whether the event ends what a node does at once.
fn settles(event: &Event, node: &NodeId) -> bool {
    match event {
        Event::NodeCompleted { node: n, .. }
        | Event::NodeFailed { node: n, .. }
        | Event::NodeRetried { node: n, .. } => n == node,
        _ => false,
    }
}

/// Events of one kind have one name.
fn name(event: &Event) -> std::mem::Discriminant<Event> {
    std::mem::discriminant(event)
}
