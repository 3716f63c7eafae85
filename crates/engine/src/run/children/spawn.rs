//! Child runs: whether one may start, and its inputs.

use super::new_child_run::NewChildRun;
use crate::cost::charge_copies;
use crate::definition::Definition;
use crate::ids::child_run_id;
use crate::node::{Kind, SubWorkflow};
use crate::run::decide::{check, check_inputs};
use crate::run::draft::{DecisionDraft, Lookup};
use crate::run::refusal::{Need, Refusal};
use serde_json::json;
use std::sync::Arc;
use tandem_record::{
    Cause, ChildOutcome, EffectKind, ErrorInfo, Event, Masking, Object, ParentCause, ParentLink,
    RunId, RunRequest, RunStatus, Seq, Size, Work, WorkflowId,
};

/// Problems that an error names; the message names the first ones.
const MAX_LISTED_PROBLEMS: usize = 32;

/// A child run to be created for a node.
pub(in crate::run) struct ChildRunSpec<'c> {
    pub(in crate::run) ix: usize,
    pub(in crate::run) child: RunId,
    pub(in crate::run) definition: Arc<Definition>,
    /// Inputs besides its parent's variables.
    pub(in crate::run) given: Object,
    /// Child variable ← parent variable.
    pub(in crate::run) inputs: &'c [(String, String)],
    /// Parent variable ← child variable.
    pub(in crate::run) outputs: &'c [(String, String)],
    pub(in crate::run) cause: ParentCause,
    /// The event that named the child.
    pub(in crate::run) dispatched: Seq,
    pub(in crate::run) isolated_memory: bool,
}

impl DecisionDraft<'_> {
    pub(in crate::run) fn prepare_child(
        &mut self,
        ix: usize,
        config: &SubWorkflow,
        execution: u32,
        attempt: u32,
    ) -> Result<Work, ErrorInfo> {
        let child_def = self.admit_child(&config.workflow_id)?;
        self.check_child_inputs(&child_def, &config.input_mapping)?;
        Ok(Work::Child {
            // Each attempt has its own child: the earlier one may have ended already.
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

    /// The definition a child of this workflow would run, if it may start at all. Sets `needs` when
    /// it is not known yet.
    pub(in crate::run) fn admit_child(
        &mut self,
        workflow: &WorkflowId,
    ) -> Result<Arc<Definition>, ErrorInfo> {
        let unknown = |message: String| Err(ErrorInfo::new("unknown_child_workflow", message));
        let child_def = match self.cx.definitions.current(workflow) {
            Lookup::Known(def) => def,
            Lookup::Unknown => return unknown(format!("there is no workflow {workflow}")),
            Lookup::NotLoaded => {
                self.needs = Some(Need::Workflow(workflow.clone()));
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
        if lineage.contains(workflow) {
            return Err(ErrorInfo::new(
                "subworkflow_cycle_detected",
                format!("workflow {workflow} would start itself again"),
            ));
        }
        let levels_above = self.run.request().levels_above as usize;
        if levels_above + lineage.len() >= self.cx.limits.max_depth {
            return Err(ErrorInfo::new(
                "subworkflow_depth_exceeded",
                format!(
                    "child runs nest at most {} levels deep",
                    self.cx.limits.max_depth
                ),
            ));
        }
        self.admit_descendant()?;
        Ok(child_def)
    }

    /// Whether the variables that a child is given are what its workflow declares.
    pub(in crate::run) fn check_child_inputs(
        &self,
        child_def: &Definition,
        mapping: &[(String, String)],
    ) -> Result<(), ErrorInfo> {
        let given = |theirs: &str| {
            let (_, ours) = mapping.iter().find(|(name, _)| name == theirs)?;
            self.run.variable(ours)
        };
        let unset = mapping.iter().filter(|(theirs, _)| given(theirs).is_none());
        let erased: Vec<String> = unset.map(|(theirs, _)| theirs.clone()).collect();
        let problems = check_inputs(child_def, &erased, given);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(child_refused(&Refusal::Invalid(problems))),
        }
    }

    /// Workflow ids from the root run down to this one.
    fn lineage(&self) -> Vec<WorkflowId> {
        let parent = self.run.request().parent.as_ref();
        let mut lineage = parent.map(|p| p.lineage.clone()).unwrap_or_default();
        lineage.push(self.run.def.id().clone());
        lineage
    }

    /// Starts the fork's own child in place of the one its source waited for.
    pub(in crate::run) fn start_child_again(
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

    pub(in crate::run) fn dispatch_child(
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
            unreachable!("prepare_child found the definition in this decision");
        };
        let dispatched = self.emit(
            Event::NodeDispatched {
                node: node.id.clone(),
                child: child.clone(),
                workflow_id,
            },
            Some(started),
        );
        self.start_child(ChildRunSpec {
            ix,
            child,
            definition: child_def,
            given: Object::new(),
            inputs: &config.input_mapping,
            outputs: &config.output_mapping,
            cause: ParentCause::SubWorkflow,
            dispatched,
            isolated_memory: config.isolated_memory,
        });
    }

    /// Creates the child run with the current values of the parent's variables.
    pub(in crate::run) fn start_child(&mut self, new: ChildRunSpec<'_>) {
        let mut inputs = new.given;
        let (mut erased_defaults, mut untrusted_inputs) = (Vec::new(), Vec::new());
        let shown = self.run.sensitivity();
        let hides = shown.mode != Masking::Passthrough;
        let mut sensitive_inputs = Vec::new();
        // The value is derived from many others, and only those the author marked were left out.
        let mut names = shown.variables.iter().chain(&shown.channels);
        if hides && names.any(|name| !self.run.def.is_declared_sensitive(name)) {
            sensitive_inputs.extend(inputs.keys().cloned());
        }
        let mut size = Size::of(&inputs);
        for (theirs, ours) in new.inputs {
            match self.run.variable(ours) {
                Some(value) => {
                    size += charge_copies(value, 2, self.cx.work).unwrap_or_default();
                    if self.cx.work.exceeded() || self.admit_inputs(size).is_err() {
                        // Refused below; many inputs may show one value.
                        break;
                    }
                    inputs.insert(theirs.clone(), value.clone());
                    if self.run.untrusted_names().contains(ours) {
                        untrusted_inputs.push(theirs.clone());
                    }
                    if hides && shown.holds(ours) {
                        sensitive_inputs.push(theirs.clone());
                    }
                }
                // An unset variable erases the child's default.
                None => erased_defaults.push(theirs.clone()),
            }
        }
        // A worker sees the memory that its iteration sees.
        let known = self
            .run
            .iteration_view_start(new.ix)
            .unwrap_or(new.dispatched);
        let memory = self.child_memory(&new.child, new.isolated_memory, known);
        let request = self.run.request();
        let new_child = NewChildRun {
            child: new.child,
            definition: new.definition,
            cause: Cause::External(self.run.id().event_id(new.dispatched)),
            cancelled_at_creation: false,
            request: RunRequest {
                owner: request.owner.clone(),
                inputs,
                erased_defaults,
                untrusted_inputs,
                sensitive_inputs,
                options: self.run.inherited_options(),
                scope_id: None,
                // All descendants use the callback of the root run.
                callback_url: request.callback_url.clone(),
                callback_may_answer: request.callback_may_answer,
                parent: Some(ParentLink {
                    run_id: self.run.id().clone(),
                    node_id: self.run.def.nodes[new.ix].id.clone(),
                    dispatched_at: new.dispatched,
                    lineage: self.lineage(),
                    harvest: new.outputs.iter().map(|(_, child)| child.clone()).collect(),
                    cause: new.cause,
                    root: Some(self.run.tree_root()),
                }),
                claimed_parent: None,
                waiting_session: None,
                conformance_role: request.conformance_role,
                execution_model: request.execution_model,
                isolated_memory: new.isolated_memory,
                transport: request.transport,
                trace: request.trace.clone(),
                memory: Some(memory),
                forked_from: None,
                forked_by: request.forked_by.clone(),
                levels_above: request.levels_above,
            },
        };
        let admitted = self.admit_inputs(size);
        let checked =
            admitted.and_then(|()| check(&new_child.definition, &new_child.request, self.cx));
        match checked {
            Ok(()) => {
                // Counted three times: in its request, in its variables, and in its state.
                self.note_carried(size + size + size);
                self.children.created.push(new_child);
            }
            Err(refusal) => self.report_refused_child(new.ix, new_child.child, &refusal),
        }
    }

    /// The child cannot be created; the node that named it must not wait for it forever.
    fn report_refused_child(&mut self, ix: usize, child: RunId, refusal: &Refusal) {
        let notification = EffectKind::NotifyParent {
            parent: self.run.id().clone(),
            node: self.run.def.nodes[ix].id.clone(),
            outcome: ChildOutcome::Ended {
                child: child.clone(),
                status: RunStatus::Failed,
                variables: Object::new(),
                untrusted: Vec::new(),
                error: Some(child_refused(refusal)),
            },
        };
        self.add_one_shot_effect(format!("unborn:{child}"), notification);
    }
}

fn child_refused(refusal: &Refusal) -> ErrorInfo {
    let error = ErrorInfo::new("child_refused", refusal.to_string());
    let Refusal::Invalid(problems) = refusal else {
        return error;
    };
    let listed = problems.iter().take(MAX_LISTED_PROBLEMS);
    let listed = listed.map(|problem| json!({"path": problem.path, "message": problem.message}));
    error.with_details(json!({"problems": listed.collect::<Vec<_>>()}))
}
