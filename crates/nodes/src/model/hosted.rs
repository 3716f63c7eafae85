//! A model over the network, for nodes: one guarded request, its response read up to a limit.

use super::connection::{HostedProvider, ModelApi, ProviderConnection, ProviderRequest};
use super::failure::{CallError, CallErrorReason};
use super::{anthropic, openai};
use crate::client::ClientError;
use crate::http::CallLimits;
use serde_json::Value;
use std::time::Duration;
use tandem_record::{
    EffectId, ErrorInfo, MAX_NESTING, ModelAnswer, ModelRequest, TraceContext, nests_deeper,
};

pub(super) struct HostedModel(ProviderConnection);

impl HostedModel {
    pub(super) fn new(
        id: &str,
        hosted: HostedProvider,
        limits: CallLimits,
    ) -> Result<Self, ClientError> {
        Ok(Self(ProviderConnection::new(id, hosted, limits)?))
    }

    pub(super) async fn call(
        &self,
        request: &ModelRequest,
        timeout: Duration,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> Result<ModelAnswer, ErrorInfo> {
        let answered = self.attempt(request, timeout, effect, trace).await;
        answered.map_err(|error| error.into_error_info(&self.0.name))
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        timeout: Duration,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> Result<ModelAnswer, CallError> {
        let connection = &self.0;
        let (path, body) = match connection.model_api {
            ModelApi::OpenAi => {
                let body = openai::body(request, connection.schema, connection.host());
                (openai::PATH, body)
            }
            ModelApi::Anthropic => (anthropic::PATH, anthropic::body(request, connection.schema)),
        };
        let outgoing = ProviderRequest {
            path,
            content_type: "application/json",
            body: body.to_string().into_bytes(),
            effect,
            trace,
            timeout,
        };
        let mut response = connection.post(outgoing).await?;
        let limit = connection.limits.response_bytes;
        let bytes = connection.read(&mut response, limit).await?;
        let unreadable = CallErrorReason::Unreadable;
        // An answer that is nested too deeply to be stored is invalid.
        if nests_deeper(&bytes, MAX_NESTING) {
            return Err(unreadable.into());
        }
        let body: Value = serde_json::from_slice(&bytes).map_err(|_| unreadable)?;
        let answer = match connection.model_api {
            ModelApi::OpenAi => openai::answer(&body),
            ModelApi::Anthropic => anthropic::answer(&body),
        };
        answer.ok_or_else(|| unreadable.into())
    }
}
