//! The model of an agent.

use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentModel {
    /// Answers from a script, without network.
    Scripted { script: ScriptSource },
    /// A provider of the host or an endpoint that speaks its protocol.
    Provider {
        provider: String,
        model: Option<String>,
        base_url: Option<String>,
        /// Name of the environment variable that holds the key. The key itself is never configured.
        api_key_env: Option<String>,
        temperature: Option<f64>,
        max_tokens: Option<u32>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptSource {
    /// Path in the agent's folder.
    File(String),
    Inline(Value),
}

const SCRIPTED: &str = "scripted";

pub(super) fn model(config: &ObjectReader<'_>, name: &str) -> Option<AgentModel> {
    let model = config.object(name)?;
    let provider = model.required_text("provider");
    if provider == SCRIPTED {
        return Some(AgentModel::Scripted {
            script: script(&model),
        });
    }
    if model.get("script").is_some() {
        model.report("script", "only the provider scripted has a script");
    }
    Some(AgentModel::Provider {
        provider,
        model: model.text("model"),
        base_url: model.http_url("baseUrl"),
        api_key_env: model.text("apiKeyEnv"),
        temperature: model.number("temperature", 0.0..=2.0),
        max_tokens: model.integer("maxTokens", 1..=10_000_000).map(|n| n as u32),
    })
}

fn script(model: &ObjectReader<'_>) -> ScriptSource {
    match model.get("script") {
        Some(script @ Value::Object(_)) => ScriptSource::Inline(script.clone()),
        _ => {
            let path = model.required_text("script");
            let leaves = path.split(['/', '\\']).any(|part| part == "..");
            if leaves || path.starts_with(['/', '\\']) {
                model.report("script", "must be a path inside the agent's folder");
            }
            ScriptSource::File(path)
        }
    }
}
