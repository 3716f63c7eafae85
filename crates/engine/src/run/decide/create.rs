//! Creates a run: checks it against its definition, seeds its variables, and advances it. A child
//! created in its parent's commit is not advanced.

use super::cancel::cancel;
use crate::conformance::{may_omit_inputs, refused_node};
use crate::definition::{Definition, Problem};
use crate::run::children::NewChildRun;
use crate::run::draft::{Context, Decision, DecisionDraft};
use crate::run::lifecycle::{check_options, too_much_to_check};
use crate::run::refusal::{Refusal, Undecided};
use crate::run::state::Run;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{Cause, Event, Object, Reply, RunId, RunRequest};

pub fn create(
    def: &Arc<Definition>,
    run_id: RunId,
    request: RunRequest,
    cause: Option<Cause>,
    cx: &Context<'_>,
) -> Result<Decision, Undecided> {
    let decide = |cx: &Context<'_>| {
        let request = RunRequest {
            execution_model: cx.agents.capped_version(request.execution_model),
            ..request.clone()
        };
        check(def, &request, cx)?;
        let run = Run::new(run_id.clone(), Arc::clone(def));
        let mut draft = DecisionDraft::new(&run, cx);
        start_run(&mut draft, request, cause.clone());
        draft.advance();
        draft.into_decision(Reply::Accepted)
    };
    cx.within_work_limit(decide, |_| Err(too_much_to_check().into()))
}

/// The first event of a child run. The child is not advanced here: the parent's commit must not
/// wait for lookups of the child. A child that its parent cancelled in the same decision ends at
/// once.
pub fn create_child_run(new_child: NewChildRun, cx: &Context<'_>) -> Decision {
    let parent = new_child.request.parent.as_ref().map(|p| p.run_id.clone());
    let run = Run::new(new_child.child, new_child.definition);
    let mut draft = DecisionDraft::new(&run, cx);
    start_run(&mut draft, new_child.request, Some(new_child.cause));
    if new_child.cancelled_at_creation {
        cancel(&mut draft, None, None, parent);
    } else {
        draft.schedule_continue();
    }
    draft.finish(Reply::Accepted)
}

fn start_run(draft: &mut DecisionDraft<'_>, request: RunRequest, cause: Option<Cause>) {
    let def = &draft.run.def;
    let started = Event::RunStarted {
        workflow_id: def.id().clone(),
        definition: def.hash.clone(),
        variables: seed(def, &request),
        request: Box::new(request),
        engine_version: crate::ENGINE_VERSION,
    };
    draft.emit_with_cause(started, cause);
}

/// Whether a run may start with this request.
pub(in crate::run) fn check(
    def: &Definition,
    request: &RunRequest,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    check_served(def, request, cx)?;
    let mut problems = check_options(&request.options);
    problems.extend(cx.providers.check_options(&request.options));
    if let Some(status @ ("archived" | "inactive")) = def.document.status.as_deref() {
        let message = format!("the workflow is {status}; no run of it may start");
        problems.push(Problem::new("/workflowId", message));
    }
    problems.extend(def.check_configurable(&request.options, cx.work));
    problems.extend(check_all_inputs(
        def,
        &request.erased_defaults,
        &request.inputs,
    ));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(problems))
    }
}

/// What is wrong with the inputs of a run, at their places below `/inputs`.
pub(crate) fn check_all_inputs(
    def: &Definition,
    erased_defaults: &[String],
    inputs: &Object,
) -> Vec<Problem> {
    let mut problems = check_inputs(def, erased_defaults, |name| inputs.get(name));
    let channels = inputs
        .keys()
        .filter(|name| def.channels.contains_key(*name));
    problems.extend(channels.map(|name| {
        let path = format!("/inputs/{name}");
        Problem::new(path, "is a channel; inputs set variables only")
    }));
    problems
}

/// Whether this host provides everything the workflow uses, for a run like this.
pub(in crate::run) fn check_served(
    def: &Definition,
    request: &RunRequest,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    if let Some((node, type_id, capability)) = def
        .gated()
        .or_else(|| cx.agents.first_missing_capability(def))
    {
        return Err(Refusal::CapabilityRequired {
            capability,
            type_id: type_id.to_owned(),
            node: node.clone(),
        });
    }
    match refused_node(def, request, cx) {
        Some((node, type_id)) => Err(Refusal::TypeRefused {
            type_id: type_id.to_owned(),
            node: node.clone(),
        }),
        None => Ok(()),
    }
}

/// Checks the inputs of a caller or a parent against the workflow's declarations. Undeclared inputs
/// are accepted, and `null` leaves an optional input unset.
pub(in crate::run) fn check_inputs<'v>(
    def: &Definition,
    erased_defaults: &[String],
    input: impl Fn(&str) -> Option<&'v Value>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for variable in &def.document.variables {
        let given = input(&variable.name).filter(|value| !value.is_null());
        let has_default =
            variable.default_value.is_some() && !erased_defaults.contains(&variable.name);
        let fault = match given {
            Some(value) if !variable.accepts(value) => {
                format!(
                    "must be {}, as the workflow declares",
                    variable.kind_label()
                )
            }
            None if variable.required && !has_default && !may_omit_inputs(def) => {
                format!(
                    "is required: the workflow declares {}",
                    variable.kind_label()
                )
            }
            _ => continue,
        };
        let path = format!("/inputs/{}", escaped(&variable.name));
        problems.push(Problem::new(path, fault));
    }
    problems
}

/// A name as a segment of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Defaults, overwritten by inputs.
fn seed(def: &Definition, request: &RunRequest) -> Object {
    let mut variables = Object::new();
    for variable in &def.document.variables {
        if let Some(default) = &variable.default_value
            && !request.erased_defaults.contains(&variable.name)
        {
            variables.insert(variable.name.clone(), default.clone());
        }
    }
    variables.extend(request.inputs.clone());
    variables
}
