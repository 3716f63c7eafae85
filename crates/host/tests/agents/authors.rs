//! What authors use: `tandem dev`, a first agent, checks and types.

use super::*;

#[test]
fn dev_has_agents_and_one_waiting_customer() {
    let mut server = Server::dev();
    let client = |server: &Server, args: &[&str]| {
        let mut command = tandem(server.home());
        command.args(args).args(["--url", &server.url]);
        command
    };
    let waiting = |server: &Server| {
        let listed = client(server, &["inbox", "list"]).output().unwrap();
        let listed = out(&listed);
        assert_eq!(listed.matches("Refund of 740 euro").count(), 1, "{listed}");
        assert_eq!(
            listed.lines().count(),
            3,
            "a header, a run and a customer: {listed}"
        );
    };
    waiting(&server);
    assert_eq!(server.terminate(), 0, "{}", server.log());
    server.start_again();
    waiting(&server);
    let agents = out(&client(&server, &["agents", "list"]).output().unwrap());
    for id in ["booking", "concierge", "refund"] {
        assert!(agents.contains(&format!("{id} ")), "{id}: {agents}");
    }
    assert!(!agents.contains("invalid"), "{agents}");
    let talked = with_lines(
        &mut client(&server, &["chat", "concierge"]),
        &["is the pool open?"],
    );
    assert!(
        out(&talked).contains("The pool is open from 6 to 22."),
        "{}",
        out(&talked)
    );
    // The customer is told.
    let listed = client(&server, &["inbox", "list", "--json"])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let questions = listed["interrupts"].as_array().unwrap().iter();
    let mut question =
        questions.filter_map(|q| q["sessionId"].as_str().and(q["interruptId"].as_str()));
    let question = question.next().unwrap();
    let approved = client(&server, &["inbox", "approve", question])
        .output()
        .unwrap();
    assert_eq!(code(&approved), 0, "{}", err(&approved));
    let told = with_lines(
        &mut client(&server, &["chat", "refund", "--user", "mara"]),
        &[],
    );
    assert!(out(&told).contains("Done: 740 euro"), "{}", out(&told));
}

#[test]
fn first_agent_is_written_checked_and_served() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| tandem(home.path()).args(args).output().unwrap();
    let made = run(&["agents", "new", "desk"]);
    assert_eq!(code(&made), 0, "{}", err(&made));
    assert!(out(&made).contains("tandem chat desk"), "{}", out(&made));
    for file in [
        "agent.ts",
        "flows/order.ts",
        "script.json",
        "tandem.d.ts",
        "tsconfig.json",
    ] {
        assert!(
            home.path().join("agents/desk").join(file).exists(),
            "{file}"
        );
    }
    let again = run(&["agents", "new", "desk"]);
    assert_eq!(code(&again), 1);
    assert!(err(&again).contains("exists already"), "{}", err(&again));
    let checked = run(&["check", "agents"]);
    assert_eq!(
        (code(&checked), out(&checked).as_str()),
        (0, "1 agent, all good\n")
    );

    let server = Server::with_agents(&home.path().join("agents"));
    let lines = [
        "are you open on Sunday?",
        "I want to order",
        "tea",
        "yes",
        "/orders",
    ];
    let shown = chat(&server, "desk", "ada", &lines);
    for part in [
        "On Sunday we are closed.",
        "One tea. Shall I order it?",
        "Your number is N-1.",
        "desk: tea\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn examples_are_valid_and_types_are_printed() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| tandem(home.path()).args(args).output().unwrap();
    let examples = samples().join("..");
    let checked = run(&["check", examples.to_str().unwrap()]);
    assert_eq!(code(&checked), 0, "{}", out(&checked));
    assert!(
        out(&checked).ends_with("3 agents, all good\n"),
        "{}",
        out(&checked)
    );
    let types = out(&run(&["types"]));
    assert!(types.contains("declare module 'tandem'") && types.contains("interface FlowContext"));
}
