//! Workflows that flows and models start.

use super::draft::Draft;
use super::drive_flow::Performed;
use super::program::Resume;
use super::turn::Next;
use crate::flow::effect::WorkflowRunEffect;
use crate::flow::{FlowEffect, FlowError};
use serde_json::{Value, json};
use tandem_record::conversation::{
    ChatToolCall, CodeError, FlowPause, ResumedBy, SessionEventBody as Body, SessionWork,
    TurnCause, WorkPurpose, WorkflowResult, WorkflowStart,
};
use tandem_record::{EffectId, InterruptId, RunId, WorkflowId};

impl Draft<'_> {
    pub(super) fn perform_workflow(
        &mut self,
        run: &RunId,
        step: u32,
        effect: WorkflowRunEffect,
    ) -> Performed {
        let allowed = self.cx.agent.workflows.as_ref();
        if allowed.is_some_and(|allowed| !allowed.contains(&effect.workflow_id)) {
            let message = format!("the agent may not start {}", effect.workflow_id);
            let error = FlowError::effect("workflow_not_allowed", message);
            return Performed::Resume(Resume::Throw(error));
        }
        let id = format!("{run}:{step}");
        let start = WorkflowStart {
            workflow_id: WorkflowId::from(effect.workflow_id),
            input: effect.input,
            interrupt_id: effect.wait.then(|| InterruptId::from(id.as_str())),
            surface_interrupts: effect.surface_interrupts,
        };
        let work = SessionWork::StartWorkflow(start);
        self.request_as(EffectId::from(id), WorkPurpose::FlowWorkflow, work);
        Performed::Leave(Next::Wait)
    }

    fn current_workflow(&self) -> Option<WorkflowRunEffect> {
        let effect = self.session.flow.as_ref()?.current.as_ref()?;
        match FlowEffect::parse(effect).ok()? {
            FlowEffect::WorkflowRun(effect) => Some(effect),
            _ => None,
        }
    }

    /// The workflow was started, or could not be.
    pub(super) fn finish_workflow_start(&mut self, started: &Result<RunId, CodeError>) -> Next {
        let (Some(effect), Some((run, step))) = (self.current_workflow(), self.active_step())
        else {
            return Next::DONE;
        };
        let run_id = match started {
            Ok(run_id) => run_id.clone(),
            Err(error) => {
                let error = FlowError::effect(error.code.as_str(), error.message.as_str());
                return self.resume_flow(Resume::Throw(error));
            }
        };
        if !effect.wait {
            let result = json!({"runId": run_id, "status": "running"});
            return self.resume_flow(Resume::Value(Some(result)));
        }
        let interrupt_id = InterruptId::from(format!("{run}:{step}"));
        let flow = self.session.flow.as_ref();
        let early = flow.and_then(|flow| flow.finished_workflow.clone());
        if let Some((_, result)) = early.filter(|(id, _)| *id == interrupt_id) {
            return self.resume_flow(Resume::Value(Some(result_json(&result))));
        }
        let deadline = effect.timeout_ms.map(|ms| self.now.plus_ms(ms));
        self.pause_flow(FlowPause::Workflow {
            interrupt_id: interrupt_id.clone(),
            run_id,
            deadline,
            since: self.now,
        });
        self.emit(Body::InterruptPaused {
            interrupt_id,
            kind: "wait".to_owned(),
            wait_for: None,
            deadline,
        });
        Next::DONE
    }

    /// A workflow ended. A flow that waits for it gets a turn.
    pub(super) fn note_workflow_end(&mut self, interrupt: &InterruptId, result: &WorkflowResult) {
        if self.session.ended.is_some() {
            return;
        }
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        let waits = pause.is_some_and(|pause| pause.interrupt_id() == interrupt);
        let is_queued = self.session.has_turn(
            |cause| matches!(cause, TurnCause::WorkflowFinished { interrupt: of, .. } if of == interrupt),
        );
        let mut under_way = self.session.turns_under_way();
        let starts = under_way.any(|turn| turn.waits_for(&interrupt.as_str().into()));
        drop(under_way);
        if is_queued {
            return;
        }
        if waits {
            self.emit(Body::TurnQueued {
                cause: TurnCause::WorkflowFinished {
                    interrupt: interrupt.clone(),
                    result: Box::new(result.clone()),
                },
            });
        } else if let Some(run) = self.session.diverged_wait(interrupt) {
            self.emit_for(
                Some(run),
                Body::WorkflowFinishedEarly {
                    interrupt_id: interrupt.clone(),
                    result: result.clone(),
                },
            );
        } else if starts {
            self.emit(Body::WorkflowFinishedEarly {
                interrupt_id: interrupt.clone(),
                result: result.clone(),
            });
        } else {
            self.emit(Body::InterruptLate {
                interrupt_id: interrupt.clone(),
            });
        }
    }

    /// The turn that hands the result of a workflow to its flow.
    pub(super) fn deliver_workflow(
        &mut self,
        interrupt: &InterruptId,
        result: &WorkflowResult,
    ) -> Next {
        let flow = self.session.flow.as_ref();
        let pause = flow.and_then(|flow| flow.pause.as_ref());
        if pause.is_none_or(|pause| pause.interrupt_id() != interrupt) {
            self.emit(Body::InterruptLate {
                interrupt_id: interrupt.clone(),
            });
            return Next::DONE;
        }
        if let Some(next) = self.leave_diverged() {
            return next;
        }
        self.leave_pause(interrupt, "wait", ResumedBy::Workflow, &result.status, None);
        self.resume_flow(Resume::Value(Some(result_json(result))))
    }

    /// Nobody waits for the workflow any longer.
    pub(super) fn time_out_workflow(&mut self, interrupt: &InterruptId, run_id: &RunId) -> Next {
        if self.current_workflow().is_some_and(|e| e.cancel_on_timeout) {
            let id = EffectId::from(format!("{interrupt}:cancel"));
            let run_id = run_id.clone();
            self.add_work(id, SessionWork::CancelWorkflow { run_id });
        }
        self.leave_pause(interrupt, "wait", ResumedBy::Timeout, "timed_out", None);
        let result = json!({"status": "timed_out", "runId": run_id});
        self.resume_flow(Resume::Value(Some(result)))
    }

    /// The model starts a workflow with the tool `workflow.run`.
    pub(super) fn start_workflow_tool(&mut self, call: &ChatToolCall) -> Option<Next> {
        let named = call.args.get("workflowId").and_then(Value::as_str);
        let allowed = self.cx.agent.workflows.as_deref().unwrap_or_default();
        let Some(workflow) = named.filter(|id| allowed.iter().any(|known| known == id)) else {
            let content = format!("Tool {} failed: there is no such workflow", call.name);
            self.answer_tool(call, content, true);
            return None;
        };
        let start = WorkflowStart {
            workflow_id: WorkflowId::from(workflow),
            input: call.args.get("input").cloned(),
            interrupt_id: None,
            surface_interrupts: false,
        };
        let purpose = WorkPurpose::LoopWorkflow { call: call.clone() };
        self.request(purpose, SessionWork::StartWorkflow(start));
        Some(Next::Wait)
    }

    pub(super) fn finish_loop_workflow(
        &mut self,
        call: &ChatToolCall,
        started: &Result<RunId, CodeError>,
    ) -> Next {
        let (content, failed) = match started {
            Ok(run_id) => (
                json!({"runId": run_id, "status": "running"}).to_string(),
                false,
            ),
            Err(error) => (
                format!("Tool {} failed: {}", call.name, error.message),
                true,
            ),
        };
        self.answer_tool(call, content, failed);
        self.next_tool_call()
    }
}

fn result_json(result: &WorkflowResult) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}
