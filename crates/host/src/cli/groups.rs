//! Options of `tandem groups`.

use super::ConnectionArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum GroupsCommand {
    /// List groups and their members
    List(GroupListArgs),
    /// Create a group, or replace its members
    Set(SetGroupArgs),
    /// Delete a group
    Delete(OneGroupArgs),
}

#[derive(Args)]
pub(crate) struct GroupListArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct SetGroupArgs {
    #[arg(value_name = "GROUP")]
    pub(crate) name: String,
    /// Principals, role:ROLE or group:GROUP
    #[arg(value_name = "MEMBER", value_parser = member)]
    pub(crate) members: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

#[derive(Args)]
pub(crate) struct OneGroupArgs {
    #[arg(value_name = "GROUP")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

fn member(text: &str) -> Result<String, String> {
    match tandem_access::Member::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a member is a principal, role:ROLE or group:GROUP".to_owned()),
    }
}
