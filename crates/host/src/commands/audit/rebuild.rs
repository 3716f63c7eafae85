//! `tandem audit rebuild`: has the server replay the logs of conversations and compare.

use crate::cli::RebuildArgs;
use crate::client::{Client, encode_segment};
use crate::output::{self, Progress, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

const SESSIONS: &str = "/v1/host/tandem/sessions";
const PAGE: usize = 200;

pub(super) async fn rebuild(args: RebuildArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let mut compared = Compared {
        sessions: 0,
        events: 0,
        differences: Vec::new(),
        progress: Progress::new(),
    };
    if !args.sessions.is_empty() {
        for session in &args.sessions {
            compared.session(&client, session).await?;
        }
        return compared.report(args.connection.json);
    }
    let mut cursor = None;
    loop {
        let filters = [
            ("agentId", args.agent.clone()),
            ("limit", Some(PAGE.to_string())),
            ("cursor", cursor),
        ];
        let page = client.query(SESSIONS, &filters).await?;
        for listed in page["sessions"].as_array().into_iter().flatten() {
            if let Some(session) = listed["id"].as_str() {
                compared.session(&client, session).await?;
            }
        }
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return compared.report(args.connection.json);
        }
    }
}

struct Compared {
    sessions: u64,
    events: u64,
    differences: Vec<Value>,
    progress: Progress,
}

impl Compared {
    async fn session(&mut self, client: &Client, session: &str) -> anyhow::Result<()> {
        let path = format!("{SESSIONS}/{}/rebuild", encode_segment(session));
        let answer = client.get(&path).await?;
        self.sessions += 1;
        self.events += answer["events"].as_u64().unwrap_or(0);
        for found in answer["differences"].as_array().into_iter().flatten() {
            let mut found = found.clone();
            found["sessionId"] = json!(session);
            self.differences.push(found);
        }
        self.progress.show(&format!("{} sessions", self.sessions));
        Ok(())
    }

    fn report(self, as_json: bool) -> anyhow::Result<ExitCode> {
        self.progress.clear();
        let matches = self.differences.is_empty();
        if as_json {
            output::json(&json!({"sessions": self.sessions, "events": self.events,
                "matches": matches, "differences": self.differences}))?;
        } else {
            for found in &self.differences {
                let part = |key: &str| sanitize(found[key].as_str().unwrap_or("?"));
                output::line(format!(
                    "{}: {} {} does not follow from the log",
                    part("sessionId"),
                    part("projection"),
                    part("id"),
                ))?;
            }
            let counts = format!("{} events of {} sessions", self.events, self.sessions);
            output::line(match matches {
                true => format!("{counts} replayed: what is stored follows from them"),
                false => format!("{counts} replayed: {} differences", self.differences.len()),
            })?;
        }
        Ok(match matches {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}
