//! Behaviour of the memory store only; the battery covers everything else.

use super::MemoryStore;
use crate::{Maintenance, SettingsStore};

#[tokio::test]
async fn a_reopened_store_finds_everything_and_is_open() {
    let store = MemoryStore::new();
    store.set("name", "value").await.unwrap();
    let clone = store.clone();
    store.close().await;
    assert_eq!(clone.get("name").await.unwrap_err().code, "closed");
    let reopened = clone.reopen();
    assert_eq!(
        reopened.get("name").await.unwrap().as_deref(),
        Some("value")
    );
}
