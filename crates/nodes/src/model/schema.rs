//! How a provider gets the schema of the requested JSON.

use serde_json::Value;
use tandem_record::{ModelMessage, ModelRequest, ModelRole};

/// How a provider supports schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// As part of the request.
    #[default]
    Native,
    /// As text in a message.
    Text,
}

/// The messages, preceded by the schema as text.
pub(super) fn with_schema_message(request: &ModelRequest, schema: &Value) -> Vec<ModelMessage> {
    let instruction = ModelMessage {
        role: ModelRole::System,
        content: schema_instruction(schema),
    };
    std::iter::once(instruction)
        .chain(request.messages.iter().cloned())
        .collect()
}

/// Asks for JSON of a schema in words.
pub(crate) fn schema_instruction(schema: &Value) -> String {
    format!(
        "Answer with a single JSON value that fits this JSON Schema, and with nothing else:\n{schema}"
    )
}

/// Whether every object of the schema is closed and complete, which strict modes require.
pub(super) fn is_strict(schema: &Value) -> bool {
    let Value::Object(members) = schema else {
        return true;
    };
    let closed = match members.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            let required = members.get("required").and_then(Value::as_array);
            let required = required.map(Vec::as_slice).unwrap_or_default();
            members.get("additionalProperties") == Some(&Value::Bool(false))
                && properties
                    .keys()
                    .all(|name| required.iter().any(|r| r == name.as_str()))
        }
        None => members.get("type") != Some(&Value::from("object")),
    };
    let inner = |value: &Value| match value {
        Value::Array(items) => items.iter().all(is_strict),
        other => is_strict(other),
    };
    let named = |key: &str| {
        let group = members.get(key).and_then(Value::as_object);
        group.is_none_or(|g| g.values().all(is_strict))
    };
    closed
        && ["items", "anyOf"]
            .iter()
            .all(|key| members.get(*key).is_none_or(inner))
        && ["properties", "$defs"].iter().all(|key| named(key))
}
