//! What a started node is waiting for, and which bound a run met.

use crate::{
    EffectId, HttpRequest, MockCall, ModelRequest, Object, RunId, Timestamp, ToolRequest,
    WorkflowId,
};
use serde::{Deserialize, Serialize};

/// What a started node is waiting for. A node without work ended in the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum Work {
    /// Asleep until the time given.
    Sleep {
        until: Timestamp,
        /// The node's outputs when it wakes; absent: how long it slept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outputs: Option<Object>,
    },
    /// An HTTP call under the effect's id. Its headers stay in the pinned definition: they may
    /// carry credentials, which the log never holds.
    Http {
        effect: EffectId,
        request: HttpRequest,
        /// Variable that receives the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// One call of a model under the effect's id.
    Model {
        effect: EffectId,
        /// Content key of the request: equal requests have equal keys, in every run.
        key: String,
        /// Which call of this execution it is, from 1.
        round: u32,
        /// Its last message tells what was wrong with an earlier answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        corrected: bool,
        request: Box<ModelRequest>,
        /// A mock provider answers it, and nobody is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mock: Option<Box<MockCall>>,
    },
    /// One question to a tool server under the effect's id.
    Tool {
        effect: EffectId,
        /// Ties the answer to the call in what is told of both; each attempt has its own.
        call: String,
        request: Box<ToolRequest>,
    },
    SecretEcho {
        effect: EffectId,
        secret_id: String,
        /// The secret itself is wanted, by a test-only node that tries to make memory keep it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reveal: bool,
    },
    /// One call of a node that a pack brings. Its configuration stays in the pinned definition.
    Pack {
        effect: EffectId,
        /// Whose code it is: `name@version`.
        pack: String,
        inputs: Object,
    },
    /// A child run. `outputs` maps parent variable to child variable.
    Child {
        child: RunId,
        workflow_id: WorkflowId,
        outputs: Vec<(String, String)>,
        absorb_failure: bool,
        propagate_cancel: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    NodeExecutions,
    RunDuration,
    LoopIterations,
    DispatchIterations,
    OrchestratorIterations,
    /// Attempts to get an answer of the wanted shape from a model.
    Schema,
    /// What a pack's node may use.
    WasmMemory,
    WasmFuel,
    WasmExecutionTime,
}

impl CapKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NodeExecutions => "node-executions",
            Self::RunDuration => "run-duration",
            Self::LoopIterations => "loop-iterations",
            Self::DispatchIterations => "dispatch-iterations",
            Self::OrchestratorIterations => "orchestrator-iterations",
            Self::Schema => "schema",
            Self::WasmMemory => "wasm-memory",
            Self::WasmFuel => "wasm-fuel",
            Self::WasmExecutionTime => "wasm-execution-time",
        }
    }
}
