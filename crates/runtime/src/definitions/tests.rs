use super::{CompiledDefinitions, flow_definition};
use crate::offload::Offload;
use std::task::{Context, Waker};
use tandem_engine::definition::{Definition, Permissions};
use tandem_record::{Partition, TenantId, Timestamp, WorkflowId};
use tandem_store::memory::MemoryStore;
use tandem_store::{Commit, DefinitionRecord, Log as _, RegistryChange};
use tandem_testkit::wf;

#[test]
fn flow_has_a_definition_that_compiles() {
    let workflow = WorkflowId::new("flow.demo.booking");
    let definition = flow_definition(&workflow).expect("it compiles");
    assert_eq!(definition.id().as_str(), "flow");
}

fn desk() -> Partition {
    Partition::from(TenantId::new("acme"))
}

/// A store in which a small document is registered.
async fn registered(workflow: &WorkflowId) -> MemoryStore {
    let document = wf(workflow.as_str()).noop("a").document();
    let permissions = Permissions::default();
    let compiled = Definition::compile(&document, permissions).expect("it compiles");
    let store = MemoryStore::new();
    let register = RegistryChange::Register {
        owner: Some(desk()),
        definition: DefinitionRecord {
            hash: compiled.hash.clone(),
            workflow: workflow.clone(),
            document: document.to_string().into(),
        },
        at: Timestamp(0),
    };
    let commit = Commit {
        registry: vec![register],
        ..Commit::default()
    };
    store.commit(commit).await.expect("the store answers");
    store
}

/// What was read before a change of the registry is not cached after it.
#[tokio::test(flavor = "multi_thread")]
async fn meaning_of_an_id_is_cached_unless_it_changed_meanwhile() {
    let workflow = WorkflowId::new("flow");
    let store = registered(&workflow).await;
    for changes_meanwhile in [false, true] {
        let definitions = CompiledDefinitions {
            compiling: Offload::with_slots(1),
            ..CompiledDefinitions::new(false)
        };
        let permit = definitions.compiling.acquire(None).await;
        let owner = desk();
        let mut reading = Box::pin(definitions.current(&store, &owner, &workflow));
        let waiting = reading
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(waiting.is_pending(), "it waits for its turn to compile");
        if changes_meanwhile {
            definitions.invalidate_current(Some(&owner), &workflow);
        }
        drop(permit);
        let found = reading.await.expect("the store answers");
        assert!(found.is_some());
        let key = (desk(), workflow.clone());
        let cached = definitions.current.lock().hashes.get(&key);
        assert_eq!(cached.is_some(), !changes_meanwhile);
    }
}
