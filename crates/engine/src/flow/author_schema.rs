//! A schema of an author, compiled where it is data.

use super::SchemaSource;
use serde_json::Value;
use std::sync::Arc;
use tandem_schema::{Budget, Meter, Schema, SchemaRefusal, ValidationFailure, short_message};

/// Errors listed about one value.
const MAX_ERRORS: usize = 10;

#[derive(Debug, Clone)]
pub struct AuthorSchema {
    source: SchemaSource,
    compiled: Option<Arc<Schema>>,
}

impl AuthorSchema {
    pub(crate) fn new(source: SchemaSource, compiled: Option<Schema>) -> Self {
        Self {
            source,
            compiled: compiled.map(Arc::new),
        }
    }

    /// Compiles a schema that came with an effect.
    pub fn compile(source: &SchemaSource) -> Result<Self, SchemaRefusal> {
        let compiled = source
            .json()
            .map(|json| Schema::compile(json, &mut Budget::default()));
        Ok(Self::new(source.clone(), compiled.transpose()?))
    }

    /// What the author gave: for models, for coercion, and to know where it is validated.
    pub fn source(&self) -> &SchemaSource {
        &self.source
    }

    /// Whether values are validated by the author's code.
    pub fn is_in_realm(&self) -> bool {
        self.compiled.is_none()
    }

    /// Why a value does not fit. A schema that lives in a realm has nothing to say here.
    pub fn errors(&self, value: &Value, meter: &Meter) -> Vec<String> {
        let Some(schema) = &self.compiled else {
            return Vec::new();
        };
        let checked = schema.check(value, meter, MAX_ERRORS, |error| {
            let place = error.instance_path().to_string();
            let place = place.trim_start_matches('/');
            match place {
                "" => short_message(error),
                place => format!("{place}: {}", short_message(error)),
            }
        });
        match checked {
            Ok(()) => Vec::new(),
            Err(ValidationFailure::Errors(errors)) => errors,
            Err(failure) => vec![failure.message()],
        }
    }
}
