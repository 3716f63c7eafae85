//! Registrations and deletions under one id: of concurrent ones exactly one reports the change, and
//! each workspace uses its own document or that of its tenant.

use serde_json::{Value, json};
use tandem_record::{Partition, RunId, WorkflowId, WorkspaceId};
use tandem_runtime::{Permissions, Registration};
use tandem_testkit::test_host::{TestHost, new_run, tenant};
use tandem_testkit::{InjectedFault, wf};
use tokio::test;

async fn register(host: &TestHost, document: &Value) -> Registration {
    let permissions = Permissions::default();
    let registered = host
        .runtime
        .register(Some(&tenant().into()), document, permissions)
        .await;
    registered.expect("the workflow is sound")
}

#[test(start_paused = true)]
async fn of_two_concurrent_first_registrations_one_is_created() {
    let table = [
        (wf("flow").noop("a"), Registration::Unchanged),
        (wf("flow").noop("b"), Registration::Changed),
    ];
    for (other, expected) in table {
        let host = TestHost::new().await;
        // Both have read that there is no registration before either is durable.
        host.faults
            .next([InjectedFault::SlowBefore(10), InjectedFault::SlowBefore(20)]);
        let (first, second) = (wf("flow").noop("a").document(), other.document());
        let (one, two) = tokio::join!(register(&host, &first), register(&host, &second));
        assert_eq!((one, two), (Registration::Created, expected));
    }
}

#[test(start_paused = true)]
async fn of_two_concurrent_deletions_one_deletes() {
    let host = TestHost::new().await;
    host.register(wf("flow").noop("a")).await;
    host.faults
        .next([InjectedFault::SlowBefore(10), InjectedFault::SlowBefore(20)]);
    let (tenant, id) = (tenant().into(), WorkflowId::new("flow"));
    let (one, two) = tokio::join!(
        host.runtime.unregister(&tenant, &id),
        host.runtime.unregister(&tenant, &id)
    );
    assert_eq!((one.unwrap(), two.unwrap()), (true, false));
}

/// Creates a run in a workspace. Returns the first node it executed.
async fn first_node_in_workspace(host: &TestHost, workspace: &WorkspaceId) -> String {
    let mut new = new_run("flow", json!({}));
    new.request.owner.workspace = Some(workspace.clone());
    let run: RunId = host.runtime.create_run(new, None).await.expect("it starts");
    let run = host.folded(&run).await;
    let nodes = &run.definition().document.nodes;
    nodes[0].id.to_string()
}

#[test(start_paused = true)]
async fn workspace_follows_its_tenant_until_it_has_its_own_document() {
    let host = TestHost::new().await;
    let workspace = WorkspaceId::new("desk");
    host.register(wf("flow").noop("first")).await;
    assert_eq!(first_node_in_workspace(&host, &workspace).await, "first");
    host.register(wf("flow").noop("second")).await;
    assert_eq!(first_node_in_workspace(&host, &workspace).await, "second");

    let own = Partition {
        tenant: tenant(),
        workspace: Some(workspace.clone()),
    };
    let document = wf("flow").noop("second").document();
    let registered = host
        .runtime
        .register(Some(&own), &document, Permissions::default())
        .await;
    assert_eq!(
        registered.expect("the workflow is sound"),
        Registration::Created,
        "the document of the tenant is not the workspace's"
    );
    host.register(wf("flow").noop("third")).await;
    assert_eq!(first_node_in_workspace(&host, &workspace).await, "second");
}
