//! Folds events into a session. Never fails and never appends.

mod escalations;
mod flows;
mod responses;
mod turns;

use super::state::ChatSession;
use std::collections::{BTreeMap, VecDeque};
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
            start: Box::new(start),
            started_at: at,
            last_at: at,
            last_active_at: at,
            ended: None,
            message_count: 0,
            kv: BTreeMap::new(),
            memory: VecDeque::new(),
            last_turn: 0,
            turn: None,
            waiting: VecDeque::new(),
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
            queued: VecDeque::new(),
            pending_since: None,
            last_hitl: None,
            last_ack_at: None,
            tokens: 0,
            unsent: BTreeMap::new(),
            reports: VecDeque::new(),
            reporting: None,
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
            Body::ProfileChanged(change) => change.apply_to(&mut self.start.user),
            Body::KvChanged { key, value } => match value {
                Some(value) => drop(self.kv.insert(key.clone(), value.clone())),
                None => drop(self.kv.remove(key)),
            },
            Body::AuthorizationDecided(decision) => {
                if let Some(turn) = &mut self.turn
                    && decision.granted
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
            Body::FlowStarted { .. }
            | Body::FlowStartRefused { .. }
            | Body::FlowStartDeferred { .. }
            | Body::FlowStartWithdrawn { .. }
            | Body::FlowEffectStarted { .. }
            | Body::FlowEffectIgnored { .. }
            | Body::FlowPaused { .. }
            | Body::FlowResumed { .. }
            | Body::FlowHandoff { .. }
            | Body::FlowEnded { .. }
            | Body::FlowFailed { .. }
            | Body::FlowDiverged { .. }
            | Body::DivergenceSettled { .. }
            | Body::WorkflowFinishedEarly { .. } => self.fold_flow(event, at),
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
            | Body::EscalationResolved { .. }
            | Body::EscalationTimedOut { .. }
            | Body::EscalationCanceled { .. }
            | Body::EscalationDetached { .. } => {
                self.last_hitl = Some(recorded.seq);
                self.fold_question(event, at);
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
        self.memory.push_back(message);
        if self.memory.len() > MAX_MEMORY {
            self.memory.pop_front();
        }
    }
}
