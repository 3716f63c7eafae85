//! Agents for tests of conversations: configurations as JSON, flows as lists of effects, a model that repeats what it
//! is told.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tandem_engine::agent::{AgentSpec, LoadedFlow};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{
    AgentStatus, AgentSummary, ChatAnswer, CodeCall, CodeError, CodeOutcome, FlowFailure,
    FlowRecord, FlowRunStart, ProviderCircuitChange,
};
use tandem_record::{AgentId, EffectId, Object, Owner, Recorded, TenantId, Timestamp};
use tandem_runtime::conversation::{
    AgentHost, CallContext, ChatModelRequest, Conversations, FilterFailure, FlowProgram, LifeSign,
    MediaContent, OutgoingMessage, OwnAccountMessage, ReadKeys, RebuildError, SendError,
    TakenMessage, TransportDelivery, TransportRefusal, TransportRequest,
};
use tokio::sync::Notify;

/// The agents `open` and `strict`, which are on the web, and `closed` and `narrow`, which are not. `narrow` takes few
/// messages, runs its flows again after every turn, and knows one admin by the token `t`. `staffed` has a desk: `ana-token`
/// and `ben-token` may decide, `eva-token` may not, and a claim stops the time.
/// Keys with the role `planner` manage the schedules of `planned`.
/// `bridged` and `masked` relay to the desk `finance`, as does `guarded`, which knows admins by tokens.
/// `relayed` passes messages on to the chat `desk` while a person has them.
pub(crate) struct ChatAgents {
    agents: BTreeMap<&'static str, Arc<AgentSpec>>,
    switches: Arc<Switches>,
}

/// What a test does to the agents.
#[derive(Default)]
pub(crate) struct Switches {
    /// A model that was told to wait answers when this is notified.
    pub(crate) answers: Notify,
    /// The file of `open` says no more that it is on the web.
    pub(crate) is_closed: AtomicBool,
    /// No agent has a good version.
    pub(crate) has_no_good_version: AtomicBool,
    /// The code of flows does something else when it is run again.
    pub(crate) is_nondeterministic: AtomicBool,
    /// What becomes of circuits during the next model call.
    pub(crate) circuits: Mutex<Vec<ProviderCircuitChange>>,
    /// No text can be sent.
    pub(crate) refuses_texts: AtomicBool,
    /// When a text was refused.
    pub(crate) refused_at: Mutex<Vec<Timestamp>>,
}

/// An answer with a key of somebody, as a model streams it.
const LEAK: [&str; 5] = ["it is sk-", "abcdefgh", "ijklmnop", "qrstuv", " now"];

/// Tries to leave the place it is shown in.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)></script>\"'";

impl ChatAgents {
    pub(crate) fn conversations() -> Conversations {
        Self::switched_by(Arc::default())
    }

    pub(crate) fn switched_by(switches: Arc<Switches>) -> Conversations {
        let flow = |id: &str| LoadedFlow {
            flow_id: id.to_owned(),
            version: format!("{id}-v1"),
            ..LoadedFlow::default()
        };
        let spec = |id: &str, config: Value| {
            let flows = ["refund", "book", "relay", "advise", "bridge"].map(flow);
            let spec = AgentSpec::compile(id, &config, &flows);
            Arc::new(spec.expect("a valid agent"))
        };
        let base = json!({
            "prompt": "You are the desk.",
            "finalizationStrategy": "streaming",
            "beforeLLM": {"$fn": true},
            "adminAuth": {"builtin": "keys"},
            "rateLimitPerUserPerMinute": 30,
            "speech": {"provider": "scripted"},
        });
        let with = |fields: Value| {
            let mut config = base.clone();
            let fields = fields.as_object().cloned().unwrap_or_default();
            config.as_object_mut().expect("an object").extend(fields);
            config
        };
        let web = json!({"title": HOSTILE, "origins": ["https://shop.example"]});
        let open = with(json!({"transports": {"web": web}}));
        let tight = json!({"maxConnections": 2, "stateKeys": ["shown"]});
        let tokens = json!({"tokens": [], "roles": {}});
        let strict = with(json!({"transports": {"web": tight}, "adminAuth": tokens}));
        let token = json!({"hash": "sha256:e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8",
            "actorId": "ana", "role": "boss"});
        let auth = json!({"tokens": [token], "roles": {"boss": ["audit.view", "flow.manage"]}});
        let narrow = with(
            json!({"rateLimitPerUserPerMinute": 2, "maxInboundConcurrency": 1,
            "strict": true, "adminAuth": auth}),
        );
        let person = |hash: &str, actor: &str, role: &str| json!({"hash": format!("sha256:{hash}"), "actorId": actor, "role": role});
        let people = json!([
            person(
                "fdb19af2cd8f3f7de8c00cbdd4c4838366cbe4fa2e7ae38ba7f5847e75ad4bb5",
                "ana",
                "boss"
            ),
            person(
                "096835dcf70a20417cf2111f4634cbb41be9a56a0e9be1a68a597d92e460e3c0",
                "ben",
                "boss"
            ),
            person(
                "3c8c11b549da3334dcdf59597c1df511b22d220c8efc4a64157d30cb287e31ab",
                "eva",
                "guest"
            ),
        ]);
        let rights = json!({"boss": ["hitl.escalation.view", "hitl.escalation.resolve",
                "hitl.takeover.start", "hitl.takeover.end", "hitl.takeover.message",
                "schedule.manage",
                "hitl.proxy.view", "hitl.proxy.input", "hitl.proxy.stop"],
            "guest": ["hitl.escalation.view"]});
        let staffed = with(json!({
            "adminAuth": {"tokens": people.clone(), "roles": rights.clone()},
            "model": {"provider": "scripted", "script": {"answers": []}},
            "hitl": {"humanKeyword": "human",
                "escalationDefaults": {"queue": "front", "claimStopsTimeout": true}},
        }));
        let silent = with(json!({
            "adminAuth": {"tokens": people.clone(), "roles": rights.clone()},
        }));
        let desk = |address: &str, actor: &str, role: &str| json!({"transport": "loopback", "address": address, "actorId": actor, "role": role});
        let chat = [desk("desk", "ana", "boss"), desk("guest", "eva", "guest")];
        let finance =
            json!({"finance": {"transport": "loopback", "address": "finance", "label": "Finance"}});
        let bridged = |redaction: &str| {
            with(json!({
                "adminAuth": {"builtin": "keys", "roles": {"desk": ["hitl.proxy.view"]}},
                "hitl": {"targets": finance},
                "redaction": redaction,
            }))
        };
        let guarded = with(json!({
            "adminAuth": {"tokens": people.clone(), "roles": rights.clone()},
            "hitl": {"targets": finance},
        }));
        let relayed = with(json!({
            "adminAuth": {"tokens": people, "chat": chat, "roles": rights},
            "model": {"provider": "scripted", "script": {"answers": []}},
            "hitl": {"takeover": {"adapter": "front", "onExternalReply": true},
                "targets": {"front": {"transport": "loopback", "address": "desk"},
                    "back": {"transport": "own", "address": "colleague"}}},
        }));
        let planned = with(json!({
            "adminAuth": {"builtin": "keys", "roles": {"planner": ["schedule.manage"]}},
        }));
        let agents = [
            ("bridged", spec("bridged", bridged("full"))),
            ("masked", spec("masked", bridged("hashed"))),
            ("guarded", spec("guarded", guarded)),
            ("planned", spec("planned", planned)),
            ("relayed", spec("relayed", relayed)),
            ("staffed", spec("staffed", staffed)),
            ("silent", spec("silent", silent)),
            ("narrow", spec("narrow", narrow)),
            ("open", spec("open", open)),
            ("strict", spec("strict", strict)),
            ("closed", spec("closed", base.clone())),
        ];
        let agents = Self {
            agents: agents.into(),
            switches,
        };
        // As a server reads it: no program of a flow is kept between turns.
        let is_cold = std::env::var("TANDEM_TEST_COLD").is_ok_and(|value| value == "1");
        Conversations::new(Arc::new(agents), is_cold)
    }
}

/// What each flow yields, one after the other.
fn effects(flow: &str) -> Vec<Value> {
    match flow {
        "bridge" => vec![
            json!({"type": "interrupt.proxy.start", "target": "front"}),
            json!({"type": "interrupt.proxy.wait"}),
            json!({"type": "say", "text": "The desk has answered."}),
        ],
        "book" => vec![
            json!({"type": "interrupt.confirm", "question": "Monday?", "positiveKeywords": ["sure"]}),
            json!({"type": "say", "text": "Booked."}),
        ],
        "relay" => vec![
            json!({"type": "interrupt.proxy.start", "target": "finance"}),
            json!({"type": "interrupt.proxy.wait", "processBeforeForward": {"$fn": true}}),
            json!({"type": "interrupt.proxy.wait"}),
        ],
        "advise" => vec![
            json!({"type": "interrupt.proxy.start", "target": "finance", "mode": "shadow"}),
            json!({"type": "ask", "key": "order", "text": "Which order?"}),
            json!({"type": "interrupt.proxy.wait"}),
            json!({"type": "ask", "key": "more", "text": "More?"}),
        ],
        _ => vec![
            json!({"type": "interrupt.escalate", "mode": "async_resolution", "reason": HOSTILE,
                   "priority": "high", "metadata": {"amount": 700, "note": HOSTILE}}),
            json!({"type": "say", "text": "A colleague looks at it."}),
            json!({"type": "interrupt.wait", "waitFor": "admin_resolution"}),
            json!({"type": "say", "text": "Your refund is decided."}),
        ],
    }
}

struct ListedEffects {
    effects: Vec<Value>,
    next: usize,
}

impl ListedEffects {
    fn step(&mut self) -> ProgramStep {
        self.next += 1;
        match self.effects.get(self.next - 1) {
            Some(effect) => ProgramStep::Yielded(effect.clone()),
            None => ProgramStep::Returned(Value::Null),
        }
    }
}

impl FlowProgram for ListedEffects {
    fn resume(&mut self, _: Resume, _: &Object, _: Timestamp) -> ProgramStep {
        self.step()
    }

    fn check_reply(&mut self, value: &Value, _: Timestamp) -> Result<Value, Vec<String>> {
        Ok(value.clone())
    }

    /// `APPROVE` is forwarded in other words, `secret` makes the filter fail.
    fn filter_input(
        &mut self,
        input: &Value,
        _: &ReadKeys,
        _: u64,
        _: Timestamp,
    ) -> Result<Value, FilterFailure> {
        match input["text"].as_str() {
            Some("APPROVE") => Ok(json!({"text": "Your refund is approved.", "reason": "decided"})),
            Some("secret") => Err(FilterFailure {
                message: "not for users".to_owned(),
                is_lost: false,
            }),
            _ => Ok(json!({})),
        }
    }

    fn close(&mut self) -> Vec<Value> {
        Vec::new()
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

#[async_trait]
impl AgentHost for ChatAgents {
    fn agent(&self, agent: &AgentId) -> Option<Arc<AgentSpec>> {
        if self.switches.has_no_good_version.load(Ordering::Relaxed) {
            return None;
        }
        let id = match self.switches.is_closed.load(Ordering::Relaxed) {
            true => "closed",
            false => agent.as_str(),
        };
        self.agents.get(id).cloned()
    }

    fn summaries(&self) -> Vec<AgentSummary> {
        let ids = self.agents.keys().map(|id| AgentSummary {
            id: (*id).to_owned(),
            status: AgentStatus::Ready,
            flows: Vec::new(),
            errors: Vec::new(),
        });
        ids.collect()
    }

    fn flow_source(&self, _: &AgentId, _: &str) -> Option<Arc<str>> {
        None
    }

    fn start_program(
        &self,
        start: &FlowRunStart,
        _: Timestamp,
    ) -> Result<(Box<dyn FlowProgram>, ProgramStep), FlowFailure> {
        let mut program = ListedEffects {
            effects: effects(start.flow_id.as_str()),
            next: 0,
        };
        let step = program.step();
        Ok((Box::new(program), step))
    }

    fn rebuild_program(
        &self,
        _: Option<&str>,
        journal: &[Recorded<FlowRecord>],
    ) -> Result<Box<dyn FlowProgram>, RebuildError> {
        let records = journal.iter().map(|recorded| &recorded.event);
        let flow = records.clone().find_map(|record| match record {
            FlowRecord::Started(start) => Some(start.flow_id.clone()),
            _ => None,
        });
        if self.switches.is_nondeterministic.load(Ordering::Relaxed) {
            return Err(RebuildError::Diverged {
                step: 0,
                expected: json!({"type": "say", "text": "a"}),
                actual: json!({"type": "say", "text": "b"}),
            });
        }
        let yielded = records.filter(|record| matches!(record, FlowRecord::Effect { .. }));
        Ok(Box::new(ListedEffects {
            effects: effects(flow.expect("a journal begins").as_str()),
            next: yielded.count(),
        }))
    }

    /// `refund`, `book`, `relay`, `advise` and `bridge` start the flows of these names; `keys` sets keys of the session; `name` answers with the
    /// name of the user.
    async fn call_code(&self, call: &CodeCall, context: &CallContext) -> CodeOutcome {
        let text = call.args.first().and_then(|input| input["text"].as_str());
        let mut done = CodeOutcome::default();
        match text {
            Some(flow @ ("refund" | "book" | "relay" | "advise" | "bridge")) => {
                done.value = Some(json!({"action": "route_flow", "flowId": flow}));
            }
            Some("name") => {
                let name = &context.data["user"]["displayName"];
                done.value = Some(json!({"action": "skip_llm", "draftReply": name}));
            }
            Some("keys") => {
                done.kv = vec![
                    ("shown".to_owned(), Some(json!(1))),
                    ("other".to_owned(), Some(json!(2))),
                ];
            }
            _ => {}
        }
        done
    }

    async fn call_tool(&self, _: &str, _: &Value, _: &CallContext) -> CodeOutcome {
        CodeOutcome::default()
    }

    /// Streams its answer in two pieces. After `wait` and `leak` it waits before it answers.
    async fn call_model(
        &self,
        request: &ChatModelRequest,
        _: &CallContext,
        pieces: &(dyn for<'p> Fn(&'p str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        let last = json!(request.messages.last());
        let text = last["content"].as_str().unwrap_or_default().to_owned();
        pieces("You said: ");
        if text == "leak" {
            for piece in LEAK {
                pieces(piece);
            }
            self.switches.answers.notified().await;
            return Ok(ChatAnswer {
                text: Some(format!("You said: {}", LEAK.concat())),
                ..ChatAnswer::default()
            });
        }
        pieces(&text);
        if text == "wait" {
            self.switches.answers.notified().await;
        }
        Ok(ChatAnswer {
            text: Some(format!("You said: {text}")),
            structured: None,
            tool_calls: Vec::new(),
            usage: None,
        })
    }

    fn circuit_changes(&self, _: &EffectId) -> Vec<ProviderCircuitChange> {
        std::mem::take(&mut *self.switches.circuits.lock().unwrap())
    }

    /// A recording is its text.
    async fn transcribe(
        &self,
        recording: &MediaContent,
        _: u64,
        _: &CallContext,
    ) -> Result<String, CodeError> {
        Ok(String::from_utf8_lossy(&recording.bytes).into_owned())
    }

    async fn synthesize(
        &self,
        text: &str,
        _: &CallContext,
    ) -> Result<Option<MediaContent>, CodeError> {
        Ok(Some(MediaContent {
            content_type: "audio/mpeg".to_owned(),
            bytes: text.as_bytes().to_vec(),
        }))
    }

    async fn send(
        &self,
        message: &OutgoingMessage<'_>,
        context: &CallContext,
    ) -> Result<TakenMessage, SendError> {
        assert!(["web", "loopback"].contains(&message.transport));
        if self.switches.refuses_texts.load(Ordering::Relaxed) {
            self.switches.refused_at.lock().unwrap().push(context.now);
            return Err(SendError::transient("the network is down"));
        }
        Ok(TakenMessage {
            id: Some(format!("net:{}", message.key)),
            ..TakenMessage::default()
        })
    }

    fn show_life_sign(&self, _: &AgentId, _: LifeSign) {}

    /// The transport `own` delivers what somebody wrote from the agent's own account.
    fn receive(
        &self,
        _: &AgentId,
        transport: &str,
        request: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        if transport != "own" {
            return Err(TransportRefusal::Unknown);
        }
        let sent: Value = serde_json::from_slice(request.body).expect("JSON");
        let text = |key: &str| sent[key].as_str().expect("a text").to_owned();
        let owner = Owner {
            tenant: TenantId::new("default"),
            workspace: None,
            principal: None,
        };
        Ok(TransportDelivery {
            own_account: vec![OwnAccountMessage {
                message_id: text("id"),
                to: text("to"),
                body: text("text"),
                sent_at: request.now,
            }],
            ..TransportDelivery::nothing(owner)
        })
    }
}
