//! A schema an author gave: JSON Schema as data, or a validator that exists only in the author's code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_schema::{Budget, Schema, SchemaRefusal};

/// Marks a Standard Schema object in data that came from a realm.
const STANDARD_MARKER: &str = "$standard";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaSource {
    Json(Value),
    /// A Standard Schema: values are validated in the realm it lives in. The marker is kept, because it
    /// may carry a description for models.
    Realm(Value),
}

impl SchemaSource {
    /// Reads a schema. JSON Schemas are compiled once to see that they can be used.
    pub fn read(
        value: &Value,
        budget: &mut Budget,
    ) -> Result<(Self, Option<Schema>), SchemaRefusal> {
        if value.get(STANDARD_MARKER).is_some_and(|mark| mark == true) {
            return Ok((Self::Realm(value.clone()), None));
        }
        let schema = Schema::compile(value, budget)?;
        Ok((Self::Json(value.clone()), Some(schema)))
    }

    /// The JSON Schema, if it is one.
    pub fn json(&self) -> Option<&Value> {
        match self {
            Self::Json(schema) => Some(schema),
            Self::Realm(_) => None,
        }
    }
}
