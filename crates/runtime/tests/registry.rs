//! Concurrent registrations and deletions under one id: exactly one of them reports the change.

use serde_json::Value;
use tandem_record::WorkflowId;
use tandem_runtime::{Permissions, Registration};
use tandem_testkit::test_host::{TestHost, tenant};
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
