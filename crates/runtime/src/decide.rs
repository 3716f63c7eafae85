//! Deciding a question: whether somebody may is judged on the very state the answer meets, so that
//! a question handed on to others in between is never decided by the wrong people. What they saw is
//! compared on the same state.

use crate::questions;
use crate::runtime::Runtime;
use crate::submit::{IdempotencyRequest, SubmitError};
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::run::Run;
use tandem_record::{
    Command, DeciderSnapshot, DecisionAuthorization, DecisionPolicy, Denial, InterruptId, NodeId,
    Partition, Principal, Reply, RunId,
};

/// Access control for one caller: whether they may decide under a policy, as the voter that the answer names
/// if it names one.
pub type AccessCheck =
    Arc<dyn Fn(&DecisionPolicy, Option<&str>) -> DecisionAuthorization + Send + Sync>;

/// An answer that a caller proposes, before authorization.
#[derive(Clone)]
pub struct ProposedAnswer {
    pub node: NodeId,
    /// The id of the question, if the caller named one.
    pub interrupt: Option<InterruptId>,
    pub value: Value,
    /// Digest of what the decider saw; a mismatch is refused.
    pub digest: Option<String>,
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

fn command_for(
    run: &Run,
    proposal: &ProposedAnswer,
    access_check: &AccessCheck,
) -> Result<Command, SubmitError> {
    let policy = run.decision_policy(&proposal.node, proposal.interrupt.as_ref());
    let mut made_up = false;
    let verdict = match policy {
        Some(policy) => {
            let interrupt = proposal.interrupt.as_ref();
            let claimed = |key| run.claimed_name(&proposal.node, interrupt, &proposal.value, key);
            let decider = claimed("decidedBy");
            made_up =
                decider.is_some_and(|name| is_other_person(access_check(&policy, Some(name))));
            access_check(&policy, claimed("voter"))
        }
        // No such question is open: the engine refuses with the reason.
        None => DecisionAuthorization::Granted(DeciderSnapshot::default()),
    };
    let node = proposal.node.clone();
    let interrupt = proposal.interrupt.clone();
    let by = proposal.by.clone();
    match verdict {
        DecisionAuthorization::Granted(decider) => {
            check_digest(run, proposal)?;
            let mut value = proposal.value.clone();
            if let Some(fields) = value.as_object_mut().filter(|_| made_up) {
                fields.remove("decidedBy");
            }
            Ok(Command::ResolveInterrupt {
                node,
                interrupt,
                value,
                by_link: by.is_none(),
                by,
                decider,
            })
        }
        DecisionAuthorization::Denied(why) => Ok(Command::DenyDecision {
            node,
            interrupt,
            by,
            why,
        }),
    }
}

/// The key or link of one person decides as that person: a decider it names otherwise is not recorded.
fn is_other_person(verdict: DecisionAuthorization) -> bool {
    matches!(verdict, DecisionAuthorization::Denied(Denial::OtherVoter))
}

/// Refuses a decision about something else than what is shown now.
fn check_digest(run: &Run, proposal: &ProposedAnswer) -> Result<(), SubmitError> {
    let shown = run.shown_data(&proposal.node, proposal.interrupt.as_ref());
    let (Some(seen), Some(shown)) = (&proposal.digest, shown) else {
        return Ok(());
    };
    let digest = questions::digest(shown);
    if *seen == digest {
        Ok(())
    } else {
        Err(SubmitError::ArtifactChanged { digest })
    }
}
