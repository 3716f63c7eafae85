//! Forks and how long they can be made.

use crate::stage::{Reply, Stage, chain, noop};
use serde_json::{Value, json};

const DAY: u64 = 24 * 3600;

async fn replay(stage: &Stage, run: &str) -> Reply {
    let body = json!({"mode": "replay", "fromSeq": 1});
    stage.post(&format!("/v1/runs/{run}:fork"), body).await
}

async fn runs(stage: &Stage) -> usize {
    let listed = stage.get("/v1/host/tandem/runs?limit=100").await.ok(200);
    listed["runs"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_run_can_be_forked_as_long_as_its_log_is_kept_and_is_refused_by_name_afterwards() {
    // R-0039-22, R-0039-23, R-0039-24 (half: after retention), R-0039-27
    // R-0039-25 (half: nothing is made of one that is refused)
    let stage = Stage::new().await;
    let put = json!({"action": "put", "key": "k", "value": "then"});
    let note = json!({"id": "w", "typeId": "vendor.tandem.memory", "config": put});
    let run = stage.start("w", &[note]).await;

    stage.advance(29 * DAY).await;
    let fork = replay(&stage, &run).await.ok(201);
    let path = format!(
        "/v1/host/tandem/runs/{}/memory",
        fork["runId"].as_str().unwrap()
    );
    let known = stage.get(&path).await.ok(200);
    assert_eq!(known["entries"][0]["value"], "then");

    stage.advance(2 * DAY).await;
    let before = runs(&stage).await;
    let details = replay(&stage, &run)
        .await
        .refused(422, "replay_memory_snapshot_unavailable");
    let expected = json!({
        "fromSeq": 1, "sourceRunId": run, "reason": "retention_expired",
        "oldestAvailableIdx": Value::Null,
    });
    assert_eq!(details, expected);
    assert_eq!(runs(&stage).await, before, "nothing was made");
}

#[tokio::test]
async fn a_run_is_forked_by_the_document_it_began_with_though_that_is_gone() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("a")]).await;
    let path = "/v1/host/tandem/workflows/w";
    let gone = stage.call_as(&stage.key, "DELETE", path, &[], "").await;
    assert!(gone.status.is_success(), "{gone:?}");
    stage.get(path).await.refused(404, "workflow_not_found");
    let fork = replay(&stage, &run).await.ok(201);
    let fork = fork["runId"].as_str().unwrap();
    let shown = stage.get(&format!("/v1/runs/{fork}")).await.ok(200);
    assert_eq!(shown["status"], "completed");
}

#[tokio::test]
async fn an_entry_lives_for_a_time_that_can_be_meant() {
    let stage = Stage::new().await;
    for ttl in [json!(0), json!(-1), json!(1e300), json!("soon")] {
        let put = json!({"action": "put", "key": "k", "value": 1, "ttlSeconds": ttl});
        let note = json!({"id": "w", "typeId": "vendor.tandem.memory", "config": put});
        let sent = stage
            .put("/v1/host/tandem/workflows/w", chain("w", &[note]))
            .await;
        let details = sent.refused(400, "validation_error");
        assert!(details.to_string().contains("ttlSeconds"), "{details}");
    }
}

#[tokio::test]
async fn a_place_beyond_the_log_is_said_to_be_and_a_bad_overlay_is_found_in_it() {
    let stage = Stage::new().await;
    let run = stage.start("w", &[noop("a")]).await;
    let path = format!("/v1/runs/{run}:fork");
    let headers = [("content-type", "application/json")];
    let fork = |body: String| {
        let (stage, path) = (&stage, &path);
        async move {
            stage
                .call_as(&stage.key, "POST", path, &headers, body)
                .await
        }
    };
    for far in ["99", "18446744073709551616", "100000000000000000000"] {
        let body = format!(r#"{{"mode":"branch","fromSeq":{far}}}"#);
        fork(body).await.refused(422, "invalid_from_seq");
    }
    for (overlay, place) in [
        (
            r#"{"configurable":{"recursionLimit":0}}"#,
            "/configurable/recursionLimit",
        ),
        (r#"{"tags":[""]}"#, "/tags/0"),
    ] {
        let body = format!(r#"{{"mode":"branch","fromSeq":0,"runOptionsOverlay":{overlay}}}"#);
        let details = fork(body).await.refused(400, "validation_error");
        let found = details["errors"][0]["path"].clone();
        assert_eq!(found, format!("/runOptionsOverlay{place}"));
    }
}
