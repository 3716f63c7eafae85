//! `tandem inbox claim|release|assign`: whose work an escalation of a conversation is.

use crate::cli::{AssignArgs, DeskArgs};
use crate::client::{Client, ErrorResponse, encode_segment};
use crate::failure::Failure;
use crate::output::{self, sanitize};
use serde_json::{Value, json};
use std::process::ExitCode;

const HOST: &str = "/v1/host/tandem";

pub(crate) async fn claim(args: DeskArgs) -> anyhow::Result<ExitCode> {
    let changed = carry_out(&args, "claim", &json!({})).await?;
    report(&args, &changed, "claimed by")
}

pub(crate) async fn release(args: DeskArgs) -> anyhow::Result<ExitCode> {
    let changed = carry_out(&args, "release", &json!({})).await?;
    report(&args, &changed, "assigned to")
}

pub(crate) async fn assign(args: AssignArgs) -> anyhow::Result<ExitCode> {
    let AssignArgs { to, of } = args;
    let changed = carry_out(&of, "assign", &json!({ "actorId": to })).await?;
    report(&of, &changed, "assigned to")
}

async fn carry_out(args: &DeskArgs, action: &str, body: &Value) -> anyhow::Result<Value> {
    let client = Client::connect(&args.connection)?;
    let escalation = escalation_of(&client, &args.id).await?;
    let path = format!(
        "{HOST}/escalations/{}/{action}",
        encode_segment(&escalation)
    );
    let token = args.admin.admin_token.as_deref();
    client.post_as(&path, body, token).await
}

/// The escalation that a question is about. An escalation that no flow waits for yet is no question: its own id is
/// taken too.
async fn escalation_of(client: &Client, id: &str) -> anyhow::Result<String> {
    let path = format!("{HOST}/interrupts/{}", encode_segment(id));
    let question = match client.get(&path).await {
        Ok(question) => question,
        Err(error) => {
            let refusal = error.downcast_ref::<ErrorResponse>();
            return match refusal.is_some_and(|refusal| refusal.status == 404) {
                true => Ok(id.to_owned()),
                false => Err(error),
            };
        }
    };
    let data = &question["data"];
    let escalation = data["artifactId"].as_str();
    match escalation.filter(|_| data["artifactType"] == "escalation") {
        Some(escalation) => Ok(escalation.to_owned()),
        None => {
            let next = "Claims are for escalations of conversations; others are decided directly.";
            Err(Failure::new("this question is not an escalation", next).into())
        }
    }
}

fn report(args: &DeskArgs, changed: &Value, whose: &str) -> anyhow::Result<ExitCode> {
    if args.connection.json {
        output::json(changed)?;
    } else {
        let text = |key: &str| changed[key].as_str().map(sanitize);
        let id = text("id").unwrap_or_default();
        output::line(match text("assignee") {
            Some(assignee) => format!("{id} {whose} {assignee}"),
            None => format!("{id} released"),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
