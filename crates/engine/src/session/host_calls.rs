//! Calls of a flow's context that are not effects. They are answered from the session's state.

use super::context_data::RESERVED_PREFIX;
use super::draft::Draft;
use super::state::ChatSession;
use crate::flow::FlowError;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Borrow;
use tandem_record::conversation::{LedgerMessage, SessionEnd, SessionEventBody as Body};
use tandem_record::{MessageId, RunId};

/// Maximum bytes of one value, of all keys with their values, and of a key.
const MAX_VALUE_BYTES: usize = 256 * 1024;
const MAX_ALL_BYTES: usize = 2 * 1024 * 1024;
const MAX_KEYS: usize = 1_000;
const MAX_KEY_BYTES: usize = 512;

type Answer = Result<Option<Value>, FlowError>;

impl Draft<'_> {
    pub(super) fn answer_host_call(&mut self, _run: &RunId, name: &str, args: &[Value]) -> Answer {
        let key = || {
            let key = args.first().and_then(Value::as_str);
            key.ok_or_else(|| FlowError::effect("bad_call", format!("{name} needs a key")))
        };
        match name {
            "session.kv.get" => Ok(Some(self.session.key(key()?).unwrap_or(Value::Null))),
            "session.kv.all" => Ok(Some(json!(self.session.all_keys()))),
            "session.kv.set" => {
                let value = args.get(1).cloned().unwrap_or(Value::Null);
                self.set_key(key()?, Some(value))
            }
            "session.kv.delete" => self.set_key(key()?, None),
            // Flows in Rust ask for it, so that their journals have what they saw.
            "config" => Ok(Some(self.cx.agent.config.clone())),
            "getActiveFlowState" => Ok(Some(self.session.active_flow_state())),
            "consumeQueued" => Ok(Some(self.consume_queued(args.first()))),
            "endSession" => {
                let reason = SessionEnd::Agent;
                self.emit(Body::SessionEndRequested { reason });
                Ok(None)
            }
            "resources.transport.sendText" => {
                let text = args.get(1).and_then(Value::as_str).unwrap_or_default();
                self.send_side_message(key()?, text);
                Ok(None)
            }
            "resources.transport.sendMessage" => {
                let field = |name: &str| args.first()?.get(name)?.as_str();
                let (Some(to), Some(text)) = (field("to"), field("text")) else {
                    let message = "sendMessage needs texts `to` and `text`";
                    return Err(FlowError::effect("bad_call", message));
                };
                self.send_side_message(to, text);
                Ok(None)
            }
            "resources.domainStore.getUser" => Ok(Some(json!(self.session.start.user))),
            "resources.domainStore.updateUser" => {
                let change = super::profile::change_of(args.first().unwrap_or(&Value::Null));
                let change = change.map_err(|why| FlowError::effect("bad_call", why))?;
                self.emit(Body::ProfileChanged(Box::new(change)));
                Ok(None)
            }
            "resources.domainStore.getMessages" => {
                let messages: Vec<_> = self.session.memory().collect();
                Ok(Some(requested_messages(&messages, args.first())))
            }
            other => Err(FlowError::effect(
                "unknown_call",
                format!("there is no ctx.{other}"),
            )),
        }
    }

    fn set_key(&mut self, key: &str, value: Option<Value>) -> Answer {
        self.session.check_key(key, value.as_ref())?;
        self.emit(Body::KvChanged {
            key: key.to_owned(),
            value,
        });
        Ok(None)
    }

    fn consume_queued(&mut self, ids: Option<&Value>) -> Value {
        let wanted: Option<Vec<&str>> = ids
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_str).collect());
        let queued = self
            .session
            .queued
            .iter()
            .map(|q| q.message.message_id.clone());
        let message_ids: Vec<MessageId> = queued
            .filter(|id| {
                wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted.contains(&id.as_str()))
            })
            .collect();
        let count = message_ids.len();
        if count > 0 {
            self.emit(Body::QueueConsumed { message_ids });
        }
        json!(count)
    }
}

/// The last messages that `getMessages({ limit, before })` asks for, oldest first.
pub fn requested_messages<M: Borrow<LedgerMessage> + Serialize>(
    messages: &[M],
    query: Option<&Value>,
) -> Value {
    let before = query.and_then(|query| query.get("before")?.as_str());
    let is_end = |message: &M| before.is_some_and(|id| message.borrow().id == id);
    let end = messages.iter().position(is_end).unwrap_or(messages.len());
    let limit = query.and_then(|query| query.get("limit")?.as_u64());
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let start = end.saturating_sub(limit.unwrap_or(usize::MAX));
    json!(&messages[start..end])
}

/// What keys of a session take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeysInUse {
    pub count: usize,
    pub bytes: usize,
}

impl KeysInUse {
    pub fn of<'a>(keys: impl Iterator<Item = (&'a String, &'a Value)>) -> Self {
        keys.fold(Self::default(), |used, (key, value)| Self {
            count: used.count + 1,
            bytes: used.bytes + key_bytes(key, value),
        })
    }
}

/// About how many bytes a key takes as JSON.
pub(super) fn key_bytes(key: &str, value: &Value) -> usize {
    key.len() + value.to_string().len()
}

/// Why a key may not be written beside these others. Also used for the writes of hooks, tools and commands.
pub fn check_key(key: &str, value: Option<&Value>, others: KeysInUse) -> Result<(), FlowError> {
    let bytes = value.map_or(0, |value| key_bytes(key, value));
    let (code, message) = if key.starts_with(RESERVED_PREFIX) {
        ("reserved_key", format!("{key} is written by the host only"))
    } else if key.is_empty() || key.len() > MAX_KEY_BYTES {
        ("bad_key", format!("a key has 1 to {MAX_KEY_BYTES} bytes"))
    } else if bytes > MAX_VALUE_BYTES + key.len() {
        (
            "kv_limit",
            format!("a value has at most {MAX_VALUE_BYTES} bytes"),
        )
    } else if value.is_some() && others.count >= MAX_KEYS {
        ("kv_limit", format!("a session has at most {MAX_KEYS} keys"))
    } else if value.is_some() && others.bytes + bytes > MAX_ALL_BYTES {
        (
            "kv_limit",
            format!("the keys of a session have at most {MAX_ALL_BYTES} bytes in all"),
        )
    } else {
        return Ok(());
    };
    Err(FlowError::effect(code, message))
}

impl ChatSession {
    /// What `ctx.getActiveFlowState()` gives.
    pub(super) fn active_flow_state(&self) -> Value {
        let Some(flow) = &self.flow else {
            return Value::Null;
        };
        json!({
            "flowId": flow.flow,
            "flowRunId": flow.run,
            "step": flow.steps,
            "answers": flow.answers,
            "pausedOn": flow.pause.as_ref().map(|pause| pause.name()),
        })
    }

    /// Why a key may not be written.
    pub(super) fn check_key(&self, key: &str, value: Option<&Value>) -> Result<(), FlowError> {
        let replaced = self.kv.get_key_value(key);
        let replaced = KeysInUse::of(replaced.into_iter());
        let others = KeysInUse {
            count: self.kv.len() - replaced.count,
            bytes: self.kv_bytes.saturating_sub(replaced.bytes),
        };
        check_key(key, value, others)
    }
}
