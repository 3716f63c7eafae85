//! One execution of a flow in Rust, polled by hand from one await to the next.

use crate::context::FlowContext;
use crate::definition::{FlowFuture, RustFlow};
use crate::filter::FilterContext;
use crate::outcome::{FlowResult, FlowStop};
use crate::state::{Answer, Request, RequestId, RunState, SharedState, Stuck};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::mem::size_of_val;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{FlowFailure, FlowRunStart};
use tandem_record::{Object, Timestamp};

/// Bytes of an effect, of the arguments of a call, or of a result, as JSON (Z-209).
const MAX_VALUE_BYTES: usize = 256 << 10;
/// What the shared state takes beside the future.
const STATE_BYTES: usize = 4 << 10;

/// A flow that was started. It waits at an effect or a call, or has ended.
pub struct FlowTask {
    state: SharedState,
    /// Gone when the flow has ended.
    future: Option<FlowFuture>,
    waits_for: Option<(RequestId, Request)>,
}

impl FlowTask {
    /// Runs the code up to its first step.
    pub fn start(
        flow: &RustFlow,
        start: &FlowRunStart,
        now: Timestamp,
        is_live: bool,
    ) -> Result<(Self, ProgramStep), FlowFailure> {
        let mut data = start.context.clone();
        data.insert("agentId".to_owned(), json!(start.agent_id));
        data.insert("flowId".to_owned(), json!(start.flow_id));
        data.insert("flowRunId".to_owned(), json!(start.run_id));
        let input = start.input.clone().unwrap_or_default();
        data.insert("input".to_owned(), input.clone());
        let mut state = RunState::new(start.run_id.clone(), now, start.seed, data);
        state.is_live = is_live;
        let state = Arc::new(Mutex::new(state));
        let begun = flow.begin(FlowContext::new(state.clone()), input);
        let future = begun.map_err(|why| {
            let message = format!("the flow cannot read its input: {why}");
            failure("invalid_input", message)
        })?;
        let mut task = Self {
            state,
            future: Some(future),
            waits_for: None,
        };
        let step = task.step();
        Ok((task, step))
    }

    /// Lines of the flow are written to the log from now on.
    pub fn go_live(&mut self) {
        self.state.lock().is_live = true;
    }

    /// Goes on to the next step. `patch` holds the data members of `ctx` that changed.
    pub fn resume(&mut self, with: Resume, patch: &Object, now: Timestamp) -> ProgramStep {
        let Some((id, request)) = self.waits_for.take() else {
            return ProgramStep::Failed(exception("the flow waits for nothing"));
        };
        let answer: Answer = match (&request, with) {
            (Request::Effect { .. }, Resume::Value(value)) => Ok(value),
            (Request::Effect { .. }, Resume::Throw(error)) => Err(error),
            (Request::Host { .. }, Resume::Host(answer)) => answer,
            (Request::Effect { .. }, Resume::Host(_))
            | (Request::Host { .. }, Resume::Value(_) | Resume::Throw(_)) => {
                return ProgramStep::Failed(exception("the flow waits for something else"));
            }
        };
        if let Ok(Some(value)) = &answer
            && let Some(failure) = too_large("a result", value)
        {
            return self.fail(failure);
        }
        let mut state = self.state.lock();
        state.now = now;
        state.update(patch);
        if let Ok(Some(reply)) = &answer
            && let Some(key) = key_of_ask(&request)
        {
            state.note_reply(key, reply);
        }
        state.answer(id, answer);
        drop(state);
        self.step()
    }

    /// Asks the filter of the effect at which the flow waits.
    pub fn filter_input(
        &mut self,
        input: &Value,
        keys: &BTreeMap<String, Value>,
    ) -> Result<Value, String> {
        let state = self.state.lock();
        let waits_for = self.waits_for.as_ref();
        let filter = waits_for.and_then(|(id, _)| state.filter_of(*id));
        let Some(filter) = filter else {
            return Err("the flow waits without a filter".to_owned());
        };
        let context = FilterContext::new(state.data.clone(), keys.clone());
        // The author's code may look at the context of its flow.
        drop(state);
        let asked = || filter.ask(input, context);
        catch_unwind(AssertUnwindSafe(asked)).unwrap_or_else(|panicked| {
            Err(format!("the filter panicked: {}", panic_text(&*panicked)))
        })
    }

    /// Ends the code: what it awaits fails with [`FlowStop::Closed`], so that it unwinds. Returns the effects
    /// it still requested, which nobody performs.
    pub fn close(&mut self) -> Vec<Value> {
        self.waits_for = None;
        if self.future.is_none() {
            return Vec::new();
        }
        self.state.lock().start_closing();
        if let Err(panicked) = self.poll() {
            let (run, why) = (self.state.lock().run.clone(), panic_text(&*panicked));
            tracing::debug!(%run, why, "a flow panicked while it was closed");
        }
        self.drop_future();
        self.state.lock().take_ignored()
    }

    /// About how much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let future = self.future.as_ref();
        STATE_BYTES + future.map_or(0, |future| size_of_val(&**future))
    }

    fn step(&mut self) -> ProgramStep {
        let polled = match self.poll() {
            Ok(polled) => polled,
            Err(panicked) => {
                let message = format!("the flow panicked: {}", panic_text(&*panicked));
                return self.fail(exception(message));
            }
        };
        match polled {
            Poll::Ready(result) => {
                self.drop_future();
                let checked = self.state.lock().check_forgotten();
                match checked {
                    Ok(()) => ended(result),
                    Err(stuck) => ProgramStep::Failed(failure_of(stuck)),
                }
            }
            Poll::Pending => {
                let next = self.state.lock().next_request();
                match next {
                    Ok((id, request)) => self.hand_out(id, request),
                    Err(stuck) => self.fail(failure_of(stuck)),
                }
            }
        }
    }

    fn hand_out(&mut self, id: RequestId, request: Request) -> ProgramStep {
        let (large, step) = match &request {
            Request::Effect { effect, .. } => (
                too_large("an effect", effect),
                ProgramStep::Yielded(effect.clone()),
            ),
            Request::Host { name, args } => (
                too_large("a call", &json!(args)),
                ProgramStep::HostCall {
                    name: (*name).to_owned(),
                    args: args.clone(),
                },
            ),
        };
        if let Some(failure) = large {
            return self.fail(failure);
        }
        self.waits_for = Some((id, request));
        step
    }

    /// Polls once. The waker does nothing: only an answer can make the flow go on.
    fn poll(&mut self) -> Result<Poll<FlowResult>, Box<dyn Any + Send>> {
        let Some(future) = &mut self.future else {
            return Ok(Poll::Pending);
        };
        let mut context = Context::from_waker(Waker::noop());
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)))
    }

    fn fail(&mut self, failure: FlowFailure) -> ProgramStep {
        self.drop_future();
        ProgramStep::Failed(failure)
    }

    /// Destructors of the author run here.
    fn drop_future(&mut self) {
        let future = self.future.take();
        if let Err(panicked) = catch_unwind(AssertUnwindSafe(|| drop(future))) {
            let (run, why) = (self.state.lock().run.clone(), panic_text(&*panicked));
            tracing::warn!(%run, why, "a flow panicked while it was dropped");
        }
    }
}

impl Drop for FlowTask {
    fn drop(&mut self) {
        self.drop_future();
    }
}

fn ended(result: FlowResult) -> ProgramStep {
    match result {
        Ok(returned) => ProgramStep::Returned(match returned.reason {
            Some(reason) => json!({ "reason": reason }),
            None => Value::Null,
        }),
        Err(FlowStop::Closed) => ProgramStep::Returned(Value::Null),
        // The message of a thrown error begins with its own code.
        Err(stop @ (FlowStop::Thrown(_) | FlowStop::Failed(_))) => {
            ProgramStep::Failed(exception(stop.to_string()))
        }
    }
}

fn key_of_ask(request: &Request) -> Option<&str> {
    let Request::Effect { effect, .. } = request else {
        return None;
    };
    let is_ask = effect["type"] == "ask";
    effect["key"].as_str().filter(|_| is_ask)
}

fn failure_of(stuck: Stuck) -> FlowFailure {
    match stuck {
        Stuck::Forgotten(helper) => failure(
            "effect_not_yielded",
            format!(
                "the effect of ctx.{helper} was not awaited to its end; write `ctx.{helper}(…).await?`, \
                 one effect at a time"
            ),
        ),
        Stuck::ForeignAwait => failure(
            "foreign_await",
            "the flow awaits something that is not a method of ctx; it would never go on"
                .to_owned(),
        ),
    }
}

fn too_large(what: &str, value: &Value) -> Option<FlowFailure> {
    let bytes = value.to_string().len();
    (bytes > MAX_VALUE_BYTES).then(|| {
        let message = format!("{what} of {bytes} bytes is larger than {MAX_VALUE_BYTES}");
        failure("flow_limit", message)
    })
}

fn exception(message: impl Into<String>) -> FlowFailure {
    failure("exception", message.into())
}

fn failure(code: &str, message: String) -> FlowFailure {
    FlowFailure {
        code: code.to_owned(),
        message,
        details: None,
    }
}

fn panic_text(panicked: &(dyn Any + Send)) -> String {
    let text = panicked
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| panicked.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a text".to_owned())
}
