use super::Problem;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::Value;
use tandem_app::{AppError, Fault, Refusal, Unforkable};
use tandem_record::{RunId, RunStatus, Seq};

fn body(problem: &Problem) -> Value {
    serde_json::from_str(&problem.body()).unwrap()
}

#[test]
fn fault_response_sets_retry_after_and_hides_internals() {
    let cases = [
        (
            Fault::retryable("busy", "inner"),
            503,
            "service_unavailable",
        ),
        (
            Fault::permanent("closed", "inner"),
            503,
            "service_unavailable",
        ),
        (Fault::retryable("disk_full", "inner"), 503, "storage_full"),
        (Fault::permanent("corrupt", "inner"), 500, "internal_error"),
    ];
    for (fault, status, code) in cases {
        let problem = Problem::from(fault);
        let body = body(&problem);
        assert_eq!((problem.status(), &body["error"]), (status, &code.into()));
        assert!(body["details"]["correlationId"].is_string(), "{body}");
        assert!(!body.to_string().contains("inner"));
        let waits = problem.retry_after.is_some();
        assert_eq!(waits, status == 503, "{body}");
        assert_eq!(problem.stored(), None, "a retry may fare better");
    }
}

#[test]
fn only_final_refusals_are_stored() {
    let paused = Refusal::NotPaused {
        status: RunStatus::Completed,
    };
    let problem = Problem::from(paused);
    let stored = problem
        .stored()
        .expect("a conflict with an ended run is final");
    assert_eq!(stored.status, 409);
    assert_eq!(stored.body, problem.body());
    for passing in [
        Problem::invalid("/x", "is wrong"),
        Problem::forbidden("No."),
        Problem::key_in_flight(),
        Problem::scope_busy(None, "tandem"),
        Problem::busy(),
        Problem::capability_not_provided("feedback"),
    ] {
        assert_eq!(passing.stored(), None, "{passing:?}");
    }
}

#[test]
fn validation_lists_every_path_and_shows_the_first_message() {
    let errors = vec![
        ("/a".to_owned(), "is wrong".to_owned()),
        ("/b".to_owned(), "too".to_owned()),
    ];
    let body = body(&Problem::validation(errors));
    assert_eq!(body["message"], "/a is wrong (and 1 more).");
    assert_eq!(body["details"]["errors"][1]["path"], "/b");
}

#[test]
fn only_401_carries_www_authenticate() {
    let challenge = |problem: Problem| {
        let response = problem.into_response();
        (
            response.status(),
            response.headers().contains_key("www-authenticate"),
        )
    };
    let unknown = tandem_access::Unauthenticated::Unknown;
    assert_eq!(challenge(unknown.into()), (StatusCode::UNAUTHORIZED, true));
    assert_eq!(
        challenge(Problem::not_found("run")),
        (StatusCode::NOT_FOUND, false)
    );
}

#[test]
fn fork_without_log_gets_422_envelope() {
    // R-0039-24 (half: the log does not exist)
    let problem = Problem::from(AppError::Unforkable(Unforkable::NotRetained {
        source_run: RunId::new("run-1"),
        from_seq: Seq(4),
        reason: "event_log_unavailable",
    }));
    assert_eq!(problem.status.as_u16(), 422);
    assert_eq!(problem.code, "replay_memory_snapshot_unavailable");
    let details = &body(&problem)["details"];
    assert_eq!(details["reason"], "event_log_unavailable");
    assert_eq!(
        (&details["fromSeq"], &details["sourceRunId"]),
        (&4.into(), &"run-1".into())
    );
}
