//! A new run: checked against its definition, seeded, and carried as far as it goes at once.

use crate::definition::{Definition, Problem};
use crate::run::options::check_options;
use crate::run::refusal::{Refusal, Undecided};
use crate::run::state::Run;
use crate::run::turn::{Context, Decision, Turn};
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
    check(def, &request, cx)?;
    let run = Run::new(run_id, Arc::clone(def));
    let mut turn = Turn::new(&run, cx);
    let variables = seed(def, &request);
    turn.emit_caused(
        Event::RunStarted {
            workflow_id: def.id().clone(),
            definition: def.hash.clone(),
            request: Box::new(request),
            engine_version: crate::ENGINE_VERSION,
            variables,
        },
        cause,
    );
    turn.advance();
    turn.decided(Reply::Accepted)
}

fn check(def: &Definition, request: &RunRequest, cx: &Context<'_>) -> Result<(), Refusal> {
    if let Some((node, type_id, capability)) = def.gated() {
        return Err(Refusal::CapabilityRequired {
            capability,
            type_id: type_id.to_owned(),
            node: node.clone(),
        });
    }
    let mut problems = check_options(&request.options);
    if let Some(status @ ("archived" | "inactive")) = def.document.status.as_deref() {
        let message = format!("the workflow is {status}; no run of it may start");
        problems.push(Problem::new("/workflowId", message));
    }
    let configurable = request.options.configurable.clone().unwrap_or_default();
    problems.extend(def.check_configurable(&Value::Object(configurable)));
    for variable in &def.document.variables {
        let missing = variable.required
            && variable.default_value.is_none()
            && !request.inputs.contains_key(&variable.name);
        // A parent that mapped nothing onto it meant to leave it unset.
        if missing && cx.limits.require_inputs && request.parent.is_none() {
            let path = format!("/inputs/{}", variable.name);
            problems.push(Problem::new(path, "this input is required"));
        }
    }
    for name in request
        .inputs
        .keys()
        .filter(|name| def.channels.contains_key(*name))
    {
        let path = format!("/inputs/{name}");
        problems.push(Problem::new(
            path,
            "is a channel; inputs set variables only",
        ));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(problems))
    }
}

/// Defaults, then inputs over them.
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
