//! `tandem inbox`: open questions, and deciding them from a terminal.
//!
//! A decision applies to what was read: the digest is sent along, given or fetched, and the server
//! refuses a question that changed in the meantime.

use super::table::{table, table_without_header};
use super::timeline::format_duration;
use super::{argument_value, desk_work, takeover};
use crate::cli::{AdminArgs, AnswerArgs, DecideArgs, InboxCommand, QuestionListArgs};
use crate::client::{Client, encode_segment};
use crate::failure::Failure;
use crate::output::{self, sanitize};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

const QUESTIONS: &str = "/v1/host/tandem/interrupts";
/// The server's maximum page size.
const MAX_PAGE: usize = 200;
/// Exit code when an answer was accepted and the question stays open.
const STILL_OPEN: u8 = 3;

pub(crate) async fn inbox(command: InboxCommand) -> anyhow::Result<ExitCode> {
    match command {
        InboxCommand::List(args) => list(args).await,
        InboxCommand::Show(args) => {
            let client = Client::connect(&args.connection)?;
            let question = client.get(&path(&args.id)).await?;
            if args.connection.json {
                output::json(&question)?;
            } else {
                output::line(details(&question))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        InboxCommand::Approve(args) => decide(args, "accept").await,
        InboxCommand::Reject(args) => decide(args, "reject").await,
        InboxCommand::Answer(args) => answer(args).await,
        InboxCommand::Claim(args) => desk_work::claim(args).await,
        InboxCommand::Release(args) => desk_work::release(args).await,
        InboxCommand::Assign(args) => desk_work::assign(args).await,
        InboxCommand::Takeover(args) => takeover::take_over(args).await,
        InboxCommand::Write(args) => takeover::write(args).await,
        InboxCommand::Handback(args) => takeover::hand_back(args).await,
    }
}

fn path(id: &str) -> String {
    format!("{QUESTIONS}/{}", encode_segment(id))
}

async fn list(args: QuestionListArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let mut questions = Vec::new();
    let mut cursor = None;
    // Fetches pages until there are enough rows or no more.
    while questions.len() < args.limit {
        let page_limit = (args.limit - questions.len()).min(MAX_PAGE);
        let parameters = [
            ("status", Some("open".to_owned())),
            ("kind", args.kind.clone()),
            ("runId", args.run.clone()),
            ("sessionId", args.session.clone()),
            ("limit", Some(page_limit.to_string())),
            ("cursor", cursor),
        ];
        let page = client.query(QUESTIONS, &parameters).await?;
        questions.extend(page["interrupts"].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if args.connection.json {
        output::json(&json!({"interrupts": questions}))?;
    } else if questions.is_empty() {
        output::note("no open questions");
    } else {
        output::line(listing(&questions, jiff::Timestamp::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(questions: &[Value], now: jiff::Timestamp) -> String {
    let mut table = table(["ID", "KIND", "TITLE", "WORKFLOW", "ASKED", "LEFT"]);
    for question in questions {
        let part = |key: &str| sanitize(question[key].as_str().unwrap_or_default());
        let time = |key: &str| question[key].as_str()?.parse::<jiff::Timestamp>().ok();
        let since = |at: jiff::Timestamp| now.as_millisecond() - at.as_millisecond();
        let age = time("createdAt").map(|at| format!("{} ago", format_duration(since(at))));
        let left = time("deadline").map(|at| match -since(at) {
            ms if ms > 0 => format_duration(ms),
            _ => "overdue".to_owned(),
        });
        table.add_row([
            part("interruptId"),
            part("kind"),
            part("title"),
            part("workflowId"),
            age.unwrap_or_default(),
            left.unwrap_or_default(),
        ]);
    }
    table.trim_fmt()
}

/// All details of a question.
fn details(question: &Value) -> String {
    let text = |key: &str| sanitize(question[key].as_str().unwrap_or_default());
    let data = &question["data"];
    let mut head = table_without_header();
    for (label, key) in [
        ("question", "interruptId"),
        ("kind", "kind"),
        ("title", "title"),
        ("status", "status"),
        ("run", "runId"),
        ("workflow", "workflowId"),
        ("node", "nodeId"),
        ("session", "sessionId"),
        ("asked", "createdAt"),
        ("deadline", "deadline"),
        ("digest", "digest"),
        ("outcome", "outcome"),
        ("decided by", "decidedBy"),
        ("decided at", "decidedAt"),
    ] {
        if question[key].is_string() {
            head.add_row([label.to_owned(), text(key)]);
        }
    }
    for (label, list) in [
        ("actions", &question["actions"]),
        ("groups", &question["groups"]),
    ] {
        let names: Vec<&str> = list
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !names.is_empty() {
            head.add_row([label.to_owned(), sanitize(&names.join(", "))]);
        }
    }
    for vote in question["votes"].as_array().into_iter().flatten() {
        head.add_row(["vote".to_owned(), vote_line(vote)]);
    }
    format!("{}\n\n{}", head.trim_fmt(), subject(question, data))
}

/// Who voted how; a name that was only claimed is marked.
fn vote_line(vote: &Value) -> String {
    let part = |key: &str| sanitize(vote[key].as_str().unwrap_or_default());
    let mut line = part("voter");
    for (key, label) in [("claimedBy", "name claimed by"), ("delegate", "through")] {
        if vote[key].is_string() {
            line.push_str(&format!(" ({label} {})", part(key)));
        }
    }
    format!("{line} {}", part("action"))
}

/// What the question is about, and how to answer it.
fn subject(question: &Value, data: &Value) -> String {
    let pretty = |value: &Value| {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
    };
    let id = sanitize(question["interruptId"].as_str().unwrap_or_default());
    let closed = question["status"] != "open";
    match question["kind"].as_str() {
        Some("approval") => {
            let about = sanitize(data["description"].as_str().unwrap_or_default());
            let shown = data.get("artifactData").or_else(|| data.get("decision"));
            let (before, after) = (question.get("proposed"), question.get("edited"));
            let shown = match (before.or(shown), after.or(shown)) {
                (Some(before), Some(after)) if before != after => {
                    let label = if closed { "accepted" } else { "with changes" };
                    format!(
                        "proposed:\n{}\n\n{label}:\n{}",
                        pretty(before),
                        pretty(after)
                    )
                }
                (Some(artifact), _) if !artifact.is_null() => pretty(artifact),
                _ => String::new(),
            };
            let how = format!("tandem inbox approve {id}\ntandem inbox reject {id}");
            joined([about, shown, if closed { String::new() } else { how }])
        }
        Some("clarification") => {
            let questions: Vec<&Value> =
                data["questions"].as_array().into_iter().flatten().collect();
            let lines = questions.iter().map(|q| {
                let part = |key: &str| sanitize(q[key].as_str().unwrap_or_default());
                let kind = q["schema"]["type"].as_str().unwrap_or("string");
                format!("{} ({}): {}", part("id"), sanitize(kind), part("question"))
            });
            let sets = questions.iter().map(|q| {
                let id = sanitize(q["id"].as_str().unwrap_or_default());
                format!(" --set {id}=…")
            });
            let how = format!("tandem inbox answer {id}{}", sets.collect::<String>());
            let how = match question["sessionId"].is_string() {
                true => format!(
                    "The user answers it in the conversation. Whoever may answer for the user:\n{how}"
                ),
                false => how,
            };
            let lines = lines.collect::<Vec<_>>().join("\n");
            joined([
                lines,
                if closed { String::new() } else { how },
                String::new(),
            ])
        }
        _ => {
            let schema = match &question["resumeSchema"] {
                Value::Null => String::new(),
                schema => format!("The answer has to fit:\n{}", pretty(schema)),
            };
            let how = format!("tandem inbox answer {id} --value JSON");
            joined([
                pretty(data),
                schema,
                if closed { String::new() } else { how },
            ])
        }
    }
}

fn joined(parts: [String; 3]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

async fn decide(args: DecideArgs, action: &str) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let question = client.get(&path(&args.id)).await?;
    if question["kind"] != "approval" {
        let kind = sanitize(question["kind"].as_str().unwrap_or_default());
        let next = format!(
            "Use `tandem inbox answer {}`; `inbox show` shows how.",
            args.id
        );
        return Err(Failure::new(format!("this is a {kind}, not an approval"), next).into());
    }
    let mut value = json!({"action": action});
    if let Some(comment) = args.comment {
        value["feedback"] = json!(comment);
    }
    let submission = Submission {
        value,
        digest: args.digest,
        admin: args.admin,
    };
    submit(&client, &question, submission, args.connection.json).await
}

async fn answer(args: AnswerArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let question = client.get(&path(&args.id)).await?;
    let value = match &args.value {
        Some(value) => {
            let text = argument_value::read(value, "answer", "--value")?;
            serde_json::from_str(&text).map_err(|error| {
                let next = "Pass something like --value '{\"colour\": \"blue\"}'.";
                Failure::new(format!("the answer is not JSON: {error}"), next)
            })?
        }
        None => build_answer(&question, &args.sets),
    };
    let submission = Submission {
        value,
        digest: args.digest,
        admin: args.admin,
    };
    submit(&client, &question, submission, args.connection.json).await
}

/// An answer built from `--set`: by question for a clarification, by key otherwise.
fn build_answer(question: &Value, sets: &[(String, String)]) -> Value {
    let questions = question["data"]["questions"].as_array();
    let clarifies = question["kind"] == "clarification";
    let schema = |name: &str| match clarifies {
        true => questions
            .into_iter()
            .flatten()
            .find(|q| q["id"] == name)
            .map(|q| &q["schema"]),
        false => Some(&question["resumeSchema"]["properties"][name]),
    };
    let values: Map<String, Value> = sets
        .iter()
        .map(|(name, text)| {
            let plain = schema(name).is_none_or(|s| s.is_null() || s["type"] == "string");
            // If the schema does not require text, the value is parsed as JSON; if that fails it
            // stays text, and the server validates it.
            let json = Some(text).filter(|_| !plain);
            let json = json.and_then(|text| serde_json::from_str(text).ok());
            (name.clone(), json.unwrap_or_else(|| json!(text)))
        })
        .collect();
    match clarifies {
        true => json!({"answers": values}),
        false => Value::Object(values),
    }
}

/// An answer as it is sent.
struct Submission {
    value: Value,
    digest: Option<String>,
    admin: AdminArgs,
}

async fn submit(
    client: &Client,
    question: &Value,
    submission: Submission,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let Submission {
        value,
        digest,
        admin,
    } = submission;
    let id = question["interruptId"].as_str().unwrap_or_default();
    let shown = digest.as_deref().or(question["digest"].as_str());
    let body = json!({"resumeValue": value, "digest": shown});
    let path = format!("{}:resolve", path(id));
    let token = admin.admin_token.as_deref();
    let response = client.post_as(&path, &body, token).await?;
    if as_json {
        output::json(&response)?;
    } else {
        output::line(report(question, &response))?;
    }
    let open = response["interrupt"]["outcome"].is_null();
    Ok(ExitCode::from(if open { STILL_OPEN } else { 0 }))
}

/// One line with the result.
fn report(question: &Value, response: &Value) -> String {
    let text = |value: &Value| sanitize(value.as_str().unwrap_or("?"));
    let outcome = match response["interrupt"]["outcome"].as_str() {
        Some(outcome) => sanitize(outcome),
        None => {
            let votes = response["interrupt"]["votes"].as_array();
            let given = votes.into_iter().flatten();
            let given = given.filter(|vote| vote["action"] != "reject").count();
            let needed = question["data"]["requiredApprovals"].as_u64().unwrap_or(1);
            format!("taken, still open ({given} of {needed} approvals)")
        }
    };
    format!(
        "{} {outcome}; {} is {}",
        text(&question["interruptId"]),
        text(&response["runId"]),
        text(&response["status"])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_one_row_per_question() {
        let questions = [
            json!({"interruptId": "q1", "kind": "approval", "title": "May I?", "workflowId": "w",
                "createdAt": "2026-01-01T00:00:50Z", "deadline": "2026-01-01T00:02:00Z"}),
            json!({"interruptId": "q2", "kind": "custom", "title": "\u{1b}[2J",
                "createdAt": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:00:30Z"}),
        ];
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let expected = "\
\u{20}ID  KIND      TITLE   WORKFLOW  ASKED         LEFT
 q1  approval  May I?  w         10.0 s ago    1 m 00 s
 q2  custom    \u{fffd}[2J              1 m 00 s ago  overdue";
        assert_eq!(listing(&questions, now), expected);
    }

    #[test]
    fn details_show_the_question_and_how_to_answer() {
        let approval = json!({"interruptId": "q1", "kind": "approval", "title": "May I?",
            "status": "open", "digest": "abc", "actions": ["accept", "reject"],
            "data": {"artifactData": {"amount": 5}},
            "votes": [{"voter": "ana", "action": "accept"}]});
        let text = details(&approval);
        for part in ["abc", "accept, reject", "ana accept", "\"amount\": 5"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("tandem inbox approve q1\ntandem inbox reject q1"));
        let mut decided = approval.clone();
        decided["status"] = json!("closed");
        decided["edited"] = json!({"amount": 7});
        decided["votes"] = json!([
            {"voter": "ben", "claimedBy": "ana", "action": "accept"},
            {"voter": "eva", "delegate": "bob", "action": "edit-accept"}]);
        let text = details(&decided);
        for part in [
            "proposed:\n{\n  \"amount\": 5\n}\n\naccepted:\n{\n  \"amount\": 7\n}",
            "ben (name claimed by ana) accept",
            "eva (through bob) edit-accept",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("tandem inbox approve"), "{text}");
        let mut expired = approval.clone();
        expired["status"] = json!("expired");
        let text = details(&expired);
        assert!(!text.contains("tandem inbox approve"), "{text}");
        let questions = json!({"interruptId": "q2", "kind": "clarification", "status": "open",
            "data": {"questions": [{"id": "n", "question": "How many?", "schema": {"type": "integer"}}]}});
        let text = details(&questions);
        assert!(text.contains("n (integer): How many?"), "{text}");
        assert!(text.ends_with("tandem inbox answer q2 --set n=…"), "{text}");
    }

    #[test]
    fn set_options_become_answers_of_the_schema_type() {
        let question = json!({"kind": "clarification", "data": {"questions": [
            {"id": "colour"}, {"id": "count", "schema": {"type": "integer"}},
            {"id": "code", "schema": {"type": "string"}}]}});
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let sets = [set("colour", "1"), set("count", "3"), set("code", "007")];
        assert_eq!(
            build_answer(&question, &sets),
            json!({"answers": {"colour": "1", "count": 3, "code": "007"}})
        );
        let custom =
            json!({"kind": "custom", "resumeSchema": {"properties": {"ok": {"type": "boolean"}}}});
        assert_eq!(
            build_answer(&custom, &[set("ok", "true"), set("note", "hi")]),
            json!({"ok": true, "note": "hi"})
        );
    }

    #[test]
    fn report_distinguishes_a_decision_from_a_vote() {
        let question = json!({"interruptId": "q1", "data": {"requiredApprovals": 3}});
        let done =
            json!({"runId": "r", "status": "completed", "interrupt": {"outcome": "accepted"}});
        assert_eq!(report(&question, &done), "q1 accepted; r is completed");
        let vote = json!({"runId": "r", "status": "waiting-approval",
            "interrupt": {"votes": [{"action": "accept"}, {"action": "reject"}]}});
        assert_eq!(
            report(&question, &vote),
            "q1 taken, still open (1 of 3 approvals); r is waiting-approval"
        );
    }
}
