//! Limits of a run: the host's, and lower ones that the caller requested.

use crate::node::Kind;
use crate::run::state::Run;
use serde_json::Value;
use tandem_record::Timestamp;

const MIB: usize = 1024 * 1024;

/// The host's limits. They are advertised, so the engine must enforce exactly these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_node_executions: u64,
    pub max_run_duration_ms: u64,
    /// Iterations of the supervisors of one run.
    pub max_loop_iterations: u64,
    /// Nodes of one run that may be running at the same time.
    pub max_in_flight: usize,
    /// Levels of child runs under a root.
    pub max_depth: usize,
    /// Node starts in one decision; the rest follows in the next, so that commits stay small.
    pub max_starts_per_decision: u32,
    /// Bytes of text one event may have.
    pub max_event_bytes: usize,
    /// Bytes of text drafted by one decision; the rest follows in the next.
    pub max_decision_bytes: usize,
    /// Bytes of memory the state of one run may take.
    pub max_state_bytes: usize,
    /// Runs below one root, including the children of its children.
    pub max_descendants: u64,
    /// Number of notes under one name of one scope above which the oldest are merged; `None` turns
    /// compaction off.
    pub compact_above: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_node_executions: 10_000,
            // A run may wait a year for a person.
            max_run_duration_ms: 366 * 24 * 3600 * 1000,
            max_loop_iterations: 4_000,
            max_in_flight: 8,
            max_depth: 32,
            max_starts_per_decision: 256,
            max_event_bytes: 8 * MIB,
            max_decision_bytes: 8 * MIB,
            max_state_bytes: 64 * MIB,
            max_descendants: 10_000,
            compact_above: Some(1_000),
        }
    }
}

impl Run {
    /// Executions of nodes of one kind, over the whole run.
    pub(crate) fn executions_of(&self, kind: impl Fn(&Kind) -> bool) -> u32 {
        let nodes = self.def.nodes.iter().zip(self.nodes());
        let ours = nodes.filter(|(node, _)| kind(&node.kind));
        ours.map(|(_, state)| state.execution).sum()
    }

    fn configured(&self, key: &str) -> Option<u64> {
        let options = &self.started_request()?.options;
        options
            .configurable
            .as_ref()?
            .get(key)
            .and_then(Value::as_u64)
    }

    pub(crate) fn execution_limit(&self, limits: &Limits) -> u64 {
        let requested = self.configured("recursionLimit").unwrap_or(u64::MAX);
        requested.min(limits.max_node_executions)
    }

    pub(crate) fn loop_limit(&self, limits: &Limits) -> u64 {
        let requested = self.configured("maxLoopIterations").unwrap_or(u64::MAX);
        requested.min(limits.max_loop_iterations)
    }

    /// The limit of the run's duration, and the time at which it is reached.
    pub(crate) fn duration_limit(&self, limits: &Limits) -> (u64, Timestamp) {
        let requested = self.configured("runTimeoutMs").unwrap_or(u64::MAX);
        let authored = match self.def.document.settings.timeout {
            0 => u64::MAX,
            ms => ms,
        };
        let limit = requested.min(authored).min(limits.max_run_duration_ms);
        let paused = self.state.lifecycle.paused_ms;
        (limit, self.begun_at().plus_ms(limit).plus_ms(paused))
    }

    /// How long the run has been running, without the time it was paused.
    pub(crate) fn elapsed_ms(&self, now: Timestamp) -> u64 {
        let since = now.ms_since(self.begun_at());
        since.saturating_sub(self.state.lifecycle.paused_ms)
    }

    pub(crate) fn loopback_limit(&self) -> u32 {
        self.def
            .document
            .settings
            .max_loopback_iterations
            .unwrap_or(5)
    }
}
