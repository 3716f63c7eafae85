//! What is kept of scripted models: which answers are used up, which script replaced an agent's own,
//! and which calls were made.

use crate::model::{Script, ScriptProgress};
use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tandem_record::conversation::{ChatRole, CodeError, ModelPurpose};
use tandem_record::{AgentId, SessionId, Timestamp};

/// Keeps the progress of scripts for the processes that share a store.
///
/// An implementation must make [`ScriptMemory::take`] atomic: two calls at the same time must not get
/// an answer that is there once.
#[async_trait]
pub trait ScriptMemory: Send + Sync {
    /// The time of the calls.
    fn now(&self) -> Timestamp;

    /// Notes that a call begins, and lets it choose its answer. The changed progress is stored before
    /// this returns. `choose` may be called again with newer data after a conflict.
    async fn take(
        &self,
        agent: &AgentId,
        call: NotedCall,
        choose: &mut ScriptChooser<'_>,
    ) -> Result<(), CodeError>;
}

/// Chooses an answer. Gets the script that replaced the agent's own, if there is one, and the agent's
/// progress, which it changes.
pub type ScriptChooser<'a> = dyn FnMut(Option<&Script>, &mut ScriptProgress) + Send + 'a;

/// A call of a scripted model, as tests read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotedCall {
    pub purpose: ModelPurpose,
    pub session_id: Option<SessionId>,
    /// With the system prompt.
    pub messages: Vec<NotedMessage>,
    /// Names of the offered tools.
    pub tools: Vec<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotedMessage {
    pub role: ChatRole,
    pub content: String,
}

/// A memory that ends with the process.
pub struct LocalScripts {
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    agents: Mutex<BTreeMap<AgentId, AgentScript>>,
}

#[derive(Default)]
struct AgentScript {
    replacement: Option<Script>,
    progress: ScriptProgress,
    calls: Vec<NotedCall>,
}

impl LocalScripts {
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Box::new(clock),
            agents: Mutex::default(),
        }
    }

    /// Replaces the agent's script. The new one is not used up.
    pub fn replace(&self, agent: &AgentId, script: Script) {
        let mut agents = self.agents.lock();
        let kept = agents.entry(agent.clone()).or_default();
        kept.replacement = Some(script);
        kept.progress = ScriptProgress::default();
    }

    /// The calls so far, oldest first.
    pub fn calls(&self, agent: &AgentId) -> Vec<NotedCall> {
        let agents = self.agents.lock();
        agents
            .get(agent)
            .map(|kept| kept.calls.clone())
            .unwrap_or_default()
    }
}

#[async_trait]
impl ScriptMemory for LocalScripts {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn take(
        &self,
        agent: &AgentId,
        call: NotedCall,
        choose: &mut ScriptChooser<'_>,
    ) -> Result<(), CodeError> {
        let mut agents = self.agents.lock();
        let kept = agents.entry(agent.clone()).or_default();
        kept.calls.push(call);
        choose(kept.replacement.as_ref(), &mut kept.progress);
        Ok(())
    }
}
