//! Documents under one id: whoever is first knows it, and nobody else does.

use serde_json::Value;
use tandem_record::WorkflowId;
use tandem_runtime::{Permissions, Registration};
use tandem_testkit::house::{House, tenant};
use tandem_testkit::{Mishap, wf};
use tokio::test;

async fn register(house: &House, document: &Value) -> Registration {
    let permissions = Permissions::default();
    let registered = house
        .runtime
        .register(Some(&tenant().into()), document, permissions)
        .await;
    registered.expect("the workflow is sound")
}

#[test(start_paused = true)]
async fn of_two_first_registrations_one_is_the_first() {
    let table = [
        (wf("flow").noop("a"), Registration::Unchanged),
        (wf("flow").noop("b"), Registration::Changed),
    ];
    for (other, expected) in table {
        let house = House::new().await;
        // Both have seen that there is none before either is durable.
        house
            .faults
            .next([Mishap::SlowBefore(10), Mishap::SlowBefore(20)]);
        let (first, second) = (wf("flow").noop("a").document(), other.document());
        let (one, two) = tokio::join!(register(&house, &first), register(&house, &second));
        assert_eq!((one, two), (Registration::Created, expected));
    }
}

#[test(start_paused = true)]
async fn of_two_deletions_one_deletes() {
    let house = House::new().await;
    house.register(wf("flow").noop("a")).await;
    house
        .faults
        .next([Mishap::SlowBefore(10), Mishap::SlowBefore(20)]);
    let (tenant, id) = (tenant().into(), WorkflowId::new("flow"));
    let (one, two) = tokio::join!(
        house.runtime.unregister(&tenant, &id),
        house.runtime.unregister(&tenant, &id)
    );
    assert_eq!((one.unwrap(), two.unwrap()), (true, false));
}
