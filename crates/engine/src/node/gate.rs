//! Nodes that open interrupts: approvals, clarifications, external events.

use super::ParseContext;
use super::interrupt_kind;
use super::interrupt_settings::{
    AnswerProblem, AnswerSchema, Deciders, GateDeciders, InterruptSettings, TANDEM, names,
};
use super::settings::{Setting, list_of, object, value};
use crate::definition::{Problem, schema};
use crate::template::Template;
use serde_json::{Value, json};
use tandem_record::{NodeId, Object, RunId};
use tandem_schema::{Meter, Schema};

/// `core.approvalGate`.
#[derive(Debug)]
pub(crate) struct ApprovalGate {
    title: Template,
    description: Option<Template>,
    artifact: Object,
    /// The schema of an edited artifact.
    pub(crate) artifact_schema: Option<Schema>,
    pub(crate) actions: Vec<String>,
    pub(crate) required: u32,
    pub(crate) majority: bool,
    /// Whom clients may notify; passed on as given.
    audience: Option<Value>,
    pub(crate) interrupt_settings: InterruptSettings,
    pub(crate) max_loopbacks: Option<u32>,
}

pub(super) const APPROVAL_SETTINGS: &[Setting] = &[
    value("title"),
    value("description"),
    value("actions"),
    value("requiredApprovals"),
    value("rejectionPolicy"),
    value("approversList"),
    value("approverGroupRefs"),
    value("approverRoleRefs"),
    object("audience", AUDIENCE),
    value("overrideBypassesQuorum"),
    value("profile"),
    value("timeoutMs"),
    value("resumeSchema"),
    value("maxLoopbackIterations"),
    value("artifactId"),
    value("artifactType"),
    value("artifactData"),
    value("artifactSchema"),
    object("tandem", TANDEM),
];
/// The keys of an approval's `data` when `core.interrupt` asks it; other settings are beside
/// `data`.
pub(super) const APPROVAL_DATA: &[Setting] = &[
    value("title"),
    value("description"),
    value("actions"),
    value("requiredApprovals"),
    value("rejectionPolicy"),
    value("approversList"),
    value("approverGroupRefs"),
    value("approverRoleRefs"),
    object("audience", AUDIENCE),
    value("overrideBypassesQuorum"),
    value("maxLoopbackIterations"),
    value("artifactId"),
    value("artifactType"),
    value("artifactData"),
    value("artifactSchema"),
];
const AUDIENCE: &[Setting] = &[value("subjects"), value("groups"), value("roles")];
pub(super) const CLARIFICATION_SETTINGS: &[Setting] = &[
    list_of("questions", QUESTION),
    value("contextType"),
    value("timeoutMs"),
    value("resumeSchema"),
    object("tandem", TANDEM),
];
pub(super) const CLARIFICATION_DATA: &[Setting] =
    &[list_of("questions", QUESTION), value("contextType")];
const QUESTION: &[Setting] = &[value("id"), value("question"), value("schema")];

/// The answers to an approval.
pub const ACTIONS: [&str; 5] = ["accept", "reject", "refine", "edit-accept", "ask"];
const AUTH_REQUIRED: &str = "openwop-interrupt-auth-required";
/// Profiles of questions that ask nothing more of the decider.
const OTHER_PROFILES: [&str; 5] = [
    "openwop-interrupts",
    "openwop-interrupt-cascade-cancel",
    "openwop-interrupt-external-event",
    "openwop-interrupt-parent-child",
    "openwop-interrupt-quorum",
];

/// What is wrong with the profile of a gate.
pub(crate) fn profile_problem(config: &Object) -> Option<String> {
    let profile = config.get("profile")?.as_str()?;
    let is_known = profile == AUTH_REQUIRED || OTHER_PROFILES.contains(&profile);
    let others = OTHER_PROFILES.join(", ");
    (!is_known).then(|| format!("{profile:?} is no profile; known are {AUTH_REQUIRED}, {others}"))
}

impl ApprovalGate {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let mut actions = names(config.get("actions"), "actions", cx)?;
        if actions.is_empty() {
            actions = vec!["accept".to_owned(), "reject".to_owned()];
        }
        for action in &mut actions {
            // The older name of the same action.
            if action == "edit" {
                *action = "edit-accept".to_owned();
            }
            if !ACTIONS.contains(&action.as_str()) {
                return cx.bad("actions", format!("{action:?} is not an approval action"));
            }
        }
        let majority = match cx.text(config, "rejectionPolicy")?.as_deref() {
            None | Some("single-veto" | "first" | "any") => false,
            Some("majority") => true,
            Some(other) => {
                return cx.bad(
                    "rejectionPolicy",
                    format!("{other:?} is no rejection policy"),
                );
            }
        };
        let required = cx.whole(config, "requiredApprovals", 1)?.unwrap_or(1);
        let mut artifact = Object::new();
        let artifact_schema = match config.get("artifactSchema") {
            None => None,
            Some(document) => Some(cx.schema("artifactSchema", document)?),
        };
        for key in [
            "artifactId",
            "artifactType",
            "artifactData",
            "artifactSchema",
        ] {
            if let Some(value) = config.get(key) {
                artifact.insert(key.to_owned(), value.clone());
            }
        }
        let loopbacks = cx.whole(config, "maxLoopbackIterations", 1)?;
        let mut listed = |key: &str| names(config.get(key), key, cx);
        let deciders = Deciders {
            approvers: listed("approversList")?,
            groups: listed("approverGroupRefs")?,
            roles: listed("approverRoleRefs")?,
        };
        let audience = config.get("audience").filter(|a| !a.is_null()).cloned();
        if audience.as_ref().is_some_and(|a| !a.is_object()) {
            return cx.bad("audience", "must be an object");
        }
        let known = GateDeciders {
            deciders,
            // A profile that is not known may have been meant to protect the gate.
            auth_required: cx
                .text(config, "profile")?
                .is_some_and(|profile| !OTHER_PROFILES.contains(&profile.as_str())),
        };
        let mut interrupt_settings =
            InterruptSettings::parse(config, known, check_approval_default, cx)?;
        interrupt_settings.answer = AnswerSchema::parse(config, cx)?;
        Some(Self {
            title: Template::parse_or_literal(
                cx.text(config, "title")?.as_deref().unwrap_or("Approval"),
            ),
            description: cx
                .text(config, "description")?
                .map(|text| Template::parse_or_literal(&text)),
            artifact,
            artifact_schema,
            actions,
            required: u32::try_from(required).unwrap_or(u32::MAX),
            majority,
            audience,
            interrupt_settings,
            max_loopbacks: loopbacks.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        })
    }

    /// Whether the subject of the approval comes from the node's ports.
    pub(crate) fn shows_inputs(&self) -> bool {
        !self.artifact.contains_key("artifactData")
    }

    /// What the approver sees; `written` renders a text for the run.
    pub(crate) fn data(
        &self,
        run: &RunId,
        node: &NodeId,
        inputs: &Object,
        render: &dyn Fn(&Template) -> String,
    ) -> Value {
        let text = |key: &str, fallback: String| {
            let given = self.artifact.get(key).and_then(Value::as_str);
            given.map_or(fallback, str::to_owned)
        };
        let mut data = json!({
            "artifactId": text("artifactId", format!("{run}:{node}")),
            "artifactType": text("artifactType", "approval".to_owned()),
            "title": render(&self.title),
            "actions": self.actions,
            "requiredApprovals": self.required,
            "rejectionPolicy": if self.majority { "majority" } else { "single-veto" },
        });
        if let Some(description) = &self.description {
            data["description"] = json!(render(description));
        }
        if let Some(schema) = self.artifact.get("artifactSchema") {
            data["artifactSchema"] = schema.clone();
        }
        let deciders = self.interrupt_settings.deciders(0);
        for (key, names) in [
            ("approversList", &deciders.approvers),
            ("approverGroupRefs", &deciders.groups),
            ("approverRoleRefs", &deciders.roles),
        ] {
            if !names.is_empty() {
                data[key] = json!(names);
            }
        }
        if let Some(audience) = &self.audience {
            data["audience"] = audience.clone();
        }
        if let Some(priority) = self.interrupt_settings.priority {
            data["priority"] = json!(priority);
        }
        if let Some(shown) = self.artifact(inputs) {
            data["artifactData"] = shown;
        }
        data
    }

    /// The subject of the approval.
    pub(crate) fn artifact(&self, inputs: &Object) -> Option<Value> {
        let port = || inputs.get("artifact").cloned();
        let given = self.artifact.get("artifactData").cloned().or_else(port);
        given.or_else(|| (!inputs.is_empty()).then(|| json!(inputs)))
    }
}

/// `core.clarificationGate`.
#[derive(Debug)]
pub(crate) struct ClarificationGate {
    questions: Vec<Question>,
    context: Option<String>,
    pub(crate) interrupt_settings: InterruptSettings,
}

#[derive(Debug)]
struct Question {
    id: String,
    text: Template,
    document: Value,
    /// Without a schema the answer is a text.
    schema: Option<Schema>,
}

impl ClarificationGate {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let listed = config.get("questions").and_then(Value::as_array);
        let Some(listed) = listed.filter(|q| !q.is_empty()) else {
            return cx.bad("questions", "at least one question is required");
        };
        let mut questions = Vec::new();
        for (i, document) in listed.iter().enumerate() {
            let id = document
                .get("id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let text = document
                .get("question")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if id.is_empty() || text.is_empty() {
                return cx.bad(&format!("questions/{i}"), "a question has an id and a text");
            }
            if questions.iter().any(|q: &Question| q.id == id) {
                return cx.bad(
                    &format!("questions/{i}/id"),
                    format!("{id:?} is used twice"),
                );
            }
            let schema = match document.get("schema") {
                None => None,
                Some(schema) => Some(cx.schema(&format!("questions/{i}/schema"), schema)?),
            };
            questions.push(Question {
                id: id.to_owned(),
                text: Template::parse_or_literal(text),
                document: document.clone(),
                schema,
            });
        }
        let fits = |value: &Value, meter: &Meter| {
            let answers = value.get("answers").and_then(Value::as_object);
            let Some(answers) = answers else {
                return Err(("/answers".to_owned(), "answers are required".to_owned()));
            };
            match clarification_problems(&questions, answers, meter)
                .into_iter()
                .next()
            {
                Some((below, why)) => Err((format!("/answers{below}"), why)),
                None => Ok(()),
            }
        };
        let mut interrupt_settings =
            InterruptSettings::parse(config, GateDeciders::default(), fits, cx)?;
        interrupt_settings.answer = AnswerSchema::parse(config, cx)?;
        Some(Self {
            context: cx.text(config, "contextType")?,
            interrupt_settings,
            questions,
        })
    }

    /// What is wrong with a set of answers: a path below them, and why.
    pub(crate) fn answer_problems(&self, answers: &Object, meter: &Meter) -> Vec<AnswerProblem> {
        clarification_problems(&self.questions, answers, meter)
    }

    pub(crate) fn data(&self, render: &dyn Fn(&Template) -> String) -> Value {
        let shown_questions = self.questions.iter().map(|question| {
            let mut shown = question.document.clone();
            shown["question"] = json!(render(&question.text));
            shown
        });
        let mut data = json!({"questions": shown_questions.collect::<Vec<_>>()});
        if let Some(context) = &self.context {
            data["contextType"] = json!(context);
        }
        data
    }
}

fn clarification_problems(
    questions: &[Question],
    answers: &Object,
    meter: &Meter,
) -> Vec<AnswerProblem> {
    let mut faults = Vec::new();
    for question in questions {
        let path = format!("/{}", question.id);
        match (answers.get(&question.id), &question.schema) {
            (None, _) => faults.push((path, "an answer is missing".to_owned())),
            (Some(value), Some(schema)) => {
                let problems = schema::problems(schema, value, &path, meter);
                faults.extend(problems.into_iter().map(|p| (p.path, p.message)));
            }
            (Some(value), None) if !value.is_string() => {
                faults.push((path, "the answer must be a text".to_owned()));
            }
            (Some(_), None) => {}
        }
    }
    let known = |id: &String| questions.iter().any(|q| q.id == *id);
    for id in answers.keys().filter(|id| !known(id)) {
        faults.push((format!("/{id}"), "is not one of the questions".to_owned()));
    }
    faults
}

/// The only default of an approval is the one a timeout has anyway.
fn check_approval_default(value: &Value, _: &Meter) -> Result<(), AnswerProblem> {
    let action = value.get("action").unwrap_or(value);
    if action.as_str() == Some("reject") {
        return Ok(());
    }
    let why = "silence never approves: the default of an approval can only be reject";
    Err((String::new(), why.to_owned()))
}

/// `core.interrupt`: any other interrupt.
#[derive(Debug)]
pub(crate) struct GenericInterrupt {
    pub(crate) kind: String,
    pub(crate) data: Value,
    pub(crate) interrupt_settings: InterruptSettings,
}

impl GenericInterrupt {
    pub(super) fn parse(config: &Object, cx: &mut ParseContext<'_>) -> Option<Self> {
        let kind = cx.required_text(config, "kind")?;
        let data = config.get("data").cloned().unwrap_or_else(|| json!({}));
        match interrupt_kind::data_needs(&kind) {
            None => {
                return cx.bad(
                    "kind",
                    format!(
                        "{kind:?} is not supported by core.interrupt (unsupported_interrupt_kind)"
                    ),
                );
            }
            Some(needs) => {
                if let Some((key, what)) = needs.iter().find(|(key, what)| !what.holds(&data, key))
                {
                    let message = format!("{kind} needs {key}, which is {}", what.name());
                    return cx.bad(&format!("data/{key}"), message);
                }
            }
        }
        let answer = AnswerSchema::parse(config, cx)?;
        let fits = |value: &Value, meter: &Meter| {
            let problems = check_value(&kind, answer.as_ref(), value, "", meter);
            match problems.into_iter().next() {
                Some(problem) => Err((problem.path, problem.message)),
                None => Ok(()),
            }
        };
        let mut interrupt_settings =
            InterruptSettings::parse(config, GateDeciders::default(), fits, cx)?;
        interrupt_settings.answer = answer;
        if kind == "external-event" && interrupt_settings.restricts_deciders() {
            return cx.bad(
                "tandem",
                "an event is not decided by a person: it has no approvers",
            );
        }
        Some(Self {
            kind,
            data,
            interrupt_settings,
        })
    }

    /// What is wrong with an answer at `at`, apart from its correlation.
    pub(crate) fn check_value(&self, value: &Value, at: &str, meter: &Meter) -> Vec<Problem> {
        check_value(
            &self.kind,
            self.interrupt_settings.answer.as_ref(),
            value,
            at,
            meter,
        )
    }
}

fn check_value(
    kind: &str,
    schema: Option<&AnswerSchema>,
    value: &Value,
    at: &str,
    meter: &Meter,
) -> Vec<Problem> {
    if let Some(why) = interrupt_kind::refusal_reason(kind, value) {
        return vec![Problem::new(at, why)];
    }
    schema.map_or_else(Vec::new, |schema| schema.problems(value, at, meter))
}
