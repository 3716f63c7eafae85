//! A flow as its author registers it.

use crate::context::FlowContext;
use crate::outcome::FlowResult;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tandem_engine::agent::LoadedFlow;

/// How versions of flows in Rust begin. Those of stored code are hashes, without a colon.
const VERSION_PREFIX: &str = "rust:";

pub(crate) type FlowFuture = Pin<Box<dyn Future<Output = FlowResult> + Send>>;
type Run = dyn Fn(FlowContext, Value) -> Result<FlowFuture, serde_json::Error> + Send + Sync;

/// A flow in Rust: its name, its version, its code. The code of a run is found by id and version (Z-215), so
/// a change that does other effects in another order needs another version. Keep the old one registered as
/// long as runs of it may wait.
#[derive(Clone)]
pub struct RustFlow {
    flow_id: String,
    version: String,
    description: Option<String>,
    input_schema: Option<Value>,
    as_tool: Option<Value>,
    run: Arc<Run>,
}

impl RustFlow {
    /// `run` is an `async fn(ctx, input)`. `()` takes no input; other types are read from JSON.
    pub fn new<I, F, R>(flow_id: impl Into<String>, version: impl fmt::Display, run: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        F: Fn(FlowContext, I) -> R + Send + Sync + 'static,
        R: Future<Output = FlowResult> + Send + 'static,
    {
        let run = Arc::new(run);
        let start = move |ctx: FlowContext, input: Value| {
            let input: I = serde_json::from_value(input)?;
            let run = Arc::clone(&run);
            // The function itself is called at the first poll, where a panic is caught.
            let future: FlowFuture = Box::pin(async move { run(ctx, input).await });
            Ok(future)
        };
        Self {
            flow_id: flow_id.into(),
            version: format!("{VERSION_PREFIX}{version}"),
            description: None,
            input_schema: None,
            as_tool: None,
            run: Arc::new(start),
        }
    }

    /// For the router and for models.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// A JSON Schema; input that does not fit it starts no run.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Offers the flow to the agent's model as a tool of this name.
    #[must_use]
    pub fn as_tool(mut self, name: impl Into<String>) -> Self {
        self.as_tool = Some(json!({ "alias": name.into() }));
        self
    }

    pub fn flow_id(&self) -> &str {
        &self.flow_id
    }

    /// The version that runs are pinned to, with its prefix.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the agent's configuration is compiled with.
    pub fn loaded(&self) -> LoadedFlow {
        LoadedFlow {
            flow_id: self.flow_id.clone(),
            version: self.version.clone(),
            description: self.description.clone(),
            input_schema: self.input_schema.clone(),
            as_tool: self.as_tool.clone(),
        }
    }

    pub(crate) fn begin(
        &self,
        ctx: FlowContext,
        input: Value,
    ) -> Result<FlowFuture, serde_json::Error> {
        (self.run)(ctx, input)
    }
}

impl fmt::Debug for RustFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustFlow")
            .field("flow_id", &self.flow_id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Whether a run with this version was started by a flow in Rust.
pub fn is_rust_version(version: &str) -> bool {
    version.starts_with(VERSION_PREFIX)
}
