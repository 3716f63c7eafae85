//! Audit entries of decisions in conversations, from which receipts are made: resolved escalations, held texts, answers
//! given for the user. They have the form of the entries of runs, whichever route the decision came by (Z-203).

use super::session_machine::SessionMachine;
use super::session_questions::{escalation_data, shown_data};
use super::settings::SessionSettings;
use crate::questions::digest;
use crate::transaction::Companion;
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_engine::flow_run::FlowRun;
use tandem_engine::machine::Decision;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    AdminActor, DraftOutcome, EscalationMode, EscalationRecord, SessionEvent,
    SessionEventBody as Body, TurnCause,
};
use tandem_record::{
    Actor, EscalationId, InterruptId, Object, Recorded, RunId, StreamId, TenantId, Timestamp,
};
use tandem_store::audit::DECISION;
use tandem_store::{AuditDraft, InterruptRow};

/// A question that was decided.
#[derive(Clone)]
pub(super) struct DecidedQuestion {
    interrupt: InterruptId,
    /// The flow run that shows it, if a flow waits.
    pub(super) run: Option<RunId>,
    kind: &'static str,
    outcome: &'static str,
    answer: Value,
    edited: Option<Value>,
    by: Option<AdminActor>,
    escalation: Option<Box<EscalationRecord>>,
    at: Timestamp,
}

/// What the events of one decision decided.
pub(super) fn decided_questions(
    session: &ChatSession,
    events: &[Recorded<SessionEvent>],
) -> Vec<DecidedQuestion> {
    // An answer that is handed over again was audited when it was given.
    let is_retried = events.iter().any(|recorded| {
        matches!(
            recorded.event.body,
            Body::DivergenceSettled { retried: true, .. }
        )
    });
    let decided = events.iter().filter_map(|recorded| {
        let by = recorded.event.actor.clone();
        let at = recorded.at;
        match &recorded.event.body {
            Body::EscalationResolved {
                escalation_id,
                resolution,
                ..
            } => {
                let answer = json!({
                    "approved": resolution.approved,
                    "message": resolution.message,
                    "actionData": resolution.action_data,
                });
                let outcome = match resolution.approved {
                    true => "accepted",
                    false => "rejected",
                };
                let escalation = question_of(session, escalation_id)?;
                Some(DecidedQuestion {
                    answer,
                    edited: resolution.action_data.clone(),
                    by,
                    ..of_escalation(escalation, outcome, at)
                })
            }
            Body::EscalationTimedOut { escalation_id, .. } => {
                let escalation = question_of(session, escalation_id)?;
                Some(of_escalation(escalation, "timeout", at))
            }
            Body::DraftDecided { draft_id, outcome } => {
                let (action, outcome) = match outcome {
                    DraftOutcome::Accepted => ("accept", "accepted"),
                    DraftOutcome::Edited => ("edit-accept", "accepted"),
                    DraftOutcome::Rejected => ("reject", "rejected"),
                    DraftOutcome::Dropped => return None,
                };
                Some(DecidedQuestion {
                    interrupt: draft_id.clone(),
                    run: None,
                    kind: "approval",
                    outcome,
                    answer: json!({"action": action}),
                    edited: None,
                    by,
                    escalation: None,
                    at,
                })
            }
            Body::TurnQueued {
                cause:
                    TurnCause::Answered {
                        interrupt, value, ..
                    },
            } if !is_retried => Some(DecidedQuestion {
                interrupt: interrupt.clone(),
                run: session.flow().map(|flow| flow.run_id().clone()),
                kind: "clarification",
                outcome: "answered",
                answer: value.clone(),
                edited: None,
                by,
                escalation: None,
                at,
            }),
            _ => None,
        }
    });
    decided.collect()
}

/// An escalation that somebody decides. A takeover is handed back instead.
fn question_of<'a>(session: &'a ChatSession, id: &EscalationId) -> Option<&'a EscalationRecord> {
    let escalation = session.escalation(id)?;
    Some(escalation).filter(|e| e.mode == EscalationMode::AsyncResolution)
}

fn of_escalation(
    escalation: &EscalationRecord,
    outcome: &'static str,
    at: Timestamp,
) -> DecidedQuestion {
    let waiting = escalation.interrupt_id.as_ref();
    let waiting = waiting.filter(|_| !escalation.detached);
    let own = || InterruptId::new(escalation.id.as_str());
    DecidedQuestion {
        interrupt: waiting.cloned().unwrap_or_else(own),
        run: waiting.and(escalation.flow_run_id.clone()),
        kind: "approval",
        outcome,
        answer: Value::Null,
        edited: None,
        by: None,
        escalation: Some(Box::new(escalation.clone())),
        at,
    }
}

/// Audit entries of questions at which flows wait.
pub(super) fn decision_entries(
    settings: &SessionSettings,
    decision: &Decision<SessionMachine>,
) -> Vec<Companion> {
    let Some(session) = decision.after.session() else {
        return Vec::new();
    };
    let decided = decided_questions(session, &decision.events).into_iter();
    let of_flows = decided.filter_map(|question| Some((question.run.clone()?, question)));
    let mut companions: Vec<Companion> = Vec::new();
    for (run, question) in of_flows {
        let (runs, session) = (Arc::clone(&settings.flow_runs), session.clone());
        companions.push(Box::new(move |transaction| {
            Box::pin(async move {
                let runtime = transaction.runtime;
                let stream = StreamId::of_run(&run);
                let flow_run = runtime.read_machine(&runs, &stream).await?;
                let entry = question.entry_of_flow(&session, flow_run.as_ref(), runtime.actor());
                transaction.audit(entry);
                Ok(())
            })
        }));
    }
    companions
}

impl DecidedQuestion {
    /// The entry of a question that the session itself asks. `rows` are those the decision changes.
    pub(super) fn entry_of_session(
        &self,
        session: &ChatSession,
        rows: &[InterruptRow],
        caller: &Actor,
    ) -> AuditDraft {
        let row = rows.iter().find(|row| row.interrupt == self.interrupt);
        let of_row = row.and_then(|row| Some(row.question().ok()?.digest.into_owned()));
        let of_escalation = || Some(escalation_data(self.escalation.as_deref()?));
        let open = || shown_data(session, &self.interrupt).or_else(of_escalation);
        let shown = of_row.or_else(|| Some(digest(&open()?)));
        self.entry(session, shown, caller)
    }

    /// The entry of a question at which a flow waits.
    pub(super) fn entry_of_flow(
        &self,
        session: &ChatSession,
        flow_run: Option<&FlowRun>,
        caller: &Actor,
    ) -> AuditDraft {
        let open = flow_run.map(FlowRun::open_questions).unwrap_or_default();
        let mut open = open.iter().map(|question| &question.interrupt);
        let open = open.find(|interrupt| interrupt.id == self.interrupt);
        self.entry(session, open.map(|shown| digest(&shown.data)), caller)
    }

    fn entry(&self, session: &ChatSession, shown: Option<String>, caller: &Actor) -> AuditDraft {
        let mut details = Object::new();
        let mut put = |name: &str, value: Value| {
            details.insert(name.to_owned(), value);
        };
        put("sessionId", json!(session.id()));
        put("runId", json!(self.run));
        put("kind", json!(self.kind));
        put("digest", json!(shown));
        put("outcome", json!(self.outcome));
        put("answerDigest", json!(digest(&self.answer)));
        if let Some(edited) = &self.edited {
            let before = self.escalation.as_ref().and_then(|e| e.metadata.as_ref());
            let artifact = json!({"before": before.map(digest), "after": digest(edited)});
            put("artifact", artifact);
        }
        // Nobody but the host decides by a deadline.
        let host = Actor::host();
        let actor = match &self.by {
            Some(_) => caller,
            None => &host,
        };
        put("by", decided_by(actor, self.by.as_ref()));
        if self.outcome == "timeout" {
            put("reason", json!("timeout"));
        }
        if let Some(escalation) = &self.escalation {
            put("escalationId", json!(escalation.id));
            let votes = escalation.votes.iter();
            let votes: Vec<Value> = votes
                .map(|vote| json!({"voter": vote.by, "action": "accept", "at": vote.at}))
                .collect();
            if !votes.is_empty() {
                put("votes", json!(votes));
            }
        }
        let tenant: &TenantId = &session.start().owner.tenant;
        let target = self.interrupt.as_str();
        AuditDraft::new(self.at, Some(tenant), actor, DECISION, target, details)
    }
}

/// Who decided: the caller as the host knows them, and the actor as the agent's rules resolved them.
fn decided_by(caller: &Actor, actor: Option<&AdminActor>) -> Value {
    let mut by = json!({"via": caller.auth_method.to_string(), "roles": &*caller.roles});
    if let Some(principal) = &caller.principal {
        by["principal"] = json!(principal);
    }
    if let Some(actor) = actor {
        by["actor"] = json!({"id": actor.id, "role": actor.role, "channel": actor.channel});
    }
    by
}
