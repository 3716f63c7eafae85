//! How nodes and runs end: completion, failure with its retries, cancellation.

use crate::definition::document::{Backoff, OnError, Retry};
use crate::node::{DecisionSource, Kind};
use crate::run::draft::DecisionDraft;
use serde_json::json;
use std::sync::Arc;
use tandem_record::{ErrorInfo, Event, NodeStatus, Object, RunStatus, Seq, Work};

/// One day: the longest `Retry-After` that is respected.
const MAX_RETRY_AFTER_MS: u64 = 24 * 3600 * 1000;
/// Why a node was cancelled: its run was.
pub(in crate::run) const RUN_CANCELLED: &str = "run-cancelled";

/// The result of a completed node.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) outputs: Object,
    pub(crate) cost: Option<Object>,
    pub(crate) child: Option<RunStatus>,
    /// The outputs come from a tool server.
    pub(crate) untrusted: bool,
}

impl Done {
    pub(crate) fn with(outputs: Object) -> Self {
        Self {
            outputs,
            ..Self::default()
        }
    }
}

impl DecisionDraft<'_> {
    pub(crate) fn complete_node(&mut self, ix: usize, done: Done, cause: Seq) {
        let node = self.run.def.nodes[ix].id.clone();
        let started = self.run.node(ix).started_at.unwrap_or(self.now);
        let untrusted = done.untrusted || self.run.passes_on_untrusted(ix, self.cx.work);
        self.emit(
            Event::NodeCompleted {
                node,
                outputs: done.outputs,
                duration_ms: self.now.ms_since(started),
                cost: done.cost,
                child: done.child,
                untrusted,
            },
            Some(cause),
        );
    }

    /// Handles a failed attempt: retries while the retry budget lasts and a retry can help.
    pub(crate) fn fail_or_retry(&mut self, ix: usize, error: ErrorInfo, cause: Seq) {
        let attempt = self.run.node(ix).attempt;
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
    pub(crate) fn fail_node(
        &mut self,
        ix: usize,
        error: ErrorInfo,
        cause: Option<Seq>,
        child: Option<RunStatus>,
    ) {
        let node = self.run.def.nodes[ix].id.clone();
        let state = self.run.node(ix);
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
        self.emit(
            Event::NodeFailed {
                node,
                error,
                attempts,
                child,
            },
            cause,
        );
    }

    pub(in crate::run) fn cancel_node(
        &mut self,
        ix: usize,
        reason: &str,
        cause: Option<Seq>,
        child: Option<RunStatus>,
    ) {
        let node = self.run.def.nodes[ix].id.clone();
        let reason = reason.to_owned();
        self.emit(
            Event::NodeCancelled {
                node,
                reason,
                child,
            },
            cause,
        );
    }

    /// Nodes that are running or suspended, in order.
    pub(in crate::run) fn open_nodes(&self) -> Vec<usize> {
        let nodes = self.run.nodes().iter().enumerate();
        nodes
            .filter(|(_, n)| matches!(n.status, NodeStatus::Running | NodeStatus::Suspended))
            .map(|(ix, _)| ix)
            .collect()
    }

    /// A parent's pause does not cut off a child run, which runs independently.
    pub(in crate::run) fn may_cut_off(&self, ix: usize) -> bool {
        let node = self.run.node(ix);
        if self.run.verifying(ix).is_some() {
            // Only a call to its verifier is cut off, and requested again.
            return matches!(node.work, Some(Work::Http { .. }));
        }
        self.run.dispatching(ix).is_none() && self.run.awaited_children(ix).next().is_none()
    }

    pub(in crate::run) fn retry_now(&mut self, ix: usize) {
        let state = self.run.node(ix);
        if let (Some(verifying), Some(cause)) = (self.run.verifying(ix).cloned(), state.last) {
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

    pub(in crate::run) fn definition(&self) -> Arc<crate::Definition> {
        Arc::clone(&self.run.def)
    }
}

/// The delay that the other side requested, up to the limit.
fn retry_after_ms(error: &ErrorInfo) -> u64 {
    let details = error.details.as_ref();
    let requested = details.and_then(|d| d.get("retryAfterMs")?.as_u64());
    requested.unwrap_or(0).min(MAX_RETRY_AFTER_MS)
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
