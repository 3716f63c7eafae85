//! Many callers at once.

use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_record::{RunId, RunStatus};
use tandem_runtime::{Answer, Answering, IdempotencyKey, StoredResponse, SubmitError};
use tandem_store::ReadIdempotency;
use tandem_testkit::house::{House, Plan, new_run};
use tandem_testkit::{Faults, Mishap, wf};
use tokio::task::JoinSet;
use tokio::test;

async fn house() -> House {
    // Every commit takes a moment, so that callers overlap.
    let plan = Plan {
        faults: Faults::always(Mishap::SlowBefore(3)),
        ..Plan::default()
    };
    let house = plan.build().await;
    house.register(wf("call").http("call", 1)).await;
    house
}

fn answering(key: &str) -> Answering {
    Answering {
        key: IdempotencyKey(key.to_owned()),
        digest: "d".to_owned(),
        render: Arc::new(|answer| match answer {
            Answer::Created(run) => Some(StoredResponse {
                status: 201,
                body: run.to_string(),
            }),
            Answer::Replied(..) | Answer::Refused(_) => None,
        }),
    }
}

/// Asks for a run from many tasks at once.
async fn ask(house: &House, key: Option<&str>) -> Vec<Result<RunId, SubmitError>> {
    let mut callers = JoinSet::new();
    for _ in 0..40 {
        let runtime = house.runtime.clone();
        let answering = key.map(answering);
        callers.spawn(async move {
            let new = new_run("call", json!({}));
            runtime.create_run(new, answering).await
        });
    }
    callers.join_all().await
}

#[test(start_paused = true)]
async fn a_group_of_creates_makes_one_run_each() {
    let house = house().await;
    let created = ask(&house, None).await;
    let runs: BTreeSet<RunId> = created
        .into_iter()
        .map(|run| run.expect("created"))
        .collect();
    assert_eq!(runs.len(), 40);
    for run in &runs {
        assert_eq!(house.ended(run).await, RunStatus::Completed);
    }
}

#[test(start_paused = true)]
async fn a_group_under_one_key_makes_one_run() {
    let house = house().await;
    let answers = ask(&house, Some("k")).await;
    let made: Vec<&RunId> = answers.iter().filter_map(|a| a.as_ref().ok()).collect();
    assert_eq!(made.len(), 1);
    let rest = answers.iter().filter_map(|a| a.as_ref().err());
    assert!(
        rest.into_iter()
            .all(|e| matches!(e, SubmitError::AnsweredBefore))
    );
    let kept = house.store.answered(&IdempotencyKey("k".to_owned())).await;
    let kept = kept.expect("the store answers").expect("it was answered");
    assert_eq!(kept.response.body, made[0].as_str());
}
