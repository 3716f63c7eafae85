//! Folds events into a session. Never fails and never appends.

mod bridge;
mod desk_work;
mod escalations;
mod flows;
mod responses;
mod takeover;
mod turns;
mod workflow_questions;

use super::host_calls::key_bytes;
use super::own_sends::OwnSends;
use super::state::ChatSession;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tandem_record::conversation::{
    LedgerMessage, SessionEvent, SessionEventBody as Body, SessionStart,
};
use tandem_record::{Recorded, Seq, Timestamp};

/// Messages kept for the model, whatever the agent's setting. The setting decides how many of them
/// a call shows.
const MAX_MEMORY: usize = 1_000;

impl ChatSession {
    /// The session after its first event.
    pub(super) fn new(start: SessionStart, at: Timestamp) -> Self {
        Self {
            head: Seq(0),
            start: Arc::new(start),
            started_at: at,
            last_at: at,
            last_active_at: at,
            ended: None,
            message_count: 0,
            owes_fallback: false,
            kv: BTreeMap::new(),
            kv_bytes: 0,
            memory: VecDeque::new(),
            last_turn: 0,
            turn: None,
            aside: None,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            burst: None,
            mode: None,
            flow: None,
            diverged: BTreeMap::new(),
            deferred: VecDeque::new(),
            approval: None,
            drafts: BTreeMap::new(),
            flows_started: 0,
            escalations: BTreeMap::new(),
            attached: None,
            takeover: None,
            queued: VecDeque::new(),
            pending_since: None,
            last_hitl: None,
            last_ack_at: None,
            tokens: 0,
            media_bytes: 0,
            received_at: None,
            unsent: BTreeMap::new(),
            own_sends: OwnSends::default(),
            reports: VecDeque::new(),
            reporting: None,
            workflow_questions: Vec::new(),
            bridge: None,
        }
    }

    pub fn evolve(&mut self, recorded: &Recorded<SessionEvent>) {
        self.head = recorded.seq;
        self.last_at = recorded.at;
        let mode_before = self.hitl_mode();
        self.apply(recorded);
        match (mode_before, self.hitl_mode()) {
            (before, after) if before == after => {}
            (_, Some(_)) => self.pending_since = Some(recorded.at),
            (_, None) => self.pending_since = None,
        }
    }

    fn apply(&mut self, recorded: &Recorded<SessionEvent>) {
        let (at, event) = (recorded.at, &recorded.event);
        match &event.body {
            Body::SessionStarted(start) => *self = Self::new((**start).clone(), at),
            Body::SessionEndRequested { reason } => {
                if let Some(turn) = &mut self.turn {
                    turn.ends_session = Some(*reason);
                }
            }
            Body::SessionEnded { reason } => self.ended = Some((at, *reason)),
            Body::ModeChanged { mode } => self.mode = Some(*mode),
            Body::ProfileChanged(change) => {
                change.apply_to(&mut Arc::make_mut(&mut self.start).user)
            }
            Body::KvChanged { key, value } => {
                let replaced = match value {
                    Some(value) => {
                        self.kv_bytes += key_bytes(key, value);
                        self.kv.insert(key.clone(), value.clone())
                    }
                    None => self.kv.remove(key),
                };
                let freed = replaced.map_or(0, |old| key_bytes(key, &old));
                self.kv_bytes = self.kv_bytes.saturating_sub(freed);
            }
            Body::AuthorizationDecided(decision) => {
                // A turn that waits for work is not what was decided about.
                if let Some(turn) = &mut self.turn
                    && turn.is_command()
                    && decision.granted
                    && turn.pending.is_none()
                {
                    turn.actor.clone_from(&decision.actor);
                }
            }
            Body::MessageReceived { .. }
            | Body::BurstClosed
            | Body::MessageTranscribed { .. }
            | Body::TurnStarted { .. }
            | Body::TurnQueued { .. }
            | Body::TurnDropped { .. }
            | Body::TurnEnded(_)
            | Body::WorkRequested(_)
            | Body::WorkFinished { .. }
            | Body::CommandHandled { .. }
            | Body::HookDecided { .. }
            | Body::ModelAnswered { .. }
            | Body::ModelFailed { .. }
            | Body::ToolAnswered { .. }
            | Body::RouterDecided { .. }
            | Body::PendingMessage { .. }
            | Body::QueueConsumed { .. } => self.fold_turn(recorded),
            Body::ScheduleScopeDenied { .. } => {}
            Body::FlowStarted { .. }
            | Body::FlowStartRefused { .. }
            | Body::FlowStartDeferred { .. }
            | Body::FlowStartWithdrawn { .. }
            | Body::FlowEffectStarted { .. }
            | Body::FlowEffectIgnored { .. }
            | Body::FlowNondeterministic { .. }
            | Body::FlowPaused { .. }
            | Body::FlowResumed { .. }
            | Body::FlowHandoff { .. }
            | Body::FlowEnded { .. }
            | Body::FlowFailed { .. }
            | Body::FlowDiverged { .. }
            | Body::DivergenceSettled { .. }
            | Body::WorkflowFinishedEarly { .. } => self.fold_flow(event, at),
            Body::WorkflowQuestionOpened { .. }
            | Body::WorkflowQuestionAnswered { .. }
            | Body::WorkflowAnswerRefused { .. }
            | Body::WorkflowQuestionClosed { .. } => self.fold_workflow_question(&event.body),
            Body::InterruptPaused { .. }
            | Body::InterruptResumed { .. }
            | Body::InterruptLate { .. }
            | Body::ConfirmRequested { .. }
            | Body::ConfirmResolved { .. }
            | Body::ConfirmTimedOut { .. }
            | Body::ConfirmUnrecognized { .. }
            | Body::ReminderSent { .. }
            | Body::ApprovalRequested(_)
            | Body::ApprovalDecided { .. }
            | Body::EscalationCreated(_)
            | Body::EscalationVoted { .. }
            | Body::EscalationClaimed { .. }
            | Body::EscalationReleased { .. }
            | Body::EscalationAssigned { .. }
            | Body::EscalationResolved { .. }
            | Body::EscalationTimedOut { .. }
            | Body::EscalationCanceled { .. }
            | Body::EscalationDetached { .. } => {
                self.last_hitl = Some(recorded.seq);
                self.fold_question(event, at);
            }
            Body::LiveTakeoverStarted { .. }
            | Body::LiveTakeoverMessage { .. }
            | Body::LiveTakeoverForwarded(_)
            | Body::LiveTakeoverEnded(_)
            | Body::ExternalReplyRecorded { .. } => {
                self.last_hitl = Some(recorded.seq);
                self.fold_takeover(event, at);
            }
            Body::ProxyStarted { .. }
            | Body::ProxyInputReceived { .. }
            | Body::ProxyInputTaken { .. }
            | Body::ProxyForwarded { .. }
            | Body::ProxyTimedOut { .. }
            | Body::ProxyStopped { .. } => {
                self.last_hitl = Some(recorded.seq);
                self.fold_bridge(event);
            }
            Body::DraftHeld { .. }
            | Body::DraftDecided { .. }
            | Body::ResponsePrepared { .. }
            | Body::ResponseQueued { .. }
            | Body::ResponseCanceled { .. }
            | Body::ResponseSuppressed { .. }
            | Body::ResponseSent { .. }
            | Body::ResponsePersisted { .. }
            | Body::ResponseFailed { .. }
            | Body::SendFailed { .. }
            | Body::ReportQueued { .. } => self.fold_response(event, at),
        }
    }

    fn remember(&mut self, message: LedgerMessage) {
        self.memory.push_back(Arc::new(message));
        if self.memory.len() > MAX_MEMORY {
            self.memory.pop_front();
        }
    }
}
