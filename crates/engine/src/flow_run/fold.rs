//! Folds events into a flow run. Never fails and never appends.

use super::state::{FlowRun, FlowRunState, FlowStep, OpenPause, step_of};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::conversation::{FlowPause, FlowRecord};
use tandem_record::{
    ClosedInterrupt, ErrorInfo, Event, NodeId, NodeStatus, RecordedEvent, Resolution, RunStatus,
    Size, Timestamp,
};

/// About the memory of one step, without its data.
const STEP_BYTES: usize = 160;

impl FlowRun {
    pub(super) fn fold(&mut self, recorded: &RecordedEvent) {
        let last_step = self.last_step();
        let state = &mut self.state;
        state.head = Some(recorded.seq);
        state.last_at = state.last_at.max(recorded.at);
        let at = recorded.at;
        match &recorded.event {
            Event::RunStarted { request, .. } => {
                state.tenant = request.owner.tenant.clone();
                state.bytes += Size::of(&**request).memory;
                state.request = Some(request.clone());
                state.status = RunStatus::Running;
                state.created_at = at;
            }
            Event::Flow(record) => state.fold_record(record, last_step),
            Event::NodeStarted { .. } => {
                state.bytes += STEP_BYTES;
                state.steps.push(FlowStep {
                    status: NodeStatus::Running,
                    seq: recorded.seq,
                    started_at: at,
                    ended_at: None,
                    error: None,
                });
            }
            Event::InterruptRequested { interrupt, .. } => {
                state.bytes += Size::of(&interrupt.data).memory;
                if let Some(open) = &mut state.open {
                    open.interrupt = Some((**interrupt).clone());
                }
            }
            Event::NodeSuspended { node, status, .. } => {
                state.status = *status;
                state.set_step(node, NodeStatus::Suspended);
            }
            Event::InterruptResolved { node, resolution } => state.close(node, resolution, at),
            Event::NodeResumed { node, .. } => {
                state.status = RunStatus::Running;
                state.set_step(node, NodeStatus::Running);
            }
            Event::NodeCompleted { node, .. } => {
                state.end_step(node, NodeStatus::Completed, None, at);
            }
            Event::NodeFailed { node, error, .. } => {
                state.end_step(node, NodeStatus::Failed, Some(error), at);
            }
            Event::NodeCancelled { node, .. } => {
                state.cancel_question(node, at);
                state.end_step(node, NodeStatus::Cancelled, None, at);
            }
            Event::RunPaused { .. } => {
                state.status = RunStatus::Paused;
                state.paused_at = Some(at);
            }
            Event::RunResumed { .. } => {
                state.status = RunStatus::Running;
                state.paused_at = None;
            }
            Event::RunCompleted { outputs, .. } => {
                state.outputs = Some(outputs.clone());
                state.end(RunStatus::Completed, None, at);
            }
            Event::RunFailed { error, .. } => state.end(RunStatus::Failed, Some(error), at),
            Event::RunCancelled { .. } => state.end(RunStatus::Cancelled, None, at),
            // Repeats what another event of the same record says, or belongs to workflow runs.
            _ => {}
        }
    }
}

impl FlowRunState {
    fn fold_record(&mut self, record: &FlowRecord, last_step: u32) {
        match record {
            FlowRecord::Started(start) => {
                self.bytes += Size::of(&**start).memory;
                self.start = Some(start.clone());
            }
            FlowRecord::Effect { effect, .. } => match effect.get("type").and_then(Value::as_str) {
                Some("interrupt.escalate") => self.escalate = Some(effect.clone()),
                Some("interrupt.confirm") => self.confirm = Some(effect.clone()),
                _ => {}
            },
            FlowRecord::Paused { pause, .. } => {
                let is_same = |open: &OpenPause| open.pause.interrupt_id() == pause.interrupt_id();
                let shown = self.open.take().filter(is_same);
                let mut interrupt = shown.and_then(|open| open.interrupt);
                if let Some(interrupt) = &mut interrupt {
                    interrupt.due = pause.deadline();
                }
                self.open = Some(OpenPause {
                    step: last_step,
                    pause: pause.clone(),
                    interrupt,
                });
            }
            FlowRecord::Resumed {
                by,
                outcome,
                answered_by,
                ..
            } => {
                self.resumed = Some((*by, outcome.clone()));
                self.answered_by.clone_from(answered_by);
            }
            FlowRecord::Result {
                value: Some(value), ..
            } => {
                if let Some(OpenPause {
                    pause: FlowPause::Ask { key, .. },
                    ..
                }) = &self.open
                {
                    self.bytes += key.len() + Size::of(value).memory;
                    self.answers.insert(key.clone(), value.clone());
                }
            }
            FlowRecord::Result { value: None, .. }
            | FlowRecord::Segment { .. }
            | FlowRecord::Host { .. }
            | FlowRecord::Hook { .. }
            | FlowRecord::Ended { .. }
            | FlowRecord::Failed { .. }
            | FlowRecord::Diverged { .. } => {}
        }
    }

    fn step_mut(&mut self, node: &NodeId) -> Option<&mut FlowStep> {
        self.steps.get_mut(step_of(node)?)
    }

    fn set_step(&mut self, node: &NodeId, status: NodeStatus) {
        if let Some(step) = self.step_mut(node) {
            step.status = status;
        }
    }

    fn end_step(
        &mut self,
        node: &NodeId,
        status: NodeStatus,
        error: Option<&ErrorInfo>,
        at: Timestamp,
    ) {
        if let Some(step) = self.step_mut(node) {
            step.status = status;
            step.ended_at = Some(at);
            step.error = error.cloned();
        }
    }

    fn close(&mut self, node: &NodeId, resolution: &Resolution, at: Timestamp) {
        let outcome = resolution.outcome.clone().unwrap_or_default();
        let open = self.open.take();
        self.resumed = None;
        self.bytes += STEP_BYTES;
        self.closed.push(Arc::new(ClosedInterrupt {
            interrupt: resolution.interrupt.clone(),
            node: node.clone(),
            overdue: outcome == "timeout",
            outcome,
            by: resolution.by.clone(),
            at,
            asked_at: open
                .and_then(|open| open.interrupt)
                .map(|interrupt| interrupt.requested_at),
        }));
    }

    fn cancel_question(&mut self, node: &NodeId, at: Timestamp) {
        self.resumed = None;
        if let Some(interrupt) = self.open.take().and_then(|open| open.interrupt) {
            let closed = ClosedInterrupt::cancelled(&interrupt, node, at);
            self.closed.push(Arc::new(closed));
        }
    }

    fn end(&mut self, status: RunStatus, error: Option<&ErrorInfo>, at: Timestamp) {
        self.status = status;
        self.error = error.cloned();
        self.paused_at = None;
        self.ended_at = Some(at);
        self.open = None;
    }
}
