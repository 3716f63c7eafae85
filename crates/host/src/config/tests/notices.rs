//! Who is told of questions of runs: what is read, and what is refused because it would say nothing.

use super::resolved;
use crate::config::Settings;

const TEAM: &str = "[[notices]]\ntransport = \"desk.team\"\naddress = \"C1\"\n";

fn read(file: &str) -> Result<Settings, String> {
    resolved(Default::default(), &[], Some(file))
}

#[test]
fn notices_and_people_are_read() {
    let file = format!(
        "{TEAM}groups = [\"finance\"]\n[[notice_people]]\ntransport = \"desk.team\"\naddress = \"U1\"\nprincipal = \"ana\"\n"
    );
    let settings = read(&file).expect("valid");
    let [notice] = settings.notices.as_slice() else {
        panic!("{:?}", settings.notices)
    };
    assert_eq!(
        (notice.agent.as_str(), notice.transport.as_str()),
        ("desk", "team")
    );
    assert_eq!(notice.kinds, ["approval", "clarification"]);
    assert_eq!(notice.groups, ["finance"]);
    assert_eq!(settings.notice_people[0].principal.as_str(), "ana");
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let person = |transport: &str| {
        format!(
            "[[notice_people]]\ntransport = \"{transport}\"\naddress = \"U1\"\nprincipal = \"ana\"\n"
        )
    };
    let cases = [
        (
            "[[notices]]\ntransport = \"team\"\naddress = \"C1\"\n".to_owned(),
            "AGENT.TRANSPORT",
        ),
        (format!("{TEAM}kinds = [\"custom\"]\n"), "\"custom\""),
        (format!("{TEAM}kinds = []\n"), "kinds"),
        (format!("{TEAM}groups = []\n"), "groups"),
        (format!("{TEAM}principals = [\"\"]\n"), "principals"),
        (format!("{TEAM}channel = \"C1\"\n"), "channel"),
        (
            "[[notices]]\ntransport = \"desk.team\"\naddress = \"\"\n".to_owned(),
            "address",
        ),
        (person("desk.team"), "no notices use"),
        (format!("{TEAM}{}", person("desk.other")), "no notices use"),
        (format!("{TEAM}{0}{0}", person("desk.team")), "twice"),
    ];
    for (file, problem) in cases {
        let refused = read(&file).expect_err(&file);
        assert!(refused.contains(problem), "{file}: {refused}");
    }
}
