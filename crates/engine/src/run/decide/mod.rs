//! Turns a command into a decision. One file per command; this file only dispatches.

mod cancel;
mod child;
mod create;
mod deny;
mod effect;
mod event;
mod pause;
mod resolve;
mod resume;
mod timer;

use crate::run::children::flow_reported;
use crate::run::draft::{Context, Decision, DecisionDraft};
use crate::run::lifecycle::{Phase, too_much_to_check, work_exceeded};
use crate::run::questions::Answer;
use crate::run::refusal::Undecided;
use crate::run::state::Run;
use tandem_record::{Command, ErrorInfo, Reply};

pub(crate) use create::check_all_inputs;
pub(super) use create::{check, check_inputs, check_served};
pub use create::{create, create_child_run};

/// What `command` does to `run` now. Pure: the same arguments always give the same decision.
pub fn decide(run: &Run, command: &Command, cx: &Context<'_>) -> Result<Decision, Undecided> {
    cx.within_work_limit(
        |cx| decide_command(run, command.clone(), cx),
        |cx| match command {
            // No caller waits for these. Repeated, they would exceed the limit again.
            Command::FireTimer(_)
            | Command::FinishEffect { .. }
            | Command::ReportChildOutcome { .. }
            | Command::ReportFlow(_)
            | Command::Continue => Ok(abandon(run, work_exceeded(), cx)),
            Command::Cancel { .. }
            | Command::Pause { .. }
            | Command::Resume { .. }
            | Command::ResolveInterrupt { .. }
            | Command::DenyDecision { .. }
            | Command::DeliverEvent { .. } => Err(too_much_to_check().into()),
        },
    )
}

fn decide_command(run: &Run, command: Command, cx: &Context<'_>) -> Result<Decision, Undecided> {
    let mut draft = DecisionDraft::new(run, cx);
    let reply = match command {
        Command::Cancel {
            reason,
            by,
            by_parent,
        } => cancel::cancel(&mut draft, reason, by, by_parent),
        Command::Pause { reason, policy } => pause::pause(&mut draft, reason, policy)?,
        Command::Resume { reason } => resume::resume(&mut draft, reason)?,
        Command::FireTimer(key) => timer::fired(&mut draft, &key),
        Command::FinishEffect { effect, outcome } => effect::finished(&mut draft, &effect, outcome),
        Command::ReportChildOutcome { node, outcome } => {
            child::reported(&mut draft, &node, outcome)
        }
        Command::ReportFlow(report) => flow_reported(&mut draft, *report),
        Command::ResolveInterrupt {
            node,
            interrupt,
            value,
            by,
            by_link: _,
            decider,
        } => {
            let answer = Answer {
                decider,
                ..Answer::of(value, by)
            };
            resolve::resolve(&mut draft, &node, interrupt.as_ref(), answer)?
        }
        Command::DenyDecision {
            node,
            interrupt,
            by,
            why,
        } => deny::deny(&mut draft, &node, interrupt.as_ref(), by, why)?,
        Command::DeliverEvent {
            event_id,
            event_type,
            payload,
            by,
        } => event::deliver(&mut draft, event_id, event_type, payload, by)?,
        Command::Continue => continue_run(&mut draft),
    };
    // Not every command advances the run, but what it recorded is kept.
    if matches!(draft.run.phase(), Phase::Running | Phase::Paused) {
        draft.fail_if_too_large();
    }
    draft.into_decision(reply)
}

/// Fails a run that cannot continue for a reason of the host.
pub fn abandon(run: &Run, error: ErrorInfo, cx: &Context<'_>) -> Decision {
    let mut draft = DecisionDraft::new(run, cx);
    if !draft.run.phase().is_terminal() {
        let cause = draft.run.head();
        draft.fail_run(error, None, cause);
    }
    draft.finish(Reply::Accepted)
}

fn continue_run(draft: &mut DecisionDraft<'_>) -> Reply {
    if draft.run.phase() != Phase::Running {
        return Reply::Unchanged;
    }
    draft.advance();
    Reply::Accepted
}
