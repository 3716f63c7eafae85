//! The columns of a question by which the inbox filters and sorts.

use serde_json::{Value, json};
use tandem_record::TenantId;
use tandem_runtime::{InterruptFilter, InterruptRow, Page};
use tandem_testkit::test_host::{TestHost, tenant};
use tandem_testkit::wf;
use tokio::test;

async fn question(config: Value) -> InterruptRow {
    let host = TestHost::new().await;
    let workflow = wf("asks").node("ask", "core.approvalGate", config);
    host.register(workflow).await;
    host.create("asks", json!({})).await;
    let page = Page {
        before: None,
        limit: 10,
    };
    let tenant: TenantId = tenant();
    let listing = host
        .runtime
        .questions(&tenant, &InterruptFilter::default(), &page)
        .await;
    let (_, row) = listing.expect("the store answers").rows.remove(0);
    row
}

#[test(start_paused = true)]
async fn groups_of_deciders_and_audience_are_columns() {
    let row = question(json!({
        "title": "Go?", "approverGroupRefs": ["desk"],
        "audience": {"groups": ["ops", "legal", "ops"]},
    }))
    .await;
    assert_eq!(row.groups, ["desk", "legal", "ops"]);
}

#[test(start_paused = true)]
async fn priority_is_a_column() {
    for (priority, expected) in [(json!("high"), 8), (json!(9), 9), (Value::Null, 0)] {
        let config = json!({"title": "Go?", "tandem": {"priority": priority}});
        assert_eq!(question(config).await.priority, expected);
    }
}
