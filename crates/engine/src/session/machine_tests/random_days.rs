//! Random sequences of what can happen to a session. Nothing panics, folding agrees with deciding (the
//! harness checks it), and no turn is left behind.

use super::flows::route_on_start;
use super::harness::{Code, TestSession, code, done, effect, failed, value};
use serde_json::json;
use std::collections::BTreeSet;
use tandem_record::Seq;
use tandem_record::conversation::{
    AdminRequest, AgentMode, ChatAnswer, ChatToolCall, CodeOutcome, DeskAction, DivergenceAction,
    DraftDecision, OnActiveFlow, ParentNode, SessionCommand, SessionEventBody as Body, SideMessage,
    WorkflowResult,
};

const SEEDS: u64 = 150;
const STEPS: u32 = 60;

/// A small generator, so that a seed reproduces a failing sequence.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())].clone()
    }
}

/// A flow that does one of everything.
fn everything(mode: &'static str) -> Code {
    let wait = match mode {
        "live_takeover" => "live_handback",
        _ => "admin_resolution",
    };
    code(move |step, _, _| match step {
        0 => effect(json!({"type": "ask", "key": "x", "text": "x?",
            "reminders": [{"afterSeconds": 30, "text": "well?"}]})),
        1 => effect(json!({"type": "interrupt.confirm", "question": "Sure?"})),
        2 => effect(json!({"type": "tool", "name": "note", "args": {}, "onError": "return"})),
        3 => effect(json!({"type": "interrupt.escalate", "mode": mode, "reason": "r"})),
        4 => effect(json!({"type": "interrupt.wait", "waitFor": wait})),
        5 => effect(json!({"type": "workflow.run", "workflowId": "w", "timeoutSeconds": 60})),
        6 => effect(json!({"type": "interrupt.wait", "waitFor": "timeout", "timeoutSeconds": 5})),
        _ => done(),
    })
}

fn desk(chance: &mut Chance) -> TestSession {
    let config = json!({
        "beforeLLM": {"$fn": true}, "beforeResponse": {"$fn": true}, "onResponse": {"$fn": true},
        "tools": [{"name": "note", "kind": "record", "approval": chance.pick(&["user", "admin"])}],
        "onNewMessage": chance.pick(&["queue", "interrupt"]),
        "onDivergence": chance.pick(&["park", "fail", "restart"]),
        "inbound": {"debounceMs": chance.pick(&[0, 500])},
        "consent": {"stopKeywords": ["stop"], "startKeywords": ["go"]},
        "profileTool": true,
        "hitl": {"escalationDefaults": {"claimStopsTimeout": chance.below(2) == 0},
            "humanKeyword": "human", "offerHuman": true,
            "humanMode": chance.pick(&["async_resolution", "live_takeover"]),
            "takeover": {"idleHandbackSeconds": 300, "repromptOnHandback": chance.below(2) == 0}, "userCancelKeywords": ["forget it"],
            "asyncPendingPolicy": {"behavior": chance.pick(&["noop", "queue"])}},
    });
    let mode = chance.pick(&["async_resolution", "live_takeover"]);
    let flows = [("everything", everything(mode))];
    let mut desk = TestSession::new(config, &flows);
    route_on_start(&mut desk);
    desk.begins_at_once = chance.below(2) == 0;
    let broken = chance.below(4) == 0;
    desk.functions.insert(
        "onResponse".to_owned(),
        Box::new(|_| CodeOutcome {
            side_messages: vec![SideMessage {
                to: "u1".to_owned(),
                text: "by the way".to_owned(),
            }],
            ..CodeOutcome::default()
        }),
    );
    desk.functions.insert(
        "beforeResponse".to_owned(),
        Box::new(move |_| match broken {
            true => failed("timeout", "slow"),
            false => value(json!({"action": "replace", "reply": "said"})),
        }),
    );
    desk
}

fn act(desk: &mut TestSession, chance: &mut Chance) {
    let text = chance.pick(&[
        "hi",
        "yes",
        "no",
        "start everything",
        "human",
        "stop",
        "go",
        "forget it",
        "/usage",
        "/nope",
    ]);
    match chance.below(20) {
        0..=5 if desk.state().ended().is_none() => desk.receive(text),
        0..=5 => desk.perform_all(),
        6 => desk.wait_seconds([0, 10, 40, 400][chance.below(4)]),
        7 => drop(desk.resolve(chance.below(2) == 0, "ana")),
        8 => {
            let mode = chance.pick(&[AgentMode::Auto, AgentMode::DraftOnly, AgentMode::Off]);
            drop(desk.act("ana", AdminRequest::SetMode { mode }));
        }
        9 => {
            let draft = desk.state().drafts().next().map(|(id, _)| id.clone());
            if let Some(draft) = draft {
                let decision = chance.pick(&[DraftDecision::Accept, DraftDecision::Reject]);
                drop(desk.act("ana", AdminRequest::DecideDraft { draft, decision }));
            }
        }
        10 => drop(desk.act("ana", AdminRequest::AbortFlow)),
        15 if chance.below(5) == 0 => drop(desk.act("ana", AdminRequest::EndSession)),
        11 => {
            let parent = ParentNode {
                run_id: "run-9".into(),
                node_id: "n".into(),
                flow_run_id: None,
                dispatched_at: Seq(0),
            };
            let on_active = chance.pick(&[
                OnActiveFlow::Wait,
                OnActiveFlow::Fail,
                OnActiveFlow::Preempt,
            ]);
            drop(desk.command(SessionCommand::StartFlow {
                flow_id: "everything".into(),
                input: None,
                parent: parent.clone(),
                on_active,
            }));
            if chance.below(3) == 0 {
                drop(desk.command(SessionCommand::CancelFlow { parent }));
            }
        }
        12 => {
            let start = desk.workflows.last().and_then(|w| w.interrupt_id.clone());
            if let Some(interrupt) = start {
                let result = Box::new(WorkflowResult {
                    run_id: "run-1".into(),
                    status: "completed".to_owned(),
                    output: None,
                    error: None,
                });
                drop(desk.command(SessionCommand::WorkflowFinished { interrupt, result }));
            }
        }
        13 => {
            let run = desk
                .state()
                .diverged()
                .next()
                .map(|flow| flow.run_id().clone());
            if let Some(run) = run {
                desk.restore_code();
                let actions = [
                    DivergenceAction::Abort,
                    DivergenceAction::Retry,
                    DivergenceAction::Restart,
                ];
                let action = chance.pick(&actions);
                drop(desk.act("ana", AdminRequest::SettleDivergence { run, action }));
            } else if desk.state().flow().is_some() {
                desk.change_code();
            }
        }
        14 => {
            let name = chance.pick(&["note", "talk_to_human", "update_my_profile", "nothing"]);
            desk.answers.push_back(Ok(ChatAnswer {
                tool_calls: vec![ChatToolCall {
                    id: "c1".to_owned(),
                    name: name.to_owned(),
                    args: json!({}),
                }],
                ..ChatAnswer::default()
            }));
        }
        16 => {
            let escalation = desk.state().escalations().last().map(|e| e.id.clone());
            if let Some(escalation) = escalation {
                let assigns = DeskAction::Assign {
                    to: "ben".to_owned(),
                };
                let action = chance.pick(&[DeskAction::Claim, DeskAction::Release, assigns]);
                let by = chance.pick(&["ana", "ben"]);
                drop(desk.act(by, AdminRequest::Desk { escalation, action }));
            }
        }
        17 | 18 => {
            let request = chance.pick(&[
                AdminRequest::TakeOver,
                AdminRequest::SendTakeoverMessage {
                    message_id: "h-1".into(),
                    text: "Ana here.".to_owned(),
                },
                AdminRequest::HandBack { note: None },
            ]);
            let by = chance.pick(&["ana", "ben"]);
            drop(desk.act(by, request));
        }
        _ => {
            desk.held = chance.pick(&[
                vec![],
                vec!["session.model"],
                vec!["session.tool"],
                vec!["session.send"],
            ])
        }
    }
}

/// Z-16 (half: turns one after the other, in random days), Z-183 (half: timers and questions follow from the state)
#[test]
fn whatever_happens_the_session_stays_sound() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut desk = desk(&mut chance);
        desk.receive("hi");
        for _ in 0..STEPS {
            act(&mut desk, &mut chance);
            if chance.below(3) > 0 {
                desk.perform_all();
            }
        }
        desk.held.clear();
        desk.perform_all();
        let state = desk.state();
        assert!(
            state.turn().is_none(),
            "seed {seed}: a turn is stuck at {:?}",
            state.turn()
        );
        assert!(!state.has_deliveries(), "seed {seed}: a delivery is stuck");
        if state.ended().is_none() {
            drop(desk.act("ana", AdminRequest::EndSession));
        }
        assert!(desk.state().required_timers().is_empty(), "seed {seed}");
        let open = desk.state().escalations().filter(|e| e.is_open()).count();
        assert_eq!(open, 0, "seed {seed}");
        assert_eq!(desk.state().diverged().count(), 0, "seed {seed}");
        seen.extend(desk.events.iter().map(tag));
    }
    for expected in EXPECTED {
        assert!(seen.contains(expected), "no sequence had {expected}");
    }
}

/// What the sequences must have met, or they prove little.
const EXPECTED: [&str; 30] = [
    "burst_closed",
    "turn_dropped",
    "profile_changed",
    "mode_changed",
    "flow_paused",
    "flow_resumed",
    "flow_ended",
    "flow_diverged",
    "divergence_settled",
    "flow_start_deferred",
    "flow_start_withdrawn",
    "interrupt_late",
    "confirm_resolved",
    "confirm_timed_out",
    "confirm_unrecognized",
    "reminder_sent",
    "approval_requested",
    "approval_decided",
    "escalation_claimed",
    "escalation_released",
    "escalation_assigned",
    "escalation_resolved",
    "escalation_canceled",
    "pending_message",
    "draft_held",
    "draft_decided",
    "response_suppressed",
    "live_takeover_started",
    "live_takeover_message",
    "live_takeover_ended",
];

/// The stored name of an event.
fn tag(event: &Body) -> String {
    let event = serde_json::to_value(event).expect("plain data");
    event["t"].as_str().expect("a name").to_owned()
}
