//! Options of `tandem audit`.

use super::ConnectionArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tandem_runtime::audit::PublicKey;

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    Verify(Box<VerifyArgs>),
    Export(ExportArgs),
    Rebuild(RebuildArgs),
}

/// Check the audit log of a server, an exported one, or a decision receipt
#[derive(Args)]
#[command(
    long_about = "Check the audit log of a server, an exported one, or a decision receipt.\n\n\
        Without a file the log is fetched from the server and checked here, entry by entry: the \
        server's own result is used only for entries of other tenants. With a \
        file no server is needed. Exits 1 when anything is not as it was signed.",
    after_help = "\
Examples:
  tandem audit verify
  tandem audit verify log.ndjson --public-key MCowBQYDK2VwAyEA…
  tandem audit verify --receipt receipt.json --public-key MCowBQYDK2VwAyEA…

The public key is `auth.auditLogIntegrity.checkpointPublicKey` of /.well-known/openwop. Keep a copy \
of it elsewhere: a check without it shows only that a file agrees with itself."
)]
pub(crate) struct VerifyArgs {
    /// An exported log, or - for stdin
    #[arg(value_name = "FILE", conflicts_with = "receipt")]
    pub(crate) file: Option<PathBuf>,
    /// A decision receipt, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// The trusted public key: base64 of DER SPKI
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) public_key: Option<PublicKey>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Export the audit log as lines of JSON, for storage and verification elsewhere
#[derive(Args)]
#[command(after_help = "\
Examples:
  tandem audit export > log.ndjson
  tandem audit export --out log.ndjson && tandem audit verify log.ndjson

Of entries of other tenants only the hash is exported, which is enough to check the chain.")]
pub(crate) struct ExportArgs {
    /// File to write; stdout by default
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Replay the logs of conversations and compare the result with what is stored
#[derive(Args)]
#[command(
    long_about = "Replay the logs of conversations and compare the result with what is stored.\n\n\
        The server folds each log from its first event and compares the state that commands start from, \
        the row of the session, its escalations and its open questions. Nothing is changed. Exits 1 when \
        anything differs.",
    after_help = "\
Examples:
  tandem audit rebuild                 every session that the key may see
  tandem audit rebuild --agent refunds
  tandem audit rebuild sess-0199…"
)]
pub(crate) struct RebuildArgs {
    /// Sessions; all of them by default
    #[arg(value_name = "SESSION", conflicts_with = "agent")]
    pub(crate) sessions: Vec<String>,
    /// Only sessions with this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::from_spki(text.trim())
        .ok_or_else(|| "not an Ed25519 public key as base64 of DER SPKI".to_owned())
}
