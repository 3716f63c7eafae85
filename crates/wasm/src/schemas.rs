//! The schemas that a node's author declared for inputs and outputs.

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

    /// Also checked when a workflow is registered, but perhaps with another version of the pack.
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
    let compiled = Schema::compile(&schema, budget);
    let compiled = compiled.map_err(|why| wrong(format!("at {:?}: {why}", why.at)))?;
    Ok(compiled.keeping_keys(&schema))
}

/// Names the location, not the value: it may be confidential.
fn check(schema: Option<&Schema>, object: &Object, what: &str) -> Result<(), String> {
    let Some(schema) = schema else {
        return Ok(());
    };
    let value = Value::Object(object.clone());
    // The caller is on a blocking thread, so no limit is needed.
    let checked = schema.check(&value, &Meter::unlimited(), 1, |error| {
        format!("{what}{}: {}", error.instance_path(), error.masked())
    });
    checked.map_err(|failure| match failure {
        ValidationFailure::Errors(errors) => errors.concat(),
        other => format!("{what} {}", other.message()),
    })
}
