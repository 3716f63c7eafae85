//! A host with agents in a temporary folder.

use crate::{AgentRegistry, AgentResources, FolderAgents, MemoryRecorder};
use crate::{
    ChatTransport, LifeSigns, LoopbackTransport, ModelAccess, OperatorModel, TransportResources,
};
use crate::{RustAgentError, RustAgents};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tandem_nodes::{CallLimits, HttpCaller, LocalScripts, UrlGuard};
use tandem_record::conversation::AgentSummary;
use tandem_record::conversation::{CodeCall, CodeOutcome, FlowOrigin, FlowRunStart};
use tandem_record::{
    AgentId, EffectId, FlowId, Object, Owner, RunId, SessionId, TenantId, Timestamp,
};
use tandem_runtime::Clock;
use tandem_runtime::conversation::{AgentHost, CallContext};
use tandem_script::ScriptLimits;
use tempfile::TempDir;

pub(super) const NOW: Timestamp = Timestamp(1_767_258_000_000);

pub(super) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn advance(&self, _: i64) -> Timestamp {
        NOW
    }

    fn offset_ms(&self) -> i64 {
        0
    }
}

pub(super) struct Desk {
    pub(super) folder: TempDir,
    pub(super) registry: Arc<AgentRegistry>,
    pub(super) agents: FolderAgents,
    pub(super) recorder: Arc<MemoryRecorder>,
    pub(super) scripts: Arc<LocalScripts>,
}

pub(super) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a path with a folder")).expect("a folder");
    std::fs::write(path, text).expect("a written file");
}

/// A host with these files.
pub(super) fn desk(files: &[(&str, &str)]) -> Desk {
    desk_with(files, BTreeMap::new())
}

/// The only environment variables, of this host.
fn environment(name: &str) -> Option<String> {
    let known = [
        ("CLINIC_KEY", "agents-own-key"),
        ("CRM_SECRET", "a-secret-of-both-sides"),
        ("TANDEM_SECRET", "x"),
        ("TG_TOKEN", "123456:bot-token-of-tests"),
        ("TG_SECRET", "telegram-secret-of-tests"),
        ("WA_TOKEN", "whatsapp-token-of-tests"),
        ("WA_SECRET", "whatsapp-secret-of-tests"),
        ("WA_VERIFY", "whatsapp-verify-of-tests"),
        ("SLACK_TOKEN", "xoxb-slack-token-of-tests"),
        ("SLACK_SECRET", "slack-secret-of-tests"),
        ("MAIL_PASSWORD", "mail-password-of-tests"),
        ("SHORT", "short"),
    ];
    let found = known.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| (*value).to_owned())
}

/// A host with these files and model providers.
pub(super) fn desk_with(
    files: &[(&str, &str)],
    providers: BTreeMap<String, OperatorModel>,
) -> Desk {
    let made = make_desk(files, RustAgents::default(), providers);
    made.expect("agents of folders are never refused")
}

/// A host with these files, in a program that brings agents.
pub(super) fn desk_with_rust(
    files: &[(&str, &str)],
    rust: RustAgents,
) -> Result<Desk, RustAgentError> {
    make_desk(files, rust, BTreeMap::new())
}

fn make_desk(
    files: &[(&str, &str)],
    rust: RustAgents,
    providers: BTreeMap<String, OperatorModel>,
) -> Result<Desk, RustAgentError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    let folders = vec![folder.path().to_owned()];
    let limits = ScriptLimits::default();
    let registry = AgentRegistry::load(folders, rust, limits, Arc::new(FixedClock))?;
    let registry = Arc::new(registry);
    let recorder = Arc::new(MemoryRecorder::default());
    let guard = UrlGuard {
        allow_private: true,
        ..UrlGuard::default()
    };
    let scripts = Arc::new(LocalScripts::new(|| NOW));
    let models = ModelAccess {
        providers,
        scripts: scripts.clone(),
        breakers: Arc::default(),
        environment,
        guard: guard.clone(),
        limits: CallLimits::default(),
    };
    let transport_guard = Arc::new(guard.clone());
    let http = HttpCaller::new(guard, CallLimits::default()).expect("an HTTP client");
    let http = Arc::new(http);
    let loopback: Arc<dyn ChatTransport> = Arc::new(LoopbackTransport::new(
        recorder.clone(),
        Arc::new(FixedClock),
    ));
    let agents = FolderAgents::new(
        registry.clone(),
        AgentResources {
            http: http.clone(),
            models,
            transports: BTreeMap::from([(LoopbackTransport::NAME.to_owned(), loopback)]),
            own_transports: TransportResources {
                http,
                guard: transport_guard,
                environment,
                clock: Arc::new(FixedClock),
                links: None,
            },
            life_signs: LifeSigns::default(),
            recorder: recorder.clone(),
        },
    );
    Ok(Desk {
        folder,
        registry,
        agents,
        recorder,
        scripts,
    })
}

/// The source of an agent file with these fields.
pub(super) fn agent(fields: &str) -> String {
    format!(
        "import {{ createAgent }} from 'tandem';\nexport default createAgent({{ prompt: 'You are the desk.', {fields} }});\n"
    )
}

/// A host with the agent `demo`.
pub(super) fn demo(fields: &str) -> Desk {
    desk(&[("demo/agent.ts", &agent(fields))])
}

/// A host whose agent `demo` has one flow with this body.
pub(super) fn flow_desk(body: &str) -> Desk {
    let flow = format!("export const f = async function* (ctx) {{\n{body}\n}};\n");
    desk(&[("demo/agent.ts", &agent("")), ("demo/flows/f.ts", &flow)])
}

pub(super) fn demo_id() -> AgentId {
    AgentId::from("demo")
}

impl Desk {
    pub(super) fn write(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    pub(super) fn summary(&self) -> AgentSummary {
        self.registry.summary(&demo_id()).expect("the agent demo")
    }

    pub(super) fn version_of(&self, flow: &str) -> Option<String> {
        let flows = self.summary().flows;
        let flow = flows.into_iter().find(|known| known.flow_id == flow);
        flow.map(|flow| flow.version)
    }

    pub(super) fn error_texts(&self) -> Vec<String> {
        let errors = self.summary().errors.into_iter();
        errors
            .map(|error| format!("{}: {}", error.file, error.message))
            .collect()
    }

    pub(super) async fn call(&self, path: &str, args: Vec<Value>) -> CodeOutcome {
        self.call_with(path, args, &context()).await
    }

    pub(super) async fn call_with(
        &self,
        path: &str,
        args: Vec<Value>,
        context: &CallContext,
    ) -> CodeOutcome {
        let call = CodeCall {
            path: path.to_owned(),
            args,
            timeout_ms: 5_000,
        };
        self.agents.call_code(&call, context).await
    }

    /// What a run of this flow begins with.
    pub(super) fn flow_start(&self, flow: &str) -> FlowRunStart {
        FlowRunStart {
            run_id: RunId::from("flow-1"),
            agent_id: demo_id(),
            flow_id: FlowId::from(flow),
            session_id: Some(SessionId::from("s_1")),
            owner: Owner {
                tenant: TenantId::from("default"),
                workspace: None,
                principal: None,
            },
            version: self.version_of(flow).expect("a loaded flow"),
            input: Some(json!({"item": "chair"})),
            origin: FlowOrigin::Api,
            parent: None,
            forked_from: None,
            seed: 42,
            context: session_data(),
        }
    }
}

fn session_data() -> Object {
    let data = json!({
        "user": {"id": "usr_1", "externalUserId": "u1", "displayName": "Ann"},
        "session": {"id": "s_1", "agentId": "demo", "userId": "usr_1"},
        "inbound": {"messageId": "m0", "from": "u1", "body": "start"},
        "replyTarget": "u1",
    });
    data.as_object().cloned().expect("an object")
}

pub(super) fn context() -> CallContext {
    CallContext {
        tenant: TenantId::from("default"),
        agent: demo_id(),
        session: Some(SessionId::from("s_1")),
        key: EffectId::from("s_1:7"),
        data: session_data(),
        messages: std::sync::Arc::from([]),
        kv: BTreeMap::new(),
        trace: None,
        actor: None,
        now: NOW,
    }
}

/// The value of a call that succeeded.
pub(super) fn value(outcome: &CodeOutcome) -> Value {
    assert_eq!(outcome.error, None);
    outcome.value.clone().expect("a value")
}

/// Code and message of a call that failed.
pub(super) fn error(outcome: &CodeOutcome) -> (&str, &str) {
    assert_eq!(outcome.value, None);
    let error = outcome.error.as_ref().expect("an error");
    (&error.code, &error.message)
}
