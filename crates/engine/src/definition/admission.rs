//! Rules that apply only at registration. A stored document need not meet them: it always compiles,
//! so that the runs pinned to it stay readable.

use super::check::{Examined, examine};
use super::{
    Definition, Permissions, Problem, scheduled_triggers, undefined_names, unreachable,
    without_effect,
};
use crate::conformance::scripts::decision_faults;
use crate::node::{Kind, RefusalPolicy, profile_problem, unknown_pack_settings, unknown_settings};
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::Object;

/// Maximum number of problems of one document that are reported at once.
const MAX_REPORTED: usize = 100;

impl Definition {
    /// Compiles a document for registration. A refusal lists the errors first, then the warnings.
    pub fn admit(document: &Value, permissions: Permissions) -> Result<Self, Vec<Problem>> {
        let Examined {
            definition,
            whole,
            mut problems,
        } = examine(document, permissions);
        let of_packs = unknown_pack_settings(document, permissions.packs);
        for unknown in unknown_settings(document).into_iter().chain(of_packs) {
            let problem = Problem {
                warning: match unknown.refusal {
                    RefusalPolicy::Always => false,
                    RefusalPolicy::UnlessAllowed => permissions.unknown_settings,
                    RefusalPolicy::Never => true,
                },
                ..unknown.problem
            };
            problems.push(problem);
        }
        problems.extend(without_effect::problems(document));
        problems.extend(undefined_names::own_children(document));
        if let Some(definition) = &definition {
            problems.extend(quorums(definition));
            problems.extend(profiles(definition));
            problems.extend(scheduled_triggers::problems(definition, permissions));
            problems.extend(defaults(definition));
            problems.extend(mapped_channels(definition));
            problems.extend(closed_settings(definition));
            problems.extend(undefined_names::problems(
                definition,
                permissions.unknown_settings,
            ));
            if whole {
                problems.extend(unreachable::unreachable_nodes(definition));
            }
        }
        // One problem per path: the first says the most.
        let mut paths = BTreeSet::new();
        problems.retain(|problem| paths.insert(problem.path.clone()));
        problems.sort_by_key(|problem| problem.warning);
        problems.truncate(MAX_REPORTED);
        match definition {
            Some(definition) if problems.iter().all(|problem| problem.warning) => Ok(Self {
                warnings: problems,
                ..definition
            }),
            _ => Err(problems),
        }
    }
}

/// A quorum is filled by different people. More than are named, over all levels of escalation, never
/// decide.
fn quorums(definition: &Definition) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &definition.nodes {
        let Kind::ApprovalGate(gate) = &node.kind else {
            continue;
        };
        let Some(people) = gate.interrupt_settings.most_approvers() else {
            continue;
        };
        if u64::from(gate.required) <= people as u64 {
            continue;
        }
        let data = match node.type_id.as_str() {
            "core.interrupt" => "/data",
            _ => "",
        };
        let path = format!("/nodes/{}/config{data}/requiredApprovals", node.doc);
        let message = format!(
            "is {}, but only {people} may approve: the question could never be accepted",
            gate.required
        );
        problems.push(Problem {
            node: Some(node.id.clone()),
            ..Problem::new(path, message)
        });
    }
    problems
}

/// A misspelled profile would be taken for none.
fn profiles(definition: &Definition) -> Vec<Problem> {
    let gates = definition
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, Kind::ApprovalGate(_)));
    gates
        .filter_map(|node| {
            let config = &definition.document.nodes[node.doc].config;
            let message = profile_problem(config)?;
            Some(Problem {
                node: Some(node.id.clone()),
                ..Problem::new(format!("/nodes/{}/config/profile", node.doc), message)
            })
        })
        .collect()
}

/// A default is what a caller could have given: of the declared type, or `null` for none.
fn defaults(definition: &Definition) -> Vec<Problem> {
    let variables = definition.document.variables.iter().enumerate();
    let default = variables.filter_map(|(i, v)| Some((i, v, v.default_value.as_ref()?)));
    default
        .filter(|(_, variable, default)| !default.is_null() && !variable.accepts(default))
        .map(|(i, variable, _)| {
            let message = format!(
                "must be {}, as the variable declares",
                variable.kind_label()
            );
            Problem::new(format!("/variables/{i}/defaultValue"), message)
        })
        .collect()
}

/// Channels are written through their reducer, never as variables of the same name.
fn mapped_channels(definition: &Definition) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &definition.nodes {
        let mapped: Vec<&String> = match &node.kind {
            Kind::SubWorkflow(sub) => sub.output_mapping.iter().map(|(to, _)| to).collect(),
            Kind::Dispatch(dispatch) => dispatch.output_variables().collect(),
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

/// Settings of closed configurations must have a value or be absent; earlier versions also accepted
/// `null`.
fn closed_settings(definition: &Definition) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &definition.nodes {
        let config = &definition.document.nodes[node.doc].config;
        let faults = match &node.kind {
            Kind::Dispatch(_) => nulls_of_dispatch(config),
            Kind::Conformance(kind) => kind.config_faults(config),
            Kind::Supervisor(_) => decision_faults(config),
            _ => Vec::new(),
        };
        problems.extend(faults.into_iter().map(|(below, message)| Problem {
            node: Some(node.id.clone()),
            ..Problem::new(format!("/nodes/{}/config{below}", node.doc), message)
        }));
    }
    problems
}

/// A path below the configuration, and what is wrong there.
pub(crate) type Fault = (String, String);

pub(crate) fn nulls(fields: &Object, below: &str) -> Vec<Fault> {
    let empty = fields.iter().filter(|(_, value)| value.is_null());
    empty
        .map(|(key, _)| (format!("{below}/{key}"), "is null; leave it out".to_owned()))
        .collect()
}

fn nulls_of_dispatch(config: &Object) -> Vec<Fault> {
    let mut faults = nulls(config, "");
    for key in ["perWorkerInputMappings", "perWorkerOutputMappings"] {
        if let Some(workers) = config.get(key).and_then(Value::as_object) {
            faults.extend(nulls(workers, &format!("/{key}")));
        }
    }
    faults
}

#[cfg(test)]
mod tests;
