//! Several interrupts at once, answered in any order, early and late, twice and by timers: the run
//! ends the same in every order.

use super::gates::answer;
use super::harness::{RunHarness, object};
use super::workflow_builder::{WorkflowBuilder, workflow};
use crate::run::Refusal;
use proptest::prelude::*;
use serde_json::{Value, json};
use tandem_record::{Command, NodeId, NodeView, Object, RunStatus, TimerKey};

/// How long one escalation level lasts.
const LEVEL_MS: u64 = 1000;
const ROUNDS: u64 = 4;

#[derive(Clone, Copy, Debug)]
enum QuestionKind {
    Approval,
    Escalating,
    Reminding,
    Clarification,
    /// Continues with its default on a timeout.
    Defaulting,
    External,
}

/// An interrupt, the round in which it is answered, and whether the answer is valid.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: QuestionKind,
    round: u64,
}

impl Plan {
    fn config(self) -> (&'static str, Value) {
        let question = json!([{"id": "q", "question": "?"}]);
        let tandem = |policy: Value| json!({"onTimeout": policy});
        match self.kind {
            QuestionKind::Approval => ("core.approvalGate", json!({})),
            QuestionKind::Escalating => {
                let level = json!({"approverGroups": ["g"], "timeoutMs": LEVEL_MS});
                let levels = vec![level; 8];
                let tandem = tandem(json!({"policy": "escalate", "levels": levels}));
                (
                    "core.approvalGate",
                    json!({"timeoutMs": LEVEL_MS, "tandem": tandem}),
                )
            }
            QuestionKind::Reminding => {
                let tandem = tandem(json!({"policy": "remind", "everyMs": LEVEL_MS, "times": 2}));
                (
                    "core.approvalGate",
                    json!({"timeoutMs": LEVEL_MS, "tandem": tandem}),
                )
            }
            QuestionKind::Clarification => {
                ("core.clarificationGate", json!({"questions": question}))
            }
            QuestionKind::Defaulting => {
                let value = json!({"answers": {"q": "by default"}});
                let tandem = tandem(json!({"policy": "default", "value": value}));
                (
                    "core.clarificationGate",
                    json!({"questions": question, "timeoutMs": 2 * LEVEL_MS, "tandem": tandem}),
                )
            }
            QuestionKind::External => (
                "core.interrupt",
                json!({"kind": "external-event", "data": {"eventType": "e", "correlation": {}}}),
            ),
        }
    }

    fn answer(self, node: &str) -> Command {
        match self.kind {
            QuestionKind::Approval | QuestionKind::Escalating | QuestionKind::Reminding => {
                answer(node, json!({"action": "accept"}))
            }
            QuestionKind::Clarification | QuestionKind::Defaulting => {
                answer(node, json!({"answers": {"q": node}}))
            }
            QuestionKind::External => answer(node, json!({"from": node})),
        }
    }
}

fn workflow_of(plans: &[Plan]) -> WorkflowBuilder {
    let start = workflow("many").noops("root join");
    let gates = plans.iter().enumerate().fold(start, |workflow, (n, plan)| {
        let (type_id, config) = plan.config();
        workflow.node(&name(n), type_id, config)
    });
    (0..plans.len()).fold(gates, |workflow, n| {
        workflow.path(&format!("root {} join", name(n)))
    })
}

fn name(n: usize) -> String {
    format!("q{n}")
}

/// Runs the plans, in each round in the given order; every answer is given twice.
fn play(plans: &[Plan], order: &[usize], alarms: bool) -> (Object, Vec<NodeView>) {
    let mut run = RunHarness::started(workflow_of(plans));
    for round in 0..ROUNDS {
        for n in order.iter().copied().filter(|n| plans[*n].round == round) {
            let node = name(n);
            if alarms {
                let node = NodeId::new(node.as_str());
                run.when(Command::FireTimer(TimerKey::InterruptDeadline { node }));
            }
            let first = run.try_when(plans[n].answer(&node));
            let second = run.try_when(plans[n].answer(&node));
            assert!(
                matches!(second, Err(Refusal::AlreadyResolved(_))),
                "{first:?}, then {second:?}"
            );
        }
        run.elapse(LEVEL_MS);
    }
    assert_eq!(run.status(), RunStatus::Completed, "{plans:?}");
    let view = run.run().view();
    (view.variables, view.nodes)
}

fn plan() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![
        Just(QuestionKind::Approval),
        Just(QuestionKind::Escalating),
        Just(QuestionKind::Reminding),
        Just(QuestionKind::Clarification),
        Just(QuestionKind::Defaulting),
        Just(QuestionKind::External),
    ];
    (kind, 0..ROUNDS).prop_map(|(kind, round)| Plan { kind, round })
}

/// Plans, and an order to answer them in.
fn plans() -> impl Strategy<Value = (Vec<Plan>, Vec<usize>)> {
    prop::collection::vec(plan(), 1..7).prop_flat_map(|plans| {
        let order: Vec<usize> = (0..plans.len()).collect();
        (Just(plans), Just(order).prop_shuffle())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_answers_gives_the_same_result((plans, order) in plans(), alarms: bool) {
        let straight: Vec<usize> = (0..plans.len()).collect();
        prop_assert_eq!(play(&plans, &order, alarms), play(&plans, &straight, false));
    }
}

/// Events that arrive before, during or after a wait lead to the same end.
#[test]
fn position_of_an_external_event_does_not_matter() {
    let event = |id: &str, n: u32| Command::DeliverEvent {
        event_id: id.to_owned(),
        event_type: "e".to_owned(),
        payload: object(json!({"n": n})),
        by: None,
    };
    let wait = |n: u32| json!({"kind": "external-event", "data": {"eventType": "e", "correlation": {"n": n}}});
    let build = || {
        workflow("waits")
            .delay("nap", 100)
            .node("now", "core.interrupt", wait(1))
            .node("then", "core.interrupt", wait(2))
            .path("nap then")
    };
    let mut ends = Vec::new();
    for early in [true, false] {
        let mut run = RunHarness::started(build());
        if early {
            run.when(event("b", 2));
            run.when(event("a", 1));
            run.elapse(100);
        } else {
            run.elapse(100);
            run.when(event("a", 1));
            run.when(event("b", 2));
        }
        assert_eq!(run.status(), RunStatus::Completed);
        let outputs = |node: &str| run.node(node).outputs.clone();
        ends.push((outputs("now"), outputs("then")));
    }
    assert_eq!(ends[0], ends[1]);
}
