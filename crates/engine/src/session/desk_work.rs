//! Whose work an escalation is: claiming, releasing and assigning it. One claim wins.
//!
//! An agent may say that a claim stops the time of the escalation. Then neither its own deadline nor that of the flow's
//! wait for it passes while the assignee works on it. When somebody else gets it, or nobody, both go on with the rest.

use super::decide::SessionRefusal;
use super::draft::Draft;
use super::state::ChatSession;
use tandem_record::EscalationId;
use tandem_record::conversation::{
    DeskAction, EscalationHolder, EscalationMode, EscalationRecord, FlowPause, FlowRecord,
    RestartedTimeout, SessionEventBody as Body, SessionReply, StoppedTimeout,
};

impl Draft<'_> {
    /// The right to decide an escalation is the right to do these. Doing one again changes nothing.
    pub(super) fn do_desk_work(
        &mut self,
        id: &EscalationId,
        action: &DeskAction,
    ) -> Result<SessionReply, SessionRefusal> {
        let known = self.session.escalations.get(id).cloned();
        let escalation = known.ok_or(SessionRefusal::EscalationNotFound)?;
        if !escalation.is_open() {
            return Err(self.closed_refusal(&escalation));
        }
        match action {
            DeskAction::Claim => self.claim_escalation(&escalation)?,
            DeskAction::Release => self.release_escalation(&escalation),
            DeskAction::Assign { to } => self.assign_escalation(&escalation, to)?,
        }
        Ok(self.escalation_reply(id))
    }

    fn claim_escalation(&mut self, escalation: &EscalationRecord) -> Result<(), SessionRefusal> {
        let by = self.actor_id();
        may_decide(escalation, &by)?;
        match &escalation.assignee {
            Some(assignee) if *assignee != by => {
                let holder = EscalationHolder {
                    assignee: assignee.clone(),
                    claimed_at: escalation.claimed_at,
                };
                return Err(SessionRefusal::EscalationClaimed(Box::new(holder)));
            }
            Some(_) if escalation.claimed_at.is_some() => return Ok(()),
            _ => {}
        }
        self.record_claim(escalation, by);
        Ok(())
    }

    /// The escalation is the work of this actor from now on.
    pub(super) fn record_claim(&mut self, escalation: &EscalationRecord, by: String) {
        // Nothing but its longest time ends a takeover that somebody forgets.
        let is_bounded =
            escalation.mode == EscalationMode::LiveTakeover && escalation.flow_run_id.is_none();
        let stops = self.cx.agent.hitl.escalation.claim_stops_timeout && !is_bounded;
        let stopped = stops.then(|| StoppedTimeout {
            left_ms: escalation
                .deadline
                .map(|deadline| self.time_until(escalation.mode, deadline)),
        });
        self.emit(Body::EscalationClaimed {
            escalation_id: escalation.id.clone(),
            by,
            stopped,
            wait_left_ms: stopped.and_then(|_| self.own_wait_left(escalation)),
        });
        self.record_changed_pause(escalation, stopped.is_some());
    }

    fn release_escalation(&mut self, escalation: &EscalationRecord) {
        if escalation.assignee.is_none() {
            return;
        }
        let restarted = self.restarted(escalation);
        self.emit(Body::EscalationReleased {
            escalation_id: escalation.id.clone(),
            restarted,
        });
        self.record_changed_pause(escalation, restarted.is_some());
    }

    fn assign_escalation(
        &mut self,
        escalation: &EscalationRecord,
        to: &str,
    ) -> Result<(), SessionRefusal> {
        may_decide(escalation, to)?;
        if escalation.assignee.as_deref() == Some(to) {
            return Ok(());
        }
        let restarted = self.restarted(escalation);
        self.emit(Body::EscalationAssigned {
            escalation_id: escalation.id.clone(),
            assignee: to.to_owned(),
            restarted,
        });
        self.record_changed_pause(escalation, restarted.is_some());
        Ok(())
    }

    /// What is left of the wait's own time. A wait that ends with the escalation has none of its own.
    fn own_wait_left(&self, escalation: &EscalationRecord) -> Option<u64> {
        let deadline = self.session.wait_of(&escalation.id)?.deadline()?;
        (Some(deadline) != escalation.deadline).then(|| deadline.ms_since(self.now))
    }

    /// The deadlines from now on, where a claim had stopped them.
    fn restarted(&self, escalation: &EscalationRecord) -> Option<RestartedTimeout> {
        let stopped = escalation.stopped?;
        let deadline = stopped
            .left_ms
            .map(|left| self.escalation_deadline(escalation.mode, left));
        let wait = self.session.wait_of(&escalation.id);
        let own = match wait {
            Some(FlowPause::Wait { left_ms, .. }) => left_ms.map(|left| self.now.plus_ms(left)),
            _ => None,
        };
        Some(RestartedTimeout {
            deadline,
            wait_deadline: wait.and_then(|_| [own, deadline].into_iter().flatten().min()),
        })
    }

    /// Tells the run of the flow that the deadline of its question is another one now.
    fn record_changed_pause(&mut self, escalation: &EscalationRecord, is_changed: bool) {
        let pause = self.session.wait_of(&escalation.id).cloned();
        let flow = self.session.flow.as_ref().filter(|_| is_changed);
        if let (Some(pause), Some(flow)) = (pause, flow) {
            let question = flow.current.clone().unwrap_or_default();
            let run = flow.run.clone();
            self.record(&run, FlowRecord::Paused { pause, question });
        }
    }
}

impl ChatSession {
    /// The wait of the active flow for this escalation.
    pub(super) fn wait_of(&self, id: &EscalationId) -> Option<&FlowPause> {
        let pause = self.flow.as_ref()?.pause.as_ref();
        pause.filter(|pause| pause.escalation_id() == Some(id))
    }
}

fn may_decide(escalation: &EscalationRecord, actor: &str) -> Result<(), SessionRefusal> {
    let approvers = &escalation.approvers;
    match approvers.is_empty() || approvers.iter().any(|approver| approver == actor) {
        true => Ok(()),
        false => Err(SessionRefusal::NotAnApprover),
    }
}
