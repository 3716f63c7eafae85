//! One iteration of a supervisor: the decision is recorded, held if its confidence is too low, and
//! then published.

use crate::node::{DecisionSource, Kind, OrchestratorDecision, Supervisor};
use crate::run::draft::DecisionDraft;
use crate::run::memory::has_stateful_loop;
use crate::run::scheduling::{Done, NodeOutcome};
use crate::run::state::Run;
use serde_json::{Value, json};
use tandem_record::{CapKind, Cause, ErrorInfo, Event, HttpRequest, Object, Seq};

/// A supervisor's decision with its confidence, reasoning and cause.
pub(crate) struct SupervisorAnswer {
    decision: Result<OrchestratorDecision, ErrorInfo>,
    confidence: Option<f64>,
    reasoning: Option<String>,
    /// The event on another host that caused it, as the agent reports it.
    foreign_cause: Option<ForeignCause>,
}

/// An event on another host.
struct ForeignCause {
    host_id: String,
    event_id: String,
}

/// Maximum length of an event id, as for every event of the protocol, and of a host id.
pub const MAX_EVENT_ID_CHARS: usize = 128;
const MAX_HOST_ID_CHARS: usize = 256;

impl ForeignCause {
    /// Reads `{hostId, eventId}`. Returns `None` when the ids cannot be recorded.
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str, longest: usize| {
            let text = value.get(key)?.as_str()?;
            let fits = (1..=longest).contains(&text.chars().count());
            fits.then(|| text.to_owned())
        };
        Some(Self {
            host_id: text("hostId", MAX_HOST_ID_CHARS)?,
            event_id: text("eventId", MAX_EVENT_ID_CHARS)?,
        })
    }
}

impl SupervisorAnswer {
    fn of(decision: OrchestratorDecision) -> Self {
        Self {
            decision: Ok(decision),
            confidence: None,
            reasoning: None,
            foreign_cause: None,
        }
    }

    /// Reads an agent's answer: a decision, or an envelope of a decision with confidence and
    /// reasons.
    pub(crate) fn read(value: &Value) -> Self {
        let inner = value.get("decision").filter(|d| d.is_object());
        let confidence = value.get("confidence").and_then(Value::as_f64);
        let reasoning = value.get("reasoning").and_then(Value::as_str);
        let invalid = |(path, message): (String, String)| {
            let message = format!("the supervisor's decision{path}: {message}");
            ErrorInfo::new("validation_error", message)
        };
        Self {
            decision: OrchestratorDecision::read_strict(inner.unwrap_or(value)).map_err(invalid),
            confidence: confidence.filter(|_| inner.is_some()),
            reasoning: reasoning.filter(|_| inner.is_some()).map(str::to_owned),
            foreign_cause: inner.and_then(|_| ForeignCause::read(value.get("causation")?)),
        }
    }
}

impl Run {
    /// The decision of a supervisor in its current, unfinished iteration.
    pub(in crate::run) fn recorded_decision(
        &self,
        ix: usize,
    ) -> Option<(OrchestratorDecision, Seq)> {
        let node = &self.def.nodes[ix].id;
        let started = self.state.agents.iteration_starts.get(node)?;
        let decided = self.state.agents.decided.as_ref();
        let decided = decided.filter(|d| d.node == *node && d.seq > *started)?;
        let decision = OrchestratorDecision::read(&decided.decision).ok()?;
        Some((decision, decided.seq))
    }

    /// Number of iterations that the supervisors of the run have started.
    pub(super) fn supervisor_iterations(&self) -> u32 {
        self.executions_of(|kind| matches!(kind, Kind::Supervisor(_)))
    }
}

impl DecisionDraft<'_> {
    /// The request body sent to a supervisor behind an endpoint.
    pub(in crate::run) fn supervisor_request(
        &self,
        ix: usize,
        config: &Supervisor,
        attempt: u32,
    ) -> Option<HttpRequest> {
        let DecisionSource::Endpoint(endpoint) = &config.source else {
            return None;
        };
        let agents = &self.run.state.agents;
        let node = &self.run.def.nodes[ix].id;
        // A retry belongs to the same iteration.
        let started = agents.iteration_starts.get(node).filter(|_| attempt > 0);
        let begins = started.copied().unwrap_or_else(|| self.run.next_seq());
        let last: Vec<Value> = self
            .run
            .children()
            .iter()
            .rev()
            .take(MAX_LISTED_WORKERS)
            .map(|c| json!({"runId": c.run_id, "workflowId": c.workflow_id, "status": c.status}))
            .collect();
        let body = json!({
            "runId": self.run.id(),
            "nodeId": node,
            "iteration": self.run.supervisor_iterations() + u32::from(started.is_none()),
            "atSequence": begins,
            "prompt": config.prompt,
            "variables": self.run.view().variables,
            "lastDecision": agents.decided.as_ref().map(|d| &d.decision),
            "lastVerdict": self.run.latest_verdict_json(),
            "workers": last,
        });
        let inputs = Object::from_iter([("body".to_owned(), body)]);
        endpoint.request(&inputs)
    }

    /// Runs an iteration whose decision is already available.
    pub(in crate::run) fn supervise(
        &mut self,
        ix: usize,
        config: &Supervisor,
        inputs: &Object,
        started: Seq,
    ) -> NodeOutcome {
        let answer = match &config.source {
            DecisionSource::Pending(decision) => SupervisorAnswer::of(decision.clone()),
            DecisionSource::Plan(plan) => {
                let made = self.run.state.agents.decisions as usize;
                let exhausted = || OrchestratorDecision::terminate("plan-exhausted");
                SupervisorAnswer::of(plan.get(made).cloned().unwrap_or_else(exhausted))
            }
            DecisionSource::Port => match inputs.get("decision") {
                Some(value) => SupervisorAnswer::read(value),
                None => {
                    let message = "nothing arrived at the port \"decision\"";
                    return NodeOutcome::Fail(ErrorInfo::new("validation_error", message));
                }
            },
            DecisionSource::Endpoint(_) => unreachable!("an endpoint is called by an effect"),
        };
        self.process_supervisor_answer(ix, answer, started)
    }

    /// The event that led to what an agent stated: its own host's where it names one, else ours. Of
    /// this host only an event of this run is taken over: whether others exist is not known here.
    fn cause_of(&self, answer: &SupervisorAnswer, ours: Seq) -> Cause {
        let policy = self.cx.agents;
        match &answer.foreign_cause {
            Some(named) if policy.is_this_host(&named.host_id) => {
                Cause::Event(self.own_event(&named.event_id).unwrap_or(ours))
            }
            Some(named) if policy.crosses_hosts() => Cause::Foreign {
                event: named.event_id.clone(),
                host: named.host_id.clone(),
            },
            _ => Cause::Event(ours),
        }
    }

    /// The place of an event in this run's log, by its public id.
    fn own_event(&self, event_id: &str) -> Option<Seq> {
        let (_, place) = event_id.rsplit_once('-')?;
        let seq = Seq(place.parse().ok()?);
        let exists = seq < self.run.next_seq() && self.run.id().event_id(seq) == event_id;
        exists.then_some(seq)
    }

    /// States the decision, holds it when its author is too unsure, else publishes it. The
    /// confidence of a test hook counts instead of its author's, whoever that is.
    pub(in crate::run) fn process_supervisor_answer(
        &mut self,
        ix: usize,
        answer: SupervisorAnswer,
        cause: Seq,
    ) -> NodeOutcome {
        let emitter = self
            .run
            .agent_emitter(ix)
            .expect("a supervisor has an agent emitter");
        let mut cause = self.cause_of(&answer, cause);
        let hook = match &self.run.def.nodes[ix].kind {
            Kind::Supervisor(config) => config.scripted_confidence,
            _ => None,
        };
        let decision = match answer.decision {
            Ok(decision) => decision,
            Err(error) => return NodeOutcome::Fail(error),
        };
        if let Some(reasoning) = answer.reasoning {
            self.emit_reasoning(&emitter, reasoning, &[], None, cause.clone());
        }
        if let Some(confidence) = hook.or(answer.confidence) {
            let document = &decision.document;
            let (decided_seq, question) =
                self.emit_agent_decision(&emitter, document, Some(confidence), None, cause.clone());
            if let Some(question) = question {
                return NodeOutcome::Ask(question);
            }
            cause = decided_seq.map_or(cause, Cause::Event);
        }
        match self.publish(ix, &decision, cause) {
            Ok(decided) => {
                self.complete_supervisor(ix, &decision, decided);
                NodeOutcome::AlreadyRecorded
            }
            Err(error) => NodeOutcome::Fail(error),
        }
    }

    pub(in crate::run) fn complete_supervisor(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        decided: Seq,
    ) {
        let outputs = Object::from_iter([("decision".to_owned(), decision.document.clone())]);
        self.complete_node(ix, Done::with(outputs), decided);
    }

    /// Records a decision. All decisions of a run come from one agent.
    pub(in crate::run) fn publish(
        &mut self,
        ix: usize,
        decision: &OrchestratorDecision,
        cause: Cause,
    ) -> Result<Seq, ErrorInfo> {
        let emitter = self
            .run
            .agent_emitter(ix)
            .expect("a supervisor has an agent emitter");
        let before = self.run.state.agents.decided.as_ref();
        if let Some(other) = before.filter(|d| d.agent_id != emitter.agent_id) {
            let message = format!(
                "{} has decided for this run since its first iteration; {} may not",
                other.agent_id, emitter.agent_id
            );
            return Err(ErrorInfo::new("validation_error", message));
        }
        let event = Event::OrchestratorDecided {
            node: self.run.def.nodes[ix].id.clone(),
            agent_id: emitter.agent_id,
            decision: decision.document.clone(),
            iteration: self.run.supervisor_iterations(),
            unnumbered: !has_stateful_loop(self.run.request()),
        };
        Ok(self.emit_with_cause(event, Some(cause)))
    }

    /// Whether a supervisor may run another iteration. Ends the run when not.
    pub(in crate::run) fn within_iteration_limits(&mut self, config: &Supervisor) -> bool {
        let observed = u64::from(self.run.supervisor_iterations()) + 1;
        let loops = self.run.loop_limit(self.cx.limits);
        let (kind, limit, code) = match config.iteration_cap {
            Some(cap) if cap < loops => (
                CapKind::OrchestratorIterations,
                cap,
                "orchestrator_iterations_exceeded",
            ),
            _ => (CapKind::LoopIterations, loops, "loop_limit_exceeded"),
        };
        self.within_cap(kind, limit, observed, code)
    }

    /// Ends the run when a count of the run would exceed its limit. The error names no node because
    /// the counts belong to the run.
    pub(super) fn within_cap(
        &mut self,
        kind: CapKind,
        limit: u64,
        observed: u64,
        code: &str,
    ) -> bool {
        if observed <= limit {
            return true;
        }
        let event = Event::CapBreached {
            kind,
            limit,
            observed,
            node: None,
        };
        let cause = self.emit(event, self.run.head());
        let message = format!("the run reached its limit of {limit} ({})", kind.as_str());
        let error = ErrorInfo::new(code, message).with_details(json!({"iteration": observed}));
        self.fail_run(error, None, Some(cause));
        false
    }
}

/// How many of the newest workers are listed in the request to a supervisor endpoint.
const MAX_LISTED_WORKERS: usize = 64;
