//! The mock provider of a run that names one: it answers every model call, and no real provider is
//! called. Its answer is emitted in chunks, each an event. The delay between two chunks is a timer
//! of the run, so a restart neither loses nor repeats a chunk. The last chunk completes the call,
//! which then continues as after any answer.
//!
//! ```text
//! started --> chunk --due--> chunk --due--> last chunk, answered --> as after any answer
//!         --due--> failed ............................................ retried or failed
//! ```
//!
//! A call that is repeated after a pause or a failure starts again with its first chunk.

use super::mock_provider::{self as mock, MOCK_PROVIDER, Mock};
use crate::model::content_key;
use crate::node::ModelNode;
use crate::run::{DecisionDraft, Run};
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

impl Run {
    fn named_mock(&self) -> Option<&serde_json::Value> {
        let options = &self.started_request()?.options;
        options.configurable.as_ref()?.get(mock::KEY)
    }

    /// The mock provider the run names. Invalid settings are an error, not an absence: no call may
    /// reach a real provider instead.
    pub(crate) fn mock(&self) -> Result<Option<Mock>, ErrorInfo> {
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

    /// The options that children inherit: a test without real providers must not reach one through
    /// its children.
    pub(crate) fn inherited_options(&self) -> RunOptions {
        let named = self.named_mock();
        let configurable =
            named.map(|mock| Object::from_iter([(mock::KEY.to_owned(), mock.clone())]));
        RunOptions {
            configurable,
            ..RunOptions::default()
        }
    }

    /// The next action of the mock provider a node waits for, if it is due.
    fn next_mock_action(&self, ix: usize, now: Timestamp) -> Option<MockAction> {
        let state = self.node(ix);
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
            // The answer comes with its last chunk.
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

/// The answer made of the chunks, in the shape of a provider's answer.
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
    /// Refuses a prompt that is named by an id, unless a mock provider answers.
    pub(crate) fn admit_prompt(&self, config: &ModelNode) -> Result<(), ErrorInfo> {
        if config.provider.is_some() || self.run.named_mock().is_some() {
            return Ok(());
        }
        Err(no_prompt_library())
    }

    /// The call as it is repeated.
    pub(crate) fn restart_model_call(&self, mut work: Work) -> Work {
        if let Work::Model {
            mock: Some(call), ..
        } = &mut work
        {
            **call = MockCall::begin(call.script.clone(), self.now);
        }
        work
    }

    /// Emits the chunks that are due, and executes what follows.
    pub(crate) fn run_mock_call(&mut self, ix: usize) {
        while let Some(action) = self.run.next_mock_action(ix, self.now) {
            let last = self.run.node(ix).last;
            let cause = last.expect("a node that waits has started");
            match action {
                MockAction::Piece(piece) => {
                    // Chunks count as starts: what follows a long answer is left to the next
                    // decision.
                    self.count_start();
                    self.emit(Event::OutputChunk(Box::new(piece)), Some(cause));
                }
                MockAction::Answer(answer) => self.model_answered(ix, answer, cause),
                MockAction::Failure(error) => self.fail_or_retry(ix, error, cause),
            }
        }
    }
}

pub(crate) fn no_prompt_library() -> ErrorInfo {
    ErrorInfo::new(
        "capability_not_provided",
        "this host has no prompts by id; with a test key the run can name a mock provider under \
         configurable.mockProvider, and elsewhere core.llm.chat asks a model",
    )
}

/// A call that was running at the start of a branch. A call to a provider becomes a mock call if
/// the branch names a mock provider. A script that was started continues, with its delay counted
/// from now.
pub(crate) fn rebase_call(
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
