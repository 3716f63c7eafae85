//! Schemas in documents: how they are compiled, and how their errors are reported. Also the schema
//! of the workflow document itself, which reports every problem with a JSON pointer.

use super::{Permissions, Problem};
use crate::pack::AllowedPackTypes;
use serde_json::Value;
use std::sync::LazyLock;
use tandem_schema::{
    Budget, MAX_WORK, Meter, Pattern, Schema, SchemaRefusal, ValidationFailure, short_message,
};

static DOCUMENT: LazyLock<Schema> = LazyLock::new(|| {
    let text = include_str!("workflow.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the embedded schema is JSON");
    Schema::builtin(&schema)
});

/// Maximum number of problems reported for one document; a hostile one must not produce an
/// unlimited answer.
const MAX_PROBLEMS: usize = 50;

pub(super) fn check(document: &Value) -> Vec<Problem> {
    problems(&DOCUMENT, document, "", &Meter::unlimited())
}

/// Errors of any schema about a value that is at `at` in a larger document.
pub(crate) fn problems(schema: &Schema, value: &Value, at: &str, meter: &Meter) -> Vec<Problem> {
    let checked = schema.check(value, meter, MAX_PROBLEMS, |error| {
        Problem::new(
            format!("{at}{}", error.instance_path()),
            short_message(error),
        )
    });
    match checked {
        Ok(()) => Vec::new(),
        Err(ValidationFailure::Errors(problems)) => problems,
        Err(failure) => vec![Problem {
            reason: failure.code(),
            ..Problem::new(at, failure.message())
        }],
    }
}

/// Compiles the schemas of one document.
#[derive(Debug)]
pub(crate) struct Schemas {
    budget: Budget,
    /// The document was accepted earlier, perhaps before there were limits.
    pub(crate) stored: bool,
    /// For values in the document that are checked while it is compiled.
    pub(crate) meter: Meter,
    weight: usize,
}

impl Schemas {
    pub(crate) fn of(permissions: Permissions<'_>) -> Self {
        Self {
            budget: Budget::default(),
            stored: matches!(permissions.packs, AllowedPackTypes::PreviouslyAccepted),
            meter: Meter::with_limit(MAX_WORK),
            weight: 0,
        }
    }

    /// A schema that is refused today but was accepted earlier does not make its document
    /// unreadable: it becomes a schema that matches no value, and its errors say why.
    pub(crate) fn compile(&mut self, schema: &Value) -> Result<Schema, SchemaRefusal> {
        match Schema::compile(schema, &mut self.budget) {
            Ok(schema) => {
                self.weight += schema.weight();
                Ok(schema)
            }
            Err(why) if self.stored => Ok(Schema::refused(why)),
            Err(why) => Err(why),
        }
    }

    /// A pattern outside of schemas. One that was accepted earlier stays valid.
    pub(crate) fn pattern(&mut self, text: &str) -> Result<Pattern, SchemaRefusal> {
        let budget = (!self.stored).then_some(&mut self.budget);
        let pattern = Pattern::compile(text, budget)?;
        self.weight += pattern.weight();
        Ok(pattern)
    }

    /// Approximate bytes of memory of the schemas.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

/// The problem of a refused schema, which is at `at` in the document.
pub(crate) fn refusal(why: &SchemaRefusal, at: &str) -> Problem {
    Problem::new(format!("{at}{}", why.at), &why.message).with_reason("schema_refused")
}

#[cfg(test)]
mod tests;
