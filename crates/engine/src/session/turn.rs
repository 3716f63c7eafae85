//! The steps of a turn, in the order the kernel promises: command, hook, active flow, router, flow or
//! model, response.

use super::draft::Draft;
use super::hook_decision::BeforeLlm;
use super::turn_state::Turn;
use crate::agent::HookFailurePolicy;
use crate::flow::FlowError;
use serde_json::{Value, json};
use tandem_record::conversation::{
    AgentMode, CandidateOrigin, CodeCall, CodeOutcome, FlowOrigin, HookStage, ModelPurpose,
    RequestedWork, ResponseSource, SessionEventBody as Body, SessionWork, TurnCause, TurnOutcome,
    WorkOutcome, WorkPurpose,
};

/// Sent to everybody but the only user an agent serves.
const NOT_SERVED: &str = "This assistant serves one person only.";

/// Where a turn goes on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    Command,
    /// What the message may mean before the agent looks at it.
    Listen,
    BeforeLlm,
    /// The flow that waits, if there is one; else the router.
    Gate,
    Router,
    Classic,
    /// Nothing is left but to end the turn.
    Finish(TurnOutcome),
    /// The turn waits for work it requested.
    Wait,
}

impl Next {
    pub(super) const DONE: Self = Self::Finish(TurnOutcome::Processed);
}

impl Draft<'_> {
    /// Starts the next turn and runs it as far as it goes.
    pub(super) fn run_turn(&mut self) {
        while self.session.turn.is_none() && self.drop_refused_turn() {}
        let Some(next) = self.next_turn() else {
            return;
        };
        let trigger = next.cause.trigger();
        // What a person is told is said, also if it looks like a command.
        let is_heard = match &next.cause {
            TurnCause::Message { message, .. } => self.goes_to_human(&message.body),
            _ => false,
        };
        let remembered = next.is_plain_message() || is_heard;
        self.emit(Body::TurnStarted {
            trigger,
            message_ids: next.cause.message_ids(),
            remembered,
        });
        self.host_calls = 0;
        let first = match self.turn().cause.clone() {
            TurnCause::Message { .. } if !self.is_served() => {
                let to = self.session.start.address.clone();
                self.send_side_message(&to, NOT_SERVED);
                Next::DONE
            }
            TurnCause::Message { .. } => {
                self.greet();
                Next::Command
            }
            TurnCause::AdminCommand { .. } => Next::Command,
            TurnCause::QueueReplay { .. } => Next::BeforeLlm,
            TurnCause::Deadline { interrupt } => self.pass_deadline(&interrupt),
            TurnCause::EscalationClosed { escalation } => self.deliver_resolution(&escalation),
            TurnCause::StartFlow(request) => self.start_requested_flow(*request),
            TurnCause::Scheduled(_) => Next::BeforeLlm,
            TurnCause::Reminder { interrupt, index } => self.remind(&interrupt, index),
            TurnCause::EndTakeover(ending) => self.end_takeover(*ending),
            TurnCause::Answered {
                interrupt,
                value,
                actor,
            } => {
                self.actor = actor;
                self.answer_for_user(&interrupt, value)
            }
            TurnCause::WorkflowAsked {
                interrupt,
                question,
            } => self.show_workflow_question(&interrupt, &question),
            TurnCause::WorkflowFinished { interrupt, result } => {
                self.deliver_workflow(&interrupt, &result)
            }
            TurnCause::ProxyInput { proxy, input } => self.take_proxy_input(&proxy, &input),
            TurnCause::ProxyClosed {
                interrupt,
                proxy,
                reason,
                timed_out,
            } => self.deliver_bridge_end(&interrupt, &proxy, &reason, timed_out),
            TurnCause::ProxyEnding(ending) => self.end_bridge(&ending),
        };
        self.advance(first);
    }

    pub(super) fn turn(&self) -> &Turn {
        self.session.turn.as_ref().expect("a turn is under way")
    }

    pub(super) fn advance(&mut self, mut next: Next) {
        loop {
            if self.needs_program.is_some() || self.found_divergence.is_some() {
                return;
            }
            next = match next {
                Next::Command => self.command_gate(),
                Next::Listen => self.listen(),
                // A person took over while the turn waited for something.
                Next::BeforeLlm | Next::Gate | Next::Router if self.is_taken_from_agent() => {
                    self.route_to_human()
                }
                Next::Classic
                    if self.is_taken_from_agent() && self.turn().model.exchange.is_empty() =>
                {
                    self.route_to_human()
                }
                Next::BeforeLlm => self.before_llm(),
                Next::Gate => self.gate(),
                Next::Router => self.route(),
                Next::Classic => self.call_model(),
                Next::Finish(outcome) => return self.end_turn(outcome),
                Next::Wait => return,
            };
        }
    }

    /// Uses the outcome of the work the turn waited for.
    pub(super) fn use_outcome(&mut self, work: &RequestedWork, outcome: &WorkOutcome) -> Next {
        match (&work.purpose, outcome) {
            (WorkPurpose::Command { name }, WorkOutcome::Code(done)) => {
                self.finish_command(name, done)
            }
            (WorkPurpose::BeforeLlm, WorkOutcome::Code(done)) => self.decide_before_llm(done),
            (WorkPurpose::Candidate { candidate }, WorkOutcome::Code(done)) => {
                self.decide_candidate(candidate.clone(), done)
            }
            (WorkPurpose::Model { purpose }, WorkOutcome::Model(answer)) => match answer {
                Ok(answer) => {
                    self.emit(Body::ModelAnswered {
                        purpose: *purpose,
                        answer: Box::new(answer.clone()),
                    });
                    match purpose {
                        ModelPurpose::Router | ModelPurpose::Extract
                            if self.is_taken_from_agent() =>
                        {
                            self.route_to_human()
                        }
                        ModelPurpose::Router => self.use_route(Some(answer)),
                        ModelPurpose::Chat => self.use_answer(answer),
                        ModelPurpose::Extract => self.use_extraction(Some(answer)),
                    }
                }
                Err(error) => {
                    self.emit(Body::ModelFailed {
                        purpose: *purpose,
                        error: error.clone(),
                    });
                    match purpose {
                        ModelPurpose::Router | ModelPurpose::Extract
                            if self.is_taken_from_agent() =>
                        {
                            self.route_to_human()
                        }
                        ModelPurpose::Router => self.use_route(None),
                        ModelPurpose::Extract => self.use_extraction(None),
                        ModelPurpose::Chat => self.fail_answer(&error.message),
                    }
                }
            },
            (WorkPurpose::LoopTool { call }, WorkOutcome::Tool(done)) => {
                self.finish_loop_tool(call, done)
            }
            (WorkPurpose::FlowTool, WorkOutcome::Tool(done)) => self.finish_flow_tool(done),
            (WorkPurpose::CommandActor, WorkOutcome::Code(done)) => self.use_command_actor(done),
            (WorkPurpose::CommandRight { actor }, WorkOutcome::Code(done)) => {
                self.use_command_right(actor, done)
            }
            (WorkPurpose::TakeoverRight { actor, starts }, WorkOutcome::Code(done)) => {
                self.use_takeover_right(actor, *starts, done)
            }
            (WorkPurpose::ProxyActor, WorkOutcome::Code(done)) => self.use_proxy_actor(done),
            (WorkPurpose::ProxyRight { actor }, WorkOutcome::Code(done)) => {
                self.use_proxy_right(actor, done)
            }
            (WorkPurpose::HelpActor, WorkOutcome::Code(done)) => self.use_help_actor(done),
            (
                WorkPurpose::HelpRight {
                    actor,
                    allowed,
                    rest,
                },
                WorkOutcome::Code(done),
            ) => self.use_help_right(actor, allowed.clone(), rest, done),
            (WorkPurpose::Escalations, WorkOutcome::Escalations(open)) => {
                self.list_escalations(open)
            }
            (WorkPurpose::Transcript, WorkOutcome::Transcript(result)) => {
                self.use_transcript(result)
            }
            (WorkPurpose::ApprovalRule { call }, WorkOutcome::Code(done)) => {
                self.use_approval_rule(call, done)
            }
            (WorkPurpose::FlowWorkflow, WorkOutcome::Workflow(started)) => {
                self.finish_workflow_start(started)
            }
            (WorkPurpose::LoopWorkflow { call }, WorkOutcome::Workflow(started)) => {
                self.finish_loop_workflow(call, started)
            }
            (WorkPurpose::FlowSchedule, WorkOutcome::Schedule(done)) => {
                self.finish_flow_schedule(done)
            }
            (WorkPurpose::LoopSchedule { call }, WorkOutcome::Schedule(done)) => {
                self.finish_loop_schedule(call, done)
            }
            // The performer answers in the kind of the work; anything else is a fault of the host
            // and must not leave the session stuck.
            _ => self.fail_turn("runtime", "the work ended with an outcome of another kind"),
        }
    }

    /// The turn cannot be answered. The session stays usable.
    pub(super) fn fail_turn(&mut self, stage: &str, reason: &str) -> Next {
        self.emit(Body::ResponseFailed {
            stage: stage.to_owned(),
            reason: reason.to_owned(),
            fatal: true,
        });
        let text = self.cx.agent.texts.fallback_reply.clone();
        self.respond(&text, CandidateOrigin::Fallback, None)
    }

    /// Whether the agent serves this user.
    fn is_served(&self) -> bool {
        let user = &self.session.start.user.external_user_id;
        let only = self.cx.agent.single_user.as_ref();
        only.is_none_or(|only| only == user)
    }

    fn greet(&mut self) {
        let Some(text) = self.session.start.welcome.clone() else {
            return;
        };
        if self.turn().number == 1 {
            let to = self.session.start.address.clone();
            self.send_side_message(&to, &text);
        }
    }

    fn before_llm(&mut self) -> Next {
        if self.agent_mode() == AgentMode::Off {
            return Next::DONE;
        }
        if !self.cx.agent.hooks.before_llm {
            return Next::Gate;
        }
        let turn = self.turn();
        let (number, trigger, text) = (turn.number, turn.trigger(), turn.text().to_owned());
        let message = turn.inbound();
        let flow = self.session.flow.as_ref();
        let active = flow.map(
            |flow| json!({"flowId": flow.flow, "pausedOn": flow.pause.as_ref().map(|p| p.name())}),
        );
        let mut input = json!({
            "requestId": self.session.request_id(number),
            "turnId": self.session.turn_id(number),
            "trigger": trigger,
            "text": text,
            "hitlState": self.session.hitl_state().unwrap_or("none"),
        });
        let fields = input.as_object_mut().expect("an object was built");
        fields.extend(message.map(|m| ("inbound".to_owned(), m)));
        fields.extend(active.map(|a| ("activeFlow".to_owned(), a)));
        let user = &self.session.start.user.external_user_id;
        let schedule = self.turn().schedule_data(user);
        fields.extend(schedule.map(|schedule| ("schedule".to_owned(), schedule)));
        let call = CodeCall {
            path: "beforeLLM".to_owned(),
            args: vec![input],
            timeout_ms: self.cx.agent.timeouts.hook_ms,
        };
        self.request(WorkPurpose::BeforeLlm, SessionWork::Code(call));
        Next::Wait
    }

    pub(super) fn report_hook_failure(&mut self, stage: HookStage, reason: &str) {
        self.report_failure(stage.as_str(), reason);
    }

    fn decide_before_llm(&mut self, done: &CodeOutcome) -> Next {
        let read = match &done.error {
            Some(error) => Err(error.message.clone()),
            None => BeforeLlm::read(done.value.as_ref()),
        };
        let decision = match read {
            Ok(decision) => decision,
            Err(reason) => {
                self.report_hook_failure(HookStage::BeforeLlm, &reason);
                match self.cx.agent.hooks.before_llm_on_error {
                    HookFailurePolicy::Continue => BeforeLlm::Continue,
                    HookFailurePolicy::Cancel => BeforeLlm::End {
                        reason: Some("hook_failed".to_owned()),
                    },
                }
            }
        };
        let decision = self.admit_route(decision);
        self.emit(Body::HookDecided {
            stage: HookStage::BeforeLlm,
            decision: decision.to_json(),
        });
        match decision {
            BeforeLlm::Continue => Next::Gate,
            BeforeLlm::End { reason } => {
                self.note_held_silently();
                Next::Finish(TurnOutcome::EndedByPolicy { reason })
            }
            BeforeLlm::SkipLlm { draft, structured } => {
                self.note_held_silently();
                self.note_session_end(structured.as_ref());
                let reply = structured.as_ref().and_then(|s| s.get("reply")?.as_str());
                let text = draft.or(reply.map(str::to_owned)).unwrap_or_default();
                let source = match self.turn().source {
                    ResponseSource::Scheduled => ResponseSource::Scheduled,
                    _ => ResponseSource::ShortCircuit,
                };
                self.respond_from(source, &text, CandidateOrigin::Draft, structured)
            }
            BeforeLlm::RouteFlow { flow, input } => {
                if let Some(turn) = self.turn().cause.scheduled().cloned()
                    && let Some(next) = self.leave_scheduled_turn(&turn)
                {
                    return next;
                }
                // A start that is refused ends nothing.
                let fits = self.check_flow_input(&flow, input.as_ref()).is_ok();
                if self.session.flow.is_some() && fits {
                    self.end_flow(Some("preempted"), true);
                }
                let started = self.start_flow(&flow, input, FlowOrigin::BeforeLlm);
                started.unwrap_or(Next::Gate)
            }
        }
    }

    /// A hook may not start a flow over an open question, or one that does not exist.
    fn admit_route(&mut self, decision: BeforeLlm) -> BeforeLlm {
        let BeforeLlm::RouteFlow { flow, .. } = &decision else {
            return decision;
        };
        let reason = if self.session.has_open_interrupt() {
            "hitl_active"
        } else if !self.cx.agent.flows.contains_key(flow.as_str()) {
            "unknown_flow"
        } else {
            return decision;
        };
        self.report_hook_failure(HookStage::BeforeLlm, reason);
        BeforeLlm::Continue
    }

    /// A result that a flow gets for an effect, as the journal has it.
    pub(super) fn error_json(error: &FlowError) -> Value {
        serde_json::to_value(error).unwrap_or(Value::Null)
    }
}
