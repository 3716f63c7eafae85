//! Signed links in notices: each shows one open question to whoever has it, and decides nothing
//! ([ADR 0007](../../../../docs/adr/0007-questions-and-links.md)).

use tandem_access::{LinkClaims, LinkSigner};
use tandem_record::Timestamp;
use tandem_runtime::conversation::NoticeContent;

/// How long a link to a question without a deadline can be used.
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

    /// A link to the question of a notice.
    pub(crate) fn url(&self, notice: &NoticeContent, now: Timestamp) -> Option<String> {
        let shown = notice.shown.clone()?;
        let end = now.plus_ms(LONGEST_MS);
        let expires_at = notice.deadline.map_or(end, |deadline| deadline.min(end));
        let (run, node) = (shown.run, shown.node);
        let claims = LinkClaims::that_shows(run, node, shown.interrupt, expires_at);
        let token = self.signer.sign(&claims);
        Some(format!("{}/v1/interrupts/{token}", self.base))
    }
}
