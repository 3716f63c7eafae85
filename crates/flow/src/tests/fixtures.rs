//! A started flow and the steps it takes.

use crate::{FlowContext, FlowResult, FlowTask, RustFlow};
use serde_json::{Value, json};
use std::future::Future;
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{FlowFailure, FlowOrigin, FlowRunStart};
use tandem_record::{AgentId, FlowId, Object, Owner, RunId, TenantId, Timestamp};

pub(super) const NOW: Timestamp = Timestamp(1_767_258_000_000);

pub(super) fn start(input: Option<Value>) -> FlowRunStart {
    let context = json!({
        "user": { "id": "usr-1", "externalUserId": "u1" },
        "session": { "id": "s-1" },
        "replyTarget": "u1",
        "inbound": { "body": "book" },
    });
    FlowRunStart {
        run_id: RunId::from("flow-1"),
        agent_id: AgentId::from("demo"),
        flow_id: FlowId::from("booking"),
        session_id: None,
        owner: Owner {
            tenant: TenantId::new("default"),
            workspace: None,
            principal: None,
        },
        version: "rust:1".to_owned(),
        input,
        origin: FlowOrigin::Router,
        parent: None,
        forked_from: None,
        seed: 7,
        context: context.as_object().expect("an object").clone(),
    }
}

/// Drives one run.
pub(super) struct Driver(pub(super) FlowTask);

impl Driver {
    /// A flow without input, up to its first step.
    pub(super) fn start<F, R>(run: F) -> (Self, ProgramStep)
    where
        F: Fn(FlowContext) -> R + Send + Sync + 'static,
        R: Future<Output = FlowResult> + Send + 'static,
    {
        let flow = RustFlow::new("booking", 1, move |ctx, (): ()| run(ctx));
        let begun = FlowTask::start(&flow, &start(None), NOW, true);
        let (task, step) = begun.expect("a flow without input starts");
        (Self(task), step)
    }

    /// The result of the effect at which the flow waits.
    pub(super) fn give(&mut self, value: Value) -> ProgramStep {
        self.resume(Resume::Value(Some(value)))
    }

    /// The effect has no result.
    pub(super) fn go_on(&mut self) -> ProgramStep {
        self.resume(Resume::Value(None))
    }

    pub(super) fn answer(&mut self, value: Value) -> ProgramStep {
        self.resume(Resume::Host(Ok(Some(value))))
    }

    pub(super) fn resume(&mut self, with: Resume) -> ProgramStep {
        self.0.resume(with, &Object::new(), NOW.plus_ms(1_000))
    }
}

pub(super) fn failure(step: ProgramStep) -> FlowFailure {
    match step {
        ProgramStep::Failed(failure) => failure,
        other => panic!("the flow did not fail: {other:?}"),
    }
}

pub(super) fn say_step(text: &str) -> ProgramStep {
    ProgramStep::Yielded(json!({ "type": "say", "text": text }))
}
