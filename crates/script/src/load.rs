//! Loads an agent from its folder or file: configuration, flows, and the sources that run them later.
//!
//! Every file is read on its own. A broken flow file leaves the others usable; a broken file of the agent,
//! its tools or its commands leaves the agent without configuration. All problems are listed.

use crate::agent::{AgentCode, AgentRealm, reader};
use crate::collect::{Collected, collect};
use crate::failure::{FailureCode, ScriptFailure};
use crate::limits::ScriptLimits;
use crate::load_error::LoadError;
use crate::realm::{Realm, Surroundings};
use crate::resolve::Resolver;
use crate::source_set::{ADDED_EXPORT, FlowLocation, SourceSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const AGENT_FILES: [&str; 5] = [
    "agent.ts",
    "agent.js",
    "agent.mjs",
    "agent.json",
    "agent.toml",
];
const CODE_EXTENSIONS: [&str; 4] = [".ts", ".js", ".mjs", ".mts"];
const MAX_FILES_PER_FOLDER: usize = 500;
const REMEDY: &str = "a flow is an `async function*`; write `async function*` instead";

#[derive(Debug, Clone, PartialEq)]
pub struct AgentModule {
    /// Name of the folder, or of the file without its extension.
    pub agent_id: String,
    /// As [`AgentRealm::config`] gives it. Absent when a file of the agent is broken.
    pub config: Option<Value>,
    pub code: Option<AgentCode>,
    pub flows: Vec<FlowModule>,
    /// The sources of the flows, by [`FlowModule::version`].
    pub sources: BTreeMap<String, Arc<SourceSet>>,
    pub errors: Vec<LoadError>,
    /// The file of the agent and flow files that have errors, their imports included.
    pub broken: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowModule {
    pub flow_id: String,
    pub file: String,
    /// Hash of its source set (Z-214).
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_tool: Option<Value>,
}

/// What the exports of a module say about a flow.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    kind: String,
    #[serde(default)]
    registered: bool,
    description: Option<String>,
    input_schema: Option<Value>,
    as_tool: Option<Value>,
}

/// `path` is the agent's folder, or its only file.
pub fn load(path: &Path, limits: ScriptLimits, surroundings: &Surroundings) -> AgentModule {
    let is_folder = path.is_dir();
    let root = if is_folder {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut loader = AgentLoader {
        resolver: Resolver::new(root, is_folder),
        limits,
        surroundings,
        module: AgentModule {
            agent_id: if is_folder {
                file_name.to_string()
            } else {
                stem(&file_name).to_owned()
            },
            config: None,
            code: None,
            flows: Vec::new(),
            sources: BTreeMap::new(),
            errors: Vec::new(),
            broken: BTreeSet::new(),
        },
    };
    let agent_file = if is_folder {
        loader.agent_file(path)
    } else {
        Some(file_name.to_string())
    };
    let folder = |name: &str| {
        if is_folder {
            code_files(path, name)
        } else {
            Vec::new()
        }
    };
    if let Some(file) = agent_file {
        let (tools, commands) = (folder("tools"), folder("commands"));
        loader.note_broken(&file, |loader| loader.agent(&file, tools, commands));
    }
    for file in folder("flows") {
        loader.note_broken(&file, |loader| loader.flow_file(&file));
    }
    loader.module
}

/// Whether a folder holds an agent. Of a folder whose only sign is an `agent.json`, that file decides.
pub fn is_agent_folder(path: &Path) -> bool {
    AGENT_FILES.iter().any(|name| {
        let file = path.join(name);
        file.is_file() && (!name.ends_with(".json") || has_prompt(&file))
    })
}

fn has_prompt(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    config.get("prompt").is_some()
}

/// Name of a file without folder and extension.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn code_files(root: &Path, folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_code = |name: &String| {
        CODE_EXTENSIONS.iter().any(|end| name.ends_with(end)) && !name.contains(".d.")
    };
    let mut names: Vec<String> = names.filter(is_code).collect();
    names.sort();
    names.truncate(MAX_FILES_PER_FOLDER);
    names
        .iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

struct AgentLoader<'a> {
    resolver: Resolver,
    limits: ScriptLimits,
    surroundings: &'a Surroundings,
    module: AgentModule,
}

impl AgentLoader<'_> {
    fn note_broken(&mut self, file: &str, read: impl FnOnce(&mut Self)) {
        let known = self.module.errors.len();
        read(self);
        if self.module.errors.len() > known {
            self.module.broken.insert(file.to_owned());
        }
    }

    fn agent_file(&mut self, folder: &Path) -> Option<String> {
        let mut found = AGENT_FILES
            .iter()
            .filter(|name| folder.join(name).is_file());
        let first = found.next();
        let problem = match (first, found.next()) {
            (Some(file), None) => return Some((*file).to_owned()),
            (Some(first), Some(second)) => {
                format!("there are both {first} and {second}; keep one of them")
            }
            (None, _) => format!("there is none of {}", AGENT_FILES.join(", ")),
        };
        self.module.errors.push(LoadError::of_file(
            first.unwrap_or(&AGENT_FILES[0]),
            problem,
        ));
        None
    }

    fn agent(&mut self, file: &str, tools: Vec<String>, commands: Vec<String>) {
        let parts = tools.iter().chain(&commands).map(String::as_str);
        let entries: Vec<&str> = std::iter::once(file).chain(parts).collect();
        let collected = match collect(&self.resolver, &entries) {
            Ok(collected) => collected,
            Err(errors) => return self.module.errors.extend(errors),
        };
        let code = AgentCode {
            set: collected.set,
            tools,
            commands,
        };
        let realm = match AgentRealm::create(&code, self.limits, self.surroundings) {
            Ok(realm) => realm,
            Err(failure) => {
                let error = LoadError::of_failure(file, failure);
                return self.module.errors.push(error);
            }
        };
        let config = realm.config().clone();
        let has_flows = config["flows"]
            .as_object()
            .is_some_and(|flows| !flows.is_empty());
        self.module.config = Some(config);
        self.module.code = Some(code);
        if has_flows {
            // Without tools and commands: a change there does not concern the flows.
            match collect(&self.resolver, &[file]) {
                Ok(collected) => self.configured_flows(file, collected.set),
                Err(errors) => self.module.errors.extend(errors),
            }
        }
    }

    fn configured_flows(&mut self, file: &str, set: SourceSet) {
        let described = self.evaluate(&set, |reader, namespace| {
            let read: rquickjs::Function = reader.get("configuredFlows")?;
            let config: rquickjs::Value = namespace.get("default")?;
            read.call((config,))
        });
        let described = match described {
            Ok(described) => described,
            Err(failure) => {
                let error = LoadError::of_failure(file, failure);
                return self.module.errors.push(error);
            }
        };
        let mut found = Vec::new();
        for (flow_id, flow) in described {
            if flow.kind == "async_generator" {
                found.push((flow_id, FlowLocation::Config, flow));
            } else {
                let message = format!("the flow '{flow_id}': {REMEDY}");
                self.module.errors.push(LoadError::of_file(file, message));
            }
        }
        self.add(file, set, found);
    }

    fn flow_file(&mut self, file: &str) {
        let Collected { set, bindings } = match collect(&self.resolver, &[file]) {
            Ok(collected) => collected,
            Err(errors) => return self.module.errors.extend(errors),
        };
        let described = self.evaluate(&set, |reader, namespace| {
            let read: rquickjs::Function = reader.get("flowsOf")?;
            read.call((namespace, ADDED_EXPORT))
        });
        let described = match described {
            Ok(described) => described,
            Err(failure) => {
                let error = LoadError::of_failure(file, failure);
                return self.module.errors.push(error);
            }
        };
        let place = |export: &str| {
            let binding = bindings.iter().find(|binding| binding.export == export);
            binding.map(|binding| binding.position)
        };
        let mut errors: Vec<LoadError> = bindings
            .iter()
            .filter(|binding| binding.is_hidden_sync_generator)
            .map(|binding| LoadError::at(file, Some(binding.position), REMEDY))
            .collect();
        let mut found = Vec::new();
        for (export, flow) in described {
            let flow_id = match export.strip_prefix(ADDED_EXPORT) {
                Some(name) => name.to_owned(),
                None if export == "default" => stem(file).to_owned(),
                None => export.clone(),
            };
            let is_meant_as_flow = flow.registered || export == "default";
            match flow.kind.as_str() {
                "async_generator" => found.push((flow_id, FlowLocation::Export(export), flow)),
                "generator" => errors.push(LoadError::at(file, place(&export), REMEDY)),
                _ if is_meant_as_flow => errors.push(LoadError::at(file, place(&export), REMEDY)),
                // An exported function that flows share.
                _ => {}
            }
        }
        found.sort_by_key(|(_, location, _)| match location {
            FlowLocation::Export(export) => place(export),
            FlowLocation::Config => None,
        });
        let known: BTreeSet<&str> = self
            .module
            .flows
            .iter()
            .map(|f| f.flow_id.as_str())
            .collect();
        let mut ids = BTreeSet::new();
        for (flow_id, location, _) in &found {
            if known.contains(flow_id.as_str()) || !ids.insert(flow_id.as_str()) {
                let position = match location {
                    FlowLocation::Export(export) => place(export),
                    FlowLocation::Config => None,
                };
                errors.push(LoadError::at(file, position, self.duplicate(flow_id, file)));
            }
        }
        if !errors.is_empty() {
            return self.module.errors.extend(errors);
        }
        self.add(file, set, found);
    }

    fn duplicate(&self, flow_id: &str, file: &str) -> String {
        let other = self
            .module
            .flows
            .iter()
            .find(|flow| flow.flow_id == flow_id);
        let other = other.map_or(file, |flow| flow.file.as_str());
        format!("the flow '{flow_id}' is already defined in {other}; rename one of them")
    }

    fn add(
        &mut self,
        file: &str,
        mut set: SourceSet,
        found: Vec<(String, FlowLocation, Described)>,
    ) {
        if found.is_empty() {
            return;
        }
        let version = set.hash();
        for (flow_id, location, flow) in found {
            set.flows.insert(flow_id.clone(), location);
            self.module.flows.push(FlowModule {
                flow_id,
                file: file.to_owned(),
                version: version.clone(),
                description: flow.description,
                input_schema: flow.input_schema,
                as_tool: flow.as_tool,
            });
        }
        self.module.sources.insert(version, Arc::new(set));
    }

    /// Evaluates the entry of a set in a realm of its own and describes its flows.
    fn evaluate(
        &self,
        set: &SourceSet,
        read: impl for<'js> FnOnce(
            rquickjs::Object<'js>,
            rquickjs::Object<'js>,
        ) -> rquickjs::Result<rquickjs::Value<'js>>,
    ) -> Result<Vec<(String, Described)>, ScriptFailure> {
        let mut realm = Realm::new(Arc::new(set.clone()), self.limits, self.surroundings)?;
        realm.renew_cpu(self.limits.load_cpu_ms);
        let flows = realm.enter(|scope| {
            let namespace = scope.import(&scope.set.entry)?;
            let flows = read(reader(scope)?, namespace)?;
            scope.value_of(&flows)
        })?;
        let Value::Object(flows) = flows else {
            return Ok(Vec::new());
        };
        let described = flows.into_iter().map(|(name, flow)| {
            let id = name.strip_prefix(ADDED_EXPORT).unwrap_or(&name);
            let problem = |error| format!("the flow '{id}' is not described correctly: {error}");
            let flow = serde_json::from_value(flow)
                .map_err(|error| ScriptFailure::new(FailureCode::Exception, problem(error)))?;
            Ok((name, flow))
        });
        described.collect()
    }
}
