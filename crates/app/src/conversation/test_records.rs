//! What agents did, for tests: texts the loopback transport took, calls of models and tools, and switches.

use crate::app::App;
use crate::error::AppError;
use serde_json::{Value, json};
use tandem_access::{Identity, Scope};
use tandem_record::AgentId;
use tandem_runtime::conversation::TestSeams;

/// Faults of the loopback transport; what is absent stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransportFaults {
    pub fail_next: Option<u32>,
    pub drop_next: Option<u32>,
    pub paused: Option<bool>,
}

impl App {
    /// Texts the loopback transport took, one for each key, with the number of deliveries.
    pub async fn test_outbound(
        &self,
        caller: &Identity,
        to: Option<&str>,
    ) -> Result<Vec<Value>, AppError> {
        caller.require_scope(Scope::Test)?;
        let records = self
            .runtime()
            .test_records(TestSeams::OUTBOUND, None, to)
            .await?;
        let mut messages: Vec<Value> = Vec::new();
        for record in records {
            let known = messages
                .iter_mut()
                .find(|message| message["key"].as_str() == record.key.as_deref());
            if let Some(message) = known {
                let deliveries = message["deliveries"].as_u64().unwrap_or(1);
                message["deliveries"] = json!(deliveries + 1);
                continue;
            }
            let mut message = parsed(&record.body);
            message["deliveries"] = json!(1);
            messages.push(message);
        }
        Ok(messages)
    }

    /// Calls of recording tools. A call that was repeated with its key is listed once.
    pub async fn test_tool_calls(
        &self,
        caller: &Identity,
        agent: &AgentId,
    ) -> Result<Vec<Value>, AppError> {
        self.test_calls(caller, TestSeams::TOOL_CALL, agent).await
    }

    /// Calls of the agent's scripted model.
    pub async fn test_model_calls(
        &self,
        caller: &Identity,
        agent: &AgentId,
    ) -> Result<Vec<Value>, AppError> {
        self.test_calls(caller, TestSeams::MODEL_CALL, agent).await
    }

    async fn test_calls(
        &self,
        caller: &Identity,
        kind: &str,
        agent: &AgentId,
    ) -> Result<Vec<Value>, AppError> {
        caller.require_scope(Scope::Test)?;
        let records = self.runtime().test_records(kind, Some(agent), None).await?;
        Ok(records.iter().map(|record| parsed(&record.body)).collect())
    }

    /// Replaces the script of an agent's model. Nothing of the new one is used up.
    pub async fn replace_test_script(
        &self,
        caller: &Identity,
        agent: &AgentId,
        script: &Value,
    ) -> Result<(), AppError> {
        caller.require_scope(Scope::Test)?;
        let runtime = self.runtime();
        let (progress, setting) = (TestSeams::script_progress(agent), TestSeams::script(agent));
        runtime.set_test_switch(&progress, "{}").await?;
        runtime
            .set_test_switch(&setting, &script.to_string())
            .await?;
        Ok(())
    }

    /// Makes the loopback transport fail, lose texts or pause.
    pub async fn set_transport_faults(
        &self,
        caller: &Identity,
        faults: TransportFaults,
    ) -> Result<Value, AppError> {
        caller.require_scope(Scope::Test)?;
        let runtime = self.runtime();
        let stored = runtime.test_switch(TestSeams::TRANSPORT).await?;
        let mut all = stored.as_deref().map(parsed).unwrap_or_else(|| json!({}));
        let was_paused = all["paused"] == true;
        let changes = [
            ("failNext", faults.fail_next.map(|n| json!(n))),
            ("dropNext", faults.drop_next.map(|n| json!(n))),
            ("paused", faults.paused.map(|is| json!(is))),
        ];
        for (name, value) in changes {
            if let Some(value) = value {
                all[name] = value;
            }
        }
        runtime
            .set_test_switch(TestSeams::TRANSPORT, &all.to_string())
            .await?;
        if was_paused && all["paused"] == false {
            runtime.release_held_texts().await?;
        }
        Ok(all)
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
