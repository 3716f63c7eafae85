//! A model over the network: one guarded request, its response read up to a limit.

use super::schema::SchemaMode;
use super::{anthropic, failure, openai};
use crate::client::{ClientError, guarded_client};
use crate::failure::chain;
use crate::guard::{Rejected, UrlGuard};
use crate::http::CallLimits;
use crate::response::{self, Body};
use crate::trace::outgoing_trace;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    EffectId, ErrorInfo, MAX_NESTING, ModelAnswer, ModelRequest, TraceContext, nests_deeper,
};
use url::Url;

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    /// Chat completions.
    OpenAi,
    /// The messages interface.
    Anthropic,
}

/// A provider as configured by the operator.
pub struct HostedProvider {
    pub model_api: ModelApi,
    pub base_url: Url,
    /// `None` for a server that needs none.
    pub key: Option<String>,
    pub schema: SchemaMode,
    /// What may be called to reach it.
    pub guard: UrlGuard,
}

impl fmt::Debug for HostedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedProvider")
            .field("model_api", &self.model_api)
            .finish_non_exhaustive()
    }
}

pub(super) struct HostedModel {
    model_api: ModelApi,
    url: Url,
    key: Option<HeaderValue>,
    schema: SchemaMode,
    guard: Arc<UrlGuard>,
    client: Client,
    limits: CallLimits,
}

impl HostedModel {
    pub(super) fn new(hosted: HostedProvider, limits: CallLimits) -> Result<Self, ClientError> {
        let guard = Arc::new(hosted.guard);
        let connect = Duration::from_millis(limits.connect_timeout_ms);
        let path = match hosted.model_api {
            ModelApi::OpenAi => openai::PATH,
            ModelApi::Anthropic => anthropic::PATH,
        };
        let mut url = hosted.base_url;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        let header = |key: String| {
            let text = match hosted.model_api {
                ModelApi::OpenAi => format!("Bearer {key}"),
                ModelApi::Anthropic => key,
            };
            let mut value = HeaderValue::try_from(text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        Ok(Self {
            model_api: hosted.model_api,
            url,
            key: hosted.key.and_then(header),
            schema: hosted.schema,
            client: guarded_client(Arc::clone(&guard), connect)?,
            guard,
            limits,
        })
    }

    pub(super) async fn call(
        &self,
        request: &ModelRequest,
        timeout: Duration,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> Result<ModelAnswer, ErrorInfo> {
        let provider = request.provider.as_str();
        if let Err(rejected) = self.guard.check_url(self.url.as_str()) {
            return Err(self.address_rejected(provider, &rejected));
        }
        let host = self.url.host_str().unwrap_or_default();
        let body = match self.model_api {
            ModelApi::OpenAi => openai::body(request, self.schema, host),
            ModelApi::Anthropic => anthropic::body(request, self.schema),
        };
        let sent = self
            .client
            .post(self.url.clone())
            .timeout(timeout.min(Duration::from_millis(self.limits.timeout_ms)))
            .headers(self.headers(effect, trace))
            .body(body.to_string())
            .send()
            .await;
        let mut response = sent.map_err(|error| self.transport_error(provider, &error))?;
        let status = response.status();
        tracing::debug!(%effect, provider, status = status.as_u16(), "model answered");
        if !status.is_success() {
            let enough = self.limits.error_body_bytes;
            let error_body = match response::read(&mut response, enough).await {
                Ok(Body::Whole(bytes)) => serde_json::from_slice(&bytes).unwrap_or_default(),
                Ok(Body::Cut(_)) | Err(_) => Value::Null,
            };
            return Err(failure::status(
                provider,
                status,
                response.headers(),
                &error_body,
            ));
        }
        let answer = self.read(provider, &mut response).await?;
        answer.ok_or_else(|| failure::unreadable(provider))
    }

    async fn read(
        &self,
        provider: &str,
        response: &mut Response,
    ) -> Result<Option<ModelAnswer>, ErrorInfo> {
        let limit = self.limits.response_bytes;
        let bytes = match response::read(response, limit).await {
            Ok(Body::Whole(bytes)) => bytes,
            Ok(Body::Cut(_)) => return Err(failure::too_large(provider, limit)),
            Err(error) => return Err(self.transport_error(provider, &error)),
        };
        // An answer that is nested too deeply to be stored is invalid.
        if nests_deeper(&bytes, MAX_NESTING) {
            return Ok(None);
        }
        let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
            return Ok(None);
        };
        Ok(match self.model_api {
            ModelApi::OpenAi => openai::answer(&body),
            ModelApi::Anthropic => anthropic::answer(&body),
        })
    }

    fn headers(&self, effect: &EffectId, trace: Option<&TraceContext>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let mut put = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        let trace = outgoing_trace(trace);
        put("idempotency-key", effect.as_str());
        put("traceparent", &trace.traceparent);
        if let Some(state) = &trace.tracestate {
            put("tracestate", state);
        }
        if self.model_api == ModelApi::Anthropic {
            put("anthropic-version", anthropic::VERSION);
        }
        if let Some(key) = &self.key {
            let name = match self.model_api {
                ModelApi::OpenAi => "authorization",
                ModelApi::Anthropic => "x-api-key",
            };
            headers.insert(HeaderName::from_static(name), key.clone());
        }
        headers
    }

    fn transport_error(&self, provider: &str, error: &reqwest::Error) -> ErrorInfo {
        let rejected = chain(error).find_map(|cause| cause.downcast_ref::<Rejected>());
        match rejected {
            Some(rejected) => self.address_rejected(provider, rejected),
            None => failure::transport(provider, error),
        }
    }

    /// The provider's address is written only to the operator's log.
    fn address_rejected(&self, provider: &str, rejected: &Rejected) -> ErrorInfo {
        tracing::warn!(provider, %rejected, "the model provider's address may not be called");
        let message =
            format!("The model provider `{provider}` is at an address this host may not call.");
        ErrorInfo::new(failure::UNAVAILABLE, message)
    }
}
