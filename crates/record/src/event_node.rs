//! The node that an event is about.

use crate::{Event, NodeId};

impl Event {
    /// The node this event is about.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::NodeStarted { node, .. }
            | Self::NodeCompleted { node, .. }
            | Self::NodeFailed { node, .. }
            | Self::NodeRetried { node, .. }
            | Self::NodeSkipped { node, .. }
            | Self::NodeCancelled { node, .. }
            | Self::NodeDispatched { node, .. }
            | Self::InterruptRequested { node, .. }
            | Self::ApprovalRequested { node, .. }
            | Self::ClarificationRequested { node, .. }
            | Self::ApprovalReceived { node, .. }
            | Self::ClarificationResolved { node, .. }
            | Self::ApprovalQuestioned { node, .. }
            | Self::InterruptEscalated { node, .. }
            | Self::InterruptReminded { node, .. }
            | Self::DecisionDenied { node, .. }
            | Self::ConversationOpened { node, .. }
            | Self::ConversationExchanged { node, .. }
            | Self::ConversationClosed { node, .. }
            | Self::NodeSuspended { node, .. }
            | Self::InterruptResolved { node, .. }
            | Self::NodeResumed { node, .. }
            | Self::ArtifactCreated { node, .. }
            | Self::ModelCapabilityInsufficient { node, .. }
            | Self::LoopbackLimitReached { node, .. }
            | Self::MemoryWritten { node, .. }
            | Self::MemoryDeleted { node, .. }
            | Self::MemoryCompacted { node, .. }
            | Self::OrchestratorDecided { node, .. }
            | Self::ConfidenceEscalated { node, .. }
            | Self::FanOut { node, .. }
            | Self::FanIn { node, .. } => Some(node),
            Self::Agent(agent_event) => Some(&agent_event.node),
            Self::Handoff(handoff) => Some(&handoff.node),
            Self::VerificationRequested(request) => Some(&request.node),
            Self::ModelRetried(retry) => Some(&retry.node),
            Self::ModelAnswered(event) => Some(&event.node),
            Self::OutputChunk(event) => Some(&event.node),
            Self::Envelope(envelope) => Some(&envelope.node),
            Self::ReplayDivergedAtRefusal(event) => Some(&event.node),
            Self::VariableChanged { node, .. }
            | Self::ChannelWritten { node, .. }
            | Self::CapBreached { node, .. }
            | Self::LogAppended { node, .. } => node.as_ref(),
            Self::RunStarted { .. }
            | Self::RunPauseRequested { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::RunCancelRequested { .. }
            | Self::RunCompleted { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled { .. }
            | Self::ReplayDiverged { .. }
            | Self::ExternalEventReceived { .. }
            | Self::TriggerArmed { .. }
            | Self::Flow(_) => None,
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::RunCompleted { .. } | Self::RunFailed { .. } | Self::RunCancelled { .. }
        )
    }
}
