//! `ctx`: everything a flow may see and do.

use crate::call::ContextCall;
use crate::options::{Ask, Confirm, Escalate, ProxyStart, ProxyWait, Wait, WorkflowRun};
use crate::outcome::{
    FlowReturn, FlowStop, OpenedEscalation, ProxyOutcome, StartedProxy, StoppedProxy, WaitOutcome,
    WorkflowOutcome,
};
use crate::state::{Request, SharedState};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tandem_record::{Object, Timestamp};
use uuid::Uuid;

/// Given to a flow. Its methods are the only things a flow may await, and its only source of time and
/// randomness (Z-206).
#[derive(Debug, Clone)]
pub struct FlowContext {
    state: SharedState,
}

impl FlowContext {
    pub(crate) fn new(state: SharedState) -> Self {
        Self { state }
    }

    // --- effects

    /// Sends a text to the user.
    pub fn say(&self, text: impl Into<String>) -> ContextCall<()> {
        let effect = json!({ "type": "say", "text": text.into() });
        self.effect("say", effect, nothing)
    }

    /// Sends a question and waits for the user's next text, which also becomes one of the
    /// [`answers`](Self::answers).
    pub fn ask(&self, key: impl Into<String>, text: impl Into<String>) -> ContextCall<String> {
        self.ask_with(Ask::new(key, text))
    }

    pub fn ask_with(&self, ask: Ask) -> ContextCall<String> {
        self.effect("ask", ask.into_effect(), text)
    }

    /// Calls a tool of the agent. A tool that fails is [`FlowStop::Thrown`].
    pub fn tool(&self, name: impl Into<String>, args: Value) -> ContextCall<Value> {
        let effect = json!({ "type": "tool", "name": name.into(), "args": args });
        self.effect("tool", effect, whole)
    }

    /// Asks for yes or no. Nobody answering in time counts as no.
    pub fn confirm(&self, confirm: impl Into<Confirm>) -> ContextCall<bool> {
        self.effect("confirm", confirm.into().into_effect(), is_yes)
    }

    /// Asks for a payload that fits the question's schema. `None` when the user refused or nobody answered.
    pub fn confirm_as<T: DeserializeOwned>(&self, confirm: Confirm) -> ContextCall<Option<T>> {
        self.effect("confirm_as", confirm.into_effect(), payload)
    }

    /// Opens an escalation. Does not pause the flow; [`wait`](Self::wait) does.
    pub fn escalate(&self, escalate: Escalate) -> ContextCall<OpenedEscalation> {
        self.effect("escalate", escalate.into_effect(), typed)
    }

    pub fn wait(&self, wait: Wait) -> ContextCall<WaitOutcome> {
        self.effect("wait", wait.into_effect(), typed)
    }

    /// Starts a bridge between the user and a registered desk. Does not pause the flow.
    pub fn proxy_to_admin(&self, start: ProxyStart) -> ContextCall<StartedProxy> {
        self.effect("proxy_to_admin", start.into_effect(), typed)
    }

    /// Waits until an admin writes for the bridge; see [`ContextCall::before_forward`].
    pub fn proxy_wait(&self, wait: ProxyWait) -> ContextCall<ProxyOutcome> {
        self.effect("proxy_wait", wait.into_effect(), typed)
    }

    /// Stops the bridge, if one is active.
    pub fn stop_proxy(&self, reason: impl Into<String>) -> ContextCall<StoppedProxy> {
        let effect = json!({ "type": "interrupt.proxy.stop", "reason": reason.into() });
        self.effect("stop_proxy", effect, typed)
    }

    /// Runs a workflow of this host.
    pub fn run_workflow(&self, workflow: WorkflowRun) -> ContextCall<WorkflowOutcome> {
        self.effect("run_workflow", workflow.into_effect(), typed)
    }

    /// Ends this run and starts another flow in the same turn. Never returns `Ok`: write
    /// `return ctx.handoff(…).await`.
    pub fn handoff(&self, to: impl Into<String>, input: Value) -> ContextCall<FlowReturn> {
        let effect = json!({ "type": "handoff", "to": to.into(), "input": input });
        self.effect("handoff", effect, ended)
    }

    /// Ends this run. Never returns `Ok`: write `return ctx.end(…).await`.
    pub fn end(&self, reason: impl Into<String>) -> ContextCall<FlowReturn> {
        let effect = json!({ "type": "end", "reason": reason.into() });
        self.effect("end", effect, ended)
    }

    /// An effect in its plain form, as a TypeScript flow would yield it.
    pub fn perform(&self, effect: Value) -> ContextCall<Value> {
        self.effect("perform", effect, whole)
    }

    // --- calls that are not effects

    /// The keys of the session.
    pub fn kv(&self) -> SessionKeys {
        SessionKeys(self.clone())
    }

    /// Sends a text beside the conversation, to any address (Z-7).
    pub fn send_text(&self, to: impl Into<String>, text: impl Into<String>) -> ContextCall<()> {
        let args = vec![json!(to.into()), json!(text.into())];
        self.host("resources.transport.sendText", args, nothing)
    }

    /// The settings of the agent, with markers in the place of functions. The journal keeps what the flow
    /// was given, so a later change of the agent does not change it.
    pub fn config(&self) -> ContextCall<Value> {
        self.host("config", Vec::new(), whole)
    }

    /// Ends the session after this turn.
    pub fn end_session(&self) -> ContextCall<()> {
        self.host("endSession", Vec::new(), nothing)
    }

    /// Marks queued messages as read, all of them without ids. Gives their number.
    pub fn consume_queued(&self, ids: Option<Vec<String>>) -> ContextCall<u64> {
        self.host("consumeQueued", vec![json!(ids)], typed)
    }

    /// The run as the session knows it.
    pub fn active_flow_state(&self) -> ContextCall<Value> {
        self.host("getActiveFlowState", Vec::new(), whole)
    }

    // --- data, time and randomness

    /// The time of the last record of the journal.
    pub fn now(&self) -> Timestamp {
        self.state.lock().now
    }

    /// In `0.0..1.0`, the same when the flow is run again.
    pub fn random(&self) -> f64 {
        self.state.lock().draws.number()
    }

    /// Version 4, the same when the flow is run again.
    pub fn uuid(&self) -> Uuid {
        self.state.lock().draws.uuid()
    }

    /// A data member of `ctx` by the name it has in TypeScript; `null` when there is none.
    pub fn data(&self, name: &str) -> Value {
        self.state
            .lock()
            .data
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    /// `id`, `externalUserId`, `displayName` and so on.
    pub fn user(&self) -> Value {
        self.data("user")
    }

    /// `id`, `agentId`, `userId` and so on.
    pub fn session(&self) -> Value {
        self.data("session")
    }

    /// The message that caused the current turn; none for timers and resolutions.
    pub fn inbound(&self) -> Option<Value> {
        Some(self.data("inbound")).filter(|message| !message.is_null())
    }

    /// Replies by the key of their `ask`.
    pub fn answers(&self) -> Object {
        match self.data("answers") {
            Value::Object(answers) => answers,
            _ => Object::new(),
        }
    }

    pub fn flow_id(&self) -> String {
        self.text("flowId")
    }

    pub fn flow_run_id(&self) -> String {
        self.text("flowRunId")
    }

    /// The address of the user.
    pub fn reply_target(&self) -> String {
        self.text("replyTarget")
    }

    pub fn turn_id(&self) -> String {
        self.text("turnId")
    }

    pub fn request_id(&self) -> String {
        self.text("requestId")
    }

    /// Writes a line to the host's log, once: not when the flow is run again.
    pub fn log(&self, line: &str) {
        let state = self.state.lock();
        if state.is_live {
            tracing::info!(run = %state.run, "{line}");
        }
    }

    fn text(&self, name: &str) -> String {
        self.data(name).as_str().unwrap_or_default().to_owned()
    }

    fn effect<T>(
        &self,
        helper: &'static str,
        effect: Value,
        read: fn(Option<Value>) -> Result<T, FlowStop>,
    ) -> ContextCall<T> {
        let request = Request::Effect { helper, effect };
        ContextCall::new(self.state.clone(), request, read)
    }

    fn host<T>(
        &self,
        name: &'static str,
        args: Vec<Value>,
        read: fn(Option<Value>) -> Result<T, FlowStop>,
    ) -> ContextCall<T> {
        let request = Request::Host { name, args };
        ContextCall::new(self.state.clone(), request, read)
    }
}

/// The keys of a session, as a flow reads and writes them.
#[derive(Debug, Clone)]
pub struct SessionKeys(FlowContext);

impl SessionKeys {
    /// `null` when the key is not set.
    pub fn get(&self, key: impl Into<String>) -> ContextCall<Value> {
        self.0
            .host("session.kv.get", vec![json!(key.into())], whole)
    }

    pub fn set(&self, key: impl Into<String>, value: Value) -> ContextCall<()> {
        let args = vec![json!(key.into()), value];
        self.0.host("session.kv.set", args, nothing)
    }

    pub fn delete(&self, key: impl Into<String>) -> ContextCall<()> {
        self.0
            .host("session.kv.delete", vec![json!(key.into())], nothing)
    }

    pub fn all(&self) -> ContextCall<Object> {
        self.0.host("session.kv.all", Vec::new(), typed)
    }
}

fn nothing(_: Option<Value>) -> Result<(), FlowStop> {
    Ok(())
}

fn whole(value: Option<Value>) -> Result<Value, FlowStop> {
    Ok(value.unwrap_or_default())
}

fn text(value: Option<Value>) -> Result<String, FlowStop> {
    Ok(match value {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    })
}

fn is_yes(value: Option<Value>) -> Result<bool, FlowStop> {
    Ok(value == Some(Value::Bool(true)))
}

/// The run was closed at this effect.
fn ended(_: Option<Value>) -> Result<FlowReturn, FlowStop> {
    Err(FlowStop::Closed)
}

fn payload<T: DeserializeOwned>(value: Option<Value>) -> Result<Option<T>, FlowStop> {
    typed(value)
}

fn typed<T: DeserializeOwned>(value: Option<Value>) -> Result<T, FlowStop> {
    let read = serde_json::from_value(value.unwrap_or_default());
    read.map_err(|why| FlowStop::Failed(format!("the result has another shape: {why}")))
}
