//! A supervisor's verifier: which agent checks a result before it counts, how it is called, and how
//! its answer is read. Unknown settings are refused at registration.

use super::ParseContext;
use super::http::{self, HttpConfig};
use super::settings::{Setting, object, value};
use super::supervisor::{agent_id, endpoint};
use crate::conformance::scripts;
use serde_json::Value;
use tandem_record::{Object, VerifierVerdict, WorkflowId};

#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) agent_id: Option<String>,
    pub(crate) source: VerifierSource,
    /// Called before a decision to end the run is carried out.
    pub(crate) over_terminate: bool,
    /// Called before a worker's output is harvested.
    pub(crate) over_output: bool,
    /// The criteria it checks, by name. Only these names are ever recorded.
    pub(crate) criteria: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum VerifierSource {
    /// A child run; the named variable contains its verdict when it completes.
    Workflow {
        id: WorkflowId,
        verdict: String,
    },
    Endpoint(Box<HttpConfig>),
    /// Test hook: the n-th verdict of the run.
    Plan(Vec<VerifierReport>),
}

/// A verdict as the verifier gave it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VerifierReport {
    pub(crate) verdict: VerifierVerdict,
    pub(crate) criteria: Vec<String>,
    pub(crate) confidence: Option<f64>,
    pub(crate) feedback: Option<String>,
}

pub(super) const SETTINGS: &[Setting] = &[
    value("agentId"),
    value("over"),
    value("criteria"),
    value("workflowId"),
    value("verdictVariable"),
    object("endpoint", http::SETTINGS),
    value(scripts::VERDICTS),
];
const DEFAULT_VARIABLE: &str = "verdict";
const MAX_CRITERIA: usize = 64;
const MAX_CRITERION_CHARS: usize = 128;
const MAX_FEEDBACK_CHARS: usize = 4_000;

impl Verifier {
    /// The `verifier` of a supervisor's configuration, if it has one.
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<Self>> {
        let verifier = match config.get("verifier") {
            None | Some(Value::Null) => return Some(None),
            Some(Value::Object(verifier)) => verifier,
            Some(_) => return cx.bad("verifier", "must be an object"),
        };
        let before = cx.problems.len();
        let parsed = Self::read(verifier, cx);
        for problem in &mut cx.problems[before..] {
            problem.path = problem.path.replacen("/config", "/config/verifier", 1);
        }
        parsed.map(Some)
    }

    fn read(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let (over_terminate, over_output) = over(config, cx)?;
        Some(Self {
            agent_id: agent_id(config, cx)?,
            source: source(config, cx)?,
            over_terminate,
            over_output,
            criteria: keys(config, "criteria", cx)?,
        })
    }
}

fn over(config: &Object, cx: &mut ParseContext<'_>) -> Option<(bool, bool)> {
    let listed = match config.get("over") {
        None | Some(Value::Null) => return Some((true, false)),
        Some(Value::Array(listed)) if !listed.is_empty() => listed,
        Some(_) => return cx.bad("over", "lists \"terminate\", \"output\" or both"),
    };
    let known = |one: &Value| matches!(one.as_str(), Some("terminate" | "output"));
    if let Some(at) = listed.iter().position(|one| !known(one)) {
        return cx.bad(&format!("over/{at}"), "is \"terminate\" or \"output\"");
    }
    let names = |name: &str| listed.iter().any(|one| one == name);
    Some((names("terminate"), names("output")))
}

fn source(config: &Object, cx: &mut ParseContext<'_>) -> Option<VerifierSource> {
    let ways = ["workflowId", "endpoint", scripts::VERDICTS];
    let mut given = ways.into_iter().filter(|way| config.contains_key(*way));
    let (way, further) = (given.next(), given.next());
    if let Some(further) = further {
        return cx.bad(further, "a verifier has only one source");
    }
    if way != Some("workflowId") && config.contains_key("verdictVariable") {
        return cx.bad("verdictVariable", "belongs to a verifier with a workflowId");
    }
    match way {
        Some("workflowId") => {
            let id = cx.required_text(config, "workflowId")?;
            let named = cx.text(config, "verdictVariable")?;
            let verdict = named.unwrap_or_else(|| DEFAULT_VARIABLE.to_owned());
            Some(VerifierSource::Workflow {
                id: WorkflowId::new(id),
                verdict,
            })
        }
        Some("endpoint") => match config.get("endpoint") {
            Some(Value::Object(http)) => {
                endpoint(http, "endpoint", cx).map(|http| VerifierSource::Endpoint(Box::new(http)))
            }
            _ => cx.bad("endpoint", "must be an object with a url"),
        },
        Some(_) => scripts::scripted_verdicts(config, cx),
        None => cx.bad("", "a verifier needs a workflowId or an endpoint"),
    }
}

impl VerifierReport {
    /// Reads a verifier's answer: the verdict as a word, or an object with more details.
    pub(crate) fn read(value: &Value) -> Result<Self, &'static str> {
        let word = value.as_str().or_else(|| value.get("verdict")?.as_str());
        let verdict = word.and_then(VerifierVerdict::parse);
        let verdict = verdict.ok_or("a verdict is \"pass\", \"fail\" or \"revise\"")?;
        let text = |item: &Value| item.as_str().map(str::to_owned);
        let criteria = match value.get("criteria") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(named)) => named.iter().map(text).collect(),
            Some(_) => None,
        };
        let confidence = match value.get("confidence") {
            None | Some(Value::Null) => None,
            Some(stated) => {
                let stated = stated.as_f64().filter(|c| (0.0..=1.0).contains(c));
                Some(stated.ok_or("a verifier's confidence is a number from 0 to 1")?)
            }
        };
        let feedback = value.get("feedback").and_then(Value::as_str);
        Ok(Self {
            verdict,
            criteria: criteria.ok_or("a verifier's criteria are a list of names")?,
            confidence,
            feedback: feedback.map(|f| f.chars().take(MAX_FEEDBACK_CHARS).collect()),
        })
    }
}

/// An optional list of distinct names.
pub(super) fn keys(config: &Object, at: &str, cx: &mut ParseContext<'_>) -> Option<Vec<String>> {
    let listed = match config.get(at) {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::Array(listed)) if listed.len() <= MAX_CRITERIA => listed,
        Some(_) => return cx.bad(at, format!("lists at most {MAX_CRITERIA} names")),
    };
    let mut names: Vec<String> = Vec::with_capacity(listed.len());
    for (i, name) in listed.iter().enumerate() {
        let fits = |name: &&str| (1..=MAX_CRITERION_CHARS).contains(&name.chars().count());
        let place = format!("{at}/{i}");
        match name.as_str().filter(fits) {
            None => {
                let message = format!("is a name of 1 to {MAX_CRITERION_CHARS} characters");
                return cx.bad(&place, message);
            }
            Some(name) if names.iter().any(|n| n == name) => {
                return cx.bad(&place, "is named twice");
            }
            Some(name) => names.push(name.to_owned()),
        }
    }
    Some(names)
}
