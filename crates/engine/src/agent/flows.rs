//! The flows of an agent, from its configuration and from flow files.

use super::names;
use crate::flow::{AuthorSchema, SchemaSource};
use crate::object_reader::{FieldProblems, ObjectReader};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_schema::Budget;

const MAX_FLOWS: usize = 500;

/// A flow as the loader found it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadedFlow {
    pub flow_id: String,
    /// Hash of the code it runs with.
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// `true` or `{alias}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_tool: Option<Value>,
}

#[derive(Debug)]
pub struct FlowSpec {
    pub flow_id: String,
    /// Absent for a flow inside the agent file, whose version is that of the agent's code.
    pub version: Option<String>,
    pub description: Option<String>,
    pub input_schema: Option<AuthorSchema>,
    /// Offered to the model under this name.
    pub tool: Option<FlowTool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTool {
    pub alias: String,
}

pub(super) fn flows(
    config: &ObjectReader<'_>,
    loaded: &[LoadedFlow],
    problems: &FieldProblems,
    budget: &mut Budget,
) -> BTreeMap<String, FlowSpec> {
    let mut flows = BTreeMap::new();
    for (flow_id, value) in config.entries("flows", MAX_FLOWS) {
        let at = pointer(flow_id);
        if let Some(flow) = in_config(flow_id, value, &at, problems, budget) {
            flows.insert(flow_id.to_owned(), flow);
        }
    }
    if loaded.len() > MAX_FLOWS {
        problems.report("/flows", format!("an agent has at most {MAX_FLOWS} flows"));
    }
    for found in loaded.iter().take(MAX_FLOWS) {
        let at = pointer(&found.flow_id);
        let flow = from_file(found, &at, problems, budget);
        if flows.insert(found.flow_id.clone(), flow).is_some() {
            problems.report(at, "this flow id is given twice");
        }
    }
    for flow_id in flows.keys() {
        if let Some(why) = names::bad_flow_id(flow_id) {
            problems.report(pointer(flow_id), why);
        }
    }
    flows
}

fn pointer(flow_id: &str) -> String {
    format!("/flows/{}", names::escaped(flow_id))
}

/// A bare function, or a registration with a function `run`.
fn in_config(
    flow_id: &str,
    value: &Value,
    at: &str,
    problems: &FieldProblems,
    budget: &mut Budget,
) -> Option<FlowSpec> {
    if crate::flow::is_function(value) {
        return Some(FlowSpec {
            flow_id: flow_id.to_owned(),
            version: None,
            description: None,
            input_schema: None,
            tool: None,
        });
    }
    let registration = ObjectReader::new(value, at, problems)?;
    if registration.get("run").is_none() {
        registration.report("run", "is required");
    }
    registration.function("run");
    let schema = registration.schema("inputSchema", budget);
    Some(FlowSpec {
        flow_id: flow_id.to_owned(),
        version: None,
        description: registration.text("description"),
        input_schema: schema.map(|(source, compiled)| AuthorSchema::new(source, compiled)),
        tool: as_tool(registration.get("asTool"), flow_id, at, problems),
    })
}

fn from_file(
    found: &LoadedFlow,
    at: &str,
    problems: &FieldProblems,
    budget: &mut Budget,
) -> FlowSpec {
    let schema = found.input_schema.as_ref();
    let schema = schema.and_then(|schema| {
        let read = SchemaSource::read(schema, budget);
        read.map_err(|why| problems.report(format!("{at}/inputSchema{}", why.at), why.message))
            .ok()
    });
    FlowSpec {
        flow_id: found.flow_id.clone(),
        version: Some(found.version.clone()),
        description: found.description.clone(),
        input_schema: schema.map(|(source, compiled)| AuthorSchema::new(source, compiled)),
        tool: as_tool(found.as_tool.as_ref(), &found.flow_id, at, problems),
    }
}

fn as_tool(
    value: Option<&Value>,
    flow_id: &str,
    at: &str,
    problems: &FieldProblems,
) -> Option<FlowTool> {
    let at = format!("{at}/asTool");
    match value? {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some(FlowTool {
            alias: flow_id.to_owned(),
        }),
        other => {
            let settings = ObjectReader::new(other, at, problems)?;
            let alias = settings.text("alias");
            if let Some(why) = alias.as_deref().and_then(names::bad_tool_name) {
                settings.report("alias", why);
            }
            Some(FlowTool {
                alias: alias.unwrap_or_else(|| flow_id.to_owned()),
            })
        }
    }
}
