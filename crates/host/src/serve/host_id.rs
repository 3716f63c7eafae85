//! The protocol name of this host if the operator sets none: generated once per installation and
//! stored. A backup and a full export contain it, because a restored or imported store is the same
//! installation.

use anyhow::Context as _;
use tandem_store::SettingsStore;

/// Name of the setting.
const NAME: &str = "host.id";

pub(super) async fn obtain<S: SettingsStore + ?Sized>(
    given: Option<&str>,
    store: &S,
) -> anyhow::Result<String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let random = uuid::Uuid::new_v4().simple().to_string();
    let fresh = format!("tandem-{}", &random[..8]);
    let saved = store.set_if_absent(NAME, &fresh).await;
    saved.context("this host's name cannot be kept in the store")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::memory::MemoryStore;

    async fn named(store: &MemoryStore) -> String {
        obtain(None, store).await.expect("a name")
    }

    #[tokio::test]
    async fn host_id_is_unique_per_installation_and_stable() {
        // R-0040-13 (half: the id is stable), R-0040-14 (half: the default)
        let (one, other) = (MemoryStore::new(), MemoryStore::new());
        let name = named(&one).await;
        let digits = name.strip_prefix("tandem-").expect("our prefix");
        assert!(digits.len() == 8 && digits.chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(named(&one.reopen()).await, name, "after a restart");
        assert_ne!(named(&other).await, name);
        let given = obtain(Some("https://desk.example/runtime"), &one).await;
        assert_eq!(given.expect("a name"), "https://desk.example/runtime");
        assert_eq!(named(&one).await, name, "its own name is kept for later");
    }
}
