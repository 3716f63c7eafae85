use super::*;

const GOOD: &str = r#"{
  "id": "good", "name": "Good", "version": "1",
  "nodes": [
    {"id": "a", "typeId": "core.noop", "name": "A", "position": {"x": 0, "y": 0},
     "config": {}, "inputs": {}}
  ],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;

fn rules(strict: bool) -> Rules {
    Rules {
        packs: PackTypes::default(),
        strict,
    }
}

fn examined(text: &str) -> Vec<String> {
    examined_by(text, true)
}

fn examined_by(text: &str, strict: bool) -> Vec<String> {
    let findings = examine(
        Path::new("w.json"),
        text,
        &rules(strict),
        &mut HashMap::new(),
        &mut Vec::new(),
    );
    findings.iter().map(|f| f.text(Style::PLAIN)).collect()
}

#[test]
fn a_good_document_has_no_findings() {
    assert_eq!(examined(GOOD), [""; 0]);
}

#[test]
fn an_unknown_type_is_shown_in_its_place_with_a_suggestion() {
    let found = examined(&GOOD.replace("core.noop", "core.nop"));
    assert_eq!(
        found,
        [
            "w.json:4:27: error: /nodes/0/typeId: \"core.nop\" is not a node type of this host\n    \
          Did you mean core.noop?"
        ]
    );
}

#[test]
fn a_dangling_edge_is_shown_in_its_place() {
    let edge = r#""edges": [{"id": "e", "sourceNodeId": "a", "targetNodeId": "ghost"}]"#;
    let found = examined(&GOOD.replace(r#""edges": []"#, edge));
    assert_eq!(
        found,
        [
            "w.json:7:62: error: /edges/0/targetNodeId: there is no node \"ghost\"\n    \
          Name a node of this document."
        ]
    );
}

#[test]
fn a_missing_key_is_shown_where_it_should_be() {
    let found = examined(&GOOD.replace(r#""name": "Good", "#, ""));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("w.json:1:1: error: \"name\" is a required property"),
        "{}",
        found[0]
    );
    assert!(found[0].ends_with("Add it."));
}

#[test]
fn text_that_is_not_json_is_shown_where_it_breaks() {
    let found = examined("{\n  \"id\": oops\n}");
    assert_eq!(found, ["w.json:2:9: error: not JSON: expected value"]);
}

#[test]
fn too_deeply_nested_document_is_rejected() {
    let found = examined(&"[".repeat(100));
    assert_eq!(
        found,
        ["w.json: error: nests deeper than 64 levels of arrays and objects"]
    );
}

#[test]
fn a_type_that_is_not_served_is_a_warning() {
    let found = examined(&GOOD.replace("core.noop", "core.openwop.governance.approvalGate"));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("w.json: warning: node a: core.openwop.governance.approvalGate needs"),
        "{}",
        found[0]
    );
}

#[test]
fn a_directory_is_checked_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.json", GOOD);
    write("b.json", GOOD);
    write("c.json", "[]");
    let report = Report::of(
        &[dir.path().to_owned(), dir.path().join("absent")],
        &rules(true),
    );
    assert_eq!(report.documents, 3);
    let files: Vec<&str> = report
        .findings
        .iter()
        .map(|f| f.file.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        files.first(),
        Some(&"b.json"),
        "the second of two equal ids"
    );
    assert_eq!(files.last(), Some(&"absent"));
    assert!(files.contains(&"c.json"));
    assert!(report.summary().starts_with("3 documents, "));
}

#[test]
fn all_problems_of_a_document_are_reported_at_once() {
    let document = serde_json::json!({
        "id": "many", "name": "Many", "version": "1", "stray": true,
        "nodes": [
            {"id": "gate", "typeId": "core.approvalGate", "name": "G", "position": {"x": 0, "y": 0},
             "config": {"title": "{{ variables.nobody }}", "requiredApproval": 2}, "inputs": {}},
            {"id": "off", "typeId": "core.noop", "name": "O", "position": {"x": 0, "y": 0},
             "config": {}, "inputs": {}, "disabled": true},
            {"id": "after", "typeId": "core.subWorkflow", "name": "A", "position": {"x": 0, "y": 0},
             "config": {"workflowId": "child", "inputMapping": {"theirs": "custmer"}}, "inputs": {}}
        ],
        "edges": [{"id": "e", "sourceNodeId": "off", "targetNodeId": "after"}],
        "triggers": [{"id": "t", "type": "schedule"}],
        "variables": [{"name": "customer", "type": "string"}],
        "metadata": {}, "settings": {}
    });
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("many.json"), document.to_string()).unwrap();
    let findings_of = |strict: bool| {
        let report = Report::of(&[dir.path().to_owned()], &rules(strict));
        let findings = report.findings.into_iter();
        findings.map(|f| (f.path, f.severity)).collect::<Vec<_>>()
    };
    let (error, warning) = (Severity::Error, Severity::Warning);
    let find = |found: &[(String, Severity)], path: &str| {
        let mut at = found.iter().filter(|(place, _)| place == path);
        let severity = at.next().map(|(_, severity)| *severity);
        assert!(at.next().is_none(), "{path} is reported twice");
        severity
    };
    for strict in [true, false] {
        let found = findings_of(strict);
        let unknown = if strict { error } else { warning };
        for (path, severity) in [
            ("", error),
            ("/nodes/0/config/requiredApproval", unknown),
            ("/nodes/0/config/title", error),
            ("/triggers/0/config", error),
            ("/nodes/2", warning),
            ("/nodes/2/config/inputMapping/theirs", warning),
            ("/nodes/2/config/workflowId", warning),
        ] {
            assert_eq!(find(&found, path), Some(severity), "{path} in {found:?}");
        }
    }
    // With the child in the same directory, nothing is missing.
    std::fs::write(dir.path().join("child.json"), GOOD.replace("good", "child")).unwrap();
    assert_eq!(find(&findings_of(true), "/nodes/2/config/workflowId"), None);
}

#[test]
fn unknown_setting_is_a_warning_when_not_strict() {
    let misspelt = GOOD
        .replace("core.noop", "core.delay")
        .replace("\"config\": {}", "\"config\": {\"delayMS\": 5}");
    let strict = examined(&misspelt);
    assert!(
        strict[0].contains("error: /nodes/0/config/delayMS") && strict[0].contains("`delayMs`"),
        "{strict:?}"
    );
    let lenient = examined_by(&misspelt, false);
    assert!(
        lenient[0].contains("warning: /nodes/0/config/delayMS"),
        "{lenient:?}"
    );
}

fn checked(paths: &[&Path]) -> (Report, Vec<String>) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
    let report = Report::of(&paths, &rules(true));
    let shown = report.findings.iter().map(|f| f.text(Style::PLAIN));
    let shown = shown.collect();
    (report, shown)
}

#[test]
fn problems_of_agents_have_file_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let desk = dir.path().join("desk");
    let write = |name: &str, text: &str| {
        let file = desk.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let agent = "export default {\n  prompt: 'You are the desk.',\n  model: { provider: 'scripted', script: 'script.json' },\n};\n";
    write("agent.ts", agent);
    write("script.json", r#"{"answers": []}"#);
    write(
        "flows/good.ts",
        "export const good = async function* () {};",
    );
    std::fs::write(dir.path().join("a.json"), GOOD).unwrap();
    let (report, shown) = checked(&[dir.path()]);
    assert_eq!((report.documents, report.agents), (1, 1), "{shown:?}");
    assert_eq!(report.summary(), "1 document, 1 agent, all good");

    let broken = [
        (
            "flows/bad.ts",
            "export const bad = async function* () {\n  yield {;\n};",
            ":2:",
        ),
        (
            "flows/sync.ts",
            "export const sync = function* (ctx) {};",
            ":1:",
        ),
        (
            "agent.ts",
            &agent.replace("model", "modell"),
            "agent.ts:3:3: error: /modell",
        ),
        (
            "script.json",
            "{\n  \"answers\": [}\n}",
            "script.json:2:15: error",
        ),
    ];
    for (name, text, expected) in broken {
        let before = std::fs::read_to_string(desk.join(name)).ok();
        write(name, text);
        let (report, shown) = checked(&[&desk]);
        assert_eq!(report.errors(), 1, "{name}: {shown:?}");
        assert!(
            shown[0].contains(name) && shown[0].contains(expected),
            "{shown:?}"
        );
        // A flow file is not blamed for another one.
        let (good, _) = checked(&[&desk.join("flows/good.ts")]);
        assert_eq!(
            good.errors(),
            usize::from(!name.starts_with("flows/")),
            "{name}"
        );
        match before {
            Some(before) => write(name, &before),
            None => std::fs::remove_file(desk.join(name)).unwrap(),
        }
    }
}

#[test]
fn single_file_is_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("solo.ts");
    std::fs::write(&file, "export default { prompt: 'x' };").unwrap();
    assert_eq!(checked(&[&file]).0.summary(), "1 agent, all good");
    std::fs::write(&file, "export default { prompt: ' ' };").unwrap();
    let (_, shown) = checked(&[&file]);
    assert!(
        shown[0].contains("solo.ts:1:18: error: /prompt"),
        "{shown:?}"
    );
}
