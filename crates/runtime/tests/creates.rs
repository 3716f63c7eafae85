//! Concurrent create requests.

use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{RunId, RunStatus};
use tandem_runtime::{
    CommandOutcome, IdempotencyKey, IdempotencyRequest, StoredResponse, SubmitError,
};
use tandem_store::ReadIdempotency;
use tandem_testkit::test_host::{TestHost, TestHostBuilder, new_run};
use tandem_testkit::{Faults, InjectedFault, wf};
use tokio::task::JoinSet;
use tokio::test;

async fn host() -> TestHost {
    // Every commit is delayed, so that callers overlap.
    let plan = TestHostBuilder {
        faults: Faults::always(InjectedFault::SlowBefore(3)),
        ..TestHostBuilder::default()
    };
    let host = plan.build().await;
    host.register(wf("call").http("call", 1)).await;
    host
}

fn idempotency_request(key: &str) -> IdempotencyRequest {
    IdempotencyRequest {
        key: IdempotencyKey(key.to_owned()),
        digest: "d".to_owned(),
        render: Arc::new(|answer| match answer {
            CommandOutcome::Created(run) => Some(StoredResponse {
                status: 201,
                body: run.to_string(),
            }),
            CommandOutcome::Replied(..) | CommandOutcome::Refused(_) => None,
        }),
    }
}

/// Requests a run from many tasks at once.
async fn create_many(host: &TestHost, key: Option<&str>) -> Vec<Result<RunId, SubmitError>> {
    let mut callers = JoinSet::new();
    for _ in 0..40 {
        let runtime = host.runtime.clone();
        let idempotency = key.map(idempotency_request);
        callers.spawn(async move {
            let new = new_run("call", json!({}));
            runtime.create_run(new, idempotency).await
        });
    }
    callers.join_all().await
}

#[test(start_paused = true)]
async fn concurrent_creates_make_one_run_each() {
    let host = host().await;
    let created = create_many(&host, None).await;
    let runs: BTreeSet<RunId> = created
        .into_iter()
        .map(|run| run.expect("created"))
        .collect();
    assert_eq!(runs.len(), 40);
    for run in &runs {
        assert_eq!(host.ended(run).await, RunStatus::Completed);
    }
}

#[test(start_paused = true)]
async fn concurrent_creates_with_one_idempotency_key_make_one_run() {
    let host = host().await;
    let answers = create_many(&host, Some("k")).await;
    let made: Vec<&RunId> = answers.iter().filter_map(|a| a.as_ref().ok()).collect();
    assert_eq!(made.len(), 1);
    let rest = answers.iter().filter_map(|a| a.as_ref().err());
    assert!(
        rest.into_iter()
            .all(|e| matches!(e, SubmitError::IdempotencyKeyUsed))
    );
    let stored = host
        .store
        .idempotency_record(&IdempotencyKey("k".to_owned()))
        .await;
    let stored = stored.expect("the store answers").expect("it was answered");
    assert_eq!(stored.response.body, made[0].as_str());
}
