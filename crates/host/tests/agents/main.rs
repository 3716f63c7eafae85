//! Agents with the real binary: the samples, `tandem chat`, `tandem inbox` for escalations, and what authors use.

mod authors;
mod desk_work;
#[path = "../server/mod.rs"]
mod server;
mod takeover;

use serde_json::Value;
use server::{Server, tandem};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Output, Stdio};

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents")
}

/// Runs a command with lines as its stdin.
fn with_lines(command: &mut Command, lines: &[&str]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What a user sees who writes these lines to an agent.
fn chat(server: &Server, agent: &str, user: &str, lines: &[&str]) -> String {
    let mut command = server.client(&["chat", agent, "--user", user]);
    let output = with_lines(&mut command, lines);
    assert_eq!(code(&output), 0, "{}{}", out(&output), err(&output));
    out(&output)
}

fn open_questions(server: &Server) -> Vec<Value> {
    let listed = out(&server.run(&["inbox", "list", "--json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["interrupts"].as_array().unwrap().clone()
}

/// The id of the only open question.
fn only_question(server: &Server) -> String {
    match open_questions(server).as_slice() {
        [one] => one["interruptId"].as_str().unwrap().to_owned(),
        others => panic!("{others:?}"),
    }
}

#[test]
fn booking_asks_confirms_and_books() {
    let server = Server::with_agents(&samples());
    let lines = [
        "Can I BOOK an appointment?",
        "cleaning",
        "Monday",
        "yes please",
        "/appointments",
    ];
    let shown = chat(&server, "booking", "ada", &lines);
    let expected = "\
booking: Welcome to the Elm Street clinic. Shall I book an appointment for you?
booking: What is it for: a check-up, a cleaning, or something that hurts?
booking: When do you want the appointment?
booking: Shall I book cleaning for Monday? Reply YES or NO
booking: Booked. Your appointment has the number E-101; /appointments lists all of them.
booking: E-101: cleaning, Monday
";
    assert_eq!(shown, expected);

    let declined = chat(
        &server,
        "booking",
        "ben",
        &["book", "check-up", "Friday", "no"],
    );
    assert!(
        declined.ends_with(
            "booking: Nothing is booked. Write to me whenever you want to try another day.\n"
        ),
        "{declined}"
    );
    let asked = chat(
        &server,
        "booking",
        "eva",
        &["When are you open?", "cancel my appointment", "xyz"],
    );
    for part in ["Monday to Friday", "555 0100", "I can book an appointment"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[test]
fn refund_waits_for_a_person_and_goes_on_with_the_decision() {
    let server = Server::with_agents(&samples());
    let small = chat(
        &server,
        "refund",
        "ada",
        &["I want my money back", "A-77", "it is A-1001", "40,50"],
    );
    assert!(
        small.ends_with(
            "refund: Done: 40.5 euro for order A-1001 are on the way to your account.\n"
        ),
        "{small}"
    );
    assert_eq!(open_questions(&server), Vec::<Value>::new());

    let large = chat(
        &server,
        "refund",
        "ben",
        &["I want a refund of 740 euro for order A-1002", "hello?"],
    );
    for part in [
        "· a person has to decide: Refund of 740 euro for order A-1002",
        "refund: A colleague has to approve a refund of 740 euro.",
        "refund: Your refund is still with a colleague.",
    ] {
        assert!(large.contains(part), "{part}: {large}");
    }
    let question = only_question(&server);
    let listed = out(&server.run(&["inbox", "list"]));
    assert!(
        listed.contains("Refund of 740 euro") && listed.contains("flow.refund.refund"),
        "{listed}"
    );
    let sheet = out(&server.run(&["inbox", "show", &question]));
    for part in [
        "\"amount\": 740",
        "\"order\": \"A-1002\"",
        "session",
        "inbox approve",
    ] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    let stale = server.run(&["inbox", "approve", &question, "--digest", "0000"]);
    assert_eq!(code(&stale), 1);
    assert!(err(&stale).contains("artifact_changed"), "{}", err(&stale));
    let decided = server.run(&["inbox", "approve", &question, "--comment", "fine"]);
    assert_eq!(code(&decided), 0, "{}", err(&decided));
    assert!(out(&decided).contains("accepted"), "{}", out(&decided));
    let late = server.run(&["inbox", "reject", &question]);
    assert!(
        err(&late).contains("interrupt_already_resolved"),
        "{}",
        err(&late)
    );
    // The history of the session is shown on start.
    let again = chat(&server, "refund", "ben", &[]);
    assert!(
        again.contains("ben: I want a refund of 740 euro for order A-1002\n"),
        "{again}"
    );
    assert!(
        again
            .ends_with("refund: Done: 740 euro for order A-1002 are on the way to your account.\n"),
        "{again}"
    );
}

#[test]
fn rejection_and_edited_approval_reach_the_flow() {
    let server = Server::with_agents(&samples());
    let ask = |user: &str| {
        chat(
            &server,
            "refund",
            user,
            &["refund of 300 for A-1003 please"],
        )
    };
    ask("ada");
    let rejected = server.run(&[
        "inbox",
        "reject",
        &only_question(&server),
        "--comment",
        "It is out of date.",
    ]);
    assert_eq!(code(&rejected), 0, "{}", err(&rejected));
    let shown = chat(&server, "refund", "ada", &[]);
    assert!(
        shown.ends_with(
            "refund: I am sorry, there is no refund for order A-1003. It is out of date.\n"
        ),
        "{shown}"
    );

    ask("ben");
    let value = r#"{"action": "edit-accept", "editedArtifactData": {"amount": 250}}"#;
    let edited = server.run(&["inbox", "answer", &only_question(&server), "--value", value]);
    assert_eq!(code(&edited), 0, "{}", err(&edited));
    let shown = chat(&server, "refund", "ben", &[]);
    assert!(
        shown
            .ends_with("refund: Done: 250 euro for order A-1003 are on the way to your account.\n"),
        "{shown}"
    );
}

#[test]
fn concierge_uses_tools_a_command_and_a_flow() {
    let server = Server::with_agents(&samples());
    let lines = [
        "When is breakfast?",
        "and how much is a SUITE?",
        "/wakeup 07:30",
        "/wakeup soon",
        "a table for dinner",
        "four? 4",
        "20:00",
        "sure",
        "something else",
    ];
    let shown = chat(&server, "concierge", "ada", &lines);
    let expected = "\
concierge: Good day, this is the concierge of the hotel Linden. What can I do for you?
concierge: The breakfast room is open from 7 to 10:30.
concierge: A suite costs 260 euro a night, breakfast included.
concierge: We will wake you at 07:30.
system: Usage: /wakeup <time>
concierge: For how many people is the table?
concierge: At what time? The kitchen is open from 18 to 22:30.
concierge: A table for 4 at 20:00. Shall I reserve it?
concierge: Table 8 is yours at 20:00. Enjoy your evening!
concierge: I know our hours and prices, reserve tables, and set wake-up calls. What would you like?
";
    assert_eq!(shown, expected);
    let help = chat(
        &server,
        "concierge",
        "ada",
        &["/help", "/nope", "/quit", "never sent"],
    );
    assert!(
        help.contains("wakeup") && help.contains("Unknown command"),
        "{help}"
    );
    assert!(!help.contains("never sent"), "{help}");
}

#[test]
fn events_are_printed_as_json() {
    let server = Server::with_agents(&samples());
    let mut command = server.client(&["chat", "concierge", "--user", "ada", "--json"]);
    let output = with_lines(&mut command, &["How much is a double room?"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let printed = out(&output);
    let events = printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kinds: Vec<String> = events
        .map(|e| e["type"].as_str().unwrap().to_owned())
        .collect();
    for kind in ["transport:inbound", "tool:called", "transport:outbound"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
    assert_eq!(
        kinds.last().map(String::as_str),
        Some("runtime:inbound:processed")
    );
}

/// A chat that stays open: what it shows, line by line.
struct OpenChat {
    child: std::process::Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl OpenChat {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Waits for a line with this text.
    fn wait_for(&mut self, part: &str) {
        let mut seen = Vec::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if line.contains(part) {
                return;
            }
            seen.push(line);
        }
        panic!("no {part:?} in {seen:?}");
    }
}

/// What others cause appears while the chat is open, also after a restart of the server.
#[test]
fn open_chat_shows_the_decision_of_a_person() {
    let mut server = Server::with_agents(&samples());
    let mut chat = OpenChat::start(server.client(&["chat", "refund", "--user", "ada"]));
    chat.say("I want a refund of 200 euro for A-1004");
    chat.wait_for("A colleague has to approve a refund of 200 euro");
    assert_eq!(server.terminate(), 0, "{}", server.log());
    server.start_again();
    let approved = server.run(&["inbox", "approve", &only_question(&server)]);
    assert_eq!(code(&approved), 0, "{}", err(&approved));
    chat.wait_for("· approved by");
    chat.wait_for("Done: 200 euro for order A-1004");
    chat.say("/quit");
    assert!(chat.child.wait().unwrap().success());
}

#[test]
fn chat_with_an_unknown_or_broken_agent_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(
        broken.join("agent.ts"),
        "export default {\n  prompt: '',\n};",
    )
    .unwrap();
    let server = Server::with_agents(folder.path());
    let unknown = server.run(&["chat", "nobody"]);
    assert_eq!(code(&unknown), 1);
    assert!(
        err(&unknown).contains("The server has broken."),
        "{}",
        err(&unknown)
    );
    let invalid = server.run(&["chat", "broken"]);
    assert_eq!(code(&invalid), 1);
    assert!(
        err(&invalid).contains("agent.ts:2:3: error: /prompt"),
        "{}",
        err(&invalid)
    );
    let listed = out(&server.run(&["agents", "list"]));
    assert!(
        listed.contains("broken") && listed.contains("invalid"),
        "{listed}"
    );
    let shown = out(&server.run(&["agents", "show", "broken"]));
    assert!(shown.contains("agent.ts:2:3: error: /prompt"), "{shown}");
}

/// The token of an admin is sent where the agent's rules ask for one.
/// Z-143 (half: the token is sent by the command line), Z-203 (half: the command line)
#[test]
fn escalation_is_decided_with_the_token_of_an_admin() {
    let folder = tempfile::tempdir().unwrap();
    let desk = folder.path().join("desk");
    std::fs::create_dir(&desk).unwrap();
    // The hash is that of `ana-token`.
    let agent = r#"export default {
  prompt: 'x',
  adminAuth: {
    tokens: [{ hash: 'sha256:fdb19af2cd8f3f7de8c00cbdd4c4838366cbe4fa2e7ae38ba7f5847e75ad4bb5', actorId: 'ana', role: 'boss' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve'] },
  },
  beforeLLM: () => ({ action: 'route_flow', flowId: 'check' }),
  flows: {
    check: async function* (ctx) {
      yield* ctx.escalate({ mode: 'async_resolution', reason: 'Look at it' });
      const decision = yield* ctx.wait({ waitFor: 'admin_resolution' });
      yield* ctx.say(`decided by ${decision.resolvedBy}`);
    },
  },
};"#;
    std::fs::write(desk.join("agent.js"), agent).unwrap();
    let server = Server::with_agents(folder.path());
    chat(&server, "desk", "ada", &["hi"]);
    let question = only_question(&server);
    let denied = server.run(&["inbox", "approve", &question]);
    assert_eq!(code(&denied), 1);
    assert!(err(&denied).contains("--admin-token"), "{}", err(&denied));
    let decided = server.run(&["inbox", "approve", &question, "--admin-token", "ana-token"]);
    assert_eq!(code(&decided), 0, "{}", err(&decided));
    let shown = chat(&server, "desk", "ada", &[]);
    assert!(shown.ends_with("desk: decided by ana\n"), "{shown}");
}
