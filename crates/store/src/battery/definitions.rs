//! Documents are stored by content; an id stands for the document of a workspace, of a tenant, or
//! the shared one.

use super::sample::{NOW, append, commit, conflict, later, must, partition};
use crate::{
    CachedData, Commit, CommitGuard, DefinitionRecord, DocumentRecord, RegisteredWorkflow,
    RegistryChange, Store,
};
use std::sync::Arc;
use tandem_record::{DefinitionHash, StreamId, Timestamp, WorkflowId};

fn register(owner: Option<&str>, workflow: &str, hash: &str, at: Timestamp) -> RegistryChange {
    RegistryChange::Register {
        owner: owner.map(partition),
        definition: DefinitionRecord {
            hash: DefinitionHash::new(hash),
            workflow: WorkflowId::new(workflow),
            document: format!(r#"{{"content":"{hash}"}}"#).into(),
        },
        at,
    }
}

fn unregister(owner: Option<&str>, workflow: &str) -> RegistryChange {
    RegistryChange::Unregister {
        owner: owner.map(partition),
        workflow: WorkflowId::new(workflow),
    }
}

fn registry(changes: impl IntoIterator<Item = RegistryChange>) -> Commit {
    Commit {
        registry: changes.into_iter().collect(),
        ..Commit::default()
    }
}

/// The hash an id stands for, and whether it is shared.
async fn registered_as(store: &Arc<dyn Store>, owner: &str, flow: &str) -> Option<(String, bool)> {
    let found = store
        .registered(&partition(owner), &WorkflowId::new(flow))
        .await
        .unwrap()?;
    let document = format!(r#"{{"content":"{}"}}"#, found.hash);
    assert_eq!(&*found.document, document, "the document is its hash's");
    Some((found.hash.to_string(), found.shared))
}

pub async fn tenant_definition_overrides_the_shared_one(store: Arc<dyn Store>) {
    assert_eq!(registered_as(&store, "t1", "flow").await, None);
    must(&store, registry([register(None, "flow", "d1", NOW)])).await;
    must(&store, registry([register(Some("t1"), "flow", "d2", NOW)])).await;
    let own = Some(("d2".to_owned(), false));
    let shared = Some(("d1".to_owned(), true));
    assert_eq!(registered_as(&store, "t1", "flow").await, own);
    assert_eq!(registered_as(&store, "t2", "flow").await, shared);
    must(&store, registry([unregister(Some("t1"), "flow")])).await;
    assert_eq!(
        registered_as(&store, "t1", "flow").await,
        shared,
        "uncovered"
    );
}

pub async fn workspace_definition_overrides_only_its_own_tenant(store: Arc<dyn Store>) {
    let changes = [
        register(None, "flow", "d1", NOW),
        register(Some("t1"), "flow", "d2", NOW),
        register(Some("t1/red"), "flow", "d3", NOW),
        register(Some("t1/blue"), "own", "d4", NOW),
        register(Some("t2/red"), "flow", "d5", NOW),
    ];
    must(&store, registry(changes)).await;
    for (owner, flow, hash) in [
        ("t1/red", "flow", Some("d3")),
        ("t1/blue", "flow", Some("d2")),
        ("t1", "flow", Some("d2")),
        ("t2/red", "flow", Some("d5")),
        ("t2", "flow", Some("d1")),
        ("t1/blue", "own", Some("d4")),
        ("t1/red", "own", None),
        ("t1", "own", None),
    ] {
        let meant = registered_as(&store, owner, flow)
            .await
            .map(|(hash, _)| hash);
        assert_eq!(meant.as_deref(), hash, "{flow} in {owner}");
    }
    for (owner, expected) in [
        (
            "t1/blue",
            vec![("flow", "d2", None), ("own", "d4", Some("blue"))],
        ),
        ("t1/red", vec![("flow", "d3", Some("red"))]),
        ("t1", vec![("flow", "d2", None)]),
    ] {
        let listed = store.list_registered(&partition(owner)).await.unwrap();
        assert_eq!(summary(&listed), expected, "seen in {owner}");
    }
    let listed = store
        .list_registered_in_workspaces(&"t1".into())
        .await
        .unwrap();
    let expected = [("own", "d4", Some("blue")), ("flow", "d3", Some("red"))];
    assert_eq!(summary(&listed), expected, "by workspace");
    // Changes of a workspace affect only that workspace.
    let changes = [
        register(Some("t1/red"), "flow", "d6", NOW),
        unregister(Some("t2/red"), "flow"),
    ];
    must(&store, registry(changes)).await;
    for (owner, hash) in [("t1/red", "d6"), ("t1", "d2"), ("t2/red", "d1")] {
        let meant = registered_as(&store, owner, "flow")
            .await
            .map(|(hash, _)| hash);
        assert_eq!(meant.as_deref(), Some(hash), "afterwards in {owner}");
    }
    let guarded = |owner: &str, hash: Option<&str>| Commit {
        guards: vec![CommitGuard::RegisteredAs {
            owner: Some(partition(owner)),
            workflow: WorkflowId::new("flow"),
            hash: hash.map(DefinitionHash::new),
        }],
        ..Commit::default()
    };
    must(&store, guarded("t1/red", Some("d6"))).await;
    must(&store, guarded("t1/blue", None)).await;
    conflict(&store, guarded("t1/blue", Some("d2"))).await;
}

fn summary(listed: &[RegisteredWorkflow]) -> Vec<(&str, &str, Option<&str>)> {
    let summary = listed.iter().map(|r| {
        let workspace = r.workspace.as_ref().map(AsRef::as_ref);
        (r.workflow.as_str(), r.hash.as_str(), workspace)
    });
    summary.collect()
}

pub async fn registration_guard_checks_the_current_definition(store: Arc<dyn Store>) {
    let guarded = |owner: Option<&str>, hash: Option<&str>| Commit {
        guards: vec![CommitGuard::RegisteredAs {
            owner: owner.map(partition),
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
        registered_as(&store, "t1", "flow").await,
        own,
        "nothing is written"
    );
    conflict(&store, guarded(Some("t1"), Some("d1"))).await;
    must(&store, guarded(Some("t1"), Some("d2"))).await;
    must(&store, registry([unregister(Some("t1"), "flow")])).await;
    must(&store, guarded(Some("t1"), None)).await;
}

pub async fn documents_are_stored_once_without_an_id(store: Arc<dyn Store>) {
    let code = |text: &str| Commit {
        documents: vec![DocumentRecord {
            hash: DefinitionHash::new("c1"),
            document: text.into(),
        }],
        ..Commit::default()
    };
    let mut refused = code("export default 1");
    refused.appends = vec![append(&StreamId::new("run:a"), Some(3), 1)];
    conflict(&store, refused).await;
    let hash = DefinitionHash::new("c1");
    assert_eq!(store.definition(&hash).await.unwrap(), None);
    let epoch = store.epoch(CachedData::Registry).await.unwrap();
    for text in ["export default 1", "other"] {
        must(&store, code(text)).await;
        let stored = store.definition(&hash).await.unwrap();
        assert_eq!(
            stored.as_deref(),
            Some("export default 1"),
            "the first stays"
        );
    }
    assert_eq!(store.list_registered(&partition("t1")).await.unwrap(), []);
    let after = store.epoch(CachedData::Registry).await.unwrap();
    assert_eq!(after, epoch, "no id stands for anything else");
}

pub async fn unregistering_retains_pinned_documents(store: Arc<dyn Store>) {
    must(&store, registry([register(Some("t1"), "flow", "d1", NOW)])).await;
    let changes = [unregister(Some("t1"), "flow"), unregister(None, "absent")];
    must(&store, registry(changes)).await;
    assert_eq!(registered_as(&store, "t1", "flow").await, None);
    let document = store.definition(&DefinitionHash::new("d1")).await.unwrap();
    assert_eq!(document.as_deref(), Some(r#"{"content":"d1"}"#));
    let absent = store.definition(&DefinitionHash::new("d2")).await.unwrap();
    assert_eq!(absent, None);
}

pub async fn registering_again_replaces_the_definition(store: Arc<dyn Store>) {
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
            assert_eq!(registered_as(&store, tenant, "flow").await, expected);
        }
    }
    let found = store
        .registered(&partition("t1"), &"flow".into())
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
    let listed = store.list_registered(&partition("t1")).await.unwrap();
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
    assert_eq!(registered_as(&store, "t1", "flow").await, None);
}
