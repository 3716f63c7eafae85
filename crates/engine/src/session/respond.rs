//! Texts on their way to the user: candidate, hook, outbox, delivery, report.

use super::draft::Draft;
use super::hook_decision::BeforeResponse;
use super::turn::Next;
use crate::agent::HookFailurePolicy;
use serde_json::{Value, json};
use tandem_record::EffectId;
use tandem_record::conversation::{
    Candidate, CandidateOrigin, CodeCall, CodeError, CodeOutcome, HookStage, LedgerMessage,
    MessageRole, ResponseSource, SendRequest, SessionEventBody as Body, SessionWork, WorkPurpose,
};

impl Draft<'_> {
    /// Makes a candidate of a text and sends it, or lets the hook decide first.
    pub(super) fn respond(
        &mut self,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Next {
        let source = self.turn().source;
        self.respond_from(source, text, origin, structured)
    }

    pub(super) fn respond_from(
        &mut self,
        source: ResponseSource,
        text: &str,
        origin: CandidateOrigin,
        structured: Option<Value>,
    ) -> Next {
        if text.trim().is_empty() {
            return Next::DONE;
        }
        let candidate = Candidate {
            index: self.turn().candidates,
            text: text.to_owned(),
            origin,
            structured,
        };
        self.emit(Body::ResponsePrepared {
            candidate: candidate.clone(),
            source,
        });
        if !self.cx.agent.hooks.before_response || !origin.passes_before_response() {
            self.queue_text(candidate);
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
                "modality": "text",
                "index": candidate.index,
                "origin": candidate.origin,
            },
            "source": source,
            "hitlState": self.session.hitl_mode().unwrap_or("none"),
        });
        if let Some(structured) = &candidate.structured {
            input["candidate"]["structured"] = structured.clone();
        }
        if let Some(flow) = &turn.flow_id {
            input["flowId"] = json!(flow);
        }
        if let Some(escalation) = self.session.attached_escalation() {
            input["escalationId"] = json!(escalation.id);
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
        match decision {
            BeforeResponse::Continue => self.queue_text(candidate.clone()),
            BeforeResponse::Cancel { reason } => {
                let index = candidate.index;
                self.emit(Body::ResponseCanceled { index, reason });
            }
            BeforeResponse::Replace { reply, structured } => {
                candidate.text = reply;
                candidate.structured = structured.or(candidate.structured);
                self.queue_text(candidate.clone());
            }
        }
        self.after_candidate(candidate.origin)
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
            CandidateOrigin::TimeoutText if is_driving => Next::Wait,
            _ => Next::DONE,
        }
    }

    /// Puts a text into the outbox and the ledger.
    fn queue_text(&mut self, candidate: Candidate) {
        let to = self.session.start.address.clone();
        self.queue_text_to(&to, candidate);
    }

    /// Sends a text beside the response: no hook, not remembered by the model.
    pub(super) fn send_side_message(&mut self, to: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let candidate = Candidate {
            index: 0,
            text: text.to_owned(),
            origin: CandidateOrigin::Side,
            structured: None,
        };
        self.queue_text_to(to, candidate);
    }

    /// Answers a command.
    pub(super) fn answer_command(&mut self, text: &str) -> Next {
        let candidate = Candidate {
            index: 0,
            text: text.to_owned(),
            origin: CandidateOrigin::Command,
            structured: None,
        };
        self.queue_text(candidate);
        Next::DONE
    }

    fn queue_text_to(&mut self, to: &str, candidate: Candidate) {
        let next = self.session.next_seq();
        let effect_id = EffectId::from(format!("{}:{next}", self.session.id()));
        let request = SendRequest {
            transport: self.session.start.transport.clone(),
            to: to.to_owned(),
            text: candidate.text.clone(),
            attempts: 0,
        };
        self.add_work(effect_id.clone(), SessionWork::Send(request));
        let message = LedgerMessage {
            id: effect_id.to_string(),
            role: MessageRole::Assistant,
            text: candidate.text.clone(),
            author: None,
            at: self.now,
        };
        self.emit(Body::ResponseQueued {
            effect_id,
            to: to.to_owned(),
            message,
            remembered: candidate.origin.enters_working_memory(),
            candidate,
        });
    }

    /// The transport took a text, or it was given up.
    pub(super) fn finish_send(
        &mut self,
        effect: &EffectId,
        result: &Result<Option<String>, CodeError>,
    ) {
        let Some(turn) = self.session.unsent.get(effect) else {
            return;
        };
        self.delivered_turn = Some(*turn);
        let effect_id = effect.clone();
        match result {
            Ok(provider_message_id) => {
                self.emit(Body::ResponseSent {
                    effect_id: effect_id.clone(),
                    provider_message_id: provider_message_id.clone(),
                });
                self.emit(Body::ResponsePersisted { effect_id });
            }
            Err(error) => {
                self.emit(Body::SendFailed {
                    effect_id,
                    reason: error.message.clone(),
                });
                self.emit(Body::ResponseFailed {
                    stage: "send".to_owned(),
                    reason: error.message.clone(),
                });
            }
        }
        self.delivered_turn = None;
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
            .any(|turn| *turn == report.turn)
        {
            return;
        }
        let purpose = WorkPurpose::Report { turn: report.turn };
        self.request(purpose, SessionWork::Code(report.call));
    }

    pub(super) fn finish_report(&mut self, effect: &EffectId, done: &CodeOutcome) {
        self.emit(Body::WorkFinished {
            effect_id: effect.clone(),
        });
        self.apply_code(done);
        if let Some(error) = &done.error {
            self.report_hook_failure(HookStage::OnResponse, &error.message);
        }
        self.start_report();
    }
}
