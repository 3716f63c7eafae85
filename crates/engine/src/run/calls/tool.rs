//! Nodes that call a tool server. The call is emitted and recorded completely in the decision that
//! makes it an effect. The result is recorded by its digest, and the node's outputs are marked as
//! data from outside.
//!
//! ```text
//! started, agent.toolCalled --result--> agent.toolReturned, completed (a tool's own error included)
//!                           --fault---> agent.toolReturned, retried or failed
//! ```

use crate::ids::{logical_invocation_id, tool_call_id};
use crate::node::ToolNode;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tandem_record::{
    AgentEventKind, EffectId, EffectOutcome, ErrorInfo, NodeId, Object, RunId, Seq, TenantId,
    ToolOperation, ToolRequest, ToolTransport, Work,
};

/// The id of the call a node makes in one execution; every attempt repeats it.
pub(in crate::run) fn tool_effect(
    tenant: &TenantId,
    run: &RunId,
    node: &NodeId,
    execution: u32,
) -> EffectId {
    logical_invocation_id(tenant, run, node, u64::from(execution), "tandem:tool")
}

impl DecisionDraft<'_> {
    pub(in crate::run) fn tool_call(
        &self,
        ix: usize,
        config: &ToolNode,
        inputs: &Object,
        execution: u32,
        attempt: u32,
    ) -> Result<Work, ErrorInfo> {
        let argument = |name: &str| {
            let port = inputs.get(name).cloned();
            port.or_else(|| {
                self.run
                    .variable(name)
                    .filter(|_| config.tool_name().is_none())
                    .cloned()
            })
        };
        let request = config.request(self.cx.tools, argument)?;
        let node = &self.run.def.nodes[ix].id;
        let tenant = &self.run.request().owner.tenant;
        Ok(Work::Tool {
            effect: tool_effect(tenant, self.run.id(), node, execution),
            call: tool_call_id(self.run.id(), node, execution, attempt as usize),
            request: Box::new(request),
        })
    }

    /// Emits the call that a node has started to make. Listing the available tools is not a call.
    pub(in crate::run) fn emit_tool_called(&mut self, ix: usize, cause: Seq) {
        let Some((call, request)) = self.call_under_way(ix) else {
            return;
        };
        let ToolOperation::Call { tool, arguments } = request.operation else {
            return;
        };
        let event = AgentEventKind::ToolCalled {
            tool,
            call,
            inputs: Some(Value::Object(arguments)),
            transport: Some(ToolTransport::Mcp),
            principal: self.run.request().owner.principal.clone(),
        };
        let emitter = self
            .run
            .agent_emitter(ix)
            .expect("a node that calls has an agent emitter");
        self.emit_agent_event(&emitter, event, cause);
    }

    fn call_under_way(&self, ix: usize) -> Option<(String, ToolRequest)> {
        match &self.run.node(ix).work {
            Some(Work::Tool { call, request, .. }) => Some((call.clone(), (**request).clone())),
            _ => None,
        }
    }

    /// Handles the server's answer, or its failure.
    pub(in crate::run) fn tool_answered(&mut self, ix: usize, outcome: EffectOutcome, cause: Seq) {
        let result = match outcome {
            EffectOutcome::Done { mut outputs } => Ok(outputs.remove("result")),
            EffectOutcome::Failed { error } => Err(error),
            EffectOutcome::Pack(_) => Ok(None),
        };
        let result = result.and_then(|result| {
            let object = result.filter(Value::is_object);
            object.ok_or_else(|| ErrorInfo::new("internal_error", "the answer is not one"))
        });
        match result {
            Ok(result) => {
                let calls = matches!(
                    self.call_under_way(ix),
                    Some((
                        _,
                        ToolRequest {
                            operation: ToolOperation::Call { .. },
                            ..
                        }
                    ))
                );
                let is_error = result.get("isError") == Some(&Value::Bool(true));
                let cause = self.emit_tool_returned(ix, Ok((&result, is_error)), cause);
                let mut outputs = Object::from_iter([
                    ("result".to_owned(), result),
                    ("contentTrust".to_owned(), json!("untrusted")),
                ]);
                if calls {
                    outputs.insert("isError".to_owned(), json!(is_error));
                }
                let done = Done {
                    outputs,
                    untrusted: true,
                    ..Done::default()
                };
                self.complete_node(ix, done, cause);
            }
            Err(error) => {
                let cause = self.end_call(ix, &error, cause);
                self.fail_or_retry(ix, error, cause);
            }
        }
    }

    /// Records that a call returned nothing, if the node makes a call.
    pub(in crate::run) fn end_call(&mut self, ix: usize, error: &ErrorInfo, cause: Seq) -> Seq {
        self.emit_tool_returned(ix, Err(error), cause)
    }

    fn emit_tool_returned(
        &mut self,
        ix: usize,
        result: Result<(&Value, bool), &ErrorInfo>,
        cause: Seq,
    ) -> Seq {
        let Some((call, request)) = self.call_under_way(ix) else {
            return cause;
        };
        let ToolOperation::Call { tool, .. } = request.operation else {
            return cause;
        };
        let started = self.run.node(ix).started_at.unwrap_or(self.now);
        let duration_ms = self.now.ms_since(started);
        let outcome = result.ok().map(|(result, is_error)| {
            let (sha256, length) = digest(result);
            json!({
                "resultSha256": sha256, "resultLength": length,
                "isError": is_error, "durationMs": duration_ms,
            })
        });
        let event = AgentEventKind::ToolReturned {
            tool,
            call,
            untrusted: outcome.is_some(),
            outcome,
            error: result.err().cloned(),
            duration_ms: Some(duration_ms),
        };
        let emitter = self
            .run
            .agent_emitter(ix)
            .expect("a node that calls has an agent emitter");
        self.emit_agent_event(&emitter, event, cause)
    }
}

/// SHA-256 of the canonical form (RFC 8785) and its length in bytes.
fn digest(result: &Value) -> (String, usize) {
    let canonical = serde_jcs::to_vec(result).expect("a parsed JSON value has a canonical form");
    let digest = Sha256::digest(&canonical);
    let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    (hex, canonical.len())
}
