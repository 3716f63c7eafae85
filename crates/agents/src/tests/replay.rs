//! A program that is rebuilt from its journal behaves as the live one.
//!
//! Every flow here is driven live. After every effect it is also rebuilt from its journal, and the next
//! steps of both are compared.

use super::fixtures::*;
use super::loading::{BOOKING, REFUND};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tandem_engine::flow::{FlowEffect, FlowError, fingerprint};
use tandem_engine::session::{ProgramStep, Resume};
use tandem_record::conversation::{FlowRecord, FlowRunStart, TurnTrigger};
use tandem_record::{Object, Recorded, Seq, Timestamp};
use tandem_runtime::conversation::{AgentHost, FlowProgram};

/// Drives one run as the engine does: everything handed to the code is in the journal first.
pub(super) struct Drive<'a> {
    desk: &'a Desk,
    source: String,
    pub(super) journal: Vec<Recorded<FlowRecord>>,
    program: Box<dyn FlowProgram>,
    /// Members of `ctx` that the turn set.
    context: Object,
    keys: BTreeMap<String, Value>,
    steps: u32,
    now: Timestamp,
}

impl<'a> Drive<'a> {
    /// The run up to its first effect or its end.
    pub(super) fn start(desk: &'a Desk, start: FlowRunStart) -> (Self, ProgramStep) {
        let source = desk.agents.flow_source(&demo_id(), &start.version);
        let (program, step) = desk.agents.start_program(&start, NOW).expect("a start");
        let mut drive = Self {
            desk,
            source: source.expect("a source").to_string(),
            journal: Vec::new(),
            program,
            context: start.context.clone(),
            keys: BTreeMap::new(),
            steps: 0,
            now: NOW,
        };
        drive.record(FlowRecord::Started(Box::new(start)));
        let step = drive.settle(step);
        (drive, step)
    }

    fn record(&mut self, event: FlowRecord) {
        self.journal.push(Recorded {
            seq: Seq(self.journal.len() as u64),
            at: self.now,
            cause: None,
            event,
        });
    }

    /// Answers context calls until the code is at an effect or its end.
    fn settle(&mut self, mut step: ProgramStep) -> ProgramStep {
        while let ProgramStep::HostCall { name, args } = &step {
            // Time passes while a run is driven, and the code sees it.
            self.now = self.now.plus_ms(7);
            let answer = self.answer(name, args);
            let error = answer.as_ref().err().map(|error| json!(error));
            self.record(FlowRecord::Host {
                index: 0,
                name: name.clone(),
                fingerprint: fingerprint(&json!([name, args])),
                value: answer.clone().ok().flatten(),
                error,
            });
            step = self
                .program
                .resume(Resume::Host(answer), &self.context, self.now);
        }
        if let ProgramStep::Yielded(effect) = &step {
            self.record(FlowRecord::Effect {
                step: self.steps,
                fingerprint: fingerprint(effect),
                effect: effect.clone(),
            });
            self.steps += 1;
        }
        step
    }

    fn answer(&mut self, name: &str, args: &[Value]) -> Result<Option<Value>, FlowError> {
        let key = || args[0].as_str().expect("a key").to_owned();
        match name {
            "session.kv.get" => Ok(Some(self.keys.get(&key()).cloned().unwrap_or_default())),
            "session.kv.set" if key().starts_with("__zupa.") => {
                Err(FlowError::effect("reserved_key", "no").with("key", key()))
            }
            "session.kv.set" => {
                self.keys.insert(key(), args[1].clone());
                Ok(None)
            }
            "session.kv.all" => Ok(Some(json!(self.keys))),
            other => Err(FlowError::effect("unknown_call", other)),
        }
    }

    /// Hands a result over, in a turn with this message if one is given.
    pub(super) fn resume(&mut self, with: Resume, message: Option<&str>) -> ProgramStep {
        self.now = self.now.plus_ms(60_000);
        if let Some(text) = message {
            let inbound = (!text.is_empty()).then(|| json!({"messageId": text, "body": text}));
            let members = [("inbound".to_owned(), json!(inbound))];
            self.context = Object::from_iter(members);
            self.record(FlowRecord::Segment {
                turn: 2,
                trigger: TurnTrigger::Inbound,
                context: self.context.clone(),
            });
        }
        let (value, error) = match &with {
            Resume::Value(value) => (value.clone(), None),
            Resume::Throw(error) => (None, Some(json!(error))),
            Resume::Host(_) => unreachable!("not a result of an effect"),
        };
        let step = self.steps - 1;
        let mut rebuilt = self.rebuilt();
        self.record(FlowRecord::Result { step, value, error });
        let live = self.program.resume(with.clone(), &self.context, self.now);
        let again = rebuilt.resume(with, &self.context, self.now);
        assert_eq!(again, live, "the rebuilt program does the same");
        self.settle(live)
    }

    pub(super) fn rebuilt(&self) -> Box<dyn FlowProgram> {
        let rebuilt = self
            .desk
            .agents
            .rebuild_program(Some(&self.source), &self.journal);
        rebuilt
            .map_err(|error| format!("{error:?}"))
            .expect("a rebuilt program")
    }

    pub(super) fn close(&mut self) -> (Vec<Value>, Vec<Value>) {
        let mut rebuilt = self.rebuilt();
        (self.program.close(), rebuilt.close())
    }
}

fn text(value: Value) -> Resume {
    Resume::Value(Some(value))
}

fn say(step: &ProgramStep) -> &str {
    match step {
        ProgramStep::Yielded(effect) => effect["text"].as_str().expect("a text"),
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn booking_sample_is_the_same_after_every_step() {
    let desk = desk(&[("demo/agent.ts", &agent("")), ("demo/flows/b.ts", BOOKING)]);
    let (mut drive, first) = Drive::start(&desk, desk.flow_start("booking"));
    assert_eq!(say(&first), "When do you want the appointment?");
    let asked = drive.resume(text(json!("Monday")), Some("Monday"));
    assert!(
        matches!(&asked, ProgramStep::Yielded(e) if e["question"] == "Confirm booking for Monday? Reply YES or NO")
    );
    let tool = drive.resume(text(json!(true)), Some("yes"));
    assert!(matches!(&tool, ProgramStep::Yielded(e) if e["args"] == json!({"date": "Monday"})));
    assert_eq!(
        say(&drive.resume(text(json!({"ok": true})), None)),
        "Booked."
    );
    assert_eq!(
        drive.resume(Resume::Value(None), None),
        ProgramStep::Returned(Value::Null)
    );
}

#[test]
fn refund_sample_is_the_same_after_every_step() {
    let desk = desk(&[("demo/agent.ts", &agent("")), ("demo/flows/r.ts", REFUND)]);
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("refund"));
    drive.resume(text(json!("900")), Some("900"));
    drive.resume(text(json!({"escalationId": "esc_1"})), None);
    let said = drive.resume(
        text(json!({"approved": false, "message": "Too late."})),
        Some(""),
    );
    assert_eq!(say(&said), "Too late.");
}

/// Z-207 (half: time, randomness and identity come from the journal)
#[test]
fn clock_and_randomness_are_recorded() {
    let desk = flow_desk(
        "let out = [Date.now(), Math.random(), crypto.randomUUID()];
         for (let i = 0; i < 3; i++) {
           yield { type: 'say', text: JSON.stringify(out) };
           out = [Date.now(), new Date().toISOString(), Math.random(), crypto.randomUUID()];
           await ctx.session.kv.get('x');
           out.push(Date.now());
         }",
    );
    let (mut drive, first) = Drive::start(&desk, desk.flow_start("f"));
    let first = say(&first).to_owned();
    assert!(first.contains(&NOW.0.to_string()), "{first}");
    let second = say(&drive.resume(Resume::Value(None), None)).to_owned();
    assert!(
        second.contains(&NOW.plus_ms(60_000).0.to_string()),
        "{second}"
    );
    assert!(
        second.contains(&NOW.plus_ms(60_007).0.to_string()),
        "{second}"
    );
    drive.resume(Resume::Value(None), None);
}

/// §2.3: `inbound` is the message of the turn that drives the run; a turn without one has none.
#[test]
fn inbound_and_answers_follow_the_turns() {
    let desk = flow_desk(
        "const seen = [ctx.inbound.body, ctx.input.item, ctx.user.displayName, ctx.flowRunId, ctx.language];
         ctx.inbound.body = 'changed by the code';
         yield ctx.ask('name', 'Name?');
         seen.push(ctx.inbound.body, ctx.answers.name);
         yield ctx.wait({ waitFor: 'timeout', timeoutSeconds: 5 });
         seen.push(typeof ctx.inbound);
         yield ctx.say(seen.join());",
    );
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    drive.resume(text(json!("Bo")), Some("I am Bo"));
    let said = drive.resume(text(json!({"status": "timed_out"})), Some(""));
    assert_eq!(say(&said), "start,chair,Ann,flow-1,en,I am Bo,Bo,undefined");
}

/// Z-211 (half: concurrent calls are made in program order and answered in recorded order)
#[test]
fn concurrent_context_calls_are_replayed_in_order() {
    let desk = flow_desk(
        "const order = [];
         const get = async (key) => { const v = await ctx.session.kv.get(key); order.push(key + v); return v; };
         await Promise.all([ctx.session.kv.set('a', 1), ctx.session.kv.set('b', 2)]);
         yield ctx.ask('k', 'K?');
         const values = await Promise.all(['b', 'a', 'none'].map(get));
         const race = await Promise.race([ctx.session.kv.get('a'), ctx.session.kv.get('b')]);
         yield ctx.say(JSON.stringify({ order, values, race, all: await ctx.session.kv.all() }));",
    );
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    let said = drive.resume(text(json!("x")), Some("x"));
    let seen: Value = serde_json::from_str(say(&said)).expect("JSON");
    assert_eq!(
        seen,
        json!({"order": ["b2", "a1", "nonenull"], "values": [2, 1, null], "race": 1, "all": {"a": 1, "b": 2}})
    );
    let names = drive
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            FlowRecord::Host { name, .. } => Some(name.as_str()),
            _ => None,
        });
    assert_eq!(names.count(), 8);
}

/// Errors of effects and of context calls, with their fields, are thrown again.
#[test]
fn thrown_errors_and_finally_are_replayed() {
    let desk = flow_desk(
        "const log = [];
         try {
           try { yield ctx.tool('pay', {}); } catch (e) { log.push(e.name, e.code, e.message, e.tool); }
           try { await ctx.session.kv.set('__zupa.x', 1); } catch (e) { log.push(e.code, e.key); }
           try { await ctx.consumeQueued(); } catch (e) { log.push(e.code); } finally { log.push('f'); }
           yield ctx.say(log.join());
           throw new Error('boom');
         } finally { yield ctx.say('cleanup'); }",
    );
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    let thrown = FlowError::tool("timeout", "too slow").with("tool", "pay");
    let said = drive.resume(Resume::Throw(thrown), None);
    assert_eq!(
        say(&said),
        "ToolError,timeout,too slow,pay,reserved_key,__zupa.x,unknown_call,f"
    );
    assert_eq!(say(&drive.resume(Resume::Value(None), None)), "cleanup");
    let end = drive.resume(Resume::Value(None), None);
    assert!(
        matches!(&end, ProgramStep::Failed(f) if f.code == "exception" && f.message == "boom"),
        "{end:?}"
    );
}

/// Z-63 (half: both run their `finally` blocks, and what they yield there is given back)
#[test]
fn closing_runs_finally_blocks() {
    let desk = flow_desk("try { yield ctx.ask('k', 'K?'); } finally { yield ctx.say('bye'); }");
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    let bye = json!({"type": "say", "text": "bye"});
    assert_eq!(drive.close(), (vec![bye.clone()], vec![bye.clone()]));

    let desk = flow_desk(
        "try { yield ctx.ask('k', 'K?'); }
         finally { await ctx.session.kv.set('done', 1); yield ctx.say('bye'); }",
    );
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    let set = json!({"type": "call", "name": "session.kv.set", "args": ["done", 1]});
    let ignored = vec![set, bye];
    assert_eq!(drive.close(), (ignored.clone(), ignored));
}

/// Z-49 (half: what is no effect is journaled with what is wrong with it, and refused by the engine with that text)
#[test]
fn yielded_value_that_is_no_effect_keeps_its_problem() {
    let desk = flow_desk(
        "for (const bad of [1n, 'text', [1], null]) { try { yield bad; } catch (e) { await ctx.session.kv.set('x', e.code); } }
         try { yield { type: 'say', text: 1n }; } catch (e) { yield ctx.say(e.code); }",
    );
    let (mut drive, mut step) = Drive::start(&desk, desk.flow_start("f"));
    for expected in ["big_int", "string", "array", "null", "BigInt"] {
        let ProgramStep::Yielded(effect) = &step else {
            panic!("no effect: {step:?}")
        };
        let refused = FlowEffect::parse(effect).expect_err("a refusal");
        assert!(
            refused.to_string().contains(expected),
            "{refused} without {expected}"
        );
        step = drive.resume(Resume::Throw(refused.into()), None);
    }
    assert_eq!(say(&step), "bad_effect");
}

/// Z-208 (half: variables of a module belong to one run and are rebuilt with it)
#[test]
fn module_variables_are_rebuilt() {
    let flow = "let n = 0;\nexport const f = async function* (ctx) { for (;;) { n += 1; yield { type: 'say', text: String(n) }; } };";
    let desk = desk(&[("demo/agent.ts", &agent("")), ("demo/flows/f.ts", flow)]);
    let (mut drive, _) = Drive::start(&desk, desk.flow_start("f"));
    assert_eq!(say(&drive.resume(Resume::Value(None), None)), "2");
    assert_eq!(say(&drive.resume(Resume::Value(None), None)), "3");
    let (_, other) = Drive::start(&desk, desk.flow_start("f"));
    assert_eq!(say(&other), "1");
}

/// Z-214 (half: a run goes on with the code, the time zone and the language it began with)
#[test]
fn rebuilt_run_keeps_its_code_and_zone() {
    let zone = "scheduler: { timezone: 'Asia/Tokyo' }, language: 'ja'";
    let flow = "export const f = async function* (ctx) { for (;;) yield { type: 'say', text: `${ctx.language} ${new Date(0).getHours()}` }; };";
    let desk = desk(&[("demo/agent.ts", &agent(zone)), ("demo/flows/f.ts", flow)]);
    let (mut drive, first) = Drive::start(&desk, desk.flow_start("f"));
    assert_eq!(say(&first), "ja 9");
    desk.write("demo/agent.ts", &agent(""));
    desk.write("demo/flows/f.ts", &flow.replace("ctx.language", "'new'"));
    desk.registry.reload();
    assert_eq!(say(&drive.resume(Resume::Value(None), None)), "ja 9");
    assert!(drive.rebuilt().memory_bytes() > 100_000);
}
