//! Filters of bridges: what a flow makes of an admin's text before the user sees it.
//!
//! A filter lives in the flow that waits. It is polled once: it awaits nothing, and gets what it may read.

use crate::outcome::FlowStop;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tandem_record::Object;

/// A text that an admin wrote for the bridge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminInput {
    pub proxy_id: String,
    pub target: String,
    pub text: String,
    /// The message as its network delivered it, if it came from one.
    #[serde(default)]
    pub raw: Option<Value>,
}

/// What becomes of the text. What is not said follows from the bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputDecision {
    forward: Option<bool>,
    text: Option<String>,
    ends: bool,
    reason: Option<String>,
}

impl InputDecision {
    /// As the bridge's flags say.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// The user gets the text, also over a bridge that does not forward.
    pub fn forward() -> Self {
        Self {
            forward: Some(true),
            ..Self::default()
        }
    }

    /// The user gets nothing.
    pub fn hold() -> Self {
        Self {
            forward: Some(false),
            ..Self::default()
        }
    }

    /// Another text in the place of what was written.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..self
        }
    }

    /// Stops the bridge afterwards.
    #[must_use]
    pub fn end_proxy(self, reason: impl Into<String>) -> Self {
        Self {
            ends: true,
            reason: Some(reason.into()),
            ..self
        }
    }

    fn into_value(self) -> Value {
        let mut fields = Object::new();
        let mut put = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        put("forwardToUser", self.forward.map(Value::from));
        put("text", self.text.map(Value::from));
        put("endProxy", self.ends.then_some(Value::Bool(true)));
        put("reason", self.reason.map(Value::from));
        Value::Object(fields)
    }
}

/// What a filter may read. There are no effects, sends or writes (Z-219).
#[derive(Debug, Clone)]
pub struct FilterContext {
    data: Object,
    keys: BTreeMap<String, Value>,
}

impl FilterContext {
    pub(crate) fn new(data: Object, keys: BTreeMap<String, Value>) -> Self {
        Self { data, keys }
    }

    /// A key of the session; `null` when it is not set.
    pub fn key(&self, name: &str) -> Value {
        self.keys.get(name).cloned().unwrap_or_default()
    }

    pub fn keys(&self) -> &BTreeMap<String, Value> {
        &self.keys
    }

    /// A data member of the flow's `ctx`: `user`, `input`, `answers`, …
    pub fn data(&self, name: &str) -> Value {
        self.data.get(name).cloned().unwrap_or_default()
    }
}

type FilterFuture = Pin<Box<dyn Future<Output = Result<InputDecision, FlowStop>> + Send>>;

#[derive(Clone)]
pub(crate) struct Filter(Arc<dyn Fn(AdminInput, FilterContext) -> FilterFuture + Send + Sync>);

impl Filter {
    pub(crate) fn new<F, D>(filter: F) -> Self
    where
        F: Fn(AdminInput, FilterContext) -> D + Send + Sync + 'static,
        D: Future<Output = Result<InputDecision, FlowStop>> + Send + 'static,
    {
        Self(Arc::new(move |input, context| {
            Box::pin(filter(input, context))
        }))
    }

    /// The decision as data, or why there is none.
    pub(crate) fn ask(&self, input: &Value, context: FilterContext) -> Result<Value, String> {
        let input = AdminInput::deserialize(input).map_err(|why| why.to_string())?;
        let mut decided = (self.0)(input, context);
        let mut waker = Context::from_waker(Waker::noop());
        match decided.as_mut().poll(&mut waker) {
            Poll::Ready(Ok(decision)) => Ok(decision.into_value()),
            Poll::Ready(Err(stop)) => Err(stop.to_string()),
            Poll::Pending => Err("the filter awaits something; it can only read".to_owned()),
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}
