//! How a run ends: completed, failed, cancelled, or ended by a supervisor. Its parent is notified in
//! the same commit.

use super::state::Phase;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::RUN_CANCELLED;
use serde_json::{Value, json};
use tandem_record::conversation::WorkflowResult;
use tandem_record::{
    ChildOutcome, EffectKind, ErrorInfo, Event, NodeStatus, Object, Principal, RunId, Seq,
};

impl DecisionDraft<'_> {
    pub(in crate::run) fn fail_run(
        &mut self,
        error: ErrorInfo,
        failed: Option<usize>,
        cause: Option<Seq>,
    ) {
        self.cancel_children();
        for ix in self.open_nodes() {
            self.cancel_node(ix, "upstream-failed", cause, None);
        }
        let failed_node = failed.map(|ix| self.run.def.nodes[ix].id.clone());
        self.emit(
            Event::RunFailed {
                error,
                failed_node,
                duration_ms: self.now.ms_since(self.run.begun_at()),
            },
            cause,
        );
        self.notify_parent();
    }

    pub(in crate::run) fn end_cancelled(
        &mut self,
        reason: Option<String>,
        by: Option<Principal>,
        by_parent: Option<RunId>,
    ) {
        for ix in self.open_nodes() {
            self.cancel_node(ix, RUN_CANCELLED, None, None);
        }
        let reason = match by_parent {
            Some(_) => Some("parent-cancelled".to_owned()),
            None => reason,
        };
        self.emit(
            Event::RunCancelled {
                reason,
                by,
                by_parent,
                duration_ms: self.now.ms_since(self.run.begun_at()),
            },
            None,
        );
        self.notify_parent();
    }

    /// A supervisor ended the run: everything else is stopped.
    pub(in crate::run) fn terminate_run(&mut self) {
        self.cancel_children();
        for ix in self.open_nodes() {
            self.cancel_node(ix, "run-terminated", None, None);
        }
        self.complete_run();
    }

    pub(in crate::run) fn complete_run(&mut self) {
        let outputs = self.run_outputs();
        let cause = self.run.head();
        if let Err(error) = self.admit_outputs(&outputs) {
            self.fail_run(error, None, cause);
            return;
        }
        self.emit(
            Event::RunCompleted {
                outputs,
                duration_ms: self.now.ms_since(self.run.begun_at()),
            },
            cause,
        );
        self.notify_parent();
    }

    /// The outputs of a single sink directly; of several sinks as a map by node.
    fn run_outputs(&self) -> Object {
        let completed: Vec<usize> = self
            .run
            .def
            .sinks()
            .filter(|ix| self.run.node(*ix).status == NodeStatus::Completed)
            .collect();
        let outputs = |ix: usize| -> Object {
            let outputs = self.run.node(ix).outputs.as_deref();
            outputs.cloned().unwrap_or_default()
        };
        match completed.as_slice() {
            [] => Object::new(),
            [only] => unwrap_single(outputs(*only)),
            several => several
                .iter()
                .map(|ix| {
                    let id = self.run.def.nodes[*ix].id.to_string();
                    (id, Value::Object(outputs(*ix)))
                })
                .collect(),
        }
    }

    /// Notifies the conversation that waits for the run, in the same commit as its last event.
    fn notify_session(&mut self) {
        let Some(to) = self.run.request().waiting_session.clone() else {
            return;
        };
        let sensitivity = self.run.sensitivity();
        // Readers of the conversation do not know what is sensitive in the workflow.
        let is_open = sensitivity.outputs.is_empty();
        let outputs = self.run.outputs().filter(|_| is_open).cloned();
        let visible = |error| sensitivity.visible_error(self.run.recorded_failed_node(), error);
        let error = self.run.error().map(|error| visible(error).into_owned());
        let result = WorkflowResult {
            run_id: self.run.id().clone(),
            status: self.run.status().as_str().to_owned(),
            output: outputs.map(Value::Object),
            error: error.map(|error| json!(error)),
        };
        let id = format!("reported:{}", self.run.id());
        let kind = EffectKind::NotifySession {
            to: *to,
            result: Box::new(result),
        };
        self.add_one_shot_effect(id, kind);
    }

    /// Notifies whoever waits for this run that it ended, in the same commit as its last event.
    fn notify_parent(&mut self) {
        debug_assert!(self.run.phase().is_terminal());
        self.notify_session();
        let Some(parent) = self.run.request().parent.clone() else {
            return;
        };
        let variables: Object = match self.run.phase() {
            Phase::Completed => parent
                .harvest
                .iter()
                .filter_map(|name| Some((name.clone(), self.run.variable(name)?.clone())))
                .collect(),
            _ => Object::new(),
        };
        let marked = |name: &&String| self.run.untrusted_names().contains(*name);
        let untrusted = variables.keys().filter(marked).cloned().collect();
        // Readers of the parent see it, and the parent's document does not say what is sensitive here.
        let (run, sensitivity) = (&self.run, self.run.sensitivity());
        let visible = |error| sensitivity.visible_error(run.recorded_failed_node(), error);
        let error = run.error().map(|e| visible(e).into_owned());
        let mut outcome = ChildOutcome::Ended {
            child: self.run.id().clone(),
            status: self.run.status(),
            untrusted,
            variables,
            error,
        };
        self.fail_oversized_outcome(&mut outcome);
        let id = format!("ended:{}", self.run.id());
        let kind = EffectKind::NotifyParent {
            parent: parent.run_id,
            node: parent.node_id,
            outcome,
        };
        self.add_one_shot_effect(id, kind);
    }

    pub(in crate::run) fn finish_cancel_if_no_children(&mut self) {
        if self.has_children_to_await() {
            return;
        }
        self.finish_requested_cancel();
    }

    /// Completes the requested cancel, even if children are still running.
    pub(in crate::run) fn finish_requested_cancel(&mut self) {
        let cancel = self.run.state.lifecycle.cancelling.clone();
        let cancel = cancel.expect("a cancelling run has a cancel request");
        self.end_cancelled(cancel.reason, cancel.by, cancel.by_parent);
    }

    /// While a cancel waits for children, everything else stops at once.
    pub(in crate::run) fn cancel_childless_nodes(&mut self) {
        for ix in self.open_nodes() {
            if !self.run.holds_up_cancel(ix) {
                self.cancel_node(ix, RUN_CANCELLED, None, None);
            }
        }
    }
}

/// A node with one port `output` that holds an object is shown as that object.
fn unwrap_single(mut outputs: Object) -> Object {
    if outputs.len() == 1
        && let Some(Value::Object(_)) = outputs.get("output")
        && let Some(Value::Object(inner)) = outputs.remove("output")
    {
        return inner;
    }
    outputs
}
