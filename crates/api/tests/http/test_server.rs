//! The test server: router, runtime and in-memory store.

use crate::webhooks::RecordingWebhookSender;
use async_trait::async_trait;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tandem_access::{Identity, Keyring, LinkSigner, LoginCodes, NewKey, Scope, Sessions};
use tandem_api::{ApiConfig, Host, HttpSettings, VerbRouter, router};
use tandem_app::{App, AppConfig};
use tandem_record::{
    Actor, Effect, EffectOutcome, Object, RunId, TenantId, Timestamp, TraceContext,
};
use tandem_runtime::audit::{AuditKey, AuditSigner};
use tandem_runtime::conversation::Conversations;
use tandem_runtime::{
    AgentPolicy, MOCK_PROVIDER, Perform, Provider, Providers, Redactor, Runtime, RuntimeConfig,
};
use tandem_store::memory::MemoryStore;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt as _;

/// Effects succeed at once and do nothing.
struct NoopEffects;

#[async_trait]
impl Perform for NoopEffects {
    async fn perform(&self, _: &RunId, _: &Effect, _: Option<&TraceContext>) -> EffectOutcome {
        EffectOutcome::Done {
            outputs: Object::new(),
        }
    }
}

/// One advertised provider, and the conformance suite's.
fn providers() -> Providers {
    let acme = Provider {
        default_model: Some("large".to_owned()),
        programmed: false,
    };
    let mock = Provider {
        default_model: None,
        programmed: true,
    };
    Providers::from_iter([("acme".to_owned(), acme), (MOCK_PROVIDER.to_owned(), mock)])
}

/// Signs links like the server does.
pub(crate) fn signer() -> LinkSigner {
    LinkSigner::new(vec![b"secret".to_vec()])
}

pub(crate) struct TestServer {
    pub(crate) router: VerbRouter,
    pub(crate) runtime: Runtime,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) codes: Arc<LoginCodes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) audit_signer: Arc<AuditSigner>,
    pub(crate) webhook_sender: Arc<RecordingWebhookSender>,
    /// A key of tenant `default` with every scope.
    pub(crate) key: String,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Options of the host under test.
pub(crate) struct HostOptions {
    pub(crate) agents: AgentPolicy,
    pub(crate) conformance: bool,
    pub(crate) ancestry: bool,
    /// Secrets the host knows.
    pub(crate) redactor: Redactor,
    /// A store that other hosts use as well.
    pub(crate) shared_store: Option<MemoryStore>,
    pub(crate) conversations: Option<Conversations>,
    pub(crate) providers: Providers,
    pub(crate) test_seams: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            agents: AgentPolicy::default(),
            conformance: true,
            ancestry: true,
            redactor: Redactor::default(),
            shared_store: None,
            conversations: None,
            providers: providers(),
            test_seams: true,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// Asserts a refusal in the closed envelope and returns its details.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        let body = self.json();
        for name in body.as_object().unwrap().keys() {
            assert!(["error", "message", "details"].contains(&name.as_str()));
        }
        assert_eq!(body["error"], code, "{body}");
        assert!(!body["message"].as_str().unwrap().is_empty());
        body["details"].clone()
    }

    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self.json()
    }
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        Self::with_settings(HttpSettings::default()).await
    }

    pub(crate) async fn with_settings(settings: HttpSettings) -> Self {
        Self::build(settings, HostOptions::default()).await
    }

    /// A host with its own agent policy.
    pub(crate) async fn with_agent_policy(agents: AgentPolicy) -> Self {
        let options = HostOptions {
            agents,
            ..HostOptions::default()
        };
        Self::with_options(options).await
    }

    /// Two hosts, as two processes on one store.
    pub(crate) async fn pair() -> [Self; 2] {
        let store = MemoryStore::new();
        let host = |store: MemoryStore| {
            Self::with_options(HostOptions {
                shared_store: Some(store),
                ..HostOptions::default()
            })
        };
        [host(store.reopen()).await, host(store).await]
    }

    pub(crate) async fn with_options(options: HostOptions) -> Self {
        Self::build(HttpSettings::default(), options).await
    }

    pub(crate) async fn build(settings: HttpSettings, options: HostOptions) -> Self {
        let (ancestry, test_seams) = (options.ancestry, options.test_seams);
        let is_single_process = options.shared_store.is_none();
        let store = Arc::new(options.shared_store.unwrap_or_default());
        let keyring = Arc::new(Keyring::new(store.clone()));
        let audit_signer = Arc::new(AuditSigner::new(
            store.clone(),
            AuditKey::from_seed(&[7; 32]),
        ));
        let webhook_sender = Arc::new(RecordingWebhookSender::default());
        drop(webhook_sender.keyring.set(Arc::clone(&keyring)));
        let config = RuntimeConfig {
            webhook_sender: Some(Arc::clone(&webhook_sender) as Arc<_>),
            agents: options.agents,
            conformance: options.conformance,
            redactor: options.redactor,
            providers: options.providers,
            is_single_process,
            conversations: options.conversations,
            ..RuntimeConfig::new(store, Arc::new(NoopEffects))
        };
        let runtime = Runtime::start(config).await.unwrap();
        let codes = Arc::new(LoginCodes::new(60_000));
        let sessions = Arc::new(Sessions::new(12 * 3_600_000));
        let (stopping, seen) = watch::channel(false);
        let app = App::new(AppConfig {
            runtime: runtime.clone(),
            keyring: keyring.clone(),
            codes: codes.clone(),
            sessions: sessions.clone(),
            groups: Default::default(),
            network_people: Vec::new(),
            links: signer(),
            audit_signer: audit_signer.clone(),
            host_id: "tandem".to_owned(),
            test_hooks: test_seams,
        });
        let api = ApiConfig {
            app,
            keyring: keyring.clone(),
            codes: codes.clone(),
            sessions: sessions.clone(),
            host: Host {
                name: "tandem".to_owned(),
                version: "0.0.0",
                public_url: None,
            },
            settings,
            fixtures: vec!["conformance-noop".to_owned()],
            metrics: Arc::new(tandem_api::HttpMetrics::new(runtime.metrics())),
            stopping: seen,
            test_seams,
            console: true,
            ancestry,
            otel: None,
            packs: None,
            large_requests: tokio::runtime::Handle::current(),
        };
        let mut server = Self {
            router: router(api),
            runtime,
            keyring,
            codes,
            sessions,
            audit_signer,
            webhook_sender,
            key: String::new(),
            stopping,
        };
        server.key = server.new_key("default", Scope::all()).await;
        server
    }

    pub(crate) async fn new_key(&self, tenant: &str, scopes: &[Scope]) -> String {
        let new = NewKey::new("test", TenantId::new(tenant), scopes.iter().copied());
        self.mint(new).await
    }

    pub(crate) async fn mint(&self, new: NewKey) -> String {
        let now = self.runtime.clock().now();
        let (_, secret) = self.keyring.mint(new, &Actor::host(), now).await.unwrap();
        secret.expose().to_owned()
    }

    /// Revokes the key with this secret.
    pub(crate) async fn revoke(&self, secret: &str) {
        let now = self.runtime.clock().now();
        let identity = self.keyring.authenticate(secret, now).await.unwrap();
        let (tenant, id) = (identity.key_tenant(), &identity.key_id);
        let by = Actor::host();
        let revoked = self.keyring.revoke(&tenant, id, &by, now).await;
        assert_eq!(revoked, Ok(true));
    }

    pub(crate) async fn identity(&self) -> Identity {
        let now = self.runtime.clock().now();
        self.keyring.authenticate(&self.key, now).await.unwrap()
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn call_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call_as(&self.key, "GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> Reply {
        self.call_as(&self.key, "POST", path, headers, body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.call_as(&self.key, "PUT", path, &[], body.to_string())
            .await
    }

    /// Registers a chain of nodes and creates a run of it.
    pub(crate) async fn start(&self, id: &str, nodes: &[Value]) -> String {
        self.register(id, nodes).await;
        self.create(id).await
    }

    pub(crate) async fn register(&self, id: &str, nodes: &[Value]) {
        let reply = self
            .put(&format!("/v1/host/tandem/workflows/{id}"), chain(id, nodes))
            .await;
        assert!(reply.status.is_success(), "{reply:?}");
    }

    pub(crate) async fn create(&self, workflow: &str) -> String {
        let reply = self.post("/v1/runs", json!({"workflowId": workflow})).await;
        reply.ok(201)["runId"].as_str().unwrap().to_owned()
    }

    /// The whole log so far.
    pub(crate) async fn log(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}/events?streamMode=debug");
        let accept = [("accept", "application/json")];
        self.call_as(&self.key, "GET", &path, &accept, "")
            .await
            .ok(200)
    }

    /// Moves the clock and waits until all due work is done.
    pub(crate) async fn advance(&self, seconds: u64) {
        let body = json!({"advanceSeconds": seconds});
        let moved = self.post("/v1/host/tandem/test/clock", body).await.ok(200);
        assert_eq!(moved["settled"], true);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.runtime.clock().now()
    }

    /// A real listener, for responses that are read while they are written.
    pub(crate) async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = self.router.clone().into_make_service();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }
}

pub(crate) fn noop(id: &str) -> Value {
    json!({"id": id, "typeId": "core.noop", "config": {}})
}

pub(crate) fn hour(id: &str) -> Value {
    json!({"id": id, "typeId": "core.delay", "config": {"delayMs": 3_600_000}})
}

pub(crate) fn chain(id: &str, nodes: &[Value]) -> Value {
    let full: Vec<Value> = nodes
        .iter()
        .map(|node| {
            let mut full = node.clone();
            full["name"] = node["id"].clone();
            full["position"] = json!({"x": 0, "y": 0});
            full["inputs"] = json!({});
            full
        })
        .collect();
    let edges: Vec<Value> = nodes
        .windows(2)
        .enumerate()
        .map(|(i, pair)| {
            json!({"id": format!("e{i}"), "sourceNodeId": pair[0]["id"], "targetNodeId": pair[1]["id"]})
        })
        .collect();
    json!({
        "id": id, "name": id, "version": "1.0", "nodes": full, "edges": edges,
        "triggers": [{"id": "manual", "type": "manual", "enabled": true}],
        "variables": [], "metadata": {}, "settings": {"timeout": 0},
    })
}

/// One open event stream, read line by line.
pub(crate) struct Stream {
    lines: tokio::io::Lines<BufReader<TcpStream>>,
    pub(crate) head: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Stream {
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        // HTTP/1.0 avoids the chunked encoding.
        let mut request = format!("GET {path} HTTP/1.0\r\nhost: test\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(socket).lines();
        let mut head = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.is_empty() {
                break;
            }
            head.push(line.to_ascii_lowercase());
        }
        Self { lines, head }
    }

    /// The next line; `None` when the stream has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.unwrap()
    }

    /// The next frame; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let (mut id, mut event, mut data) = (None, String::new(), Value::Null);
        loop {
            let line = self.line().await?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().unwrap());
            } else if let Some(text) = line.strip_prefix("event: ") {
                event = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).unwrap();
            } else if line.is_empty() && !event.is_empty() {
                return Some(Frame { id, event, data });
            }
        }
    }

    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}
