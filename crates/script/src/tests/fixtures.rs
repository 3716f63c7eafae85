//! Agents as folders, flows as text.

use crate::{
    AgentModule, AgentRealm, FlowInstance, FlowStart, FlowStep, ScriptLimits, SourceSet,
    Surroundings, load,
};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub(super) const AGENT: &str = "export default { prompt: 'You are the desk.' };";

/// 2026-01-01T12:00:00Z.
pub(super) const NOON_MS: i64 = 1_767_268_800_000;

pub(super) fn surroundings() -> Surroundings {
    Surroundings {
        now_ms: NOON_MS,
        seed: b"seed".to_vec(),
        time_zone: "UTC".to_owned(),
    }
}

/// A folder of agents.
pub(super) struct Agents {
    pub(super) folder: TempDir,
}

impl Agents {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let agents = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        for (path, text) in files {
            agents.write(path, text);
        }
        agents
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(super) fn load(&self, agent: &str) -> AgentModule {
        load(&self.path(agent), ScriptLimits::default(), &surroundings())
    }
}

/// Loads the agent `demo` with these files in its folder.
pub(super) fn demo(files: &[(&str, &str)]) -> AgentModule {
    let agents = Agents::with(&[]);
    if !files.iter().any(|(path, _)| path.starts_with("agent.")) {
        agents.write("demo/agent.ts", AGENT);
    }
    for (path, text) in files {
        agents.write(&format!("demo/{path}"), text);
    }
    agents.load("demo")
}

/// The agent's realm of a sound configuration.
pub(super) fn realm(config: &str) -> AgentRealm {
    let source = format!("import * as t from 'tandem';\nexport default {config};");
    let module = demo(&[("agent.ts", source.as_str())]);
    assert_eq!(module.errors, []);
    let code = module.code.expect("a sound agent");
    AgentRealm::create(&code, ScriptLimits::default(), &surroundings()).expect("a sound agent")
}

/// The source of a flow file, loaded.
pub(super) fn source_of(flow_file: &str) -> (Arc<SourceSet>, AgentModule) {
    let module = demo(&[("flows/flows.ts", flow_file)]);
    assert_eq!(module.errors, []);
    let set = module.sources.values().next().expect("a flow").clone();
    (set, module)
}

/// An instance of the flow `main` with this body.
pub(super) fn flow(body: &str) -> FlowInstance {
    flow_with(body, json!({}), ScriptLimits::default())
}

pub(super) fn flow_with(body: &str, context: Value, limits: ScriptLimits) -> FlowInstance {
    let file = format!("export async function* main(ctx) {{\n{body}\n}}");
    let (set, _) = source_of(&file);
    start(set, "main", context, limits)
}

pub(super) fn start(
    set: Arc<SourceSet>,
    flow_id: &str,
    context: Value,
    limits: ScriptLimits,
) -> FlowInstance {
    let start = FlowStart {
        flow_id,
        context: &object(context),
        surroundings: &surroundings(),
    };
    FlowInstance::create(set, limits, &start).expect("the flow can start")
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

pub(super) fn effect(step: FlowStep) -> Value {
    match step {
        FlowStep::Effect(effect) => effect,
        other => panic!("not an effect: {other:?}"),
    }
}

/// The text of a `say`.
pub(super) fn say_text(step: FlowStep) -> String {
    let effect = effect(step);
    assert_eq!(effect["type"], "say", "{effect}");
    effect["text"].as_str().expect("a text").to_owned()
}

/// Code and message of a failed step.
pub(super) fn failure(step: FlowStep) -> (&'static str, String) {
    match step {
        FlowStep::Failed(failure) => (failure.code.as_str(), failure.message),
        other => panic!("not a failure: {other:?}"),
    }
}

/// What a flow says that only says one text.
pub(super) fn says(expression: &str) -> String {
    say_text(
        flow(&format!(
            "yield {{ type: 'say', text: String({expression}) }};"
        ))
        .next(None),
    )
}
