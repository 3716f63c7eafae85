//! The log as lines of JSON that can be checked without the server. An entry of another tenant is
//! represented by its hash alone: enough to check the chain and the checkpoints.
//!
//! ```text
//! {"audit":{"format":"tandem-audit-1","publicKey":"…"}}
//! {"entry":{…}}  or  {"withheld":{"hash":"…","seq":2}}
//! {"checkpoint":{…}}                    after the last entry it seals
//! {"end":{"entries":2,"hash":"…"}}
//! ```

use super::AuditHead;
use super::draft::Entry;
use super::hash::Hash;
use super::key::PublicKey;
use super::verify::{CheckpointCursor, EntryCursor};
use crate::{Audit, Fault};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use tandem_record::TenantId;

pub(super) const FORMAT: &str = "tandem-audit-1";
/// Entries in one chunk.
const CHUNK: usize = 256;

/// A running export. Holds one page of it, never all of it.
pub struct Export {
    store: Arc<dyn Audit>,
    tenant: TenantId,
    head: Option<AuditHead>,
    rows: EntryCursor,
    seals: CheckpointCursor,
    title: Option<String>,
    ended: bool,
}

impl Export {
    pub(super) fn new(
        store: Arc<dyn Audit>,
        key: PublicKey,
        tenant: &TenantId,
        head: Option<AuditHead>,
    ) -> Self {
        let title = json!({"audit": {"format": FORMAT, "publicKey": key.to_spki()}});
        Self {
            store,
            tenant: tenant.clone(),
            rows: EntryCursor::after(0),
            seals: CheckpointCursor::after(0, head.map_or(0, |head| head.seq)),
            head,
            title: Some(title.to_string()),
            ended: false,
        }
    }

    /// The next lines, each with its line end; `None` after the last.
    pub async fn chunk(&mut self) -> Result<Option<String>, Fault> {
        if self.ended {
            return Ok(None);
        }
        let mut lines = String::new();
        if let Some(title) = self.title.take() {
            line(&mut lines, &title);
        }
        let last = self.head.map_or(0, |head| head.seq);
        for _ in 0..CHUNK {
            let row = self.rows.next(&*self.store).await?;
            let Some(row) = row.filter(|row| row.seq <= last) else {
                let hash = self.head.map(|head| head.hash.to_string());
                let end = json!({"end": {"entries": last, "hash": hash}});
                line(&mut lines, &end.to_string());
                self.ended = true;
                break;
            };
            // An unreadable entry is exported unchanged, so that the damage is visible.
            let entry: Option<Entry> = serde_json::from_slice(&row.body).ok();
            let of_another = entry
                .and_then(|entry| entry.tenant)
                .is_some_and(|tenant| tenant != self.tenant.as_str());
            if of_another {
                let hash = Hash::of(&row.body).to_string();
                let withheld = json!({"withheld": {"hash": hash, "seq": row.seq}});
                line(&mut lines, &withheld.to_string());
            } else {
                let body = String::from_utf8_lossy(&row.body);
                line(&mut lines, &format!(r#"{{"entry":{body}}}"#));
            }
            if let Some(seal) = self.seals.at(&*self.store, row.seq).await? {
                self.seals.passed.clear();
                line(&mut lines, &json!({"checkpoint": seal}).to_string());
            }
        }
        Ok(Some(lines))
    }
}

fn line(lines: &mut String, text: &str) {
    let _ = writeln!(lines, "{text}");
}
