//! Options of the commands that talk to a server.

use clap::{Args, Subcommand, ValueEnum};
use std::future::Future;
use std::process::ExitCode;
use tandem_access::Scope;
use tandem_record::RunStatus;

/// Runs a command that only waits for a server; one thread is enough.
pub(super) fn wait_for(
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

#[derive(Args)]
pub(crate) struct ConnectionArgs {
    /// The server
    #[arg(
        long,
        env = "TANDEM_URL",
        default_value = "http://127.0.0.1:7717",
        value_name = "URL",
        help_heading = "Connection"
    )]
    pub(crate) url: String,
    /// API key; a local `tandem dev` started in this directory needs none
    #[arg(
        long,
        env = "TANDEM_API_KEY",
        hide_env_values = true,
        value_name = "KEY",
        help_heading = "Connection"
    )]
    pub(crate) key: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start a run and wait for its end
#[derive(Args)]
#[command(
    long_about = "Start a run on a server and wait until it ends, or until it waits for a person.\n\n\
        With --follow its events are shown as they happen, and waiting for a person does not end \
        the command.",
    after_help = "\
Examples:
  tandem run hello --follow
  tandem run order-pipeline --input '{\"orderId\": \"A-1\"}'
  tandem run order-pipeline --input @order.json --tag nightly --json
  tandem run billing --idempotency-key invoice-2041   (safe to repeat)

Exit codes:
  0  completed
  1  failed, or the run could not be started
  2  cancelled (and wrong usage of this command)
  3  waiting for a person or an outside event, without --follow"
)]
pub(crate) struct RunArgs {
    /// Id of the workflow
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: String,
    /// Inputs of the run: a JSON object, @FILE, or @- for stdin
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) input: Option<String>,
    /// Show events as they happen
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Tag of the run; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Repeating the command with the same key starts one run
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    #[command(after_help = "\
Examples:
  tandem runs list
  tandem runs list --status failed --workflow order-pipeline --limit 5
  tandem runs list --json | jq -r '.runs[].runId'")]
    List(ListArgs),
    /// Show one run: status, nodes, outputs or error
    Show(OneRunArgs),
    /// Show a run's events
    #[command(after_help = "\
Examples:
  tandem runs events RUN                     what happened so far
  tandem runs events RUN --follow            and what happens next
  tandem runs events RUN --follow --mode values --json")]
    Events(EventsArgs),
    /// Cancel a run and its child runs
    Cancel(ReasonArgs),
    /// Pause a run after the current node, or at once with --now
    Pause {
        #[command(flatten)]
        run: ReasonArgs,
        /// Interrupt the current node; it starts again after the resume
        #[arg(long)]
        now: bool,
    },
    /// Resume a paused run
    Resume(ReasonArgs),
    /// Create a new run that shares the first events of another
    #[command(after_help = "\
Examples:
  tandem runs fork RUN                          replay it with what was recorded
  tandem runs fork RUN --branch --from 12       go on for real from event 12
  tandem runs fork RUN --branch --from 12 --tag second-try")]
    Fork(ForkArgs),
    /// Show where two runs differ
    #[command(after_help = "\
Exit codes:
  0  they do not differ
  1  they differ, or could not be compared")]
    Diff(DiffArgs),
    /// Show the parent of a run, its parent, and so on
    #[command(after_help = "\
Examples:
  tandem runs ancestry RUN
  tandem runs ancestry RUN --json | jq -r '.ancestors[-1].runId'

A parent on another host is named, with where to ask for it; its own parents are known there.")]
    Ancestry(OneRunArgs),
}

#[derive(Args)]
pub(crate) struct ForkArgs {
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Execute again: interrupts are opened again, calls are made again
    #[arg(long, requires = "from")]
    pub(crate) branch: bool,
    /// Keep the events below this sequence; without it a replay starts at the beginning
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// Tag of the fork, besides those of its source; repeatable
    #[arg(long = "tag", value_name = "TAG", requires = "branch")]
    pub(crate) tags: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The run to compare it with
    #[arg(value_name = "OTHER")]
    pub(crate) against: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Only runs in this status
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<RunStatus>,
    /// Only runs of this workflow
    #[arg(long, value_name = "WORKFLOW")]
    pub(crate) workflow: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct OneRunArgs {
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ReasonArgs {
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Recorded with the run
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct EventsArgs {
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Wait until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Which events to follow; with `values` the whole run after each change
    #[arg(long, value_enum, default_value_t = StreamMode::Debug, requires = "follow")]
    pub(crate) mode: StreamMode,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamMode {
    /// Changes of the run
    Updates,
    /// The run after each change
    Values,
    /// Streamed text only
    Messages,
    /// Everything
    Debug,
}

impl StreamMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Updates => "updates",
            Self::Values => "values",
            Self::Messages => "messages",
            Self::Debug => "debug",
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print its secret, once
    #[command(after_help = "\
Examples:
  tandem keys create ci --scope runs:create --scope runs:read
  tandem keys create ana --scope all --principal ana --workspace north
  tandem keys create admin --scope all --tenant acme --store sqlite:tandem.db

A key makes keys of its own tenant only. The first key of another tenant is made by whoever
has the store, with --store.")]
    Create(NewKeyArgs),
    /// List keys; secrets are not stored and cannot be shown
    List(KeyListArgs),
    /// Revoke a key and the keys it made, at once and for good
    #[command(after_help = "\
The keys that the key made end with it, and the keys that they made. If the key was rotated, its
successor goes on with them and nothing else is revoked. A successor that the key made for itself goes on only
if it or the key asks; when you revoke the key with another one, keep it with --keep-made.

A leaked key: revoke it with --with-made, since whoever had it may have rotated it.")]
    Revoke {
        #[command(flatten)]
        key: OneKeyArgs,
        /// Revoke the keys it made, also when it was rotated
        #[arg(long, conflicts_with = "keep_made")]
        with_made: bool,
        /// Keep the keys it made
        #[arg(long)]
        keep_made: bool,
    },
    /// Create another key for the same principal; the old one works until it is revoked
    Rotate {
        #[command(flatten)]
        key: OneKeyArgs,
        /// Expiry of the new key, RFC 3339
        #[arg(long, value_name = "TIME")]
        expires_at: Option<jiff::Timestamp>,
    },
}

#[derive(Args)]
pub(crate) struct NewKeyArgs {
    /// Purpose of the key
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Scope of the key; repeatable, or `all`: manifest:read, runs:create, runs:read, runs:cancel,
    /// artifacts:read, approvals:respond, conversations:takeover, tandem:workflows, tandem:keys, tandem:groups, …
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
    pub(crate) scopes: Vec<String>,
    /// Role of its holder; repeatable
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// Principal of the key, as groups and approver lists name it
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Tenant it belongs to; through a server that is the tenant of the key you use
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Create it in this store, which no server may be using: the way to create the first key of a
    /// tenant
    #[arg(long, value_name = "STORE", requires = "tenant")]
    pub(crate) store: Option<String>,
    /// Workspace it is bound to
    #[arg(long, value_name = "ID")]
    pub(crate) workspace: Option<String>,
    /// The only agent it is good for: its conversations, and nothing else
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Expiry, RFC 3339: 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<jiff::Timestamp>,
    /// Create a test key
    #[arg(long)]
    pub(crate) test: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct KeyListArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct OneKeyArgs {
    /// Id of the key, as `keys list` shows it
    #[arg(value_name = "KEY_ID")]
    pub(crate) key_id: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

fn scope(text: &str) -> Result<String, String> {
    if text == "all" || Scope::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = Scope::all().iter().map(|s| s.as_str()).collect();
    Err(format!("one of all, {}", known.join(", ")))
}

fn status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| {
        let known: Vec<&str> = RunStatus::ALL.iter().map(|s| s.as_str()).collect();
        format!("one of {}", known.join(", "))
    })
}
