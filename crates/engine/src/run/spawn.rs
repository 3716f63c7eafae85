//! Child runs: whether one may start, what it gets, and telling the outbox to create it.

use super::refusal::Need;
use super::turn::{Lookup, Turn};
use crate::ids::child_run_id;
use crate::node::{Kind, SubWorkflow};
use std::sync::Arc;
use tandem_record::{
    EffectKind, ErrorInfo, Event, Object, ParentLink, RunId, RunOptions, RunRequest, Seq,
    StartChild, Work, WorkflowId,
};

impl Turn<'_> {
    pub(super) fn prepare_child(
        &mut self,
        ix: usize,
        config: &SubWorkflow,
        execution: u32,
        attempt: u32,
    ) -> Result<Work, ErrorInfo> {
        let unknown = |message: String| Err(ErrorInfo::new("unknown_child_workflow", message));
        let child_def = match self.cx.definitions.current(&config.workflow_id) {
            Lookup::Known(def) => def,
            Lookup::Unknown => {
                return unknown(format!("there is no workflow {}", config.workflow_id));
            }
            Lookup::NotLoaded => {
                self.needs = Some(Need::Workflow(config.workflow_id.clone()));
                return unknown(String::new());
            }
        };
        if let Some((node, type_id, capability)) = child_def.gated() {
            return Err(ErrorInfo::new(
                "capability_not_provided",
                format!("node {node} of the child is a {type_id}, which needs {capability}"),
            ));
        }
        let lineage = self.lineage();
        if lineage.contains(&config.workflow_id) {
            return Err(ErrorInfo::new(
                "subworkflow_cycle_detected",
                format!("workflow {} would start itself again", config.workflow_id),
            ));
        }
        if lineage.len() >= self.cx.limits.max_depth {
            return Err(ErrorInfo::new(
                "subworkflow_depth_exceeded",
                format!(
                    "child runs nest at most {} levels deep",
                    self.cx.limits.max_depth
                ),
            ));
        }
        Ok(Work::Child {
            // Another attempt is another child: the one given up may be gone already.
            child: child_run_id(
                self.run.id(),
                &self.run.def.nodes[ix].id,
                execution,
                attempt,
            ),
            workflow_id: config.workflow_id.clone(),
            outputs: config.output_mapping.clone(),
            absorb_failure: config.absorb_failure,
            propagate_cancel: config.propagate_cancel,
        })
    }

    /// Workflow ids from the root run down to this one.
    fn lineage(&self) -> Vec<WorkflowId> {
        let parent = self.run.request().parent.as_ref();
        let mut lineage = parent.map(|p| p.lineage.clone()).unwrap_or_default();
        lineage.push(self.run.def.id().clone());
        lineage
    }

    /// A fork's own child in place of the one its source waited for.
    pub(super) fn start_child_again(
        &mut self,
        ix: usize,
        child: RunId,
        workflow_id: WorkflowId,
        cause: Seq,
    ) {
        match self.cx.definitions.current(&workflow_id) {
            Lookup::Known(_) => {
                let cause = self.resume_mirror(ix, cause);
                self.dispatch_child(ix, child, workflow_id, cause);
            }
            Lookup::Unknown => {
                let message = format!("there is no workflow {workflow_id}");
                let error = ErrorInfo::new("unknown_child_workflow", message);
                self.fail_node(ix, error, Some(cause), None);
            }
            Lookup::NotLoaded => self.needs = Some(Need::Workflow(workflow_id)),
        }
    }

    pub(super) fn dispatch_child(
        &mut self,
        ix: usize,
        child: RunId,
        workflow_id: WorkflowId,
        started: Seq,
    ) {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        let Kind::SubWorkflow(config) = &node.kind else {
            unreachable!("only sub-workflow nodes wait for a child");
        };
        let Lookup::Known(child_def) = self.cx.definitions.current(&workflow_id) else {
            unreachable!("prepare_child saw the definition in this turn");
        };
        let cause = self.emit(
            Event::NodeDispatched {
                node: node.id.clone(),
                child: child.clone(),
                workflow_id: workflow_id.clone(),
            },
            Some(started),
        );
        let mut inputs = Object::new();
        let mut erased_defaults = Vec::new();
        for (theirs, ours) in &config.input_mapping {
            match self.run.variable(ours) {
                Some(value) => {
                    inputs.insert(theirs.clone(), value);
                }
                // An unset variable erases the child's default instead of leaving it.
                None => erased_defaults.push(theirs.clone()),
            }
        }
        let memory = self.child_memory(&child, config.isolated_memory, cause);
        let request = self.run.request();
        let start = StartChild {
            child: child.clone(),
            workflow_id,
            definition: child_def.hash.clone(),
            cause,
            principal: request.owner.principal.clone(),
            request: RunRequest {
                owner: request.owner.clone(),
                inputs,
                erased_defaults,
                options: RunOptions::default(),
                scope_id: None,
                callback_url: None,
                parent: Some(ParentLink {
                    run_id: self.run.id().clone(),
                    node_id: node.id.clone(),
                    dispatched_at: cause,
                    lineage: self.lineage(),
                    harvest: config
                        .output_mapping
                        .iter()
                        .map(|(_, child)| child.clone())
                        .collect(),
                }),
                transport: request.transport,
                trace: request.trace.clone(),
                memory: Some(memory),
                forked_from: None,
            },
        };
        self.once(
            format!("start:{child}"),
            EffectKind::StartChild(Box::new(start)),
        );
    }
}
