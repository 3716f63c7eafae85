//! Options of `tandem inbox`.

use super::client::ConnectionArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum InboxCommand {
    /// List open questions, newest first
    #[command(after_help = "\
Examples:
  tandem inbox list
  tandem inbox list --kind approval
  tandem inbox list --json | jq -r '.interrupts[].interruptId'")]
    List(QuestionListArgs),
    /// Show one question: its content, its digest, how it can be answered
    Show(OneQuestionArgs),
    /// Approve what is proposed
    #[command(after_help = DECIDING)]
    Approve(DecideArgs),
    /// Reject what is proposed
    #[command(after_help = DECIDING)]
    Reject(DecideArgs),
    /// Answer any other question, or give an approval in full
    #[command(after_help = "\
Examples:
  tandem inbox answer ID --set colour=blue --set count=3      a set of questions
  tandem inbox answer ID --value '{\"orderId\": \"A-1\"}'         an event, or anything with a schema
  tandem inbox answer ID --value @answer.json
  tandem inbox answer ID --value '{\"action\": \"edit-accept\", \"editedArtifactData\": {\"amount\": 5}}'

Exit codes:
  0  answered
  1  refused; the question is unchanged
  2  wrong usage of this command
  3  accepted; the question stays open (more votes are needed, or a question was sent back)")]
    Answer(AnswerArgs),
}

const DECIDING: &str = "\
Examples:
  tandem inbox approve ID --comment 'looks right'
  tandem inbox reject ID --comment 'wrong customer'
  tandem inbox approve ID --digest 4f1c…      only if it has not changed since `inbox show`

Without --digest the current version of the question is decided. Who may decide an escalation of a
conversation is said by the rules of its agent: by your key, or by --admin-token.

Exit codes:
  0  decided
  1  refused; another decision may have come first
  2  wrong usage of this command
  3  your vote is counted; more votes are needed";

#[derive(Args)]
pub(crate) struct QuestionListArgs {
    /// Only this kind: approval, clarification, external-event, custom, …
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Only questions of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Only questions of this conversation
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct OneQuestionArgs {
    /// Id of the question, as `inbox list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct DecideArgs {
    /// Id of the question, as `inbox list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Recorded with the decision
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Digest of what was shown to you; refused if the question has changed
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
#[group(id = "given", required = true, multiple = false, args = ["value", "sets"])]
pub(crate) struct AnswerArgs {
    /// Id of the question, as `inbox list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The whole answer: JSON, @FILE, or @- for stdin
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) value: Option<String>,
    /// One answer of several; repeatable
    #[arg(long = "set", value_name = "QUESTION=ANSWER", value_parser = pair)]
    pub(crate) sets: Vec<(String, String)>,
    /// Digest of what was shown to you; refused if the question has changed
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Who decides about a conversation, where the key is not enough.
#[derive(Args)]
pub(crate) struct AdminArgs {
    /// Token of an admin, for agents whose rules have tokens
    #[arg(
        long,
        env = "TANDEM_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Connection"
    )]
    pub(crate) admin_token: Option<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("write it as QUESTION=ANSWER")?;
    Ok((name.to_owned(), value.to_owned()))
}
