//! Answers about decisions of agents: a decision held for its low confidence, an agent's own
//! low-confidence decision, and a supervisor's question to the user.

use crate::definition::Problem;
use crate::node::{Kind, OrchestratorDecision, Route};
use crate::run::agents::{ANSWER, PROCEED};
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::questions::{
    ACCEPT_WITH_CHANGES, Answer, AnswerOutcome, Closing, check_claimed_names, close, invalid,
    read_answers,
};
use crate::run::refusal::Refusal;
use crate::run::scheduling::Done;
use serde_json::{Value, json};
use tandem_record::{ApprovalDecision, Cause, ErrorInfo, Event, Object, Seq};

/// A person's answer about an agent's decision.
enum HeldDecisionAnswer {
    Accept,
    Reject,
    /// Another decision instead, and its location in the answer.
    Replace {
        decision: Value,
        at: &'static str,
    },
}

/// At a dispatch node: the user's answer, or the answer about a held decision.
pub(in crate::run) fn resolve_at_dispatch(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: Answer,
) -> Result<AnswerOutcome, Refusal> {
    let decided = draft.run.state.agents.decided.clone();
    let decided = decided.expect("a dispatch node asks about a decision");
    let decision = OrchestratorDecision::read(&decided.decision);
    let decision = decision.expect("the decision was parsed when the node asked");
    match &decision.route {
        Route::AskUser { .. } => user_answer(draft, ix, &answer, decided.seq),
        Route::Approve { .. } => {
            check_claimed_names(&answer.value)?;
            let accepted = match read_held_answer(&answer.value, BareValue::Decision)? {
                HeldDecisionAnswer::Accept => true,
                HeldDecisionAnswer::Reject => false,
                HeldDecisionAnswer::Replace { .. } => {
                    return invalid("/action", "accept or reject");
                }
            };
            let outcome = if accepted { "accepted" } else { "rejected" };
            record_approval(draft, ix, &answer, outcome, None);
            close_with(draft, ix, answer, outcome);
            let outputs = Object::from_iter([("approved".to_owned(), json!(accepted))]);
            draft.complete_node(ix, Done::with(outputs), decided.seq);
            Ok(closed(outcome))
        }
        Route::NextWorker(_) | Route::Terminate => {
            check_claimed_names(&answer.value)?;
            let answered = match open_kind(draft, ix).as_str() {
                "clarification" => read_proceed_answer(&answer.value)?,
                _ => read_held_answer(&answer.value, BareValue::Decision)?,
            };
            if draft.run.phase() == Phase::Paused && !matches!(answered, HeldDecisionAnswer::Reject)
            {
                return invalid(
                    "/action",
                    "the run is paused; resume it before it goes ahead",
                );
            }
            match answered {
                HeldDecisionAnswer::Accept => {
                    record_held_answer(draft, ix, &answer, "accepted", None);
                    close_with(draft, ix, answer, "accepted");
                    // The decision as it was, with its original cause; it is not held again.
                    let step = draft.carry_out(ix, &decision, decided.seq);
                    draft.apply_outcome(ix, step, decided.seq);
                    Ok(closed("accepted"))
                }
                HeldDecisionAnswer::Replace { decision, at } => {
                    let replaced = read_replacement(&decision, at)?;
                    let supervisor = draft.run.def.index(&decided.node);
                    let supervisor = supervisor.expect("the supervisor is part of the workflow");
                    record_held_answer(draft, ix, &answer, "accepted", Some(&decision));
                    let resumed = close_with(draft, ix, answer, "accepted");
                    let published = draft
                        .publish(supervisor, &replaced, Cause::Event(resumed))
                        .expect("the same supervisor decided before");
                    let step = draft.carry_out_replacement(ix, &replaced, published);
                    draft.apply_outcome(ix, step, published);
                    Ok(closed("accepted"))
                }
                HeldDecisionAnswer::Reject => {
                    record_held_answer(draft, ix, &answer, "rejected", None);
                    close_with(draft, ix, answer, "rejected");
                    // Nothing of it is carried out; the back edge leads to the supervisor's next
                    // iteration.
                    let outputs = Object::from_iter([("rejected".to_owned(), json!(true))]);
                    draft.complete_node(ix, Done::with(outputs), decided.seq);
                    Ok(closed("rejected"))
                }
            }
        }
    }
}

/// At a supervisor or mock agent: a low-confidence decision is ratified, replaced or refused.
pub(in crate::run) fn resolve_low_confidence(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: Answer,
) -> Result<AnswerOutcome, Refusal> {
    let open = draft.run.open_interrupt(ix);
    let held = open.and_then(|s| {
        let hidden = s.interrupt.hidden.as_ref();
        hidden.or_else(|| s.interrupt.data.get("decision")).cloned()
    });
    let supervises = matches!(draft.run.def.nodes[ix].kind, Kind::Supervisor(_));
    // A mock agent's decision may be any value, and so may its replacement.
    let bare = if supervises {
        BareValue::Decision
    } else {
        BareValue::Anything
    };
    let answered = read_held_answer(&answer.value, bare)?;
    if let HeldDecisionAnswer::Reject = answered {
        let resumed = close_with(draft, ix, answer, "rejected");
        let error = ErrorInfo::new("interrupt_rejected", "the agent's decision was refused");
        draft.fail_node(ix, error, Some(resumed), None);
        return Ok(closed("rejected"));
    }
    let (ratified, at) = match answered {
        HeldDecisionAnswer::Replace { decision, at } => (decision, at),
        _ => (held.unwrap_or(Value::Null), "/decision"),
    };
    if !supervises {
        let resumed = close_with(draft, ix, answer, "accepted");
        draft.complete_node(ix, Done::with(Object::new()), resumed);
        return Ok(closed("accepted"));
    }
    let decision = read_replacement(&ratified, at)?;
    let resumed = close_with(draft, ix, answer, "accepted");
    match draft.publish(ix, &decision, Cause::Event(resumed)) {
        Ok(decided) => draft.complete_supervisor(ix, &decision, decided),
        Err(error) => draft.fail_node(ix, error, Some(resumed), None),
    }
    Ok(closed("accepted"))
}

fn user_answer(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: &Answer,
    decided: Seq,
) -> Result<AnswerOutcome, Refusal> {
    let answers = read_answers(&answer.value)?;
    if let Some(stray) = answers.keys().find(|id| *id != ANSWER) {
        return invalid(&format!("/answers/{stray}"), "is not one of the questions");
    }
    if !answers.get(ANSWER).is_some_and(Value::is_string) {
        return invalid("/answers/answer", "the answer must be a text");
    }
    draft.emit_clarification_resolved(ix, &answers, answer.by.as_ref());
    let closing = Closing {
        value: json!({"answers": answers}),
        ..answer.closing("answered")
    };
    close(draft, ix, closing);
    let outputs = Object::from_iter([("answers".to_owned(), json!(answers))]);
    draft.complete_node(ix, Done::with(outputs), decided);
    Ok(closed("answered"))
}

fn closed(outcome: &str) -> AnswerOutcome {
    AnswerOutcome {
        outcome: Some(outcome.to_owned()),
        votes: Vec::new(),
    }
}

fn open_kind(draft: &DecisionDraft<'_>, ix: usize) -> String {
    let open = draft.run.open_interrupt(ix);
    open.map(|s| s.interrupt.kind.clone()).unwrap_or_default()
}

fn close_with(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: Answer,
    outcome: &'static str,
) -> Seq {
    close(draft, ix, answer.closing(outcome))
}

/// Approvals and clarifications leave the same fact wherever they are given.
fn record_held_answer(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: &Answer,
    outcome: &str,
    replacement: Option<&Value>,
) {
    match open_kind(draft, ix).as_str() {
        "approval" => record_approval(draft, ix, answer, outcome, replacement),
        "clarification" => {
            // An action answers the only question there is.
            let action = || answer.value.get("action").cloned();
            let proceed = || Object::from_iter([(PROCEED.to_owned(), json!(action()))]);
            let answers = read_answers(&answer.value).unwrap_or_else(|_| proceed());
            draft.emit_clarification_resolved(ix, &answers, answer.by.as_ref());
        }
        _ => {}
    }
}

fn record_approval(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    answer: &Answer,
    outcome: &str,
    replacement: Option<&Value>,
) {
    let text = |key: &str| {
        answer
            .value
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let action = match (outcome, replacement) {
        ("accepted", Some(_)) => "edit-accept",
        ("accepted", None) => "accept",
        _ => "reject",
    };
    let event = Event::ApprovalReceived {
        node: draft.run.def.nodes[ix].id.clone(),
        decision: Box::new(ApprovalDecision {
            action: action.to_owned(),
            by: answer.by.clone(),
            voter: text("voter"),
            claimed_by: text("decidedBy"),
            decider: answer.decider.clone(),
            feedback: text("feedback"),
            refine: None,
            edited: replacement.cloned(),
        }),
        redo: None,
    };
    draft.emit(event, draft.run.question_seq(ix));
}

/// The form a decision may have when it is not wrapped in a key.
#[derive(Clone, Copy, PartialEq)]
enum BareValue {
    /// A supervisor's decision, recognised by its kind.
    Decision,
    Anything,
}

/// Reads every form clients send: an action, a flag, a decision of their own.
fn read_held_answer(value: &Value, bare: BareValue) -> Result<HeldDecisionAnswer, Refusal> {
    let flag = |key: &str| value.get(key).and_then(Value::as_bool);
    let given = |key: &str, at| {
        let decision = value.get(key)?.clone();
        Some(HeldDecisionAnswer::Replace { decision, at })
    };
    let replacement = given("decision", "/decision")
        .or_else(|| given("editedArtifactData", "/editedArtifactData"));
    match value.get("action").map(|a| a.as_str().unwrap_or_default()) {
        Some("accept") => return accepted_unchanged(replacement),
        Some("reject") => return Ok(HeldDecisionAnswer::Reject),
        Some("edit-accept" | "edit") => {
            return match replacement {
                Some(replacement) => Ok(replacement),
                None => invalid(
                    "/editedArtifactData",
                    "the decision to take instead is required",
                ),
            };
        }
        Some(other) => {
            return invalid(
                "/action",
                format!("{other:?} is not accept, reject or edit-accept"),
            );
        }
        None => {}
    }
    match (flag("ratified"), flag("rejected")) {
        (_, Some(true)) | (Some(false), _) => return Ok(HeldDecisionAnswer::Reject),
        (Some(true), _) => return accepted_unchanged(replacement),
        (None, _) => {}
    }
    if let Some(replacement) = replacement {
        return Ok(replacement);
    }
    let flagged = value.get("ratified").or(value.get("rejected")).is_some();
    let has_value = !value.is_null() && value.as_object().is_none_or(|o| !o.is_empty());
    if value.get("kind").is_some() || (bare == BareValue::Anything && has_value && !flagged) {
        return Ok(HeldDecisionAnswer::Replace {
            decision: value.clone(),
            at: "",
        });
    }
    invalid(
        "",
        "say {\"action\": \"accept\"}, {\"ratified\": true}, {\"rejected\": true} or give a decision",
    )
}

/// An acceptance of the held decision, unless another decision came along with it.
fn accepted_unchanged(
    replacement: Option<HeldDecisionAnswer>,
) -> Result<HeldDecisionAnswer, Refusal> {
    match replacement {
        Some(HeldDecisionAnswer::Replace { at, .. }) => invalid(at, ACCEPT_WITH_CHANGES),
        _ => Ok(HeldDecisionAnswer::Accept),
    }
}

/// A held decision put as a question: only a plain yes goes ahead.
fn read_proceed_answer(value: &Value) -> Result<HeldDecisionAnswer, Refusal> {
    if value.get("action").is_some() {
        return read_held_answer(value, BareValue::Decision);
    }
    let answers = read_answers(value)?;
    let Some(answer_text) = answers.get(PROCEED).and_then(Value::as_str) else {
        return invalid("/answers/proceed", "the answer must be a text");
    };
    let yes = ["proceed", "yes", "accept", "go ahead"];
    Ok(
        if yes.contains(&answer_text.trim().to_lowercase().as_str()) {
            HeldDecisionAnswer::Accept
        } else {
            HeldDecisionAnswer::Reject
        },
    )
}

fn read_replacement(value: &Value, at: &str) -> Result<OrchestratorDecision, Refusal> {
    OrchestratorDecision::read_strict(value).map_err(|(path, message)| {
        let path = format!("/resumeValue{at}{path}");
        Refusal::Invalid(vec![Problem::new(path, message)])
    })
}
