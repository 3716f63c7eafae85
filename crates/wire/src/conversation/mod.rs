//! Shapes of the conversational surface: agents, users, sessions, messages, escalations, and the events of
//! sessions. [`event()`] is the one projection of a stored event of a session.

mod agent_level_event;
mod answer;
mod audit;
mod escalation_payload;
mod event;
mod event_name;
mod event_payload;
mod flow_payload;
mod inspection;
mod interrupt_payload;
mod proxy_payload;
mod response_payload;
mod schedule;
mod takeover_payload;
mod ui_channel;
mod views;

pub use agent_level_event::agent_level_event;
pub use answer::{InboundAnswer, InboundAnswers, InboundStatus, OutboundText};
pub use audit::audit_entry;
pub use event::{AgentLogPosition, EventReader, event, event_text};
pub use event_name::event_name;
pub use inspection::{journal_record, message, outbox_entry};
pub use proxy_payload::{proxy, proxy_message};
pub use schedule::{schedule, schedule_event, schedule_recipient, schedule_run};
pub use ui_channel::{UiAckStatus, UiFrame, UiProjection, UiReader, UiSpeaker, UiTurnState};
pub use views::{escalation, session, user};

#[cfg(test)]
mod tests;
