//! Test facilities: what `record` tools and the loopback transport received (§11).

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{AgentId, EffectId, SessionId, Timestamp};

/// One call of a `record` tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedToolCall {
    pub name: String,
    pub args: Value,
    pub idempotency_key: EffectId,
    pub session_id: Option<SessionId>,
    pub at: Timestamp,
}

/// A text as the loopback transport received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopbackMessage {
    pub id: String,
    pub to: String,
    pub text: String,
    pub key: EffectId,
    /// How often a text with this key was received.
    pub deliveries: u32,
    pub at: Timestamp,
}

/// What the loopback transport does next, for tests of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoopbackFaults {
    /// The next texts that are refused.
    pub fail_next: u32,
    /// The next texts that are accepted and lost.
    pub drop_next: u32,
    /// Nothing is taken.
    pub paused: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopbackReply {
    Accepted { id: String },
    Failed,
    Paused,
}

/// The recorder cannot be reached. Another attempt may succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecorderFault(pub String);

/// Keeps what tests look at. A host keeps it in its store, so that it survives a restart.
#[async_trait]
pub trait TestRecorder: Send + Sync {
    /// Notes a call. A call whose key was noted with success is not noted again. Returns whether it
    /// succeeds: the first `fail_times` calls of a tool do not.
    async fn note_tool_call(
        &self,
        agent: &AgentId,
        call: RecordedToolCall,
        fail_times: u32,
    ) -> Result<bool, RecorderFault>;

    /// Takes a text, as far as the injected faults let it. A key that was received before only counts.
    async fn receive(
        &self,
        to: &str,
        text: &str,
        key: &EffectId,
        now: Timestamp,
    ) -> Result<LoopbackReply, RecorderFault>;
}

/// Keeps everything in memory.
#[derive(Default)]
pub struct MemoryRecorder {
    state: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    tool_calls: BTreeMap<AgentId, Vec<NotedCall>>,
    messages: Vec<LoopbackMessage>,
    faults: LoopbackFaults,
}

struct NotedCall {
    call: RecordedToolCall,
    has_failed: bool,
}

impl MemoryRecorder {
    pub fn tool_calls(&self, agent: &AgentId) -> Vec<RecordedToolCall> {
        let state = self.state.lock();
        let calls = state.tool_calls.get(agent).into_iter().flatten();
        calls.map(|noted| noted.call.clone()).collect()
    }

    /// Texts to an address, or all.
    pub fn messages(&self, to: Option<&str>) -> Vec<LoopbackMessage> {
        let state = self.state.lock();
        let messages = state.messages.iter();
        messages
            .filter(|message| to.is_none_or(|to| message.to == to))
            .cloned()
            .collect()
    }

    pub fn inject(&self, faults: LoopbackFaults) {
        self.state.lock().faults = faults;
    }
}

#[async_trait]
impl TestRecorder for MemoryRecorder {
    async fn note_tool_call(
        &self,
        agent: &AgentId,
        call: RecordedToolCall,
        fail_times: u32,
    ) -> Result<bool, RecorderFault> {
        let mut state = self.state.lock();
        let calls = state.tool_calls.entry(agent.clone()).or_default();
        let is_same = |noted: &&NotedCall| noted.call.name == call.name;
        let of_tool = || calls.iter().filter(is_same);
        let is_repeated = of_tool()
            .any(|noted| !noted.has_failed && noted.call.idempotency_key == call.idempotency_key);
        if is_repeated {
            return Ok(true);
        }
        let failures = of_tool().filter(|noted| noted.has_failed).count();
        let has_failed = failures < fail_times as usize;
        calls.push(NotedCall { call, has_failed });
        Ok(!has_failed)
    }

    async fn receive(
        &self,
        to: &str,
        text: &str,
        key: &EffectId,
        now: Timestamp,
    ) -> Result<LoopbackReply, RecorderFault> {
        let mut state = self.state.lock();
        if state.faults.paused {
            return Ok(LoopbackReply::Paused);
        }
        if state.faults.fail_next > 0 {
            state.faults.fail_next -= 1;
            return Ok(LoopbackReply::Failed);
        }
        let known = state
            .messages
            .iter_mut()
            .find(|message| message.key == *key);
        if let Some(message) = known {
            message.deliveries += 1;
            let id = message.id.clone();
            return Ok(LoopbackReply::Accepted { id });
        }
        let id = format!("loopback:{key}");
        if state.faults.drop_next > 0 {
            state.faults.drop_next -= 1;
            return Ok(LoopbackReply::Accepted { id });
        }
        state.messages.push(LoopbackMessage {
            id: id.clone(),
            to: to.to_owned(),
            text: text.to_owned(),
            key: key.clone(),
            deliveries: 1,
            at: now,
        });
        Ok(LoopbackReply::Accepted { id })
    }
}
