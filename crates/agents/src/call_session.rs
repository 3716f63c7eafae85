//! What a function of an agent sees of the session it is called for, and what it does to it.
//!
//! Nothing is written while the function runs: keys, texts and the end of the session are collected and
//! recorded with the result of the call.

use crate::program::error_data;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::flow::FlowError;
use tandem_engine::session::{
    KeysInUse, RESERVED_PREFIX, check_key, profile_change, requested_messages,
};
use tandem_record::conversation::{CodeOutcome, LedgerMessage, ProfileChange, SideMessage};
use tandem_record::{EffectId, Timestamp, TraceContext};
use tandem_runtime::conversation::CallContext;
use tandem_script::ErrorData;

/// Texts that one call may send.
const MAX_SIDE_MESSAGES: usize = 100;
const HITL_MODE: &str = "__zupa.hitl.mode";
const LIVE_TAKEOVER: &str = "live_takeover";

/// The session during one call.
#[derive(Debug, Clone)]
pub(crate) struct CallSession {
    pub(crate) key: EffectId,
    pub(crate) now: Timestamp,
    /// What calls to the outside continue.
    pub(crate) trace: Option<TraceContext>,
    keys: BTreeMap<String, Value>,
    user: Value,
    active_flow: Value,
    messages: Arc<[LedgerMessage]>,
    reply_target: Option<String>,
    /// An admin's command may start and end a takeover by writing the mode (Z-194).
    is_admin: bool,
    kv: Vec<(String, Option<Value>)>,
    side_messages: Vec<SideMessage>,
    end_session: bool,
    profile: Option<Box<ProfileChange>>,
}

type Answer = Result<Value, FlowError>;

impl CallSession {
    pub(crate) fn new(context: &CallContext) -> Self {
        let data = |name: &str| context.data.get(name).cloned();
        let target = data("replyTarget");
        Self {
            key: context.key.clone(),
            now: context.now,
            trace: context.trace.clone(),
            keys: context.kv.clone(),
            user: data("user").unwrap_or_default(),
            active_flow: data("activeFlow").unwrap_or_default(),
            messages: Arc::clone(&context.messages),
            reply_target: target.and_then(|target| target.as_str().map(str::to_owned)),
            is_admin: context.actor.is_some(),
            kv: Vec::new(),
            side_messages: Vec::new(),
            end_session: false,
            profile: None,
        }
    }

    /// What the call did, beside its result.
    pub(crate) fn into_outcome(self) -> CodeOutcome {
        CodeOutcome {
            kv: self.kv,
            side_messages: self.side_messages,
            end_session: self.end_session,
            profile: self.profile,
            ..CodeOutcome::default()
        }
    }

    /// Answers a host call that needs nothing from outside.
    pub(crate) fn answer(&mut self, name: &str, args: &[Value]) -> Result<Value, ErrorData> {
        self.try_answer(name, args).map_err(error_data)
    }

    pub(crate) fn try_answer(&mut self, name: &str, args: &[Value]) -> Answer {
        match name {
            "session.kv.get" => {
                let key = text(args.first(), name, "a key")?;
                Ok(self.keys.get(key).cloned().unwrap_or_default())
            }
            "session.kv.all" => Ok(json!(self.keys)),
            "session.kv.set" => {
                let key = text(args.first(), name, "a key")?;
                self.write(key, Some(args.get(1).cloned().unwrap_or_default()))
            }
            "session.kv.delete" => self.write(text(args.first(), name, "a key")?, None),
            "say" => {
                let to = self.reply_target.clone().ok_or_else(|| {
                    FlowError::effect("no_session", "there is nobody to say this to")
                })?;
                self.send(&to, text(args.first(), name, "a text")?)
            }
            "resources.transport.sendText" => self.send(
                text(args.first(), name, "an address")?,
                text(args.get(1), name, "a text")?,
            ),
            "resources.transport.sendMessage" => {
                let message = args.first();
                let field = |field: &str| message.and_then(|message| message.get(field));
                self.send(
                    text(field("to"), name, "an address `to`")?,
                    text(field("text"), name, "a `text`")?,
                )
            }
            "endSession" => {
                self.end_session = true;
                Ok(Value::Null)
            }
            "getActiveFlowState" => Ok(self.active_flow.clone()),
            "resources.domainStore.getMessages" => {
                Ok(requested_messages(&self.messages, args.first()))
            }
            "resources.domainStore.getUser" => Ok(self.user_named(args.first())),
            "resources.domainStore.updateUser" => self.change_profile(args.first()),
            other => Err(FlowError::effect(
                "unknown_call",
                format!("ctx.{other} does not exist here"),
            )),
        }
    }

    fn write(&mut self, key: &str, value: Option<Value>) -> Answer {
        let is_takeover = value.as_ref().is_none_or(|mode| mode == LIVE_TAKEOVER);
        if !(self.is_admin && key == HITL_MODE && is_takeover) {
            let others = self.keys.iter().filter(|(known, _)| *known != key);
            let others = others.filter(|(known, _)| !known.starts_with(RESERVED_PREFIX));
            check_key(key, value.as_ref(), KeysInUse::of(others))?;
        }
        match &value {
            Some(value) => self.keys.insert(key.to_owned(), value.clone()),
            None => self.keys.remove(key),
        };
        self.kv.push((key.to_owned(), value));
        Ok(Value::Null)
    }

    fn send(&mut self, to: &str, text: &str) -> Answer {
        if self.side_messages.len() == MAX_SIDE_MESSAGES {
            let message = format!("one call sends at most {MAX_SIDE_MESSAGES} texts");
            return Err(FlowError::effect("too_many_texts", message));
        }
        self.side_messages.push(SideMessage {
            to: to.to_owned(),
            text: text.to_owned(),
        });
        Ok(Value::Null)
    }

    /// Later changes of the same member replace earlier ones.
    fn change_profile(&mut self, patch: Option<&Value>) -> Answer {
        let change = profile_change(patch.unwrap_or(&Value::Null));
        let change = change.map_err(|why| FlowError::effect("bad_call", why))?;
        self.profile.get_or_insert_default().merge(change);
        Ok(Value::Null)
    }

    /// Only the user of the session is known here.
    fn user_named(&self, id: Option<&Value>) -> Value {
        let id = id.unwrap_or(&Value::Null);
        let is_this = id.is_null() || *id == self.user["id"] || *id == self.user["externalUserId"];
        match is_this {
            true => self.user.clone(),
            false => Value::Null,
        }
    }
}

fn text<'a>(value: Option<&'a Value>, call: &str, what: &str) -> Result<&'a str, FlowError> {
    let text = value.and_then(Value::as_str);
    text.ok_or_else(|| FlowError::effect("bad_call", format!("{call} needs {what} that is text")))
}
