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
    /// Make an escalation your work, so that nobody else does it too
    #[command(after_help = DESK_WORK)]
    Claim(DeskArgs),
    /// Give an escalation back, whoever has it
    #[command(after_help = DESK_WORK)]
    Release(DeskArgs),
    /// Give an escalation to somebody, who then claims it
    #[command(after_help = DESK_WORK)]
    Assign(AssignArgs),
    /// Speak with the user of a conversation; its agent is silent from then on
    #[command(after_help = TAKEOVER)]
    Takeover(TakeoverArgs),
    /// Send a text to the user of a conversation you took over
    #[command(after_help = TAKEOVER)]
    Write(WriteArgs),
    /// Let the agent speak again
    #[command(after_help = TAKEOVER)]
    Handback(HandbackArgs),
}

const DESK_WORK: &str = "\
Examples:
  tandem inbox claim ID
  tandem inbox release ID
  tandem inbox assign ID --to ben

For escalations of conversations. Who may do this is said by the rules of the agent: by your key, or by
--admin-token. Deciding does not need a claim.

Exit codes:
  0  done, or it was so already
  1  refused; somebody else may have it
  2  wrong usage of this command";

const TAKEOVER: &str = "\
Examples:
  tandem inbox takeover SESSION
  tandem inbox write SESSION --text 'Ana here. How can I help?'
  tandem inbox handback SESSION --note 'she wants a call on Monday'

Who may do this is said by the rules of the agent: by your key, or by --admin-token. What the user writes
meanwhile is shown on the page of the conversation in the console.

Exit codes:
  0  done
  1  refused; somebody else may have the conversation
  2  wrong usage of this command";

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

#[derive(Args)]
pub(crate) struct DeskArgs {
    /// Id of the question, as `inbox list` shows it, or of the escalation
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct AssignArgs {
    /// Id of the actor, as the rules of the agent name them
    #[arg(long, value_name = "ACTOR")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) of: DeskArgs,
}

#[derive(Args)]
pub(crate) struct TakeoverArgs {
    /// Id of the session, or of one of its questions as `inbox list` shows it
    #[arg(value_name = "SESSION")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct WriteArgs {
    /// What the user is to read
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
    /// Id of the text: the same id again sends nothing
    #[arg(long, value_name = "ID")]
    pub(crate) message_id: Option<String>,
    #[command(flatten)]
    pub(crate) of: TakeoverArgs,
}

#[derive(Args)]
pub(crate) struct HandbackArgs {
    /// For the agent; it is not sent to the user
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) of: TakeoverArgs,
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
