//! Host-wide settings, and the readiness check.

use crate::Store;
use std::sync::Arc;

pub async fn set_and_get(store: Arc<dyn Store>) {
    assert_eq!(store.get("name").await.unwrap(), None);
    store.set("name", "one").await.unwrap();
    store.set("name", "two").await.unwrap();
    store.set("other", "").await.unwrap();
    assert_eq!(store.get("name").await.unwrap().as_deref(), Some("two"));
    assert_eq!(store.get("other").await.unwrap().as_deref(), Some(""));
}

pub async fn set_if_absent_has_one_winner(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mine = format!("value-{n}");
                store.set_if_absent("key", &mine).await.unwrap()
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("the task ends"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "everyone gets the same value");
    assert_eq!(store.get("key").await.unwrap().as_ref(), answers.first());
}

pub async fn ping_answers(store: Arc<dyn Store>) {
    store.ping().await.unwrap();
    store.ping().await.unwrap();
}
