//! `tandem parked`: timers and effects that kept failing.

use super::table::table;
use crate::cli::ParkedCommand;
use crate::client::{Client, encode_segment};
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

const PARKED: &str = "/v1/host/tandem/parked";

pub(crate) async fn parked(command: ParkedCommand) -> anyhow::Result<ExitCode> {
    let (answer, as_json, text) = match command {
        ParkedCommand::List(args) => {
            let answer = Client::connect(&args.connection)?.get(PARKED).await?;
            let text = listing(&answer);
            (answer, args.connection.json, text)
        }
        ParkedCommand::Retry(args) => {
            let path = format!("{PARKED}/{}/retry", encode_segment(&args.subject));
            let client = Client::connect(&args.connection)?;
            let answer = client.post(&path, &json!({})).await?;
            let text = format!("{} tried again", answer["retried"]);
            (answer, args.connection.json, text)
        }
    };
    if as_json {
        output::json(&answer)?;
    } else {
        output::line(text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(answer: &Value) -> String {
    let mut table = table(["SUBJECT", "KIND", "FAILURES", "FAILED AT", "ERROR"]);
    for work in answer["parked"].as_array().into_iter().flatten() {
        let text = |key: &str| sanitize(work[key].as_str().unwrap_or_default());
        table.add_row([
            text("subject"),
            text("kind"),
            work["failures"].to_string(),
            text("failedAt"),
            text("error"),
        ]);
    }
    table.trim_fmt()
}
