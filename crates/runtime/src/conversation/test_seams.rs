//! What test seams of conversations keep in the store: texts the loopback transport took, calls of recording
//! tools and of scripted models, and switches. Only hosts with `--test-seams` write it.

use super::send_retry::HELD_SEND_RETRY_MS;
use crate::runtime::Runtime;
use tandem_record::AgentId;
use tandem_store::{Fault, TestRecord, TestRecordQuery};

/// Records of one answer.
const MAX_RECORDS: usize = 100_000;

/// Kinds of records, and the names of the settings that are switches.
pub struct TestSeams;

impl TestSeams {
    /// A text the loopback transport took: one record for each delivery.
    pub const OUTBOUND: &str = "outbound";
    /// A call of a recording tool: one record for each attempt.
    pub const TOOL_CALL: &str = "tool_call";
    /// A call of a scripted model.
    pub const MODEL_CALL: &str = "model_call";
    /// Faults of the loopback transport.
    pub const TRANSPORT: &str = "test.transport";

    /// The setting with the script that replaces an agent's own.
    pub fn script(agent: &AgentId) -> String {
        format!("test.script.{agent}")
    }

    /// The setting with the progress of an agent's script.
    pub fn script_progress(agent: &AgentId) -> String {
        format!("test.script_progress.{agent}")
    }
}

impl Runtime {
    /// What a seam recorded, in order.
    pub async fn test_records(
        &self,
        kind: &str,
        agent: Option<&AgentId>,
        address: Option<&str>,
    ) -> Result<Vec<TestRecord>, Fault> {
        let query = TestRecordQuery {
            kind: kind.to_owned(),
            agent: agent.cloned(),
            address: address.map(str::to_owned),
            after: 0,
            limit: MAX_RECORDS,
        };
        let records = self.store().test_records(&query).await?;
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }

    /// Makes the texts due that the loopback transport held back. The test clock moves by their pause.
    pub async fn release_held_texts(&self) -> Result<(), Fault> {
        self.advance_clock(HELD_SEND_RETRY_MS).await?;
        Ok(())
    }

    /// Sets a switch of a seam.
    pub async fn set_test_switch(&self, name: &str, value: &str) -> Result<(), Fault> {
        self.store().set(name, value).await?;
        // What waited for the switch is tried now.
        self.inner.effects.bell.notify_one();
        Ok(())
    }

    pub async fn test_switch(&self, name: &str) -> Result<Option<String>, Fault> {
        self.store().get(name).await
    }
}
