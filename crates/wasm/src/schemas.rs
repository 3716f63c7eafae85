//! The shapes a node's author promised for what goes in and comes out.

use crate::limits::PackLimits;
use crate::load::Files;
use crate::load_error::PackLoadError;
use crate::manifest::{Node, stays_inside};
use serde_json::Value;
use std::sync::Arc;
use tandem_record::Object;
use tandem_schema::{Budget, Meter, Schema, ValidationFailure};

#[derive(Default)]
pub(crate) struct Schemas {
    config: Option<Arc<Schema>>,
    inputs: Option<Schema>,
    outputs: Option<Schema>,
}

impl Schemas {
    pub(crate) fn read(
        node: &Node,
        files: Files<'_>,
        limits: &PackLimits,
    ) -> Result<Self, PackLoadError> {
        let mut budget = Budget::default();
        let mut read = |path: &Option<String>| match path {
            Some(path) => compile(path, files, limits, &mut budget).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            config: read(&node.config_schema_ref)?.map(Arc::new),
            inputs: read(&node.input_schema_ref)?,
            outputs: read(&node.output_schema_ref)?,
        })
    }

    pub(crate) fn of_config(&self) -> Option<Arc<Schema>> {
        self.config.clone()
    }

    /// Also held by whoever registers a workflow; but that may have been another version.
    pub(crate) fn config(&self, config: &Object) -> Result<(), String> {
        check(self.config.as_deref(), config, "config")
    }

    pub(crate) fn inputs(&self, inputs: &Object) -> Result<(), String> {
        check(self.inputs.as_ref(), inputs, "inputs")
    }

    pub(crate) fn outputs(&self, outputs: &Object) -> Result<(), String> {
        check(self.outputs.as_ref(), outputs, "output")
    }
}

fn compile(
    path: &str,
    files: Files<'_>,
    limits: &PackLimits,
    budget: &mut Budget,
) -> Result<Schema, PackLoadError> {
    let wrong = |why: String| PackLoadError::Manifest(format!("{path}: {why}"));
    if !stays_inside(path) {
        return Err(wrong("leads out of the pack".to_owned()));
    }
    let bytes = files(path, limits.text_bytes)?;
    let schema: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
    Schema::compile(&schema, budget).map_err(|why| wrong(format!("at {:?}: {why}", why.at)))
}

/// Names the place, not the value: it may be nobody else's business.
fn check(schema: Option<&Schema>, object: &Object, what: &str) -> Result<(), String> {
    let Some(schema) = schema else {
        return Ok(());
    };
    let value = Value::Object(object.clone());
    // Whoever calls this is on a thread that may take its time.
    let checked = schema.check(&value, &Meter::unlimited(), 1, |error| {
        format!("{what}{}: {}", error.instance_path(), error.masked())
    });
    checked.map_err(|failure| match failure {
        ValidationFailure::Errors(errors) => errors.concat(),
        other => format!("{what} {}", other.message()),
    })
}
