//! A mock provider's part in a run that named one: it answers every call of a model. Nobody is called.
//! What it says is told piece by piece, each piece an event, and the time between two of them is a
//! timer of the run, so a restart neither loses nor repeats any. With its last piece the call is
//! answered, and what follows from an answer follows.
//!
//! ```text
//! started --> piece --due--> piece --due--> last piece, answered --> as after any answer
//!         --due--> failed ............................................ tried again or failed
//! ```
//!
//! A call that is made again, after a pause or a failure, is said from the beginning.

use super::draft::DecisionDraft;
use super::state::{NodeState, Run};
use crate::model::mock::{self, Mock};
use crate::model::{MOCK_PROVIDER, content_key};
use crate::node::ModelNode;
use tandem_record::{
    ChunkEnd, ChunkPiece, ErrorInfo, Event, FinishReason, MockCall, MockEnding, ModelAnswer,
    ModelRefusal, ModelStop, ModelUsage, NodeStatus, Object, OutputChunk, RunOptions, Timestamp,
    Work,
};

/// What a mock provider does next.
enum MockAction {
    Piece(OutputChunk),
    Answer(ModelAnswer),
    Failure(ErrorInfo),
}

impl NodeState {
    pub(super) fn apply_output_chunk(&mut self, at: Timestamp) {
        if let Some(Work::Model {
            mock: Some(call), ..
        }) = &mut self.work
        {
            call.record_emitted(at);
        }
    }
}

impl Run {
    fn named_mock(&self) -> Option<&serde_json::Value> {
        let options = &self.state.request.as_ref()?.options;
        options.configurable.as_ref()?.get(mock::KEY)
    }

    /// The mock provider the run named. One that cannot be read is an error and not an absence: no
    /// call may reach a real provider in its place.
    pub(super) fn mock(&self) -> Result<Option<Mock>, ErrorInfo> {
        let Some(named) = self.named_mock() else {
            return Ok(None);
        };
        let read = mock::read(named).map(Some);
        read.map_err(|problems| {
            let first = problems
                .first()
                .map(|p| format!("{}: {}", p.path, p.message));
            ErrorInfo::new("validation_error", first.unwrap_or_default())
        })
    }

    /// What children are given of the run's options: a test that asks no provider must not reach
    /// one through them.
    pub(super) fn inherited_options(&self) -> RunOptions {
        let named = self.named_mock();
        let configurable =
            named.map(|mock| Object::from_iter([(mock::KEY.to_owned(), mock.clone())]));
        RunOptions {
            configurable,
            ..RunOptions::default()
        }
    }

    /// What the provider a node waits for does now, if it is time.
    fn next_mock_action(&self, ix: usize, now: Timestamp) -> Option<MockAction> {
        let state = &self.state.nodes[ix];
        let Some(Work::Model {
            mock: Some(call),
            request,
            ..
        }) = &state.work
        else {
            return None;
        };
        if state.status != NodeStatus::Running || state.retry_at.is_some() {
            return None;
        }
        let pieces = &call.script.pieces;
        let (next, last) = (pieces.get(call.emitted), call.emitted + 1 == pieces.len());
        match (&call.script.ending, next) {
            // The answer comes with its last piece.
            (MockEnding::Answer(end), None) => Some(MockAction::Answer(answer(pieces, *end))),
            _ if now < call.due => None,
            (MockEnding::Failure(error), None) => Some(MockAction::Failure(error.clone())),
            (ending, Some(piece)) => Some(MockAction::Piece(OutputChunk {
                node: self.def.nodes[ix].id.clone(),
                piece: piece.clone(),
                model: request.model.clone(),
                end: match ending {
                    MockEnding::Answer(end) if last => Some(*end),
                    MockEnding::Answer(_) | MockEnding::Failure(_) => None,
                },
            })),
        }
    }
}

/// What the pieces come to, in the shape a provider's answer has.
fn answer(pieces: &[ChunkPiece], end: ChunkEnd) -> ModelAnswer {
    let filtered = end.finish == FinishReason::ContentFilter;
    ModelAnswer {
        text: Some(pieces.iter().map(ChunkPiece::text).collect()),
        data: None,
        stop: match end.finish {
            FinishReason::Length => ModelStop::Length,
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::ContentFilter => {
                ModelStop::End
            }
        },
        refusal: filtered.then(|| ModelRefusal {
            text: None,
            category: Some(end.finish.as_str().to_owned()),
        }),
        usage: Some(ModelUsage {
            input_tokens: end.usage.prompt_tokens,
            output_tokens: end.usage.completion_tokens,
            cache_read_tokens: None,
            cache_write_tokens: None,
        }),
    }
}

impl DecisionDraft<'_> {
    /// A prompt that is named by its id needs somebody who knows it.
    pub(super) fn admit_prompt(&self, config: &ModelNode) -> Result<(), ErrorInfo> {
        if config.provider.is_some() || self.run.named_mock().is_some() {
            return Ok(());
        }
        Err(no_prompt_library())
    }

    /// A call as it is made again.
    pub(super) fn restart_model_call(&self, mut work: Work) -> Work {
        if let Work::Model {
            mock: Some(call), ..
        } = &mut work
        {
            **call = MockCall::begin(call.script.clone(), self.now);
        }
        work
    }

    /// Has the provider a node waits for say what is due, and the node do what follows.
    pub(super) fn run_mock_call(&mut self, ix: usize) {
        while let Some(action) = self.run.next_mock_action(ix, self.now) {
            let last = self.run.state.nodes[ix].last;
            let cause = last.expect("a node that waits has started");
            match action {
                MockAction::Piece(piece) => {
                    // Pieces weigh as starts do: what follows a long answer is decided by itself.
                    self.starts += 1;
                    self.emit(Event::OutputChunk(Box::new(piece)), Some(cause));
                }
                MockAction::Answer(answer) => self.model_answered(ix, answer, cause),
                MockAction::Failure(error) => self.fail_or_retry(ix, error, cause),
            }
        }
    }
}

pub(super) fn no_prompt_library() -> ErrorInfo {
    ErrorInfo::new(
        "capability_not_provided",
        "this host has no prompts by id; with a test key the run can name a mock provider under \
         configurable.mockProvider, and elsewhere core.llm.chat asks a model",
    )
}

/// A call that was under way where a branch begins. One of a provider is a mock provider's if the
/// branch names one; a script that was begun goes on, its wait from now.
pub(super) fn rebase_call(
    work: &mut Work,
    mock: Option<&Mock>,
    now: Timestamp,
    from_now: impl Fn(Timestamp) -> Timestamp,
) {
    let Work::Model {
        key,
        request,
        mock: call,
        ..
    } = work
    else {
        return;
    };
    match (call, mock) {
        (Some(call), _) => call.due = from_now(call.due),
        (call @ None, Some(mock)) => {
            request.provider = MOCK_PROVIDER.to_owned();
            request.model.clone_from(&mock.model);
            *key = content_key(request);
            *call = Some(Box::new(MockCall::begin(mock.script.clone(), now)));
        }
        (None, None) => {}
    }
}
