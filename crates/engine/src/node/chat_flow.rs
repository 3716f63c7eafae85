//! `vendor.tandem.flow`: a flow of a conversation as a child run.

use super::ParseContext;
use super::settings::{Setting, object, value};
use serde_json::Value;
use tandem_record::conversation::{FlowCall, FlowTarget, OnActiveFlow};
use tandem_record::{AgentId, ErrorInfo, FlowId, Object, SessionId};

/// Longest wait for a flow: a year. A longer one is probably a wrong unit.
const MAX_TIMEOUT_SECONDS: u64 = 366 * 24 * 3600;
const USER: &str = "userExternalId";
const SESSION: &str = "sessionId";

pub(super) const SETTINGS: &[Setting] = &[
    value("agentId"),
    value("flowId"),
    object("target", &[value(USER), value(SESSION)]),
    value("input"),
    value("allowSessionBootstrap"),
    value("onActiveFlow"),
    value("timeoutSeconds"),
];

#[derive(Debug)]
pub(crate) struct ChatFlow {
    agent: AgentId,
    flow: FlowId,
    /// A port of the same name comes before it.
    target: Option<FlowTarget>,
    input: Option<Value>,
    allow_session_bootstrap: bool,
    on_active_flow: OnActiveFlow,
    pub(crate) timeout_ms: Option<u64>,
}

impl ChatFlow {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let agent = AgentId::from(cx.required_text(config, "agentId")?);
        let flow = FlowId::from(cx.required_text(config, "flowId")?);
        let target = target(config, cx)?;
        let allow_session_bootstrap = cx.flag(config, "allowSessionBootstrap", false)?;
        if allow_session_bootstrap && matches!(target, Some(FlowTarget::SessionId(_))) {
            return cx.bad(
                "allowSessionBootstrap",
                "a target named by its session exists already; remove the key or name the user",
            );
        }
        let on_active_flow = match cx.text(config, "onActiveFlow")?.as_deref() {
            None | Some("wait") => OnActiveFlow::Wait,
            Some("fail") => OnActiveFlow::Fail,
            Some("preempt") => OnActiveFlow::Preempt,
            Some(other) => {
                let message = format!("{other:?} is none of wait, fail and preempt");
                return cx.bad("onActiveFlow", message);
            }
        };
        let seconds = cx.whole(config, "timeoutSeconds", 1)?;
        if seconds.is_some_and(|seconds| seconds > MAX_TIMEOUT_SECONDS) {
            return cx.bad("timeoutSeconds", "is longer than a year");
        }
        Some(Self {
            agent,
            flow,
            target,
            input: config.get("input").cloned(),
            allow_session_bootstrap,
            on_active_flow,
            timeout_ms: seconds.map(|seconds| seconds * 1000),
        })
    }

    /// What is started. The ports `userExternalId`, `sessionId` and `input` replace the settings.
    pub(crate) fn call(&self, inputs: &Object) -> Result<FlowCall, ErrorInfo> {
        let invalid = |message: &str| ErrorInfo::new("validation_error", message);
        let named = |port: &str| match inputs.get(port) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(invalid(&format!("the input {port} is not a text"))),
        };
        let target = match (named(USER)?, named(SESSION)?) {
            (Some(_), Some(_)) => {
                return Err(invalid("the target is one user or one session, not both"));
            }
            (Some(user), None) => Some(FlowTarget::UserExternalId(user)),
            (None, Some(session)) => Some(FlowTarget::SessionId(SessionId::from(session))),
            (None, None) => self.target.clone(),
        };
        let missing = || invalid("the node has no target in config or inputs");
        Ok(FlowCall {
            agent_id: self.agent.clone(),
            flow_id: self.flow.clone(),
            target: target.ok_or_else(missing)?,
            input: inputs.get("input").or(self.input.as_ref()).cloned(),
            allow_session_bootstrap: self.allow_session_bootstrap,
            on_active_flow: self.on_active_flow,
        })
    }
}

fn target(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<FlowTarget>> {
    let target = match config.get("target") {
        None | Some(Value::Null) => return Some(None),
        Some(Value::Object(target)) => target,
        Some(_) => return cx.bad("target", "must be an object"),
    };
    let text = |key: &str| target.get(key).filter(|value| !value.is_null());
    let (key, named) = match (text(USER), text(SESSION)) {
        (Some(user), None) => (USER, user),
        (None, Some(session)) => (SESSION, session),
        _ => {
            let message = format!("must have either {USER} or {SESSION}");
            return cx.bad("target", message);
        }
    };
    let Some(text) = named.as_str().filter(|text| !text.is_empty()) else {
        return cx.bad(&format!("target/{key}"), "must be a text");
    };
    Some(Some(match key {
        USER => FlowTarget::UserExternalId(text.to_owned()),
        _ => FlowTarget::SessionId(SessionId::new(text)),
    }))
}
