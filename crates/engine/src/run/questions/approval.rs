//! Approvals: reading a decision, counting votes, and what follows from it.

use super::answer::{Answer, AnswerOutcome, close, invalid};
use super::state::Suspension;
use crate::definition::schema;
use crate::graph::binding::RunScope;
use crate::node::ApprovalGate;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::refusal::Refusal;
use crate::run::scheduling::{Done, NodeEntry};
use serde_json::{Value, json};
use tandem_record::{ApprovalDecision, ErrorInfo, Event, NodeStatus, Object, Seq};
use tandem_schema::Meter;

/// Characters of a name that a client claims.
const MAX_NAME_CHARS: usize = 256;

/// A change that came along with a plain accept must not be dropped.
pub(in crate::run) const ACCEPT_WITH_CHANGES: &str =
    "accept takes what is shown as it is; use edit-accept to change it";

/// Whether a claimed name has something to read, and is not too long.
pub(super) fn is_name(name: &str) -> bool {
    name.chars().count() <= MAX_NAME_CHARS && !name.chars().all(is_blank)
}

/// White space, and characters that draw nothing: controls, joiners, fillers, selectors, tags.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
            | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Refuses claimed names that are empty or too long, also where claims do not count.
pub(in crate::run) fn check_claimed_names(value: &Value) -> Result<(), Refusal> {
    for key in ["voter", "decidedBy"] {
        let fits = match value.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::String(name)) => is_name(name),
            Some(_) => false,
        };
        if !fits {
            let message = format!("must be a name of 1 to {MAX_NAME_CHARS} characters");
            return invalid(&format!("/{key}"), message);
        }
    }
    Ok(())
}

/// Reads an approval answer, in today's words or an older client's.
fn read_decision(
    gate: &ApprovalGate,
    open: &Suspension,
    answer: &Answer,
    identity_bound: bool,
    meter: &Meter,
) -> Result<ApprovalDecision, Refusal> {
    let Value::Object(fields) = &answer.value else {
        return invalid("", "must be an object with an action");
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let feedback = text("feedback").or_else(|| text("comment"));
    let mut refine = fields.get("refineFeedback").cloned();
    let action = match (text("action"), text("decision").as_deref()) {
        (Some(action), _) if action == "edit" => "edit-accept".to_owned(),
        (Some(action), _) => action,
        (None, Some("approved")) => "accept".to_owned(),
        (None, Some("rejected")) if feedback.is_some() => {
            refine = Some(json!({"scope": "whole", "text": feedback}));
            "refine".to_owned()
        }
        (None, Some("rejected")) => "reject".to_owned(),
        (None, _) => return invalid("/action", "an action is required"),
    };
    if !gate.actions.contains(&action) {
        let offered = gate.actions.join(", ");
        return invalid(
            "/action",
            format!("{action:?} is not offered; choose one of {offered}"),
        );
    }
    if action == "refine" {
        let scope = refine
            .as_ref()
            .and_then(|r| r.get("scope"))
            .and_then(Value::as_str);
        if !matches!(scope, Some("whole" | "section" | "items")) {
            return invalid("/refineFeedback/scope", "must be whole, section or items");
        }
    }
    let edited = fields.get("editedArtifactData").cloned();
    let edited = edited.filter(|edited| !edited.is_null());
    if action == "accept" && edited.is_some() {
        return invalid("/editedArtifactData", ACCEPT_WITH_CHANGES);
    }
    if action != "edit-accept" && edited.is_some() {
        return invalid(
            "/editedArtifactData",
            format!("contradicts the action {action}; leave it out, or use edit-accept"),
        );
    }
    if action != "refine" && fields.get("refineFeedback").is_some_and(|f| !f.is_null()) {
        return invalid(
            "/refineFeedback",
            format!("contradicts the action {action}; leave it out, or use refine"),
        );
    }
    if action == "edit-accept" && edited.is_none() {
        return invalid("/editedArtifactData", "the edited artifact is required");
    }
    if let Some(edited) = edited.as_ref().filter(|_| action == "edit-accept") {
        open.check_masks(edited)?;
        let artifact = open.true_artifact(Some(edited)).unwrap_or_default();
        check_artifact(gate, open, &artifact, meter)?;
    }
    check_claimed_names(&answer.value)?;
    Ok(ApprovalDecision {
        refine: refine.filter(|_| action == "refine"),
        edited: edited.filter(|_| action == "edit-accept"),
        action,
        by: answer.by.clone(),
        // Where the decider's identity matters, the name in the body is not used.
        voter: text("voter").filter(|_| !identity_bound),
        claimed_by: text("decidedBy").filter(|_| !identity_bound),
        decider: answer.decider.clone(),
        feedback,
    })
}

fn check_artifact(
    gate: &ApprovalGate,
    open: &Suspension,
    artifact: &Value,
    meter: &Meter,
) -> Result<(), Refusal> {
    let Some(schema) = &gate.artifact_schema else {
        return Ok(());
    };
    let mut problems = schema::problems(schema, artifact, "/resumeValue/editedArtifactData", meter);
    if open.interrupt.hidden.is_some() {
        // A message may quote what the reader does not see.
        for problem in &mut problems {
            "does not match the schema of the artifact".clone_into(&mut problem.message);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Invalid(problems)),
    }
}

pub(in crate::run) fn resolve_approval(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    gate: &ApprovalGate,
    answer: Answer,
) -> Result<AnswerOutcome, Refusal> {
    let open = draft.run.open_interrupt(ix);
    let open = open.expect("the question is open");
    let policy = draft.run.policy_at(ix, open);
    let decision = read_decision(
        gate,
        open,
        &answer,
        policy.requires_identity(),
        draft.cx.work,
    )?;
    if decision.action == "ask" {
        return question_back(draft, ix, &answer);
    }
    let problems = gate
        .interrupt_settings
        .resume_schema_problems(&answer.value, draft.cx.work);
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let redo = match decision.action.as_str() {
        "refine" if draft.run.phase() == Phase::Paused => {
            return invalid(
                "/action",
                "the run is paused; resume it before asking for changes",
            );
        }
        "refine" => Some(producer(draft, ix)?),
        _ => None,
    };
    let node = draft.run.def.nodes[ix].id.clone();
    let cause = draft.run.question_seq(ix);
    let redo_id = redo.map(|r| draft.run.def.nodes[r].id.clone());
    draft.emit(
        Event::ApprovalReceived {
            node,
            decision: Box::new(decision.clone()),
            redo: redo_id,
        },
        cause,
    );
    let votes = draft
        .run
        .open_interrupt(ix)
        .map(|s| s.votes.clone())
        .unwrap_or_default();
    let count = |action: &str| votes.iter().filter(|v| v.action == action).count();
    let rejections = if gate.majority {
        gate.required / 2 + 1
    } else {
        1
    };
    let decided = match decision.action.as_str() {
        // An edit is shown to those who have not voted yet, so it needs as many votes.
        "accept" | "edit-accept" => {
            count("accept") + count("edit-accept") >= gate.required as usize
        }
        "reject" => count("reject") >= rejections as usize,
        _ => true,
    };
    if !decided {
        return Ok(AnswerOutcome {
            outcome: None,
            votes,
        });
    }
    let outcome = match decision.action.as_str() {
        "reject" => "rejected",
        "refine" => "changes-requested",
        _ => "accepted",
    };
    let outputs = outputs(&decision, artifact(draft, ix, outcome));
    let resumed = close(draft, ix, answer.closing(outcome));
    match (decision.action.as_str(), redo) {
        ("reject", _) => rejected(draft, ix, outputs, resumed),
        (_, Some(producer)) => loop_back(draft, ix, producer, gate, resumed),
        _ => draft.complete_node(ix, Done::with(outputs), resumed),
    }
    Ok(AnswerOutcome {
        outcome: Some(outcome.to_owned()),
        votes,
    })
}

fn question_back(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: &Answer,
) -> Result<AnswerOutcome, Refusal> {
    let fields = answer.value.as_object();
    let keys = ["question", "text", "feedback"];
    let text = keys.iter().find_map(|k| fields?.get(*k)?.as_str());
    let Some(question) = text.filter(|t| !t.is_empty()) else {
        return invalid("/question", "what do you want to know?");
    };
    let open = draft.run.open_interrupt(ix);
    let (interrupt, votes) = open
        .map(|s| (s.interrupt.id.clone(), s.votes.clone()))
        .expect("the question is open");
    let event = Event::ApprovalQuestioned {
        node: draft.run.def.nodes[ix].id.clone(),
        interrupt,
        question: question.to_owned(),
        by: answer.by.clone(),
    };
    let cause = draft.run.node(ix).last;
    draft.emit(event, cause);
    Ok(AnswerOutcome {
        outcome: None,
        votes,
    })
}

/// The artifact as it was accepted, with the changes of a voter, also when that voter's own vote was
/// replaced since.
fn artifact(draft: &DecisionDraft<'_>, ix: usize, outcome: &str) -> Option<Value> {
    let open = draft.run.open_interrupt(ix)?;
    let mut votes = open.votes.iter();
    let changed = open.proposed.is_some() || votes.any(|vote| vote.action == "edit-accept");
    let shown = open.interrupt.data.get("artifactData");
    let artifact = open.true_artifact(shown);
    artifact.filter(|_| changed || outcome == "accepted")
}

fn outputs(decision: &ApprovalDecision, artifact: Option<Value>) -> Object {
    let mut outputs = Object::from_iter([("action".to_owned(), json!(decision.action))]);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            outputs.insert(key.to_owned(), value);
        }
    };
    set("decidedBy", decision.by.as_ref().map(|by| json!(by)));
    let acting_for = decision.decider.acting_for.as_ref();
    set("actingFor", acting_for.map(|whom| json!(whom)));
    set(
        "feedback",
        decision.feedback.as_ref().map(|text| json!(text)),
    );
    set("artifactData", artifact);
    outputs
}

/// A rejection follows the edge its author drew for it, or fails the node.
pub(in crate::run) fn rejected(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    outputs: Object,
    cause: Seq,
) {
    let drawn = draft.run.def.nodes[ix].outgoing.iter().any(|&e| {
        let condition = draft.run.def.edges[e].condition.as_ref();
        let scope = RunScope::with_output(&draft.run, &outputs);
        condition.is_some_and(|c| c.holds(&outputs, &scope, draft.cx.work))
    });
    if drawn {
        draft.complete_node(ix, Done::with(outputs), cause);
    } else {
        let error = ErrorInfo::new("interrupt_rejected", "the approval was refused");
        draft.fail_node(ix, error, Some(cause), None);
    }
}

/// The node whose output is under review: the predecessor of the gate.
fn producer(draft: &DecisionDraft<'_>, ix: usize) -> Result<usize, Refusal> {
    let incoming = draft.run.def.nodes[ix].incoming.iter();
    let mut sources = incoming.map(|e| draft.run.def.edges[*e].source);
    let done = sources.find(|s| draft.run.node(*s).status == NodeStatus::Completed);
    match done {
        Some(source) => Ok(source),
        None => invalid("/action", "no node before this one could make the changes"),
    }
}

/// Changes were requested: the producer runs again and the gate asks again, a limited number of
/// times.
fn loop_back(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    producer: usize,
    gate: &ApprovalGate,
    cause: Seq,
) {
    let node = draft.run.def.nodes[ix].id.clone();
    let closed = draft.run.state.questions.closed.iter();
    let rounds = closed
        .filter(|c| c.node == node && c.outcome == "changes-requested")
        .count();
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let limit = gate
        .max_loopbacks
        .unwrap_or_else(|| draft.run.loopback_limit());
    if rounds > limit {
        let event = Event::LoopbackLimitReached {
            node,
            iterations: rounds,
            limit,
        };
        let cause = draft.emit(event, Some(cause));
        let message = format!("changes were requested more than {limit} times");
        let error = ErrorInfo::new("loopback_limit_exceeded", message);
        draft.fail_node(ix, error, Some(cause), None);
        return;
    }
    let entry = NodeEntry {
        resets: vec![ix],
        ..NodeEntry::default()
    };
    draft.start_node(producer, entry);
}
