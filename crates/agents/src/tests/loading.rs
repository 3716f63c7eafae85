//! Loading agents from folders: versions, and what broken files leave in use (§10.4).

use super::fixtures::*;
use tandem_record::AgentId;
use tandem_record::conversation::AgentStatus;
use tandem_runtime::conversation::AgentHost;

pub(super) const BOOKING: &str = "
const booking = async function* (ctx: FlowContext) {
  const date = yield { type: 'ask', key: 'date', text: 'When do you want the appointment?' };
  const confirmed = yield {
    type: 'interrupt.confirm',
    question: `Confirm booking for ${String(date)}? Reply YES or NO`,
    timeoutSeconds: 300,
    positiveKeywords: ['yes', 'ok', 'confirm'],
    negativeKeywords: ['no', 'cancel']
  };
  if (!confirmed) {
    yield { type: 'say', text: 'Booking cancelled.' };
    yield { type: 'end', reason: 'user_declined' };
    return;
  }
  yield { type: 'tool', name: 'create_appointment', args: { date } };
  yield { type: 'say', text: 'Booked.' };
};
";

pub(super) const REFUND: &str = "
const refund = async function* (ctx: FlowContext) {
  const amount = yield { type: 'ask', key: 'amount', text: 'What refund amount?' };
  if (Number(amount) > 500) {
    yield {
      type: 'interrupt.escalate', mode: 'async_resolution', reason: 'High refund amount requires review',
      priority: 'high', metadata: { amount }
    };
    const resolution = yield { type: 'interrupt.wait', waitFor: 'admin_resolution', timeoutSeconds: 86_400 };
    if (resolution?.approved) {
      yield { type: 'tool', name: 'process_refund', args: { amount } };
      yield { type: 'say', text: 'Refund approved and processed.' };
    } else {
      yield { type: 'say', text: resolution?.message ?? 'Refund not approved.' };
    }
  }
};
";

pub(super) fn samples() -> Desk {
    desk(&[
        ("demo/agent.ts", &agent("")),
        ("demo/flows/booking.ts", BOOKING),
        ("demo/flows/refund.ts", REFUND),
    ])
}

const BROKEN: &str = "const booking = async function* (ctx { yield";

/// Plain samples load unchanged, each with the hash of its code.
/// Z-213 (half: the plain samples), Z-214 (half: each has the hash of its code)
#[test]
fn samples_load_with_versions_that_are_hashes() {
    let desk = samples();
    let summary = desk.summary();
    assert_eq!(summary.status, AgentStatus::Ready);
    assert_eq!(summary.errors, []);
    let flows: Vec<_> = summary.flows.iter().map(|f| f.flow_id.as_str()).collect();
    assert_eq!(flows, ["booking", "refund"]);
    assert_eq!(summary.flows[0].file.as_deref(), Some("flows/booking.ts"));
    for flow in &summary.flows {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(flow.version.len() == 64 && flow.version.chars().all(is_hex));
        assert!(desk.agents.flow_source(&demo_id(), &flow.version).is_some());
    }
    let spec = desk.agents.agent(&demo_id()).expect("a good agent");
    assert_eq!(spec.flows["booking"].version, desk.version_of("booking"));
    assert_eq!(desk.agents.flow_source(&demo_id(), "unknown"), None);
}

#[test]
fn summary_is_what_the_interface_shows() {
    let desk = samples();
    desk.write("demo/flows/late.ts", "export const late = function* () {};");
    desk.registry.reload();
    let shown = serde_json::to_value(desk.summary()).expect("JSON");
    assert_eq!(shown["status"], "ready");
    assert_eq!(shown["flows"][0]["flowId"], "booking");
    assert_eq!(shown["flows"][0]["file"], "flows/booking.ts");
    assert_eq!(shown["errors"][0]["file"], "flows/late.ts");
    assert_eq!(shown["errors"][0]["line"], 1);
    let message = shown["errors"][0]["message"].as_str().expect("a text");
    assert!(message.contains("async function*"), "{message}");
}

/// Z-214 (half: flows in the agent's own file have its code as version)
#[test]
fn flows_of_the_agent_file_have_a_version_too() {
    let desk = demo("flows: { hello: async function* () { yield { type: 'say', text: 'x' }; } }");
    let version = desk.version_of("hello").expect("a version");
    let spec = desk.agents.agent(&demo_id()).expect("a good agent");
    assert_eq!(spec.flows["hello"].version.as_ref(), Some(&version));
    assert!(desk.agents.flow_source(&demo_id(), &version).is_some());
}

#[test]
fn changed_file_is_the_version_of_new_runs_and_the_old_stays_usable() {
    let desk = samples();
    let (old, refund) = (desk.version_of("booking"), desk.version_of("refund"));
    let started = desk.flow_start("booking");
    desk.write(
        "demo/flows/booking.ts",
        &BOOKING.replace("When", "NEW: when"),
    );
    desk.registry.reload();
    assert_ne!(desk.version_of("booking"), old);
    assert_eq!(desk.version_of("refund"), refund, "its file did not change");
    assert!(desk.agents.start_program(&started, NOW).is_ok());
}

/// §10.4: a file that does not parse is reported; the version before it stays in use.
#[test]
fn broken_flow_file_leaves_its_last_good_version_and_the_others() {
    let desk = samples();
    let old = desk.version_of("booking");
    let refund = desk.version_of("refund");
    desk.write("demo/flows/booking.ts", BROKEN);
    desk.write("demo/flows/refund.ts", &REFUND.replace("What", "NEW: what"));
    desk.registry.reload();
    let errors = desk.summary().errors;
    assert_eq!((errors.len(), errors[0].line), (1, Some(1)), "{errors:?}");
    assert!(errors[0].file == "flows/booking.ts" && errors[0].column.is_some());
    assert_eq!(desk.version_of("booking"), old);
    assert_ne!(desk.version_of("refund"), refund);
    desk.write("demo/flows/booking.ts", BOOKING);
    desk.registry.reload();
    assert_eq!(
        (desk.summary().errors, desk.version_of("booking")),
        (vec![], old)
    );
}

#[test]
fn flow_file_that_was_never_good_is_left_out() {
    let desk = desk(&[
        ("demo/agent.ts", &agent("")),
        ("demo/flows/booking.ts", BROKEN),
        ("demo/flows/refund.ts", REFUND),
    ]);
    assert_eq!(desk.summary().status, AgentStatus::Ready);
    assert_eq!(desk.version_of("booking"), None);
    assert!(desk.version_of("refund").is_some());
}

/// A module that flows share: who imports it is broken with it, and keeps its last good content.
#[test]
fn broken_import_leaves_the_flows_that_need_it_as_they_were() {
    let desk = samples();
    desk.write("demo/shared.ts", "export const text: string = 'A?';");
    let uses = "import { text } from '../shared.ts';\nexport const ask = async function* () { yield { type: 'ask', key: 'k', text }; };";
    desk.write("demo/flows/ask.ts", uses);
    desk.registry.reload();
    let good = desk.version_of("ask");
    assert!(good.is_some(), "{:?}", desk.error_texts());
    desk.write("demo/shared.ts", "export const text = ;");
    desk.registry.reload();
    assert_eq!(desk.version_of("ask"), good);
    assert!(
        desk.error_texts()[0].contains("shared.ts"),
        "{:?}",
        desk.error_texts()
    );
    desk.write("demo/shared.ts", "export const text = 'B?';");
    desk.registry.reload();
    assert_ne!(desk.version_of("ask"), good);
}

#[test]
fn removed_flow_file_removes_its_flows_only() {
    let desk = samples();
    std::fs::remove_file(desk.folder.path().join("demo/flows/booking.ts")).expect("a file");
    desk.registry.reload();
    assert_eq!(desk.version_of("booking"), None);
    assert!(desk.version_of("refund").is_some());
}

/// A flow whose schema cannot be used is the problem of its file, not of the agent.
#[test]
fn flow_with_a_bad_schema_leaves_the_rest() {
    let desk = samples();
    let bad =
        "export const quote = { run: async function* () {}, inputSchema: { type: 'nonsense' } };";
    desk.write("demo/flows/quote.ts", bad);
    desk.registry.reload();
    assert_eq!(desk.version_of("quote"), None);
    assert!(desk.version_of("booking").is_some());
    let errors = desk.error_texts();
    assert!(
        errors[0].starts_with("flows/quote.ts: /flows/quote/inputSchema"),
        "{errors:?}"
    );
    let good = bad.replace("nonsense", "object");
    desk.write("demo/flows/quote.ts", &good);
    desk.registry.reload();
    let version = desk.version_of("quote");
    assert!(version.is_some());
    desk.write("demo/flows/quote.ts", bad);
    desk.registry.reload();
    assert_eq!(desk.version_of("quote"), version, "its last good content");
}

/// §10.4: a broken agent file leaves the last good version, and flow files go on changing.
#[test]
fn broken_agent_file_leaves_the_last_good_version() {
    let broken = [
        "export default createAgent({",
        "import { createAgent } from 'tandem'; export default createAgent({ prompt: ' ' });",
        "import { createAgent } from 'tandem'; export default createAgent({ prompt: 'x', promt: 'y' });",
        "throw new Error('at load');",
        "export const nothing = 1;",
        "import { z } from 'zod'; export default { prompt: String(z) };",
        "export default { prompt: 'x', flows: { f: function* () {} } };",
        "for (;;) {}",
    ];
    for source in broken {
        let desk = samples();
        desk.write("demo/agent.ts", source);
        desk.write(
            "demo/flows/extra.ts",
            "export const extra = async function* () {};",
        );
        desk.registry.reload();
        let summary = desk.summary();
        assert_eq!(summary.status, AgentStatus::Ready, "{source}");
        let files: Vec<_> = summary
            .errors
            .iter()
            .map(|error| error.file.as_str())
            .collect();
        assert_eq!(files, ["agent.ts"], "{source}: {:?}", summary.errors);
        assert!(desk.version_of("extra").is_some(), "{source}");
    }
}

#[test]
fn agent_that_was_never_good_is_invalid() {
    for source in ["export default 7;", "export default { prompt: '' };", ""] {
        let desk = desk(&[("demo/agent.ts", source), ("demo/flows/b.ts", BOOKING)]);
        assert_eq!(desk.summary().status, AgentStatus::Invalid, "{source}");
        assert!(!desk.summary().errors.is_empty(), "{source}");
        assert!(desk.agents.agent(&demo_id()).is_none(), "{source}");
        desk.write("demo/agent.ts", &agent(""));
        desk.registry.reload();
        assert_eq!(desk.summary().status, AgentStatus::Ready);
        assert_eq!(desk.summary().errors, []);
    }
}

/// Z-5 (half: an agent that names a flow which does not exist is refused)
#[test]
fn agent_that_names_an_unknown_flow_is_invalid() {
    let desk = demo(
        "schedules: { m: { flowId: 'nothing', trigger: { type: 'cron', expr: '0 9 * * *' },
          target: { kind: 'user', userExternalId: 'u1' } } }",
    );
    assert_eq!(desk.summary().status, AgentStatus::Invalid);
    let errors = desk.error_texts();
    assert!(
        errors[0].starts_with("agent.ts: /schedules/m/flowId: there is no flow"),
        "{errors:?}"
    );
}

#[test]
fn flow_given_twice_is_an_error_of_the_second_file() {
    let desk = samples();
    let again = "export const booking = async function* () {};";
    desk.write("demo/flows/zz.ts", again);
    desk.registry.reload();
    assert!(
        desk.error_texts()[0].starts_with("flows/zz.ts: "),
        "{:?}",
        desk.error_texts()
    );
    assert!(desk.version_of("booking").is_some());
}

/// A flow that moved to another file is not kept by its old, broken file.
#[test]
fn flow_that_moved_is_taken_from_its_new_file() {
    let desk = samples();
    desk.write("demo/flows/booking.ts", BROKEN);
    desk.write("demo/flows/moved.ts", BOOKING);
    desk.registry.reload();
    let flows = desk.summary().flows;
    let booking: Vec<_> = flows.iter().filter(|f| f.flow_id == "booking").collect();
    assert_eq!(booking.len(), 1);
    assert_eq!(booking[0].file.as_deref(), Some("flows/moved.ts"));
}

/// Z-207 (half: the local time zone is part of what the code sees, so of its version)
#[test]
fn settings_that_flows_see_are_part_of_the_version() {
    let desk = samples();
    let mut seen = vec![desk.version_of("booking")];
    for fields in [
        "scheduler: { timezone: 'Europe/Berlin' }",
        "language: 'de'",
        "welcomeMessage: 'Hi'",
    ] {
        desk.write("demo/agent.ts", &agent(fields));
        desk.registry.reload();
        seen.push(desk.version_of("booking"));
    }
    desk.write("demo/agent.ts", &agent(""));
    desk.registry.reload();
    assert_eq!(
        desk.version_of("booking"),
        seen[0],
        "the settings of before"
    );
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[test]
fn folders_and_single_files_are_agents_and_other_files_are_not() {
    let desk = desk(&[
        ("demo/agent.ts", &agent("")),
        ("solo.ts", &agent("")),
        ("data.json", r#"{"prompt": "You are data."}"#),
        ("types.d.ts", "export {};"),
        ("package.json", "{}"),
        ("README.md", "# Agents"),
        (".git/config", ""),
        ("node_modules/x/index.js", ""),
    ]);
    let ids: Vec<String> = desk
        .registry
        .ids()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(ids, ["data", "demo", "solo"]);
    for id in ["data", "solo"] {
        assert!(desk.agents.agent(&AgentId::from(id)).is_some(), "{id}");
    }
}

#[test]
fn second_agent_with_the_same_id_is_reported() {
    let desk = desk(&[
        ("demo/agent.ts", &agent("")),
        ("demo.ts", &agent("welcomeMessage: 'x'")),
    ]);
    let errors = desk.error_texts();
    assert!(
        errors.len() == 1 && errors[0].contains("already defined"),
        "{errors:?}"
    );
    assert_eq!(desk.summary().status, AgentStatus::Ready);
}

#[test]
fn removed_agent_is_gone_and_a_missing_folder_is_no_error() {
    let desk = demo("");
    std::fs::remove_dir_all(desk.folder.path().join("demo")).expect("a folder");
    desk.registry.reload();
    assert!(desk.registry.summary(&demo_id()).is_none());
    assert!(desk.agents.agent(&demo_id()).is_none());
    std::fs::remove_dir_all(desk.folder.path()).expect("a folder");
    desk.registry.reload();
    assert_eq!(desk.registry.ids(), []);
}
