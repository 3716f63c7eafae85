//! A person without permission tried to decide an interrupt. The denial is recorded as an event;
//! the interrupt stays open.

use crate::run::draft::DecisionDraft;
use crate::run::questions::open_question;
use crate::run::refusal::Refusal;
use tandem_record::{Denial, Event, InterruptId, NodeId, Principal, Reply};

/// Maximum number of recorded denials per interrupt, so that repeated attempts do not fill the log.
const MAX_RECORDED_DENIALS: u32 = 32;

pub(super) fn deny(
    draft: &mut DecisionDraft<'_>,
    node: &NodeId,
    interrupt: Option<&InterruptId>,
    by: Option<Principal>,
    why: Denial,
) -> Result<Reply, Refusal> {
    let ix = open_question(draft, node, interrupt)?;
    let open = draft.run.open_interrupt(ix);
    let open = open.expect("open_question found it");
    if open.denials < MAX_RECORDED_DENIALS {
        let event = Event::DecisionDenied {
            node: node.clone(),
            interrupt: open.interrupt.id.clone(),
            by: by.clone(),
            why,
        };
        let cause = draft.run.node(ix).last;
        draft.emit(event, cause);
    }
    Ok(Reply::Denied { by, why })
}
