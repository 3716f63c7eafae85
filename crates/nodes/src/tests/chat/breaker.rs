//! Circuit breakers.

use crate::{
    BreakerSettings, ChatModel, ChatReply, CircuitBreakers, CircuitChange, CircuitCounts,
    CircuitState, LocalScripts, ProviderFailure, RetrySettings, Script,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tandem_record::conversation::{ChatAnswer, CodeError};
use tandem_record::{AgentId, Timestamp};

const PROVIDER: &str = "house";

struct Desk {
    breakers: CircuitBreakers,
    now: AtomicI64,
    changes: Mutex<Vec<CircuitChange>>,
}

type Called = Result<ChatReply, ProviderFailure>;

impl Desk {
    fn new() -> Self {
        let settings = BreakerSettings {
            failures_to_open: 3,
            pause_ms: 1_000,
        };
        Self {
            breakers: CircuitBreakers::new(settings),
            now: AtomicI64::new(0),
            changes: Mutex::default(),
        }
    }

    async fn call(&self, agent: &str, call: impl Future<Output = Called>) -> Called {
        let now = || Timestamp(self.now.load(Ordering::Relaxed));
        let changed = |change| self.changes.lock().push(change);
        let agent = AgentId::from(agent);
        self.breakers
            .call(&agent, PROVIDER, &now, &changed, call)
            .await
    }

    /// The code of a call's failure; empty for an answer.
    async fn code(&self, result: Called) -> String {
        let called = self.call("a", async { result }).await;
        called.err().map(|f| f.error.code).unwrap_or_default()
    }

    async fn fail(&self, times: u32) {
        for _ in 0..times {
            assert_eq!(self.code(down()).await, "down");
        }
    }

    fn advance(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
    }

    fn state(&self) -> CircuitState {
        self.breakers.state(&"a".into(), PROVIDER)
    }

    fn changes(&self) -> Vec<(CircuitState, CircuitState)> {
        let changes = std::mem::take(&mut *self.changes.lock());
        changes
            .into_iter()
            .map(|change| (change.from, change.to))
            .collect()
    }
}

fn failed(is_transient: bool) -> Called {
    let error = CodeError {
        code: "down".to_owned(),
        message: "down".to_owned(),
    };
    Err(ProviderFailure {
        error,
        is_transient,
        retry_after_ms: None,
    })
}

fn down() -> Called {
    failed(true)
}

fn answered() -> Called {
    Ok(ChatReply {
        answer: ChatAnswer::default(),
        is_truncated: false,
    })
}

fn open(until: i64) -> CircuitState {
    CircuitState::Open {
        until: Timestamp(until),
    }
}

/// Z-249 (half: the circuit breaker)
#[tokio::test]
async fn circuit_opens_after_failures_in_a_row_and_closes_after_a_probe() {
    let desk = Desk::new();
    desk.fail(2).await;
    desk.code(answered()).await;
    desk.fail(3).await;
    assert_eq!(desk.changes(), [(CircuitState::Closed, open(1_000))]);

    desk.advance(999);
    let called = desk.call("a", async { unreachable!("an open circuit makes no call") });
    let refused = called.await.unwrap_err();
    assert_eq!(refused.error.code, "provider_circuit_open");
    assert!(refused.is_transient);
    // Another agent has a circuit of its own.
    assert!(desk.call("b", async { answered() }).await.is_ok());
    let counts = CircuitCounts {
        closed: 1,
        open: 1,
        half_open: 0,
    };
    assert_eq!(desk.breakers.counts(), counts);

    desk.advance(1);
    assert_eq!(desk.code(down()).await, "down");
    let (half, again) = (CircuitState::HalfOpen, open(2_000));
    assert_eq!(desk.changes(), [(open(1_000), half), (half, again)]);

    desk.advance(1_000);
    assert_eq!(desk.code(answered()).await, "");
    assert_eq!(
        desk.changes(),
        [(again, half), (half, CircuitState::Closed)]
    );
    // It counts from the beginning again.
    desk.fail(2).await;
    assert_eq!(desk.state(), CircuitState::Closed);
    desk.breakers.forget(&"a".into());
    assert_eq!(desk.breakers.counts().closed, 1);
}

#[tokio::test]
async fn half_open_circuit_makes_one_call_at_a_time_also_after_an_abandoned_one() {
    let desk = Desk::new();
    desk.fail(3).await;
    desk.advance(1_000);
    {
        let probe = desk.call("a", std::future::pending());
        let probe = std::pin::pin!(probe);
        let other = async {
            tokio::task::yield_now().await;
            assert_eq!(desk.state(), CircuitState::HalfOpen);
            assert_eq!(desk.code(answered()).await, "provider_circuit_open");
        };
        tokio::select! {
            biased;
            _ = probe => unreachable!("it never ends"),
            () = other => {}
        }
    }
    assert_eq!(
        desk.code(answered()).await,
        "",
        "the abandoned probe was given back"
    );
    assert_eq!(desk.state(), CircuitState::Closed);
}

#[tokio::test]
async fn permanent_failures_do_not_open_a_circuit() {
    let desk = Desk::new();
    desk.fail(2).await;
    desk.code(failed(false)).await;
    desk.fail(2).await;
    assert_eq!(desk.state(), CircuitState::Closed);
}

#[tokio::test]
async fn zero_failures_to_open_means_never() {
    let settings = BreakerSettings {
        failures_to_open: 0,
        ..BreakerSettings::default()
    };
    let desk = Desk {
        breakers: CircuitBreakers::new(settings),
        ..Desk::new()
    };
    desk.fail(20).await;
    assert_eq!(desk.state(), CircuitState::Closed);
}

/// Workers of the outbox run on several threads.
#[tokio::test]
async fn call_through_a_breaker_can_move_between_threads() {
    let memory = Arc::new(LocalScripts::new(|| Timestamp(0)));
    let script = Script::parse(r#"{"answers": [{"text": "a b"}]}"#).unwrap();
    let model = ChatModel::scripted(script, memory);
    let called = tokio::spawn(async move {
        let breakers = CircuitBreakers::default();
        let (request, retry) = (super::request(), RetrySettings::default());
        let count = Mutex::new(0);
        let pieces = |_: &str| *count.lock() += 1;
        let call = model.call(&request, &retry, Some(&pieces));
        let provider = model.provider();
        let called = breakers.call(&request.agent, provider, &|| Timestamp(0), &|_| {}, call);
        called
            .await
            .map(|reply| (reply.answer.text, count.into_inner()))
    });
    assert_eq!(called.await.unwrap().unwrap(), (Some("a b".to_owned()), 2));
}
