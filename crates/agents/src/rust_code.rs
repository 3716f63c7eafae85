//! Agents, flows and tools in Rust, as a program that embeds the host registers them.

use crate::rust_tool::RustTool;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use tandem_engine::agent::LoadedFlow;
use tandem_flow::RustFlow;
use tandem_record::Object;

/// Longest version that an author may declare.
const MAX_VERSION: usize = 128;

/// An agent that is defined in Rust, with the settings that `createAgent` takes in TypeScript.
#[derive(Debug, Clone)]
pub struct RustAgent {
    pub(crate) id: String,
    pub(crate) config: Object,
    pub(crate) code: RustCode,
}

impl RustAgent {
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        let config = Object::from_iter([("prompt".to_owned(), Value::String(prompt.into()))]);
        Self {
            id: id.into(),
            config,
            code: RustCode::default(),
        }
    }

    /// Any setting of an agent file that is data, by its name there: `model`, `flowRouter`, `hitl`, ….
    /// Paths begin in the current directory.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: Value) -> Self {
        self.config.insert(name.into(), value);
        self
    }

    #[must_use]
    pub fn flow(mut self, flow: RustFlow) -> Self {
        self.code.flows.push(flow);
        self
    }

    #[must_use]
    pub fn tool(mut self, tool: RustTool) -> Self {
        self.code.tools.push(tool);
        self
    }
}

/// What of one agent is written in Rust.
#[derive(Debug, Clone, Default)]
pub(crate) struct RustCode {
    /// Of several versions of one flow the last is the newest: new runs use it.
    flows: Vec<RustFlow>,
    tools: Vec<RustTool>,
}

impl RustCode {
    /// The flows that new runs use.
    pub(crate) fn newest_flows(&self) -> impl Iterator<Item = &RustFlow> {
        let by_id: BTreeMap<&str, &RustFlow> = self
            .flows
            .iter()
            .map(|flow| (flow.flow_id(), flow))
            .collect();
        by_id.into_values()
    }

    pub(crate) fn loaded_flows(&self) -> impl Iterator<Item = LoadedFlow> {
        self.newest_flows().map(RustFlow::loaded)
    }

    /// The code of a run: its own version, else the newest, whose run is compared with the journal (Z-215).
    pub(crate) fn flow_of_run(&self, flow_id: &str, version: &str) -> Option<&RustFlow> {
        let mut of_id = self.flows.iter().filter(|flow| flow.flow_id() == flow_id);
        let pinned = of_id.clone().find(|flow| flow.version() == version);
        pinned.or_else(|| of_id.next_back())
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&RustTool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The configuration with the tools in Rust after those that it has.
    pub(crate) fn with_tools(&self, config: &Value) -> Value {
        let mut config = config.clone();
        if let Value::Object(settings) = &mut config
            && !self.tools.is_empty()
        {
            let tools = settings.entry("tools").or_insert_with(|| json!([]));
            if let Value::Array(tools) = tools {
                tools.extend(self.tools.iter().map(RustTool::setting));
            }
        }
        config
    }

    fn extend(&mut self, other: Self) {
        self.flows.extend(other.flows);
        self.tools.extend(other.tools);
    }

    /// What cannot be used. The rest is checked with the agent's configuration.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (position, flow) in self.flows.iter().enumerate() {
            let (id, version) = (flow.flow_id(), flow.version());
            let is_same = |other: &RustFlow| other.flow_id() == id && other.version() == version;
            if self.flows[..position].iter().any(is_same) {
                problems.push(format!(
                    "the flow {id:?} is given twice in version {version:?}"
                ));
            }
            if version.len() > MAX_VERSION || version.ends_with(':') {
                problems.push(format!(
                    "the flow {id:?} needs a version of 1 to {MAX_VERSION} bytes"
                ));
            }
        }
        problems
    }
}

/// Everything that a program brings.
#[derive(Debug, Clone, Default)]
pub struct RustAgents {
    pub(crate) agents: Vec<RustAgent>,
    /// For agents in folders, by their ids.
    pub(crate) added: BTreeMap<String, RustCode>,
}

impl RustAgents {
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.added.is_empty()
    }

    pub fn define(&mut self, agent: RustAgent) {
        self.agents.push(agent);
    }

    /// Adds a flow to an agent, whether a folder or this program defines it.
    pub fn add_flow(&mut self, agent: impl Into<String>, flow: RustFlow) {
        let code = self.added.entry(agent.into()).or_default();
        code.flows.push(flow);
    }

    pub fn add_tool(&mut self, agent: impl Into<String>, tool: RustTool) {
        let code = self.added.entry(agent.into()).or_default();
        code.tools.push(tool);
    }

    /// Gives additions to the agents that the program defines itself, and checks everything.
    pub(crate) fn checked(mut self) -> Result<Self, RustAgentError> {
        for agent in &mut self.agents {
            if let Some(added) = self.added.remove(&agent.id) {
                agent.code.extend(added);
            }
        }
        for (position, agent) in self.agents.iter().enumerate() {
            if self.agents[..position].iter().any(|a| a.id == agent.id) {
                return Err(RustAgentError::new(&agent.id, "it is defined twice"));
            }
        }
        let defined = self.agents.iter().map(|agent| (&agent.id, &agent.code));
        for (id, code) in defined.chain(&self.added) {
            let problems = code.problems();
            if !problems.is_empty() {
                return Err(RustAgentError::new(id, problems.join("; ")));
            }
        }
        Ok(self)
    }
}

/// Why the agents of a program cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent {agent:?} cannot be used: {problem}")]
pub struct RustAgentError {
    pub agent: String,
    pub problem: String,
}

impl RustAgentError {
    pub(crate) fn new(agent: &str, problem: impl Display) -> Self {
        Self {
            agent: agent.to_owned(),
            problem: problem.to_string(),
        }
    }
}
