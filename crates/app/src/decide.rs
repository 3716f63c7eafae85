//! Answering a question. Every entry point uses this path: by node, by id, by link, the console. The roles
//! and delegations of the caller are looked up now; `access` checks them against the state that the answer
//! meets.

use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::idempotency::{Completion, Idempotency};
use crate::links::DecidingLink;
use serde_json::Value;
use std::sync::Arc;
use tandem_access::{Decider, Identity, Scope, may_decide, may_decide_by_link};
use tandem_record::{
    Actor, DecisionAuthorization, DecisionPolicy, Denial, InterruptId, NodeId, Partition,
    Principal, Reply, RunId, RunStatus, SessionId, Vote,
};
use tandem_runtime::{AccessCheck, CommandOutcome, InterruptRow, ProposedAnswer, Refusal, Runtime};

/// Which question is answered.
pub enum AnswerTarget {
    /// The open question of a node.
    Node {
        run: RunId,
        node: NodeId,
    },
    Interrupt(InterruptId),
}

/// An answer as it was received.
pub struct SubmittedAnswer {
    pub value: Value,
    /// Digest of what the caller saw.
    pub digest: Option<String>,
    /// In whose place the caller wants to act.
    pub acting_for: Option<Principal>,
}

/// An accepted answer: the question is decided, or a vote is counted.
pub struct AcceptedAnswer {
    pub asked_by: AskedBy,
    pub interrupt: InterruptId,
    pub kind: String,
    /// `None` while votes are missing.
    pub outcome: Option<String>,
    pub votes: Vec<Vote>,
}

/// Who asked a question.
pub enum AskedBy {
    Run {
        run: RunId,
        node: NodeId,
        /// After the answer.
        status: RunStatus,
    },
    /// A conversation, without a flow.
    Session(SessionId),
}

impl AcceptedAnswer {
    fn from_reply(run: &RunId, reply: Reply) -> Self {
        let Reply::Resolved {
            interrupt,
            node,
            kind,
            outcome,
            votes,
            status,
        } = reply
        else {
            unreachable!("unexpected reply to an answer: {reply:?}");
        };
        let run = run.clone();
        Self {
            asked_by: AskedBy::Run { run, node, status },
            interrupt,
            kind,
            outcome,
            votes,
        }
    }
}

impl App {
    /// Answers a question for an authenticated caller.
    pub async fn decide(
        &self,
        caller: &Identity,
        target: AnswerTarget,
        answer: SubmittedAnswer,
        idempotency: Idempotency<AcceptedAnswer>,
    ) -> Result<Completion<AcceptedAnswer>, AppError> {
        caller.require_scope(Scope::ApprovalsRespond)?;
        let (run, node, interrupt) = match target {
            AnswerTarget::Node { run, node } => {
                self.find_run(caller, &run).await?;
                (run, node, None)
            }
            AnswerTarget::Interrupt(id) => {
                let row = self.find_interrupt(caller, &id).await?;
                let (run, node) = run_and_node(&row)?;
                // The question stays readable with its receipt when its run is past retention.
                self.find_run(caller, &run).await?;
                (run, node, Some(row.interrupt))
            }
        };
        let decider = self.decider(caller, answer.acting_for).await?;
        let proposal = ProposedAnswer {
            node,
            interrupt,
            value: answer.value,
            digest: answer.digest,
            by: Some(caller.principal.clone()),
        };
        let access_check: AccessCheck =
            Arc::new(move |policy, voter| may_decide(policy, &decider, voter));
        let runtime = self.runtime_for(caller);
        let proposed = (caller.partition(), run, proposal);
        self.propose(runtime, proposed, access_check, idempotency)
            .await
    }

    /// Answers a question for the holder of a signed link.
    pub async fn decide_by_link(
        &self,
        DecidingLink(linked): DecidingLink,
        answer: SubmittedAnswer,
        idempotency: Idempotency<AcceptedAnswer>,
    ) -> Result<Completion<AcceptedAnswer>, AppError> {
        if answer.acting_for.is_some() {
            return Err(AppError::invalid("/actingFor", "a link acts for nobody"));
        }
        // Conversations ask authenticated people only (Z-203).
        let is_of_flow = linked.row.run().is_some_and(|run| run.is_flow_run());
        if is_of_flow || linked.row.stream.session().is_some() {
            let why = Denial::LinkTooWeak;
            return Err(AppError::MayNotDecide { by: None, why });
        }
        let of = linked.partition();
        let (run, node) = run_and_node(&linked.row)?;
        let proposal = ProposedAnswer {
            node,
            interrupt: Some(linked.row.interrupt),
            value: answer.value,
            digest: answer.digest,
            by: None,
        };
        let runtime = self.runtime().acting_as(Actor::link());
        let issued_to = linked.claims.issued_to;
        let access_check: AccessCheck =
            Arc::new(move |policy, voter| may_decide_by_link(policy, issued_to.as_ref(), voter));
        let proposed = (of, run, proposal);
        let decided = self.propose(runtime, proposed, access_check, idempotency);
        match decided.await {
            // The interrupt was closed with its run: the link counts as used.
            Err(AppError::Refused(Refusal::InterruptGone)) => Err(AppError::AlreadyResolved {
                outcome: "cancelled".to_owned(),
                by: None,
                at: self.now(),
            }),
            decided => decided,
        }
    }

    async fn propose(
        &self,
        runtime: Runtime,
        (of, run, proposal): (Partition, RunId, ProposedAnswer),
        access_check: AccessCheck,
        idempotency: Idempotency<AcceptedAnswer>,
    ) -> Result<Completion<AcceptedAnswer>, AppError> {
        let stored = idempotency.for_command(|outcome| match outcome {
            // Not stored: the caller may be permitted later.
            CommandOutcome::Replied(_, Reply::Denied { .. }) => None,
            CommandOutcome::Replied(run, reply) => {
                Some(Ok(AcceptedAnswer::from_reply(run, (*reply).clone())))
            }
            // Entry points render this refusal differently, and it stays true without being stored.
            CommandOutcome::Refused(Refusal::InterruptGone) => None,
            CommandOutcome::Refused(refusal) => Some(Err((*refusal).clone())),
            CommandOutcome::Created(_) => None,
        });
        let decided = Box::pin(async move {
            let reply = runtime.decide(&of, &run, proposal, access_check, stored);
            Ok(AcceptedAnswer::from_reply(&run, reply.await?))
        });
        self.execute(idempotency, decided).await
    }

    /// Why a caller may not answer under a policy; `None` if they may. The same rules check the answer.
    pub async fn denial_to_decide(
        &self,
        caller: &Identity,
        policy: &DecisionPolicy,
    ) -> Result<Option<Denial>, AppError> {
        let decider = self.decider(caller, None).await?;
        Ok(match may_decide(policy, &decider, None) {
            DecisionAuthorization::Granted(_) => None,
            DecisionAuthorization::Denied(why) => Some(why),
        })
    }

    async fn decider(
        &self,
        caller: &Identity,
        acting_for: Option<Principal>,
    ) -> Result<Decider, AppError> {
        let store = self.runtime().store();
        let groups = &self.inner.groups;
        Ok(Decider::look_up(&**store, groups, caller, acting_for, self.now()).await?)
    }
}

/// The run and the node that a question belongs to.
fn run_and_node(row: &InterruptRow) -> Result<(RunId, NodeId), AppError> {
    let found = row.run_and_node();
    found.ok_or(AppError::NotFound(ResourceKind::Interrupt))
}
