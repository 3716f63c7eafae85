//! Deciding a question: whether somebody may is judged on the very state the answer meets, so that
//! a question handed on to others in between is never decided by the wrong people.

use crate::runtime::Runtime;
use crate::submit::{Answering, SubmitError};
use serde_json::Value;
use std::sync::Arc;
use tandem_engine::run::Run;
use tandem_record::{
    Command, DecisionPolicy, InterruptId, NodeId, Partition, Principal, Reply, RunId, Standing,
    Verdict,
};

/// Access control, with what it knows of the one who decides.
pub type Judge = Arc<dyn Fn(&DecisionPolicy) -> Verdict + Send + Sync>;

/// An answer somebody wants to give.
#[derive(Clone)]
pub struct Proposal {
    pub node: NodeId,
    /// The very question meant.
    pub interrupt: Option<InterruptId>,
    pub value: Value,
    /// `None` for a signed link.
    pub by: Option<Principal>,
}

impl Runtime {
    /// Answers a question if the judge lets them; otherwise the attempt is recorded and refused as
    /// [`SubmitError::Denied`].
    pub async fn decide(
        &self,
        caller: &Partition,
        run: &RunId,
        proposal: Proposal,
        judge: Judge,
        answering: Option<Answering>,
    ) -> Result<Reply, SubmitError> {
        let wish = |run: &Run| judged(run, &proposal, &judge);
        match self.submit_with(caller, run, &wish, answering).await? {
            Reply::Denied { by, why } => Err(SubmitError::Denied { by, why }),
            reply => Ok(reply),
        }
    }
}

fn judged(run: &Run, proposal: &Proposal, judge: &Judge) -> Command {
    let policy = run.decision_policy(&proposal.node, proposal.interrupt.as_ref());
    let verdict = match policy {
        Some(policy) => judge(&policy),
        // No such question is open: the engine says what became of it.
        None => Verdict::Granted(Standing::default()),
    };
    let node = proposal.node.clone();
    let interrupt = proposal.interrupt.clone();
    let by = proposal.by.clone();
    match verdict {
        Verdict::Granted(standing) => Command::ResolveInterrupt {
            node,
            interrupt,
            value: proposal.value.clone(),
            by_link: by.is_none(),
            by,
            standing,
        },
        Verdict::Denied(why) => Command::DenyDecision {
            node,
            interrupt,
            by,
            why,
        },
    }
}
