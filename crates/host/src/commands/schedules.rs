//! `tandem schedules`: schedules of a server, their occurrences, and the recipients of campaigns.

use super::argument_value;
use super::table::table;
use crate::cli::{
    AdminArgs, ChangeScheduleArgs, ConnectionArgs, CreateScheduleArgs, DefinitionArgs,
    OneScheduleArgs, ScheduleListArgs, ScheduleRecipientsArgs, ScheduleRunsArgs, SchedulesCommand,
    UpdateScheduleArgs,
};
use crate::client::{Client, encode_segment};
use crate::failure::Failure;
use crate::output::{self, sanitize};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

const SCHEDULES: &str = "/v1/host/tandem/schedules";
const PAGE: usize = 100;

pub(crate) async fn schedules(command: SchedulesCommand) -> anyhow::Result<ExitCode> {
    match command {
        SchedulesCommand::List(args) => list(args).await,
        SchedulesCommand::Show(args) => show(args).await,
        SchedulesCommand::Create(args) => create(args).await,
        SchedulesCommand::Update(args) => update(args).await,
        SchedulesCommand::Pause(args) => change(args, Method::POST, "/pause").await,
        SchedulesCommand::Resume(args) => change(args, Method::POST, "/resume").await,
        SchedulesCommand::Cancel(args) => change(args, Method::DELETE, "").await,
        SchedulesCommand::Runs(args) => runs(args).await,
        SchedulesCommand::Recipients(args) => recipients(args).await,
    }
}

fn path_of(id: &str) -> String {
    format!("{SCHEDULES}/{}", encode_segment(id))
}

/// All pages of a list, up to a number of entries.
async fn pages(
    (client, admin): (&Client, &AdminArgs),
    path: &str,
    noun: &str,
    filters: &[(&str, Option<String>)],
    limit: usize,
) -> anyhow::Result<Vec<Value>> {
    let (mut found, mut cursor) = (Vec::new(), None);
    let token = admin.admin_token.as_deref();
    while found.len() < limit {
        let size = (limit - found.len()).min(PAGE);
        let mut parameters = filters.to_vec();
        parameters.push(("limit", Some(size.to_string())));
        parameters.push(("cursor", cursor));
        let page = client.query_as(path, &parameters, token).await?;
        found.extend(page[noun].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

async fn list(args: ScheduleListArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let filters = [
        ("agentId", args.agent),
        ("flowId", args.flow),
        ("workflowId", args.workflow),
        ("status", args.status),
        ("userExternalId", args.user),
        ("campaignId", args.campaign),
    ];
    let found = pages(
        (&client, &args.admin),
        SCHEDULES,
        "schedules",
        &filters,
        args.limit,
    )
    .await?;
    if args.connection.json {
        output::json(&json!({ "schedules": found }))?;
    } else if found.is_empty() {
        output::note("no schedules");
    } else {
        let mut table = table(["ID", "AGENT", "STARTS", "FOR", "WHEN", "STATUS", "NEXT"]);
        for schedule in &found {
            let part = |key: &str| sanitize(schedule[key].as_str().unwrap_or_default());
            table.add_row([
                part("id"),
                part("agentId"),
                starts(schedule),
                target(schedule),
                part(trigger(schedule)),
                part("status"),
                part("nextRunAt"),
            ]);
        }
        output::line(table.trim_fmt())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn trigger(schedule: &Value) -> &'static str {
    match schedule["triggerType"].as_str() {
        Some("cron") => "cronExpr",
        _ => "runAt",
    }
}

/// The flow or the workflow.
fn starts(schedule: &Value) -> String {
    sanitize(&match schedule["workflowId"].as_str() {
        Some(workflow) => format!("workflow {workflow}"),
        None => schedule["flowId"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Whom a schedule is for, or which trigger it is.
fn target(schedule: &Value) -> String {
    if let Some(trigger) = schedule["triggerId"].as_str() {
        return sanitize(&format!("trigger {trigger}"));
    }
    let segment = &schedule["segmentSelector"];
    let text = match schedule["targetUserExternalId"].as_str() {
        Some(user) => user.to_owned(),
        None => match segment["tag"].as_str() {
            Some(tag) => format!("tag {tag}"),
            None => segment["type"].as_str().unwrap_or_default().to_owned(),
        },
    };
    sanitize(&text)
}

async fn show(args: OneScheduleArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let token = args.admin.admin_token.as_deref();
    let path = path_of(&args.id);
    let schedule = client.request_as(Method::GET, &path, None, token).await?;
    report(&args.connection, &schedule)
}

fn report(connection: &ConnectionArgs, schedule: &Value) -> anyhow::Result<ExitCode> {
    if connection.json {
        output::json(schedule)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = super::table::table_without_header();
    for (label, key) in [
        ("schedule", "id"),
        ("agent", "agentId"),
        ("flow", "flowId"),
        ("workflow", "workflowId"),
        ("cron", "cronExpr"),
        ("once at", "runAt"),
        ("time zone", "timezone"),
        ("campaign", "campaignId"),
        ("status", "status"),
        ("next", "nextRunAt"),
        ("last", "lastRunAt"),
    ] {
        if let Some(text) = schedule[key].as_str() {
            table.add_row([label.to_owned(), sanitize(text)]);
        }
    }
    table.add_row(["for".to_owned(), target(schedule)]);
    table.add_row(["version".to_owned(), schedule["version"].to_string()]);
    output::line(table.trim_fmt())?;
    Ok(ExitCode::SUCCESS)
}

/// The definition that the options describe.
fn definition(args: &DefinitionArgs) -> anyhow::Result<Map<String, Value>> {
    let mut fields = match &args.definition {
        None => Map::new(),
        Some(given) => {
            let text = argument_value::read(given, "definition", "--definition")?;
            match serde_json::from_str(&text) {
                Ok(Value::Object(fields)) => fields,
                _ => {
                    let next = "Write the fields of a schedule, such as {\"flowId\": \"hello\"}.";
                    return Err(Failure::new("the definition is not a JSON object", next).into());
                }
            }
        }
    };
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    if let Some(flow) = &args.flow {
        put("flowId", json!(flow));
    }
    if let Some(expr) = &args.cron {
        put("trigger", json!({"type": "cron", "expr": expr}));
    }
    if let Some(at) = &args.at {
        put("trigger", json!({"type": "once", "runAt": at}));
    }
    if let Some(user) = &args.user {
        put("target", json!({"kind": "user", "userExternalId": user}));
    }
    let segment = match (&args.tag, args.all) {
        (Some(tag), _) => Some(json!({"type": "tag", "tag": tag})),
        (None, true) => Some(json!({"type": "all"})),
        (None, false) => None,
    };
    if let Some(segment) = segment {
        let mut target = json!({"kind": "segment", "segment": segment});
        if let Some(campaign) = &args.campaign {
            target["campaignId"] = json!(campaign);
        }
        put("target", target);
    }
    if let Some(given) = &args.input {
        let text = argument_value::read(given, "input", "--input")?;
        let input = serde_json::from_str(&text).map_err(|error| {
            let message = format!("the input is not JSON: {error}");
            Failure::new(
                message,
                "Quote it for the shell, or name a file with @FILE.",
            )
        })?;
        put("input", input);
    }
    if args.bootstrap {
        put("allowSessionBootstrap", json!(true));
    }
    Ok(fields)
}

async fn create(args: CreateScheduleArgs) -> anyhow::Result<ExitCode> {
    let mut fields = definition(&args.definition)?;
    fields.insert("agentId".to_owned(), json!(args.agent));
    let body = Value::Object(fields);
    send(
        &args.connection,
        &args.admin,
        Method::POST,
        SCHEDULES,
        Some(&body),
    )
    .await
}

async fn update(args: UpdateScheduleArgs) -> anyhow::Result<ExitCode> {
    let mut fields = definition(&args.definition)?;
    if let Some(version) = args.version {
        fields.insert("version".to_owned(), json!(version));
    }
    let (path, body) = (path_of(&args.id), Value::Object(fields));
    send(
        &args.connection,
        &args.admin,
        Method::PATCH,
        &path,
        Some(&body),
    )
    .await
}

async fn change(
    args: ChangeScheduleArgs,
    method: Method,
    action: &str,
) -> anyhow::Result<ExitCode> {
    let path = format!("{}{action}", path_of(&args.id));
    send(&args.connection, &args.admin, method, &path, None).await
}

async fn send(
    connection: &ConnectionArgs,
    admin: &AdminArgs,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<ExitCode> {
    let client = Client::connect(connection)?;
    let token = admin.admin_token.as_deref();
    let schedule = client.request_as(method, path, body, token).await?;
    report(connection, &schedule)
}

async fn runs(args: ScheduleRunsArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let path = format!("{}/runs", path_of(&args.id));
    let found = pages((&client, &args.admin), &path, "runs", &[], args.limit).await?;
    if args.connection.json {
        output::json(&json!({ "runs": found }))?;
    } else if found.is_empty() {
        output::note("it has not taken place yet");
    } else {
        let mut table = table([
            "ID",
            "FOR",
            "OUTCOME",
            "REASON",
            "RUN",
            "RECIPIENTS",
            "ATTEMPT",
        ]);
        for run in &found {
            let part = |key: &str| sanitize(run[key].as_str().unwrap_or_default());
            let recipients = &run["expandedRecipients"];
            table.add_row([
                part("id"),
                part("scheduledFor"),
                outcome(run),
                part("reason"),
                part("runId"),
                recipients
                    .as_u64()
                    .map_or_else(String::new, |n| n.to_string()),
                run["attempt"].to_string(),
            ]);
        }
        output::line(table.trim_fmt())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn outcome(of: &Value) -> String {
    sanitize(of["outcome"].as_str().unwrap_or("under way"))
}

async fn recipients(args: ScheduleRecipientsArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let run = encode_segment(&args.run);
    let path = format!("/v1/host/tandem/schedule-runs/{run}/recipients");
    let found = pages((&client, &args.admin), &path, "recipients", &[], args.limit).await?;
    if args.connection.json {
        output::json(&json!({ "recipients": found }))?;
    } else if found.is_empty() {
        output::note("it has no recipients");
    } else {
        let mut table = table(["USER", "OUTCOME", "REASON", "SESSION"]);
        for recipient in &found {
            let part = |key: &str| sanitize(recipient[key].as_str().unwrap_or_default());
            table.add_row([
                part("userExternalId"),
                outcome(recipient),
                part("reason"),
                part("sessionId"),
            ]);
        }
        output::line(table.trim_fmt())?;
    }
    Ok(ExitCode::SUCCESS)
}
