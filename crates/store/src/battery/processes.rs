//! Several processes on one store: changes raise epochs, and a task has one holder.

use super::sample::{NOW, later, must, partition};
use crate::{
    CachedData, Commit, CommitGuard, DefinitionRecord, PeopleChange, RegistryChange, Store,
    WebhookChange,
};
use std::sync::Arc;
use tandem_record::{DefinitionHash, TenantId, WebhookId, WorkflowId};

async fn epochs(store: &Arc<dyn Store>) -> [u64; 2] {
    let registry = store.epoch(CachedData::Registry).await.expect("reads work");
    let hooks = store
        .epoch(CachedData::Subscriptions)
        .await
        .expect("reads work");
    [registry, hooks]
}

fn registration() -> Commit {
    Commit {
        registry: vec![RegistryChange::Register {
            owner: None,
            definition: DefinitionRecord {
                hash: DefinitionHash::new("d1"),
                workflow: WorkflowId::new("flow"),
                document: "{}".into(),
            },
            at: NOW,
        }],
        ..Commit::default()
    }
}

pub async fn epoch_is_raised_by_its_own_changes_only(store: Arc<dyn Store>) {
    assert_eq!(epochs(&store).await, [0, 0]);
    must(&store, registration()).await;
    assert_eq!(epochs(&store).await, [1, 0]);
    let subscribe = WebhookChange::Put {
        webhook: WebhookId::new("wh"),
        tenant: TenantId::new("t1"),
        body: "{}".into(),
    };
    let health = WebhookChange::Health {
        webhook: WebhookId::new("wh"),
        health: "{}".into(),
    };
    for change in [subscribe, health] {
        let commit = Commit {
            webhooks: vec![change],
            ..Commit::default()
        };
        must(&store, commit).await;
    }
    assert_eq!(epochs(&store).await, [1, 2]);
    let people = Commit {
        people: vec![PeopleChange::DropGroup {
            tenant: TenantId::new("t1"),
            name: "leads".into(),
        }],
        ..Commit::default()
    };
    must(&store, people).await;
    assert_eq!(epochs(&store).await, [1, 2]);
}

pub async fn rejected_commit_raises_no_epoch(store: Arc<dyn Store>) {
    let rejected = Commit {
        guards: vec![CommitGuard::RegisteredAs {
            owner: Some(partition("t1")),
            workflow: WorkflowId::new("flow"),
            hash: Some(DefinitionHash::new("other")),
        }],
        ..registration()
    };
    super::sample::conflict(&store, rejected).await;
    assert_eq!(epochs(&store).await, [0, 0]);
}

pub async fn task_has_one_holder_until_its_lease_ends(store: Arc<dyn Store>) {
    let hold = |task, owner, now, until| {
        let store = Arc::clone(&store);
        async move { store.hold_task(task, owner, now, until).await.unwrap() }
    };
    assert!(hold("purge", "me", NOW, later(60)).await);
    assert!(!hold("purge", "other", later(59), later(99)).await);
    assert!(hold("seal", "other", NOW, later(60)).await, "another task");
    assert!(hold("purge", "me", later(50), later(110)).await, "extended");
    assert!(!hold("purge", "other", later(109), later(200)).await);
    assert!(hold("purge", "other", later(110), later(200)).await);
    assert!(!hold("purge", "me", later(111), later(300)).await);
}
