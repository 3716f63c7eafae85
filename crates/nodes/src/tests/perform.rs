use super::http::{caller, done, failed, request};
use super::server::{CannedResponse, Server};
use crate::{Performer, Secrets};
use serde_json::json;
use tandem_record::{Effect, EffectKind};

fn secrets() -> Secrets {
    [("canary".to_owned(), "é-secret-value".to_owned())]
        .into_iter()
        .collect()
}

fn effect(kind: EffectKind) -> Effect {
    Effect {
        id: "effect-1".into(),
        kind,
    }
}

fn echo(secret_id: &str) -> Effect {
    effect(EffectKind::SecretEcho {
        reveal: false,
        node: "n".into(),
        attempt: 0,
        secret_id: secret_id.to_owned(),
    })
}

#[tokio::test]
async fn http_effects_are_called_under_their_id() {
    let server = Server::responding_with(CannedResponse::json("200 OK", "[]")).await;
    let performer = Performer::new(caller(), secrets());
    let call = effect(EffectKind::Http {
        node: "n".into(),
        attempt: 1,
        request: request("GET", &server.url),
    });
    assert_eq!(
        done(performer.perform(&"run-1".into(), &call, None).await)["body"],
        json!([])
    );
    let sent = server.only_request().await;
    assert_eq!(sent.header("idempotency-key"), ["effect-1"]);
}

#[tokio::test]
async fn secret_echo_returns_a_hash_and_not_the_secret() {
    let performer = Performer::new(caller(), secrets());
    let outputs = done(
        performer
            .perform(&"run-1".into(), &echo("canary"), None)
            .await,
    );
    // printf 'é-secret-value' | sha256sum
    let hash = "f4d69de430525d2c7e321769066f8b4a23629c3e1fe2f396ec75c0d1dee131a9";
    assert_eq!(
        outputs,
        json!({"secretSha256": hash, "secretLength": 15, "sha256": hash, "byteLength": 15})
    );

    let error = failed(
        performer
            .perform(&"run-1".into(), &echo("missing"), None)
            .await,
    );
    assert_eq!(error.code, "credential_unavailable");
    assert!(!error.retryable && error.message.contains("missing"));
}

#[test]
fn debug_shows_only_secret_ids_and_iter_returns_the_values() {
    assert_eq!(format!("{:?}", secrets()), r#"Secrets{"canary"}"#);
    let listed: Vec<_> = secrets()
        .iter()
        .map(|(id, value)| format!("{id}={value}"))
        .collect();
    assert_eq!(listed, ["canary=é-secret-value"]);
}

#[tokio::test]
async fn effects_of_the_runtime_are_refused() {
    let performer = Performer::new(caller(), secrets());
    for kind in [
        EffectKind::Continue,
        EffectKind::CancelChild {
            child: "run-2".into(),
        },
    ] {
        let name = kind.name();
        let error = failed(
            performer
                .perform(&"run-1".into(), &effect(kind), None)
                .await,
        );
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("internal_error", false)
        );
        assert!(error.message.contains(name));
    }
}
