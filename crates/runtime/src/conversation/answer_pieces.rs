//! What models stream of their answers, for readers of a session who listen right now. It holds no
//! secret, and what may become one is held back (`redact/stream.rs`). Nothing is stored: the whole answer is in the
//! log when it is complete.
//!
//! Invariants:
//! - A reader gets the text of an answer from its beginning, in order and without gaps, however slowly it reads.
//!   One that begins to listen while an answer is written gets what was written before. One that follows a
//!   conversation from its beginning also gets answers that were complete before it listened, if they are recent.
//! - Everything is published before the outcome of the call is committed: a reader that finds the outcome in the
//!   log finds the whole text here.
//! - The text of an answer is bounded. Beyond that nothing more is streamed; the message follows as always.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tandem_record::{EffectId, StreamId};
use tokio::sync::watch;

/// Bytes of one answer that are streamed.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Answers of a session whose text is held: the newest, and one that a slow reader may not have read.
const HELD_ANSWERS: usize = 2;
/// Sessions without a reader whose last answers are held: a first answer may be complete before anybody listens.
const RECENT_SESSIONS: usize = 64;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPiece {
    /// The call of the model that writes the answer.
    pub work: EffectId,
    pub text: String,
}

#[derive(Default)]
pub struct AnswerPieces {
    held: Mutex<HeldStreams>,
}

#[derive(Default)]
struct HeldStreams {
    streams: HashMap<StreamId, StreamedAnswers>,
    /// Streams that nobody writes or reads, the oldest first. One may be used again meanwhile.
    recent: VecDeque<StreamId>,
}

impl HeldStreams {
    /// Nobody may write or read this stream any more.
    fn release(&mut self, stream: &StreamId) {
        let streamed = self.streams.get(stream);
        if !streamed.is_some_and(StreamedAnswers::is_unused) {
            return;
        }
        self.recent.retain(|known| known != stream);
        self.recent.push_back(stream.clone());
        if self.recent.len() > RECENT_SESSIONS
            && let Some(oldest) = self.recent.pop_front()
            && self
                .streams
                .get(&oldest)
                .is_some_and(StreamedAnswers::is_unused)
        {
            self.streams.remove(&oldest);
        }
    }
}

/// The newest answers of one session.
#[derive(Default)]
struct StreamedAnswers {
    answers: VecDeque<StreamedAnswer>,
    readers: usize,
    /// Counts the pieces; readers wait for it to change.
    bell: watch::Sender<u64>,
}

struct StreamedAnswer {
    work: EffectId,
    text: String,
    /// The model still writes.
    is_open: bool,
    /// It grew too long to be streamed to its end.
    is_cut: bool,
}

impl StreamedAnswers {
    fn is_unused(&self) -> bool {
        self.readers == 0 && self.answers.iter().all(|answer| !answer.is_open)
    }
}

impl AnswerPieces {
    /// `from_start`: answers that are complete are read too, as far as they are held.
    pub(crate) fn listen(self: &Arc<Self>, stream: &StreamId, from_start: bool) -> AnswerReader {
        let mut held = self.held.lock();
        let streamed = held.streams.entry(stream.clone()).or_default();
        streamed.readers += 1;
        let complete = streamed.answers.iter().filter(|answer| !answer.is_open);
        let skipped = match from_start {
            true => Vec::new(),
            false => complete.map(|answer| answer.work.clone()).collect(),
        };
        AnswerReader {
            bell: streamed.bell.subscribe(),
            skipped,
            pieces: Arc::clone(self),
            stream: stream.clone(),
            reading: None,
            offset: 0,
        }
    }

    /// Nothing more is streamed of what models write for this session now.
    pub(crate) fn silence(&self, stream: &StreamId) {
        let mut held = self.held.lock();
        let streamed = held.streams.get_mut(stream);
        for answer in streamed.into_iter().flat_map(|s| &mut s.answers) {
            answer.is_cut |= answer.is_open;
        }
    }

    /// A call of a model begins. When it is made again, nothing more of it is streamed: its readers may have
    /// parts of another answer.
    pub(crate) fn open(self: &Arc<Self>, stream: &StreamId, work: &EffectId) -> AnswerWriter {
        let mut held = self.held.lock();
        let streamed = held.streams.entry(stream.clone()).or_default();
        let of_work = |answer: &&mut StreamedAnswer| answer.work == *work;
        match streamed.answers.iter_mut().find(of_work) {
            Some(known) => (known.is_open, known.is_cut) = (true, true),
            None => {
                if streamed.answers.len() == HELD_ANSWERS {
                    streamed.answers.pop_front();
                }
                streamed.answers.push_back(StreamedAnswer {
                    work: work.clone(),
                    text: String::new(),
                    is_open: true,
                    is_cut: false,
                });
            }
        }
        AnswerWriter {
            pieces: Arc::clone(self),
            stream: stream.clone(),
            work: work.clone(),
        }
    }
}

/// Publishes the answer of one call. The call is over when it is dropped.
pub(crate) struct AnswerWriter {
    pieces: Arc<AnswerPieces>,
    stream: StreamId,
    work: EffectId,
}

impl AnswerWriter {
    pub(crate) fn publish(&self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let mut held = self.pieces.held.lock();
        let Some(streamed) = held.streams.get_mut(&self.stream) else {
            return;
        };
        let mut answers = streamed.answers.iter_mut();
        let Some(answer) = answers.find(|answer| answer.work == self.work) else {
            return;
        };
        answer.is_cut |= answer.text.len() + piece.len() > MAX_ANSWER_BYTES;
        if !answer.is_cut {
            answer.text.push_str(piece);
            streamed.bell.send_modify(|count| *count += 1);
        }
    }
}

/// Its text is held as long as somebody listens.
impl Drop for AnswerWriter {
    fn drop(&mut self) {
        let mut held = self.pieces.held.lock();
        let Some(streamed) = held.streams.get_mut(&self.stream) else {
            return;
        };
        let of_work = |answer: &&mut StreamedAnswer| answer.work == self.work;
        if let Some(answer) = streamed.answers.iter_mut().find(of_work) {
            answer.is_open = false;
        }
        held.release(&self.stream);
    }
}

/// Reads the answers of one session as they are written.
pub struct AnswerReader {
    pieces: Arc<AnswerPieces>,
    stream: StreamId,
    bell: watch::Receiver<u64>,
    /// The answer that was read last, and how far.
    reading: Option<EffectId>,
    offset: usize,
    /// Answers that were complete before.
    skipped: Vec<EffectId>,
}

impl AnswerReader {
    /// What was written of this answer since it was read last, or since its beginning.
    pub fn take(&mut self, work: &EffectId) -> Option<AnswerPiece> {
        let text = {
            let held = self.pieces.held.lock();
            self.rest(&held, work)?.to_owned()
        };
        self.offset = self.offset_in(work) + text.len();
        self.reading = Some(work.clone());
        let work = work.clone();
        Some(AnswerPiece { work, text })
    }

    /// Whether [`Self::take`] would give something.
    pub fn has_more(&self, work: &EffectId) -> bool {
        self.rest(&self.pieces.held.lock(), work).is_some()
    }

    fn rest<'a>(&self, held: &'a HeldStreams, work: &EffectId) -> Option<&'a str> {
        let answers = &held.streams.get(&self.stream)?.answers;
        let answer = answers.iter().find(|answer| answer.work == *work)?;
        let rest = answer.text.get(self.offset_in(work)..)?;
        (!rest.is_empty() && !self.skipped.contains(work)).then_some(rest)
    }

    /// The answer that a model writes now.
    pub fn open_answer(&self) -> Option<EffectId> {
        let held = self.pieces.held.lock();
        let newest = held.streams.get(&self.stream)?.answers.back()?;
        newest.is_open.then(|| newest.work.clone())
    }

    /// Waits until something was written since it was waited for last.
    pub async fn changed(&mut self) {
        if self.bell.changed().await.is_err() {
            // The sender lives as long as this reader.
            std::future::pending::<()>().await;
        }
    }

    fn offset_in(&self, work: &EffectId) -> usize {
        match self.reading.as_ref() == Some(work) {
            true => self.offset,
            false => 0,
        }
    }
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        let mut held = self.pieces.held.lock();
        let Some(streamed) = held.streams.get_mut(&self.stream) else {
            return;
        };
        streamed.readers -= 1;
        held.release(&self.stream);
    }
}

#[cfg(test)]
mod tests;
