//! The work a started node waits for, and the limits a run can exceed.

use crate::conversation::FlowCall;
use crate::{
    EffectId, HttpRequest, MockCall, ModelRequest, Object, RunId, Timestamp, ToolRequest,
    WorkflowId,
};
use serde::{Deserialize, Serialize};

/// The work a started node waits for. A node without work ended in the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum Work {
    /// Sleeps until the given time.
    Sleep {
        until: Timestamp,
        /// The node's outputs when it wakes; absent: how long it slept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outputs: Option<Object>,
    },
    /// An HTTP call under the effect's id. Its headers stay in the pinned definition: they may
    /// contain credentials, which the log never stores.
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
        /// Its last message describes what was wrong with an earlier answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        corrected: bool,
        request: Box<ModelRequest>,
        /// A mock provider answers it, and no real provider is called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mock: Option<Box<MockCall>>,
    },
    /// One request to a tool server under the effect's id.
    Tool {
        effect: EffectId,
        /// Connects the events of the call and its answer; each attempt has its own.
        call: String,
        request: Box<ToolRequest>,
    },
    SecretEcho {
        effect: EffectId,
        secret_id: String,
        /// The secret itself is returned, for a test-only node that tries to store it in memory.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reveal: bool,
    },
    /// One call of a pack's node. Its configuration stays in the pinned definition.
    Pack {
        effect: EffectId,
        /// The pack: `name@version`.
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
    /// A flow of a conversation under this run id.
    Flow {
        flow_run: RunId,
        call: Box<FlowCall>,
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
    /// Attempts to get an answer of the required shape from a model.
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
