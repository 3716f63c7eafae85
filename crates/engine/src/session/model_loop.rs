//! The path without a flow: model, tools, model again, and the answer.

use super::draft::Draft;
use super::turn::Next;
use crate::agent::{TALK_TO_HUMAN, UPDATE_MY_PROFILE, WORKFLOW_RUN};
use serde_json::Value;
use tandem_record::FlowId;
use tandem_record::conversation::{
    AgentMode, CandidateOrigin, ChatAnswer, ChatMessage, ChatRole, ChatToolCall, CodeOutcome,
    FlowOrigin, MessageRole, Modality, ModelPurpose, ScheduleToolOperation, SessionEnd,
    SessionEventBody as Body, SessionWork, TurnCause, TurnOutcome, WorkPurpose,
};
use tandem_schema::{MAX_WORK, Meter};

impl Draft<'_> {
    pub(super) fn call_model(&mut self) -> Next {
        if let Some(next) = self.over_limit() {
            return next;
        }
        let (agent, turn) = (self.cx.agent, self.turn());
        if turn.cause.message().is_none() && turn.model.exchange.is_empty() {
            return Next::DONE;
        }
        let shown = agent.limits.max_working_memory.max(1);
        let mut messages = self.remembered(shown);
        messages.extend(self.replayed_message());
        messages.extend(turn.model.exchange.iter().cloned());
        let tools = match turn.model.rounds < agent.limits.max_tool_iterations {
            true => self.offered_tools(),
            false => Vec::new(),
        };
        let purpose = ModelPurpose::Chat;
        let work = SessionWork::Model {
            purpose,
            messages,
            tools,
            streams: self.may_stream(),
        };
        self.request(WorkPurpose::Model { purpose }, work);
        Next::Wait
    }

    /// A model call beside the conversation: routing, or reading an answer.
    pub(super) fn ask_model(&mut self, purpose: ModelPurpose, messages: Vec<ChatMessage>) -> Next {
        if let Some(next) = self.over_limit() {
            return next;
        }
        let work = SessionWork::Model {
            purpose,
            messages,
            tools: Vec::new(),
            streams: false,
        };
        self.request(WorkPurpose::Model { purpose }, work);
        Next::Wait
    }

    /// A turn or a session that used too much gets no further model call.
    fn over_limit(&mut self) -> Option<Next> {
        let limits = &self.cx.agent.limits;
        if self.turn().failure.is_some() {
            return None;
        }
        let max_tokens = limits.max_session_tokens;
        if max_tokens.is_some_and(|max| self.session.tokens >= max) {
            return Some(self.fail_turn("budget", "the session used all of its tokens"));
        }
        if self.turn().steps >= limits.max_recursion_steps {
            let reason = format!("more than {} steps in one turn", limits.max_recursion_steps);
            return Some(self.fail_turn("model", &reason));
        }
        None
    }

    /// Whether readers may see the answer before it is final: nobody changes or drops it.
    fn may_stream(&self) -> bool {
        let agent = self.cx.agent;
        !agent.hooks.before_response
            && self.session.hitl_mode().is_none()
            && self.agent_mode() == AgentMode::Auto
            && agent.output_schema.is_none()
            && self.modality_of(CandidateOrigin::Classic, None) == Modality::Text
    }

    /// A message that was remembered when it arrived and is answered only now.
    pub(super) fn replayed_message(&self) -> Option<ChatMessage> {
        let turn = self.turn();
        let is_replay = matches!(turn.cause, TurnCause::QueueReplay { .. });
        is_replay.then(|| ChatMessage::new(ChatRole::User, turn.text()))
    }

    /// The last messages, oldest first.
    pub(super) fn remembered(&self, count: usize) -> Vec<ChatMessage> {
        let memory = &self.session.memory;
        let skipped = memory.len().saturating_sub(count);
        let shown = memory.iter().skip(skipped);
        shown
            .map(|message| {
                let role = match message.role {
                    MessageRole::User => ChatRole::User,
                    MessageRole::Assistant => ChatRole::Assistant,
                    MessageRole::Note => ChatRole::System,
                };
                ChatMessage::new(role, &message.text)
            })
            .collect()
    }

    fn offered_tools(&self) -> Vec<String> {
        let agent = self.cx.agent;
        let tools = agent.tools.iter().map(|tool| tool.name.clone());
        let is_free = self.session.flow.is_none() && self.session.hitl_mode().is_none();
        let flows = agent.flows.values().filter(|_| is_free);
        let flows = flows.filter_map(|flow| flow.tool.as_ref().map(|tool| tool.alias.clone()));
        tools.chain(flows).chain(self.host_tools(is_free)).collect()
    }

    /// Tools of the host that the agent offers.
    fn host_tools(&self, is_free: bool) -> Vec<String> {
        let agent = self.cx.agent;
        let has_workflows = agent.workflows.as_ref().is_some_and(|ids| !ids.is_empty());
        let offers = [
            (
                TALK_TO_HUMAN,
                agent.hitl.human.offer_tool && agent.admin_auth.is_some() && is_free,
            ),
            (UPDATE_MY_PROFILE, agent.profile_tool),
            (WORKFLOW_RUN, has_workflows),
        ];
        let offered = offers.iter().filter(|(_, is_offered)| *is_offered);
        let schedules = ScheduleToolOperation::ALL.iter();
        let schedules = schedules.filter(|_| agent.scheduler.tools);
        let names = offered.map(|(name, _)| *name);
        let names = names.chain(schedules.map(|operation| operation.tool()));
        names.map(str::to_owned).collect()
    }

    pub(super) fn use_answer(&mut self, answer: &ChatAnswer) -> Next {
        let offered = self.turn().model.rounds <= self.cx.agent.limits.max_tool_iterations;
        if !answer.tool_calls.is_empty() && offered {
            return self.next_tool_call();
        }
        let is_empty = answer.structured.is_none()
            && answer
                .text
                .as_ref()
                .is_none_or(|text| text.trim().is_empty());
        match is_empty {
            // Tools were not offered any more, and the model asks for nothing else.
            true => self.fail_answer("the model's last answer has neither a text nor an object"),
            false => self.finish_answer(answer),
        }
    }

    /// Makes the next call the model asked for, or calls the model again.
    pub(super) fn next_tool_call(&mut self) -> Next {
        loop {
            if self.is_interrupted() && !self.turn().model.exchange.is_empty() {
                return self.stop_calls();
            }
            let Some(call) = self.turn().model.calls.front().cloned() else {
                return Next::Classic;
            };
            if let Some(next) = self.make_call(call) {
                return next;
            }
        }
    }

    /// A later message takes over: calls that were not made are closed.
    fn stop_calls(&mut self) -> Next {
        for call in self.turn().model.calls.clone() {
            self.answer_tool(&call, "cancelled".to_owned(), true);
        }
        Next::Finish(TurnOutcome::Interrupted)
    }

    /// Makes one call; `None` when its result is known at once.
    fn make_call(&mut self, call: ChatToolCall) -> Option<Next> {
        let is_offered = |draft: &Self| draft.offered_tools().contains(&call.name);
        if !call.args.is_object() {
            let content = invalid_params(&call.name, "they are not a JSON object");
            self.answer_tool(&call, content, true);
            return None;
        }
        if let Some(flow) = self.flow_of_alias(&call.name)
            && is_offered(self)
        {
            return self.start_flow_tool(&flow, &call);
        }
        if let Some(made) = self.make_schedule_call(&call) {
            return made;
        }
        match call.name.as_str() {
            TALK_TO_HUMAN if is_offered(self) => {
                return self.call_human_by_tool(&call);
            }
            UPDATE_MY_PROFILE if is_offered(self) => {
                self.update_profile(&call);
                return None;
            }
            WORKFLOW_RUN if is_offered(self) => return self.start_workflow_tool(&call),
            _ => {}
        }
        if self.turn().steps >= self.cx.agent.limits.max_recursion_steps {
            let content = format!("Tool {} failed: too many steps in this turn", call.name);
            self.answer_tool(&call, content, true);
            return None;
        }
        match self.check_tool(&call.name, &call.args) {
            Ok(()) => {
                let asked = self.ask_approval(&call);
                Some(asked.unwrap_or_else(|| self.call_tool(call)))
            }
            Err(error) => {
                let content = match error.code.as_str() {
                    "invalid_args" => invalid_params(&call.name, &error.message),
                    _ => format!("Tool {} failed: {}", call.name, error.message),
                };
                self.answer_tool(&call, content, true);
                None
            }
        }
    }

    pub(super) fn call_tool(&mut self, call: ChatToolCall) -> Next {
        let work = SessionWork::Tool {
            name: call.name.clone(),
            args: call.args.clone(),
        };
        self.request(WorkPurpose::LoopTool { call }, work);
        Next::Wait
    }

    fn flow_of_alias(&self, name: &str) -> Option<FlowId> {
        let mut flows = self.cx.agent.flows.values();
        let flow = flows.find(|flow| flow.tool.as_ref().is_some_and(|tool| tool.alias == name))?;
        Some(FlowId::from(flow.flow_id.as_str()))
    }

    /// The model chose a flow. Calls after it are not made.
    fn start_flow_tool(&mut self, flow: &FlowId, call: &ChatToolCall) -> Option<Next> {
        if let Err(problem) = self.check_flow_input(flow, Some(&call.args)) {
            let content = invalid_params(&call.name, &problem);
            self.answer_tool(call, content, true);
            return None;
        }
        let others = self.turn().model.calls.iter().skip(1);
        let second = others.filter(|other| self.flow_of_alias(&other.name).is_some());
        for _ in 0..second.count() {
            self.emit(Body::FlowStartRefused {
                reason: "another flow was chosen in the same answer".to_owned(),
            });
        }
        let started = self.start_flow(flow, Some(call.args.clone()), FlowOrigin::Tool);
        if started.is_none() {
            let content = invalid_params(&call.name, "the flow does not take them");
            self.answer_tool(call, content, true);
        }
        started
    }

    pub(super) fn answer_tool(&mut self, call: &ChatToolCall, content: String, failed: bool) {
        self.emit(Body::ToolAnswered {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content,
            failed,
        });
    }

    pub(super) fn finish_loop_tool(&mut self, call: &ChatToolCall, done: &CodeOutcome) -> Next {
        let (content, failed) = match &done.error {
            Some(error) => (
                format!("Tool {} failed: {}", call.name, error.message),
                true,
            ),
            None => match &done.value {
                Some(Value::String(text)) => (text.clone(), false),
                Some(value) => (value.to_string(), false),
                None => ("null".to_owned(), false),
            },
        };
        self.answer_tool(call, content, failed);
        self.next_tool_call()
    }

    /// The model gave no usable answer.
    pub(super) fn fail_answer(&mut self, reason: &str) -> Next {
        let routed = self.flow_without_answer();
        routed.unwrap_or_else(|| self.fail_turn("model", reason))
    }

    /// The model's answer is the response, or names a flow.
    fn finish_answer(&mut self, answer: &ChatAnswer) -> Next {
        let Some(schema) = &self.cx.agent.output_schema else {
            let text = answer.text.clone().unwrap_or_default();
            return self.respond(&text, CandidateOrigin::Classic, None);
        };
        let Some(output) = structured_of(answer) else {
            return self.fail_answer("the model's answer is not the object it should be");
        };
        let errors = schema.errors(&output, &Meter::with_limit(MAX_WORK));
        if !errors.is_empty() {
            return self.fail_answer(&errors.join("; "));
        }
        if let Some(next) = self.flow_by_field(&output) {
            return next;
        }
        self.note_session_end(Some(&output));
        let Some(reply) = output.get("reply").and_then(Value::as_str) else {
            return self.fail_turn("model", "the model's answer has no reply");
        };
        let reply = reply.to_owned();
        self.respond(&reply, CandidateOrigin::Classic, Some(output))
    }
}

impl Draft<'_> {
    /// A structured output may end the session after the turn.
    pub(super) fn note_session_end(&mut self, output: Option<&Value>) {
        let ended = output.and_then(|output| output.get("sessionEnded"));
        if ended.and_then(Value::as_bool) == Some(true) {
            let reason = SessionEnd::Agent;
            self.emit(Body::SessionEndRequested { reason });
        }
    }
}

pub(super) fn invalid_params(tool: &str, problem: &str) -> String {
    format!("Invalid tool params for {tool}: {problem}")
}

/// The object of an answer: given as one, or written as JSON.
pub(super) fn structured_of(answer: &ChatAnswer) -> Option<Value> {
    let given = answer.structured.clone();
    let written = || serde_json::from_str(answer.text.as_ref()?).ok();
    given.or_else(written).filter(|value| !value.is_null())
}
