use super::*;
use std::cell::RefCell;

fn settings() -> RetrySettings {
    RetrySettings {
        max_retries: 3,
        base_delay: Duration::from_millis(100),
        jitter: Duration::ZERO,
        attempt_timeout: None,
    }
}

fn busy(retry_after_ms: Option<u64>) -> ProviderFailure {
    ProviderFailure {
        retry_after_ms,
        ..ProviderFailure::new("busy", "busy").transient()
    }
}

/// When attempts begin, in ms, and how the call ends.
async fn attempts(
    settings: RetrySettings,
    limit_ms: u64,
    attempt: impl AsyncFn(usize) -> Result<(), ProviderFailure>,
) -> (Vec<u128>, Result<(), ProviderFailure>) {
    let begin = Instant::now();
    let times = RefCell::new(Vec::new());
    let result = with_retries(
        "house",
        &settings,
        Duration::from_millis(limit_ms),
        || true,
        || {
            times.borrow_mut().push(begin.elapsed().as_millis());
            let at = times.borrow().len();
            attempt(at)
        },
    )
    .await;
    (times.into_inner(), result)
}

/// Z-42 (half: delays of retries)
#[tokio::test(start_paused = true)]
async fn delays_double_and_retries_are_bounded() {
    let (times, result) = attempts(settings(), 10_000, async |_| Err(busy(None))).await;
    assert_eq!(times, [0, 100, 300, 700]);
    assert_eq!(result, Err(busy(None)));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_within_the_timeout() {
    let asked = |ms| async move |_| Err(busy(Some(ms)));
    let (times, _) = attempts(settings(), 5_000, asked(2_000)).await;
    assert_eq!(
        times,
        [0, 2_000, 4_000],
        "a fourth attempt would be too late"
    );
    let (times, _) = attempts(settings(), 5_000, asked(10)).await;
    assert_eq!(times, [0, 100, 300, 700], "no earlier than the own delay");
}

#[tokio::test(start_paused = true)]
async fn hanging_attempt_is_repeated_when_attempts_are_bounded() {
    let second_answers = async |at| match at {
        1 => std::future::pending().await,
        _ => Ok(()),
    };
    let bounded = RetrySettings {
        attempt_timeout: Some(Duration::from_secs(1)),
        ..settings()
    };
    let (times, result) = attempts(bounded, 10_000, second_answers).await;
    assert_eq!((times, result), (vec![0, 1_100], Ok(())));

    let (times, result) = attempts(settings(), 10_000, second_answers).await;
    assert_eq!(times, [0]);
    assert_eq!(result.unwrap_err().error.code, "timeout");
}

#[tokio::test(start_paused = true)]
async fn jitter_is_added_within_its_limit() {
    let jittered = RetrySettings {
        max_retries: 1,
        jitter: Duration::from_millis(50),
        ..settings()
    };
    let (times, _) = attempts(jittered, 10_000, async |_| Err(busy(None))).await;
    assert!((100..=151).contains(&times[1]), "{times:?}");
}
