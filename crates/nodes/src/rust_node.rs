//! Nodes of the program that embeds the host. They are called as nodes of packs are: with recorded inputs,
//! as an effect that may be attempted again after a crash.

use futures_util::FutureExt as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    Effect, EffectId, EffectOutcome, ErrorInfo, NodeId, Object, PackAnswer, PackCall, PackResult,
    RunId,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

type NodeFuture = Pin<Box<dyn Future<Output = Result<Object, ErrorInfo>> + Send>>;
type Handler = dyn Fn(NodeCall) -> NodeFuture + Send + Sync;

/// What a node in Rust sees of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeCall {
    pub run: RunId,
    pub node: NodeId,
    /// The same when an attempt is repeated after a crash: an idempotency key.
    pub effect: EffectId,
    /// Counts from 0.
    pub attempt: u32,
    /// The rest: inputs, configuration, tenant, and the recorded time.
    pub request: PackCall,
}

/// A node type whose code is an `async fn(call)`. It returns the node's output ports, or an error that says
/// whether a retry can help.
#[derive(Clone)]
pub struct RustNode {
    type_id: String,
    config_schema: Option<Value>,
    timeout: Duration,
    handler: Arc<Handler>,
}

impl RustNode {
    /// `type_id` is a name of your own, for example `vendor.clinic.price`.
    pub fn new<F, R>(type_id: impl Into<String>, handler: F) -> Self
    where
        F: Fn(NodeCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Object, ErrorInfo>> + Send + 'static,
    {
        Self {
            type_id: type_id.into(),
            config_schema: None,
            timeout: DEFAULT_TIMEOUT,
            handler: Arc::new(move |call| Box::pin(handler(call))),
        }
    }

    /// A JSON Schema. A document whose configuration does not fit it is refused.
    #[must_use]
    pub fn config_schema(mut self, schema: Value) -> Self {
        self.config_schema = Some(schema);
        self
    }

    /// How long one attempt may take. 30 seconds unless said otherwise.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn type_id(&self) -> &str {
        &self.type_id
    }

    /// The schema of its configuration, if it has one.
    pub fn schema(&self) -> Option<&Value> {
        self.config_schema.as_ref()
    }

    pub(crate) async fn call(
        &self,
        run: &RunId,
        effect: &Effect,
        node: &NodeId,
        attempt: u32,
        call: &PackCall,
    ) -> EffectOutcome {
        let call = NodeCall {
            run: run.clone(),
            node: node.clone(),
            effect: effect.id.clone(),
            attempt,
            request: call.clone(),
        };
        let handler = Arc::clone(&self.handler);
        // The handler is called inside, so that its panic is caught as well.
        let called = AssertUnwindSafe(async move { handler(call).await });
        let result = match tokio::time::timeout(self.timeout, called.catch_unwind()).await {
            Ok(Ok(Ok(outputs))) => PackResult::Completed { outputs },
            Ok(Ok(Err(error))) => PackResult::Failed { error },
            Ok(Err(_)) => PackResult::Failed {
                error: ErrorInfo::new("internal_error", "The code of the node panicked."),
            },
            Err(_) => {
                let ms = self.timeout.as_millis();
                let message = format!("The node did not return within {ms} ms.");
                let error = ErrorInfo::new("node_timeout", message).retryable();
                PackResult::Failed { error }
            }
        };
        EffectOutcome::Pack(Box::new(PackAnswer {
            result,
            log_lines: Vec::new(),
        }))
    }
}

impl fmt::Debug for RustNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustNode")
            .field("type_id", &self.type_id)
            .finish_non_exhaustive()
    }
}

/// The nodes in Rust of a host, by type.
#[derive(Debug, Clone, Default)]
pub struct RustNodes(BTreeMap<String, RustNode>);

impl RustNodes {
    /// The type must be free.
    pub fn add(&mut self, node: RustNode) -> Result<(), RustNode> {
        match self.0.contains_key(&node.type_id) {
            true => Err(node),
            false => {
                self.0.insert(node.type_id.clone(), node);
                Ok(())
            }
        }
    }

    pub fn get(&self, type_id: &str) -> Option<&RustNode> {
        self.0.get(type_id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &RustNode> {
        self.0.values()
    }
}
