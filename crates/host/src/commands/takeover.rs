//! `tandem inbox takeover|write|handback`: speaking with the user of a conversation in place of its agent.

use crate::cli::{HandbackArgs, TakeoverArgs, WriteArgs};
use crate::client::{Client, ErrorResponse, encode_segment};
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

const HOST: &str = "/v1/host/tandem";

pub(crate) async fn take_over(args: TakeoverArgs) -> anyhow::Result<ExitCode> {
    let done = carry_out(&args, "takeover", &json!({})).await?;
    report(
        &args,
        &done,
        "you have the conversation; the agent is silent",
    )
}

pub(crate) async fn write(args: WriteArgs) -> anyhow::Result<ExitCode> {
    let WriteArgs {
        text,
        message_id,
        of,
    } = args;
    let message_id = message_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let body = json!({"messageId": message_id, "text": text});
    let done = carry_out(&of, "takeover/messages", &body).await?;
    let what = match done["status"].as_str() {
        Some("duplicate") => "was sent before",
        _ => "sent",
    };
    report(&of, &done, what)
}

pub(crate) async fn hand_back(args: HandbackArgs) -> anyhow::Result<ExitCode> {
    let body = match &args.note {
        Some(note) => json!({ "note": note }),
        None => json!({}),
    };
    let done = carry_out(&args.of, "handback", &body).await?;
    report(&args.of, &done, "the agent has the conversation again")
}

async fn carry_out(args: &TakeoverArgs, action: &str, body: &Value) -> anyhow::Result<Value> {
    let client = Client::connect(&args.connection)?;
    let session = session_of(&client, &args.id).await?;
    let path = format!("{HOST}/sessions/{}/{action}", encode_segment(&session));
    let token = args.admin.admin_token.as_deref();
    client.post_as(&path, body, token).await
}

/// The session that an id names: its own, or that of a question in the inbox.
async fn session_of(client: &Client, id: &str) -> anyhow::Result<String> {
    let path = format!("{HOST}/interrupts/{}", encode_segment(id));
    match client.get(&path).await {
        Ok(question) => {
            let session = question["sessionId"].as_str();
            Ok(session.unwrap_or(id).to_owned())
        }
        Err(error) => {
            let refusal = error.downcast_ref::<ErrorResponse>();
            match refusal.is_some_and(|refusal| refusal.status == 404) {
                true => Ok(id.to_owned()),
                false => Err(error),
            }
        }
    }
}

fn report(args: &TakeoverArgs, done: &Value, what: &str) -> anyhow::Result<ExitCode> {
    if args.connection.json {
        output::json(done)?;
    } else {
        output::line(format!("{}: {what}", sanitize(&args.id)))?;
    }
    Ok(ExitCode::SUCCESS)
}
