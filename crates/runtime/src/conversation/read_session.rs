//! Reading sessions: the state as of the newest event, pages of the log, and waiting for a turn.

use super::answer_pieces::AnswerReader;
use super::session_machine::SessionMachine;
use crate::codec;
use crate::driven_machine::DrivenMachine;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use std::sync::Arc;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::SessionEvent;
use tandem_record::{Recorded, Seq, SessionId, StreamId};
use tandem_store::{Fault, PageLimit};
use tokio::time::Instant;

/// A page of a session's log.
pub struct SessionEventPage {
    pub events: Vec<Recorded<SessionEvent>>,
    /// Of the events as they are stored.
    pub bytes: usize,
    pub head: Option<Seq>,
}

impl Runtime {
    /// A machine as of its newest event; `None` if its stream does not exist.
    pub(crate) async fn read_machine<M: DrivenMachine>(
        &self,
        driver: &MachineDriver<M>,
        stream: &StreamId,
    ) -> Result<Option<M>, Fault> {
        let mut slot = driver.cache.lock(stream).await;
        loop {
            let machine = match self.load_machine(driver, stream, &mut slot).await {
                Ok(machine) if machine.head().is_none() => return Ok(None),
                Ok(machine) => machine,
                Err(SubmitError::Fault(fault)) => return Err(fault),
                Err(_) => return Ok(None),
            };
            // Another process may have gone on.
            if !self.is_behind(&machine).await? {
                slot.machine = Some(machine.clone());
                return Ok(Some(machine));
            }
        }
    }

    /// A session as of its newest event.
    pub async fn read_session(
        &self,
        session: &SessionId,
    ) -> Result<Option<Arc<ChatSession>>, Fault> {
        let Some(conversations) = self.conversations() else {
            return Ok(None);
        };
        let stream = StreamId::of_session(session);
        let machine = self.read_machine(&conversations.sessions, &stream).await?;
        let session = machine.as_ref().and_then(SessionMachine::shared_session);
        Ok(session.filter(|session| !self.is_session_past_retention(session)))
    }

    /// Events of a session after a sequence, up to the limit.
    pub async fn session_events(
        &self,
        session: &SessionId,
        after: Option<Seq>,
        limit: PageLimit,
    ) -> Result<SessionEventPage, Fault> {
        let stream = StreamId::of_session(session);
        let page = self.store().event_page(&stream, after, limit).await?;
        let events = page
            .events
            .iter()
            .map(codec::decode)
            .collect::<Result<_, _>>()?;
        Ok(SessionEventPage {
            events,
            bytes: page.events.iter().map(|event| event.body.len()).sum(),
            head: page.head,
        })
    }

    /// Waits until a turn is over. `false` when it is not by the deadline.
    pub async fn wait_for_turn(
        &self,
        session: &SessionId,
        turn: u64,
        until: Instant,
    ) -> Result<bool, Fault> {
        let stream = StreamId::of_session(session);
        let mut bell = self.bell().listen(&stream);
        loop {
            bell.mark_unchanged();
            let current = self.read_session(session).await?;
            if current.is_none_or(|current| current.is_turn_over(turn)) {
                return Ok(true);
            }
            tokio::select! {
                rung = bell.changed() => {
                    if rung.is_err() {
                        bell = self.bell().listen(&stream);
                    }
                }
                () = tokio::time::sleep_until(until) => return Ok(false),
                () = self.stopped() => return Ok(false),
            }
        }
    }

    /// What models stream of their answers to the session. `from_start`: also what they streamed a moment ago.
    pub fn answer_pieces(&self, session: &SessionId, from_start: bool) -> AnswerReader {
        let stream = StreamId::of_session(session);
        self.inner.pieces.listen(&stream, from_start)
    }
}
