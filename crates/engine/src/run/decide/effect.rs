//! The world answered. A result nobody waits for any more (repeated, cancelled, cut off) changes
//! nothing.

use crate::node::{Kind, MemoryHook};
use crate::run::agents::Statement;
use crate::run::finish::Done;
use crate::run::state::Phase;
use crate::run::turn::Turn;
use serde_json::Value;
use tandem_record::{
    EffectId, EffectOutcome, ErrorInfo, ModelAnswer, NodeStatus, Object, Reply, Work,
};

pub(super) fn finished(turn: &mut Turn<'_>, effect: &EffectId, outcome: EffectOutcome) -> Reply {
    if let EffectOutcome::Failed { error } = &outcome
        && let Some(reply) = turn.unannounced(effect, error)
    {
        return reply;
    }
    let nodes = turn.run.state.nodes.iter();
    let waiting = nodes.enumerate().find_map(|(ix, node)| {
        let (id, output) = match node.work.as_ref()? {
            Work::Http { effect, output, .. } => (effect, output.clone()),
            Work::Model { effect, .. } | Work::Tool { effect, .. } | Work::Pack { effect, .. } => {
                (effect, None)
            }
            Work::SecretEcho { effect, .. } => {
                (effect, Some(turn.run.def.nodes[ix].id.to_string()))
            }
            Work::Sleep { .. } | Work::Child { .. } => return None,
        };
        let open = node.status == NodeStatus::Running && node.retry_at.is_none();
        (open && id == effect).then_some((ix, output, node.last))
    });
    let Some((ix, output, Some(cause))) = waiting else {
        return Reply::Unchanged;
    };
    if turn.run.state.phase != Phase::Running {
        return Reply::Unchanged;
    }
    if let Some(Work::Tool { .. }) = turn.run.state.nodes[ix].work {
        turn.tool_answered(ix, outcome, cause);
        turn.advance();
        return Reply::Accepted;
    }
    match outcome {
        EffectOutcome::Pack(answer) => turn.pack_answered(ix, *answer, cause),
        EffectOutcome::Done { outputs } if turn.run.awaits_verdict(ix) => {
            turn.critic_answered(ix, &answer(&outputs), None, cause);
        }
        EffectOutcome::Failed { error } if turn.run.awaits_verdict(ix) => {
            turn.critic_failed(ix, &error, None, cause);
        }
        EffectOutcome::Done { outputs } if turn.run.call_of(ix).is_some() => {
            match serde_json::from_value::<ModelAnswer>(Value::Object(outputs)) {
                Ok(answer) => turn.model_answered(ix, answer, cause),
                Err(_) => {
                    let message = "the provider's answer is not one";
                    turn.fail_or_retry(ix, ErrorInfo::new("internal_error", message), cause);
                }
            }
        }
        EffectOutcome::Done { outputs } if supervises(turn, ix) => {
            let step = turn.deliberate(ix, Statement::read(&answer(&outputs)), cause);
            turn.follow(ix, step, cause);
        }
        EffectOutcome::Done { outputs } => {
            if let Kind::MemoryHook(MemoryHook::Redaction { .. }) = &turn.run.def.nodes[ix].kind {
                turn.try_to_remember_secret(ix, &outputs, cause);
                turn.advance();
                return Reply::Accepted;
            }
            let node = turn.run.def.nodes[ix].id.clone();
            let mut cause = cause;
            if let Some(name) = output {
                let value = answer(&outputs);
                cause = turn.set_variable(&name, Some(value), &node, cause);
            }
            turn.complete_node(ix, Done::with(outputs), cause);
        }
        EffectOutcome::Failed { error } => turn.fail_or_retry(ix, error, cause),
    }
    turn.advance();
    Reply::Accepted
}

fn supervises(turn: &Turn<'_>, ix: usize) -> bool {
    matches!(turn.run.def.nodes[ix].kind, Kind::Supervisor(_))
}

/// What goes into the author's output variable: an HTTP answer's body, or everything.
fn answer(outputs: &Object) -> Value {
    let body = outputs.get("body").cloned();
    body.unwrap_or_else(|| Value::Object(outputs.clone()))
}
