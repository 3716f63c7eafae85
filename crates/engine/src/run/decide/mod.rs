//! From a command to a decision. One file per command; this one only opens the door.

mod answers;
mod approval;
mod cancel;
mod child;
mod conversation;
mod create;
mod deny;
mod effect;
mod event;
mod held;
mod overdue;
mod pause;
mod resolve;
mod resume;
mod timer;

use super::refusal::Undecided;
use super::state::{Phase, Run};
use super::turn::{Context, Decision, Turn};
use tandem_record::{Command, ErrorInfo, Reply};

pub use create::{bear, create};
pub(super) use create::{check, check_served, may_test};

/// What `command` does to `run` now. Pure: the same arguments always give the same decision.
pub fn decide(run: &Run, command: Command, cx: &Context<'_>) -> Result<Decision, Undecided> {
    cx.unless_put_off(|| decide_here(run, command, cx))
}

fn decide_here(run: &Run, command: Command, cx: &Context<'_>) -> Result<Decision, Undecided> {
    let mut turn = Turn::new(run, cx);
    let reply = match command {
        Command::Cancel {
            reason,
            by,
            by_parent,
        } => cancel::cancel(&mut turn, reason, by, by_parent),
        Command::Pause { reason, policy } => pause::pause(&mut turn, reason, policy)?,
        Command::Resume { reason } => resume::resume(&mut turn, reason)?,
        Command::TimerFired(key) => timer::fired(&mut turn, &key),
        Command::EffectFinished { effect, outcome } => {
            effect::finished(&mut turn, &effect, outcome)
        }
        Command::ChildReported { node, outcome } => child::reported(&mut turn, &node, outcome),
        Command::ResolveInterrupt {
            node,
            interrupt,
            value,
            by,
            by_link: _,
            standing,
        } => {
            let answer = resolve::Answer {
                standing,
                ..resolve::Answer::of(value, by)
            };
            resolve::resolve(&mut turn, &node, interrupt.as_ref(), answer)?
        }
        Command::DenyDecision {
            node,
            interrupt,
            by,
            why,
        } => deny::deny(&mut turn, &node, interrupt.as_ref(), by, why)?,
        Command::DeliverEvent {
            event_id,
            event_type,
            payload,
            by,
        } => event::deliver(&mut turn, event_id, event_type, payload, by)?,
        Command::Continue => go_on(&mut turn),
    };
    // Not every command advances the run; what it brings is kept all the same.
    if matches!(turn.run.state.phase, Phase::Running | Phase::Paused) {
        turn.fail_if_too_large();
    }
    turn.decided(reply)
}

/// Ends a run that cannot go on for a reason of its host's.
pub fn abandon(run: &Run, error: ErrorInfo, cx: &Context<'_>) -> Decision {
    let mut turn = Turn::new(run, cx);
    if !turn.run.state.phase.is_terminal() {
        let cause = turn.run.state.head;
        turn.fail_run(error, None, cause);
    }
    turn.finish(Reply::Accepted)
}

fn go_on(turn: &mut Turn<'_>) -> Reply {
    if turn.run.state.phase != Phase::Running {
        return Reply::Unchanged;
    }
    turn.advance();
    Reply::Accepted
}
