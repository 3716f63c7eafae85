//! The library: a server inside another program, with agents, flows, tools and nodes in Rust.
//!
//! An embedded server is `tandem serve` without the process around it: it runs on the program's threads,
//! reads no environment and no file unless asked to, and leaves log and signals to the program.

mod server;

pub use server::{ServeError, TandemServer};

use crate::config::{self, Environment, Hidden, Layer, Settings};
use crate::failure::Failure;
use crate::serve::Extensions;
use std::path::PathBuf;
use tandem_agents::{RustAgent, RustAgents, RustTool};
use tandem_flow::RustFlow;
use tandem_nodes::RustNode;

/// The host as a library.
pub struct Tandem;

impl Tandem {
    pub fn builder() -> TandemBuilder {
        TandemBuilder::default()
    }
}

/// What a server is started with. The defaults are those of `tandem serve`.
#[derive(Default)]
#[must_use = "nothing is started before `serve`"]
pub struct TandemBuilder {
    layer: Layer,
    config: Option<PathBuf>,
    reads_environment: bool,
    key: Option<Hidden>,
    agents: RustAgents,
    nodes: Vec<RustNode>,
}

impl TandemBuilder {
    /// `sqlite:PATH`.
    pub fn store(mut self, store: impl Into<String>) -> Self {
        self.layer.store = Some(store.into());
        self
    }

    /// `HOST:PORT`. Port 0 takes a free one; [`TandemServer::address`] tells which.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.layer.listen = Some(address.into());
        self
    }

    /// An API key with every scope in tenant `default`. Without one, and with none in the store, a key is
    /// made and written to stderr once.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Hidden(key.into()));
        self
    }

    /// The address under which others reach the server.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.layer.public_url = Some(url.into());
        self
    }

    /// A directory of agents; may be called again.
    pub fn agents_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        let directories = self.layer.agents.get_or_insert_default();
        directories.push(directory.into());
        self
    }

    /// A directory of workflow documents; may be called again.
    pub fn workflows_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        let directories = self.layer.workflows.get_or_insert_default();
        directories.push(directory.into());
        self
    }

    /// A `tandem.toml` with further settings. What is set here wins over it.
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(file.into());
        self
    }

    /// Reads the `TANDEM_…` variables as `tandem serve` does. What is set here wins over them.
    pub fn environment(mut self) -> Self {
        self.reads_environment = true;
        self
    }

    /// Enables the routes for tests. Only for a loopback address.
    pub fn test_seams(mut self) -> Self {
        self.layer.test_seams = Some(true);
        self
    }

    /// An agent that is defined in Rust.
    pub fn agent(mut self, agent: RustAgent) -> Self {
        self.agents.define(agent);
        self
    }

    /// Adds a flow to an agent. Of several versions of one flow the last given is used for new runs; runs
    /// that began with another go on with that.
    pub fn flow(mut self, agent: impl Into<String>, flow: RustFlow) -> Self {
        self.agents.add_flow(agent, flow);
        self
    }

    /// Adds a tool to an agent.
    pub fn tool(mut self, agent: impl Into<String>, tool: RustTool) -> Self {
        self.agents.add_tool(agent, tool);
        self
    }

    /// Adds a node type for workflows.
    pub fn node(mut self, node: RustNode) -> Self {
        self.nodes.push(node);
        self
    }

    /// Starts the server on the current Tokio runtime. It accepts requests when this returns.
    pub async fn serve(self) -> Result<TandemServer, ServeError> {
        let (settings, extensions) = self.resolve()?;
        TandemServer::start(settings, extensions).await
    }

    fn resolve(self) -> Result<(Settings, Extensions), Failure> {
        let nothing = |_: &str| None;
        let environment = match self.reads_environment {
            true => Environment::of_process(),
            false => Environment(&nothing),
        };
        let has_file = self.config.is_some();
        let mut settings = config::resolve(self.layer, self.config, has_file, &environment)?;
        if self.key.is_some() {
            settings.api_key = self.key;
        }
        let mut extensions = Extensions {
            agents: self.agents,
            ..Extensions::default()
        };
        for node in self.nodes {
            extensions.add_node(node)?;
        }
        Ok((settings, extensions))
    }
}
