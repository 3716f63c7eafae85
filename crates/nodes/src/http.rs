//! One HTTP call, from the recorded request to its outcome.

use crate::client::{ClientError, guarded_client};
use crate::credentials::Credentials;
use crate::failure;
use crate::guard::UrlGuard;
use crate::request;
use crate::response::{self, Body};
use reqwest::{Client, Method, Response};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{EffectId, EffectOutcome, ErrorInfo, HttpRequest, Object, TraceContext};
use url::Url;

#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// A larger response fails the call: it would have to fit in the log of the run.
    pub response_bytes: usize,
    /// How much of an error's body is kept.
    pub error_body_bytes: usize,
    pub connect_timeout_ms: u64,
    /// Upper limit of the request's own timeout; a call must end within its lease.
    pub timeout_ms: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            response_bytes: 1024 * 1024,
            error_body_bytes: 4 * 1024,
            connect_timeout_ms: 10_000,
            timeout_ms: 300_000,
        }
    }
}

pub struct HttpCaller {
    guard: Arc<UrlGuard>,
    limits: CallLimits,
    client: Client,
}

impl HttpCaller {
    pub fn new(guard: UrlGuard, limits: CallLimits) -> Result<Self, ClientError> {
        let guard = Arc::new(guard);
        let connect_timeout = Duration::from_millis(limits.connect_timeout_ms);
        Ok(Self {
            client: guarded_client(guard.clone(), connect_timeout)?,
            guard,
            limits,
        })
    }

    /// Attempts the call once. After a timeout or a broken connection it is unknown whether the
    /// call took effect; the idempotency key lets the service recognise the next attempt.
    pub async fn call(
        &self,
        request: &HttpRequest,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome {
        match self.attempt(request, effect, trace).await {
            Ok(outputs) => EffectOutcome::Done { outputs },
            Err(error) => {
                tracing::debug!(%effect, code = error.code, message = error.message, "call failed");
                EffectOutcome::Failed { error }
            }
        }
    }

    async fn attempt(
        &self,
        request: &HttpRequest,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> Result<Object, ErrorInfo> {
        let url = self
            .guard
            .check_url(&request.url)
            .map_err(|rejected| failure::rejected(&rejected))?;
        let method = request::method(request).map_err(failure::invalid)?;
        let mut headers = request::headers(request, effect, trace).map_err(failure::invalid)?;
        let body = request::body(request, &mut headers);
        let credentials = Credentials::sent_in(&headers);
        let call = describe(&method, &url);
        let timeout_ms = request.timeout_ms.clamp(1, self.limits.timeout_ms);

        let mut builder = self
            .client
            .request(method, url)
            .timeout(Duration::from_millis(timeout_ms))
            .headers(headers);
        if let Some(body) = body {
            builder = builder.body(body);
        }
        let response = builder
            .send()
            .await
            .map_err(|error| failure::transport(&call, &error, timeout_ms))?;
        tracing::debug!(%effect, call, status = response.status().as_u16(), "call answered");
        self.read_outcome(response, &call, &credentials, timeout_ms)
            .await
    }

    async fn read_outcome(
        &self,
        mut response: Response,
        call: &str,
        credentials: &Credentials,
        timeout_ms: u64,
    ) -> Result<Object, ErrorInfo> {
        let status = response.status();
        if !status.is_success() {
            // Read more than is kept, so that a credential across the cut is masked as a whole. An
            // incomplete body does not change the meaning of the status.
            let enough = self.limits.error_body_bytes + credentials.longest();
            let read = response::read(&mut response, enough).await;
            let body = read.unwrap_or(Body::Cut(Vec::new()));
            let excerpt = response::excerpt(body, self.limits.error_body_bytes, credentials);
            let mut error = failure::status(call, status, &excerpt);
            let pause = failure::retry_after_ms(response.headers());
            if let (Some(pause), Some(details)) = (pause, &mut error.details) {
                details["retryAfterMs"] = json!(pause);
            }
            return Err(error);
        }
        match response::read(&mut response, self.limits.response_bytes).await {
            Ok(Body::Whole(bytes)) => Ok(response::outputs(&response, &bytes, credentials)),
            Ok(Body::Cut(_)) => Err(failure::too_large(call, self.limits.response_bytes)),
            Err(error) => Err(failure::transport(call, &error, timeout_ms)),
        }
    }
}

/// Method and origin: enough to find the node, without the contents of a path or query.
fn describe(method: &Method, url: &Url) -> String {
    format!("{method} {}", url.origin().ascii_serialization())
}
