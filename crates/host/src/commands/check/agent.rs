//! Agents: loaded like by a server, without serving them.

use super::{Finding, Severity};
use std::path::{Path, PathBuf};
use tandem_agents::check_agent;
use tandem_record::conversation::AgentFileError;
use tandem_runtime::{Clock as _, SystemClock};
use tandem_script::{ScriptLimits, is_agent_folder};

const CODE: [&str; 5] = ["ts", "mts", "js", "mjs", "toml"];
const FLOWS: &str = "flows/";

/// What is checked of an agent.
pub(super) struct AgentCode {
    /// Its folder, or its only file.
    agent: PathBuf,
    /// A file of it, relative to the folder, when only that was named.
    file: Option<String>,
}

impl AgentCode {
    pub(super) fn of_folder(agent: PathBuf) -> Self {
        Self { agent, file: None }
    }

    /// The agent that a file belongs to. `None` for directories and for files that are not code of agents.
    pub(super) fn named_by(path: &Path) -> Option<Self> {
        if !path.is_file() {
            return None;
        }
        let is_bare = path
            .parent()
            .is_none_or(|parent| parent.as_os_str().is_empty());
        let absolute;
        let path = if is_bare {
            absolute = path.canonicalize().ok()?;
            &*absolute
        } else {
            path
        };
        // A file lies in the folder of its agent or in one of its folders.
        let mut folders = path.ancestors().skip(1).take(2);
        if let Some(agent) = folders.find(|folder| is_agent_folder(folder)) {
            let file = path.strip_prefix(agent).unwrap_or(path);
            let agent = match agent.as_os_str().is_empty() {
                true => Path::new("."),
                false => agent,
            };
            return Some(Self {
                agent: agent.to_owned(),
                file: Some(file.to_string_lossy().replace('\\', "/")),
            });
        }
        let extension = path.extension()?.to_str()?;
        CODE.contains(&extension)
            .then(|| Self::of_folder(path.to_owned()))
    }

    pub(super) fn examine(&self) -> Vec<Finding> {
        let now = SystemClock::default().now();
        let summary = check_agent(&self.agent, ScriptLimits::default(), now);
        let errors = summary.errors.into_iter();
        errors
            .filter(|error| self.concerns(error))
            .map(|error| self.finding(error))
            .collect()
    }

    /// Whether an error counts: not when another flow file than the named one has it.
    fn concerns(&self, error: &AgentFileError) -> bool {
        match &self.file {
            None => true,
            Some(file) => error.file == *file || !error.file.starts_with(FLOWS),
        }
    }

    fn finding(&self, error: AgentFileError) -> Finding {
        let root = match self.agent.is_dir() {
            true => &*self.agent,
            false => self.agent.parent().unwrap_or(Path::new("")),
        };
        let (message, position) = split_position(&error.message);
        let own = error.line.zip(error.column);
        let own = own.map(|(line, column)| (line as usize, column as usize));
        let position = own.or(position);
        Finding {
            severity: Severity::Error,
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            ..Finding::error(&root.join(&error.file), message)
        }
    }
}

/// The position that a JSON parser puts at the end of its message.
fn split_position(message: &str) -> (&str, Option<(usize, usize)>) {
    let split = || {
        let (before, place) = message.rsplit_once(" at line ")?;
        let (line, column) = place.split_once(" column ")?;
        Some((before, (line.parse().ok()?, column.parse().ok()?)))
    };
    match split() {
        Some((before, position)) => (before, Some(position)),
        None => (message, None),
    }
}
