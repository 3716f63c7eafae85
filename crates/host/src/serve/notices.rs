//! The rules about notices of questions of runs, with what the agents' files say of their transports.

use crate::config::{Notice, Settings};
use crate::failure::Failure;
use tandem_record::AgentId;
use tandem_runtime::NoticeRule;
use tandem_runtime::conversation::{AgentHost, NoticePlace};

/// Fails for what would have no effect: a transport that is not there, or people where nothing can be decided.
pub(super) fn rules(
    settings: &Settings,
    agents: Option<&dyn AgentHost>,
) -> Result<Vec<NoticeRule>, Failure> {
    let place = |agent: &AgentId, transport: &str| match agents {
        Some(agents) => agents.notice_place(agent, transport),
        None => Err("this server has no agents".to_owned()),
    };
    for person in &settings.notice_people {
        let (agent, transport) = (&person.agent, person.transport.as_str());
        let found = place(agent, transport).map_err(|why| unusable(agent, transport, &why))?;
        if !found.takes_decisions {
            let why = "nothing can be decided on its network, so notice_people have no effect";
            return Err(unusable(agent, transport, why));
        }
    }
    settings
        .notices
        .iter()
        .map(|notice| rule(notice, &place))
        .collect()
}

fn rule(
    notice: &Notice,
    place: &dyn Fn(&AgentId, &str) -> Result<NoticePlace, String>,
) -> Result<NoticeRule, Failure> {
    let (agent, transport) = (&notice.agent, notice.transport.as_str());
    let found = place(agent, transport).map_err(|why| unusable(agent, transport, &why))?;
    Ok(NoticeRule {
        tenant: found.owner.tenant,
        workspace: found.owner.workspace,
        kinds: notice.kinds.clone(),
        groups: notice.groups.clone(),
        principals: notice.principals.clone(),
        agent: agent.clone(),
        transport: transport.to_owned(),
        to: notice.address.clone(),
    })
}

fn unusable(agent: &AgentId, transport: &str, why: &str) -> Failure {
    Failure::new(
        format!("the notices by {agent}.{transport} cannot be given: {why}"),
        "Correct the agent's file, or the notices in tandem.toml.",
    )
}
