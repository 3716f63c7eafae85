//! Shapes of the conversational surface: agents, users, sessions, messages, escalations, and the events of
//! sessions. [`event()`] is the one projection of a stored event of a session.

mod answer;
mod audit;
mod escalation_payload;
mod event;
mod event_name;
mod event_payload;
mod flow_payload;
mod inspection;
mod interrupt_payload;
mod response_payload;
mod views;

pub use answer::{InboundAnswer, InboundStatus, OutboundText};
pub use audit::audit_entry;
pub use event::{AgentLogPosition, EventReader, event, event_text};
pub use event_name::event_name;
pub use inspection::{journal_record, message, outbox_entry};
pub use views::{escalation, session, user};

#[cfg(test)]
mod tests;
