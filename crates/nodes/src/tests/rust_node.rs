use super::http::{caller, failed};
use crate::{NodeCall, Performer, RustNode, RustNodes, Secrets};
use serde_json::json;
use std::future::pending;
use std::time::Duration;
use tandem_record::{
    Effect, EffectKind, EffectOutcome, ErrorInfo, Object, PackCall, PackResult, TenantId, Timestamp,
};

fn performer() -> Performer {
    let mut nodes = RustNodes::default();
    let price = RustNode::new("vendor.clinic.price", async |call: NodeCall| {
        match call.request.inputs.get("service") {
            Some(service) => Ok(Object::from_iter([
                ("service".to_owned(), service.clone()),
                ("key".to_owned(), json!(call.effect)),
            ])),
            None => Err(ErrorInfo::new("no_service", "There is no service.").retryable()),
        }
    });
    let slow = RustNode::new("vendor.clinic.slow", async |_: NodeCall| pending().await);
    let panics = RustNode::new("vendor.clinic.panics", async |call: NodeCall| {
        let attempts: Vec<u32> = Vec::new();
        attempts
            .get(call.attempt as usize)
            .expect("no such attempt");
        Ok(Object::new())
    });
    for node in [price, slow.timeout(Duration::from_millis(20)), panics] {
        nodes.add(node).expect("the type is free");
    }
    let twice = RustNode::new("vendor.clinic.price", async |_: NodeCall| Ok(Object::new()));
    assert!(nodes.add(twice).is_err());
    Performer::new(caller(), Secrets::default()).with_rust_nodes(nodes)
}

async fn call(type_id: &str, inputs: Object) -> EffectOutcome {
    let effect = Effect {
        id: "effect-1".into(),
        kind: EffectKind::Pack {
            node: "price".into(),
            attempt: 0,
            call: Box::new(PackCall {
                type_id: type_id.to_owned(),
                tenant: TenantId::new("acme"),
                inputs,
                config: Object::new(),
                configurable: Object::new(),
                agent: None,
                at: Timestamp(0),
            }),
        },
    };
    performer().perform(&"run-1".into(), &effect, None).await
}

fn result(outcome: EffectOutcome) -> PackResult {
    match outcome {
        EffectOutcome::Pack(answer) => answer.result,
        other => panic!("no node answered: {other:?}"),
    }
}

fn error(outcome: EffectOutcome) -> ErrorInfo {
    match result(outcome) {
        PackResult::Failed { error } => error,
        other => panic!("the node did not fail: {other:?}"),
    }
}

#[tokio::test]
async fn node_in_rust_gets_its_inputs_and_an_idempotency_key() {
    let inputs = Object::from_iter([("service".to_owned(), json!("cleaning"))]);
    let outputs = Object::from_iter([
        ("service".to_owned(), json!("cleaning")),
        ("key".to_owned(), json!("effect-1")),
    ]);
    let called = call("vendor.clinic.price", inputs).await;
    assert_eq!(result(called), PackResult::Completed { outputs });
    let refused = error(call("vendor.clinic.price", Object::new()).await);
    assert_eq!(
        (refused.code.as_str(), refused.retryable),
        ("no_service", true)
    );
}

#[tokio::test(start_paused = true)]
async fn node_that_hangs_or_panics_fails() {
    let late = error(call("vendor.clinic.slow", Object::new()).await);
    assert_eq!((late.code.as_str(), late.retryable), ("node_timeout", true));
    let panicked = error(call("vendor.clinic.panics", Object::new()).await);
    assert_eq!(panicked.code, "internal_error");
}

#[tokio::test]
async fn type_that_is_no_longer_there_fails_the_node() {
    let gone = failed(call("vendor.clinic.gone", Object::new()).await);
    assert_eq!(gone.code, "pack_unavailable");
}
