//! `core.conversationGate`: a conversation, turn by turn, until a person closes it.

use super::ParseContext;
use super::interrupt_settings::{GateDeciders, InterruptSettings, TANDEM};
use super::settings::{Setting, list_of, object, value};
use crate::conformance::scripts;
use crate::definition::{Problem, schema};
use serde_json::{Value, json};
use tandem_record::Object;
use tandem_schema::{Meter, Schema};

/// `lifecycle` names the only mode this host supports; its value changes nothing.
pub(super) const SETTINGS: &[Setting] = &[
    value("prompt"),
    value("schema"),
    list_of("participants", PARTICIPANT),
    value("lifecycle"),
    value(scripts::AUTO_RESUME),
    value("turnCount"),
    value("timeoutMs"),
    object("tandem", TANDEM),
];

/// The keys of the protocol's reference to an agent.
const PARTICIPANT: &[Setting] = &[
    value("agentId"),
    value("name"),
    value("modelClass"),
    value("memoryRef"),
    value("version"),
    value("channel"),
    value("sourceManifestId"),
];

#[derive(Debug)]
pub(crate) struct ConversationGate {
    prompt: String,
    schema: Option<Schema>,
    pub(crate) schema_document: Option<Value>,
    /// Agents that may take part, as the author listed them.
    pub(crate) participants: Option<Value>,
    /// Test only: holds this many turns with itself and closes.
    pub(crate) scripted_turns: Option<u64>,
    pub(crate) interrupt_settings: InterruptSettings,
}

impl ConversationGate {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let schema_document = config.get("schema").filter(|s| !s.is_null()).cloned();
        let schema = match &schema_document {
            None => None,
            Some(document) => Some(cx.schema("schema", document)?),
        };
        let participants = config.get("participants").filter(|p| !p.is_null()).cloned();
        if let Some(listed) = &participants {
            let named = |p: &Value| p.get("agentId").is_some_and(Value::is_string);
            if !listed.as_array().is_some_and(|all| all.iter().all(named)) {
                return cx.bad("participants", "must be a list of objects with an agentId");
            }
        }
        let scripted_turns = scripts::scripted_turns(config, cx)?;
        let none =
            |_: &Value, _: &Meter| Err((String::new(), "a conversation has no default".to_owned()));
        let prompt = cx.text(config, "prompt")?.filter(|text| !text.is_empty());
        Some(Self {
            prompt: prompt.unwrap_or_else(|| "Your turn.".to_owned()),
            schema,
            schema_document,
            participants,
            scripted_turns,
            interrupt_settings: InterruptSettings::parse(
                config,
                GateDeciders::default(),
                none,
                cx,
            )?,
        })
    }

    /// A conversation without rules of its own.
    pub(crate) fn plain(prompt: &str) -> Self {
        Self {
            prompt: prompt.to_owned(),
            schema: None,
            schema_document: None,
            participants: None,
            scripted_turns: None,
            interrupt_settings: InterruptSettings::default(),
        }
    }

    pub(crate) fn data(&self, conversation: &str) -> Value {
        let mut data = json!({"conversationId": conversation, "prompt": self.prompt});
        if let Some(schema) = &self.schema_document {
            data["outcomeSchema"] = schema.clone();
        }
        data
    }

    pub(crate) fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What is wrong with a turn's content.
    pub(crate) fn check_value(&self, content: &Value, at: &str, meter: &Meter) -> Vec<Problem> {
        let schema = self.schema.as_ref();
        schema.map_or_else(Vec::new, |s| schema::problems(s, content, at, meter))
    }

    /// Whether an agent may take part.
    pub(crate) fn is_participant(&self, speaker: &str) -> bool {
        let listed = self.participants.as_ref().and_then(Value::as_array);
        let is = |p: &Value| p.get("agentId").and_then(Value::as_str) == Some(speaker);
        listed.is_none_or(|all| all.iter().any(is))
    }
}
