//! Decisions that somebody makes on a network, with the buttons of a notice. They are the same decisions as those over
//! HTTP, with the same rights and refusals.
//!
//! Questions of conversations are decided by the rules of the agent (`adminAuth`). Questions of workflow runs are
//! decided by the principal that the operator's configuration names for the address, as if that principal had called
//! `POST /interrupts/{id}:resolve`. Whoever is unknown is refused, and the denial is recorded.

use super::answer::ConversationQuestion;
use super::escalations::EscalationFound;
use super::manage::{ResolveEscalation, ResolveTarget};
use super::networks::identity_of;
use super::rights::AdminCall;
use crate::app::App;
use crate::decide::{AnswerTarget, SubmittedAnswer};
use crate::error::AppError;
use crate::idempotency::Idempotency;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{ClosedEscalation, EscalationStatus, SessionView};
use tandem_record::{AgentId, EscalationId, Object, Owner, Partition, Principal};
use tandem_runtime::InterruptRow;
use tandem_runtime::conversation::{ChatSignal, NetworkDecision, SessionRefusal, ShownDecision};

const NOT_ALLOWED: &str = "You may not decide this.";
const NO_QUESTION: &str = "There is no such question.";
const CHANGED: &str =
    "What is to be decided has changed since this message. Look at it in the inbox.";
const DENIED: &str = "decision.denied";

/// Who decides questions of workflow runs on a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPerson {
    pub agent: AgentId,
    pub transport: String,
    /// Theirs on the network.
    pub address: String,
    pub principal: Principal,
}

/// What is shown of a decision, and whether the question is closed.
type Outcome = (String, bool);

impl App {
    /// Takes a decision by the rights of whoever made it, and shows on the network what became of it. The denial of
    /// somebody unknown is recorded like every other.
    pub(super) async fn decide_from_network(
        &self,
        place: (&AgentId, &str, &Owner),
        decision: &NetworkDecision,
        show_session: fn(&SessionView) -> Value,
    ) -> Result<(), AppError> {
        let (agent, transport, owner) = place;
        let caller = identity_of(agent, transport, owner);
        let call = AdminCall {
            caller: &caller,
            headers: BTreeMap::new(),
            show_session,
            chat: Some(ChatSignal {
                transport,
                address: &decision.by,
            }),
        };
        let escalation = EscalationId::new(decision.question.as_str());
        let found = self.escalation_of(&caller, &escalation).await?;
        let (text, is_final) = match found {
            Some(found) if found.agent == *agent => {
                let given = ResolveEscalation {
                    approved: decision.approved,
                    message: None,
                    action_data: None,
                    resolved_by: None,
                };
                let target = ResolveTarget::Escalation(escalation);
                escalation_outcome(self.take_decision(&call, target, given).await)?
            }
            Some(_) => (NO_QUESTION.to_owned(), true),
            None => self.decide_question(place, &call, decision).await?,
        };
        let shown = ShownDecision {
            notice: decision.notice.clone(),
            by: decision.by.clone(),
            text,
            is_final,
        };
        if let Some(conversations) = self.runtime().conversations() {
            let agents = conversations.agents();
            agents.show_decision(agent, transport, shown);
        }
        Ok(())
    }

    /// A decision about a held text of a conversation, or about a workflow run.
    async fn decide_question(
        &self,
        place: (&AgentId, &str, &Owner),
        call: &AdminCall<'_>,
        decision: &NetworkDecision,
    ) -> Result<Outcome, AppError> {
        let no_question = Ok((NO_QUESTION.to_owned(), true));
        let row = match self.find_interrupt(call.caller, &decision.question).await {
            Ok(row) => row,
            Err(error) if error.is_fault() => return Err(error),
            Err(_) => return no_question,
        };
        let answer = SubmittedAnswer {
            value: json!({"action": if decision.approved { "accept" } else { "reject" }}),
            digest: decision.digest.clone(),
            acting_for: None,
        };
        let decided = match (row.run_and_node(), row.stream.session()) {
            (Some((run, _)), _) if !run.is_flow_run() => {
                let Some(person) = self.network_person(place, &row, &decision.by).await? else {
                    return Ok((NOT_ALLOWED.to_owned(), false));
                };
                let target = AnswerTarget::Interrupt(row.interrupt.clone());
                let decided = self.decide(&person, target, answer, Idempotency::none());
                decided.await.map(drop)
            }
            (None, Some(session)) => {
                let found = self.find_session(call.caller, &session).await;
                if !found.is_ok_and(|session| session.start().agent_id == *place.0) {
                    return no_question;
                }
                let question = ConversationQuestion::of_session(row.interrupt.clone(), session);
                let decided = self.answer_conversation(call, question, answer, Idempotency::none());
                decided.await.map(drop)
            }
            _ => return no_question,
        };
        self.question_outcome(&row, decided).await
    }

    /// The principal that the configuration names for an address, with the rights of their good keys. `None` for
    /// whoever may decide nothing, which is recorded.
    async fn network_person(
        &self,
        (agent, transport, owner): (&AgentId, &str, &Owner),
        row: &InterruptRow,
        address: &str,
    ) -> Result<Option<Identity>, AppError> {
        let people = self.inner.network_people.iter();
        let mut here = people.filter(|p| p.agent == *agent && p.transport == transport);
        let known = here.find(|person| person.address == address);
        let of = Partition {
            tenant: row.tenant.clone(),
            workspace: row.workspace.clone(),
        };
        let reason = match known {
            None => "no_principal",
            Some(person) => {
                let scope = Scope::ApprovalsRespond;
                let (keys, now) = (&self.inner.keyring, self.now());
                let found = keys.identity_of(&person.principal, scope, &of, now).await?;
                if let Some(identity) = found {
                    let place = identity_of(agent, transport, owner);
                    return Ok(Some(Identity {
                        key_id: Arc::clone(&place.key_id),
                        ..identity
                    }));
                }
                "no_key"
            }
        };
        let details = json!({
            "interruptId": row.interrupt,
            "transport": format!("{agent}.{transport}"),
            "address": address,
            "principal": known.map(|person| &person.principal),
            "reason": reason,
        });
        let details = match details {
            Value::Object(fields) => fields,
            _ => Object::new(),
        };
        let runtime = self.runtime_for(&identity_of(agent, transport, owner));
        let target = row.stream.as_str();
        runtime
            .record_audit_entry(Some(&row.tenant), DENIED, target, details)
            .await?;
        Ok(None)
    }

    /// What is shown of a decision about a question that is no escalation: how it is now, and by whom.
    async fn question_outcome(
        &self,
        row: &InterruptRow,
        decided: Result<(), AppError>,
    ) -> Result<Outcome, AppError> {
        let refusal = match decided {
            Ok(()) => None,
            Err(error) if error.is_fault() => return Err(error),
            Err(AppError::MayNotDecide { .. } | AppError::AdminDenied(_)) => {
                return Ok((NOT_ALLOWED.to_owned(), false));
            }
            Err(AppError::ArtifactChanged { .. }) => return Ok((CHANGED.to_owned(), false)),
            Err(error) => Some(error),
        };
        let now = self.runtime().question(&row.tenant, &row.interrupt).await?;
        let Some(row) = now else {
            return Ok((NO_QUESTION.to_owned(), true));
        };
        let question = row.question()?;
        let Some(outcome) = &row.closed else {
            let votes = question.votes.iter();
            let given = votes.filter(|vote| vote.action != "reject").count();
            let needed = question.data["requiredApprovals"].as_u64().unwrap_or(1);
            return Ok(match refusal {
                Some(error) => (format!("Not decided: {error}."), false),
                None => (format!("{given} of {needed} approvals."), false),
            });
        };
        let by = question.decided_by.as_deref();
        Ok((outcome_text(outcome, by, refusal.is_none()), true))
    }
}

fn outcome_text(outcome: &str, by: Option<&str>, is_new: bool) -> String {
    match (outcome, by) {
        ("accepted", Some(by)) if is_new => format!("Approved by {by}."),
        ("rejected", Some(by)) if is_new => format!("Rejected by {by}."),
        (outcome, Some(by)) => format!("Already {outcome} by {by}."),
        (outcome, None) => format!("The question is {outcome}."),
    }
}

/// The same for an escalation. A fault is none: the network is told to try again.
fn escalation_outcome(decided: Result<EscalationFound, AppError>) -> Result<Outcome, AppError> {
    Ok(match decided {
        Ok(found) => {
            let record = found.record;
            match (&record.resolution, record.status) {
                (Some(done), _) => {
                    let outcome = if done.approved {
                        "accepted"
                    } else {
                        "rejected"
                    };
                    (outcome_text(outcome, Some(&done.resolved_by), true), true)
                }
                (None, EscalationStatus::Open) => {
                    let given = record.votes.len();
                    let needed = record.required_approvals;
                    (format!("{given} of {needed} approvals."), false)
                }
                (None, status) => (format!("The question is {}.", status.as_str()), true),
            }
        }
        Err(AppError::AdminDenied(_)) => (NOT_ALLOWED.to_owned(), false),
        Err(AppError::SessionRefused(SessionRefusal::NotAnApprover)) => {
            (NOT_ALLOWED.to_owned(), false)
        }
        Err(AppError::SessionRefused(SessionRefusal::AlreadyResolved(closed))) => {
            let ClosedEscalation {
                decided_by,
                outcome,
                ..
            } = *closed;
            (outcome_text(outcome, decided_by.as_deref(), false), true)
        }
        Err(AppError::SessionRefused(SessionRefusal::Ended)) => {
            ("The conversation has ended.".to_owned(), true)
        }
        Err(error) if error.is_fault() => return Err(error),
        Err(error) => (format!("Not decided: {error}."), false),
    })
}
