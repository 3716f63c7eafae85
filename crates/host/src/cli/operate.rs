//! Options of the commands that work on a store itself: backup, restore, export, import, storage.

use super::client::ConnectionArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct StoreArgs {
    /// The store: sqlite:PATH [env: TANDEM_STORE] [default: as `tandem serve` finds it]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Configuration file [env: TANDEM_CONFIG] [default: ./tandem.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Copy the store into a file, also while a server uses it
#[derive(Args)]
#[command(
    long_about = "Copy the store into a file, also while a server uses it.\n\n\
        Everything acknowledged before the command began is in the copy. The server goes on \
        meanwhile. The copy is checked page by page before it gets its name; if anything fails, nothing \
        appears under it. It holds everything the store holds, secrets that sign links and the audit log \
        included, and only its owner may read it.",
    after_help = "\
Examples:
  tandem backup /backup/tandem-monday.db
  tandem backup --store sqlite:/var/lib/tandem/tandem.db /backup/tandem.db --force
  tandem restore /backup/tandem-monday.db --store sqlite:/var/lib/tandem/tandem.db"
)]
pub(crate) struct BackupArgs {
    /// Where to write the copy
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Create a store from a backup
#[derive(Args)]
#[command(
    long_about = "Create a store from a backup.\n\n\
        The store must not exist: move the old one away first, with its -wal file if there is one. Runs \
        go on from where the backup was taken; what was done since then is done again under the same \
        Idempotency-Key.",
    after_help = "\
Examples:
  tandem restore /backup/tandem-monday.db --store sqlite:/var/lib/tandem/tandem.db
  tandem restore tandem-monday.db --store sqlite:look.db && tandem serve --store sqlite:look.db"
)]
pub(crate) struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The store to make: sqlite:PATH
    #[arg(long, value_name = "STORE")]
    pub(crate) store: String,
}

/// Write runs with their history as lines of JSON, also while a server uses the store
#[derive(Args)]
#[command(
    long_about = "Write runs with their whole history as lines of JSON, also while a server uses the store.\n\n\
        Without a selection everything is exported: runs, workflows, memory, the audit log with its \
        key, API keys (as hashes), settings. Such a file HOLDS SECRETS: whoever has it can sign links and \
        seal audit logs in this host's name. A file made with --out can be read by its owner only.\n\n\
        With --run or --tenant the file carries the runs (with the runs below them), their documents, \
        questions, timers, effects under way and memory, and no key. Values marked sensitive are in \
        it. A run brings the run it was forked from, or its parent if it shares its memory, and of memory \
        what these runs can see; a tenant all of its memory.",
    after_help = "\
Examples:
  tandem export --out everything.ndjson
  tandem export --tenant acme --out acme.ndjson
  tandem export --run 0199… | gzip > run.ndjson.gz
  tandem import everything.ndjson --store sqlite:new.db"
)]
pub(crate) struct ExportRunsArgs {
    /// A run and its descendants; repeatable
    #[arg(long = "run", value_name = "ID")]
    pub(crate) runs: Vec<String>,
    /// All runs of a tenant; with --run, only those of the named runs that belong to it
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// File to write; stdout by default
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Import exported runs into a store that no server uses
#[derive(Args)]
#[command(
    long_about = "Import exported runs into a store that no server uses.\n\n\
        An export of everything needs a new store; then links, keys and the audit log work as they \
        did. Other exports may be brought into any store that has none of their runs; if they carry \
        memory, into one without memory. Nothing is written unless the file is complete and all of it \
        fits; each run is written whole.\n\n\
        Runs that wait continue in the new store. Stop the old server first, or they run twice.",
    after_help = "\
Examples:
  tandem import everything.ndjson --store sqlite:new.db
  tandem import run.ndjson --store sqlite:/var/lib/tandem/tandem.db"
)]
pub(crate) struct ImportRunsArgs {
    /// The file written by `tandem export`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The store: sqlite:PATH
    #[arg(long, value_name = "STORE")]
    pub(crate) store: String,
}

/// Show what uses space in a store, why, and how to reduce it
#[derive(Args)]
#[command(
    long_about = "Show what uses space in a store, why, and how to reduce it.\n\n\
        Reads the file beside a running server, at a bounded cost: it looks at the newest 200,000 runs, \
        and computes sizes of tables for files up to 2 GiB.\n\n\
        With --url, or TANDEM_URL and no --store, a server is queried instead. It shows what belongs to the \
        tenant of the key, without sizes of the file.",
    after_help = "\
Examples:
  tandem storage
  tandem storage --store sqlite:/var/lib/tandem/tandem.db --config /etc/tandem/tandem.toml
  tandem storage --json | jq .tables[0]
  tandem storage --url https://tandem.example.com --key tdm_live_…"
)]
pub(crate) struct StorageArgs {
    /// Query this server instead of reading a file
    #[arg(
        long,
        env = "TANDEM_URL",
        value_name = "URL",
        help_heading = "Connection"
    )]
    url: Option<String>,
    /// API key for the server
    #[arg(
        long,
        env = "TANDEM_API_KEY",
        hide_env_values = true,
        value_name = "KEY",
        help_heading = "Connection"
    )]
    key: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl StorageArgs {
    /// The server to query, if one is given and no file is.
    pub(crate) fn server(&self) -> Option<ConnectionArgs> {
        let url = self.url.clone().filter(|_| self.store.store.is_none())?;
        Some(ConnectionArgs {
            url,
            key: self.key.clone(),
            json: self.json,
        })
    }
}
