//! Texts on their way to the user: candidate, hook, outbox, delivery, report.

use super::draft::Draft;
use super::hook_decision::BeforeResponse;
use super::takeover::SILENCED;
use super::turn::Next;
use super::turn_state::Turn;
use crate::agent::HookFailurePolicy;
use serde_json::{Value, json};
use tandem_record::EffectId;
use tandem_record::conversation::{
    AgentMode, Author, Candidate, CandidateOrigin, CodeCall, CodeError, CodeOutcome, HookStage,
    LedgerMessage, MessageRole, Modality, ProxyInputSource, ResponseSource, SendRequest,
    SentMessage, SessionEventBody as Body, SessionWork, TurnCause, WINDOW_CLOSED, WorkPurpose,
};

impl Draft<'_> {
    /// Makes a candidate of a text and sends it, or lets the hook decide first.
    pub(super) fn respond(
        &mut self,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Next {
        let candidate = self.prepare(text, origin, structured);
        self.pass_on(candidate)
    }

    /// Makes a candidate of a text; `None` without a text.
    pub(super) fn prepare(
        &mut self,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Option<(Candidate, ResponseSource)> {
        self.prepare_from(self.source_of(origin), text, origin, structured)
    }

    /// Texts of a waiting flow are the flow's, also those that do not resume it.
    fn source_of(&self, origin: CandidateOrigin) -> ResponseSource {
        let turn = self.turn();
        let is_of_question = matches!(
            origin,
            CandidateOrigin::Ask
                | CandidateOrigin::Confirm
                | CandidateOrigin::TimeoutText
                | CandidateOrigin::Ack
        );
        match turn.source {
            ResponseSource::Classic if is_of_question && self.session.flow.is_some() => {
                ResponseSource::Flow
            }
            // No model was asked.
            ResponseSource::Classic if origin == CandidateOrigin::Ack && turn.steps == 0 => {
                ResponseSource::ShortCircuit
            }
            source => source,
        }
    }

    pub(super) fn respond_from(
        &mut self,
        source: ResponseSource,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Next {
        let candidate = self.prepare_from(source, text, origin, structured);
        self.pass_on(candidate)
    }

    fn prepare_from(
        &mut self,
        source: ResponseSource,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Option<(Candidate, ResponseSource)> {
        if text.trim().is_empty() {
            return None;
        }
        let candidate = Candidate {
            index: self.turn().candidates,
            text: text.to_owned(),
            origin,
            modality: self.modality_of(origin, structured.as_ref()),
            structured,
        };
        self.emit(Body::ResponsePrepared {
            candidate: candidate.clone(),
            source,
        });
        Some((candidate, source))
    }

    /// Sends a candidate, or lets the hook decide first.
    pub(super) fn pass_on(&mut self, prepared: Option<(Candidate, ResponseSource)>) -> Next {
        let Some((candidate, source)) = prepared else {
            return Next::DONE;
        };
        let origin = candidate.origin;
        if self.is_silenced(origin) {
            self.suppress(SILENCED);
            return Next::DONE;
        }
        if !self.cx.agent.hooks.before_response || !origin.passes_before_response() {
            self.release(candidate);
            return Next::DONE;
        }
        let input = self.candidate_input(&candidate, source);
        let call = CodeCall {
            path: HookStage::BeforeResponse.as_str().to_owned(),
            args: vec![input],
            timeout_ms: self.cx.agent.timeouts.hook_ms,
        };
        let purpose = WorkPurpose::Candidate { candidate };
        self.request(purpose, SessionWork::Code(call));
        Next::Wait
    }

    fn candidate_input(&self, candidate: &Candidate, source: ResponseSource) -> Value {
        let turn = self.turn();
        let mut input = json!({
            "requestId": self.session.request_id(turn.number),
            "turnId": self.session.turn_id(turn.number),
            "candidate": {
                "text": candidate.text,
                "modality": candidate.modality,
                "index": candidate.index,
                "origin": candidate.origin,
            },
            "source": source,
            "hitlState": self.session.hitl_state().unwrap_or("none"),
        });
        if let Some(structured) = &candidate.structured {
            input["candidate"]["structured"] = structured.clone();
        }
        if let Some(flow) = &turn.flow_id {
            input["flowId"] = json!(flow);
        }
        if let Some(escalation) = self.session.shown_escalation() {
            input["escalationId"] = json!(escalation.id);
        }
        if let Some(schedule) = turn.schedule_data(&self.session.start.user.external_user_id) {
            input["schedule"] = schedule;
        }
        input
    }

    /// The hook decided about a candidate; the turn goes on where it made the candidate.
    pub(super) fn decide_candidate(
        &mut self,
        mut candidate: Candidate,
        done: &CodeOutcome,
    ) -> Next {
        let read = match &done.error {
            Some(error) => Err(error.message.clone()),
            None => BeforeResponse::read(done.value.as_ref()),
        };
        let decision = read.unwrap_or_else(|reason| {
            self.report_hook_failure(HookStage::BeforeResponse, &reason);
            match self.cx.agent.hooks.before_response_on_error {
                HookFailurePolicy::Continue => BeforeResponse::Continue,
                HookFailurePolicy::Cancel => BeforeResponse::Cancel {
                    reason: Some("hook_failed".to_owned()),
                },
            }
        });
        self.emit(Body::HookDecided {
            stage: HookStage::BeforeResponse,
            decision: decision.to_json(),
        });
        let origin = candidate.origin;
        match decision {
            BeforeResponse::Continue => self.release(candidate),
            BeforeResponse::Cancel { reason } => {
                let index = candidate.index;
                self.emit(Body::ResponseCanceled { index, reason });
            }
            BeforeResponse::Replace {
                reply,
                modality,
                structured,
            } => {
                candidate.text = reply;
                candidate.modality = modality.unwrap_or(candidate.modality);
                candidate.structured = structured.or(candidate.structured);
                self.release(candidate);
            }
        }
        self.after_candidate(origin)
    }

    /// Where the turn goes on after a candidate that the hook looked at.
    fn after_candidate(&mut self, origin: CandidateOrigin) -> Next {
        let is_driving = self
            .session
            .flow
            .as_ref()
            .is_some_and(|flow| !flow.is_paused());
        match origin {
            CandidateOrigin::Say if is_driving => {
                self.resume_flow(super::program::Resume::Value(None))
            }
            // The acknowledgement of an escalation that the flow opened.
            CandidateOrigin::Ack if is_driving => {
                let result = self.escalate_result();
                self.resume_flow(super::program::Resume::Value(result))
            }
            CandidateOrigin::TimeoutText => self.go_on_after_timeout_text(),
            _ => Next::DONE,
        }
    }

    /// Sends a text of the agent, or holds it back as the mode of the session says.
    fn release(&mut self, candidate: Candidate) {
        if candidate.text.trim().is_empty() {
            let index = candidate.index;
            let reason = Some("empty".to_owned());
            self.emit(Body::ResponseCanceled { index, reason });
            return;
        }
        if self.is_silenced(candidate.origin) {
            return self.suppress(SILENCED);
        }
        match self.agent_mode() {
            AgentMode::Auto => {
                let to = self.session.start.address.clone();
                self.queue_text(&to, candidate, None);
            }
            AgentMode::DraftOnly => self.hold_draft(candidate),
            AgentMode::Off => self.suppress("agent_off"),
        }
    }

    fn suppress(&mut self, reason: &str) {
        self.emit(Body::ResponseSuppressed {
            effect_id: None,
            reason: reason.to_owned(),
        });
    }

    /// Sends a text beside the response: no hook, not remembered by the model.
    pub(super) fn send_side_message(&mut self, to: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.is_side_message_silenced() {
            return self.suppress(SILENCED);
        }
        let candidate = plain(text, CandidateOrigin::Side);
        let is_command = self.session.turn.as_ref().is_some_and(Turn::is_command);
        match self.agent_mode() {
            // Nobody decides about drafts of a session that has ended.
            AgentMode::DraftOnly if self.session.ended.is_some() => self.suppress("session_ended"),
            AgentMode::Off if !is_command => self.suppress("agent_off"),
            AgentMode::DraftOnly if !is_command && to == self.session.start.address => {
                self.hold_draft(candidate);
            }
            _ => self.queue_text(to, candidate, None),
        }
    }

    /// Answers a command, to whoever wrote it.
    pub(super) fn answer_command(&mut self, text: &str) -> Next {
        let to = self.caller().1;
        self.queue_text(&to, plain(text, CandidateOrigin::Command), None);
        Next::DONE
    }

    fn user_address(&self) -> (String, String) {
        let start = &self.session.start;
        (start.transport.clone(), start.address.clone())
    }

    /// The transport and the address of whoever the turn answers.
    pub(super) fn caller(&self) -> (String, String) {
        let turn = self.session.turn.as_ref();
        match turn.map(|turn| &turn.cause) {
            Some(TurnCause::AdminCommand {
                message, transport, ..
            }) => (transport.clone(), message.from.clone()),
            Some(TurnCause::ProxyInput { input, .. }) => match &input.source {
                ProxyInputSource::Desk { transport, address } => {
                    (transport.clone(), address.clone())
                }
                ProxyInputSource::Actor(_) => self.user_address(),
            },
            _ => self.user_address(),
        }
    }

    /// Puts a text into the outbox and the ledger.
    pub(super) fn queue_text(&mut self, to: &str, candidate: Candidate, author: Option<Author>) {
        let next = self.session.next_seq();
        let effect_id = EffectId::from(format!("{}:{next}", self.session.id()));
        let (transport, caller) = self.caller();
        let transport = match to == caller {
            true => transport,
            false => self.session.start.transport.clone(),
        };
        let request = SendRequest {
            transport,
            to: to.to_owned(),
            text: candidate.text.clone(),
            modality: candidate.modality,
            attempts: 0,
            origin: Some(candidate.origin),
            sent_parts: Vec::new(),
        };
        self.add_work(effect_id.clone(), SessionWork::Send(request));
        let message = LedgerMessage {
            id: effect_id.to_string(),
            role: MessageRole::Assistant,
            text: candidate.text.clone(),
            author,
            at: self.now,
        };
        self.emit(Body::ResponseQueued {
            effect_id,
            to: to.to_owned(),
            message,
            remembered: candidate.origin.enters_working_memory(),
            candidate,
            transport: None,
        });
    }

    /// A person took over before the text was sent.
    pub(super) fn withhold_text(&mut self, effect: &EffectId) {
        let text = self.session.unsent.get(effect);
        let Some(text) = text.filter(|text| text.is_withheld).cloned() else {
            return;
        };
        self.delivered = Some(text);
        self.emit(Body::ResponseSuppressed {
            effect_id: Some(effect.clone()),
            reason: SILENCED.to_owned(),
        });
        self.delivered = None;
        self.start_report();
    }

    /// The transport took a text, or it was given up.
    pub(super) fn finish_send(
        &mut self,
        effect: &EffectId,
        result: &Result<SentMessage, CodeError>,
    ) {
        let Some(text) = self.session.unsent.get(effect) else {
            return;
        };
        self.delivered = Some(text.clone());
        let effect_id = effect.clone();
        match result {
            Ok(sent) => {
                if let Some(reason) = &sent.speech_error {
                    self.report_failure("speech", reason);
                }
                self.emit(Body::ResponseSent {
                    effect_id: effect_id.clone(),
                    provider_message_id: sent.provider_message_id.clone(),
                    further_ids: sent.further_ids.clone(),
                    speech: sent.speech.clone(),
                    template: sent.template.clone(),
                });
                self.emit(Body::ResponsePersisted { effect_id });
            }
            Err(error) => {
                let reason = match error.code.as_str() {
                    WINDOW_CLOSED => WINDOW_CLOSED,
                    _ => &error.message,
                };
                self.emit(Body::SendFailed {
                    effect_id,
                    reason: reason.to_owned(),
                });
                self.report_failure("send", reason);
            }
        }
        self.delivered = None;
        self.start_report();
    }

    /// Starts the next report whose texts are final. Reports are made one at a time, in turn order.
    pub(super) fn start_report(&mut self) {
        if self.session.reporting.is_some() {
            return;
        }
        let Some(report) = self.session.reports.front().cloned() else {
            return;
        };
        if self
            .session
            .unsent
            .values()
            .any(|text| text.turn == report.turn)
        {
            return;
        }
        let purpose = WorkPurpose::Report { turn: report.turn };
        self.request(purpose, SessionWork::Code(report.call));
    }

    pub(super) fn finish_report(&mut self, effect: &EffectId, done: &CodeOutcome) {
        let report = self.session.reporting.as_ref();
        self.delivered = report.map(|started| started.report.subject());
        self.emit(Body::WorkFinished {
            effect_id: effect.clone(),
        });
        if let Some(error) = &done.error {
            self.report_hook_failure(HookStage::OnResponse, &error.message);
        }
        self.delivered = None;
        self.apply_code(done);
        self.start_report();
    }
}

/// A text that no hook looks at.
pub(super) fn plain(text: &str, origin: CandidateOrigin) -> Candidate {
    Candidate {
        index: 0,
        text: text.to_owned(),
        origin,
        modality: Modality::Text,
        structured: None,
    }
}
