//! Random workflows under random interleavings of everything that can happen to a run. The harness
//! checks its invariants after each step; here: every run ends exactly once.

use super::forks::assert_same_course;
use super::harness::{RunHarness, object};
use super::random_graphs::{RandomWorkflow, random_workflow};
use super::workflow_builder::workflow;
use proptest::prelude::*;
use serde_json::json;
use tandem_record::{
    Command, DrainPolicy, Effect, EffectKind, EffectOutcome, ErrorInfo, Event, ForkMode,
    RecordedEvent, RunId, RunStatus, TimerKey, WorkflowId,
};

/// One step; its numbers choose among what is possible at that time.
#[derive(Debug, Clone, Copy)]
enum Step {
    Elapse(u64),
    /// An effect finishes: the first number chooses it, the second its outcome.
    Effect(usize, u8),
    /// A timer that may not be due, or may not exist.
    Timer(usize),
    Cancel,
    Pause(bool),
    Resume,
    Continue,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u64..300).prop_map(Step::Elapse),
        8 => (any::<usize>(), any::<u8>()).prop_map(|(n, end)| Step::Effect(n, end)),
        1 => any::<usize>().prop_map(Step::Timer),
        1 => Just(Step::Pause(true)),
        1 => Just(Step::Pause(false)),
        3 => Just(Step::Resume),
        1 => Just(Step::Continue),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cancel = prop::option::weighted(0.2, Just(Step::Cancel));
    (prop::collection::vec(step(), 0..40), cancel, any::<usize>()).prop_map(
        |(mut steps, cancel, at)| {
            if let Some(cancel) = cancel {
                steps.insert(at % (steps.len() + 1), cancel);
            }
            steps
        },
    )
}

fn take(run: &mut RunHarness, step: Step) {
    match step {
        Step::Elapse(ms) => run.elapse(ms),
        Step::Effect(n, end) => {
            let waiting: Vec<Effect> = run.outbox().cloned().collect();
            let children: Vec<RunId> = run
                .created_children()
                .map(|new_child| new_child.child.clone())
                .collect();
            let n = n % (waiting.len() + children.len()).max(1);
            if let Some(effect) = waiting.get(n) {
                finish(run, effect, end);
            } else if let Some(child) = children.get(n - waiting.len()) {
                run.child_ends(child, child_status(end));
            }
        }
        Step::Timer(n) => {
            let node = format!("n{}", n % 8);
            let attempt = u32::try_from(n % 3).expect("small");
            run.fire(TimerKey::NodeWake {
                node: node.into(),
                attempt,
            });
        }
        Step::Cancel => {
            run.cancel();
        }
        Step::Pause(true) => drop(run.pause(DrainPolicy::Immediate)),
        Step::Pause(false) => drop(run.pause(DrainPolicy::DrainCurrentNode)),
        Step::Resume => drop(run.resume()),
        Step::Continue => {
            run.when(Command::Continue);
        }
    }
}

fn finish(run: &mut RunHarness, effect: &Effect, end: u8) {
    match &effect.kind {
        EffectKind::Http { .. }
        | EffectKind::Model { .. }
        | EffectKind::Tool { .. }
        | EffectKind::Pack { .. }
        | EffectKind::SecretEcho { .. } => {
            let outcome = match end % 4 {
                0 => EffectOutcome::Failed {
                    error: ErrorInfo::new("broken", "for good"),
                },
                1 => EffectOutcome::Failed {
                    error: ErrorInfo::new("trouble", "for now").retryable(),
                },
                _ => EffectOutcome::Done {
                    outputs: object(json!({"result": {"content": []}})),
                },
            };
            run.finish(effect.id.clone(), outcome);
        }
        EffectKind::CancelChild { .. }
        | EffectKind::StartFlow { .. }
        | EffectKind::CancelFlow { .. }
        | EffectKind::NotifySession { .. }
        | EffectKind::AskSession { .. }
        | EffectKind::CloseSessionQuestion { .. }
        | EffectKind::NotifyParent { .. }
        | EffectKind::NotifyCallback { .. }
        | EffectKind::NotifyPeople { .. } => {
            run.performed(&effect.id);
        }
        EffectKind::Continue => {
            run.performed(&effect.id);
            run.when(Command::Continue);
        }
    }
}

fn child_status(end: u8) -> RunStatus {
    match end % 4 {
        0 => RunStatus::Failed,
        1 => RunStatus::Cancelled,
        _ => RunStatus::Completed,
    }
}

/// Runs to the end without further interference: effects return, time passes, paused runs resume.
fn play_out(run: &mut RunHarness) {
    for round in 0..200 {
        if run.status().is_terminal() {
            return;
        }
        drop(run.resume());
        let waiting: Vec<Effect> = run.outbox().cloned().collect();
        for effect in waiting {
            finish(run, &effect, 2);
        }
        let children: Vec<RunId> = run
            .created_children()
            .map(|new_child| new_child.child.clone())
            .collect();
        for child in children {
            run.child_ends(&child, RunStatus::Completed);
        }
        run.elapse(100);
        assert!(round < 199, "the run never ends: {:?}", run.timers());
    }
}

fn check(random: &RandomWorkflow, steps: &[Step], starts: u32) {
    let mut run = RunHarness::new(random.document()).with_workflow(workflow("child").noops("n"));
    run.limits.max_starts_per_decision = starts;
    run.limits.max_in_flight = 3;
    run.limits.max_node_executions = 60;
    run.create(json!({}));
    for step in steps {
        take(&mut run, *step);
    }
    play_out(&mut run);
    let terminal = run.log().iter().filter(|r| r.event.is_terminal()).count();
    assert_eq!(terminal, 1);
    assert!(run.log().last().expect("a log").event.is_terminal());
    assert_eq!(run.run().definition().id(), &WorkflowId::new("random"));
    fork_everywhere(&run);
}

/// The replay of a cancelled run repeats it up to the cancel and ends by itself.
#[track_caller]
fn assert_goes_on_without_cancel(source: &RunHarness, replay: &RunHarness) {
    let cancel = |r: &&RecordedEvent| {
        !matches!(
            r.event,
            Event::RunCancelled { .. }
                | Event::NodeCancelled { .. }
                | Event::RunCancelRequested { .. }
        )
    };
    let repeated = source.log().iter().take_while(cancel).count();
    assert_eq!(source.log()[1..repeated], replay.log()[1..repeated]);
    assert!(replay.status().is_terminal());
    assert_eq!(replay.outbox().count(), 0, "a replay does nothing");
    assert!(replay.timers().is_empty(), "a replay waits for nothing");
}

/// A replay from any event is the same run again; a branch from any event ends.
fn fork_everywhere(run: &RunHarness) {
    let length = run.log().len();
    for from in (0..length).step_by(1 + length / 12) {
        let from = from as u64;
        let replay = run.fork(ForkMode::Replay, from);
        if run.status() == RunStatus::Cancelled {
            assert_goes_on_without_cancel(run, &replay);
        } else {
            assert_same_course(run, &replay);
        }
        if from.is_multiple_of(2) {
            let mut branch = run.fork(ForkMode::Branch, from);
            drop(branch.resume());
            play_out(&mut branch);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_exactly_once(random in random_workflow(), steps in steps(), starts in 1_u32..20) {
        check(&random, &steps, starts);
    }
}
