//! Options of the commands about agents: `agents`, `chat`, `types`.

use super::client::ConnectionArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub(crate) enum AgentsCommand {
    /// Write the folder of a first agent
    #[command(after_help = "\
Examples:
  tandem agents new desk
  tandem dev --agents agents/
  tandem chat desk

The folder has agent.ts, a flow, script.json for the scripted model, and what an editor needs to
know the types. Nothing is installed and nothing is built.")]
    New(NewAgentArgs),
    /// List the agents of a server
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show one agent: its flows with the hashes of their code, and errors of its files
    Show(OneAgentArgs),
}

#[derive(Args)]
pub(crate) struct NewAgentArgs {
    /// Id of the agent: letters, digits, '-' and '_'
    #[arg(value_name = "NAME", value_parser = agent_id)]
    pub(crate) name: String,
    /// The directory of agents
    #[arg(long, value_name = "DIR", default_value = "agents")]
    pub(crate) dir: PathBuf,
}

#[derive(Args)]
pub(crate) struct OneAgentArgs {
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Talk to an agent
#[derive(Args)]
#[command(
    long_about = "Talk to an agent of a server in the terminal.\n\n\
        The last messages of a session that is still active are shown first. Answers appear while \
        they are written. What other people and the host do to the conversation is shown as it \
        happens, also while you type.\n\n\
        Lines that begin with a slash are commands of the agent, except /quit, which leaves.",
    after_help = "\
Examples:
  tandem chat concierge
  tandem chat booking --user mara
  printf 'book me in\\ncleaning\\nMonday\\nyes\\n' | tandem chat booking --user test-1

Without a terminal each line of stdin is one message. The next one is sent when the answer to the
one before is complete; the command ends after the last answer. With --json every event of the
session is printed as one line.

Exit codes:
  0  left, or every message was processed
  1  a message was not processed (too many in a minute, for instance), or the server failed"
)]
pub(crate) struct ChatArgs {
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// Who is talking, as the agent knows them [default: your login name]
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// Print type declarations of the module `tandem`, for editors
#[derive(Args)]
#[command(
    long_about = "Print type declarations of the module `tandem`, for editors.\n\n\
        An editor that finds them completes the fields of createAgent, the members of ctx and the \
        effects of flows.",
    after_help = "\
Examples:
  tandem types > agents/tandem.d.ts"
)]
pub(crate) struct TypesArgs {}

fn agent_id(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fine) {
        return Err("use at most 64 letters, digits, '-' and '_'".to_owned());
    }
    Ok(text.to_owned())
}
