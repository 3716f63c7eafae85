//! What one realm may use (Z-209).

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScriptLimits {
    /// Heap of one realm.
    pub heap_bytes: usize,
    /// Stack of the interpreter.
    pub stack_bytes: usize,
    /// CPU time of a flow between two effects, and of an agent's function between two answers.
    pub cpu_ms: u64,
    /// CPU time for evaluating the modules of one file while an agent is loaded.
    pub load_cpu_ms: u64,
    /// An effect, the arguments of a host call or a result, as JSON.
    pub value_bytes: usize,
    /// The configuration of an agent, as JSON.
    pub config_bytes: usize,
    /// Host calls that wait for an answer at the same time.
    pub host_calls: usize,
    /// Effects that a flow may produce while it is closed.
    pub closing_effects: usize,
    /// Lines of `console` that wait to be taken. Later lines are dropped.
    pub log_lines: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            heap_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            cpu_ms: 250,
            load_cpu_ms: 2_000,
            value_bytes: 256 << 10,
            config_bytes: 4 << 20,
            host_calls: 1_000,
            closing_effects: 100,
            log_lines: 200,
        }
    }
}
