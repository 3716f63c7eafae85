//! Settings that all interrupts share: who may decide, the priority, and what happens on a timeout.
//! The gates read the protocol's own keys; this host's are under `config.tandem`.

use super::ParseContext;
use super::settings::{Setting, list_of, object, value};
use crate::definition::{Problem, schema};
use serde_json::Value;
use std::collections::BTreeSet;
use tandem_record::{DecisionPolicy, Object, Principal};
use tandem_schema::{Meter, Schema};

/// The keys of an interrupt's `config.tandem`.
pub(super) const TANDEM: &[Setting] = &[
    value("approverGroups"),
    value("approverRoles"),
    value("approvers"),
    value("noSelfApproval"),
    object("onTimeout", ON_TIMEOUT),
    value("priority"),
];
/// The keys of all policies; which of them belong to one is checked where it is parsed.
const ON_TIMEOUT: &[Setting] = &[
    value("policy"),
    value("value"),
    list_of("levels", LEVEL),
    value("everyMs"),
    value("times"),
    value("then"),
];
const LEVEL: &[Setting] = &[
    value("approverGroups"),
    value("approverRoles"),
    value("approvers"),
    value("timeoutMs"),
];
/// Maximum number of names in one list.
const MAX_NAMES: usize = 64;
const MAX_LEVELS: usize = 8;
const MAX_REMINDERS: u64 = 100;
/// Minimum interval of reminders: more frequent ones would only fill the log.
const MIN_EVERY_MS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct InterruptSettings {
    pub(crate) priority: Option<u8>,
    deciders: Deciders,
    pub(crate) auth_required: bool,
    no_self_approval: bool,
    timeout_ms: Option<u64>,
    pub(crate) on_timeout: OnTimeout,
    /// The schema of an answer, if its author sets one.
    pub(crate) answer: Option<AnswerSchema>,
}

/// `resumeSchema`.
#[derive(Debug)]
pub(crate) struct AnswerSchema {
    pub(crate) document: Value,
    schema: Schema,
}

impl AnswerSchema {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Option<Self>> {
        let Some(document) = config.get("resumeSchema") else {
            return Some(None);
        };
        Some(Some(Self {
            document: document.clone(),
            schema: cx.schema("resumeSchema", document)?,
        }))
    }

    /// What is wrong with an answer at `at`.
    pub(crate) fn problems(&self, value: &Value, at: &str, meter: &Meter) -> Vec<Problem> {
        schema::problems(&self.schema, value, at, meter)
    }
}

/// Who may decide. If nobody is named, anyone who may answer may decide.
#[derive(Debug, Default, Clone)]
pub(crate) struct Deciders {
    pub(crate) approvers: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) roles: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) enum OnTimeout {
    /// Fails closed.
    #[default]
    Reject,
    /// Continues with this answer. Never for approvals.
    Default(Value),
    /// Asks others, level by level, then fails closed.
    Escalate(Vec<EscalationLevel>),
    /// Keeps waiting and reminds; then waits forever, or fails closed.
    Remind {
        every_ms: u64,
        times: u32,
        then_reject: bool,
    },
}

#[derive(Debug)]
pub(crate) struct EscalationLevel {
    pub(crate) deciders: Deciders,
    pub(crate) timeout_ms: u64,
}

/// The deciders from the gate's own configuration.
#[derive(Default)]
pub(super) struct GateDeciders {
    pub(super) deciders: Deciders,
    pub(super) auth_required: bool,
}

/// Why a default answer is invalid, at a path below it.
pub(super) type AnswerProblem = (String, String);

impl InterruptSettings {
    /// `fits` checks a default answer.
    pub(super) fn parse(
        config: &Object,
        known: GateDeciders,
        fits: impl Fn(&Value, &Meter) -> Result<(), AnswerProblem>,
        cx: &mut ParseContext<'_>,
    ) -> Option<Self> {
        // A timeout of zero would expire before anyone could answer.
        let timeout_ms = cx.whole(config, "timeoutMs", 0)?.filter(|ms| *ms > 0);
        let mut interrupt_settings = Self {
            deciders: known.deciders,
            auth_required: known.auth_required,
            timeout_ms,
            ..Self::default()
        };
        let own = match config.get("tandem") {
            None | Some(Value::Null) => return Some(interrupt_settings),
            Some(Value::Object(own)) => own,
            Some(_) => return cx.bad("tandem", "must be an object"),
        };
        interrupt_settings.priority = priority(own.get("priority"), cx)?;
        let deciders = Deciders::parse(own, "tandem", cx)?;
        interrupt_settings
            .deciders
            .approvers
            .extend(deciders.approvers);
        interrupt_settings.deciders.groups.extend(deciders.groups);
        interrupt_settings.deciders.roles.extend(deciders.roles);
        interrupt_settings.no_self_approval = match own.get("noSelfApproval") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => return cx.bad("tandem/noSelfApproval", "must be true or false"),
        };
        interrupt_settings.on_timeout = match own.get("onTimeout") {
            None | Some(Value::Null) => OnTimeout::Reject,
            Some(_) if timeout_ms.is_none() => {
                return cx.bad("tandem/onTimeout", "has no effect without timeoutMs");
            }
            Some(Value::Object(policy)) => on_timeout(policy, fits, cx)?,
            Some(_) => return cx.bad("tandem/onTimeout", "must be an object with a policy"),
        };
        Some(interrupt_settings)
    }

    pub(crate) fn answer_document(&self) -> Option<Value> {
        self.answer.as_ref().map(|answer| answer.document.clone())
    }

    /// Why an answer does not match the author's schema.
    pub(crate) fn resume_schema_problems(&self, value: &Value, meter: &Meter) -> Vec<Problem> {
        let answer = self.answer.as_ref();
        answer.map_or_else(Vec::new, |answer| {
            answer.problems(value, "/resumeValue", meter)
        })
    }

    /// Who may decide after `level` escalations.
    pub(crate) fn deciders(&self, level: u32) -> &Deciders {
        let handed_on = (level as usize).checked_sub(1);
        match (&self.on_timeout, handed_on) {
            (OnTimeout::Escalate(levels), Some(ix)) => levels
                .get(ix)
                .map_or(&self.deciders, |level| &level.deciders),
            _ => &self.deciders,
        }
    }

    pub(crate) fn policy(&self, level: u32, initiators: Vec<Principal>) -> DecisionPolicy {
        let deciders = self.deciders(level);
        DecisionPolicy {
            approvers: deciders.approvers.clone(),
            groups: deciders.groups.clone(),
            roles: deciders.roles.clone(),
            auth_required: self.auth_required,
            no_self_approval: self.no_self_approval,
            initiators,
        }
    }

    /// How many different people may decide, over all levels; `None` if that is not known from the
    /// document.
    pub(crate) fn most_approvers(&self) -> Option<usize> {
        let levels = match &self.on_timeout {
            OnTimeout::Escalate(levels) => levels.as_slice(),
            _ => &[],
        };
        let later = levels.iter().map(|level| &level.deciders);
        let mut people = BTreeSet::new();
        for deciders in std::iter::once(&self.deciders).chain(later) {
            let anyone = !(deciders.groups.is_empty() && deciders.roles.is_empty());
            if anyone || deciders.is_empty() {
                return None;
            }
            people.extend(&deciders.approvers);
        }
        Some(people.len())
    }

    /// Whether the identity of the decider ever matters.
    pub(super) fn restricts_deciders(&self) -> bool {
        self.policy(0, Vec::new()).requires_identity()
            || matches!(self.on_timeout, OnTimeout::Escalate(_))
    }

    /// How long until the first timeout action.
    pub(crate) fn first_timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// The earliest time at which the interrupt can end without an answer; `None` if it never does.
    pub(crate) fn rejects_after_ms(&self) -> Option<u64> {
        let first = self.timeout_ms?;
        match &self.on_timeout {
            OnTimeout::Reject | OnTimeout::Default(_) => Some(first),
            OnTimeout::Escalate(levels) => Some(
                levels
                    .iter()
                    .fold(first, |sum, level| sum.saturating_add(level.timeout_ms)),
            ),
            OnTimeout::Remind {
                every_ms,
                times,
                then_reject,
            } => then_reject.then(|| first.saturating_add(every_ms * u64::from(*times))),
        }
    }
}

impl Deciders {
    /// The three lists of `object`, which is at `at` in the configuration.
    fn parse(object: &Object, at: &str, cx: &mut ParseContext<'_>) -> Option<Self> {
        Some(Self {
            approvers: names(object.get("approvers"), &format!("{at}/approvers"), cx)?,
            groups: names(
                object.get("approverGroups"),
                &format!("{at}/approverGroups"),
                cx,
            )?,
            roles: names(
                object.get("approverRoles"),
                &format!("{at}/approverRoles"),
                cx,
            )?,
        })
    }

    fn is_empty(&self) -> bool {
        self.approvers.is_empty() && self.groups.is_empty() && self.roles.is_empty()
    }
}

/// A limited list of names at `at`.
pub(super) fn names(
    value: Option<&Value>,
    at: &str,
    cx: &mut ParseContext<'_>,
) -> Option<Vec<String>> {
    let items = match value {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return cx.bad(at, "must be a list of texts"),
    };
    if items.len() > MAX_NAMES {
        return cx.bad(at, format!("at most {MAX_NAMES} names"));
    }
    let mut names = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        match item.as_str().filter(|name| !name.is_empty()) {
            Some(name) => names.push(name.to_owned()),
            None => return cx.bad(&format!("{at}/{i}"), "must be a name"),
        }
    }
    Some(names)
}

fn priority(value: Option<&Value>, cx: &mut ParseContext<'_>) -> Option<Option<u8>> {
    let level = match value {
        None | Some(Value::Null) => return Some(None),
        Some(Value::String(word)) => match word.as_str() {
            "low" => Some(2),
            "normal" => Some(5),
            "high" => Some(8),
            _ => None,
        },
        Some(other) => other.as_u64().filter(|n| *n <= 9),
    };
    match level.and_then(|level| u8::try_from(level).ok()) {
        Some(level) => Some(Some(level)),
        None => cx.bad("tandem/priority", "must be low, normal, high, or 0 to 9"),
    }
}

fn on_timeout(
    policy: &Object,
    fits: impl Fn(&Value, &Meter) -> Result<(), AnswerProblem>,
    cx: &mut ParseContext<'_>,
) -> Option<OnTimeout> {
    let allowed: &[&str] = match policy.get("policy").and_then(Value::as_str) {
        Some("reject") => &["policy"],
        Some("default") => &["policy", "value"],
        Some("escalate") => &["levels", "policy"],
        Some("remind") => &["everyMs", "policy", "then", "times"],
        _ => {
            return cx.bad(
                "tandem/onTimeout/policy",
                "must be reject, default, escalate or remind",
            );
        }
    };
    let stray = |key: &&String| {
        let known = ON_TIMEOUT.iter().any(|setting| setting.name() == *key);
        known && !allowed.contains(&key.as_str())
    };
    if let Some(stray) = policy.keys().find(stray) {
        let at = format!("tandem/onTimeout/{stray}");
        return cx.bad(
            &at,
            format!("does not belong here; one of {}", allowed.join(", ")),
        );
    }
    match policy.get("policy").and_then(Value::as_str) {
        Some("default") => {
            let value = policy.get("value").cloned().unwrap_or_default();
            // It was valid when the document was accepted.
            if cx.schemas.stored {
                return Some(OnTimeout::Default(value));
            }
            match fits(&value, &cx.schemas.meter) {
                Ok(()) => Some(OnTimeout::Default(value)),
                Err((below, why)) => cx.bad(&format!("tandem/onTimeout/value{below}"), why),
            }
        }
        Some("escalate") => levels(policy, cx).map(OnTimeout::Escalate),
        Some("remind") => remind(policy, cx),
        _ => Some(OnTimeout::Reject),
    }
}

fn levels(policy: &Object, cx: &mut ParseContext<'_>) -> Option<Vec<EscalationLevel>> {
    const AT: &str = "tandem/onTimeout/levels";
    let listed = policy.get("levels").and_then(Value::as_array);
    let Some(listed) = listed.filter(|l| (1..=MAX_LEVELS).contains(&l.len())) else {
        return cx.bad(AT, format!("must list 1 to {MAX_LEVELS} levels"));
    };
    let mut levels = Vec::with_capacity(listed.len());
    for (i, level) in listed.iter().enumerate() {
        let at = format!("{AT}/{i}");
        let Some(level) = level.as_object() else {
            return cx.bad(&at, "must be an object");
        };
        let deciders = Deciders::parse(level, &at, cx)?;
        if deciders.is_empty() {
            return cx.bad(&at, "names no decider; give approverGroups, for example");
        }
        let timeout = level.get("timeoutMs").and_then(Value::as_u64);
        let Some(timeout_ms) = timeout.filter(|ms| *ms > 0) else {
            return cx.bad(
                &format!("{at}/timeoutMs"),
                "must be a whole number of at least 1",
            );
        };
        levels.push(EscalationLevel {
            deciders,
            timeout_ms,
        });
    }
    Some(levels)
}

fn remind(policy: &Object, cx: &mut ParseContext<'_>) -> Option<OnTimeout> {
    const AT: &str = "tandem/onTimeout";
    let every = policy.get("everyMs").and_then(Value::as_u64);
    let Some(every_ms) = every.filter(|ms| *ms >= MIN_EVERY_MS) else {
        return cx.bad(
            &format!("{AT}/everyMs"),
            format!("must be a whole number of at least {MIN_EVERY_MS}"),
        );
    };
    let times = policy.get("times").and_then(Value::as_u64);
    let times = times.filter(|n| (1..=MAX_REMINDERS).contains(n));
    let Some(times) = times.and_then(|n| u32::try_from(n).ok()) else {
        return cx.bad(
            &format!("{AT}/times"),
            format!("must be 1 to {MAX_REMINDERS}"),
        );
    };
    let then_reject = match policy.get("then").map(Value::as_str) {
        None | Some(Some("wait")) => false,
        Some(Some("reject")) => true,
        Some(_) => return cx.bad(&format!("{AT}/then"), "must be wait or reject"),
    };
    Some(OnTimeout::Remind {
        every_ms,
        times,
        then_reject,
    })
}
