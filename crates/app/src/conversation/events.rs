//! Events of sessions and agents, as pages and as they arrive.

use crate::app::App;
use crate::error::AppError;
use crate::follow::{PAGE, wait_until_stopping};
use std::collections::VecDeque;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{SessionEvent, SessionEventBody, SessionStart};
use tandem_record::{AgentId, EffectId, Masking, Recorded, Seq, SessionId, StreamId};
use tandem_runtime::conversation::{AgentEventPage, AnswerPiece, SessionEventPage, TextRedaction};
use tandem_runtime::{Fault, PageLimit, Runtime};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// The size of one JSON page of events.
const EVENTS_PAGE: PageLimit = PageLimit {
    events: 5_000,
    bytes: 4 * 1024 * 1024,
};

/// Finished work that a reader remembers.
const REMEMBERED_WORK: usize = 64;

/// Reads a session's log as it grows, and pieces of answers while a model writes them.
pub struct SessionFollower {
    runtime: Runtime,
    session: SessionId,
    cursor: Option<Seq>,
    bell: watch::Receiver<u64>,
    pieces: Option<broadcast::Receiver<Arc<AnswerPiece>>>,
    /// The last work whose end was read. Pieces that arrive after the whole answer are left out.
    finished: VecDeque<EffectId>,
    stopping: watch::Receiver<bool>,
}

pub enum SessionUpdate {
    Events(Vec<Recorded<SessionEvent>>),
    /// A piece of an answer that is not in the log yet, and may never be.
    Piece(Arc<AnswerPiece>),
    /// Nothing arrived before the deadline.
    TimedOut,
    /// The session has ended and all of it was read.
    Ended,
    /// The host is shutting down; the reader can continue later.
    Draining,
}

impl App {
    /// A page of a session's events after a sequence.
    pub async fn read_session_events(
        &self,
        caller: &Identity,
        session: &SessionId,
        after: Option<Seq>,
    ) -> Result<(SessionStart, SessionEventPage), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let page = self
            .runtime()
            .session_events(session, after, EVENTS_PAGE)
            .await?;
        Ok((found.start().clone(), page))
    }

    /// Follows a session the caller may see.
    pub async fn follow_session(
        &self,
        caller: &Identity,
        session: &SessionId,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Result<(SessionStart, SessionFollower), AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let found = self.find_session(caller, session).await?;
        let follower = SessionFollower::new(self.runtime(), session, cursor, stopping);
        Ok((found.start().clone(), follower))
    }

    /// A page of an agent's events after a position.
    pub async fn read_agent_events(
        &self,
        caller: &Identity,
        agent: &AgentId,
        after: u64,
    ) -> Result<AgentEventPage, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        self.find_agent(agent)?;
        let runtime = self.runtime();
        Ok(runtime
            .agent_events(&caller.tenant, agent, after, EVENTS_PAGE)
            .await?)
    }

    /// What a session began with.
    pub async fn session_start(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<SessionStart, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.find_session(caller, session).await?.start().clone())
    }

    /// How texts in events of an agent are shown.
    pub fn text_masking(&self, agent: &AgentId) -> Masking {
        let redaction = self.agent_spec(agent).map(|agent| agent.redaction);
        match redaction {
            None | Some(TextRedaction::Full) => Masking::Passthrough,
            Some(TextRedaction::Hashed) => Masking::Hash,
            Some(TextRedaction::Omitted) => Masking::Omit,
        }
    }
}

impl SessionFollower {
    /// The bell is heard before the first read, so that no event is missed in between.
    pub(super) fn new(
        runtime: &Runtime,
        session: &SessionId,
        cursor: Option<Seq>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            runtime: runtime.clone(),
            session: session.clone(),
            cursor,
            bell: runtime.bell().listen(&StreamId::of_session(session)),
            pieces: Some(runtime.answer_pieces(session)),
            finished: VecDeque::new(),
            stopping,
        }
    }

    /// Waits for what comes next.
    pub async fn next(&mut self, until: Instant) -> Result<SessionUpdate, Fault> {
        loop {
            self.bell.mark_unchanged();
            let page = self
                .runtime
                .session_events(&self.session, self.cursor, PAGE)
                .await?;
            if let Some(last) = page.events.last() {
                self.cursor = Some(last.seq);
                self.note_finished(&page.events);
                return Ok(SessionUpdate::Events(page.events));
            }
            let current = self.runtime.read_session(&self.session).await?;
            let is_over = |session: &tandem_runtime::conversation::ChatSession| {
                session.ended().is_some() && !session.has_deliveries()
            };
            if current.as_ref().is_none_or(is_over) {
                return Ok(SessionUpdate::Ended);
            }
            tokio::select! {
                // Events first: the turn of a piece is known before the piece.
                biased;
                rung = self.bell.changed() => {
                    if rung.is_err() {
                        let stream = StreamId::of_session(&self.session);
                        self.bell = self.runtime.bell().listen(&stream);
                    }
                }
                piece = next_piece(&mut self.pieces) => {
                    if !self.finished.contains(&piece.work) {
                        return Ok(SessionUpdate::Piece(piece));
                    }
                }
                () = tokio::time::sleep_until(until) => return Ok(SessionUpdate::TimedOut),
                () = wait_until_stopping(&mut self.stopping) => {
                    return Ok(SessionUpdate::Draining);
                }
            }
        }
    }
}

impl SessionFollower {
    fn note_finished(&mut self, events: &[Recorded<SessionEvent>]) {
        for event in events {
            if let SessionEventBody::WorkFinished { effect_id } = &event.event.body {
                if self.finished.len() == REMEMBERED_WORK {
                    self.finished.pop_front();
                }
                self.finished.push_back(effect_id.clone());
            }
        }
    }
}

/// The next piece. Pieces that a slow reader missed are gone: the whole answer follows as an event.
async fn next_piece(
    pieces: &mut Option<broadcast::Receiver<Arc<AnswerPiece>>>,
) -> Arc<AnswerPiece> {
    while let Some(receiver) = pieces {
        match receiver.recv().await {
            Ok(piece) => return piece,
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => *pieces = None,
        }
    }
    std::future::pending().await
}
