//! The command line: options and help texts. Each command is implemented in another module.

mod agents;
mod audit;
mod client;
mod groups;
mod inbox;
mod operate;
mod parked;
mod schedules;
mod server;

#[cfg(test)]
mod tests;

pub(crate) use agents::{AgentsCommand, ChatArgs, NewAgentArgs, OneAgentArgs, TypesArgs};
pub(crate) use audit::{AuditCommand, ExportArgs, RebuildArgs, VerifyArgs};
pub(crate) use client::{
    ConnectionArgs, DiffArgs, EventsArgs, ForkArgs, KeysCommand, ListArgs, NewKeyArgs, OneRunArgs,
    RunArgs, RunsCommand, StreamMode,
};
pub(crate) use groups::GroupsCommand;
pub(crate) use inbox::{
    AdminArgs, AnswerArgs, AssignArgs, DecideArgs, DeskArgs, HandbackArgs, InboxCommand,
    QuestionListArgs, TakeoverArgs, WriteArgs,
};
pub(crate) use operate::{
    BackupArgs, ExportRunsArgs, ImportRunsArgs, RestoreArgs, StorageArgs, StoreArgs,
};
pub(crate) use parked::ParkedCommand;
pub(crate) use schedules::{
    ChangeScheduleArgs, CreateScheduleArgs, DefinitionArgs, OneScheduleArgs, ScheduleListArgs,
    ScheduleRecipientsArgs, ScheduleRunsArgs, SchedulesCommand, UpdateScheduleArgs,
};
pub(crate) use server::{DevArgs, ServeArgs};

use crate::commands;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "tandem",
    version,
    about = "A durable host for workflows that wait for time, machines and people",
    long_about = "A durable host for OpenWOP v1 workflow runs: one binary, one SQLite file.\n\n\
        Every step of a run is on disk before it is announced. Kill the process at any moment; \
        the next process continues where it stopped.",
    after_help = "\
Examples:
  tandem dev                                  a server with samples and a console, in ./.tandem
  tandem run hello --follow                   start a run and watch it
  tandem inbox list                           list open questions
  tandem chat concierge                       talk to an agent
  tandem agents new desk                      write a first agent
  tandem check workflows/ agents/             validate workflow documents and agents
  tandem serve --workflows workflows/         the server for production
  tandem backup monday.db                     copy the store while the server runs

`tandem help COMMAND` describes a command.",
    disable_help_subcommand = false,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(DevArgs),
    Serve(ServeArgs),
    Run(RunArgs),
    /// Work with runs on a server: list, show, events, cancel, pause, resume, fork, diff, ancestry
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem runs list --status running
  tandem runs events RUN --follow
  tandem runs cancel RUN --reason 'wrong customer'"
    )]
    Runs(RunsCommand),
    /// Open questions of runs and conversations: list, show, approve, reject, answer
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem inbox list --kind approval
  tandem inbox show ID
  tandem inbox approve ID --comment 'looks right'
  tandem inbox answer ID --set colour=blue

A decision is sent with the digest of the question that was shown. If the question has changed,
the decision is refused. The first decision counts; later ones get the name of who made it."
    )]
    Inbox(InboxCommand),
    Chat(ChatArgs),
    /// Agents: write a first one, list and show those of a server
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem agents new desk
  tandem agents list
  tandem agents show desk"
    )]
    Agents(AgentsCommand),
    Types(TypesArgs),
    /// Schedules of a server: list, show, create, update, pause, resume, cancel, runs, recipients
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem schedules create --agent concierge --flow hello --user ana --cron '0 9 * * mon-fri'
  tandem schedules list --agent concierge
  tandem schedules runs SCHEDULE
  tandem schedules cancel SCHEDULE

Who may change schedules is said by the rules of their agent: by your key, or by --admin-token."
    )]
    Schedules(SchedulesCommand),
    /// API keys of a server: create, list, revoke, rotate
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem keys create ci --scope runs:create --scope runs:read
  tandem keys rotate key_live_0123456789abcdef
  tandem keys revoke key_live_0123456789abcdef

A secret is shown once, when it is made; the server stores only its hash."
    )]
    Keys(KeysCommand),
    /// The audit log and decision receipts: verify, export
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem audit verify
  tandem audit verify --receipt receipt.json
  tandem audit export > log.ndjson"
    )]
    Audit(AuditCommand),
    /// Groups of approvers on a server: list, set, delete
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem groups set finance ana ben role:controller
  tandem groups set board group:finance eva
  tandem groups list"
    )]
    Groups(GroupsCommand),
    /// Timers and effects that keep failing: list, retry
    #[command(
        subcommand,
        after_help = "\
Examples:
  tandem parked list
  tandem parked retry run:run-0199…"
    )]
    Parked(ParkedCommand),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Export(ExportRunsArgs),
    Import(ImportRunsArgs),
    Storage(StorageArgs),
    Check(CheckArgs),
}

/// Validate workflow documents and agents without a server
#[derive(Args)]
#[command(
    long_about = "Validate workflow documents and agents without a server.\n\n\
        A directory with an agent file (agent.ts, agent.js, …) is an agent; it is loaded as a server \
        would. Any other directory stands for every agent and every *.json below it. A flow file is \
        checked with its agent. Each problem is printed with its file, line and column, the JSON \
        pointer to the place, and what is wrong. Exits 1 when there is any.",
    after_help = "\
Examples:
  tandem check order.json
  tandem check workflows/ more/refund.json
  tandem check agents/desk
  tandem check agents/desk/flows/booking.ts
  tandem check --packs packs/ workflows/
  tandem check --json workflows/ > problems.json"
)]
pub(crate) struct CheckArgs {
    /// Workflow documents, agents, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Load node types of the packs in this directory; repeatable [env: TANDEM_PACKS]
    #[arg(long, value_name = "DIR")]
    pub(crate) packs: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Check(args) => commands::check::check(&args),
            Command::Backup(args) => commands::operate::backup(&args),
            Command::Restore(args) => commands::operate::restore(&args),
            Command::Export(args) => commands::operate::export(&args),
            Command::Import(args) => commands::operate::import(&args),
            Command::Storage(args) => match args.server() {
                Some(server) => client::wait_for(commands::storage::of_server(server)),
                None => commands::storage::storage(&args),
            },
            Command::Run(args) => client::wait_for(commands::run::run(args)),
            Command::Runs(command) => client::wait_for(commands::runs::runs(command)),
            Command::Inbox(command) => client::wait_for(commands::inbox::inbox(command)),
            Command::Schedules(command) => {
                client::wait_for(commands::schedules::schedules(command))
            }
            Command::Chat(args) => client::wait_for(commands::chat::chat(args)),
            Command::Agents(AgentsCommand::New(args)) => commands::agents::create(&args),
            Command::Agents(AgentsCommand::List { connection }) => {
                client::wait_for(commands::agents::list(connection))
            }
            Command::Agents(AgentsCommand::Show(args)) => {
                client::wait_for(commands::agents::show(args))
            }
            Command::Types(TypesArgs {}) => commands::agents::types(),
            Command::Keys(command) => client::wait_for(commands::keys::keys(command)),
            Command::Audit(command) => client::wait_for(commands::audit::audit(command)),
            Command::Groups(command) => client::wait_for(commands::groups::groups(command)),
            Command::Parked(command) => client::wait_for(commands::parked::parked(command)),
            Command::Serve(args) => crate::serve::serve(args),
            Command::Dev(args) => crate::dev::dev(args),
        }
    }
}
