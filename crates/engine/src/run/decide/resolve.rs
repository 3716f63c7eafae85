//! Answers to interrupts. One decision closes an interrupt; every later one is refused with the
//! name of the decider. An invalid answer leaves the interrupt open.

use crate::run::draft::DecisionDraft;
use crate::run::questions::{
    Answer, expired_question, invalid, is_late_exchange, open_question, resolve_question,
};
use crate::run::refusal::Refusal;
use tandem_record::{InterruptId, NodeId, Reply};

pub(super) fn resolve(
    draft: &mut DecisionDraft<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
    answer: Answer,
) -> Result<Reply, Refusal> {
    let ix = match open_question(draft, node, interrupt) {
        Err(Refusal::AlreadyResolved(_)) if is_late_exchange(draft, node, &answer.value) => {
            return invalid("/operation", "the conversation is closed");
        }
        found => found?,
    };
    if let Some(closed) = expired_question(draft, ix) {
        return Err(Refusal::AlreadyResolved(closed));
    }
    let open = draft.run.open_interrupt(ix);
    let interrupt = &open.expect("open_question found it").interrupt;
    let (id, kind) = (interrupt.id.clone(), interrupt.kind.clone());
    let closed = resolve_question(draft, ix, answer)?;
    draft.advance();
    Ok(Reply::Resolved {
        interrupt: id,
        node: node.clone(),
        kind,
        outcome: closed.outcome,
        votes: closed.votes,
        status: draft.run.status(),
    })
}
