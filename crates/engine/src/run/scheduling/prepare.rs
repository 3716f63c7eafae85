//! Before a node starts: whether it may, and the work it will wait for. The started event records
//! that work.

use super::finish::Done;
use crate::conformance;
use crate::ids::logical_invocation_id;
use crate::node::{self, Kind};
use crate::run::draft::DecisionDraft;
use serde_json::json;
use std::sync::Arc;
use tandem_record::{EffectId, ErrorInfo, NodeId, Object, Seq, Work};

impl DecisionDraft<'_> {
    /// Checks whether a node may start.
    pub(super) fn admit(&mut self, ix: usize) -> Result<(), ErrorInfo> {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        conformance::admit(self, ix)?;
        let missing = self.cx.agents.missing_capability(&node.kind);
        if let Some(capability) = missing.filter(|_| !self.is_replaying()) {
            let message = format!("this host does not serve {capability:?}");
            return Err(ErrorInfo::new("capability_not_provided", message));
        }
        match &node.kind {
            Kind::Conformance(kind) => kind.admit(self, ix),
            Kind::Gated { capability } => Err(ErrorInfo::new(
                "capability_not_provided",
                format!("this host does not serve {capability:?}"),
            )),
            Kind::Model(config) => self.admit_prompt(config),
            _ => Ok(()),
        }
    }

    /// The work the node will wait for. It is decided before the start because the started event
    /// records it.
    pub(super) fn prepare(
        &mut self,
        ix: usize,
        inputs: &Object,
        execution: u32,
        attempt: u32,
    ) -> Result<Option<Work>, ErrorInfo> {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        if self.is_replaying() && !self.is_repeatable(ix) && !node.kind.only_waits() {
            return Err(replay_source_missing(&node.id));
        }
        match &node.kind {
            Kind::Delay { configured } => {
                let ms = node::delay_ms(inputs, &self.run.request().inputs, *configured)
                    .map_err(|message| ErrorInfo::new("validation_error", message))?;
                Ok(self.sleep(ms, None))
            }
            Kind::Http(config) => {
                let request = config.request(inputs).ok_or_else(|| {
                    ErrorInfo::new(
                        "validation_error",
                        "the node has no url in config or inputs",
                    )
                })?;
                Ok(Some(Work::Http {
                    effect: self.invocation_id(ix, execution, "tandem:http"),
                    request,
                    output: config.output.clone(),
                }))
            }
            Kind::Model(config) => {
                let call = self.model_call(ix, config, inputs, execution, None)?;
                if self.is_replaying() {
                    return Err(replay_source_missing(&node.id));
                }
                Ok(Some(call))
            }
            Kind::Tool(config) => {
                let call = self.tool_call(ix, config, inputs, execution, attempt)?;
                Ok(Some(call))
            }
            Kind::Pack => {
                let call =
                    self.pack_work(ix, self.invocation_id(ix, execution, "tandem:pack"), inputs)?;
                Ok(Some(call))
            }
            Kind::Memory(_) => {
                self.ensure_memory_loaded(ix);
                Ok(None)
            }
            Kind::Conformance(kind) => kind.prepare(self, ix, inputs, execution),
            Kind::Supervisor(config) => {
                let endpoint_request = self.supervisor_request(ix, config, attempt);
                Ok(endpoint_request.map(|request| Work::Http {
                    effect: self.invocation_id(ix, execution, "tandem:supervisor"),
                    request,
                    output: None,
                }))
            }
            Kind::SubWorkflow(config) => {
                let work = self.prepare_child(ix, config, execution, attempt)?;
                Ok(Some(work))
            }
            Kind::ChatFlow(config) => self.prepare_flow(ix, config, inputs, execution, attempt),
            _ => Ok(None),
        }
    }

    /// The identity of a call that one execution of a node makes.
    pub(crate) fn invocation_id(&self, ix: usize, execution: u32, provider: &str) -> EffectId {
        let tenant = &self.run.request().owner.tenant;
        let node = &self.run.def.nodes[ix].id;
        logical_invocation_id(tenant, self.run.id(), node, u64::from(execution), provider)
    }

    /// A sleep of `ms`. A replay has no timers: its sleeps end at once.
    pub(crate) fn sleep(&self, ms: u64, outputs: Option<Object>) -> Option<Work> {
        let until = self.now.plus_ms(ms);
        (ms > 0 && !self.is_replaying()).then_some(Work::Sleep { until, outputs })
    }

    /// Completes a sleeping node.
    pub(in crate::run) fn wake(&mut self, ix: usize, cause: Seq) {
        let state = self.run.node(ix);
        let Some(Work::Sleep { until, outputs }) = &state.work else {
            unreachable!("only a node that sleeps wakes");
        };
        let outputs = outputs.clone().unwrap_or_else(|| {
            // A replay wakes a node before its time.
            let woke = self.now.max(*until);
            let slept = woke.ms_since(state.started_at.unwrap_or(woke));
            Object::from_iter([("waitedMs".to_owned(), json!(slept))])
        });
        self.complete_node(ix, Done::with(outputs), cause);
    }
}

/// A replay has nothing to repeat here.
fn replay_source_missing(node: &NodeId) -> ErrorInfo {
    ErrorInfo::new(
        "replay_source_missing",
        format!("the source recorded nothing for node {node}"),
    )
}
