//! The guarded connection to one provider: sends a request once, reads the response up to a limit.

use super::anthropic;
use super::failure::{CallError, CallErrorReason};
use super::schema::SchemaMode;
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
use tandem_record::{EffectId, TraceContext};
use url::Url;

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    /// Chat completions.
    OpenAi,
    /// The messages interface.
    Anthropic,
}

impl ModelApi {
    /// The address of the company that designed the API.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
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

pub(crate) struct ProviderConnection {
    /// The operator's name of the provider, for errors and logs.
    pub(crate) name: String,
    pub(crate) model_api: ModelApi,
    pub(crate) schema: SchemaMode,
    pub(crate) limits: CallLimits,
    base_url: Url,
    key: Option<HeaderValue>,
    guard: Arc<UrlGuard>,
    client: Client,
}

/// One request to a provider.
pub(crate) struct ProviderRequest<'a> {
    /// Below the base URL.
    pub(crate) path: &'static str,
    pub(crate) content_type: &'a str,
    pub(crate) body: Vec<u8>,
    pub(crate) effect: &'a EffectId,
    pub(crate) trace: Option<&'a TraceContext>,
    /// Bounds the response and its body. The connection's own limit applies too.
    pub(crate) timeout: Duration,
}

impl ProviderConnection {
    pub(crate) fn new(
        name: &str,
        hosted: HostedProvider,
        limits: CallLimits,
    ) -> Result<Self, ClientError> {
        let guard = Arc::new(hosted.guard);
        let connect = Duration::from_millis(limits.connect_timeout_ms);
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
            name: name.to_owned(),
            model_api: hosted.model_api,
            schema: hosted.schema,
            limits,
            base_url: hosted.base_url,
            key: hosted.key.and_then(header),
            client: guarded_client(Arc::clone(&guard), connect)?,
            guard,
        })
    }

    pub(crate) fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Sends a request; returns a response with a success status.
    pub(crate) async fn post(&self, request: ProviderRequest<'_>) -> Result<Response, CallError> {
        if let Err(rejected) = self.guard.check_url(self.base_url.as_str()) {
            return Err(self.address_rejected(&rejected));
        }
        let mut url = self.base_url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(request.path.split('/'));
        }
        let limit = Duration::from_millis(self.limits.timeout_ms);
        let effect = request.effect;
        let headers = self.headers(&request);
        let sent = self
            .client
            .post(url)
            .timeout(request.timeout.min(limit))
            .headers(headers)
            .body(request.body)
            .send()
            .await;
        let mut response = sent.map_err(|error| self.transport_error(&error))?;
        let status = response.status();
        let provider = self.name.as_str();
        tracing::debug!(%effect, provider, status = status.as_u16(), "model provider answered");
        if status.is_success() {
            return Ok(response);
        }
        let enough = self.limits.error_body_bytes;
        let body = match response::read(&mut response, enough).await {
            Ok(Body::Whole(bytes)) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Ok(Body::Cut(_)) | Err(_) => Value::Null,
        };
        Err(CallError::from_status(status, response.headers(), &body))
    }

    /// The whole body of a response.
    pub(crate) async fn read(
        &self,
        response: &mut Response,
        limit_bytes: usize,
    ) -> Result<Vec<u8>, CallError> {
        match response::read(response, limit_bytes).await {
            Ok(Body::Whole(bytes)) => Ok(bytes),
            Ok(Body::Cut(_)) => Err(CallErrorReason::TooLarge { limit_bytes }.into()),
            Err(error) => Err(self.transport_error(&error)),
        }
    }

    fn headers(&self, request: &ProviderRequest<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        };
        let trace = outgoing_trace(request.trace);
        put(CONTENT_TYPE, request.content_type);
        put(
            HeaderName::from_static("idempotency-key"),
            request.effect.as_str(),
        );
        put(HeaderName::from_static("traceparent"), &trace.traceparent);
        if let Some(state) = &trace.tracestate {
            put(HeaderName::from_static("tracestate"), state);
        }
        if self.model_api == ModelApi::Anthropic {
            put(
                HeaderName::from_static("anthropic-version"),
                anthropic::VERSION,
            );
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

    pub(crate) fn transport_error(&self, error: &reqwest::Error) -> CallError {
        let rejected = chain(error).find_map(|cause| cause.downcast_ref::<Rejected>());
        match rejected {
            Some(rejected) => self.address_rejected(rejected),
            None => CallError::from_transport(error),
        }
    }

    /// The provider's address is written only to the operator's log.
    fn address_rejected(&self, rejected: &Rejected) -> CallError {
        let provider = self.name.as_str();
        tracing::warn!(provider, %rejected, "the model provider's address may not be called");
        CallErrorReason::AddressRejected.into()
    }
}
