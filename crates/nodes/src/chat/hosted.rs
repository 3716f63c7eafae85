//! A chat model over the network: one attempt of a call, whole or streamed.

use super::answer::AnswerParts;
use super::call::{ChatReply, ChatRequest, PieceSink};
use super::failure::ProviderFailure;
use super::{anthropic, openai};
use crate::client::ClientError;
use crate::event_stream::{Frames, is_event_stream};
use crate::http::CallLimits;
use crate::model::connection::{HostedProvider, ModelApi, ProviderConnection, ProviderRequest};
use crate::model::failure::{CallError, CallErrorReason as Reason};
use crate::model::{anthropic as anthropic_api, openai as openai_api};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use std::time::Duration;
use tandem_record::{MAX_NESTING, nests_deeper};

/// The bytes of a stream per byte of its answer: an event names its model and much else for each
/// word.
const STREAM_OVERHEAD: usize = 128;
/// How long the end of a stream is waited for after the answer is complete. Only usage follows.
const END_WAIT: Duration = Duration::from_secs(2);
/// Variables with this beginning configure the host itself, secrets included.
const HOST_VARIABLES: &str = "TANDEM_";

/// A hosted model as an agent or the operator configures it.
#[derive(Debug)]
pub struct ChatSettings {
    /// The provider's name in failures, logs and circuit breakers.
    pub provider: String,
    pub hosted: HostedProvider,
    pub model: String,
    pub temperature: Option<f64>,
    /// Limit of the tokens in one answer.
    pub max_tokens: Option<u32>,
}

/// Why a key cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    #[error("the environment variable {0} is not set or is empty")]
    NotSet(String),
    #[error("the environment variable {0} belongs to the host: keys of models have other names")]
    OfHost(String),
}

/// The key in an environment variable that an agent names. `environment` reads a variable.
pub fn read_api_key(
    name: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<String, ApiKeyError> {
    if name.to_ascii_uppercase().starts_with(HOST_VARIABLES) {
        return Err(ApiKeyError::OfHost(name.to_owned()));
    }
    let key = environment(name).map(|key| key.trim().to_owned());
    key.filter(|key| !key.is_empty())
        .ok_or_else(|| ApiKeyError::NotSet(name.to_owned()))
}

/// What is sent with every call.
pub(super) struct ModelParameters {
    pub(super) model: String,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
}

pub(super) struct HostedChat {
    connection: ProviderConnection,
    parameters: ModelParameters,
}

impl HostedChat {
    pub(super) fn new(settings: ChatSettings, limits: CallLimits) -> Result<Self, ClientError> {
        Ok(Self {
            connection: ProviderConnection::new(&settings.provider, settings.hosted, limits)?,
            parameters: ModelParameters {
                model: settings.model,
                temperature: settings.temperature,
                max_tokens: settings.max_tokens,
            },
        })
    }

    pub(super) fn provider(&self) -> &str {
        &self.connection.name
    }

    pub(super) async fn attempt(
        &self,
        request: &ChatRequest,
        pieces: Option<&PieceSink<'_>>,
    ) -> Result<ChatReply, ProviderFailure> {
        let answered = self.answer(request, pieces).await;
        answered.map_err(|error| ProviderFailure::from_call(&error, self.provider()))
    }

    async fn answer(
        &self,
        request: &ChatRequest,
        pieces: Option<&PieceSink<'_>>,
    ) -> Result<ChatReply, CallError> {
        let mut response = self.send(request, pieces.is_some()).await?;
        let kind = response.headers().get(CONTENT_TYPE);
        let mut parts = AnswerParts::default();
        if kind.is_some_and(is_event_stream) {
            self.read_stream(&mut response, &mut parts, pieces).await?;
        } else {
            // Some servers do not stream, also when asked to.
            self.read_whole(&mut response, &mut parts).await?;
        }
        if self.connection.model_api == ModelApi::Anthropic
            && let Some(tool) = anthropic::answer_tool(request, self.connection.schema)
        {
            anthropic::take_answer(&mut parts, &tool)?;
        }
        let reply = parts.into_reply(request)?;
        if let (Some(pieces), Some(text)) = (pieces, &reply.answer.text)
            && !pieces.has_delivered()
        {
            pieces.deliver(text);
        }
        Ok(reply)
    }

    async fn send(&self, request: &ChatRequest, is_streamed: bool) -> Result<Response, CallError> {
        let (connection, parameters) = (&self.connection, &self.parameters);
        let mode = connection.schema;
        let (path, body) = match connection.model_api {
            ModelApi::OpenAi => {
                let host = connection.host();
                let body = openai::body(request, parameters, mode, host, is_streamed);
                (openai_api::PATH, body)
            }
            ModelApi::Anthropic => {
                let body = anthropic::body(request, parameters, mode, is_streamed);
                (anthropic_api::PATH, body)
            }
        };
        let outgoing = ProviderRequest {
            path,
            content_type: "application/json",
            body: body.to_string().into_bytes(),
            effect: &request.key,
            trace: request.trace.as_ref(),
            timeout: request.timeout,
        };
        connection.post(outgoing).await
    }

    async fn read_whole(
        &self,
        response: &mut Response,
        parts: &mut AnswerParts,
    ) -> Result<(), CallError> {
        let limit = self.connection.limits.response_bytes;
        let bytes = self.connection.read(response, limit).await?;
        let body = parse(&bytes)?;
        match self.connection.model_api {
            ModelApi::OpenAi => openai::absorb_response(parts, &body),
            ModelApi::Anthropic => anthropic::absorb_response(parts, &body),
        }
    }

    /// Reads events until the answer is complete. A broken connection after that loses nothing.
    async fn read_stream(
        &self,
        response: &mut Response,
        parts: &mut AnswerParts,
        pieces: Option<&PieceSink<'_>>,
    ) -> Result<(), CallError> {
        let limit_bytes = self.connection.limits.response_bytes;
        let too_large = Reason::TooLarge { limit_bytes };
        let mut frames = Frames::default();
        let mut progress = anthropic::StreamProgress::default();
        let mut read = 0_usize;
        while !progress.has_ended {
            let chunk = match parts.finish {
                None => response.chunk().await,
                Some(_) => match tokio::time::timeout(END_WAIT, response.chunk()).await {
                    Ok(Ok(chunk)) => Ok(chunk),
                    Ok(Err(_)) | Err(_) => Ok(None),
                },
            };
            let chunk = chunk.map_err(|error| self.stream_error(&error))?;
            let Some(chunk) = chunk else { break };
            read = read.saturating_add(chunk.len());
            for data in frames.take(&chunk) {
                match self.connection.model_api {
                    ModelApi::OpenAi if data.trim_ascii() == openai::END_OF_STREAM => {
                        progress.has_ended = true;
                        break;
                    }
                    ModelApi::OpenAi => openai::absorb_event(parts, &parse(&data)?, pieces)?,
                    ModelApi::Anthropic => {
                        let event = parse(&data)?;
                        anthropic::absorb_event(parts, &mut progress, &event, pieces)?;
                    }
                }
                if parts.bytes() > limit_bytes {
                    return Err(too_large.into());
                }
            }
            if frames.pending_bytes() > limit_bytes
                || read > limit_bytes.saturating_mul(STREAM_OVERHEAD)
            {
                return Err(too_large.into());
            }
        }
        Ok(())
    }

    /// The headers of the answer have arrived, so that a broken connection cuts it off.
    fn stream_error(&self, error: &reqwest::Error) -> CallError {
        let error = self.connection.transport_error(error);
        match error.reason {
            Reason::BrokenOff => Reason::CutOff.into(),
            _ => error,
        }
    }
}

/// JSON of a provider. What is nested too deeply to be stored is invalid.
fn parse(bytes: &[u8]) -> Result<Value, CallError> {
    if nests_deeper(bytes, MAX_NESTING) {
        return Err(Reason::Unreadable.into());
    }
    serde_json::from_slice(bytes).map_err(|_| Reason::Unreadable.into())
}
