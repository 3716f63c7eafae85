//! Journals that the code does not follow, and journals that are no journals.

use super::fixtures::*;
use super::replay::Drive;
use serde_json::{Value, json};
use tandem_engine::session::Resume;
use tandem_record::conversation::FlowRecord;
use tandem_record::{Recorded, Seq};
use tandem_runtime::conversation::{AgentHost, RebuildError};

const TWO: &str = "const x = await ctx.session.kv.get('x'); yield { type: 'say', text: 'one' }; yield { type: 'say', text: 'two' };";

/// A desk with a flow and the journal of a run up to its second effect.
fn journal(body: &str) -> (Desk, Vec<Recorded<FlowRecord>>) {
    let desk = flow_desk(body);
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    drive.resume(Resume::Value(None), None);
    let journal = std::mem::take(&mut drive.journal);
    drop(drive);
    (desk, journal)
}

fn source(body: &str) -> String {
    let other = flow_desk(body);
    let version = other.version_of("f").expect("a version");
    let text = other.agents.flow_source(&demo_id(), &version);
    text.expect("a source").to_string()
}

/// Runs the journal of [`TWO`] against other code.
fn against(body: &str) -> RebuildError {
    let (desk, journal) = journal(TWO);
    let rebuilt = desk.agents.rebuild_program(Some(&source(body)), &journal);
    rebuilt.err().expect("no program")
}

/// Z-204 (half: any difference is a divergence), Z-216 (half: the step, what was expected and what came)
#[test]
fn other_code_diverges_at_the_first_difference() {
    let one = json!({"type": "say", "text": "one"});
    let table: [(&str, u32, Value, Value); 5] = [
        (
            "await ctx.session.kv.get('x'); yield { type: 'say', text: 'ONE' };",
            0,
            one.clone(),
            json!({"type": "say", "text": "ONE"}),
        ),
        (
            "yield { type: 'say', text: 'one' };",
            0,
            json!({"call": "session.kv.get"}),
            one.clone(),
        ),
        (
            "await ctx.session.kv.get('y'); yield { type: 'say', text: 'one' };",
            0,
            json!({"call": "session.kv.get"}),
            json!({"call": "session.kv.get", "args": ["y"]}),
        ),
        (
            "await ctx.session.kv.get('x'); yield { type: 'say', text: 'one' };",
            1,
            json!({"type": "say", "text": "two"}),
            json!({"returned": null}),
        ),
        (
            "await ctx.session.kv.get('x'); await ctx.session.kv.get('x'); yield { type: 'say', text: 'one' };",
            0,
            one,
            json!({"call": "session.kv.get", "args": ["x"]}),
        ),
    ];
    for (body, step, expected, actual) in table {
        let diverged = RebuildError::Diverged {
            step,
            expected,
            actual,
        };
        assert_eq!(against(body), diverged, "{body}");
    }
}

#[test]
fn code_that_fails_diverges_with_its_failure() {
    let RebuildError::Diverged { actual, .. } = against("throw new Error('gone');") else {
        panic!("no divergence")
    };
    assert_eq!(actual["failed"]["message"], "gone");
}

/// A run without stored source uses the loaded version, if it is still there.
#[test]
fn source_may_come_from_the_loaded_agent() {
    let (desk, mut journal) = journal(TWO);
    assert!(desk.agents.rebuild_program(None, &journal).is_ok());
    if let FlowRecord::Started(start) = &mut journal[0].event {
        start.version = "0".repeat(64);
    }
    let failed = desk.agents.rebuild_program(None, &journal).err();
    assert!(matches!(failed, Some(RebuildError::Failed(f)) if f.message.contains("is not loaded")));
}

#[test]
fn journals_and_sources_that_make_no_sense_are_refused() {
    let (desk, journal) = journal(TWO);
    let source = source(TWO);
    let rebuild = |source: &str, journal: &[Recorded<FlowRecord>]| match desk
        .agents
        .rebuild_program(Some(source), journal)
        .err()
    {
        Some(RebuildError::Failed(failure)) => failure.message,
        other => panic!("not refused: {other:?}"),
    };
    let with = |event: FlowRecord| {
        let mut longer = journal.clone();
        longer.push(Recorded {
            seq: Seq(99),
            at: NOW,
            cause: None,
            event,
        });
        longer
    };
    for text in ["", "{}", "null", "{\"timeZone\": 7}"] {
        assert!(rebuild(text, &journal).contains("stored code"), "{text}");
    }
    assert!(rebuild(&source, &[]).contains("does not begin"));
    assert!(rebuild(&source, &journal[1..]).contains("does not begin"));
    assert!(rebuild(&source, &with(journal[0].event.clone())).contains("second start"));
    let effect = journal.last().expect("an effect").event.clone();
    assert!(rebuild(&source, &with(effect)).contains("two effects"));
    let result = FlowRecord::Result {
        step: 0,
        value: None,
        error: None,
    };
    let mut without_effect = journal[..1].to_vec();
    without_effect.push(Recorded {
        event: result,
        ..journal[1].clone()
    });
    assert!(rebuild(&source, &without_effect).contains("without an effect"));
    let bad_error = FlowRecord::Result {
        step: 1,
        value: None,
        error: Some(json!("no error")),
    };
    assert!(rebuild(&source, &with(bad_error)).contains("cannot be thrown"));
    let ended = FlowRecord::Ended {
        reason: None,
        cancelled: false,
    };
    assert!(rebuild(&source, &with(ended)).contains("has ended"));
}

/// The commit holds a result and what the code did with it; a journal without the latter is not one.
#[test]
fn journal_that_stops_before_the_next_effect_diverges() {
    let (desk, journal) = journal(TWO);
    let short = &journal[..journal.len() - 1];
    let source = source(TWO);
    let error = desk.agents.rebuild_program(Some(&source), short).err();
    let Some(RebuildError::Diverged { step, expected, .. }) = error else {
        panic!("no divergence: {error:?}")
    };
    assert_eq!((step, expected), (1, Value::Null));
}
