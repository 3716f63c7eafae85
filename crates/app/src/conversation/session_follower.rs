//! Reads a session's log as it grows, and what models stream of their answers.
//!
//! Invariants:
//! - What was streamed of an answer comes in order: after the events that were committed before its call began,
//!   and before the event that says how the call ended. A fast answer is streamed like a slow one.
//! - Large pages count against the room of their tenant until whoever reads them has dropped the room.
//! - Nothing is lost when the future of [`SessionFollower::next`] is dropped.

use crate::app::App;
use crate::fair_shares::{FairShares, HeldShare};
use crate::follow::{PAGE, room_for_page, wait_until_stopping};
use std::collections::VecDeque;
use std::sync::Arc;
use tandem_record::conversation::{
    SessionEvent, SessionEventBody as Body, SessionStart, SessionWork,
};
use tandem_record::{EffectId, Recorded, Seq, SessionId, StreamId, TenantId};
use tandem_runtime::conversation::{AnswerPiece, AnswerReader, ChatSession};
use tandem_runtime::{Fault, Runtime};
use tokio::sync::watch;
use tokio::time::Instant;

pub struct SessionFollower {
    runtime: Runtime,
    reader_memory: Arc<FairShares>,
    tenant: TenantId,
    session: SessionId,
    cursor: Option<Seq>,
    bell: watch::Receiver<u64>,
    answers: AnswerReader,
    /// The call of a model that the events read so far began.
    call: ModelCall,
    /// Events that were read and not returned.
    page: VecDeque<Recorded<SessionEvent>>,
    /// Their room, if they are many bytes.
    page_room: Option<Arc<HeldShare>>,
    /// Room for the next large page, when it had to be waited for.
    room: Option<HeldShare>,
    stopping: watch::Receiver<bool>,
}

/// Whose answer a reader may be shown now.
enum ModelCall {
    /// The log is read from the middle: a call may have begun before.
    Unknown,
    None,
    UnderWay(EffectId),
}

pub enum SessionUpdate {
    /// With their room in memory, when they are many bytes.
    Events(Vec<Recorded<SessionEvent>>, Option<Arc<HeldShare>>),
    /// A piece of an answer that is not in the log yet, and may never be.
    Piece(AnswerPiece),
    /// Nothing arrived before the deadline.
    TimedOut,
    /// The session has ended and all of it was read.
    Ended,
    /// The host is shutting down; the reader can continue later.
    Draining,
}

impl SessionFollower {
    /// The bell is heard before the first read, so that no event is missed in between. `from_start`: the reader
    /// followed the session since it began, and is shown what was streamed since then.
    pub(super) fn new(
        app: &App,
        start: &SessionStart,
        cursor: Option<Seq>,
        from_start: bool,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (runtime, session) = (app.runtime(), &start.session_id);
        Self {
            runtime: runtime.clone(),
            reader_memory: Arc::clone(app.reader_memory()),
            tenant: start.owner.tenant.clone(),
            session: session.clone(),
            cursor,
            bell: runtime.bell().listen(&StreamId::of_session(session)),
            answers: runtime.answer_pieces(session, from_start),
            call: match cursor {
                Some(_) => ModelCall::Unknown,
                None => ModelCall::None,
            },
            page: VecDeque::new(),
            page_room: None,
            room: None,
            stopping,
        }
    }

    /// Waits for what comes next.
    pub async fn next(&mut self, until: Instant) -> Result<SessionUpdate, Fault> {
        loop {
            if let Some(update) = self.take_ready() {
                return Ok(update);
            }
            self.bell.mark_unchanged();
            // Before the read: what began this call is then in the log that was read.
            let open_answer = self.answers.open_answer();
            let page = self
                .runtime
                .session_events(&self.session, self.cursor, PAGE)
                .await?;
            if let Some(last) = page.events.last() {
                let needed = room_for_page(page.bytes);
                if needed > 0 {
                    let held = self.room.take();
                    let try_hold = || self.reader_memory.try_acquire(&self.tenant, needed);
                    self.room = held.or_else(try_hold);
                    if self.room.is_none() {
                        drop(page);
                        match self.wait_for_room(needed, until).await {
                            Some(update) => return Ok(update),
                            None => continue,
                        }
                    }
                    self.page_room = self.room.take().map(Arc::new);
                }
                self.cursor = Some(last.seq);
                self.page = page.events.into();
                continue;
            }
            if let ModelCall::Unknown = self.call {
                self.call = open_answer.map_or(ModelCall::None, ModelCall::UnderWay);
                continue;
            }
            let current = self.runtime.read_session(&self.session).await?;
            let is_over =
                |session: &Arc<ChatSession>| session.ended().is_some() && !session.has_deliveries();
            if current.as_ref().is_none_or(is_over) {
                return Ok(SessionUpdate::Ended);
            }
            tokio::select! {
                rung = self.bell.changed() => {
                    if rung.is_err() {
                        let stream = StreamId::of_session(&self.session);
                        self.bell = self.runtime.bell().listen(&stream);
                    }
                }
                () = self.answers.changed() => {}
                () = tokio::time::sleep_until(until) => return Ok(SessionUpdate::TimedOut),
                () = wait_until_stopping(&mut self.stopping) => {
                    return Ok(SessionUpdate::Draining);
                }
            }
        }
    }

    /// A reader that waits for room holds no events: it reads them again. Why it waits no longer, unless there
    /// is room.
    async fn wait_for_room(&mut self, needed: usize, until: Instant) -> Option<SessionUpdate> {
        tokio::select! {
            room = self.reader_memory.acquire(&self.tenant, needed, until) => self.room = room,
            () = wait_until_stopping(&mut self.stopping) => return Some(SessionUpdate::Draining),
        }
        match self.room {
            Some(_) => None,
            None => Some(SessionUpdate::TimedOut),
        }
    }

    /// What was read and not returned: events up to the end of a call of which more was streamed, or else what
    /// was streamed.
    fn take_ready(&mut self) -> Option<SessionUpdate> {
        if self.page.is_empty() {
            self.page_room = None;
            return self.take_piece();
        }
        let mut events = Vec::new();
        while let Some(event) = self.page.front() {
            if ends_call(&event.event.body) && self.has_piece() {
                if events.is_empty() {
                    return self.take_piece();
                }
                break;
            }
            let event = self.page.pop_front()?;
            self.note_call(&event.event.body);
            events.push(event);
        }
        Some(SessionUpdate::Events(events, self.page_room.clone()))
    }

    fn has_piece(&self) -> bool {
        match &self.call {
            ModelCall::UnderWay(work) => self.answers.has_more(work),
            ModelCall::Unknown | ModelCall::None => false,
        }
    }

    fn take_piece(&mut self) -> Option<SessionUpdate> {
        match &self.call {
            ModelCall::UnderWay(work) => self.answers.take(work).map(SessionUpdate::Piece),
            ModelCall::Unknown | ModelCall::None => None,
        }
    }

    fn note_call(&mut self, body: &Body) {
        match body {
            Body::WorkRequested(work) if matches!(work.work, SessionWork::Model { .. }) => {
                self.call = ModelCall::UnderWay(work.effect_id.clone());
            }
            body if ends_call(body) => self.call = ModelCall::None,
            _ => {}
        }
    }
}

/// A turn waits for one piece of work at a time. One that was interrupted ends without the outcome of its work.
fn ends_call(body: &Body) -> bool {
    matches!(body, Body::WorkFinished { .. } | Body::TurnEnded(_))
}
