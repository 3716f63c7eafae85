//! Nodes that call a model. A call is recorded completely before it is made. What follows from an
//! answer is decided here, from the answer alone: use it, call again with a correction, or fail.
//!
//! ```text
//! started --answer--> accepted ............................ completed
//!    ^         +----> refused ............................. failed, never retried
//!    |         +----> truncated: a larger budget --+
//!    |         +----> wrong shape -----------------+--> retried, or failed after three attempts
//!    +--------------------------------------------+
//! ```

use crate::conformance::{Mock, no_prompt_library};
use crate::ids::logical_invocation_id;
use crate::model::{
    ASSUMED_OUTPUT_TOKENS, AnswerVerdict, BUDGET_MULTIPLIER, CheckedAnswer, MAX_ATTEMPTS,
    MAX_OUTPUT_TOKENS, MOCK_PROVIDER, Provider, check_answer, content_key, redact_prompt,
};
use crate::node::{Kind, ModelNode};
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use crate::run::state::Run;
use serde_json::{Value, json};
use tandem_record::{
    CapKind, EffectId, EnvelopeEvent, EnvelopeEventKind, EnvelopeFault, ErrorInfo, Event, MockCall,
    MockScript, ModelAnswer, ModelAnswered, ModelMessage, ModelRequest, ModelRetry, ModelRole,
    NodeId, Object, RunId, Seq, TenantId, Work,
};

/// Answers of providers that answer by program, for replays. Looked up by the caller, like memory.
pub trait ModelAnswers: Sync {
    fn answer_to(&self, effect: &EffectId) -> ReplayedModelAnswer;
}

/// The answer of a provider that a replay called again.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayedModelAnswer {
    /// It has not been called yet; the decision stops and requests the call.
    NotCalled,
    /// It has no further answer.
    Exhausted,
    Answer(ModelAnswer),
}

/// A call that has to be made before a replay can be decided.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelNeed {
    pub effect: EffectId,
    pub node: NodeId,
    pub request: ModelRequest,
}

/// The id of the `round`-th call of one execution.
pub(in crate::run) fn call_id(
    tenant: &TenantId,
    run: &RunId,
    node: &NodeId,
    execution: u32,
    round: u32,
) -> EffectId {
    let provider = format!("tandem:model:{round}");
    logical_invocation_id(tenant, run, node, u64::from(execution), &provider)
}

/// A call that is running.
#[derive(Clone)]
pub(in crate::run) struct Call {
    pub(in crate::run) key: String,
    pub(in crate::run) round: u32,
    pub(in crate::run) corrected: bool,
    pub(in crate::run) request: ModelRequest,
    /// The script of a mock provider, which answers instead of a real one.
    pub(in crate::run) script: Option<MockScript>,
}

impl Run {
    /// The call a node waits for.
    pub(in crate::run) fn call_of(&self, ix: usize) -> Option<Call> {
        match &self.node(ix).work {
            Some(Work::Model {
                key,
                round,
                corrected,
                request,
                mock,
                ..
            }) => Some(Call {
                key: key.clone(),
                round: *round,
                corrected: *corrected,
                request: (**request).clone(),
                script: mock.as_ref().map(|call| call.script.clone()),
            }),
            _ => None,
        }
    }

    pub(in crate::run) fn call_id(&self, ix: usize, execution: u32, round: u32) -> EffectId {
        let tenant = &self.request().owner.tenant;
        call_id(tenant, self.id(), &self.def.nodes[ix].id, execution, round)
    }
}

impl DecisionDraft<'_> {
    /// The call a node makes when it starts: the first of its execution, or the one that failed or
    /// was cut off. `then` is the request of a replay's source.
    pub(in crate::run) fn model_call(
        &self,
        ix: usize,
        config: &ModelNode,
        inputs: &Object,
        execution: u32,
        then: Option<&ModelRequest>,
    ) -> Result<Work, ErrorInfo> {
        if let Some(unfinished @ Work::Model { .. }) = &self.run.node(ix).work {
            return Ok(self.restart_model_call(unfinished.clone()));
        }
        let inputs = self.mark_untrusted_inputs(ix, inputs);
        let mock = self.run.mock()?;
        let request = self.model_request(config, &inputs, mock.as_ref(), then)?;
        Ok(Work::Model {
            effect: self.run.call_id(ix, execution, 1),
            key: content_key(&request),
            round: 1,
            corrected: false,
            request: Box::new(request),
            mock: mock.map(|mock| Box::new(MockCall::begin(mock.script, self.now))),
        })
    }

    /// The run's options override the node's settings.
    fn model_request(
        &self,
        config: &ModelNode,
        inputs: &Object,
        mock: Option<&Mock>,
        then: Option<&ModelRequest>,
    ) -> Result<ModelRequest, ErrorInfo> {
        let configurable = self.run.request().options.configurable.as_ref();
        let option = |key: &str| configurable.and_then(|c| c.get(key));
        let text = |key: &str| option(key).and_then(Value::as_str).map(str::to_owned);
        let (provider, model) = match mock {
            Some(mock) => (MOCK_PROVIDER.to_owned(), mock.model.clone()),
            None => {
                let provider = text("ai.provider").or_else(|| config.provider.clone());
                let provider = provider.ok_or_else(no_prompt_library)?;
                let default = match then {
                    // No provider is called, so it does not matter which ones exist today.
                    Some(then) => Some(then.model.clone()),
                    None => self.default_model(&provider, config)?,
                };
                let model = text("ai.model")
                    .or_else(|| text("model"))
                    .or_else(|| config.model.clone())
                    .or(default);
                let Some(model) = model else {
                    let message = format!("no model is named, and {provider:?} has no default");
                    return Err(ErrorInfo::new("model_not_supported", message));
                };
                (provider, model)
            }
        };
        let max_tokens = option("maxTokens").and_then(Value::as_u64);
        let temperature = option("temperature").and_then(Value::as_f64);
        Ok(ModelRequest {
            provider,
            model,
            messages: config.messages(inputs)?,
            temperature: temperature.or(config.temperature),
            max_output_tokens: max_tokens
                .map(|n| n.min(MAX_OUTPUT_TOKENS))
                .or(config.max_tokens),
            schema: config.shape.as_ref().map(|shape| shape.schema.clone()),
        })
    }

    /// The model of nodes that name none, from a provider that is available.
    fn default_model(
        &self,
        provider: &str,
        config: &ModelNode,
    ) -> Result<Option<String>, ErrorInfo> {
        let providers = self.cx.providers;
        // The document decides whether a workflow may use a provider that answers by program.
        let own = config.provider.as_deref();
        let meant = |p: &&Provider| !p.programmed || own == Some(provider);
        match providers.get(provider).filter(meant) {
            Some(known) => Ok(known.default_model.clone()),
            None => {
                let message = providers.unknown(provider);
                Err(ErrorInfo::new("provider_not_supported", message))
            }
        }
    }

    /// Handles an answer to the call a node waits for.
    pub(crate) fn model_answered(&mut self, ix: usize, answer: ModelAnswer, cause: Seq) {
        let call = self.run.call_of(ix).expect("only a call is answered");
        let (answer, recorded) = self.record_model_answer(ix, &call, answer, cause);
        let validation = self.validate_answer(ix, &answer);
        let mut cause = recorded;
        if let Some((path, byte_offset)) = validation.recovered {
            let step = EnvelopeEventKind::Recovered { path, byte_offset };
            cause = self.emit_envelope_event(ix, &call, step, cause);
        }
        match validation.verdict {
            AnswerVerdict::Accepted(value) => {
                let done = Done::with(outputs(self.has_output_schema(ix), value, &answer));
                self.complete_node(ix, done, cause);
            }
            AnswerVerdict::Refused(refusal) => {
                let cause =
                    self.emit_envelope_event(ix, &call, EnvelopeEventKind::Refused(refusal), cause);
                let message = format!("the provider {:?} refused to answer", call.request.provider);
                self.fail_or_retry(ix, ErrorInfo::new("envelope_refusal", message), cause);
            }
            AnswerVerdict::Truncated => {
                let output_tokens = answer.usage.map(|usage| usage.output_tokens);
                let stop = answer.stop;
                let step = EnvelopeEventKind::Truncated {
                    stop,
                    output_tokens,
                };
                let cause = self.emit_envelope_event(ix, &call, step, cause);
                let next = with_larger_budget(&call, output_tokens);
                self.retry_model_call(ix, &call, EnvelopeFault::Truncation, None, next, cause);
            }
            AnswerVerdict::Unusable { fault, error } => {
                let next = with_correction(&call, &error);
                self.retry_model_call(ix, &call, fault, Some(error), Some(next), cause);
            }
        }
    }

    /// Records an answer. The prompt is removed where the answer may quote it.
    pub(in crate::run) fn record_model_answer(
        &mut self,
        ix: usize,
        call: &Call,
        mut answer: ModelAnswer,
        cause: Seq,
    ) -> (ModelAnswer, Seq) {
        if let Some(refusal) = &mut answer.refusal {
            let text = refusal.text.take();
            refusal.text = text.map(|text| redact_prompt(&text, &call.request.messages));
            // Content beside a refusal is not an answer.
            (answer.text, answer.data) = (None, None);
        }
        let event = Event::ModelAnswered(Box::new(ModelAnswered {
            node: self.run.def.nodes[ix].id.clone(),
            key: call.key.clone(),
            round: call.round,
            provider: call.request.provider.clone(),
            model: call.request.model.clone(),
            answer: answer.clone(),
        }));
        let seq = self.emit(event, Some(cause));
        (answer, seq)
    }

    pub(in crate::run) fn emit_envelope_event(
        &mut self,
        ix: usize,
        call: &Call,
        kind: EnvelopeEventKind,
        cause: Seq,
    ) -> Seq {
        let event = EnvelopeEvent {
            node: self.run.def.nodes[ix].id.clone(),
            provider: call.request.provider.clone(),
            model: call.request.model.clone(),
            kind,
        };
        self.emit(Event::Envelope(Box::new(event)), Some(cause))
    }

    pub(in crate::run) fn validate_answer(&self, ix: usize, answer: &ModelAnswer) -> CheckedAnswer {
        let shape = match &self.run.def.nodes[ix].kind {
            Kind::Model(config) => config.shape.as_ref(),
            _ => None,
        };
        check_answer(answer, shape.map(|shape| &shape.check), self.cx.work)
    }

    fn has_output_schema(&self, ix: usize) -> bool {
        matches!(&self.run.def.nodes[ix].kind, Kind::Model(config) if config.shape.is_some())
    }

    /// Makes the next call, if there is one to make.
    fn retry_model_call(
        &mut self,
        ix: usize,
        call: &Call,
        fault: EnvelopeFault,
        error: Option<String>,
        next: Option<NextRequest>,
        cause: Seq,
    ) {
        let Some((request, corrected)) = next.filter(|_| call.round < MAX_ATTEMPTS) else {
            return self.fail_exhausted_call(ix, call, fault, error, cause);
        };
        let execution = self.run.node(ix).execution - 1;
        let round = call.round + 1;
        let retry = ModelRetry {
            node: self.run.def.nodes[ix].id.clone(),
            attempt: round,
            reason: fault,
            error,
            work: Work::Model {
                effect: self.run.call_id(ix, execution, round),
                key: content_key(&request),
                round,
                corrected,
                request: Box::new(request),
                mock: call
                    .script
                    .clone()
                    .map(|script| Box::new(MockCall::begin(script, self.now))),
            },
        };
        self.emit(Event::ModelRetried(Box::new(retry)), Some(cause));
    }

    fn fail_exhausted_call(
        &mut self,
        ix: usize,
        call: &Call,
        reason: EnvelopeFault,
        error: Option<String>,
        cause: Seq,
    ) {
        let attempts = call.round;
        let step = EnvelopeEventKind::Exhausted {
            attempts,
            reason,
            error,
        };
        let cause = self.emit_envelope_event(ix, call, step, cause);
        let breached = Event::CapBreached {
            kind: CapKind::Schema,
            // The first attempt is not a retry. A budget that cannot grow allows fewer retries.
            limit: u64::from(attempts.saturating_sub(1)),
            observed: u64::from(attempts),
            node: Some(self.run.def.nodes[ix].id.clone()),
        };
        let cause = self.emit(breached, Some(cause));
        let (code, what) = match reason {
            EnvelopeFault::Truncation => ("envelope_truncation_unrecoverable", "was cut off"),
            EnvelopeFault::ParseError => ("envelope_invalid", "was not JSON"),
            EnvelopeFault::SchemaViolation => ("envelope_invalid", "did not fit the schema"),
        };
        let message = format!("the model's answer {what}, {attempts} times");
        let details = json!({"reason": reason.as_str(), "attempts": attempts});
        let error = ErrorInfo::new(code, message).with_details(details);
        self.fail_or_retry(ix, error, cause);
    }
}

/// A request, and whether it ends with text about an earlier answer.
type NextRequest = (ModelRequest, bool);

/// The same request with a larger token budget; `None` when the budget is at its maximum.
fn with_larger_budget(call: &Call, used: Option<u64>) -> Option<NextRequest> {
    let budget = call.request.max_output_tokens.or(used.filter(|n| *n > 0));
    let budget = budget.unwrap_or(ASSUMED_OUTPUT_TOKENS);
    let next = ModelRequest {
        max_output_tokens: Some((budget * BUDGET_MULTIPLIER).min(MAX_OUTPUT_TOKENS)),
        ..call.request.clone()
    };
    (budget < MAX_OUTPUT_TOKENS).then_some((next, call.corrected))
}

/// The same request, followed by what was wrong with the last answer.
fn with_correction(call: &Call, error: &str) -> NextRequest {
    let mut next = call.request.clone();
    if call.corrected {
        next.messages.pop();
    }
    next.messages.push(ModelMessage {
        role: ModelRole::User,
        content: format!(
            "Your last answer could not be used ({error}). Answer again with a single JSON value \
             that fits the schema, without any other text."
        ),
    });
    (next, true)
}

/// JSON uses one output port, text another.
fn outputs(has_schema: bool, value: Value, answer: &ModelAnswer) -> Object {
    if has_schema {
        return Object::from_iter([("output".to_owned(), value)]);
    }
    Object::from_iter([
        ("content".to_owned(), value),
        ("finishReason".to_owned(), json!(answer.stop.as_str())),
    ])
}
