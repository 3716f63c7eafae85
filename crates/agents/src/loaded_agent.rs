//! What is known of one agent: its last good version, and what is wrong with its files.
//!
//! The agent's own file and every flow file are good or broken on their own. A broken one leaves its last
//! good content in use.

use crate::agent_version::{AgentVersion, time_zone};
use crate::discover::AgentPlace;
use crate::flow_package::FlowPackage;
use crate::model_scripts::ModelScripts;
use crate::rust_code::{RustAgent, RustCode};
use crate::summary::file_error;
use crate::transports;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use tandem_engine::agent::{AgentProblem, AgentSpec, LoadedFlow};
use tandem_record::conversation::{AgentFileError, AgentStatus, AgentSummary, FlowSummary};
use tandem_script::{AgentCode, AgentModule, FlowModule, ScriptLimits, SourceSet};

/// Superseded packages that runs about to start may still name.
const MAX_OLD_PACKAGES: usize = 64;
const FLOW_FOLDER: &str = "flows/";
/// Stands for the file of an agent that has none.
const RUST_DEFINITION: &str = "the definition in Rust";

/// The content of the agent's own file, with its tools, commands and flows; or what a program in Rust
/// defines instead.
#[derive(Debug, Clone, PartialEq)]
struct AgentPart {
    config: Value,
    /// `None` for an agent that is defined in Rust.
    code: Option<AgentCode>,
    flows: Vec<FlowModule>,
}

impl AgentPart {
    /// The file that problems are reported for.
    fn entry(&self) -> &str {
        match &self.code {
            Some(code) => &code.set.entry,
            None => RUST_DEFINITION,
        }
    }
}

/// Flows by the file that holds them.
type FlowFiles = BTreeMap<String, Vec<FlowModule>>;

pub(crate) struct LoadedAgent {
    id: String,
    /// Where paths in the configuration begin.
    root: PathBuf,
    /// Flows and tools that a program adds.
    rust: Arc<RustCode>,
    part: Option<AgentPart>,
    files: FlowFiles,
    current: Option<Arc<AgentVersion>>,
    flows: Vec<FlowSummary>,
    /// Code by version, the newest last.
    packages: Vec<(String, Arc<FlowPackage>)>,
    errors: Vec<AgentFileError>,
}

/// A version that compiles.
struct Compiled {
    spec: AgentSpec,
    files: FlowFiles,
    scripts: ModelScripts,
    /// What is wrong with flow files that were left out.
    errors: Vec<AgentFileError>,
}

impl LoadedAgent {
    pub(crate) fn new(place: &AgentPlace, rust: Arc<RustCode>) -> Self {
        Self::empty(place.id.clone(), place.root(), rust)
    }

    /// An agent that a program defines.
    pub(crate) fn define(
        agent: &RustAgent,
        limits: ScriptLimits,
    ) -> Result<Self, Vec<AgentFileError>> {
        let code = Arc::new(agent.code.clone());
        let mut defined = Self::empty(agent.id.clone(), PathBuf::from("."), code);
        let part = AgentPart {
            config: Value::Object(agent.config.clone()),
            code: None,
            flows: Vec::new(),
        };
        let compiled = defined.compile(&part, FlowFiles::new())?;
        defined.use_version(part, compiled, &BTreeMap::new(), limits);
        Ok(defined)
    }

    fn empty(id: String, root: PathBuf, rust: Arc<RustCode>) -> Self {
        Self {
            id,
            root,
            rust,
            part: None,
            files: FlowFiles::new(),
            current: None,
            flows: Vec::new(),
            packages: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(crate) fn current(&self) -> Option<&Arc<AgentVersion>> {
        self.current.as_ref()
    }

    pub(crate) fn package(&self, version: &str) -> Option<&Arc<FlowPackage>> {
        let found = self.packages.iter().find(|(known, _)| known == version);
        found.map(|(_, package)| package)
    }

    pub(crate) fn rust(&self) -> &RustCode {
        &self.rust
    }

    pub(crate) fn add_error(&mut self, error: AgentFileError) {
        self.errors.push(error);
    }

    pub(crate) fn summary(&self) -> AgentSummary {
        AgentSummary {
            id: self.id.clone(),
            status: match self.current {
                Some(_) => AgentStatus::Ready,
                None => AgentStatus::Invalid,
            },
            flows: self.flows.clone(),
            errors: self.errors.clone(),
        }
    }

    /// Takes over what the loader found. Returns whether new turns behave differently.
    pub(crate) fn update(
        &mut self,
        place: &AgentPlace,
        module: AgentModule,
        limits: ScriptLimits,
    ) -> bool {
        self.root = place.root();
        let broken = module.broken.clone();
        self.errors = module.errors.iter().cloned().map(file_error).collect();
        let new_part = new_part(&module);
        let files = self.files_of(&module, &broken, new_part.as_ref());
        let mut sources = self.sources();
        sources.extend(module.sources);

        let candidates = new_part.into_iter().chain(self.part.clone());
        for (position, part) in candidates.enumerate() {
            match self.compile(&part, files.clone()) {
                Ok(compiled) => {
                    self.errors.extend(compiled.errors.iter().cloned());
                    let scripts = self.current.as_ref().map(|current| &current.scripts);
                    let is_same = self.part.as_ref() == Some(&part)
                        && self.files == compiled.files
                        && scripts == Some(&compiled.scripts);
                    if !is_same {
                        self.use_version(part, compiled, &sources, limits);
                    }
                    return !is_same;
                }
                // Those of the last good version follow from the broken files.
                Err(errors) if position == 0 => self.errors.extend(errors),
                Err(_) => {}
            }
        }
        false
    }

    /// The flows of every file; those of a broken file as they were.
    fn files_of(
        &self,
        module: &AgentModule,
        broken: &BTreeSet<String>,
        part: Option<&AgentPart>,
    ) -> FlowFiles {
        let mut files = FlowFiles::new();
        for flow in module.flows.iter().filter(|flow| is_flow_file(&flow.file)) {
            let flows = files.entry(flow.file.clone()).or_default();
            flows.push(flow.clone());
        }
        let taken: Vec<&str> = files
            .values()
            .flatten()
            .chain(part.into_iter().flat_map(|part| &part.flows))
            .map(|flow| flow.flow_id.as_str())
            .collect();
        let is_free = |flow: &&FlowModule| !taken.contains(&flow.flow_id.as_str());
        let kept: FlowFiles = self
            .files
            .iter()
            .filter(|(file, _)| broken.contains(*file))
            .map(|(file, flows)| {
                let flows = flows.iter().filter(is_free).cloned().collect();
                (file.clone(), flows)
            })
            .collect();
        files.extend(kept);
        files
    }

    /// The sources of all flows in use, by the hash that the loader gave them.
    fn sources(&self) -> BTreeMap<String, Arc<SourceSet>> {
        let sets = self.packages.iter().map(|(_, package)| &package.sources);
        sets.map(|set| (set.hash(), set.clone())).collect()
    }

    /// Compiles the agent. A flow file whose flows cannot be used gets its last good content, or is left out.
    fn compile(
        &self,
        part: &AgentPart,
        mut files: FlowFiles,
    ) -> Result<Compiled, Vec<AgentFileError>> {
        let mut errors = Vec::new();
        let config = self.rust.with_tools(&part.config);
        loop {
            let in_files = files.values().flatten().map(loaded_flow);
            let loaded: Vec<LoadedFlow> = in_files.chain(self.rust.loaded_flows()).collect();
            let problems = match AgentSpec::compile(&self.id, &config, &loaded) {
                Ok(spec) => {
                    let broken = self.transport_errors(part.entry(), &spec);
                    if !broken.is_empty() {
                        errors.extend(broken);
                        return Err(errors);
                    }
                    return match ModelScripts::read(&spec, &self.root, part.entry()) {
                        Ok(scripts) => Ok(Compiled {
                            spec,
                            files,
                            scripts,
                            errors,
                        }),
                        Err(error) => {
                            errors.push(error);
                            Err(errors)
                        }
                    };
                }
                Err(problems) => problems,
            };
            let mut bad_files = BTreeSet::new();
            for problem in &problems {
                let Some(file) = file_of(problem, &files) else {
                    continue;
                };
                let error = self.problem_at(&file, problem);
                if !errors.contains(&error) {
                    errors.push(error);
                }
                bad_files.insert(file);
            }
            if bad_files.is_empty() {
                let entry = part.entry();
                errors.extend(problems.iter().map(|p| self.problem_at(entry, p)));
                return Err(errors);
            }
            for file in bad_files {
                let failed = files.remove(&file);
                let last_good = self
                    .files
                    .get(&file)
                    .filter(|good| failed.as_ref() != Some(*good));
                if let Some(last_good) = last_good.filter(|_| failed.is_some()) {
                    files.insert(file, last_good.clone());
                }
            }
        }
    }

    /// What is wrong with the transports that the agent describes.
    fn transport_errors(&self, entry: &str, spec: &AgentSpec) -> Vec<AgentFileError> {
        let problems = transports::problems(&spec.transports).into_iter();
        let problems = problems.map(|(name, message)| AgentProblem {
            path: format!("/transports/{name}"),
            message,
        });
        problems.map(|p| self.problem_at(entry, &p)).collect()
    }

    /// A problem with a setting, at its place in the file.
    fn problem_at(&self, file: &str, problem: &AgentProblem) -> AgentFileError {
        let text = std::fs::read_to_string(self.root.join(file)).ok();
        let at = text.and_then(|text| tandem_script::locate(file, &text, &problem.path));
        AgentFileError {
            line: at.map(|(line, _)| line),
            column: at.map(|(_, column)| column),
            ..AgentFileError::new(file, text_of(problem))
        }
    }

    fn use_version(
        &mut self,
        part: AgentPart,
        compiled: Compiled,
        sources: &BTreeMap<String, Arc<SourceSet>>,
        limits: ScriptLimits,
    ) {
        let Compiled {
            mut spec,
            files,
            scripts,
            ..
        } = compiled;
        let zone = time_zone(&part.config);
        let language = spec.language.code().to_owned();
        let config = Arc::new(part.config.clone());
        self.flows.clear();
        for flow in part.flows.iter().chain(files.values().flatten()) {
            let set = sources.get(&flow.version);
            let package = Arc::new(FlowPackage {
                time_zone: zone.clone(),
                language: language.clone(),
                config: Some(Arc::clone(&config)),
                sources: set
                    .expect("the loader gives the source of every flow")
                    .clone(),
            });
            let version = package.version();
            if let Some(spec) = spec.flows.get_mut(&flow.flow_id) {
                spec.version = Some(version.clone());
            }
            self.flows.push(FlowSummary {
                flow_id: flow.flow_id.clone(),
                version: version.clone(),
                file: Some(flow.file.clone()),
            });
            self.packages.retain(|(known, _)| *known != version);
            self.packages.push((version, package));
        }
        self.flows
            .extend(self.rust.newest_flows().map(|flow| FlowSummary {
                flow_id: flow.flow_id().to_owned(),
                version: flow.version().to_owned(),
                file: None,
            }));
        self.flows.sort_by(|a, b| a.flow_id.cmp(&b.flow_id));
        let most = self.flows.len() + MAX_OLD_PACKAGES;
        let superseded = self.packages.len().saturating_sub(most);
        self.packages.drain(..superseded);

        let (config, code) = (self.rust.with_tools(&part.config), part.code.clone());
        let rust = Arc::clone(&self.rust);
        let version = AgentVersion::new(spec, config, code, rust, scripts, limits);
        self.current = Some(Arc::new(version));
        self.part = Some(part);
        self.files = files;
    }
}

fn is_flow_file(file: &str) -> bool {
    file.starts_with(FLOW_FOLDER)
}

/// The agent's own part, when all of it is good.
fn new_part(module: &AgentModule) -> Option<AgentPart> {
    let (config, code) = (module.config.as_ref()?, module.code.as_ref()?);
    if module.broken.contains(&code.set.entry) {
        return None;
    }
    let flows = module.flows.iter().filter(|flow| !is_flow_file(&flow.file));
    Some(AgentPart {
        config: config.clone(),
        code: Some(code.clone()),
        flows: flows.cloned().collect(),
    })
}

fn loaded_flow(flow: &FlowModule) -> LoadedFlow {
    LoadedFlow {
        flow_id: flow.flow_id.clone(),
        version: flow.version.clone(),
        description: flow.description.clone(),
        input_schema: flow.input_schema.clone(),
        as_tool: flow.as_tool.clone(),
    }
}

/// The flow file that a problem of the whole agent comes from. Of a flow that is given twice, the one in the
/// flow file is left out.
fn file_of(problem: &AgentProblem, files: &FlowFiles) -> Option<String> {
    let rest = problem.path.strip_prefix("/flows/")?;
    let name = rest.split('/').next()?;
    let flow_id = name.replace("~1", "/").replace("~0", "~");
    let holds = |flows: &[FlowModule]| flows.iter().any(|flow| flow.flow_id == flow_id);
    let holder = files.iter().find(|(_, flows)| holds(flows));
    holder.map(|(file, _)| file.clone())
}

fn text_of(problem: &AgentProblem) -> String {
    match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    }
}
