//! Conversations: who may speak in a session, what a message means, and what follows from it.
//!
//! Owns: the session machine (`state.rs`, `evolve.rs`, `decide.rs` and the steps of a turn), reading
//! answers to confirmations, commands, the rights of admins, rates of senders. Running the code of a
//! flow is part of a decision ([`Programs`]): the code is a function of its journal.
//!
//! Does not know transports, models or stores: they are work a decision requests.
//!
//! Invariants:
//! - Turns of a session run one at a time, in the order in which their causes were committed.
//! - A turn waits for at most one piece of work, which is in the log before it is attempted.
//! - What a flow is handed is in its journal before the commit.
//! - The work for one message is bounded: only its first characters are looked at.
//! - Authorization fails closed: what is not known is denied.

pub mod admin_auth;
mod admin_gate;
mod approvals;
mod beside;
mod bridge;
mod bridge_input;
mod bridge_texts;
mod bridge_timeouts;
mod command_args;
mod command_gate;
pub mod command_line;
pub mod confirm;
mod context_data;
mod correlation;
mod decide;
mod desk_hours;
mod desk_work;
mod draft;
mod drafts;
mod drive_flow;
mod end_flow;
mod escalations;
mod evolve;
mod finish_work;
mod flow_effects;
mod flow_state;
mod gate;
mod hook_decision;
mod host_calls;
mod human;
mod keywords;
mod language;
mod lifetime;
mod listen;
mod modality;
mod model_loop;
mod normalize;
mod notices;
mod own_sends;
mod pending;
mod profile;
mod program;
mod rate;
mod reminders;
mod respond;
mod router;
mod scalar;
mod schedule_tools;
mod scheduled;
mod start_flow;
mod state;
mod takeover;
mod takeover_commands;
mod takeover_routing;
mod takeover_state;
mod trace;
mod turn;
mod turn_state;
mod view;
mod without_takeover;
mod workflow_questions;
mod workflows;

pub use admin_gate::{command_target, is_admin_command, is_command_of_known_admin, stopped_bridge};
pub use bridge::OpenBridge;
pub use command_line::CommandLine;
pub use context_data::{RESERVED_PREFIX, SEGMENT_MEMBERS, inbound};
pub use decide::{SessionRefusal, SessionUndecided, decide, open, start};
pub use draft::{SessionContext, SessionDecision, SessionNeed};
pub use flow_state::ActiveFlow;
pub use host_calls::{KeysInUse, check_key, requested_messages};
pub use keywords::{KeywordList, KeywordMatch, Keywords};
pub use language::Language;
pub use profile::change_of as profile_change;
pub use program::{ProgramStep, Programs, ReadKeys, Resume};
pub use rate::{RateWindow, SenderRates};
pub use state::ChatSession;
pub use takeover_routing::takeover_short_id;
pub use turn_state::{HeldDraft, Turn};
pub use view::shown_view;

#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod tests;
