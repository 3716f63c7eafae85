//! Deciding a question. Authorization is checked on the same state that the answer is applied to,
//! so that a question escalated to others in between is never decided by the wrong people.

use crate::runtime::Runtime;
use crate::submit::{IdempotencyRequest, SubmitError};
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::run::Run;
use tandem_record::{
    Command, DeciderSnapshot, DecisionAuthorization, DecisionPolicy, InterruptId, NodeId,
    Partition, Principal, Reply, RunId,
};

/// Access control for one caller: whether they may decide under a policy.
pub type AccessCheck = Arc<dyn Fn(&DecisionPolicy) -> DecisionAuthorization + Send + Sync>;

/// An answer that a caller proposes, before authorization.
#[derive(Clone)]
pub struct ProposedAnswer {
    pub node: NodeId,
    /// The id of the question, if the caller named one.
    pub interrupt: Option<InterruptId>,
    pub value: Value,
    /// `None` for a signed link.
    pub by: Option<Principal>,
}

impl Runtime {
    /// Answers a question if the access check grants it. Otherwise the attempt is recorded and
    /// refused as
    /// [`SubmitError::Denied`].
    pub async fn decide(
        &self,
        caller: &Partition,
        run: &RunId,
        proposal: ProposedAnswer,
        access_check: AccessCheck,
        idempotency: Option<IdempotencyRequest>,
    ) -> Result<Reply, SubmitError> {
        let make_command = |run: &Run| command_for(run, &proposal, &access_check);
        match self
            .submit_with(caller, run, &make_command, idempotency)
            .await?
        {
            Reply::Denied { by, why } => Err(SubmitError::Denied { by, why }),
            reply => Ok(reply),
        }
    }
}

fn command_for(run: &Run, proposal: &ProposedAnswer, access_check: &AccessCheck) -> Command {
    let policy = run.decision_policy(&proposal.node, proposal.interrupt.as_ref());
    let verdict = match policy {
        Some(policy) => access_check(&policy),
        // No such question is open: the engine refuses with the reason.
        None => DecisionAuthorization::Granted(DeciderSnapshot::default()),
    };
    let node = proposal.node.clone();
    let interrupt = proposal.interrupt.clone();
    let by = proposal.by.clone();
    match verdict {
        DecisionAuthorization::Granted(decider) => Command::ResolveInterrupt {
            node,
            interrupt,
            value: proposal.value.clone(),
            by_link: by.is_none(),
            by,
            decider,
        },
        DecisionAuthorization::Denied(why) => Command::DenyDecision {
            node,
            interrupt,
            by,
            why,
        },
    }
}
