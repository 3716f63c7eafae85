//! Everything outside the processes: tools, models, hooks and transports. It remembers every call, fails on
//! request of the seed, and ends a process between a call and its result.

use super::agents::{ADMINS, AGENTS, RELEASES, ScriptedAgent, Step, WORKFLOWS, version};
use super::flow_code::FlowCode;
use crate::failing::{CommittedEffects, Faults};
use async_trait::async_trait;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::agent::AgentSpec;
use tandem_engine::session::ProgramStep;
use tandem_record::conversation::{
    AgentStatus, AgentSummary, ChatAnswer, ChatToolCall, CodeCall, CodeError, CodeOutcome,
    FlowFailure, FlowRecord, FlowRunStart, ModelPurpose,
};
use tandem_record::{AgentId, EffectId, ModelUsage, Recorded, TenantId, Timestamp};
use tandem_runtime::conversation::{
    AgentHost, CallContext, ChatModelRequest, FlowProgram, LifeSign, MediaContent, OutgoingMessage,
    RebuildError, SendError, TakenMessage, TransportDelivery, TransportRefusal, TransportRequest,
};

/// One call of a tool, a model or a function.
#[derive(Clone, Debug)]
pub(super) struct OutsideCall {
    pub(super) key: EffectId,
    pub(super) name: String,
    pub(super) args: Value,
    /// The result that the session was told, or would have been.
    pub(super) value: Option<Value>,
}

/// A text that a transport took.
#[derive(Clone, Debug)]
pub(super) struct TakenText {
    pub(super) tenant: TenantId,
    pub(super) agent: AgentId,
    pub(super) key: EffectId,
    pub(super) transport: String,
    pub(super) to: String,
    pub(super) text: String,
}

/// What happened outside.
#[derive(Default)]
pub(super) struct Happened {
    pub(super) calls: Vec<OutsideCall>,
    pub(super) texts: Vec<TakenText>,
    /// What an idempotent tool did, by key.
    done: BTreeMap<EffectId, Value>,
    /// What must never happen.
    pub(super) violations: Vec<String>,
    pub(super) rebuilt: u64,
}

#[derive(Clone, Copy)]
struct OutsideFaults {
    fails_percent: u32,
    send_fails_percent: u32,
    crashes_per_mille: u32,
    max_latency_ms: u64,
}

/// Shared by all processes of a simulation.
pub(super) struct Outside {
    pub(super) agents: BTreeMap<String, [ScriptedAgent; RELEASES]>,
    pub(super) committed: Arc<CommittedEffects>,
    pub(super) happened: Mutex<Happened>,
    rng: Mutex<SmallRng>,
    faults: OutsideFaults,
    /// Processes take over the schedules of agents' files.
    configures_schedules: bool,
    /// A result that was recorded is never asked for again. Not where a process works past its lease.
    pub(super) checks_recorded: bool,
}

impl Outside {
    pub(super) fn random(seed: u64, rng: &mut SmallRng) -> Self {
        let agents = AGENTS.map(|id| (id.to_owned(), ScriptedAgent::random(id, rng)));
        Self {
            agents: agents.into(),
            committed: Arc::default(),
            happened: Mutex::default(),
            rng: Mutex::new(SmallRng::seed_from_u64(seed ^ 0x0075_1de0)),
            faults: OutsideFaults {
                fails_percent: rng.random_range(0..25),
                send_fails_percent: [0, 10, 60][rng.random_range(0..3)],
                crashes_per_mille: [0, 5, 30][rng.random_range(0..3)],
                max_latency_ms: [0, 100, 3_000][rng.random_range(0..3)],
            },
            configures_schedules: true,
            checks_recorded: false,
        }
    }

    /// No process ends at a call, and no agent's file has schedules.
    pub(super) fn calm(mut self) -> Self {
        self.faults.crashes_per_mille = 0;
        self.configures_schedules = false;
        self
    }

    pub(super) fn violation(&self, what: String) {
        self.happened.lock().violations.push(what);
    }

    fn chance(&self, per_mille: u32) -> bool {
        self.rng.lock().random_range(0..1_000) < per_mille
    }

    /// The settings of an agent. They are the same in all releases.
    pub(super) fn spec(&self, agent: &AgentId) -> &AgentSpec {
        &self.agents[agent.as_str()][0].spec
    }

    /// The code that a run is pinned to, whatever a process has loaded.
    fn steps_of(&self, start: &FlowRunStart) -> &Arc<[Step]> {
        let (agent, flow) = (start.agent_id.as_str(), start.flow_id.as_str());
        let is_its = |release: &usize| version(agent, flow, *release) == start.version;
        let release = (0..RELEASES).find(is_its).expect("a known version");
        &self.agents[agent][release].flows[flow]
    }
}

/// What one process reaches of the outside.
pub(super) struct ProcessHost {
    pub(super) outside: Arc<Outside>,
    pub(super) faults: Arc<Faults>,
    /// What it has loaded.
    pub(super) release: usize,
}

impl ProcessHost {
    /// A call begins. A process that is paused or has ended gets no further.
    async fn begin(&self, key: &EffectId, what: &str) {
        self.faults.lives().await;
        let committed = &self.outside.committed;
        if !committed.recorded(key) {
            self.outside
                .violation(format!("{what} {key} was called before its record"));
        }
        if self.outside.checks_recorded && committed.has_result(key) {
            self.outside.violation(format!(
                "{what} {key} was called although its result is recorded"
            ));
        }
        let ms = {
            let mut rng = self.outside.rng.lock();
            rng.random_range(0..=self.outside.faults.max_latency_ms)
        };
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.crash_sometimes().await;
        self.faults.lives().await;
    }

    async fn crash_sometimes(&self) {
        if self.outside.chance(self.outside.faults.crashes_per_mille) {
            self.faults.crash_on_call().await;
        }
    }

    /// The outside has done it; the process may not live to record it.
    async fn end(&self) {
        self.crash_sometimes().await;
        self.faults.lives().await;
    }

    fn fails(&self) -> bool {
        self.outside.chance(self.outside.faults.fails_percent * 10)
    }

    fn note(&self, key: &EffectId, name: &str, args: &Value, value: Option<&Value>) {
        self.outside.happened.lock().calls.push(OutsideCall {
            key: key.clone(),
            name: name.to_owned(),
            args: args.clone(),
            value: value.cloned(),
        });
    }

    fn hook(&self, call: &CodeCall, context: &CallContext) -> CodeOutcome {
        let turn = context.data.get("turnId").cloned().unwrap_or_default();
        let mut done = CodeOutcome::default();
        let roll = self.outside.rng.lock().random_range(0..10);
        match call.path.as_str() {
            "beforeLLM" => {
                let text = call.args[0]["text"].as_str().unwrap_or_default();
                done.value = match text.strip_prefix("start ") {
                    Some(flow) => Some(json!({"action": "route_flow", "flowId": flow,
                        "input": {"by": "hook"}})),
                    None if roll == 0 => Some(json!({"action": "end", "reason": "no"})),
                    None if roll == 1 => Some(json!({"action": "skip_llm",
                        "draftReply": format!("{} skipped", context.tenant)})),
                    None => Some(json!({"action": "continue"})),
                };
            }
            "beforeResponse" => {
                let text = call.args[0]["candidate"]["text"]
                    .as_str()
                    .unwrap_or_default();
                done.value = match roll {
                    0 => Some(json!({"action": "cancel"})),
                    1 | 2 => Some(json!({"action": "replace", "reply": format!("{text}!")})),
                    _ => Some(json!({"action": "continue"})),
                };
            }
            _ => {
                done.kv.push(("reported".to_owned(), Some(turn)));
                if roll == 0 {
                    done.side_messages
                        .push(tandem_record::conversation::SideMessage {
                            to: context.data["replyTarget"]
                                .as_str()
                                .unwrap_or_default()
                                .to_owned(),
                            text: format!("{} beside", context.tenant),
                        });
                }
            }
        }
        done
    }

    fn answer(&self, request: &ChatModelRequest, context: &CallContext) -> ChatAnswer {
        let mut rng = self.outside.rng.lock();
        let flow = format!("f{}", rng.random_range(0..5));
        let mut answer = ChatAnswer {
            usage: Some(ModelUsage {
                input_tokens: 2,
                output_tokens: 1,
                cache_read_tokens: None,
                cache_write_tokens: None,
            }),
            ..ChatAnswer::default()
        };
        if request.purpose == ModelPurpose::Router {
            let confidence = rng.random_range(0..10);
            answer.structured =
                Some(json!({"flow": flow, "confidence": f64::from(confidence) / 10.0}));
            return answer;
        }
        let calls = rng.random_range(0..3);
        if request.tools.is_empty() || rng.random_bool(0.5) || calls == 0 {
            answer.text = Some(format!(
                "{} says {}",
                context.tenant,
                rng.random_range(0..99)
            ));
            return answer;
        }
        answer.tool_calls = (0..calls)
            .map(|n| {
                let name = request.tools[rng.random_range(0..request.tools.len())].clone();
                ChatToolCall {
                    id: format!("{}-{n}", context.key),
                    args: match name.as_str() {
                        "workflow.run" => {
                            json!({"workflowId": WORKFLOWS[rng.random_range(0..WORKFLOWS.len())]})
                        }
                        _ => json!({"for": format!("{} model", context.tenant)}),
                    },
                    name,
                }
            })
            .collect();
        answer
    }
}

fn failed(code: &str) -> CodeError {
    CodeError {
        code: code.to_owned(),
        message: "not today".to_owned(),
    }
}

#[async_trait]
impl AgentHost for ProcessHost {
    fn agent(&self, agent: &AgentId) -> Option<Arc<AgentSpec>> {
        let agent = self.outside.agents.get(agent.as_str())?;
        Some(Arc::clone(&agent[self.release].spec))
    }

    fn summaries(&self) -> Vec<AgentSummary> {
        let ids = self.outside.agents.keys();
        let ids = ids.filter(|_| self.outside.configures_schedules);
        ids.map(|id| AgentSummary {
            id: id.clone(),
            status: AgentStatus::Ready,
            flows: Vec::new(),
            errors: Vec::new(),
        })
        .collect()
    }

    fn flow_source(&self, _: &AgentId, version: &str) -> Option<Arc<str>> {
        Some(Arc::from(version))
    }

    fn start_program(
        &self,
        start: &FlowRunStart,
        now: Timestamp,
    ) -> Result<(Box<dyn FlowProgram>, ProgramStep), FlowFailure> {
        let steps = self.outside.steps_of(start);
        let (code, step) = FlowCode::start(steps, start, now);
        Ok((Box::new(code), step))
    }

    fn rebuild_program(
        &self,
        source: Option<&str>,
        journal: &[Recorded<FlowRecord>],
    ) -> Result<Box<dyn FlowProgram>, RebuildError> {
        let Some(FlowRecord::Started(start)) = journal.first().map(|first| &first.event) else {
            panic!("a journal begins with a start: {journal:?}");
        };
        if source != Some(start.version.as_str()) {
            let run = &start.run_id;
            self.outside
                .violation(format!("{run} is rebuilt from {source:?}"));
        }
        self.outside.happened.lock().rebuilt += 1;
        let steps = self.outside.steps_of(start);
        // A journal that another process has ended meanwhile is no use: that decision conflicts.
        let code = FlowCode::rebuild(steps, journal);
        // Strict mode runs the code to where its journal had an end: what follows is that end.
        if let Err(why @ RebuildError::Diverged { expected, .. }) = &code
            && !expected.is_null()
        {
            let run = &start.run_id;
            self.outside.violation(format!("{run} diverges: {why:?}"));
        }
        Ok(Box::new(code?))
    }

    async fn call_code(&self, call: &CodeCall, context: &CallContext) -> CodeOutcome {
        self.begin(&context.key, &call.path).await;
        let done = match self.fails() {
            true => CodeOutcome {
                error: Some(failed("timeout")),
                ..CodeOutcome::default()
            },
            false => self.hook(call, context),
        };
        let args = json!(call.args);
        self.note(&context.key, &call.path, &args, done.value.as_ref());
        self.end().await;
        done
    }

    async fn call_tool(&self, name: &str, args: &Value, context: &CallContext) -> CodeOutcome {
        self.begin(&context.key, name).await;
        let wanted = args["for"].as_str().unwrap_or_default();
        if !wanted.starts_with(context.tenant.as_str()) {
            let tenant = &context.tenant;
            self.outside
                .violation(format!("{tenant} calls {name} with {args}"));
        }
        let result = json!({"key": context.key, "tool": name});
        let (value, error) = match self.fails() {
            true => (None, Some(failed("failed"))),
            false => {
                let mut happened = self.outside.happened.lock();
                let done = happened.done.entry(context.key.clone()).or_insert(result);
                (Some(done.clone()), None)
            }
        };
        self.note(&context.key, name, args, value.as_ref());
        self.end().await;
        CodeOutcome {
            kv: vec![(format!("last.{name}"), Some(json!(context.key)))],
            value,
            error,
            ..CodeOutcome::default()
        }
    }

    async fn call_model(
        &self,
        request: &ChatModelRequest,
        context: &CallContext,
        pieces: &(dyn for<'p> Fn(&'p str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        self.begin(&context.key, "model").await;
        let answer = match self.fails() {
            true => Err(failed("timeout")),
            false => Ok(self.answer(request, context)),
        };
        if let Ok(answer) = &answer
            && request.streams
        {
            answer.text.iter().for_each(|text| pieces(text));
        }
        let value = answer.as_ref().ok().map(|answer| json!(answer));
        self.note(&context.key, "model", &Value::Null, value.as_ref());
        self.end().await;
        answer
    }

    async fn transcribe(
        &self,
        _: &MediaContent,
        _: u64,
        context: &CallContext,
    ) -> Result<String, CodeError> {
        self.begin(&context.key, "transcribe").await;
        Ok("yes".to_owned())
    }

    async fn synthesize(
        &self,
        _: &str,
        _: &CallContext,
    ) -> Result<Option<MediaContent>, CodeError> {
        Ok(None)
    }

    async fn send(
        &self,
        message: &OutgoingMessage<'_>,
        context: &CallContext,
    ) -> Result<TakenMessage, SendError> {
        let key = message.key;
        self.begin(key, "send").await;
        let error = |is_transient| match is_transient {
            true => SendError::transient("not today"),
            false => SendError::permanent("not today"),
        };
        let fails = self
            .outside
            .chance(self.outside.faults.send_fails_percent * 10);
        let roll = self.outside.rng.lock().random_range(0..20);
        match (fails, roll) {
            (true, 0) => return Err(error(false)),
            (true, 1..13) => return Err(error(true)),
            _ => {}
        }
        self.outside.happened.lock().texts.push(TakenText {
            tenant: context.tenant.clone(),
            agent: context.agent.clone(),
            key: key.clone(),
            transport: message.transport.to_owned(),
            to: message.to.to_owned(),
            text: message.text.to_owned(),
        });
        self.end().await;
        match fails {
            // It was taken all the same.
            true => Err(error(true)),
            false => Ok(TakenMessage {
                id: ADMINS.contains(&message.to).then(|| key.to_string()),
                template: None,
            }),
        }
    }

    fn show_life_sign(&self, _: &AgentId, _: LifeSign) {}

    fn receive(
        &self,
        _: &AgentId,
        _: &str,
        _: &TransportRequest<'_>,
    ) -> Result<TransportDelivery, TransportRefusal> {
        Err(TransportRefusal::Unknown)
    }
}
