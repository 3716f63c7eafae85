//! What a document must not say when it comes in, though one that came in earlier may: a stored
//! document always compiles, so that the runs pinned to it stay readable.

use super::{Definition, Permissions, Problem};
use crate::node::Kind;
use serde_json::Value;

impl Definition {
    /// Compiles a document that somebody wants to register.
    pub fn admit(document: &Value, permissions: Permissions) -> Result<Self, Vec<Problem>> {
        let definition = Self::compile(document, permissions)?;
        let mut problems = schedules(&definition);
        problems.extend(mapped_channels(&definition));
        if problems.is_empty() {
            Ok(definition)
        } else {
            Err(problems)
        }
    }
}

/// A run nobody starts is a promise this host does not keep.
fn schedules(definition: &Definition) -> Vec<Problem> {
    let triggers = definition.document.triggers.iter().enumerate();
    triggers
        .filter(|(_, trigger)| trigger.kind == "schedule" && trigger.enabled)
        .map(|(i, _)| Problem {
            capability: Some("scheduling"),
            ..Problem::new(
                format!("/triggers/{i}"),
                "this host starts no runs by schedule; remove or disable the trigger",
            )
        })
        .collect()
}

/// Channels are written through their reducer, never as variables of the same name.
fn mapped_channels(definition: &Definition) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &definition.nodes {
        let mapped: Vec<&String> = match &node.kind {
            Kind::SubWorkflow(sub) => sub.output_mapping.iter().map(|(to, _)| to).collect(),
            Kind::Dispatch(dispatch) => dispatch.harvested_into().collect(),
            _ => Vec::new(),
        };
        for name in mapped {
            if definition.channels.contains_key(name) {
                let path = format!("/nodes/{}/config/outputMapping/{name}", node.doc);
                let message = format!("{name:?} is a channel; write it with core.channelWrite");
                problems.push(Problem {
                    node: Some(node.id.clone()),
                    ..Problem::new(path, message)
                });
            }
        }
    }
    problems
}
