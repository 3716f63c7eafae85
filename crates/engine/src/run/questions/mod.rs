//! Questions: the interrupts a run opens, their answers, timeouts and announcements.
//!
//! Owns [`Questions`]: the open interrupts by node, the closed ones, requested changes, and external
//! events that came early.
//!
//! Invariants:
//! - One answer closes an interrupt; every later one is refused with the name of the decider.
//! - A timeout never approves.
//! - Each external event is used once.

mod announce;
mod answer;
mod answers;
mod approval;
mod ask;
mod conversation;
mod draft;
mod external_event;
mod fold;
mod hidden;
mod kind_events;
mod next_steps;
mod notices;
mod open_question;
mod overdue;
mod session;
mod state;

pub use announce::required_announcements;
pub(in crate::run) use answer::{
    Answer, AnswerOutcome, Closing, close, invalid, is_late_exchange, open_question,
    resolve_question,
};
pub(in crate::run) use answers::read_answers;
pub(in crate::run) use approval::{ACCEPT_WITH_CHANGES, check_claimed_names};
pub(crate) use ask::Question;
pub(in crate::run) use draft::QuestionsDraft;
pub(in crate::run) use external_event::{check_payload, waiting_for};
pub use next_steps::NextSteps;
pub use notices::{NoticeRule, required_notices};
pub use open_question::count_vote;
pub(in crate::run) use overdue::{deadline_passed, expired_question};
pub(in crate::run) use state::Questions;
