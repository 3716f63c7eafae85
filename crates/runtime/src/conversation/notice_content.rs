//! What notices of questions say: of escalations and held texts of conversations, and of questions of workflow runs.
//!
//! The content follows from what is stored; how it looks is the transport's. It holds no link.

use super::network::{NoticeContent, NoticeDecision, NoticeQuestion};
use super::session_questions::shown_data;
use crate::questions::digest;
use serde_json::Value;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::EscalationRecord;
use tandem_record::{EscalationId, InterruptId, NodeId, RunId, Timestamp, proposed_artifact};
use tandem_store::{Fault, InterruptRow};

const DECISION_NEEDED: &str = "Decision needed";
const PERSON_NEEDED: &str = "Person needed";
const ANSWER_NEEDED: &str = "Answer needed";
/// Characters of a value that is shown as JSON. The link shows all of it.
const MAX_VALUE_CHARS: usize = 8_000;
const MAX_TITLE_CHARS: usize = 300;

/// An escalation while it is open.
pub(super) fn of_escalation(session: &ChatSession, id: &EscalationId) -> Option<NoticeContent> {
    let escalation = session.escalation_to_notify(id)?;
    let user = &session.start().user.external_user_id;
    let is_takeover = escalation.is_takeover();
    let action = match is_takeover {
        true => "wants to talk to a person",
        false => "needs a decision",
    };
    let mut about = escalation.reason.clone();
    // What exactly is to be allowed.
    if let Some(request) = session.approval_of(id) {
        about.push_str(&format!("\n{}", shortened_json(&request.call.args)));
    }
    let decided = (!is_takeover).then(|| NoticeDecision {
        question: InterruptId::new(id.as_str()),
        digest: None,
    });
    Some(NoticeContent {
        need: if is_takeover {
            PERSON_NEEDED
        } else {
            DECISION_NEEDED
        },
        headline: format!("{user} {action}"),
        about,
        facts: vec![("Priority", escalation.priority.as_str().to_owned())],
        decided,
        shown: question_of(session, escalation),
        deadline: escalation.deadline,
        next: match is_takeover {
            true => format!("Take over with /takeover {user}, or in the console."),
            false => format!("Decide with /resolve {id} approve or reject, or in the inbox."),
        },
    })
}

/// The question of an escalation: that of the flow that waits for it, or that of its session. `None` while a flow that
/// opened it does not wait. A takeover is none: nobody decides it.
fn question_of(session: &ChatSession, escalation: &EscalationRecord) -> Option<NoticeQuestion> {
    if escalation.is_takeover() {
        return None;
    }
    match (&escalation.flow_run_id, &escalation.interrupt_id) {
        (Some(run), Some(interrupt)) => {
            let step = interrupt.as_str().rsplit(':').next()?;
            Some(NoticeQuestion {
                run: run.clone(),
                node: NodeId::from(format!("s{step}")),
                interrupt: interrupt.clone(),
            })
        }
        (Some(_), None) => None,
        (None, _) => {
            let interrupt = InterruptId::from(escalation.id.as_str());
            Some(of_session(session, "escalation", interrupt))
        }
    }
}

fn of_session(session: &ChatSession, node: &str, interrupt: InterruptId) -> NoticeQuestion {
    NoticeQuestion {
        run: RunId::from(session.id().as_str()),
        node: NodeId::from(node),
        interrupt,
    }
}

/// A text of the agent while it waits for an approval.
pub(super) fn of_draft(session: &ChatSession, id: &InterruptId) -> Option<NoticeContent> {
    let (_, draft) = session.drafts().find(|(held, _)| *held == id)?;
    let digest = digest(&shown_data(session, id)?);
    let user = &session.start().user.external_user_id;
    Some(NoticeContent {
        need: DECISION_NEEDED,
        headline: format!("A text to {user} needs an approval"),
        about: draft.candidate.text.clone(),
        facts: vec![("Digest", digest.clone())],
        decided: Some(NoticeDecision {
            question: id.clone(),
            digest: Some(digest),
        }),
        shown: Some(of_session(session, "draft", id.clone())),
        deadline: None,
        next: "Decide in the inbox: accepting sends it, rejecting drops it.".to_owned(),
    })
}

/// A question of a workflow run while it is open. `now` says whether its deadline has passed.
pub(crate) fn of_run(row: &InterruptRow, now: Timestamp) -> Result<Option<NoticeContent>, Fault> {
    let Some((run, node)) = row.run_and_node() else {
        return Ok(None);
    };
    if row.closed.is_some() || row.deadline.is_some_and(|deadline| deadline <= now) {
        return Ok(None);
    }
    let question = row.question()?;
    let data = &*question.data;
    let is_approval = row.kind == "approval";
    let title = data["title"].as_str().unwrap_or(node.as_str());
    let mut about = match is_approval {
        true => shortened(title, MAX_TITLE_CHARS),
        false => asked(data),
    };
    if let Some(description) = data["description"].as_str().filter(|_| is_approval) {
        about.push_str(&format!("\n{}", shortened(description, MAX_VALUE_CHARS)));
    }
    if let Some(artifact) = proposed_artifact(data).filter(|_| is_approval) {
        about.push_str(&format!("\n{}", shortened_json(artifact)));
    }
    let workflow = question.workflow_id.as_ref().map(|id| id.as_str());
    let needed = data["requiredApprovals"].as_u64().unwrap_or(1);
    let digest = question.digest.to_string();
    let mut facts = vec![("Run", run.to_string())];
    if needed > 1 {
        facts.push(("Approvals needed", needed.to_string()));
    }
    if is_approval {
        facts.push(("Digest", digest.clone()));
    }
    let may = |action: &str| is_offered(data, action);
    let is_decided = is_approval && may("accept") && may("reject");
    Ok(Some(NoticeContent {
        need: if is_approval {
            DECISION_NEEDED
        } else {
            ANSWER_NEEDED
        },
        headline: format!(
            "The workflow {} {}",
            workflow.unwrap_or("of a run"),
            match is_approval {
                true => "needs a decision",
                false => "asks",
            }
        ),
        about,
        facts,
        decided: is_decided.then(|| NoticeDecision {
            question: row.interrupt.clone(),
            digest: Some(digest),
        }),
        shown: Some(NoticeQuestion {
            run,
            node,
            interrupt: row.interrupt.clone(),
        }),
        deadline: row.deadline,
        next: match is_approval {
            true => "Decide in the inbox.".to_owned(),
            false => "Answer in the inbox.".to_owned(),
        },
    }))
}

fn is_offered(data: &Value, action: &str) -> bool {
    let mut actions = data["actions"].as_array().into_iter().flatten();
    actions.any(|offered| offered == action)
}

/// The questions of a clarification.
fn asked(data: &Value) -> String {
    let questions = data["questions"].as_array().into_iter().flatten();
    let lines = questions.filter_map(|question| question["question"].as_str());
    shortened(&lines.collect::<Vec<_>>().join("\n"), MAX_VALUE_CHARS)
}

fn shortened_json(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    shortened(&text, MAX_VALUE_CHARS)
}

/// A text that is cut says so: nobody may take it for the whole.
fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}… (shortened; all of it is in the inbox)", &text[..end]),
        None => text.to_owned(),
    }
}
