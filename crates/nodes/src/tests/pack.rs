use super::http::{caller, failed};
use crate::{PackCaller, Performer, Secrets};
use serde_json::json;
use std::sync::Arc;
use tandem_record::{
    Effect, EffectKind, EffectOutcome, Object, PackAnswer, PackCall, PackResult, TenantId,
    Timestamp,
};
use tandem_wasm::{PackLimits, Packs, conformance_packs};

fn performer() -> Performer {
    let mut packs = Packs::new(PackLimits::default());
    conformance_packs(&mut packs);
    let packs = PackCaller::new(Arc::new(packs));
    Performer::new(caller(), Secrets::default()).with_packs(Some(packs))
}

fn call(type_id: &str) -> Effect {
    Effect {
        id: "effect-1".into(),
        kind: EffectKind::Pack {
            node: "greet".into(),
            attempt: 0,
            call: Box::new(PackCall {
                type_id: type_id.to_owned(),
                tenant: TenantId::new("acme"),
                inputs: Object::from_iter([("name".to_owned(), json!("you"))]),
                config: Object::new(),
                configurable: Object::new(),
                agent: None,
                at: Timestamp(0),
            }),
        },
    }
}

fn answered(outcome: EffectOutcome) -> PackAnswer {
    match outcome {
        EffectOutcome::Pack(answer) => *answer,
        other => panic!("no pack answered: {other:?}"),
    }
}

#[tokio::test]
async fn pack_call_does_not_block_the_async_threads() {
    // More calls at once than threads for them; each gets its own answer.
    let performer = Arc::new(performer());
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let performer = Arc::clone(&performer);
            tokio::spawn(async move {
                let greet = call("vendor.openwop.rust-hello.greet");
                performer.perform(&"run-1".into(), &greet, None).await
            })
        })
        .collect();
    for called in calls {
        let answer = answered(called.await.expect("it ends"));
        let outputs = Object::from_iter([("greeting".to_owned(), json!("Hello, you!"))]);
        assert_eq!(answer.result, PackResult::Completed { outputs });
    }
    let bomb = call("vendor.openwop.misbehaving.memory-bomb");
    let stopped = answered(performer.perform(&"run-1".into(), &bomb, None).await).result;
    assert!(
        matches!(stopped, PackResult::Breached { .. }),
        "{stopped:?}"
    );
}

#[tokio::test]
async fn pack_call_without_packs_fails_with_pack_unavailable() {
    let performer = Performer::new(caller(), Secrets::default());
    let greet = call("vendor.openwop.rust-hello.greet");
    let error = failed(performer.perform(&"run-1".into(), &greet, None).await);
    assert_eq!(error.code, "pack_unavailable");
}
