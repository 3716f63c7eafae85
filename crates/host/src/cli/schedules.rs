//! Options of `tandem schedules`.

use super::client::ConnectionArgs;
use super::inbox::AdminArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum SchedulesCommand {
    /// List schedules, newest first
    List(ScheduleListArgs),
    /// Show one schedule
    Show(OneScheduleArgs),
    /// Start a flow by the clock, for one user or for many
    #[command(after_help = "\
Examples:
  tandem schedules create --agent concierge --flow hello --user ana --cron '0 9 * * mon-fri'
  tandem schedules create --agent concierge --flow offer --tag vip --campaign spring --at 2031-03-03T09:00
  tandem schedules create --agent concierge --definition @schedule.json

Times without an offset are read in the time zone of the agent.")]
    Create(CreateScheduleArgs),
    /// Change a schedule; what is not named stays
    Update(UpdateScheduleArgs),
    /// Let no occurrence take place for now
    Pause(ChangeScheduleArgs),
    /// Go on after a pause
    Resume(ChangeScheduleArgs),
    /// End a schedule
    Cancel(ChangeScheduleArgs),
    /// List the occurrences of a schedule with their outcomes, the latest first
    Runs(ScheduleRunsArgs),
    /// List the recipients of a campaign's occurrence with their outcomes
    Recipients(ScheduleRecipientsArgs),
}

#[derive(Args)]
pub(crate) struct ScheduleListArgs {
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Option<String>,
    /// Only the triggers of this workflow
    #[arg(long, value_name = "WORKFLOW", conflicts_with_all = ["agent", "flow", "user", "campaign"])]
    pub(crate) workflow: Option<String>,
    /// active, paused, canceled or completed
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only those for this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    #[arg(long, value_name = "CAMPAIGN")]
    pub(crate) campaign: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct OneScheduleArgs {
    #[arg(value_name = "SCHEDULE")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// What a schedule does, as options.
#[derive(Args)]
pub(crate) struct DefinitionArgs {
    /// The whole definition, or parts of it: JSON, @FILE, or @- for stdin. Options add to it
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) definition: Option<String>,
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Option<String>,
    /// Five fields: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "EXPR", conflicts_with = "at")]
    pub(crate) cron: Option<String>,
    /// Once, at this moment
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// For this user
    #[arg(long, value_name = "USER", conflicts_with_all = ["tag", "all", "campaign"])]
    pub(crate) user: Option<String>,
    /// For all users with this tag
    #[arg(long, value_name = "TAG", conflicts_with = "all")]
    pub(crate) tag: Option<String>,
    /// For all users of the agent
    #[arg(long)]
    pub(crate) all: bool,
    /// Name of the campaign
    #[arg(long, value_name = "CAMPAIGN")]
    pub(crate) campaign: Option<String>,
    /// Input of the flow, as JSON
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) input: Option<String>,
    /// Users without an active session get one
    #[arg(long)]
    pub(crate) bootstrap: bool,
}

#[derive(Args)]
pub(crate) struct CreateScheduleArgs {
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct UpdateScheduleArgs {
    #[arg(value_name = "SCHEDULE")]
    pub(crate) id: String,
    /// Refused if the schedule has another version by now
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    #[command(flatten)]
    pub(crate) definition: DefinitionArgs,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ChangeScheduleArgs {
    #[arg(value_name = "SCHEDULE")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ScheduleRunsArgs {
    #[arg(value_name = "SCHEDULE")]
    pub(crate) id: String,
    /// At most this many
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct ScheduleRecipientsArgs {
    /// Id of the occurrence, as `schedules runs` shows it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// At most this many
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}
