//! Readings of messages, commands, rights and rates.

mod admins;
mod commands;
mod confirmations;
mod keyword_tables;
mod rates;

use crate::flow::{AuthorSchema, SchemaSource};
use serde_json::Value;
use tandem_schema::Budget;

fn schema(document: &Value) -> AuthorSchema {
    let (source, _) = SchemaSource::read(document, &mut Budget::default()).expect("a schema");
    AuthorSchema::compile(&source).expect("a schema")
}
