//! Calls of tools: arguments, hooks, timeout, retries (Z-57 … Z-59).

use crate::agent_version::AgentVersion;
use crate::call_session::CallSession;
use crate::code_call::{data, tool_function, with_result};
use crate::host::{FolderAgents, error, failed};
use crate::realm_thread::Target;
use crate::rust_tool::RustTool;
use crate::test_recorder::RecordedToolCall;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_engine::agent::{AgentTool, AgentToolKind, RetrySpec};
use tandem_record::conversation::{CodeError, CodeOutcome};
use tandem_record::{EffectOutcome, HttpRequest, Object};
use tandem_runtime::conversation::CallContext;
use tandem_schema::{MAX_WORK, Meter};
use tandem_script::Argument;
use tokio::time::Instant;

/// Why one attempt gave no result.
struct AttemptFailure {
    error: CodeError,
    /// Whether another attempt may succeed.
    is_transient: bool,
}

impl AttemptFailure {
    fn lasting(error: CodeError) -> Self {
        Self {
            error,
            is_transient: false,
        }
    }

    fn transient(error: CodeError) -> Self {
        Self {
            error,
            is_transient: true,
        }
    }
}

/// One tool call, with what all its attempts have in common.
struct ToolCall<'a> {
    agents: &'a FolderAgents,
    version: &'a AgentVersion,
    tool: &'a AgentTool,
    context: &'a CallContext,
    /// The data members of `ctx`.
    data: Object,
}

impl FolderAgents {
    pub(crate) async fn run_tool(
        &self,
        version: &AgentVersion,
        name: &str,
        args: &Value,
        context: &CallContext,
    ) -> CodeOutcome {
        let Some(tool) = version.spec.tool(name) else {
            return failed(error("not_found", format!("there is no tool {name:?}")));
        };
        let mut data = data(version, context);
        data.insert("idempotencyKey".to_owned(), json!(context.key));
        let call = ToolCall {
            agents: self,
            version,
            tool,
            context,
            data,
        };
        match call.checked(args).await {
            Ok(args) => call.run(args).await,
            Err(error) => failed(error),
        }
    }
}

impl ToolCall<'_> {
    /// The arguments as the tool's schema reads them.
    async fn checked(&self, args: &Value) -> Result<Value, CodeError> {
        let Some(schema) = &self.tool.parameters else {
            return Ok(args.clone());
        };
        if !schema.is_in_realm() {
            let errors = schema.errors(args, &Meter::with_limit(MAX_WORK));
            return match errors.is_empty() {
                true => Ok(args.clone()),
                false => Err(error("invalid_args", errors.join("; "))),
            };
        }
        let target = Target::Schema {
            path: self.member("parameters"),
            value: args.clone(),
        };
        let mut check = self.new_attempt();
        let mut checked = check.enter(target).await?;
        match checked.get("issues") {
            Some(issues) => Err(error("invalid_args", issue_texts(issues))),
            None => Ok(checked["value"].take()),
        }
    }

    /// Attempts the call until it succeeds or may not be repeated. Only the last attempt counts.
    async fn run(&self, args: Value) -> CodeOutcome {
        let retry = &self.version.spec.retry;
        let retries = match self.tool.idempotent {
            true => retry.max_retries,
            false => 0,
        };
        let mut count = 0;
        loop {
            let mut attempt = self.new_attempt();
            let result = attempt.run(args.clone()).await;
            let outcome = attempt.session.into_outcome();
            let failure = match result {
                Ok(value) => return with_result(outcome, Ok(value)),
                Err(failure) => failure,
            };
            if !failure.is_transient || count == retries {
                return with_result(outcome, Err(failure.error));
            }
            tokio::time::sleep(delay(retry, count)).await;
            count += 1;
        }
    }

    fn new_attempt(&self) -> Attempt<'_> {
        let timeout = Duration::from_millis(self.version.spec.timeouts.tool_ms);
        Attempt {
            call: self,
            session: CallSession::new(self.context),
            deadline: Instant::now() + timeout,
        }
    }

    fn member(&self, member: &str) -> String {
        let path = tool_function(&self.version.spec, &self.tool.name, member);
        path.expect("the tool comes from this specification")
    }
}

/// One attempt: the tool and its hooks, within one timeout and with one session.
struct Attempt<'a> {
    call: &'a ToolCall<'a>,
    session: CallSession,
    deadline: Instant,
}

impl Attempt<'_> {
    async fn run(&mut self, mut args: Value) -> Result<Value, AttemptFailure> {
        let tool = self.call.tool;
        if tool.has_before {
            let changed = self.call_member("before", &args).await;
            let changed = changed.map_err(AttemptFailure::transient)?;
            if changed.is_object() {
                args = changed;
            }
        }
        let mut result = match &tool.kind {
            AgentToolKind::Handler => {
                let result = match self.call.version.rust.tool(&tool.name) {
                    Some(rust) => self.call_rust(rust, &args).await,
                    None => self.call_member("handler", &args).await,
                };
                result.map_err(AttemptFailure::transient)?
            }
            AgentToolKind::Record {
                returns,
                fail_times,
            } => self.record(&args, returns, *fail_times).await?,
            AgentToolKind::Http { url } => self.post(&args, url).await?,
        };
        if tool.has_after {
            // The tool has done its work: a failure here must not repeat it.
            let changed = self.call_member("after", &result).await;
            let changed = changed.map_err(AttemptFailure::lasting)?;
            if !changed.is_null() {
                result = changed;
            }
        }
        Ok(result)
    }

    async fn call_rust(&mut self, tool: &RustTool, args: &Value) -> Result<Value, CodeError> {
        let (data, session) = (self.call.data.clone(), self.session.clone());
        let timeout = Duration::from_millis(self.left_ms());
        let (result, left) = tool.call(args.clone(), data, session, timeout).await;
        self.session = left;
        result
    }

    async fn call_member(&mut self, member: &str, argument: &Value) -> Result<Value, CodeError> {
        let target = Target::Function {
            path: self.call.member(member),
            args: vec![Argument::Data(argument.clone()), Argument::Context],
            context: self.call.data.clone(),
        };
        self.enter(target).await
    }

    /// Calls the realm with the session as earlier calls of this attempt left it.
    async fn enter(&mut self, target: Target) -> Result<Value, CodeError> {
        let (version, timeout_ms) = (self.call.version, self.left_ms());
        let entered = self
            .call
            .agents
            .enter(version, target, self.session.clone(), timeout_ms);
        let (result, left) = entered.await;
        if let Some(left) = left {
            self.session = left;
        }
        result
    }

    fn left_ms(&self) -> u64 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1)
    }

    async fn record(
        &self,
        args: &Value,
        returns: &Value,
        fail_times: u32,
    ) -> Result<Value, AttemptFailure> {
        let context = self.call.context;
        let call = RecordedToolCall {
            name: self.call.tool.name.clone(),
            args: args.clone(),
            idempotency_key: context.key.clone(),
            session_id: context.session.clone(),
            at: context.now,
        };
        let recorder = &self.call.agents.resources.recorder;
        let noted = recorder.note_tool_call(&context.agent, call, fail_times);
        let problem = match noted.await {
            Ok(true) => return Ok(returns.clone()),
            Ok(false) => "the tool was told to fail".to_owned(),
            Err(fault) => fault.to_string(),
        };
        Err(AttemptFailure::transient(error("failed", problem)))
    }

    /// One `POST`. A 2xx answer is the result, anything else a failure.
    async fn post(&self, args: &Value, url: &str) -> Result<Value, AttemptFailure> {
        let context = self.call.context;
        let request = HttpRequest {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: Object::new(),
            body: Some(json!({
                "name": self.call.tool.name,
                "args": args,
                "sessionId": context.session,
            })),
            timeout_ms: self.left_ms(),
        };
        let http = &self.call.agents.resources.http;
        match http
            .call(&request, &context.key, context.trace.as_ref())
            .await
        {
            EffectOutcome::Done { mut outputs } => Ok(outputs.remove("body").unwrap_or_default()),
            EffectOutcome::Failed { error: why } => {
                let code = match why.code.as_str() {
                    "external_call_timeout" => "timeout",
                    _ => "failed",
                };
                Err(AttemptFailure {
                    is_transient: why.retryable,
                    error: error(code, why.message),
                })
            }
            EffectOutcome::Pack(_) => {
                let error = error("failed", "the call gave no HTTP answer");
                Err(AttemptFailure::lasting(error))
            }
        }
    }
}

/// Grows with every attempt, with a random part so that callers do not come back together.
fn delay(retry: &RetrySpec, attempt: u32) -> Duration {
    let base = retry.base_delay_ms.saturating_mul(1 << attempt.min(20));
    let jitter = rand::random_range(0..=retry.jitter_ms);
    Duration::from_millis(base.saturating_add(jitter))
}

/// What a Standard Schema found, one text per issue.
pub(crate) fn issue_texts(issues: &Value) -> String {
    let issues = issues.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |issue: &Value| {
        let message = issue["message"]
            .as_str()
            .unwrap_or("is not valid")
            .to_owned();
        let path = issue["path"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let names: Vec<String> = path.iter().map(step).collect();
        match names.is_empty() {
            true => message,
            false => format!("{}: {message}", names.join("/")),
        }
    };
    issues.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// A step of a path is a key, or an object with one.
fn step(step: &Value) -> String {
    match step.get("key").unwrap_or(step) {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    }
}
