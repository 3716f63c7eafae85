//! Calls of a flow's context that are not effects. They are answered from the session's state.

use super::context_data::RESERVED_PREFIX;
use super::draft::Draft;
use crate::flow::FlowError;
use serde_json::{Value, json};
use tandem_record::conversation::{SessionEnd, SessionEventBody as Body};
use tandem_record::{MessageId, RunId};

/// Maximum bytes of one value, of all values, and of a key.
const MAX_VALUE_BYTES: usize = 256 * 1024;
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
            "getActiveFlowState" => Ok(Some(self.active_flow_state())),
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
                let memory: Vec<_> = self.session.memory.iter().collect();
                Ok(Some(json!(memory)))
            }
            other => Err(FlowError::effect(
                "unknown_call",
                format!("there is no ctx.{other}"),
            )),
        }
    }

    fn set_key(&mut self, key: &str, value: Option<Value>) -> Answer {
        let others = self.session.kv.keys().filter(|known| *known != key);
        check_key(key, value.as_ref(), others.count())?;
        self.emit(Body::KvChanged {
            key: key.to_owned(),
            value,
        });
        Ok(None)
    }

    fn active_flow_state(&self) -> Value {
        let Some(flow) = &self.session.flow else {
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

/// Why a key may not be written. Also used for the writes of hooks, tools and commands.
pub fn check_key(key: &str, value: Option<&Value>, keys: usize) -> Result<(), FlowError> {
    let (code, message) = if key.starts_with(RESERVED_PREFIX) {
        ("reserved_key", format!("{key} is written by the host only"))
    } else if key.is_empty() || key.len() > MAX_KEY_BYTES {
        ("bad_key", format!("a key has 1 to {MAX_KEY_BYTES} bytes"))
    } else if value.is_some_and(|value| value.to_string().len() > MAX_VALUE_BYTES) {
        (
            "kv_limit",
            format!("a value has at most {MAX_VALUE_BYTES} bytes"),
        )
    } else if value.is_some() && keys >= MAX_KEYS {
        ("kv_limit", format!("a session has at most {MAX_KEYS} keys"))
    } else {
        return Ok(());
    };
    Err(FlowError::effect(code, message))
}
