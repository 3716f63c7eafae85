//! The key that seals the audit log: the operator's, or one generated once and stored. A log has
//! one key forever, so that one public key verifies all of it.

use super::open::store_open_failure;
use crate::config::Hidden;
use crate::failure::Failure;
use tandem_access::fresh_link_secret as fresh_seed;
use tandem_runtime::audit::AuditKey;
use tandem_store::SettingsStore;

const PRIVATE: &str = "audit.key";
const PUBLIC: &str = "audit.public-key";

pub(super) async fn obtain(
    given: Option<&Hidden>,
    store: &dyn SettingsStore,
) -> Result<AuditKey, Failure> {
    let stored = store.get(PRIVATE).await.map_err(store_open_failure)?;
    let key = match (given, stored) {
        (Some(given), _) => AuditKey::from_stored(&given.0).ok_or_else(|| {
            Failure::new(
                "TANDEM_AUDIT_KEY is not a key: 32 bytes as base64url without padding",
                "`openssl rand 32 | basenc --base64url | tr -d =` makes one.",
            )
        })?,
        (None, Some(saved)) => usable(&saved)?,
        (None, None) => {
            let sealed_with = store.get(PUBLIC).await.map_err(store_open_failure)?;
            if sealed_with.is_some() {
                return Err(Failure::new(
                    "the audit log is sealed with a key that is not in the store",
                    "Set TANDEM_AUDIT_KEY as it was when the log was begun.",
                ));
            }
            let saved = store.set_if_absent(PRIVATE, &fresh_seed()).await;
            usable(&saved.map_err(store_open_failure)?)?
        }
    };
    let public = key.public().to_spki();
    let sealed_with = store.set_if_absent(PUBLIC, &public).await;
    if sealed_with.map_err(store_open_failure)? != public {
        return Err(Failure::new(
            "TANDEM_AUDIT_KEY is not the key the audit log was begun with",
            "Give that one, or leave it out if the store keeps the key.",
        ));
    }
    Ok(key)
}

fn usable(saved: &str) -> Result<AuditKey, Failure> {
    AuditKey::from_stored(saved).ok_or_else(|| {
        Failure::new(
            "the stored key of the audit log is unusable",
            "Restore the store from a backup.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::memory::MemoryStore;

    fn own_key() -> Hidden {
        Hidden("A".repeat(43))
    }

    async fn spki(given: Option<&Hidden>, store: &MemoryStore) -> Result<String, String> {
        let key = obtain(given, store).await;
        key.map(|key| key.public().to_spki())
            .map_err(|f| f.to_string())
    }

    #[tokio::test]
    async fn audit_log_has_one_key_for_life() {
        let (saved, given) = (MemoryStore::new(), MemoryStore::new());
        let made = spki(None, &saved).await.unwrap();
        assert_eq!(spki(None, &saved).await.unwrap(), made, "made once");
        let refused = spki(Some(&own_key()), &saved).await.unwrap_err();
        assert!(refused.contains("not the key"), "{refused}");

        let own = spki(Some(&own_key()), &given).await.unwrap();
        assert_ne!(own, made);
        assert_eq!(
            given.get(PRIVATE).await.unwrap(),
            None,
            "it stays the operator's"
        );
        assert_eq!(spki(Some(&own_key()), &given).await.unwrap(), own);
        let refused = spki(None, &given).await.unwrap_err();
        assert!(refused.contains("not in the store"), "{refused}");
        let refused = spki(Some(&Hidden("short".into())), &given)
            .await
            .unwrap_err();
        assert!(
            refused.contains("32 bytes") && !refused.contains("short"),
            "{refused}"
        );
    }
}
