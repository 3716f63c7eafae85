//! Documents are kept by content; an id is a tenant's own document or the shared one.

use super::sample::{NOW, append, commit, conflict, later, must};
use crate::{Commit, DefinitionRecord, Guard, RegistryChange, Store};
use std::sync::Arc;
use tandem_record::{DefinitionHash, StreamId, TenantId, Timestamp, WorkflowId};

fn register(tenant: Option<&str>, workflow: &str, hash: &str, at: Timestamp) -> RegistryChange {
    RegistryChange::Register {
        tenant: tenant.map(TenantId::new),
        definition: DefinitionRecord {
            hash: DefinitionHash::new(hash),
            workflow: WorkflowId::new(workflow),
            document: format!(r#"{{"content":"{hash}"}}"#).into(),
        },
        at,
    }
}

fn unregister(tenant: Option<&str>, workflow: &str) -> RegistryChange {
    RegistryChange::Unregister {
        tenant: tenant.map(TenantId::new),
        workflow: WorkflowId::new(workflow),
    }
}

fn registry(changes: impl IntoIterator<Item = RegistryChange>) -> Commit {
    Commit {
        registry: changes.into_iter().collect(),
        ..Commit::default()
    }
}

/// The hash an id means and whether it is shared.
async fn meaning(store: &Arc<dyn Store>, tenant: &str, flow: &str) -> Option<(String, bool)> {
    let found = store
        .registered(&TenantId::new(tenant), &WorkflowId::new(flow))
        .await
        .unwrap()?;
    let document = format!(r#"{{"content":"{}"}}"#, found.hash);
    assert_eq!(&*found.document, document, "the document is its hash's");
    Some((found.hash.to_string(), found.shared))
}

pub async fn a_tenant_shadows_the_shared_document(store: Arc<dyn Store>) {
    assert_eq!(meaning(&store, "t1", "flow").await, None);
    must(&store, registry([register(None, "flow", "d1", NOW)])).await;
    must(&store, registry([register(Some("t1"), "flow", "d2", NOW)])).await;
    let own = Some(("d2".to_owned(), false));
    let shared = Some(("d1".to_owned(), true));
    assert_eq!(meaning(&store, "t1", "flow").await, own);
    assert_eq!(meaning(&store, "t2", "flow").await, shared);
    must(&store, registry([unregister(Some("t1"), "flow")])).await;
    assert_eq!(meaning(&store, "t1", "flow").await, shared, "uncovered");
}

pub async fn a_registration_can_depend_on_what_the_id_meant(store: Arc<dyn Store>) {
    let guarded = |tenant: Option<&str>, hash: Option<&str>| Commit {
        guards: vec![Guard::Means {
            tenant: tenant.map(TenantId::new),
            workflow: WorkflowId::new("flow"),
            hash: hash.map(DefinitionHash::new),
        }],
        ..Commit::default()
    };
    must(&store, registry([register(None, "flow", "d1", NOW)])).await;
    // The shared document is not the tenant's own.
    must(&store, guarded(Some("t1"), None)).await;
    must(&store, guarded(None, Some("d1"))).await;
    conflict(&store, guarded(None, None)).await;
    let first = |hash: &str| Commit {
        registry: vec![register(Some("t1"), "flow", hash, NOW)],
        ..guarded(Some("t1"), None)
    };
    must(&store, first("d2")).await;
    conflict(&store, first("d3")).await;
    let own = Some(("d2".to_owned(), false));
    assert_eq!(
        meaning(&store, "t1", "flow").await,
        own,
        "nothing is written"
    );
    conflict(&store, guarded(Some("t1"), Some("d1"))).await;
    must(&store, guarded(Some("t1"), Some("d2"))).await;
    must(&store, registry([unregister(Some("t1"), "flow")])).await;
    must(&store, guarded(Some("t1"), None)).await;
}

pub async fn unregistering_keeps_pinned_content(store: Arc<dyn Store>) {
    must(&store, registry([register(Some("t1"), "flow", "d1", NOW)])).await;
    let changes = [unregister(Some("t1"), "flow"), unregister(None, "absent")];
    must(&store, registry(changes)).await;
    assert_eq!(meaning(&store, "t1", "flow").await, None);
    let document = store.definition(&DefinitionHash::new("d1")).await.unwrap();
    assert_eq!(document.as_deref(), Some(r#"{"content":"d1"}"#));
    let absent = store.definition(&DefinitionHash::new("d2")).await.unwrap();
    assert_eq!(absent, None);
}

pub async fn registering_again_moves_the_id(store: Arc<dyn Store>) {
    for (hash, at) in [("d1", 1), ("d2", 2), ("d1", 3)] {
        for tenant in [None, Some("t1")] {
            must(
                &store,
                registry([register(tenant, "flow", hash, later(at))]),
            )
            .await;
        }
        for (tenant, shared) in [("t1", false), ("t2", true)] {
            let expected = Some((hash.to_owned(), shared));
            assert_eq!(meaning(&store, tenant, "flow").await, expected);
        }
    }
    let found = store
        .registered(&"t1".into(), &"flow".into())
        .await
        .unwrap();
    assert_eq!(found.unwrap().registered_at, later(3));
    for hash in ["d1", "d2"] {
        let kept = store.definition(&DefinitionHash::new(hash)).await.unwrap();
        assert!(kept.is_some(), "{hash} stays readable");
    }
}

pub async fn lists_what_the_tenant_sees(store: Arc<dyn Store>) {
    let changes = [
        register(None, "zeta", "d1", NOW),
        register(None, "beta", "d2", NOW),
        register(Some("t1"), "alpha", "d3", NOW),
        register(Some("t1"), "beta", "d4", NOW),
        register(Some("t2"), "gamma", "d5", NOW),
    ];
    must(&store, registry(changes)).await;
    let listed = store.list_registered(&"t1".into()).await.unwrap();
    let seen: Vec<_> = listed
        .iter()
        .map(|r| (r.workflow.as_str(), r.hash.as_str(), r.shared))
        .collect();
    let expected = [
        ("alpha", "d3", false),
        ("beta", "d4", false),
        ("zeta", "d1", true),
    ];
    assert_eq!(seen, expected, "ascending, own before shared, once each");
    assert_eq!(&*listed[0].document, r#"{"content":"d3"}"#);
}

pub async fn registers_only_with_its_commit(store: Arc<dyn Store>) {
    let mut stale = commit([append(&StreamId::new("run:a"), Some(3), 1)]);
    stale.registry = vec![register(None, "flow", "d1", NOW)];
    conflict(&store, stale).await;
    assert_eq!(meaning(&store, "t1", "flow").await, None);
}
