//! Webhook deliveries: one guarded POST, judged by its status alone.
//!
//! A target is checked twice. At registration, its name is resolved once to refuse a target that is
//! already private. At delivery, the addresses of the connection are checked again, because a name
//! may have changed since.

use crate::client::{ClientError, GuardedResolver, LookupError, guarded_client};
use crate::failure;
use crate::guard::{Rejected, UrlGuard};
use crate::response;
use crate::trace::outgoing_trace;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{ErrorInfo, TraceContext};
use url::Host;

/// Time limit of a delivery.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a lookup at registration; the check at delivery is the decisive one.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Read and discarded, so that the connection can be reused.
const READ_BYTES: usize = 4 * 1024;
const DISPATCHER: &str = concat!("openwop-webhook-dispatcher/", env!("CARGO_PKG_VERSION"));

pub struct WebhookCaller {
    guard: Arc<UrlGuard>,
    client: Client,
    timeout: Duration,
}

impl WebhookCaller {
    pub fn new(guard: UrlGuard) -> Result<Self, ClientError> {
        let guard = Arc::new(UrlGuard {
            require_https: true,
            ..guard
        });
        Ok(Self {
            client: guarded_client(guard.clone(), TIMEOUT)?,
            guard,
            timeout: TIMEOUT,
        })
    }

    #[cfg(test)]
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether a target may be registered. A name that cannot be resolved at the moment is
    /// accepted: it is checked again at every call.
    pub async fn vet(&self, url: &str) -> Result<(), Rejected> {
        let url = self.guard.check_url(url)?;
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        let resolver = GuardedResolver::new(self.guard.clone());
        let looked_up = tokio::time::timeout(LOOKUP_TIMEOUT, resolver.lookup(name)).await;
        match looked_up {
            Ok(Err(LookupError::Rejected(rejected))) => Err(rejected),
            Ok(Ok(_) | Err(LookupError::Io(_))) | Err(_) => Ok(()),
        }
    }

    /// Posts once. Returns the status, or why it failed: redirects are failures and are not
    /// followed.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
        trace: Option<&TraceContext>,
    ) -> Result<u16, ErrorInfo> {
        let url = self
            .guard
            .check_url(url)
            .map_err(|rejected| failure::rejected(&rejected))?;
        let call = format!("POST {}", url.origin().ascii_serialization());
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let response = self
            .client
            .post(url)
            .timeout(self.timeout)
            .headers(all_headers(headers, trace)?)
            .body(body)
            .send()
            .await;
        let mut response =
            response.map_err(|error| failure::transport(&call, &error, timeout_ms))?;
        let status = response.status();
        // The body is ignored, complete or not.
        let _ = response::read(&mut response, READ_BYTES).await;
        if status.is_success() {
            Ok(status.as_u16())
        } else {
            Err(failure::status(&call, status, ""))
        }
    }
}

fn all_headers(
    named: &[(&str, String)],
    trace: Option<&TraceContext>,
) -> Result<HeaderMap, ErrorInfo> {
    let trace = outgoing_trace(trace);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(DISPATCHER));
    let traced = [
        ("traceparent", Some(trace.traceparent)),
        ("tracestate", trace.tracestate),
    ];
    let traced = traced
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let named = named.iter().map(|(name, value)| (*name, value.clone()));
    for (name, value) in named.chain(traced) {
        let unfit = |_| failure::invalid(format!("the header `{name}` does not fit"));
        let value = HeaderValue::try_from(value).map_err(unfit)?;
        let name = HeaderName::try_from(name).map_err(failure::invalid)?;
        headers.insert(name, value);
    }
    Ok(headers)
}
