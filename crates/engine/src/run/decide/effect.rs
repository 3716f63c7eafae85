//! The result of an effect. A result that no node waits for any more (repeated, cancelled, cut off)
//! changes nothing.

use crate::node::Kind;
use crate::run::agents::SupervisorAnswer;
use crate::run::draft::DecisionDraft;
use crate::run::lifecycle::Phase;
use crate::run::scheduling::Done;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{
    EffectId, EffectOutcome, ErrorInfo, ModelAnswer, NodeStatus, Object, Reply, Work,
};

pub(super) fn finished(
    draft: &mut DecisionDraft<'_>,
    effect: &EffectId,
    outcome: EffectOutcome,
) -> Reply {
    if let EffectOutcome::Failed { error } = &outcome
        && let Some(reply) = draft.record_failed_announcement(effect, error)
    {
        return reply;
    }
    let nodes = draft.run.nodes().iter();
    let waiting = nodes.enumerate().find_map(|(ix, node)| {
        let (id, output) = match node.work.as_ref()? {
            Work::Http { effect, output, .. } => (effect, output.clone()),
            Work::Model { effect, .. } | Work::Tool { effect, .. } | Work::Pack { effect, .. } => {
                (effect, None)
            }
            Work::SecretEcho { effect, .. } => {
                (effect, Some(draft.run.def.nodes[ix].id.to_string()))
            }
            Work::Sleep { .. } | Work::Child { .. } | Work::Flow { .. } => return None,
        };
        let open = node.status == NodeStatus::Running && node.retry_at.is_none();
        (open && id == effect).then_some((ix, output, node.last))
    });
    let Some((ix, output, Some(cause))) = waiting else {
        return Reply::Unchanged;
    };
    if draft.run.phase() != Phase::Running {
        return Reply::Unchanged;
    }
    if let Some(Work::Tool { .. }) = draft.run.node(ix).work {
        draft.tool_answered(ix, outcome, cause);
        draft.advance();
        return Reply::Accepted;
    }
    match outcome {
        EffectOutcome::Pack(answer) => draft.pack_answered(ix, *answer, cause),
        EffectOutcome::Done { outputs } if draft.run.awaits_verdict(ix) => {
            draft.verifier_answered(ix, &answer(&outputs), None, cause);
        }
        EffectOutcome::Failed { error } if draft.run.awaits_verdict(ix) => {
            draft.verifier_failed(ix, &error, None, cause);
        }
        EffectOutcome::Done { outputs } if draft.run.call_of(ix).is_some() => {
            match serde_json::from_value::<ModelAnswer>(Value::Object(outputs)) {
                Ok(answer) => draft.model_answered(ix, answer, cause),
                Err(_) => {
                    let message = "the provider's answer is not one";
                    draft.fail_or_retry(ix, ErrorInfo::new("internal_error", message), cause);
                }
            }
        }
        EffectOutcome::Done { outputs } if supervises(draft, ix) => {
            let step = draft.process_supervisor_answer(
                ix,
                SupervisorAnswer::read(&answer(&outputs)),
                cause,
            );
            draft.apply_outcome(ix, step, cause);
        }
        EffectOutcome::Done { outputs } => {
            let def = Arc::clone(&draft.run.def);
            if let Kind::Conformance(kind) = &def.nodes[ix].kind
                && kind.effect_done(draft, ix, &outputs, cause)
            {
                draft.advance();
                return Reply::Accepted;
            }
            let node = draft.run.def.nodes[ix].id.clone();
            let mut cause = cause;
            if let Some(name) = output {
                let value = answer(&outputs);
                cause = draft.set_variable(&name, Some(value), &node, cause);
            }
            draft.complete_node(ix, Done::with(outputs), cause);
        }
        EffectOutcome::Failed { error } => draft.fail_or_retry(ix, error, cause),
    }
    draft.advance();
    Reply::Accepted
}

fn supervises(draft: &DecisionDraft<'_>, ix: usize) -> bool {
    matches!(draft.run.def.nodes[ix].kind, Kind::Supervisor(_))
}

/// What goes into the author's output variable: the body of an HTTP response, or all outputs.
fn answer(outputs: &Object) -> Value {
    let body = outputs.get("body").cloned();
    body.unwrap_or_else(|| Value::Object(outputs.clone()))
}
