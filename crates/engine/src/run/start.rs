//! Starts a node: its inputs, the work its kind does at once, and what it has to wait for.

use super::decide::may_use_test_types;
use super::draft::DecisionDraft;
use super::finish::Done;
use super::rounds::Round;
use crate::ids::logical_invocation_id;
use crate::node::{self, Kind, MemoryHook};
use serde_json::{Value, json};
use std::sync::Arc;
use tandem_record::{ErrorInfo, Event, LowConfidence, NodeId, Object, RunStatus, Seq, Size, Work};

/// The result of executing a node.
pub(super) enum NodeOutcome {
    Complete(Object),
    /// Completed, with cost attributes besides its outputs.
    CompleteWithCost(Object),
    Fail(ErrorInfo),
    Wait(Work),
    /// Opens an interrupt.
    Ask(Box<Question>),
    /// What follows is recorded already.
    AlreadyRecorded,
}

/// An interrupt as a node requests it.
pub(super) struct Question {
    pub(super) kind: String,
    pub(super) data: Value,
    pub(super) resume_schema: Option<Value>,
    pub(super) timeout_ms: Option<u64>,
    /// The status of the run meanwhile, where the kind does not define it.
    pub(super) status: Option<RunStatus>,
    /// Set when the interrupt is about a decision with low confidence.
    pub(super) low_confidence: Option<LowConfidence>,
}

/// Why and how a node is entered.
#[derive(Default)]
pub(super) struct NodeEntry {
    /// Nodes of a loop body or trigger lineage that run again.
    pub(super) resets: Vec<usize>,
    pub(super) trigger: Option<String>,
    /// A retry of the same execution.
    pub(super) retry: bool,
}

impl DecisionDraft<'_> {
    /// Starts a node and executes it as far as possible without effects.
    pub(super) fn start_node(&mut self, ix: usize, entry: NodeEntry) {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        if let Err(error) = self.admit(ix) {
            // Refused before it starts: the node never gets a started event.
            self.fail_node(ix, error, None, None);
            return;
        }
        let inputs = self.run.port_values(ix, self.cx.limits, self.cx.work);
        let before = &self.run.state.nodes[ix];
        let again = entry.retry || before.cut_off;
        let execution = if again {
            before.execution - 1
        } else {
            before.execution
        };
        let attempt = if again { before.attempt } else { 0 };
        let cause = self.entry_cause(ix);
        let agent_before = self.run.active_agent();
        let settings = &def.doc_node(ix).settings;
        let timeout = settings
            .timeout_ms
            .or(settings.timeout)
            .filter(|ms| *ms > 0);

        // Evaluated before the started event resets the body: a condition may read the last round.
        let round = match (&node.kind, &inputs) {
            (Kind::Loop(config), Ok(inputs)) => Some(self.round(ix, config, inputs)),
            _ => None,
        };
        let resets = match &round {
            // The results of the last round stay readable.
            Some(
                Ok(Round {
                    runs_body: false, ..
                })
                | Err(_),
            ) => Vec::new(),
            _ => entry.resets,
        };
        let prepared = match inputs {
            Ok(inputs) => self
                .prepare(ix, &inputs, execution, attempt)
                .map(|work| (inputs, work)),
            Err(error) => Err(error),
        };
        let work = match &prepared {
            Ok((_, work)) => work.clone(),
            Err(_) => None,
        };
        if self.needs.is_some() {
            return;
        }
        self.starts += 1;
        let started = self.emit(
            Event::NodeStarted {
                node: node.id.clone(),
                type_id: node.type_id.clone(),
                attempt,
                execution,
                deadline: timeout
                    .filter(|_| work.is_some() || matches!(node.kind, Kind::Dispatch(_)))
                    .map(|ms| self.now.plus_ms(ms)),
                work: work.clone(),
                resets: resets.iter().map(|r| def.nodes[*r].id.clone()).collect(),
                trigger: entry.trigger,
            },
            cause,
        );
        self.emit_boundary_handoff(ix, agent_before, started);
        let step = match prepared {
            Err(error) => NodeOutcome::Fail(error),
            Ok((_, Some(work))) => NodeOutcome::Wait(work),
            Ok((_, None)) if let Some(round) = round => self.begin_round(ix, round, started),
            Ok((inputs, None)) => self.perform(ix, inputs, started),
        };
        self.apply_outcome(ix, step, started);
    }

    /// Applies the outcome of a node.
    pub(super) fn apply_outcome(&mut self, ix: usize, step: NodeOutcome, started: Seq) {
        match step {
            NodeOutcome::Complete(outputs) => self.complete_node(ix, Done::with(outputs), started),
            NodeOutcome::CompleteWithCost(cost) => {
                let done = Done {
                    cost: Some(cost),
                    ..Done::default()
                };
                self.complete_node(ix, done, started);
            }
            NodeOutcome::Fail(error) => self.fail_or_retry(ix, error, started),
            NodeOutcome::Wait(Work::Child {
                child, workflow_id, ..
            }) => self.dispatch_child(ix, child, workflow_id, started),
            NodeOutcome::Wait(Work::Tool { .. }) => self.emit_tool_called(ix, started),
            NodeOutcome::Wait(Work::Model { mock: Some(_), .. }) => self.run_mock_call(ix),
            NodeOutcome::Wait(_) | NodeOutcome::AlreadyRecorded => {}
            NodeOutcome::Ask(question) => {
                // A decision given in place of another one is newer than any event of the node.
                let last = self.run.state.nodes[ix].last;
                let cause = last.map_or(started, |last| last.max(started));
                self.ask(ix, *question, cause);
            }
        }
    }

    /// Checks whether a node may start.
    fn admit(&mut self, ix: usize) -> Result<(), ErrorInfo> {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        if node.test_only
            && !self.replaying
            && !may_use_test_types(&def, self.run.request(), self.cx)
        {
            let message = format!("{} is for conformance tests only", node.type_id);
            return Err(ErrorInfo::new("typeId_refused", message));
        }
        let missing = self.cx.agents.missing_capability(&node.kind);
        if let Some(capability) = missing.filter(|_| !self.replaying) {
            let message = format!("this host does not serve {capability:?}");
            return Err(ErrorInfo::new("capability_not_provided", message));
        }
        match &node.kind {
            Kind::RequiresMissing { capability } => Err(ErrorInfo::new(
                "capability_not_provided",
                format!("this host does not provide {capability:?}"),
            )),
            Kind::ModelCapabilityMissing => {
                let missing = "nonexistent-capability-9b3f".to_owned();
                let message = format!("no model here has the capability {missing:?}");
                self.emit(
                    Event::ModelCapabilityInsufficient {
                        node: node.id.clone(),
                        provider: "none".to_owned(),
                        model: "none".to_owned(),
                        missing: vec![missing],
                    },
                    None,
                );
                Err(ErrorInfo::new("capability_not_provided", message))
            }
            Kind::Gated { capability } => Err(ErrorInfo::new(
                "capability_not_provided",
                format!("this host does not serve {capability:?}"),
            )),
            Kind::Model(config) => self.admit_prompt(config),
            _ => Ok(()),
        }
    }

    /// The work the node will wait for. It is decided before the start because the started event
    /// records it.
    fn prepare(
        &mut self,
        ix: usize,
        inputs: &Object,
        execution: u32,
        attempt: u32,
    ) -> Result<Option<Work>, ErrorInfo> {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        let effect = |draft: &Self, provider: &str| {
            let tenant = &draft.run.request().owner.tenant;
            logical_invocation_id(
                tenant,
                draft.run.id(),
                &node.id,
                u64::from(execution),
                provider,
            )
        };
        if self.replaying && !self.is_repeatable(ix) && !node.kind.only_waits() {
            return Err(replay_source_missing(&node.id));
        }
        match &node.kind {
            Kind::Delay { configured } => {
                let ms = node::delay_ms(inputs, &self.run.request().inputs, *configured)
                    .map_err(|message| ErrorInfo::new("validation_error", message))?;
                Ok(self.sleep(ms, None))
            }
            Kind::Hold => {
                let ms = node::hold_ms(inputs)
                    .map_err(|message| ErrorInfo::new("validation_error", message))?;
                Ok(self.sleep(ms, Some(inputs.clone())))
            }
            Kind::Http(config) => {
                let request = config.request(inputs).ok_or_else(|| {
                    ErrorInfo::new(
                        "validation_error",
                        "the node has no url in config or inputs",
                    )
                })?;
                Ok(Some(Work::Http {
                    effect: effect(self, "tandem:http"),
                    request,
                    output: config.output.clone(),
                }))
            }
            Kind::Model(config) => {
                let call = self.model_call(ix, config, inputs, execution, None)?;
                if self.replaying {
                    return Err(replay_source_missing(&node.id));
                }
                Ok(Some(call))
            }
            Kind::Tool(config) => {
                let call = self.tool_call(ix, config, inputs, execution, attempt)?;
                Ok(Some(call))
            }
            Kind::Pack => {
                let call = self.pack_work(ix, effect(self, "tandem:pack"), inputs)?;
                Ok(Some(call))
            }
            Kind::SecretEcho { secret_id } => Ok(Some(Work::SecretEcho {
                effect: effect(self, "tandem:secret"),
                secret_id: secret_id.clone(),
                reveal: false,
            })),
            Kind::MemoryHook(MemoryHook::Redaction { secret_id }) => Ok(Some(Work::SecretEcho {
                effect: effect(self, "tandem:secret"),
                secret_id: secret_id.clone(),
                reveal: true,
            })),
            Kind::Memory(_) | Kind::MemoryHook(_) => {
                self.ensure_memory_loaded(ix);
                Ok(None)
            }
            Kind::Supervisor(config) => {
                let endpoint_request = self.supervisor_request(ix, config, attempt);
                Ok(endpoint_request.map(|request| Work::Http {
                    effect: effect(self, "tandem:supervisor"),
                    request,
                    output: None,
                }))
            }
            Kind::SubWorkflow(config) => {
                let work = self.prepare_child(ix, config, execution, attempt)?;
                Ok(Some(work))
            }
            _ => Ok(None),
        }
    }

    /// A sleep of `ms`. A replay has no timers: its sleeps end at once.
    fn sleep(&self, ms: u64, outputs: Option<Object>) -> Option<Work> {
        let until = self.now.plus_ms(ms);
        (ms > 0 && !self.replaying).then_some(Work::Sleep { until, outputs })
    }

    /// Completes a sleeping node.
    pub(super) fn wake(&mut self, ix: usize, cause: Seq) {
        let state = &self.run.state.nodes[ix];
        let Some(Work::Sleep { until, outputs }) = &state.work else {
            unreachable!("only a node that sleeps wakes");
        };
        let outputs = outputs.clone().unwrap_or_else(|| {
            // A replay wakes a node before its time.
            let woke = self.now.max(*until);
            let slept = woke.ms_since(state.started_at.unwrap_or(woke));
            Object::from_iter([("waitedMs".to_owned(), json!(slept))])
        });
        self.complete_node(ix, Done::with(outputs), cause);
    }

    /// The work a node does at once, without effects.
    pub(super) fn perform(&mut self, ix: usize, inputs: Object, started: Seq) -> NodeOutcome {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        match &node.kind {
            Kind::Passthrough => NodeOutcome::Complete(inputs),
            Kind::Delay { configured } => {
                let run_inputs = &self.run.request().inputs;
                let ms = node::delay_ms(&inputs, run_inputs, *configured);
                let ms = ms.expect("checked when the node was prepared");
                NodeOutcome::Complete(Object::from_iter([("waitedMs".into(), json!(ms))]))
            }
            Kind::Hold => NodeOutcome::Complete(inputs),
            Kind::Fail { code, message } => NodeOutcome::Fail(ErrorInfo::new(code, message)),
            Kind::SetVariable { name, value } => {
                let value = value.clone().or_else(|| inputs.get("value").cloned());
                if def.channels.contains_key(name) {
                    return NodeOutcome::Fail(ErrorInfo::new(
                        "validation_error",
                        format!("{name:?} is a channel; write it with core.channelWrite"),
                    ));
                }
                if let Some(next) = &value {
                    let replaced = self.run.state.variables.get(name).map(Size::of);
                    if let Err(error) = self.admit_growth(next, replaced) {
                        return NodeOutcome::Fail(error);
                    }
                }
                self.set_variable(name, value.clone(), &node.id, started);
                NodeOutcome::Complete(Object::from_iter(value.map(|v| ("value".to_owned(), v))))
            }
            Kind::GetVariable { name } => {
                if let Err(denied) = self.run.check_channel_access(ix, name) {
                    return NodeOutcome::Fail(denied);
                }
                let value = self.run.variable(name).cloned().unwrap_or(Value::Null);
                NodeOutcome::Complete(Object::from_iter([("value".to_owned(), value)]))
            }
            Kind::ChannelWrite(config) => self.channel_write(ix, config, inputs, started),
            Kind::CostEmit { attributes } => {
                NodeOutcome::CompleteWithCost(node::allowed_cost(attributes))
            }
            Kind::ArtifactEmit {
                artifact_id,
                artifact_type,
                content,
            } => {
                let owner = self.artifact_owner.as_ref().unwrap_or(self.run.id());
                let fallback = || format!("{owner}:{}", node.id);
                let artifact_id = artifact_id.clone().unwrap_or_else(fallback);
                self.emit(
                    Event::ArtifactCreated {
                        artifact_id: artifact_id.clone(),
                        artifact_type: artifact_type.clone(),
                        node: node.id.clone(),
                        content: content.clone(),
                    },
                    Some(started),
                );
                NodeOutcome::Complete(Object::from_iter([(
                    "artifactId".to_owned(),
                    json!(artifact_id),
                )]))
            }
            Kind::ApprovalGate(gate) => NodeOutcome::Ask(Box::new(Question {
                kind: "approval".to_owned(),
                data: gate.data(self.run.id(), &node.id, &inputs, &|text| {
                    self.run.render_template(text, self.cx.work)
                }),
                resume_schema: gate.interrupt_settings.answer_document(),
                timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                status: None,
                low_confidence: None,
            })),
            Kind::ClarificationGate(gate) => NodeOutcome::Ask(Box::new(Question {
                kind: "clarification".to_owned(),
                data: gate.data(&|text| self.run.render_template(text, self.cx.work)),
                resume_schema: gate.interrupt_settings.answer_document(),
                timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                status: None,
                low_confidence: None,
            })),
            Kind::GenericInterrupt(open) => NodeOutcome::Ask(Box::new(Question {
                kind: open.kind.clone(),
                data: open.data.clone(),
                resume_schema: open.interrupt_settings.answer_document(),
                timeout_ms: open.interrupt_settings.rejects_after_ms(),
                status: None,
                low_confidence: None,
            })),
            Kind::Memory(config) => self.perform_memory_node(ix, config, started),
            Kind::MemoryHook(hook) => self.memory_hook(ix, hook, started),
            Kind::SideEffect => NodeOutcome::Complete(inputs),
            Kind::ConversationGate(gate) => {
                let (_, conversation) = self.run.next_question(ix);
                NodeOutcome::Ask(Box::new(Question {
                    kind: "conversation.exchange".to_owned(),
                    data: gate.data(&conversation),
                    resume_schema: None,
                    timeout_ms: gate.interrupt_settings.rejects_after_ms(),
                    status: None,
                    low_confidence: None,
                }))
            }
            Kind::Supervisor(config) => self.supervise(ix, config, &inputs, started),
            Kind::Dispatch(_) => self.dispatch(ix),
            Kind::MockAgent(config) => self.perform_mock_agent(ix, config, started),
            Kind::DuplicateMessage => self.duplicate_message(ix, inputs, started),
            Kind::Loop(_)
            | Kind::Http(_)
            | Kind::Model(_)
            | Kind::Tool(_)
            | Kind::Pack
            | Kind::SecretEcho { .. }
            | Kind::SubWorkflow(_)
            | Kind::Gated { .. }
            | Kind::RequiresMissing { .. }
            | Kind::ModelCapabilityMissing => {
                unreachable!("{} is not performed at once", node.type_id)
            }
        }
    }

    pub(super) fn set_variable(
        &mut self,
        name: &str,
        next: Option<Value>,
        node: &NodeId,
        cause: Seq,
    ) -> Seq {
        let ix = self.run.def.index(node);
        let untrusted = ix.is_some_and(|ix| self.run.passes_on_untrusted(ix, self.cx.work));
        self.set_variable_with_trust(name, next, node, untrusted, cause)
    }

    /// Sets a variable to a value, with or without the untrusted mark.
    pub(super) fn set_variable_with_trust(
        &mut self,
        name: &str,
        next: Option<Value>,
        node: &NodeId,
        untrusted: bool,
        cause: Seq,
    ) -> Seq {
        let previous = self.run.state.variables.get(name).cloned();
        self.emit(
            Event::VariableChanged {
                name: name.to_owned(),
                previous,
                next,
                node: Some(node.clone()),
                untrusted,
            },
            Some(cause),
        )
    }
}

/// A replay has nothing to repeat here.
fn replay_source_missing(node: &NodeId) -> ErrorInfo {
    ErrorInfo::new(
        "replay_source_missing",
        format!("the source recorded nothing for node {node}"),
    )
}
