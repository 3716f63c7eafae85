//! Configurations of agents: what is accepted with which defaults, and what is refused.

mod accepted;
mod desk;
mod prompts;
mod refused;

use super::{AgentProblem, AgentSpec, LoadedFlow};
use serde_json::{Value, json};

fn spec(config: &Value) -> AgentSpec {
    spec_with(config, &[])
}

fn spec_with(config: &Value, flows: &[LoadedFlow]) -> AgentSpec {
    match AgentSpec::compile("demo", config, flows) {
        Ok(spec) => spec,
        Err(problems) => panic!("refused: {problems:?}"),
    }
}

fn problems(config: &Value, flows: &[LoadedFlow]) -> Vec<AgentProblem> {
    match AgentSpec::compile("demo", config, flows) {
        Ok(_) => panic!("accepted: {config}"),
        Err(problems) => problems,
    }
}

/// A valid configuration with these fields.
fn with(fields: Value) -> Value {
    let mut config = json!({"prompt": "You are the desk."});
    let fields = fields.as_object().cloned().expect("fields");
    config.as_object_mut().expect("an object").extend(fields);
    config
}

fn flow(flow_id: &str) -> LoadedFlow {
    LoadedFlow {
        flow_id: flow_id.to_owned(),
        version: "v1".to_owned(),
        ..LoadedFlow::default()
    }
}

fn function() -> Value {
    json!({"$fn": true})
}
