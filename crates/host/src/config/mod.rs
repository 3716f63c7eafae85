//! What a server is told: flags over environment over `tandem.toml` over defaults, checked before
//! anything is opened. A value that cannot work stops the start with one line saying why.
//!
//! Reads the environment through [`Environment`], so that precedence can be tested as a table.

mod environment;
mod file;
mod layer;
mod listen;
mod models;
mod retention;
mod tools;

#[cfg(test)]
mod tests;

pub(crate) use environment::Environment;
pub(crate) use layer::Layer;
pub(crate) use listen::parse_listen;
pub(crate) use models::{Model, ModelLayer, Reached};
pub(crate) use retention::RetentionLayer;
pub(crate) use tools::{ToolServer, ToolServerLayer};

use crate::failure::Failure;
use layer::OtelLayer;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use tandem_access::Member;
use tandem_runtime::{AgentPolicy, Limits, Retention};
use url::Url;

pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7717";
const DEFAULT_STORE: &str = "sqlite:tandem.db";
const DEFAULT_HOST_ID: &str = "tandem";
const MAX_HOST_ID_CHARS: usize = 128;
/// Two make one; and a name holds ten thousand entries at most.
const COMPACT_ABOVE: std::ops::RangeInclusive<u64> = 2..=9_000;

/// A checked configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    /// The SQLite file.
    pub(crate) store: PathBuf,
    pub(crate) workflows: Vec<PathBuf>,
    pub(crate) agents: Vec<PathBuf>,
    /// Directories of packs whose nodes workflows may use.
    pub(crate) packs: Vec<PathBuf>,
    pub(crate) host_id: String,
    /// Without a trailing slash.
    pub(crate) public_url: Option<String>,
    pub(crate) test_seams: bool,
    /// How far to move the test clock before anything is processed.
    pub(crate) clock_advance_ms: i64,
    pub(crate) log_format: LogFormat,
    /// Directives of the log filter, if any were given.
    pub(crate) log_filter: Option<String>,
    pub(crate) secrets: BTreeMap<String, Hidden>,
    pub(crate) api_key: Option<Hidden>,
    pub(crate) tenant2_api_key: Option<Hidden>,
    /// Signs the audit log instead of a key kept in the store.
    pub(crate) audit_key: Option<Hidden>,
    pub(crate) otel: Option<Otel>,
    /// How long an ended run keeps its log.
    pub(crate) retention: Retention,
    /// Notes under one name above which the oldest become one.
    pub(crate) compact_above: Option<u64>,
    pub(crate) groups: BTreeMap<String, Vec<String>>,
    /// Models nodes may ask, by name.
    pub(crate) models: BTreeMap<String, Model>,
    /// Tool servers nodes may call, by name.
    pub(crate) tools: BTreeMap<String, ToolServer>,
    /// When a supervisor's decision is put to a person, and how.
    pub(crate) agent_policy: AgentPolicy,
    /// Unknown settings of nodes are errors, not warnings.
    pub(crate) strict_documents: bool,
}

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Otel {
    /// Complete, ending in `/v1/traces` unless the operator said otherwise.
    pub(crate) endpoint: String,
    pub(crate) protocol: OtelProtocol,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum OtelProtocol {
    #[default]
    #[serde(rename = "http/protobuf")]
    Protobuf,
    #[serde(rename = "http/json")]
    Json,
}

impl OtelProtocol {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Protobuf => "http/protobuf",
            Self::Json => "http/json",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Human,
    Json,
}

/// A value that must not be printed with the rest of the configuration.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(pub(crate) String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(…)")
    }
}

/// Puts the layers together. `config` is the file the command line names, if it names one;
/// without `read_file` no file is looked for.
pub(crate) fn resolve(
    flags: Layer,
    config: Option<PathBuf>,
    read_file: bool,
    env: &Environment<'_>,
) -> Result<Settings, Failure> {
    let from_env = env.layer()?;
    let from_file = if read_file {
        file::load(config.or_else(|| env.get("TANDEM_CONFIG").map(PathBuf::from)))?
    } else {
        Layer::default()
    };
    let layer = flags.over(from_env).over(from_file);

    let listen = parse_listen(layer.listen.as_deref().unwrap_or(DEFAULT_LISTEN))?;
    let test_seams = layer.test_seams.unwrap_or(false);
    if test_seams && !listen.ip().is_loopback() {
        return Err(Failure::new(
            format!("--test-seams is refused with the listen address {listen}: it is not loopback"),
            "Listen on 127.0.0.1, or leave the test seams off.",
        ));
    }
    let kind = layer.escalation_interrupt_kind.as_deref();
    let agent_policy = AgentPolicy::new(layer.confidence_floor, kind)
        .and_then(|policy| policy.capped(layer.execution_model_version))
        .map_err(|why| {
            Failure::new(
                why,
                "Change TANDEM_CONFIDENCE_FLOOR, TANDEM_ESCALATION_INTERRUPT_KIND or \
                 TANDEM_EXECUTION_MODEL_VERSION (in tandem.toml: confidence_floor, \
                 escalation_interrupt_kind, execution_model_version).",
            )
        })?;
    let secrets = layer.secrets.unwrap_or_default();
    Ok(Settings {
        agent_policy,
        models: models::models(layer.models.unwrap_or_default(), &secrets)?,
        tools: tools::tool_servers(layer.mcp_servers.unwrap_or_default(), test_seams)?,
        listen,
        store: sqlite_path(layer.store.as_deref().unwrap_or(DEFAULT_STORE))?,
        workflows: layer.workflows.unwrap_or_default(),
        agents: layer.agents.unwrap_or_default(),
        packs: layer.packs.unwrap_or_default(),
        host_id: host_id(layer.host_id)?,
        public_url: layer.public_url.map(|url| public_url(&url)).transpose()?,
        test_seams,
        clock_advance_ms: env.clock_advance_ms(test_seams)?,
        log_format: layer.log_format.unwrap_or_default(),
        log_filter: env.get("TANDEM_LOG").or_else(|| env.get("RUST_LOG")),
        secrets,
        api_key: env.get("TANDEM_API_KEY").map(Hidden),
        tenant2_api_key: env.get("TANDEM_TENANT2_API_KEY").map(Hidden),
        audit_key: env.get("TANDEM_AUDIT_KEY").map(Hidden),
        otel: otel(layer.otel.unwrap_or_default())?,
        retention: retention::retention(
            layer.retention_seconds,
            layer.retention.unwrap_or_default(),
        )?,
        compact_above: compact_above(layer.memory.unwrap_or_default().compact_above)?,
        groups: groups(layer.groups.unwrap_or_default())?,
        strict_documents: layer.strict_documents.unwrap_or(true),
    })
}

fn compact_above(given: Option<u64>) -> Result<Option<u64>, Failure> {
    match given {
        None => Ok(Limits::default().compact_above),
        Some(0) => Ok(None),
        Some(above) if COMPACT_ABOVE.contains(&above) => Ok(Some(above)),
        Some(above) => Err(Failure::new(
            format!("memory cannot be compacted above {above} entries"),
            format!(
                "Set TANDEM_MEMORY_COMPACT_ABOVE (in tandem.toml: memory.compact_above) to a number \
                 from {} to {}, or to 0 for never.",
                COMPACT_ABOVE.start(),
                COMPACT_ABOVE.end()
            ),
        )),
    }
}

fn groups(groups: BTreeMap<String, Vec<String>>) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    for (name, members) in &groups {
        if let Some(member) = members.iter().find(|m| Member::parse(m).is_none()) {
            return Err(Failure::new(
                format!("the group {name:?} has a member {member:?}, which names nobody"),
                "A member is a principal, role:ROLE or group:GROUP.",
            ));
        }
    }
    Ok(groups)
}

/// Only where the store is, found as a server would find it.
pub(crate) fn store(
    flag: Option<String>,
    config: Option<PathBuf>,
    env: &Environment<'_>,
) -> Result<PathBuf, Failure> {
    if let Some(named) = flag.or_else(|| env.get("TANDEM_STORE")) {
        return sqlite_path(&named);
    }
    let file = file::load(config.or_else(|| env.get("TANDEM_CONFIG").map(PathBuf::from)))?;
    sqlite_path(file.store.as_deref().unwrap_or(DEFAULT_STORE))
}

/// Directories of packs a server here would take, or those the command line names.
pub(crate) fn packs_of(flags: &[PathBuf], env: &Environment<'_>) -> Result<Vec<PathBuf>, Failure> {
    if !flags.is_empty() {
        return Ok(flags.to_vec());
    }
    let file = file::load(env.get("TANDEM_CONFIG").map(PathBuf::from))?;
    let layer = env.layer()?.over(file);
    Ok(layer.packs.unwrap_or_default())
}

/// Whether a server here would refuse unknown settings of nodes.
pub(crate) fn strict_documents(env: &Environment<'_>) -> Result<bool, Failure> {
    let file = file::load(env.get("TANDEM_CONFIG").map(PathBuf::from))?;
    let layer = env.layer()?.over(file);
    Ok(layer.strict_documents.unwrap_or(true))
}

/// How long a server here would keep ended runs.
pub(crate) fn retention_of(
    config: Option<PathBuf>,
    env: &Environment<'_>,
) -> Result<Retention, Failure> {
    let file = file::load(config.or_else(|| env.get("TANDEM_CONFIG").map(PathBuf::from)))?;
    let layer = env.layer()?.over(file);
    retention::retention(layer.retention_seconds, layer.retention.unwrap_or_default())
}

/// The file behind `sqlite:PATH`.
pub(crate) fn sqlite_path(store: &str) -> Result<PathBuf, Failure> {
    let path = match store.split_once(':') {
        Some(("sqlite", path)) => path.strip_prefix("//").unwrap_or(path),
        Some(("postgres" | "postgresql", _)) => {
            return Err(Failure::new(
                "cannot open a postgres store: PostgreSQL is not in this version",
                "Use --store sqlite:PATH.",
            ));
        }
        _ => {
            return Err(Failure::new(
                format!("{store:?} is not a store"),
                "Write it as sqlite:PATH, for example --store sqlite:tandem.db.",
            ));
        }
    };
    if path.is_empty() || path == ":memory:" {
        return Err(Failure::new(
            "the store has no file: a durable host needs one",
            "Write it as sqlite:PATH, for example --store sqlite:tandem.db.",
        ));
    }
    Ok(PathBuf::from(path))
}

/// Other hosts tell runs apart by it, so it looks like a name in a domain, or a path below one.
fn host_id(given: Option<String>) -> Result<String, Failure> {
    let id = given.unwrap_or_else(|| DEFAULT_HOST_ID.to_owned());
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '/');
    let fits = id.len() <= MAX_HOST_ID_CHARS
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && id.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !id.contains("//")
        && id.chars().all(inside);
    if fits {
        return Ok(id);
    }
    Err(Failure::new(
        format!("the host id {id:?} cannot be used"),
        "Write it like example.com/runtime: up to 128 letters, digits, hyphens, dots, underscores \
         and slashes, beginning with a letter.",
    ))
}

fn public_url(text: &str) -> Result<String, Failure> {
    let wrong = |why: String| {
        Failure::new(
            format!("the public URL {text:?} cannot be used: {why}"),
            "Write it like https://tandem.example.com.",
        )
    };
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("it is not an http or https address".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or a fragment".to_owned()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn otel(layer: OtelLayer) -> Result<Option<Otel>, Failure> {
    let complete = match (layer.traces_endpoint, layer.endpoint) {
        (Some(traces), _) => traces,
        (None, Some(base)) => format!("{}/v1/traces", base.trim_end_matches('/')),
        (None, None) => return Ok(None),
    };
    let usable = Url::parse(&complete).is_ok_and(|u| matches!(u.scheme(), "http" | "https"));
    if !usable {
        return Err(Failure::new(
            format!("{complete:?} is not an OTLP endpoint: it must be an http or https address"),
            "Set OTEL_EXPORTER_OTLP_ENDPOINT to something like http://localhost:4318, or unset it.",
        ));
    }
    if cfg!(not(feature = "otel")) {
        return Err(Failure::new(
            "this build cannot export spans: it was made without the feature `otel`",
            "Unset OTEL_EXPORTER_OTLP_ENDPOINT, or build with default features.",
        ));
    }
    Ok(Some(Otel {
        endpoint: complete,
        protocol: layer.protocol.unwrap_or_default(),
    }))
}
