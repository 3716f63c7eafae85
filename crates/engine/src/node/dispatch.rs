//! `core.dispatch`: how the newest decision of the supervisor is carried out.

use super::ParseContext;
use super::settings::{Setting, object, value};
use super::sub_workflow::{isolated_memory, mapping};
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_record::{Object, WorkflowId};

#[derive(Debug)]
pub(crate) struct Dispatch {
    /// A question to the user is a conversation; otherwise it has a single answer.
    pub(crate) uses_conversation: bool,
    pub(crate) fan_out: FanOut,
    /// Executions of all dispatch nodes of the run.
    pub(crate) iteration_cap: Option<u64>,
    input: Mappings,
    output: Mappings,
    /// Workers start with a memory of their own.
    pub(crate) isolated_memory: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FanOut {
    /// One after the other.
    Sequential,
    /// More than one worker is an error.
    Reject,
    Parallel(Parallel),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parallel {
    pub(crate) join: JoinMode,
    pub(crate) on_failure: OnWorkerFailure,
    pub(crate) max_concurrency: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinMode {
    WaitAll,
    /// This many completed workers are enough.
    Quorum(u32),
    /// The first that completes.
    First,
    /// The first that ends, however it ends.
    Race,
}

impl JoinMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WaitAll => "wait-all",
            Self::Quorum(_) => "quorum",
            Self::First => "first",
            Self::Race => "race",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnWorkerFailure {
    /// Reported with the others.
    Collect,
    /// The others are cancelled and the join counts as failed.
    FailFast,
    /// Ignored, as if it had not been started.
    Absorb,
}

/// Join modes of a fan-out, as advertised.
pub const JOIN_MODES: [&str; 4] = ["wait-all", "quorum", "first", "race"];
pub const ASK_USER_ROUTINGS: [&str; 3] = ["conversation", "clarification", "auto"];
pub const FAN_OUT_POLICIES: [&str; 3] = ["sequential", "reject", "parallel"];
pub const MAX_FAN_OUT: u32 = 256;

/// Mappings of variable names, for all workers or for one.
#[derive(Debug)]
struct Mappings {
    every: Vec<(String, String)>,
    own: BTreeMap<WorkflowId, Vec<(String, String)>>,
}

impl Mappings {
    fn of(&self, worker: &WorkflowId) -> &[(String, String)] {
        self.own.get(worker).unwrap_or(&self.every)
    }

    fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.every.iter().chain(self.own.values().flatten())
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    value("askUserRouting"),
    value("workerDispatchModel"),
    value("fanOutPolicy"),
    value("iterationCap"),
    value("inputMapping"),
    value("outputMapping"),
    value("perWorkerInputMappings"),
    value("perWorkerOutputMappings"),
    value("memoryScopeIsolation"),
    object("joinPolicy", JOIN_POLICY),
    value("maxConcurrency"),
];
const JOIN_POLICY: &[Setting] = &[value("mode"), value("quorum"), value("onChildFailure")];

impl Dispatch {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let uses_conversation = match cx.text(config, "askUserRouting")?.as_deref() {
            None | Some("conversation" | "auto") => true,
            Some("clarification") => false,
            Some(other) => return cx.bad("askUserRouting", format!("{other:?} is no routing")),
        };
        match cx.text(config, "workerDispatchModel")?.as_deref() {
            None | Some("child-run") => {}
            Some(other) => {
                return cx.bad(
                    "workerDispatchModel",
                    format!("{other:?} is not served; workers are child runs"),
                );
            }
        }
        Some(Self {
            uses_conversation,
            fan_out: fan_out(config, cx)?,
            iteration_cap: cx.whole(config, "iterationCap", 1)?,
            input: mappings(config, "inputMapping", "perWorkerInputMappings", cx)?,
            output: mappings(config, "outputMapping", "perWorkerOutputMappings", cx)?,
            isolated_memory: isolated_memory(config, cx)?,
        })
    }

    /// Child variable ← parent variable.
    pub(crate) fn inputs(&self, worker: &WorkflowId) -> &[(String, String)] {
        self.input.of(worker)
    }

    /// Every parent variable that receives the result of a worker.
    pub(crate) fn output_variables(&self) -> impl Iterator<Item = &String> {
        self.output.all().map(|(to, _)| to)
    }

    /// Every parent variable that is passed to a worker.
    pub(crate) fn input_variables(&self) -> impl Iterator<Item = &String> {
        self.input.all().map(|(_, from)| from)
    }

    /// Parent variable ← child variable.
    pub(crate) fn outputs(&self, worker: &WorkflowId) -> &[(String, String)] {
        self.output.of(worker)
    }
}

fn fan_out(config: &Object, cx: &mut ParseContext<'_>) -> Option<FanOut> {
    let policy = cx.text(config, "fanOutPolicy")?;
    let parallel = policy.as_deref() == Some("parallel");
    for key in ["joinPolicy", "maxConcurrency"] {
        if config.contains_key(key) && !parallel {
            return cx.bad(key, "belongs to fanOutPolicy \"parallel\"");
        }
    }
    match policy.as_deref() {
        None | Some("sequential") => Some(FanOut::Sequential),
        Some("reject") => Some(FanOut::Reject),
        Some("parallel") => parallel_fan_out(config, cx).map(FanOut::Parallel),
        Some(other) => cx.bad("fanOutPolicy", format!("{other:?} is no fan-out policy")),
    }
}

fn parallel_fan_out(config: &Object, cx: &mut ParseContext<'_>) -> Option<Parallel> {
    let empty = Object::new();
    let policy = match config.get("joinPolicy") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(policy)) => policy,
        Some(_) => return cx.bad("joinPolicy", "must be an object"),
    };
    let quorum = policy.get("quorum").map(|q| q.as_u64().filter(|n| *n >= 1));
    let join = match (policy.get("mode").map(Value::as_str), quorum) {
        (Some(Some("quorum")), Some(Some(n))) if n <= u64::from(MAX_FAN_OUT) => {
            JoinMode::Quorum(u32::try_from(n).unwrap_or(u32::MAX))
        }
        (Some(Some("quorum")), _) => {
            let message = format!("a quorum of 1 to {MAX_FAN_OUT} is required");
            return cx.bad("joinPolicy/quorum", message);
        }
        (_, Some(_)) => return cx.bad("joinPolicy/quorum", "belongs to mode \"quorum\""),
        (None | Some(Some("wait-all")), None) => JoinMode::WaitAll,
        (Some(Some("first")), None) => JoinMode::First,
        (Some(Some("race")), None) => JoinMode::Race,
        (Some(_), None) => return cx.bad("joinPolicy/mode", "is not a join mode of this host"),
    };
    let on_failure = match policy.get("onChildFailure").map(Value::as_str) {
        None | Some(Some("collect")) => OnWorkerFailure::Collect,
        Some(Some("fail-fast")) => OnWorkerFailure::FailFast,
        Some(Some("absorb")) => OnWorkerFailure::Absorb,
        Some(_) => {
            return cx.bad(
                "joinPolicy/onChildFailure",
                "is collect, fail-fast or absorb",
            );
        }
    };
    let max_concurrency = cx.whole(config, "maxConcurrency", 1)?;
    Some(Parallel {
        join,
        on_failure,
        max_concurrency: max_concurrency.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
    })
}

fn mappings(
    config: &Object,
    every: &str,
    own: &str,
    cx: &mut ParseContext<'_>,
) -> Option<Mappings> {
    let every = mapping(config, every, cx)?;
    let mut by_worker = BTreeMap::new();
    match config.get(own) {
        None | Some(Value::Null) => {}
        Some(Value::Object(workers)) => {
            for worker in workers.keys() {
                let before = cx.problems.len();
                let Some(pairs) = mapping(workers, worker, cx) else {
                    for problem in &mut cx.problems[before..] {
                        let inner = format!("/config/{own}/");
                        problem.path = problem.path.replacen("/config/", &inner, 1);
                    }
                    return None;
                };
                by_worker.insert(WorkflowId::new(worker), pairs);
            }
        }
        Some(_) => return cx.bad(own, "must map workflow ids to mappings"),
    }
    Some(Mappings {
        every,
        own: by_worker,
    })
}
