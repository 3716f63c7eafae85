//! What agents leave for tests, kept in the store: it survives restarts and is shared by processes. A host
//! without test seams keeps nothing.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_agents::{LoopbackFaults, LoopbackReply, RecordedToolCall, RecorderFault, TestRecorder};
use tandem_nodes::{NotedCall, Script, ScriptChooser, ScriptMemory, ScriptProgress};
use tandem_record::conversation::CodeError;
use tandem_record::{AgentId, EffectId, Timestamp};
use tandem_runtime::conversation::TestSeams;
use tandem_runtime::{Clock, Fault};
use tandem_store::{Store, TestRecord, TestRecordQuery};
use tokio::sync::Mutex;

/// Records of one tool or address that are looked at.
const MAX_RECORDS: usize = 100_000;

/// Keeps everything in the store.
pub(super) struct StoreRecorder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Held while something is read and changed.
    changing: Mutex<()>,
}

impl StoreRecorder {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            changing: Mutex::default(),
        }
    }

    async fn records(
        &self,
        kind: &str,
        agent: Option<&AgentId>,
        address: &str,
    ) -> Result<Vec<TestRecord>, Fault> {
        let query = TestRecordQuery {
            kind: kind.to_owned(),
            agent: agent.cloned(),
            address: Some(address.to_owned()),
            after: 0,
            limit: MAX_RECORDS,
        };
        let found = self.store.test_records(&query).await?;
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    async fn faults(&self) -> Result<LoopbackFaults, Fault> {
        let stored = self.store.get(TestSeams::TRANSPORT).await?;
        let stored = stored.and_then(|text| serde_json::from_str(&text).ok());
        Ok(stored.unwrap_or_default())
    }

    async fn set_faults(&self, faults: LoopbackFaults) -> Result<(), Fault> {
        let text = json!(faults).to_string();
        self.store.set(TestSeams::TRANSPORT, &text).await
    }

    async fn note_call(
        &self,
        agent: &AgentId,
        call: RecordedToolCall,
        fail_times: u32,
    ) -> Result<bool, Fault> {
        let _changing = self.changing.lock().await;
        let known = self
            .records(TestSeams::TOOL_CALL, Some(agent), &call.name)
            .await?;
        let has_failed = |record: &TestRecord| {
            let body: Value = serde_json::from_str(&record.body).unwrap_or_default();
            body["failed"] == json!(true)
        };
        let key = Some(call.idempotency_key.to_string());
        if known
            .iter()
            .any(|record| record.key == key && !has_failed(record))
        {
            return Ok(true);
        }
        let failures = known.iter().filter(|record| has_failed(record)).count();
        let fails = failures < fail_times as usize;
        let mut body = json!(call);
        body["failed"] = json!(fails);
        let record = TestRecord {
            kind: TestSeams::TOOL_CALL.to_owned(),
            agent: agent.clone(),
            address: call.name,
            key,
            body: body.to_string(),
        };
        self.store.add_test_record(record).await?;
        Ok(!fails)
    }

    async fn take_text(
        &self,
        to: &str,
        text: &str,
        key: &EffectId,
        now: Timestamp,
    ) -> Result<LoopbackReply, Fault> {
        let _changing = self.changing.lock().await;
        let mut faults = self.faults().await?;
        if faults.paused {
            return Ok(LoopbackReply::Paused);
        }
        if faults.fail_next > 0 {
            faults.fail_next -= 1;
            self.set_faults(faults).await?;
            return Ok(LoopbackReply::Failed);
        }
        let id = format!("loopback:{key}");
        if faults.drop_next > 0 {
            faults.drop_next -= 1;
            self.set_faults(faults).await?;
            return Ok(LoopbackReply::Accepted { id });
        }
        let body = json!({"id": id, "to": to, "text": text, "key": key, "at": now});
        let record = TestRecord {
            kind: TestSeams::OUTBOUND.to_owned(),
            agent: AgentId::new(""),
            address: to.to_owned(),
            key: Some(key.to_string()),
            body: body.to_string(),
        };
        self.store.add_test_record(record).await?;
        Ok(LoopbackReply::Accepted { id })
    }

    async fn choose(
        &self,
        agent: &AgentId,
        call: NotedCall,
        choose: &mut ScriptChooser<'_>,
    ) -> Result<(), Fault> {
        let _changing = self.changing.lock().await;
        let record = TestRecord {
            kind: TestSeams::MODEL_CALL.to_owned(),
            agent: agent.clone(),
            address: String::new(),
            key: None,
            body: json!(call).to_string(),
        };
        self.store.add_test_record(record).await?;
        let replacement = self.store.get(&TestSeams::script(agent)).await?;
        let replacement = replacement.and_then(|text| Script::parse(&text).ok());
        let setting = TestSeams::script_progress(agent);
        let progress = self.store.get(&setting).await?;
        let progress = progress.and_then(|text| serde_json::from_str(&text).ok());
        let mut progress: ScriptProgress = progress.unwrap_or_default();
        choose(replacement.as_ref(), &mut progress);
        self.store.set(&setting, &json!(progress).to_string()).await
    }
}

fn unreachable(fault: Fault) -> RecorderFault {
    RecorderFault(fault.to_string())
}

#[async_trait]
impl TestRecorder for StoreRecorder {
    async fn note_tool_call(
        &self,
        agent: &AgentId,
        call: RecordedToolCall,
        fail_times: u32,
    ) -> Result<bool, RecorderFault> {
        let noted = self.note_call(agent, call, fail_times).await;
        noted.map_err(unreachable)
    }

    async fn receive(
        &self,
        to: &str,
        text: &str,
        key: &EffectId,
        now: Timestamp,
    ) -> Result<LoopbackReply, RecorderFault> {
        let taken = self.take_text(to, text, key, now).await;
        taken.map_err(unreachable)
    }
}

#[async_trait]
impl ScriptMemory for StoreRecorder {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn take(
        &self,
        agent: &AgentId,
        call: NotedCall,
        choose: &mut ScriptChooser<'_>,
    ) -> Result<(), CodeError> {
        let taken = StoreRecorder::choose(self, agent, call, choose).await;
        taken.map_err(|fault| CodeError {
            code: "provider_unavailable".to_owned(),
            message: fault.to_string(),
        })
    }
}

/// Keeps nothing. A text that a loopback user gets is in the log of the session.
pub(super) struct NoRecorder;

#[async_trait]
impl TestRecorder for NoRecorder {
    async fn note_tool_call(
        &self,
        _: &AgentId,
        _: RecordedToolCall,
        _: u32,
    ) -> Result<bool, RecorderFault> {
        Ok(true)
    }

    async fn receive(
        &self,
        _: &str,
        _: &str,
        key: &EffectId,
        _: Timestamp,
    ) -> Result<LoopbackReply, RecorderFault> {
        let id = format!("loopback:{key}");
        Ok(LoopbackReply::Accepted { id })
    }
}
