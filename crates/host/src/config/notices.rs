//! `[[notices]]`: who is told of questions of workflow runs. `[[notice_people]]`: who they are that decide on a network.

use crate::failure::Failure;
use serde::Deserialize;
use std::collections::BTreeSet;
use tandem_app::conversation::NetworkPerson;
use tandem_record::{AgentId, Principal};

const MAX_NOTICES: usize = 100;
const MAX_PEOPLE: usize = 1_000;
const MAX_ADDRESS_CHARS: usize = 256;
/// Kinds of questions that people can be told of.
const KINDS: [&str; 2] = ["approval", "clarification"];
const HOW: &str = "See docs/guide/people.md, \"Be told in Slack or by e-mail\".";

/// One entry as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoticeLayer {
    transport: String,
    address: String,
    kinds: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    principals: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonLayer {
    transport: String,
    address: String,
    principal: String,
}

/// An address that is told of questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) agent: AgentId,
    pub(crate) transport: String,
    pub(crate) address: String,
    pub(crate) kinds: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) principals: Vec<String>,
}

pub(super) fn notices(given: Vec<NoticeLayer>) -> Result<Vec<Notice>, Failure> {
    if given.len() > MAX_NOTICES {
        return Err(wrong(format!("there are more than {MAX_NOTICES} notices")));
    }
    given.into_iter().map(notice).collect()
}

fn notice(given: NoticeLayer) -> Result<Notice, Failure> {
    let (agent, transport) = place(&given.transport, "notices")?;
    let address = address(given.address, "notices")?;
    let named = |name: &str, names: Option<Vec<String>>| match names {
        Some(names) if names.is_empty() || names.iter().any(String::is_empty) => Err(wrong(
            format!("the notices to {address:?} have {name} that name nothing; leave the key out"),
        )),
        names => Ok(names.unwrap_or_default()),
    };
    let kinds = match given.kinds {
        None => KINDS.map(str::to_owned).to_vec(),
        kinds => named("kinds", kinds)?,
    };
    if let Some(kind) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        let known = KINDS.join(" and ");
        let problem =
            format!("the notices to {address:?} name the kind {kind:?}; known are {known}");
        return Err(wrong(problem));
    }
    Ok(Notice {
        groups: named("groups", given.groups)?,
        principals: named("principals", given.principals)?,
        kinds,
        agent,
        transport,
        address,
    })
}

/// Who decides on networks. Somebody on a transport that tells nobody of anything could decide nothing.
pub(super) fn people(
    given: Vec<PersonLayer>,
    notices: &[Notice],
) -> Result<Vec<NetworkPerson>, Failure> {
    if given.len() > MAX_PEOPLE {
        return Err(wrong(format!(
            "there are more than {MAX_PEOPLE} notice_people"
        )));
    }
    let mut known = BTreeSet::new();
    let read = given.into_iter().map(|given| {
        let (agent, transport) = place(&given.transport, "notice_people")?;
        let address = address(given.address, "notice_people")?;
        if given.principal.trim().is_empty() {
            return Err(wrong(format!(
                "the notice_people at {address:?} have no principal"
            )));
        }
        if !known.insert((agent.to_string(), transport.clone(), address.clone())) {
            let problem = format!(
                "{address:?} on {} is in notice_people twice",
                given.transport
            );
            return Err(wrong(problem));
        }
        let is_used = |notice: &Notice| notice.agent == agent && notice.transport == transport;
        if !notices.iter().any(is_used) {
            let place = &given.transport;
            let problem = format!("{address:?} is in notice_people, but no notices use {place}");
            return Err(wrong(problem));
        }
        Ok(NetworkPerson {
            agent,
            transport,
            address,
            principal: Principal::new(given.principal),
        })
    });
    read.collect()
}

/// The agent and its transport. Names of transports have no dots.
fn place(text: &str, of: &str) -> Result<(AgentId, String), Failure> {
    let parts = text.rsplit_once('.');
    let named = parts.filter(|(agent, transport)| !agent.is_empty() && !transport.is_empty());
    let (agent, transport) = named.ok_or_else(|| {
        wrong(format!(
            "{of} has the transport {text:?}, which is not AGENT.TRANSPORT"
        ))
    })?;
    Ok((AgentId::new(agent), transport.to_owned()))
}

fn address(text: String, of: &str) -> Result<String, Failure> {
    let fits = (1..=MAX_ADDRESS_CHARS).contains(&text.chars().count());
    match fits && !text.chars().any(char::is_control) {
        true => Ok(text),
        false => Err(wrong(format!(
            "{of} has an address that is not 1 to {MAX_ADDRESS_CHARS} characters on one line"
        ))),
    }
}

fn wrong(problem: String) -> Failure {
    Failure::new(problem, HOW)
}
