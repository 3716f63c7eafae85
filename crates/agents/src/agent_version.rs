//! One good version of an agent: its settings, its code and the realm in which its functions run.
//! An agent in Rust has no realm.
//!
//! A version never changes. Calls under way keep theirs while the agent moves on to the next one.

use crate::model_scripts::ModelScripts;
use crate::realm_thread::RealmThread;
use crate::rust_code::RustCode;
use crate::speech::Speech;
use crate::transports::{self, ChatTransport, OpenTransport, TransportResources};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tandem_engine::agent::AgentSpec;
use tandem_nodes::ChatModel;
use tandem_record::Timestamp;
use tandem_runtime::conversation::NoticePlace;
use tandem_script::{AgentCode, ScriptLimits, Surroundings};

pub(crate) struct AgentVersion {
    pub(crate) spec: Arc<AgentSpec>,
    /// `ctx.config`: functions are markers.
    pub(crate) config: Value,
    pub(crate) time_zone: String,
    pub(crate) scripts: ModelScripts,
    /// The models for chat and for extraction, once they were needed.
    pub(crate) models: [OnceLock<Arc<ChatModel>>; 2],
    /// Its speech, once it was needed.
    pub(crate) speech: OnceLock<Arc<Speech>>,
    /// Its own transports that were needed so far, by name.
    transports: Mutex<BTreeMap<String, Arc<OpenTransport>>>,
    pub(crate) rust: Arc<RustCode>,
    /// `None` for an agent that is defined in Rust.
    code: Option<AgentCode>,
    limits: ScriptLimits,
    realm: Mutex<Option<Arc<RealmThread>>>,
}

impl AgentVersion {
    pub(crate) fn new(
        spec: AgentSpec,
        config: Value,
        code: Option<AgentCode>,
        rust: Arc<RustCode>,
        scripts: ModelScripts,
        limits: ScriptLimits,
    ) -> Self {
        Self {
            spec: Arc::new(spec),
            time_zone: time_zone(&config),
            config,
            scripts,
            models: Default::default(),
            speech: OnceLock::new(),
            transports: Mutex::default(),
            rust,
            code,
            limits,
            realm: Mutex::default(),
        }
    }

    /// A transport that the agent's file describes; `None` if it does not. Fails while a secret is missing.
    /// `builtin` is the host's own one of this name.
    pub(crate) fn transport(
        &self,
        name: &str,
        builtin: Option<&Arc<dyn ChatTransport>>,
        resources: &TransportResources,
    ) -> Option<Result<Arc<OpenTransport>, String>> {
        let settings = self.spec.transports.get(name)?;
        let mut opened = self.transports.lock();
        if let Some(transport) = opened.get(name) {
            return Some(Ok(transport.clone()));
        }
        let transport = transports::open(settings, builtin, resources).map(Arc::new);
        if let Ok(transport) = &transport {
            opened.insert(name.to_owned(), transport.clone());
        }
        Some(transport)
    }

    /// What is known of a transport that is to give notices.
    pub(crate) fn notice_place(&self, name: &str) -> Result<NoticePlace, String> {
        let settings = self.spec.transports.get(name);
        let settings = settings.ok_or_else(|| {
            let id = &self.spec.agent_id;
            format!("the agent {id} has no transport {name:?} in its file")
        })?;
        transports::notice_place(name, settings)
    }

    /// The realm for a new call. One that became unusable is replaced; calls under way in it go on.
    pub(crate) fn realm(&self, now: Timestamp) -> std::io::Result<Arc<RealmThread>> {
        let mut current = self.realm.lock();
        if let Some(realm) = current.as_ref().filter(|realm| realm.is_usable()) {
            return Ok(realm.clone());
        }
        let Some(code) = &self.code else {
            return Err(std::io::Error::other(
                "the agent has no functions in TypeScript",
            ));
        };
        let surroundings = Surroundings {
            now_ms: now.0,
            seed: rand::random::<[u8; 16]>().to_vec(),
            time_zone: self.time_zone.clone(),
        };
        let name = &self.spec.agent_id;
        let realm = RealmThread::start(name, code.clone(), self.limits, surroundings)?;
        let realm = Arc::new(realm);
        *current = Some(realm.clone());
        Ok(realm)
    }
}

/// The zone of an agent's local times.
pub(crate) fn time_zone(config: &Value) -> String {
    let zone = config
        .pointer("/scheduler/timezone")
        .and_then(Value::as_str);
    zone.unwrap_or("UTC").to_owned()
}
