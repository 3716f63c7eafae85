//! Stream modes: which events a subscriber sees.

use tandem_record::Event;

pub const SUPPORTED: [&str; 4] = ["updates", "values", "messages", "debug"];

/// The event name of a text chunk in a `messages` stream.
pub const MESSAGE: &str = "ai.message.chunk";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Updates,
    Values,
    Messages,
    Debug,
}

/// One mode, or a union of modes other than `values`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes(Vec<Mode>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a stream mode this host offers in this combination")]
pub struct UnsupportedMode(pub String);

impl Modes {
    pub fn parse(text: &str) -> Result<Self, UnsupportedMode> {
        let unsupported = |name: &str| UnsupportedMode(name.to_owned());
        let mut modes = Vec::new();
        for name in text.split(',') {
            let mode = match name.trim() {
                "updates" => Mode::Updates,
                "values" => Mode::Values,
                "messages" => Mode::Messages,
                "debug" => Mode::Debug,
                other => return Err(unsupported(other)),
            };
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        if modes.len() > 1 && modes.contains(&Mode::Values) {
            return Err(unsupported(text));
        }
        Ok(Self(modes))
    }

    pub fn is_values(&self) -> bool {
        self.0 == [Mode::Values]
    }

    /// Whether an event appears in this stream. A values stream shows snapshots instead.
    pub fn shows(&self, event: &Event) -> bool {
        self.0.iter().any(|mode| match mode {
            Mode::Debug => true,
            Mode::Updates => is_update(event),
            Mode::Messages => is_message(event),
            Mode::Values => false,
        })
    }

    /// Whether an event is sent as a message: with the name [`MESSAGE`] and only its payload as
    /// data.
    pub fn shows_as_message(&self, event: &Event) -> bool {
        self.0.contains(&Mode::Messages) && is_message(event)
    }

    /// Whether a values stream sends a snapshot after this event.
    pub fn values_trigger(event: &Event) -> bool {
        is_update(event) || matches!(event, Event::NodeStarted { .. })
    }
}

/// Whether an event is a chunk of a model answer.
fn is_message(event: &Event) -> bool {
    matches!(event, Event::OutputChunk(_))
}

fn is_update(event: &Event) -> bool {
    match event {
        Event::RunStarted { .. }
        | Event::RunPaused { .. }
        | Event::RunResumed { .. }
        | Event::RunCompleted { .. }
        | Event::RunFailed { .. }
        | Event::RunCancelled { .. }
        | Event::NodeCompleted { .. }
        | Event::NodeFailed { .. }
        | Event::NodeSkipped { .. }
        | Event::NodeCancelled { .. }
        | Event::NodeDispatched { .. }
        | Event::NodeSuspended { .. }
        | Event::NodeResumed { .. }
        | Event::InterruptRequested { .. }
        | Event::ApprovalRequested { .. }
        | Event::ClarificationRequested { .. }
        | Event::ApprovalReceived { .. }
        | Event::ClarificationResolved { .. }
        | Event::InterruptResolved { .. }
        | Event::InterruptEscalated { .. }
        | Event::InterruptReminded { .. }
        | Event::ConversationOpened { .. }
        | Event::ConversationExchanged { .. }
        | Event::ConversationClosed { .. }
        | Event::ArtifactCreated { .. } => true,
        Event::RunPauseRequested { .. }
        | Event::RunCancelRequested { .. }
        | Event::ApprovalQuestioned { .. }
        | Event::DecisionDenied { .. }
        | Event::ExternalEventReceived { .. }
        | Event::NodeStarted { .. }
        | Event::NodeRetried { .. }
        | Event::VariableChanged { .. }
        | Event::ChannelWritten { .. }
        | Event::CapBreached { .. }
        | Event::ModelCapabilityInsufficient { .. }
        | Event::LoopbackLimitReached { .. }
        | Event::MemoryWritten { .. }
        | Event::MemoryDeleted { .. }
        | Event::MemoryCompacted { .. }
        | Event::ReplayDiverged { .. }
        | Event::ReplayDivergedAtRefusal(_)
        | Event::OutputChunk(_)
        | Event::ModelAnswered(_)
        | Event::ModelRetried(_)
        | Event::Envelope(_)
        | Event::TriggerArmed { .. }
        | Event::Agent(_)
        | Event::OrchestratorDecided { .. }
        | Event::ConfidenceEscalated { .. }
        | Event::Handoff(_)
        | Event::VerificationRequested(_)
        | Event::FanOut { .. }
        | Event::FanIn { .. }
        | Event::LogAppended { .. }
        | Event::Flow(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_combine_except_values() {
        assert!(Modes::parse("updates").is_ok());
        assert!(Modes::parse("updates, messages").is_ok());
        assert!(Modes::parse("values").is_ok_and(|m| m.is_values()));
        for bad in ["", "events", "updates,telepathy", "values,updates", "Debug"] {
            assert!(Modes::parse(bad).is_err(), "{bad:?}");
        }
    }
}
