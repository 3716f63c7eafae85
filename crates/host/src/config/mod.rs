//! Server configuration: flags over environment over `tandem.toml` over defaults, validated before
//! anything is opened. An invalid value stops the start with a one-line reason.
//!
//! Reads the environment through [`Environment`], so that precedence can be tested as a table.

mod calls;
mod connections;
mod environment;
mod file;
mod host_id;
mod layer;
mod limits;
mod listen;
mod models;
mod notices;
mod otel;
mod retention;
mod tools;

#[cfg(test)]
mod tests;

pub(crate) use calls::Calls;
pub(crate) use connections::{Connections, ConnectionsLayer};
pub(crate) use environment::Environment;
pub(crate) use layer::Layer;
pub(crate) use limits::LimitsLayer;
pub(crate) use listen::parse_listen;
pub(crate) use models::{Model, ModelEndpoint, ModelLayer};
pub(crate) use notices::{Notice, NoticeLayer, PersonLayer};
pub(crate) use otel::{Otel, OtelLayer, OtelProtocol};
pub(crate) use retention::RetentionLayer;
pub(crate) use tools::{ToolServer, ToolServerLayer};

use crate::failure::Failure;
use layer::Switch;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use tandem_access::Member;
use tandem_app::conversation::NetworkPerson;
use tandem_runtime::{AgentPolicy, Limits, Retention};
use url::Url;

pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7717";
const DEFAULT_STORE: &str = "sqlite:tandem.db";
/// Compaction needs two entries; a name holds at most ten thousand.
const COMPACT_ABOVE: std::ops::RangeInclusive<u64> = 2..=9_000;

/// A validated configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    /// The SQLite file.
    pub(crate) store: PathBuf,
    pub(crate) workflows: Vec<PathBuf>,
    pub(crate) agents: Vec<PathBuf>,
    /// Directories of packs whose nodes workflows may use.
    pub(crate) packs: Vec<PathBuf>,
    /// The protocol name of this host; `None` to use the one generated in the store.
    pub(crate) host_id: Option<String>,
    /// Without a trailing slash.
    pub(crate) public_url: Option<String>,
    pub(crate) test_seams: bool,
    /// How far to move the test clock before any work is done.
    pub(crate) clock_advance_ms: i64,
    /// No program of a flow is kept between turns, for tests.
    pub(crate) test_cold: bool,
    pub(crate) log_format: LogFormat,
    /// Directives of the log filter.
    pub(crate) log_filter: Option<String>,
    pub(crate) secrets: BTreeMap<String, Hidden>,
    pub(crate) api_key: Option<Hidden>,
    pub(crate) tenant2_api_key: Option<Hidden>,
    /// Signs the audit log; without it a key in the store is used.
    pub(crate) audit_key: Option<Hidden>,
    pub(crate) otel: Option<Otel>,
    /// How long the log of an ended run is kept.
    pub(crate) retention: Retention,
    /// Limits of every run.
    pub(crate) limits: Limits,
    /// Limits on concurrent outbound calls.
    pub(crate) calls: Calls,
    pub(crate) groups: BTreeMap<String, Vec<String>>,
    /// Addresses that are told of questions of runs.
    pub(crate) notices: Vec<Notice>,
    /// Who decides them on a network.
    pub(crate) notice_people: Vec<NetworkPerson>,
    /// Models that nodes may call, by name.
    pub(crate) models: BTreeMap<String, Model>,
    /// Tool servers nodes may call, by name.
    pub(crate) tools: BTreeMap<String, ToolServer>,
    /// Whether agents are enabled, and which supervisor decisions need a person.
    pub(crate) agent_policy: AgentPolicy,
    /// Conformance node types and hooks are enabled.
    pub(crate) conformance: bool,
    /// The ancestry endpoint is served.
    pub(crate) ancestry: bool,
    /// Not yet resolved: the defaults depend on the available file descriptors.
    pub(crate) connections: ConnectionsLayer,
    /// Whether `serve` prints a link that signs into the console.
    pub(crate) print_login_link: bool,
    /// Unknown node settings are errors, not warnings.
    pub(crate) strict_documents: bool,
    /// Flows are run again after every turn, to find nondeterminism.
    pub(crate) strict_flows: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Human,
    Json,
}

/// A value that must not be printed with the configuration.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(pub(crate) String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(…)")
    }
}

/// Merges the layers. `config` is the file named on the command line; without `read_file` no file
/// is read.
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
        .and_then(|policy| policy.with_model_cap(layer.execution_model_version))
        .map_err(|why| {
            Failure::new(
                why,
                "Change TANDEM_CONFIDENCE_FLOOR, TANDEM_ESCALATION_INTERRUPT_KIND or \
                 TANDEM_EXECUTION_MODEL_VERSION (in tandem.toml: confidence_floor, \
                 escalation_interrupt_kind, execution_model_version).",
            )
        })?;
    let is_on = |switch: Option<Switch>, default| switch.map_or(default, Switch::is_on);
    let secrets = layer.secrets.unwrap_or_default();
    let limits = layer.limits.unwrap_or_default();
    let notices = notices::notices(layer.notices.unwrap_or_default())?;
    Ok(Settings {
        agent_policy: agent_policy.with_agents_supported(is_on(layer.multi_agent, true)),
        conformance: is_on(layer.conformance, test_seams),
        ancestry: is_on(layer.ancestry, true),
        models: models::models(layer.models.unwrap_or_default(), &secrets)?,
        tools: tools::tool_servers(layer.mcp_servers.unwrap_or_default(), test_seams)?,
        listen,
        store: sqlite_path(layer.store.as_deref().unwrap_or(DEFAULT_STORE))?,
        workflows: layer.workflows.unwrap_or_default(),
        agents: layer.agents.unwrap_or_default(),
        packs: layer.packs.unwrap_or_default(),
        host_id: layer.host_id.map(host_id::check).transpose()?,
        public_url: layer.public_url.map(|url| public_url(&url)).transpose()?,
        test_seams,
        clock_advance_ms: env.clock_advance_ms(test_seams)?,
        test_cold: env.is_test_cold(),
        log_format: layer.log_format.unwrap_or_default(),
        log_filter: env.get("TANDEM_LOG").or_else(|| env.get("RUST_LOG")),
        secrets,
        api_key: env.get("TANDEM_API_KEY").map(Hidden),
        tenant2_api_key: env.get("TANDEM_TENANT2_API_KEY").map(Hidden),
        audit_key: env.get("TANDEM_AUDIT_KEY").map(Hidden),
        otel: otel::resolve(layer.otel.unwrap_or_default())?,
        retention: retention::retention(
            layer.retention_seconds,
            layer.retention.unwrap_or_default(),
        )?,
        limits: Limits {
            compact_above: compact_above(layer.memory.unwrap_or_default().compact_above)?,
            ..limits.limits()?
        },
        groups: groups(layer.groups.unwrap_or_default())?,
        notice_people: notices::people(layer.notice_people.unwrap_or_default(), &notices)?,
        notices,
        connections: layer.connections.unwrap_or_default(),
        print_login_link: layer.print_login_link.unwrap_or(false),
        calls: calls::calls(layer.calls.unwrap_or_default())?,
        strict_documents: layer.strict_documents.unwrap_or(true),
        strict_flows: layer.strict_flows.unwrap_or(false),
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

/// Only the path of the store, resolved like a server does.
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

/// Pack directories: those of the command line, else those a server here would use.
pub(crate) fn packs_of(flags: &[PathBuf], env: &Environment<'_>) -> Result<Vec<PathBuf>, Failure> {
    if !flags.is_empty() {
        return Ok(flags.to_vec());
    }
    let file = file::load(env.get("TANDEM_CONFIG").map(PathBuf::from))?;
    let layer = env.layer()?.over(file);
    Ok(layer.packs.unwrap_or_default())
}

/// Whether a server here would refuse unknown node settings.
pub(crate) fn strict_documents(env: &Environment<'_>) -> Result<bool, Failure> {
    let file = file::load(env.get("TANDEM_CONFIG").map(PathBuf::from))?;
    let layer = env.layer()?.over(file);
    Ok(layer.strict_documents.unwrap_or(true))
}

/// The retention a server here would use.
pub(crate) fn retention_of(
    config: Option<PathBuf>,
    env: &Environment<'_>,
) -> Result<Retention, Failure> {
    let file = file::load(config.or_else(|| env.get("TANDEM_CONFIG").map(PathBuf::from)))?;
    let layer = env.layer()?.over(file);
    retention::retention(layer.retention_seconds, layer.retention.unwrap_or_default())
}

/// The path in `sqlite:PATH`.
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
