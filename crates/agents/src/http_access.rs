//! `ctx.http.fetch` of an agent's functions: guarded, and only to the origins its configuration allows.

use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::agent::AgentSpec;
use tandem_nodes::HttpCaller;
use tandem_record::{EffectId, EffectOutcome, ErrorInfo, HttpRequest, Object, TraceContext};
use tandem_script::ErrorData;
use tokio::runtime::Handle;
use url::Url;

const HTTP_ERROR: &str = "HttpError";

/// What one version of an agent may call.
#[derive(Clone)]
pub(crate) struct HttpAccess {
    caller: Arc<HttpCaller>,
    spec: Arc<AgentSpec>,
    timeout_ms: u64,
    /// What the calls continue.
    trace: Option<TraceContext>,
    tasks: Handle,
}

impl HttpAccess {
    /// Called inside the runtime whose tasks make the calls.
    pub(crate) fn new(
        caller: Arc<HttpCaller>,
        spec: Arc<AgentSpec>,
        timeout_ms: u64,
        trace: Option<TraceContext>,
    ) -> Self {
        Self {
            caller,
            spec,
            timeout_ms,
            trace,
            tasks: Handle::current(),
        }
    }

    /// `args` are those of `fetch(url, options)`. `done` is called once, possibly at once.
    pub(crate) fn fetch(
        &self,
        args: Vec<Value>,
        key: EffectId,
        done: impl FnOnce(Result<Value, ErrorData>) + Send + 'static,
    ) {
        let request = match self.request(&args) {
            Ok(request) => request,
            Err(error) => return done(Err(error)),
        };
        let (caller, trace) = (self.caller.clone(), self.trace.clone());
        self.tasks.spawn(async move {
            done(answer(caller.call(&request, &key, trace.as_ref()).await));
        });
    }

    fn request(&self, args: &[Value]) -> Result<HttpRequest, ErrorData> {
        let url = args.first().and_then(Value::as_str);
        let url = url.ok_or_else(|| refused("bad_call", "http.fetch needs a URL that is text"))?;
        let parsed = Url::parse(url).map_err(|_| refused("bad_call", "the URL is not absolute"))?;
        if !self.allows(&parsed) {
            let origin = parsed.origin().ascii_serialization();
            let message = format!("{origin} is not in `http.allow` of the agent");
            return Err(refused("origin_not_allowed", message));
        }
        let options = args.get(1).unwrap_or(&Value::Null);
        let method = options["method"].as_str().unwrap_or("GET");
        let headers = options["headers"].as_object();
        Ok(HttpRequest {
            method: method.to_ascii_uppercase(),
            url: url.to_owned(),
            headers: headers.cloned().unwrap_or_default(),
            body: options.get("body").cloned(),
            timeout_ms: self.timeout_ms,
        })
    }

    fn allows(&self, url: &Url) -> bool {
        let allowed = self.spec.http_origins.iter();
        allowed
            .filter_map(|origin| Url::parse(origin).ok())
            .any(|origin| origin.origin() == url.origin())
    }
}

/// A status that is no success is an answer too; no answer is an error.
fn answer(outcome: EffectOutcome) -> Result<Value, ErrorData> {
    match outcome {
        EffectOutcome::Done { outputs } => Ok(json!({
            "status": outputs.get("status"),
            "headers": outputs.get("headers"),
            "body": text(outputs.get("body")),
        })),
        EffectOutcome::Failed { error } => match status(&error) {
            Some(status) => Ok(json!({
                "status": status,
                "headers": Object::new(),
                "body": error.details.as_ref().map(|details| text(details.get("body"))),
            })),
            None => Err(ErrorData::new(HTTP_ERROR, &error.code, error.message)),
        },
        EffectOutcome::Pack(_) => Err(refused("failed", "the call gave no HTTP answer")),
    }
}

fn status(error: &ErrorInfo) -> Option<&Value> {
    error.details.as_ref()?.get("status")
}

fn text(body: Option<&Value>) -> String {
    match body {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(json) => json.to_string(),
    }
}

fn refused(code: &str, message: impl Into<String>) -> ErrorData {
    ErrorData::new(HTTP_ERROR, code, message)
}
