//! The key that seals the audit log: the operator's, or one made once and kept in the store. A log
//! has one key for life, so that one public key checks all of it.

use super::open::store_trouble;
use crate::config::Settings;
use crate::failure::Failure;
use tandem_access::fresh_link_secret as fresh_seed;
use tandem_runtime::audit::AuditKey;
use tandem_store::Settings as Kept;

const PRIVATE: &str = "audit.key";
const PUBLIC: &str = "audit.public-key";

pub(super) async fn obtain(settings: &Settings, store: &dyn Kept) -> anyhow::Result<AuditKey> {
    let stored = store.get(PRIVATE).await.map_err(store_trouble)?;
    let key = match (&settings.audit_key, stored) {
        (Some(given), _) => AuditKey::from_stored(&given.0).ok_or_else(|| {
            Failure::new(
                "TANDEM_AUDIT_KEY is not a key: 32 bytes as base64url without padding",
                "`openssl rand 32 | basenc --base64url | tr -d =` makes one.",
            )
        })?,
        (None, Some(kept)) => usable(&kept)?,
        (None, None) => {
            let known = store.get(PUBLIC).await.map_err(store_trouble)?;
            if known.is_some() {
                return Err(Failure::new(
                    "the audit log is sealed with a key that is not in the store",
                    "Set TANDEM_AUDIT_KEY as it was when the log was begun.",
                )
                .into());
            }
            let kept = store.set_if_absent(PRIVATE, &fresh_seed()).await;
            usable(&kept.map_err(store_trouble)?)?
        }
    };
    let public = key.public().to_spki();
    let known = store.set_if_absent(PUBLIC, &public).await;
    if known.map_err(store_trouble)? != public {
        return Err(Failure::new(
            "TANDEM_AUDIT_KEY is not the key the audit log was begun with",
            "Give that one, or leave it out if the store keeps the key.",
        )
        .into());
    }
    Ok(key)
}

fn usable(kept: &str) -> Result<AuditKey, Failure> {
    AuditKey::from_stored(kept).ok_or_else(|| {
        Failure::new(
            "the stored key of the audit log is unusable",
            "Restore the store from a backup.",
        )
    })
}
