//! Tools in Rust. They are called as functions of TypeScript are: arguments checked, within the agent's
//! timeout, with its retries, and what they do to the session is recorded with their result.

use crate::call_session::CallSession;
use crate::host::error;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::flow::FlowError;
use tandem_record::conversation::CodeError;
use tandem_record::{Object, Timestamp};

type ToolFuture = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;
type Handler = dyn Fn(Value, ToolContext) -> ToolFuture + Send + Sync;

/// A tool whose handler is an `async fn(args, ctx)`.
#[derive(Clone)]
pub struct RustTool {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
    is_idempotent: bool,
    handler: Arc<Handler>,
}

impl RustTool {
    /// Arguments and result are read from and written as JSON. The text of an error is what the model or the
    /// flow gets.
    pub fn new<A, O, E, F, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        O: Serialize,
        E: fmt::Display,
        F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |args: Value, ctx: ToolContext| -> ToolFuture {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let args: A = serde_json::from_value(args).map_err(|why| why.to_string())?;
                let done = handler(args, ctx).await.map_err(|why| format!("{why:#}"))?;
                serde_json::to_value(done).map_err(|why| why.to_string())
            })
        };
        Self {
            name: name.into(),
            description: None,
            parameters: None,
            is_idempotent: true,
            handler: Arc::new(call),
        }
    }

    /// What the model is told.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// A JSON Schema of the arguments. Others are refused before the handler is called.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = Some(schema);
        self
    }

    /// The tool is not called again when its outcome is unknown.
    #[must_use]
    pub fn not_idempotent(mut self) -> Self {
        self.is_idempotent = false;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The tool as the agent's configuration names it, with a marker for its function.
    pub(crate) fn setting(&self) -> Value {
        let mut setting = json!({
            "name": self.name,
            "idempotent": self.is_idempotent,
            "handler": { "$fn": true },
        });
        if let Some(description) = &self.description {
            setting["description"] = json!(description);
        }
        if let Some(parameters) = &self.parameters {
            setting["parameters"] = parameters.clone();
        }
        setting
    }

    /// One attempt. Gives the session as the handler left it.
    pub(crate) async fn call(
        &self,
        args: Value,
        data: Object,
        session: CallSession,
        timeout: Duration,
    ) -> (Result<Value, CodeError>, CallSession) {
        let context = ToolContext {
            data: Arc::new(data),
            session: Arc::new(Mutex::new(session)),
        };
        let session = context.session.clone();
        let handler = self.handler.clone();
        // The handler is called inside, so that its panic is caught as well.
        let call = AssertUnwindSafe(async move { handler(args, context).await });
        let result = match tokio::time::timeout(timeout, call.catch_unwind()).await {
            Ok(Ok(done)) => done.map_err(|why| error("failed", why)),
            Ok(Err(_)) => Err(error("failed", "the tool panicked")),
            Err(_) => {
                let ms = timeout.as_millis();
                Err(error(
                    "timeout",
                    format!("the tool did not return within {ms} ms"),
                ))
            }
        };
        let left = session.lock().clone();
        (result, left)
    }
}

impl fmt::Debug for RustTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustTool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What a tool knows of the conversation it is called in, and what it may do to it. Writes are recorded with
/// the result of the call; those of a failed attempt that is repeated are dropped.
#[derive(Debug, Clone)]
pub struct ToolContext {
    data: Arc<Object>,
    session: Arc<Mutex<CallSession>>,
}

impl ToolContext {
    /// The same at every attempt of this call.
    pub fn idempotency_key(&self) -> String {
        self.session.lock().key.to_string()
    }

    pub fn now(&self) -> Timestamp {
        self.session.lock().now
    }

    /// A data member of `ctx` by the name it has in TypeScript: `user`, `session`, `inbound`, ….
    pub fn data(&self, name: &str) -> Value {
        self.data.get(name).cloned().unwrap_or_default()
    }

    /// A key of the session; `null` when it is not set.
    pub fn get(&self, key: &str) -> Value {
        let read = self.call("session.kv.get", &[json!(key)]);
        read.unwrap_or_default()
    }

    pub fn set(&self, key: &str, value: Value) -> Result<(), FlowError> {
        self.call("session.kv.set", &[json!(key), value]).map(drop)
    }

    pub fn delete(&self, key: &str) -> Result<(), FlowError> {
        self.call("session.kv.delete", &[json!(key)]).map(drop)
    }

    /// Sends a text to the user beside the conversation (Z-7).
    pub fn say(&self, text: &str) -> Result<(), FlowError> {
        self.call("say", &[json!(text)]).map(drop)
    }

    /// The same, to any address.
    pub fn send_text(&self, to: &str, text: &str) -> Result<(), FlowError> {
        let args = [json!(to), json!(text)];
        self.call("resources.transport.sendText", &args).map(drop)
    }

    /// Ends the session after this turn.
    pub fn end_session(&self) {
        // It cannot be refused.
        let _ = self.call("endSession", &[]);
    }

    fn call(&self, name: &str, args: &[Value]) -> Result<Value, FlowError> {
        self.session.lock().try_answer(name, args)
    }
}
