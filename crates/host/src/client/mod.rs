//! HTTP client for a server: requests, the error envelope, the event stream.

mod error_response;
mod follow;
mod sse;

pub(crate) use error_response::ErrorResponse;
pub(crate) use follow::Follower;
pub(crate) use sse::Frame;

use crate::cli::ConnectionArgs;
use crate::failure::Failure;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use url::{Host, Url};

/// Where `tandem dev` stores its key for commands in the same directory.
pub(crate) const DEV_KEY_FILE: &str = ".tandem/dev-key";

/// Timeout of a response. Streams are exempt.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// Without a trailing slash.
    base: String,
}

impl Client {
    pub(crate) fn connect(args: &ConnectionArgs) -> anyhow::Result<Self> {
        let wrong = |why: &str| {
            Failure::new(
                format!("{:?} is not the address of a server: {why}", args.url),
                "Set --url or TANDEM_URL to something like http://127.0.0.1:7717.",
            )
        };
        let url = Url::parse(&args.url).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it must begin with http:// or https://").into());
        }
        let local = is_loopback(&url);
        let mut headers = HeaderMap::new();
        let key = args.key.clone().filter(|key| !key.is_empty());
        if let Some(key) = key.or_else(|| dev_key().filter(|_| local)) {
            let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                Failure::new(
                    "the API key has characters that cannot be sent",
                    "Check --key or TANDEM_API_KEY.",
                )
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // An error means that a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(Duration::from_secs(10))
            .user_agent(concat!("tandem-cli/", env!("CARGO_PKG_VERSION")));
        if local {
            builder = builder.no_proxy();
        }
        Ok(Self {
            http: builder.build()?,
            base: args.url.trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(self.request(Method::GET, path)).await
    }

    /// A GET with query parameters; absent ones are left out.
    pub(crate) async fn query(
        &self,
        path: &str,
        parameters: &[(&str, Option<String>)],
    ) -> anyhow::Result<Value> {
        self.query_as(path, parameters, None).await
    }

    /// The same by an admin of conversations.
    pub(crate) async fn query_as(
        &self,
        path: &str,
        parameters: &[(&str, Option<String>)],
        admin_token: Option<&str>,
    ) -> anyhow::Result<Value> {
        let given = parameters
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let mut url = Url::parse(&self.url(path))?;
        url.query_pairs_mut().extend_pairs(given);
        if url.query() == Some("") {
            url.set_query(None);
        }
        let mut request = self.http.get(url).header(ACCEPT, "application/json");
        if let Some(token) = admin_token {
            request = request.header("X-Admin-Token", token);
        }
        self.call(request.timeout(TIMEOUT)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(self.request(Method::POST, path).json(body)).await
    }

    /// A POST by an admin of conversations, whose token the rules of the agent may ask for.
    pub(crate) async fn post_as(
        &self,
        path: &str,
        body: &Value,
        admin_token: Option<&str>,
    ) -> anyhow::Result<Value> {
        let mut request = self.request(Method::POST, path).json(body);
        if let Some(token) = admin_token {
            request = request.header("X-Admin-Token", token);
        }
        self.call(request).await
    }

    /// Any request by an admin of conversations.
    pub(crate) async fn request_as(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        admin_token: Option<&str>,
    ) -> anyhow::Result<Value> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(token) = admin_token {
            request = request.header("X-Admin-Token", token);
        }
        self.call(request).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call(self.request(Method::PUT, path).json(body)).await
    }

    /// A POST that may be repeated: the same key gives the same response.
    pub(crate) async fn post_idempotent(
        &self,
        path: &str,
        body: &Value,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<Value> {
        let mut request = self.request(Method::POST, path).json(body);
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        self.call(request).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.call(self.request(Method::DELETE, path)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, self.url(path))
            .header(ACCEPT, "application/json")
            .timeout(TIMEOUT)
    }

    async fn call(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = self.send(request).await?;
        let text = response.text().await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|_| {
            let what = format!("{} answered with something that is not JSON", self.base);
            Failure::new(what, "Is that a tandem server? Check --url.").into()
        })
    }

    /// The response to a GET, to be read as a stream without a timeout.
    pub(crate) async fn download(&self, path: &str) -> anyhow::Result<Response> {
        self.send(self.http.get(self.url(path))).await
    }

    /// The response, or the server's refusal as an error.
    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let response = request
            .send()
            .await
            .map_err(|error| self.connection_failure(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = response.text().await.unwrap_or_default();
        Err(ErrorResponse::read(status, &body).into())
    }

    fn connection_failure(&self, error: &reqwest::Error) -> Failure {
        let mut why: &dyn std::error::Error = error;
        while let Some(source) = why.source() {
            why = source;
        }
        Failure::new(
            format!("cannot reach {}: {why}", self.base),
            "Start a server with `tandem dev`, or name one with --url or TANDEM_URL.",
        )
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The key of a development server started in this directory. Sent only to loopback addresses.
fn dev_key() -> Option<String> {
    let text = std::fs::read_to_string(Path::new(DEV_KEY_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|key| !key.is_empty())
}

/// Encodes an id as one path segment.
pub(crate) fn encode_segment(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
