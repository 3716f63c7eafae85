//! Signed links in notices: each shows one open escalation to whoever has it, and decides nothing
//! ([ADR 0007](../../../../docs/adr/0007-questions-and-links.md)).

use tandem_access::{LinkClaims, LinkSigner};
use tandem_record::{InterruptId, NodeId, RunId, Timestamp};
use tandem_runtime::conversation::EscalationNotice;

/// How long a link to an escalation without a deadline can be used.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

pub struct NoticeLinks {
    signer: LinkSigner,
    /// The public address of this host.
    base: String,
}

impl NoticeLinks {
    pub fn new(signer: LinkSigner, base: &str) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        Self { signer, base }
    }

    /// A link to the question of an escalation: that of the flow that waits for it, or that of its session. `None`
    /// while a flow that opened it does not wait.
    pub(crate) fn url(&self, notice: &EscalationNotice<'_>, now: Timestamp) -> Option<String> {
        let escalation = notice.escalation;
        if escalation.is_takeover() {
            // It is no question that a link could show.
            return None;
        }
        let (run, node, interrupt) = match (&escalation.flow_run_id, &escalation.interrupt_id) {
            (Some(run), Some(interrupt)) => {
                let step = interrupt.as_str().rsplit(':').next()?;
                (run.clone(), format!("s{step}"), interrupt.clone())
            }
            (Some(_), None) => return None,
            (None, _) => {
                let session = RunId::from(notice.session.as_str());
                let interrupt = InterruptId::from(escalation.id.as_str());
                (session, "escalation".to_owned(), interrupt)
            }
        };
        let end = now.plus_ms(LONGEST_MS);
        let expires_at = escalation
            .deadline
            .map_or(end, |deadline| deadline.min(end));
        let node = NodeId::from(node);
        let claims = LinkClaims::that_shows(run, node, interrupt, expires_at);
        let token = self.signer.sign(&claims);
        Some(format!("{}/v1/interrupts/{token}", self.base))
    }
}
