//! Turns that a schedule begins: whether they may take place, the flow they start, and what their schedule is told.
//!
//! A scheduled turn disturbs nothing: it does not begin while a person's decision is open, and never answers a
//! question. It is judged when its turn comes, in the commit that would begin it.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::turn::Next;
use super::turn_state::Turn;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AgentMode, FlowOrigin, FlowStartRequest, ScheduledActiveFlow, ScheduledOutcome, ScheduledTurn,
    ScheduledTurnReport, SessionEventBody as Body, SessionReply, SessionWork, TurnCause,
    TurnOutcome,
};
use tandem_record::{EffectId, MessageId};

const FLOW_ACTIVE: &str = "flow_active";
const OPTED_OUT: &str = "opted_out";
const AGENT_OFF: &str = "agent_off";
const HITL_ACTIVE: &str = "hitl_active";
const POLICY_END: &str = "policy_end";

/// How a turn ends that does not take place.
type Refused = (ScheduledOutcome, &'static str);

impl Draft<'_> {
    /// Accepts a scheduled turn, once, and begins it if nothing else is under way.
    pub(super) fn accept_scheduled(
        &mut self,
        turn: &ScheduledTurn,
    ) -> Result<SessionReply, SessionRefusal> {
        self.admit_message()?;
        if let Some(number) = self.session.turn_of_message(&turn.dedup_id) {
            return Ok(SessionReply::Accepted { turn: number });
        }
        self.emit(Body::TurnQueued {
            cause: TurnCause::Scheduled(Box::new(turn.clone())),
        });
        let turn = self.session.last_turn;
        self.begin_only_turn();
        Ok(SessionReply::Accepted { turn })
    }

    /// Why a scheduled turn may not take place now.
    fn scheduled_refusal(&self, turn: &ScheduledTurn) -> Option<Refused> {
        let session = &self.session;
        let consent = session.start.user.consent;
        if consent.is_some_and(|consent| !consent.proactive) {
            return Some((ScheduledOutcome::Skipped, OPTED_OUT));
        }
        if session.hitl_mode().is_some() {
            return Some((ScheduledOutcome::CanceledHitl, HITL_ACTIVE));
        }
        if self.agent_mode() == AgentMode::Off {
            return Some((ScheduledOutcome::Skipped, AGENT_OFF));
        }
        let may_end = session.flow.is_some() && session.waits_for_nobody_else();
        let preempts = turn.on_active_flow == ScheduledActiveFlow::Preempt && may_end;
        let is_busy = session.flow.is_some() && !preempts;
        is_busy.then_some((ScheduledOutcome::Skipped, FLOW_ACTIVE))
    }

    /// Drops the scheduled turn that is next where it may not take place, and tells its schedule. Whether it did.
    pub(super) fn drop_refused_turn(&mut self) -> bool {
        let Some(waiting) = self.session.waiting.front() else {
            return false;
        };
        let (number, cause) = (waiting.number, &waiting.cause);
        let Some(turn) = cause.scheduled().cloned() else {
            return false;
        };
        let Some((outcome, reason)) = self.scheduled_refusal(&turn) else {
            return false;
        };
        self.drop_scheduled(number, &turn, outcome, reason);
        true
    }

    fn drop_scheduled(
        &mut self,
        number: u64,
        turn: &ScheduledTurn,
        outcome: ScheduledOutcome,
        reason: &str,
    ) {
        self.emit(Body::TurnDropped {
            number,
            message_ids: vec![turn.dedup_id.clone()],
            reason: reason.to_owned(),
        });
        self.report_scheduled(number, turn, outcome, Some(reason.to_owned()));
    }

    /// Scheduled turns that waited when the session ended: their schedules are told.
    pub(super) fn report_dropped_turns(&mut self, reason: &str) {
        let waiting = self.session.waiting.iter();
        let scheduled = waiting.filter_map(|waiting| {
            let turn = waiting.cause.scheduled()?;
            Some((waiting.number, turn.clone()))
        });
        for (number, turn) in scheduled.collect::<Vec<_>>() {
            let reason = Some(reason.to_owned());
            self.report_scheduled(number, &turn, ScheduledOutcome::Skipped, reason);
        }
    }

    fn report_scheduled(
        &mut self,
        number: u64,
        turn: &ScheduledTurn,
        outcome: ScheduledOutcome,
        reason: Option<String>,
    ) {
        let start = &self.session.start;
        let report = ScheduledTurnReport {
            schedule_id: turn.schedule_id.clone(),
            run_id: turn.run_id.clone(),
            ordinal: turn.ordinal,
            user_external_id: start.user.external_user_id.clone(),
            session_id: start.session_id.clone(),
            turn: number,
            outcome,
            reason,
        };
        let id = format!("{}:turn:{number}:schedule", self.session.id());
        self.add_work(
            EffectId::from(id),
            SessionWork::ReportSchedule(Box::new(report)),
        );
    }

    /// What the schedule of the turn under way is told when the turn ends like this.
    pub(super) fn outcome_for_schedule(&self, body: &Body) -> Option<EndedScheduledTurn> {
        let Body::TurnEnded(outcome) = body else {
            return None;
        };
        let turn = self.session.turn.as_ref()?;
        let scheduled = turn.cause.scheduled()?.clone();
        let (outcome, reason) = match (&turn.scheduled_result, outcome) {
            (Some(result), _) => result.clone(),
            (None, TurnOutcome::Processed) => (ScheduledOutcome::Success, None),
            (None, TurnOutcome::EndedByPolicy { .. }) => {
                (ScheduledOutcome::Skipped, Some(POLICY_END.to_owned()))
            }
            (None, TurnOutcome::Canceled { reason }) => (canceled(reason), Some(reason.clone())),
            (None, TurnOutcome::Failed { reason }) => {
                (ScheduledOutcome::Failed, Some(reason.clone()))
            }
            (None, TurnOutcome::Interrupted) => (ScheduledOutcome::Failed, None),
        };
        Some(EndedScheduledTurn {
            number: turn.number,
            turn: scheduled,
            outcome,
            reason,
        })
    }

    pub(super) fn report_ended(&mut self, ended: EndedScheduledTurn) {
        self.report_scheduled(ended.number, &ended.turn, ended.outcome, ended.reason);
    }

    /// The flow that the schedule names, once the hook had its say. What has changed meanwhile counts.
    pub(super) fn start_scheduled_flow(&mut self, turn: &ScheduledTurn) -> Next {
        if let Some(next) = self.leave_scheduled_turn(turn) {
            return next;
        }
        if !self.cx.agent.flows.contains_key(turn.flow_id.as_str()) {
            return failed("unknown_flow");
        }
        // A start that is refused ends nothing.
        if self
            .check_flow_input(&turn.flow_id, turn.input.as_ref())
            .is_ok()
            && self.session.flow.is_some()
        {
            self.end_flow(Some("preempted"), true);
        }
        let started = self.start_flow_as(FlowStartRequest {
            flow: turn.flow_id.clone(),
            input: turn.input.clone(),
            origin: FlowOrigin::Schedule,
            parent: None,
            attempt: 1,
            preempts: false,
        });
        started.unwrap_or_else(|| failed("invalid_input"))
    }

    /// Ends the turn where something came up since it began.
    pub(super) fn leave_scheduled_turn(&mut self, turn: &ScheduledTurn) -> Option<Next> {
        let (_, reason) = self.scheduled_refusal(turn)?;
        Some(Next::Finish(TurnOutcome::Canceled {
            reason: reason.to_owned(),
        }))
    }
}

/// A scheduled turn that is over.
pub(super) struct EndedScheduledTurn {
    number: u64,
    turn: ScheduledTurn,
    outcome: ScheduledOutcome,
    reason: Option<String>,
}

fn failed(reason: &str) -> Next {
    Next::Finish(TurnOutcome::Failed {
        reason: reason.to_owned(),
    })
}

fn canceled(reason: &str) -> ScheduledOutcome {
    match reason {
        HITL_ACTIVE => ScheduledOutcome::CanceledHitl,
        FLOW_ACTIVE | OPTED_OUT | AGENT_OFF => ScheduledOutcome::Skipped,
        _ => ScheduledOutcome::Failed,
    }
}

impl Turn {
    /// The schedule of the turn as code sees it.
    pub(super) fn schedule_data(&self, user_external_id: &str) -> Option<Value> {
        let turn = self.cause.scheduled()?;
        let mut data = reference_data(turn, user_external_id);
        data["flowId"] = json!(turn.flow_id);
        if let Some(metadata) = &turn.metadata {
            data["metadata"] = json!(metadata);
        }
        Some(data)
    }

    /// The id that lets a scheduled turn take place once.
    pub fn dedup_id(&self) -> Option<&MessageId> {
        Some(&self.cause.scheduled()?.dedup_id)
    }
}

fn reference_data(turn: &ScheduledTurn, user_external_id: &str) -> Value {
    let mut data = json!(turn.reference(user_external_id));
    data["scheduledFor"] = json!(turn.scheduled_for.rfc3339());
    data
}
