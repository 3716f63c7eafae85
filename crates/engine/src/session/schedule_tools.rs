//! The tools by which models and flows manage schedules of the current user, and of nobody else.
//!
//! The target is that of the session. A call that names another one is refused before anything is looked up, and the
//! answer is the same whether a schedule exists or not.

use super::draft::Draft;
use super::drive_flow::Performed;
use super::flow_effects::tool_failure;
use super::program::Resume;
use super::turn::Next;
use crate::flow::FlowEffect;
use crate::flow::effect::ToolErrorMode;
use serde_json::Value;
use tandem_record::conversation::{
    ChatToolCall, CodeError, ScheduleToolCall, ScheduleToolOperation, SessionEventBody as Body,
    SessionWork, WorkPurpose,
};
use tandem_record::{EffectId, Object, RunId};

/// The code of an outcome that reached for a schedule of somebody else.
const SCOPE_DENIED: &str = "scope_denied";
/// Fields that would name somebody else.
const TARGET_FIELDS: [&str; 17] = [
    "segment",
    "campaignId",
    "userExternalId",
    "target",
    "sessionId",
    "agentId",
    "owner",
    "recipients",
    "segmentId",
    "segmentSelector",
    "targetKind",
    "targetSessionId",
    "targetUserExternalId",
    "tenant",
    "user",
    "userId",
    "workspace",
];

fn fields(operation: ScheduleToolOperation) -> &'static [&'static str] {
    match operation {
        ScheduleToolOperation::Create => &[
            "flowId",
            "trigger",
            "allowSessionBootstrap",
            "onMissed",
            "metadata",
            "input",
        ],
        ScheduleToolOperation::Update => &[
            "scheduleId",
            "trigger",
            "allowSessionBootstrap",
            "onMissed",
            "metadata",
            "input",
        ],
        ScheduleToolOperation::Cancel => &["scheduleId"],
        ScheduleToolOperation::List => &["flowId", "status"],
    }
}

impl Draft<'_> {
    /// A flow's call of one of the tools, where the agent offers them.
    pub(super) fn perform_schedule_tool(
        &mut self,
        (run, step): (&RunId, u32),
        name: &str,
        args: &Object,
        on_error: ToolErrorMode,
    ) -> Option<Performed> {
        let operation = self.offered_operation(name)?;
        if let Err(error) = self.check_schedule_call(operation, args) {
            return Some(Performed::Resume(tool_failure(name, &error, on_error)));
        }
        let id = EffectId::from(format!("{run}:{step}"));
        let work = schedule_work(operation, args);
        self.request_as(id, WorkPurpose::FlowSchedule, work);
        Some(Performed::Leave(Next::Wait))
    }

    /// The model's call of one of the tools. The inner value is `None` where its result is known at once.
    pub(super) fn make_schedule_call(&mut self, call: &ChatToolCall) -> Option<Option<Next>> {
        let operation = self.offered_operation(&call.name)?;
        let args = call.args.as_object().cloned().unwrap_or_default();
        if let Err(error) = self.check_schedule_call(operation, &args) {
            let content = format!("Tool {} failed: {}", call.name, error.message);
            self.answer_tool(call, content, true);
            return Some(None);
        }
        let purpose = WorkPurpose::LoopSchedule { call: call.clone() };
        self.request(purpose, schedule_work(operation, &args));
        Some(Some(Next::Wait))
    }

    fn offered_operation(&self, tool: &str) -> Option<ScheduleToolOperation> {
        let is_offered = self.cx.agent.scheduler.tools;
        ScheduleToolOperation::of_tool(tool).filter(|_| is_offered)
    }

    fn check_schedule_call(
        &mut self,
        operation: ScheduleToolOperation,
        args: &Object,
    ) -> Result<(), CodeError> {
        let known = fields(operation);
        let foreign = TARGET_FIELDS
            .iter()
            .filter(|name| args.contains_key(**name));
        let offending_fields: Vec<String> = foreign.map(|name| (*name).to_owned()).collect();
        if !offending_fields.is_empty() {
            return Err(self.deny_scope(operation, args, offending_fields));
        }
        let unknown = args.keys().find(|name| !known.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(CodeError {
                code: "invalid_args".to_owned(),
                message: format!(
                    "there is no field {name:?}; fields are {}",
                    known.join(", ")
                ),
            }),
            None => Ok(()),
        }
    }

    /// Records that a call reached for something else than schedules of the current user.
    fn deny_scope(
        &mut self,
        operation: ScheduleToolOperation,
        args: &Object,
        offending_fields: Vec<String>,
    ) -> CodeError {
        let schedule_id = args.get("scheduleId").and_then(Value::as_str);
        self.emit(Body::ScheduleScopeDenied {
            operation,
            schedule_id: schedule_id.map(str::to_owned),
            offending_fields,
        });
        neutral()
    }

    /// The answer as the caller gets it.
    fn schedule_answer(
        &mut self,
        name: &str,
        args: &Value,
        done: &Result<Value, CodeError>,
    ) -> Result<Value, CodeError> {
        let operation = ScheduleToolOperation::of_tool(name);
        match (done, operation) {
            (Err(error), Some(operation)) if error.code == SCOPE_DENIED => {
                let args = args.as_object().cloned().unwrap_or_default();
                Err(self.deny_scope(operation, &args, vec!["scheduleId".to_owned()]))
            }
            (Err(error), _) if error.code == "not_found" => Err(neutral()),
            (done, _) => done.clone(),
        }
    }

    pub(super) fn finish_flow_schedule(&mut self, done: &Result<Value, CodeError>) -> Next {
        let flow = self.session.flow.as_ref();
        let effect = flow.and_then(|flow| FlowEffect::parse(flow.current.as_ref()?).ok());
        let Some(FlowEffect::Tool {
            name,
            args,
            on_error,
        }) = effect
        else {
            return Next::DONE;
        };
        let with = match self.schedule_answer(&name, &Value::Object(args), done) {
            Ok(value) => Resume::Value(Some(value)),
            Err(error) => tool_failure(&name, &error, on_error),
        };
        self.resume_flow(with)
    }

    pub(super) fn finish_loop_schedule(
        &mut self,
        call: &ChatToolCall,
        done: &Result<Value, CodeError>,
    ) -> Next {
        let (content, failed) = match self.schedule_answer(&call.name, &call.args, done) {
            Ok(value) => (value.to_string(), false),
            Err(error) => {
                let message = error.message;
                (format!("Tool {} failed: {message}", call.name), true)
            }
        };
        self.answer_tool(call, content, failed);
        self.next_tool_call()
    }
}

fn schedule_work(operation: ScheduleToolOperation, args: &Object) -> SessionWork {
    SessionWork::ManageSchedule(ScheduleToolCall {
        operation,
        args: args.clone(),
    })
}

/// Does not tell whether a schedule exists.
fn neutral() -> CodeError {
    CodeError {
        code: "failed".to_owned(),
        message: "this can only be done with own schedules".to_owned(),
    }
}
