//! How nodes and runs end: completion, failure with its retries, cancellation.

use super::draft::DecisionDraft;
use super::state::Phase;
use crate::definition::document::{Backoff, OnError, Retry};
use crate::node::{DecisionSource, Kind};
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{
    ChildOutcome, EffectKind, ErrorInfo, Event, NodeStatus, Object, Principal, RunId, RunStatus,
    Seq, Work,
};

/// One day: the longest `Retry-After` that is respected.
const MAX_RETRY_AFTER_MS: u64 = 24 * 3600 * 1000;
/// Why a node was cancelled: its run was.
pub(super) const RUN_CANCELLED: &str = "run-cancelled";

/// The result of a completed node.
#[derive(Default)]
pub(super) struct Done {
    pub(super) outputs: Object,
    pub(super) cost: Option<Object>,
    pub(super) child: Option<RunStatus>,
    /// The outputs come from a tool server.
    pub(super) untrusted: bool,
}

impl Done {
    pub(super) fn with(outputs: Object) -> Self {
        Self {
            outputs,
            ..Self::default()
        }
    }
}

impl DecisionDraft<'_> {
    pub(super) fn complete_node(&mut self, ix: usize, done: Done, cause: Seq) {
        let node = self.run.def.nodes[ix].id.clone();
        let started = self.run.state.nodes[ix].started_at.unwrap_or(self.now);
        let untrusted = done.untrusted || self.run.passes_on_untrusted(ix, self.cx.work);
        let returned = std::mem::take(&mut self.returned);
        self.emit(
            Event::NodeCompleted {
                node,
                outputs: done.outputs,
                duration_ms: self.now.ms_since(started),
                cost: done.cost,
                child: done.child,
                returned,
                untrusted,
            },
            Some(cause),
        );
    }

    /// Handles a failed attempt: retries while the retry budget lasts and a retry can help.
    pub(super) fn fail_or_retry(&mut self, ix: usize, error: ErrorInfo, cause: Seq) {
        let attempt = self.run.state.nodes[ix].attempt;
        let policy = self.retry_policy(ix);
        if error.retryable && attempt + 1 < policy.max_attempts.unwrap_or(1) {
            let next = attempt + 1;
            let delay_ms = backoff_ms(&policy, next).max(retry_after_ms(&error));
            let node = self.run.def.nodes[ix].id.clone();
            self.emit(
                Event::NodeRetried {
                    node,
                    attempt: next,
                    delay_ms,
                    last_error: error,
                },
                Some(cause),
            );
            return;
        }
        self.fail_node(ix, error, Some(cause), None);
    }

    fn retry_policy(&self, ix: usize) -> Retry {
        let settings = &self.run.def.document.settings;
        let own = match &self.run.def.nodes[ix].kind {
            Kind::Http(config) => config.retry.clone(),
            Kind::Supervisor(supervisor) => match &supervisor.source {
                DecisionSource::Endpoint(config) => config.retry.clone(),
                _ => None,
            },
            _ => self.run.verifier_endpoint(ix).and_then(|c| c.retry.clone()),
        };
        let authored = self.run.def.doc_node(ix).settings.retry.clone();
        let mut policy = own.or(authored).unwrap_or_default();
        policy.max_attempts = Some(policy.max_attempts.unwrap_or(settings.max_retries + 1));
        policy
    }

    /// Fails a node for good; its author may have configured that the run continues.
    pub(super) fn fail_node(
        &mut self,
        ix: usize,
        error: ErrorInfo,
        cause: Option<Seq>,
        child: Option<RunStatus>,
    ) {
        let node = self.run.def.nodes[ix].id.clone();
        let state = &self.run.state.nodes[ix];
        let attempts = state.attempt + 1;
        if self.run.def.doc_node(ix).settings.on_error == OnError::Continue
            && state.status == NodeStatus::Running
        {
            let shown = json!({"code": error.code, "message": error.message});
            let done = Done {
                outputs: Object::from_iter([("error".to_owned(), shown)]),
                child,
                ..Done::default()
            };
            let cause = cause.or(state.last).unwrap_or(Seq(0));
            self.complete_node(ix, done, cause);
            return;
        }
        let returned = std::mem::take(&mut self.returned);
        self.emit(
            Event::NodeFailed {
                node,
                error,
                attempts,
                child,
                returned,
            },
            cause,
        );
    }

    pub(super) fn cancel_node(
        &mut self,
        ix: usize,
        reason: &str,
        cause: Option<Seq>,
        child: Option<RunStatus>,
    ) {
        let node = self.run.def.nodes[ix].id.clone();
        let reason = reason.to_owned();
        let returned = std::mem::take(&mut self.returned);
        self.emit(
            Event::NodeCancelled {
                node,
                reason,
                child,
                returned,
            },
            cause,
        );
    }

    /// Nodes that are running or suspended, in order.
    pub(super) fn open_nodes(&self) -> Vec<usize> {
        let nodes = self.run.state.nodes.iter().enumerate();
        nodes
            .filter(|(_, n)| matches!(n.status, NodeStatus::Running | NodeStatus::Suspended))
            .map(|(ix, _)| ix)
            .collect()
    }

    /// Cancels children with their parent, unless their node detaches them.
    pub(super) fn cancel_children(&mut self) {
        let nodes = self.run.state.nodes.iter();
        let detached: Vec<RunId> = nodes
            .flat_map(|n| n.awaited_children())
            .filter(|(_, goes_down)| !goes_down)
            .map(|(child, _)| child.clone())
            .collect();
        let live: Vec<RunId> = self
            .run
            .live_children()
            .map(|c| c.run_id.clone())
            .filter(|c| !detached.contains(c))
            .collect();
        for child in live {
            self.add_one_shot_effect(format!("cancel:{child}"), EffectKind::CancelChild { child });
        }
    }

    /// Stops waiting for children: they are cancelled, unless they may continue without this run.
    pub(super) fn give_up_child(&mut self, ix: usize) {
        let awaited = self.run.state.nodes[ix].awaited_children();
        let down: Vec<RunId> = awaited
            .filter(|(_, goes_down)| *goes_down)
            .map(|(child, _)| child.clone())
            .collect();
        for child in down {
            self.add_one_shot_effect(format!("cancel:{child}"), EffectKind::CancelChild { child });
        }
    }

    pub(super) fn fail_run(&mut self, error: ErrorInfo, failed: Option<usize>, cause: Option<Seq>) {
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

    pub(super) fn end_cancelled(
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
    pub(super) fn terminate_run(&mut self) {
        self.cancel_children();
        for ix in self.open_nodes() {
            self.cancel_node(ix, "run-terminated", None, None);
        }
        self.complete_run();
    }

    pub(super) fn complete_run(&mut self) {
        let outputs = self.run_outputs();
        let cause = self.run.state.head;
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
            .filter(|ix| self.run.state.nodes[*ix].status == NodeStatus::Completed)
            .collect();
        let outputs = |ix: usize| -> Object {
            let outputs = self.run.state.nodes[ix].outputs.as_deref();
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

    /// Notifies the parent that this run ended, in the same commit as its last event.
    fn notify_parent(&mut self) {
        debug_assert!(self.run.state.phase.is_terminal());
        let Some(parent) = self.run.request().parent.clone() else {
            return;
        };
        let variables: Object = match self.run.state.phase {
            Phase::Completed => parent
                .harvest
                .iter()
                .filter_map(|name| Some((name.clone(), self.run.variable(name)?.clone())))
                .collect(),
            _ => Object::new(),
        };
        let marked = |name: &&String| self.run.state.untrusted.contains(*name);
        let untrusted = variables.keys().filter(marked).cloned().collect();
        // Readers of the parent see it, and the parent's document does not say what is sensitive here.
        let (state, sensitivity) = (&self.run.state, self.run.sensitivity());
        let visible = |error| sensitivity.visible_error(state.failed_node.as_ref(), error);
        let error = state.error.as_ref().map(|e| visible(e).into_owned());
        let mut outcome = ChildOutcome::Ended {
            child: self.run.id().clone(),
            status: self.run.status(),
            untrusted,
            variables,
            error,
            unused: self.run.descendants_left(self.cx.limits),
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

    pub(super) fn retry_now(&mut self, ix: usize) {
        let state = &self.run.state.nodes[ix];
        if let (Some(verifying), Some(cause)) = (state.verifying.clone(), state.last) {
            // Only the verification is requested again; its subject stays the same.
            self.request_verification(ix, verifying.verification_subject, cause);
            return;
        }
        let entry = super::start::NodeEntry {
            retry: true,
            ..Default::default()
        };
        self.start_node(ix, entry);
    }

    pub(super) fn definition(&self) -> Arc<crate::Definition> {
        Arc::clone(&self.run.def)
    }
}

/// The delay that the other side requested, up to the limit.
fn retry_after_ms(error: &ErrorInfo) -> u64 {
    let details = error.details.as_ref();
    let requested = details.and_then(|d| d.get("retryAfterMs")?.as_u64());
    requested.unwrap_or(0).min(MAX_RETRY_AFTER_MS)
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

fn backoff_ms(policy: &Retry, attempt: u32) -> u64 {
    let grown = match policy.backoff {
        Backoff::None => 0,
        Backoff::Fixed => policy.backoff_ms,
        Backoff::Exponential => {
            let factor = 1_u64 << attempt.saturating_sub(1).min(32);
            policy.backoff_ms.saturating_mul(factor)
        }
    };
    grown.min(policy.max_backoff_ms)
}

impl DecisionDraft<'_> {
    /// Whether a cancel has to wait for children that were cancelled.
    pub(super) fn has_children_to_await(&self) -> bool {
        let mut nodes = self.run.state.nodes.iter();
        nodes.any(super::state::NodeState::holds_up_cancel)
    }

    /// While a cancel waits for children, everything else stops at once.
    pub(super) fn cancel_childless_nodes(&mut self) {
        for ix in self.open_nodes() {
            if !self.run.state.nodes[ix].holds_up_cancel() {
                self.cancel_node(ix, RUN_CANCELLED, None, None);
            }
        }
    }

    pub(super) fn finish_cancel_if_no_children(&mut self) {
        if self.has_children_to_await() {
            return;
        }
        self.finish_requested_cancel();
    }

    /// Completes the requested cancel, even if children are still running.
    pub(super) fn finish_requested_cancel(&mut self) {
        let cancel = self.run.state.cancelling.clone();
        let cancel = cancel.expect("a cancelling run has a cancel request");
        self.end_cancelled(cancel.reason, cancel.by, cancel.by_parent);
    }

    /// A parent's pause does not cut off a child run, which runs independently.
    pub(super) fn may_cut_off(&self, ix: usize) -> bool {
        let node = &self.run.state.nodes[ix];
        if node.verifying.is_some() {
            // Only a call to its verifier is cut off, and requested again.
            return matches!(node.work, Some(Work::Http { .. }));
        }
        node.dispatching.is_none() && node.awaited_children().next().is_none()
    }
}
