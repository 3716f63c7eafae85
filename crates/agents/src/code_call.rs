//! Calls of the functions in an agent's configuration: hooks, commands, `adminAuth`, prompt and context.
//!
//! A path with dots names the function; where `ctx` stands among its arguments follows from the path.

use crate::agent_version::AgentVersion;
use crate::call_session::CallSession;
use crate::host::{FolderAgents, error, failed};
use crate::http_access::HttpAccess;
use crate::realm_thread::Target;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::RESERVED_PREFIX;
use tandem_record::Object;
use tandem_record::conversation::{CodeCall, CodeError, CodeOutcome};
use tandem_runtime::conversation::CallContext;
use tandem_script::{Argument, FailureCode, ScriptFailure};

impl FolderAgents {
    pub(crate) async fn call_function(
        &self,
        version: &AgentVersion,
        call: &CodeCall,
        context: &CallContext,
    ) -> CodeOutcome {
        let Some((path, args)) = function(&version.spec, &call.path, &call.args) else {
            let message = format!("there is no function {:?}", call.path);
            return failed(error("not_found", message));
        };
        let target = Target::Function {
            path,
            args,
            context: data(version, context),
        };
        let session = CallSession::new(context);
        let (result, session) = self.enter(version, target, session, call.timeout_ms).await;
        let outcome = session.map(CallSession::into_outcome).unwrap_or_default();
        with_result(outcome, result)
    }

    /// Makes one call in the realm of a version. The session is gone when the call was given up.
    pub(crate) async fn enter(
        &self,
        version: &AgentVersion,
        target: Target,
        session: CallSession,
        timeout_ms: u64,
    ) -> (Result<Value, CodeError>, Option<CallSession>) {
        let realm = match version.realm(session.now) {
            Ok(realm) => realm,
            Err(why) => {
                return (
                    Err(error("failed", format!("no realm: {why}"))),
                    Some(session),
                );
            }
        };
        let caller = self.resources.http.clone();
        let trace = session.trace.clone();
        let http = HttpAccess::new(caller, version.spec.clone(), timeout_ms, trace);
        let call = realm.call(target, session, http);
        match tokio::time::timeout(Duration::from_millis(timeout_ms), call).await {
            Ok(Some((result, session))) => (result.map_err(code_error), Some(session)),
            Ok(None) => (Err(error("failed", "the agent's code stopped")), None),
            Err(_) => {
                realm.retire_if_busy();
                let message = format!("the function did not return within {timeout_ms} ms");
                (Err(error("timeout", message)), None)
            }
        }
    }
}

pub(crate) fn with_result(outcome: CodeOutcome, result: Result<Value, CodeError>) -> CodeOutcome {
    let (value, error) = match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    CodeOutcome {
        value,
        error,
        ..outcome
    }
}

/// The JSON pointer to a function, and its arguments with `ctx` among them.
fn function(spec: &AgentSpec, path: &str, given: &[Value]) -> Option<(String, Vec<Argument>)> {
    let mut args: Vec<Argument> = given.iter().cloned().map(Argument::Data).collect();
    let pointer = match path {
        "onResponse" | "beforeLLM" | "beforeResponse" => {
            args.insert(args.len().min(1), Argument::Context);
            format!("/{path}")
        }
        "prompt" | "context" => {
            args.insert(0, Argument::Context);
            format!("/{path}")
        }
        "adminAuth.resolveActor" => "/adminAuth/resolveActor".to_owned(),
        "adminAuth.can" => "/adminAuth/can".to_owned(),
        _ => {
            let (part, rest) = path.split_once('.')?;
            let (name, member) = rest.rsplit_once('.')?;
            match (part, member) {
                ("commands", "handler") => {
                    args.insert(0, Argument::Context);
                    format!("/commands/{}/handler", escaped(name))
                }
                ("tools", "handler" | "before" | "after" | "approval") => {
                    args.insert(args.len().min(1), Argument::Context);
                    tool_function(spec, name, member)?
                }
                _ => return None,
            }
        }
    };
    Some((pointer, args))
}

/// Where a function of a tool is in the configuration.
pub(crate) fn tool_function(spec: &AgentSpec, tool: &str, member: &str) -> Option<String> {
    let position = spec.tools.iter().position(|known| known.name == tool)?;
    Some(format!("/tools/{position}/{member}"))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The data members of `ctx`.
pub(crate) fn data(version: &AgentVersion, context: &CallContext) -> Object {
    let mut data = context.data.clone();
    let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
    put("agentId", json!(context.agent));
    put("language", json!(version.spec.language.code()));
    put("config", version.config.clone());
    put("state", state(context));
    if let Some(actor) = &context.actor {
        put("actor", json!(actor));
    }
    data
}

/// The session's keys without those of the host.
pub(crate) fn state(context: &CallContext) -> Value {
    let keys = context.kv.iter();
    let own = keys.filter(|(key, _)| !key.starts_with(RESERVED_PREFIX));
    Value::Object(
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

fn code_error(failure: ScriptFailure) -> CodeError {
    match failure.code {
        FailureCode::Exception => error("failed", failure.message),
        // It would never return: its timeout has only been foreseen.
        FailureCode::ForeignAwait => error("timeout", failure.to_string()),
        FailureCode::FlowLimit | FailureCode::EffectNotYielded => {
            error("failed", failure.to_string())
        }
    }
}
