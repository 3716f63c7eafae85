//! Agents for tests of conversations: configurations as JSON, flows as lists of effects, a model that repeats what it
//! is told.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tandem_engine::agent::{AgentSpec, LoadedFlow};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{
    AgentStatus, AgentSummary, ChatAnswer, CodeCall, CodeError, CodeOutcome, FlowFailure,
    FlowRecord, FlowRunStart, SendRequest,
};
use tandem_record::{AgentId, EffectId, Object, Recorded, Timestamp};
use tandem_runtime::conversation::{
    AgentHost, CallContext, ChatModelRequest, Conversations, FlowProgram, RebuildError, SendError,
};
use tokio::sync::Notify;

/// The agents `open` and `strict`, which are on the web, and `closed`, which is not.
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
}

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
            let flows = [flow("refund"), flow("book")];
            let spec = AgentSpec::compile(id, &config, &flows);
            Arc::new(spec.expect("a valid agent"))
        };
        let base = json!({
            "prompt": "You are the desk.",
            "finalizationStrategy": "streaming",
            "beforeLLM": {"$fn": true},
            "adminAuth": {"builtin": "keys"},
            "rateLimitPerUserPerMinute": 30,
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
        let agents = [
            ("open", spec("open", open)),
            ("strict", spec("strict", strict)),
            ("closed", spec("closed", base.clone())),
        ];
        let agents = Self {
            agents: agents.into(),
            switches,
        };
        Conversations::new(Arc::new(agents), false)
    }
}

/// What each flow yields, one after the other.
fn effects(flow: &str) -> Vec<Value> {
    match flow {
        "book" => vec![
            json!({"type": "interrupt.confirm", "question": "Monday?", "positiveKeywords": ["sure"]}),
            json!({"type": "say", "text": "Booked."}),
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
        let yielded = records.filter(|record| matches!(record, FlowRecord::Effect { .. }));
        Ok(Box::new(ListedEffects {
            effects: effects(flow.expect("a journal begins").as_str()),
            next: yielded.count(),
        }))
    }

    /// `refund` and `book` start the flows of these names; `keys` sets keys of the session.
    async fn call_code(&self, call: &CodeCall, _: &CallContext) -> CodeOutcome {
        let text = call.args.first().and_then(|input| input["text"].as_str());
        let mut done = CodeOutcome::default();
        match text {
            Some(flow @ ("refund" | "book")) => {
                done.value = Some(json!({"action": "route_flow", "flowId": flow}));
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

    /// Streams its answer in two pieces. After `wait` it waits before it answers.
    async fn call_model(
        &self,
        request: &ChatModelRequest,
        _: &CallContext,
        pieces: &(dyn for<'p> Fn(&'p str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        let last = json!(request.messages.last());
        let text = last["content"].as_str().unwrap_or_default().to_owned();
        pieces("You said: ");
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

    async fn transcribe(&self, _: &Value, _: u64, _: &CallContext) -> Result<String, CodeError> {
        unreachable!("nobody speaks")
    }

    async fn send(
        &self,
        message: &SendRequest,
        _: &EffectId,
        _: &CallContext,
    ) -> Result<Option<String>, SendError> {
        assert_eq!(message.transport, "web");
        Ok(None)
    }
}
