//! One tool server: a session for each request, through the guarded client, within one deadline.
//!
//! Redirects are not followed and nothing is read beyond a limit. The session is ended after the
//! response; a server that issued no session needs no request for that.

use super::message::{self, INITIALIZE, REQUEST};
use super::{McpServer, failure};
use crate::client::{ClientError, guarded_client};
use crate::credentials::Credentials;
use crate::event_stream::{Frames, is_event_stream};
use crate::failure::chain;
use crate::guard::{Rejected, UrlGuard};
use crate::http::CallLimits;
use crate::request::is_json;
use crate::response::{self, Body};
use crate::trace::outgoing_trace;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{EffectId, ErrorInfo, MAX_NESTING, ToolRequest, TraceContext, nests_deeper};
use url::Url;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// A longer session id is not sent back.
const MAX_SESSION_BYTES: usize = 1024;
/// Time limit for ending a session. Nothing depends on its success.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Server {
    id: String,
    url: Url,
    key: Option<HeaderValue>,
    guard: Arc<UrlGuard>,
    client: Client,
    limits: CallLimits,
}

impl Server {
    pub(super) fn new(
        id: &str,
        server: McpServer,
        limits: CallLimits,
    ) -> Result<Self, ClientError> {
        let guard = Arc::new(server.guard);
        let connect = Duration::from_millis(limits.connect_timeout_ms);
        let header = |key: String| {
            let mut value = HeaderValue::try_from(format!("Bearer {key}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        Ok(Self {
            id: id.to_owned(),
            url: server.url,
            key: server.key.and_then(header),
            client: guarded_client(Arc::clone(&guard), connect)?,
            guard,
            limits,
        })
    }

    pub(super) async fn call(
        &self,
        request: &ToolRequest,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> Result<Value, ErrorInfo> {
        if let Err(rejected) = self.guard.check_url(self.url.as_str()) {
            return Err(self.address_rejected(&rejected));
        }
        let timeout_ms = request.timeout_ms.clamp(1, self.limits.timeout_ms);
        let mut session = None;
        let session_call = self.run_session(request, effect, trace, &mut session);
        let answered =
            match tokio::time::timeout(Duration::from_millis(timeout_ms), session_call).await {
                Ok(answered) => answered,
                Err(_) => Err(failure::timeout(&self.id, timeout_ms)),
            };
        // A slow end of the session does not lose the result.
        if let Some(headers) = session {
            let session_end = self.client.delete(self.url.clone()).headers(headers);
            let _ = session_end.timeout(SESSION_END_TIMEOUT).send().await;
        }
        answered
    }

    /// Handshake and request. Stores the headers of a session that must be ended at the server.
    async fn run_session(
        &self,
        request: &ToolRequest,
        effect: &EffectId,
        trace: Option<&TraceContext>,
        issued: &mut Option<HeaderMap>,
    ) -> Result<Value, ErrorInfo> {
        let mut headers = self.headers(trace);
        let mut response = self
            .post(&headers, &message::initialize(), INITIALIZE)
            .await?;
        let session = response.headers().get(&SESSION).cloned();
        let initialized = self.answer(&mut response, INITIALIZE, &headers).await?;
        if let Some(revision) = message::negotiated_revision(&self.id, &initialized)? {
            headers.insert(REVISION, HeaderValue::from_static(revision));
        }
        if let Some(session) = session.filter(|id| id.len() <= MAX_SESSION_BYTES) {
            headers.insert(SESSION, session);
            *issued = Some(headers.clone());
        }
        self.send_request(request, effect, &headers).await
    }

    async fn send_request(
        &self,
        request: &ToolRequest,
        effect: &EffectId,
        headers: &HeaderMap,
    ) -> Result<Value, ErrorInfo> {
        self.post(headers, &message::initialized(), INITIALIZE)
            .await?;
        let mut headers = headers.clone();
        if let Ok(key) = HeaderValue::try_from(effect.as_str()) {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        let message = message::request(&request.operation);
        let mut response = self.post(&headers, &message, REQUEST).await?;
        let result = self.answer(&mut response, REQUEST, &headers).await?;
        if !message::has_expected_shape(&request.operation, &result) {
            let what = "answered with a result of another shape";
            return Err(failure::protocol(&self.id, what));
        }
        Ok(result)
    }

    /// Headers of every request of a session.
    fn headers(&self, trace: Option<&TraceContext>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let either = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, either);
        let trace = outgoing_trace(trace);
        let mut put = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("traceparent", &trace.traceparent);
        if let Some(state) = &trace.tracestate {
            put("tracestate", state);
        }
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        headers
    }

    /// Sends a message; returns a response with a success status.
    async fn post(
        &self,
        headers: &HeaderMap,
        body: &Value,
        id: u64,
    ) -> Result<Response, ErrorInfo> {
        let sent = self
            .client
            .post(self.url.clone())
            .headers(headers.clone())
            .body(body.to_string())
            .send()
            .await;
        let mut response = sent.map_err(|error| self.transport_error(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // A server that does not support the revision returns an error beside the status.
        let body = match response::read(&mut response, self.limits.error_body_bytes).await {
            Ok(Body::Whole(bytes)) => serde_json::from_slice::<Value>(&bytes).ok(),
            Ok(Body::Cut(_)) | Err(_) => None,
        };
        let error = body.as_ref().and_then(|message| message.get("error"));
        let rpc_error = error.map(|error| message::error_of(&self.id, id, error));
        match rpc_error.filter(|rpc_error| rpc_error.code == "interop_version_unsupported") {
            Some(rpc_error) => Err(rpc_error),
            None => Err(failure::status(&self.id, status, response.headers())),
        }
    }

    /// The result in a response, which is one document or one event of a stream.
    async fn answer(
        &self,
        response: &mut Response,
        id: u64,
        sent: &HeaderMap,
    ) -> Result<Value, ErrorInfo> {
        let credentials = Credentials::sent_in(sent);
        let read = |bytes: &[u8]| -> Option<Value> {
            // A response that is nested too deeply to be stored is invalid.
            if nests_deeper(bytes, MAX_NESTING) {
                return None;
            }
            let text = credentials.mask(std::str::from_utf8(bytes).ok()?);
            serde_json::from_str(&text).ok()
        };
        let kind = response.headers().get(CONTENT_TYPE);
        let message = if kind.is_some_and(is_json) {
            let limit = self.limits.response_bytes;
            match response::read(response, limit).await {
                Ok(Body::Whole(bytes)) => read(&bytes),
                Ok(Body::Cut(_)) => return Err(failure::too_large(&self.id, limit)),
                Err(error) => return Err(self.transport_error(&error)),
            }
        } else if kind.is_some_and(is_event_stream) {
            self.event(response, |data| {
                read(data).filter(|message| message::answers(message, id))
            })
            .await?
        } else {
            let what = "answered with something other than JSON";
            return Err(failure::protocol(&self.id, what));
        };
        match message {
            Some(message) if message::answers(&message, id) => {
                message::result(&self.id, id, message)
            }
            _ => {
                let what = "sent no answer to the question";
                Err(failure::protocol(&self.id, what))
            }
        }
    }

    /// The first event that `accept` takes; `None` when the stream ends without one.
    async fn event(
        &self,
        response: &mut Response,
        accept: impl Fn(&[u8]) -> Option<Value>,
    ) -> Result<Option<Value>, ErrorInfo> {
        let limit = self.limits.response_bytes;
        let mut frames = Frames::default();
        let mut read = 0;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|e| self.transport_error(&e))?
        {
            read += chunk.len();
            if read > limit {
                return Err(failure::too_large(&self.id, limit));
            }
            let found = frames.take(&chunk).iter().find_map(|data| accept(data));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn transport_error(&self, error: &reqwest::Error) -> ErrorInfo {
        let rejected = chain(error).find_map(|cause| cause.downcast_ref::<Rejected>());
        match rejected {
            Some(rejected) => self.address_rejected(rejected),
            None => failure::transport(&self.id, error),
        }
    }

    fn address_rejected(&self, rejected: &Rejected) -> ErrorInfo {
        tracing::warn!(server = self.id, %rejected, "the tool server's address may not be called");
        failure::address_rejected(&self.id)
    }
}
