//! The sample agents of `tandem dev`: their files, and the conversations that wait for a person.
//!
//! The files are written once, so that they can be edited. A sample whose folder exists is left as it is.

use crate::editor_files;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;
use tandem_access::Identity;
use tandem_record::conversation::{EscalationStatus, InboundMessage, SenderProfile};
use tandem_record::{AgentId, MessageId};
use tandem_runtime::conversation::{NewMessage, ReceivedMessage};
use tandem_runtime::{EscalationFilter, ListingPage, Runtime};
use tokio::time::Instant;

macro_rules! sample {
    ($path:literal) => {
        (
            $path,
            include_str!(concat!("../../../../examples/agents/", $path)),
        )
    };
}

/// Every file of every sample, by its path in the folder of agents.
const FILES: [(&str, &str); 10] = [
    sample!("booking/agent.ts"),
    sample!("booking/flows/booking.ts"),
    sample!("booking/script.json"),
    sample!("concierge/agent.ts"),
    sample!("concierge/flows/reserve_table.ts"),
    sample!("concierge/script.json"),
    sample!("refund/agent.ts"),
    sample!("refund/flows/refund.ts"),
    sample!("refund/script.json"),
    sample!("refund/wording.ts"),
];

/// A conversation that waits for a person when the console opens.
struct SampleConversation {
    agent: &'static str,
    user: &'static str,
    name: &'static str,
    text: &'static str,
}

const CONVERSATIONS: [SampleConversation; 2] = [
    // A decision.
    SampleConversation {
        agent: "refund",
        user: "mara",
        name: "Mara",
        text: "Hello, I want a refund of 740 euro for order A-1001. It arrived broken.",
    },
    // Somebody to talk to.
    SampleConversation {
        agent: "concierge",
        user: "jonas",
        name: "Jonas",
        text: "A person, please",
    },
];
/// How long the start waits for the answer to that message.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// Writes the samples that are not there, and the files for editors.
pub(super) fn write(folder: &Path) -> Result<(), Failure> {
    write_missing(folder).map_err(|error| {
        Failure::new(
            format!(
                "cannot write sample agents to {}: {error}",
                folder.display()
            ),
            "Start `tandem dev` in a directory you may write to.",
        )
    })
}

fn write_missing(folder: &Path) -> io::Result<()> {
    let ids: BTreeSet<&str> = FILES.iter().map(|(path, _)| agent_of(path)).collect();
    for id in ids {
        if folder.join(id).exists() {
            continue;
        }
        // A folder appears whole or not at all. Names with a dot are not agents.
        let unfinished = folder.join(format!(".{id}.new"));
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        for (path, text) in FILES.iter().filter(|(path, _)| agent_of(path) == id) {
            let file = unfinished.join(&path[id.len() + 1..]);
            std::fs::create_dir_all(file.parent().expect("a file of a sample is in a folder"))?;
            std::fs::write(file, text)?;
        }
        std::fs::rename(unfinished, folder.join(id))?;
    }
    editor_files::write(folder)
}

fn agent_of(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Lets users ask for a person, where none of the agent waits for one already.
pub(super) async fn start_conversations(
    runtime: &Runtime,
    caller: &Identity,
) -> anyhow::Result<()> {
    for sample in &CONVERSATIONS {
        start_conversation(runtime, caller, sample).await?;
    }
    Ok(())
}

async fn start_conversation(
    runtime: &Runtime,
    caller: &Identity,
    sample: &SampleConversation,
) -> anyhow::Result<()> {
    let agent = AgentId::from(sample.agent);
    let open = EscalationFilter {
        agent: Some(agent.clone()),
        status: Some(EscalationStatus::Open),
        ..EscalationFilter::default()
    };
    let first = ListingPage {
        after: None,
        limit: 1,
    };
    let store = runtime.store();
    let found = store
        .list_escalations(&caller.tenant, &open, &first)
        .await?;
    if found.is_some_and(|found| !found.rows.is_empty()) {
        return Ok(());
    }
    let message = NewMessage {
        attachment: None,
        agent,
        transport: "loopback".to_owned(),
        owner: caller.owner(),
        message: InboundMessage {
            client_id: None,
            quoted_id: None,
            relayed: false,
            message_id: MessageId::from(uuid::Uuid::new_v4().to_string()),
            from: sample.user.to_owned(),
            body: sample.text.to_owned(),
            kind: None,
            sender_profile: Some(SenderProfile {
                display_name: Some(sample.name.to_owned()),
            }),
            media: None,
            received_at: runtime.clock().now(),
            sent_at: None,
        },
    };
    let runtime = runtime.acting_as(caller.actor());
    match runtime.receive_message(message).await {
        Ok(ReceivedMessage::Accepted(claim)) => {
            let until = Instant::now() + TURN_WAIT;
            runtime
                .wait_for_turn(&claim.session_id, claim.turn, until)
                .await?;
        }
        Ok(ReceivedMessage::Duplicate(_)) => {}
        // The sample may have been edited; its errors are in the log.
        Err(error) => tracing::warn!(%error, agent = sample.agent, "no sample conversation"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_written_once_and_edits_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("agents");
        write(&folder).unwrap();
        for (path, text) in FILES {
            let written = std::fs::read_to_string(folder.join(path)).unwrap();
            assert_eq!(written, text, "{path}");
        }
        let edited = folder.join("booking/script.json");
        std::fs::write(&edited, "{}").unwrap();
        std::fs::remove_dir_all(folder.join("refund")).unwrap();
        write(&folder).unwrap();
        assert_eq!(std::fs::read_to_string(edited).unwrap(), "{}");
        assert!(folder.join("refund/wording.ts").exists());
    }

    /// Every file of the examples is embedded.
    #[test]
    fn embedded_files_are_those_of_the_examples() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
        let mut found = Vec::new();
        let mut folders = vec![examples.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path),
                }
            }
        }
        let mut found: Vec<String> = found
            .iter()
            .map(|path| path.strip_prefix(&examples).unwrap().display().to_string())
            .filter(|path| path.contains('/'))
            .collect();
        found.sort();
        assert_eq!(found, FILES.map(|(path, _)| path.to_owned()));
    }
}
