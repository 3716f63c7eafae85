//! Answers to questions of flows that come by the routes of runs and of the inbox. They are the same
//! decisions as those by the routes of conversations, by the same rights (Z-203).

use super::manage::{ResolveEscalation, ResolveTarget};
use super::rights::AdminCall;
use crate::app::App;
use crate::decide::{AcceptedAnswer, AnswerTarget, SubmittedAnswer};
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use serde_json::Value;
use tandem_access::Scope;
use tandem_record::conversation::{FlowPause, WaitFor};
use tandem_record::{EscalationId, InterruptId, NodeId, RunId};
use tandem_runtime::Refusal;
use tandem_runtime::conversation::FlowRun;

/// A question of a flow run.
pub struct FlowQuestion {
    run: RunId,
    interrupt: InterruptId,
    node: NodeId,
}

impl App {
    /// The question of a flow that an answer is for; `None` when it belongs to a workflow run.
    pub async fn flow_question(
        &self,
        call: &AdminCall<'_>,
        target: &AnswerTarget,
    ) -> Result<Option<FlowQuestion>, AppError> {
        call.caller.require_scope(Scope::ApprovalsRespond)?;
        let (run, node, interrupt) = match target {
            AnswerTarget::Node { run, node } if run.is_flow_run() => {
                self.find_run(call.caller, run).await?;
                (run.clone(), node.clone(), None)
            }
            AnswerTarget::Node { .. } => return Ok(None),
            AnswerTarget::Interrupt(id) => {
                let row = self.find_interrupt(call.caller, id).await?;
                let found = row.run_and_node();
                let found = found.filter(|(run, _)| run.is_flow_run());
                let Some((run, node)) = found else {
                    return Ok(None);
                };
                (run, node, Some(id.clone()))
            }
        };
        let flow_run = self.flow_run(&run).await?;
        let open = flow_run.open_questions();
        let at_node = open.iter().find(|open| open.node == node);
        let interrupt = interrupt.or_else(|| at_node.map(|open| open.interrupt.id.clone()));
        let interrupt = interrupt.ok_or(AppError::NotFound(ResourceKind::Interrupt))?;
        Ok(Some(FlowQuestion {
            run,
            interrupt,
            node,
        }))
    }

    /// Answers a question of a flow.
    pub async fn answer_flow_question(
        &self,
        call: &AdminCall<'_>,
        question: FlowQuestion,
        answer: SubmittedAnswer,
        idempotency: Idempotency<AcceptedAnswer>,
    ) -> Result<Completion<AcceptedAnswer>, AppError> {
        let FlowQuestion {
            run,
            interrupt,
            node,
        } = question;
        let flow_run = self.flow_run(&run).await?;
        let open = flow_run.pause().filter(|p| *p.interrupt_id() == interrupt);
        let escalation = match open {
            Some(FlowPause::Wait {
                wait_for: WaitFor::AdminResolution,
                escalation_id: Some(escalation),
                ..
            }) => escalation.clone(),
            // Nobody may answer for the user: a message of the user does.
            Some(_) => return Err(AppError::NotAnswerable),
            None => {
                let closed = flow_run.closed_question(&interrupt);
                let closed = closed.ok_or(AppError::NotFound(ResourceKind::Interrupt))?;
                return Err(Refusal::AlreadyResolved(closed.clone()).into());
            }
        };
        self.check_digest(call, &interrupt, answer.digest.as_deref())
            .await?;
        let decision = read_decision(&answer.value)?;
        let outcome = match decision.approved {
            true => "accepted",
            false => "rejected",
        };
        let target = ResolveTarget::Escalation(EscalationId::clone(&escalation));
        self.resolve(call, target, decision).await?;
        let accepted = AcceptedAnswer {
            status: self.flow_run(&run).await?.status(),
            run,
            interrupt,
            node,
            kind: "approval".to_owned(),
            outcome: Some(outcome.to_owned()),
            votes: Vec::new(),
        };
        self.complete(idempotency, accepted).await
    }

    async fn flow_run(&self, run: &RunId) -> Result<FlowRun, AppError> {
        let found = self.runtime().read_flow_run(run).await?;
        found.ok_or(AppError::NotFound(ResourceKind::Run))
    }

    /// Refuses a decision about something else than what is shown.
    async fn check_digest(
        &self,
        call: &AdminCall<'_>,
        interrupt: &InterruptId,
        seen: Option<&str>,
    ) -> Result<(), AppError> {
        let Some(seen) = seen else {
            return Ok(());
        };
        let row = self.find_interrupt(call.caller, interrupt).await?;
        let shown: Value = serde_json::from_str(&row.body).unwrap_or_default();
        match shown["digest"].as_str() {
            Some(digest) if digest != seen => Err(AppError::ArtifactChanged {
                digest: digest.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads the resume value of an approval.
fn read_decision(value: &Value) -> Result<ResolveEscalation, AppError> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let edited = value.get("editedArtifactData").cloned();
    let (approved, action_data) = match (value["action"].as_str(), edited) {
        (Some("accept"), _) => (true, None),
        (Some("reject"), _) => (false, None),
        (Some("edit-accept" | "edit"), Some(edited)) => (true, Some(edited)),
        (Some("edit-accept" | "edit"), None) => {
            return Err(AppError::invalid(
                "/resumeValue/editedArtifactData",
                "is needed",
            ));
        }
        _ => {
            let message = "must be accept, reject or edit-accept";
            return Err(AppError::invalid("/resumeValue/action", message));
        }
    };
    Ok(ResolveEscalation {
        approved,
        message: text("feedback"),
        action_data,
        resolved_by: text("decidedBy"),
    })
}
