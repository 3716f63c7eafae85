//! `tandem check`: the problems that a server would report of workflow documents and agents, with their
//! position in the file.

mod advice;
mod agent;
mod position;

#[cfg(test)]
mod tests;

use crate::cli::CheckArgs;
use crate::config::{self, Environment};
use crate::documents::{self, FoundFiles};
use crate::output::{self, Colour, Style};
use crate::serve::packs;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tandem_record::{MAX_NESTING, nests_deeper};
use tandem_runtime::{
    AllowedPackTypes, Definition, PackTypes, Permissions, Problem, child_references,
};

/// A problem of a file, at registration or when a run is started.
#[derive(Debug, PartialEq, Serialize)]
struct Finding {
    file: PathBuf,
    severity: Severity,
    /// JSON pointer; empty for the document as a whole.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    /// The document can be registered, but may not behave as intended.
    Warning,
}

#[derive(Debug, Serialize)]
struct Report {
    documents: usize,
    agents: usize,
    findings: Vec<Finding>,
}

pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let directories = config::packs_of(&args.packs, &Environment::of_process())?;
    let (packs, refused) = packs::from_directories(&directories)?;
    refused.iter().for_each(|line| output::note(line.clone()));
    let rules = Rules {
        packs: packs::types(Some(&packs)),
        strict: config::strict_documents(&Environment::of_process())?,
    };
    let report = Report::of(&args.paths, &rules);
    if args.json {
        output::json(&report)?;
    } else {
        for finding in &report.findings {
            output::line(finding.text(Style::of_stdout()))?;
        }
        output::line(report.summary())?;
    }
    Ok(if report.errors() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The rules that documents are checked with.
struct Rules {
    packs: PackTypes,
    /// Unknown settings are errors.
    strict: bool,
}

impl Report {
    fn of(paths: &[PathBuf], rules: &Rules) -> Self {
        let mut report = Self {
            documents: 0,
            agents: 0,
            findings: Vec::new(),
        };
        let mut ids = HashMap::new();
        let mut children = Vec::new();
        for path in paths {
            if let Some(code) = agent::AgentCode::named_by(path) {
                report.add_agent(&code);
                continue;
            }
            match documents::find(path) {
                Ok(found) => {
                    if found == FoundFiles::default() {
                        let message = "there is no agent and no *.json file below it";
                        report.findings.push(Finding::error(path, message));
                    }
                    for folder in found.agents {
                        report.add_agent(&agent::AgentCode::of_folder(folder));
                    }
                    for file in found.documents {
                        report.add(&file, rules, &mut ids, &mut children);
                    }
                }
                Err(error) => report
                    .findings
                    .push(Finding::error(path, format!("cannot be read: {error}"))),
            }
        }
        // A missing child can be reported only when every document is known.
        for (child, finding) in children {
            if !ids.contains_key(&child) {
                report.findings.push(finding);
            }
        }
        report
    }

    fn add(
        &mut self,
        file: &Path,
        rules: &Rules,
        ids: &mut HashMap<String, PathBuf>,
        children: &mut Vec<(String, Finding)>,
    ) {
        self.documents += 1;
        match std::fs::read_to_string(file) {
            Ok(text) => self
                .findings
                .extend(examine(file, &text, rules, ids, children)),
            Err(error) => {
                let finding = Finding::error(file, format!("cannot be read: {error}"));
                self.findings.push(finding);
            }
        }
    }

    fn add_agent(&mut self, agent: &agent::AgentCode) {
        self.agents += 1;
        self.findings.extend(agent.examine());
    }

    fn errors(&self) -> usize {
        let errors = self.findings.iter();
        errors.filter(|f| f.severity == Severity::Error).count()
    }

    fn summary(&self) -> String {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let documents = match (self.documents, self.agents) {
            (documents, 0) => count(documents, "document"),
            (0, agents) => count(agents, "agent"),
            (documents, agents) => {
                format!(
                    "{}, {}",
                    count(documents, "document"),
                    count(agents, "agent")
                )
            }
        };
        let warnings = self.findings.len() - self.errors();
        match (self.errors(), warnings) {
            (0, 0) => format!("{documents}, all good"),
            (0, w) => format!("{documents}, {}", count(w, "warning")),
            (e, 0) => format!("{documents}, {}", count(e, "error")),
            (e, w) => format!(
                "{documents}, {}, {}",
                count(e, "error"),
                count(w, "warning")
            ),
        }
    }
}

/// All findings of one document. `ids` maps each workflow to its file; `children` maps each child
/// workflow to the finding if it is missing.
fn examine(
    file: &Path,
    text: &str,
    rules: &Rules,
    ids: &mut HashMap<String, PathBuf>,
    children: &mut Vec<(String, Finding)>,
) -> Vec<Finding> {
    if nests_deeper(text.as_bytes(), MAX_NESTING) {
        let what = format!("nests deeper than {MAX_NESTING} levels of arrays and objects");
        return vec![Finding::error(file, what)];
    }
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => {
            let what = error.to_string();
            // The position is printed first, so the parser's own text for it is removed.
            let what = what.split(" at line ").next().unwrap_or_default();
            return vec![Finding {
                line: Some(error.line()),
                column: Some(error.column()),
                ..Finding::error(file, format!("not JSON: {what}"))
            }];
        }
    };
    let to_finding = |problem: &Problem| {
        let at = position::locate(text, &problem.path);
        Finding {
            severity: match problem.warning {
                true => Severity::Warning,
                false => Severity::Error,
            },
            path: problem.path.clone(),
            line: at.map(|p| p.line),
            column: at.map(|p| p.column),
            advice: advice::for_problem(problem),
            ..Finding::error(file, &problem.message)
        }
    };
    for child in child_references(&document) {
        let finding = to_finding(&child.unknown());
        children.push((child.workflow.to_string(), finding));
    }
    let mut findings = Vec::new();
    let id = document["id"].as_str().unwrap_or_default();
    if !id.is_empty()
        && let Some(other) = ids.insert(id.to_owned(), file.to_owned())
    {
        let at = position::locate(text, "/id");
        findings.push(Finding {
            path: "/id".to_owned(),
            line: at.map(|p| p.line),
            column: at.map(|p| p.column),
            advice: Some("Give one of them another id.".to_owned()),
            ..Finding::error(file, format!("{} has the same id", other.display()))
        });
    }
    let permissions = Permissions {
        packs: AllowedPackTypes::Listed(&rules.packs),
        unknown_settings: !rules.strict,
        ..Permissions::default()
    };
    let definition = match Definition::admit(&document, permissions) {
        Ok(definition) => definition,
        Err(problems) => {
            findings.extend(problems.iter().map(to_finding));
            return findings;
        }
    };
    findings.extend(definition.warnings.iter().map(to_finding));
    if let Some((node, type_id, capability)) = definition.gated() {
        findings.push(Finding {
            severity: Severity::Warning,
            advice: Some("Runs of this workflow are refused until it does.".to_owned()),
            ..Finding::error(
                file,
                format!(
                    "node {node}: {type_id} needs {capability}, which this host does not serve"
                ),
            )
        });
    }
    findings
}

impl Finding {
    fn error(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            severity: Severity::Error,
            path: String::new(),
            line: None,
            column: None,
            message: message.into(),
            advice: None,
        }
    }

    /// `file:line:column: error: /pointer: message`, a format that editors understand.
    fn text(&self, style: Style) -> String {
        let mut place = self.file.display().to_string();
        if let (Some(line), Some(column)) = (self.line, self.column) {
            place.push_str(&format!(":{line}:{column}"));
        }
        let severity = match self.severity {
            Severity::Error => style.paint(Colour::Red, "error"),
            Severity::Warning => style.paint(Colour::Yellow, "warning"),
        };
        let pointer = match self.path.as_str() {
            "" => String::new(),
            path => format!("{}: ", output::sanitize(path)),
        };
        let message = output::sanitize(&self.message);
        let mut text = format!("{place}: {severity}: {pointer}{message}");
        if let Some(advice) = &self.advice {
            text.push_str(&format!("\n    {advice}"));
        }
        text
    }
}
