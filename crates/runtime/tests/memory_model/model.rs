//! The model: every run has its own copy of the memory, copied at its start and at every event.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tandem_record::{Event, ForkMode, RecordedEvent, RunId, Seq, Timestamp};

/// Visible values by key.
pub(crate) type VisibleEntries = BTreeMap<String, Value>;

/// One write: its position in the order of all writes, and its value. `None` is a deletion.
#[derive(Clone, Debug)]
struct Write {
    order: u64,
    value: Option<(Value, Option<Timestamp>)>,
}

#[derive(Clone, Debug, Default)]
struct MemoryState {
    entries: BTreeMap<String, Write>,
    /// Keys the run deleted itself: invisible to its children, not to itself.
    removed: BTreeMap<String, u64>,
}

impl MemoryState {
    fn put(&mut self, key: &str, write: &Write) {
        let newer = self.entries.get(key).is_none_or(|w| w.order < write.order);
        if newer {
            self.entries.insert(key.to_owned(), write.clone());
        }
    }

    fn for_child(&self) -> Self {
        let mut copy = Self {
            entries: self.entries.clone(),
            removed: BTreeMap::new(),
        };
        for (key, order) in &self.removed {
            let gone = Write {
                order: *order,
                value: None,
            };
            copy.put(key, &gone);
        }
        copy
    }

    fn visible_entries(&self, now: Timestamp) -> VisibleEntries {
        let present = self.entries.iter().filter_map(|(key, write)| {
            let (value, expires) = write.value.as_ref()?;
            let over = expires.is_some_and(|at| at <= now);
            (!over).then(|| (key.clone(), value.clone()))
        });
        present.collect()
    }
}

struct ModelRun {
    scope: String,
    /// What was visible before each event, and after the last.
    views: Vec<MemoryState>,
    /// Everything written by the run and by the children whose end it saw.
    writes: Vec<(String, Write)>,
    /// Whether its writes change the scope.
    live: bool,
    fork_point: u64,
    ended: bool,
    events_applied: usize,
}

#[derive(Default)]
pub(crate) struct Model {
    runs: HashMap<RunId, ModelRun>,
    order: Vec<RunId>,
    scopes: HashMap<String, MemoryState>,
    /// The newest child by parent and node.
    started: HashMap<(RunId, String), RunId>,
    /// Texts of the permanent notes, by scope.
    notes: HashMap<String, BTreeMap<String, Vec<String>>>,
    clock: u64,
    forks: usize,
    collapsed: usize,
    above: u64,
}

impl Model {
    pub(crate) fn new(above: u64) -> Self {
        Self {
            above,
            ..Self::default()
        }
    }

    fn add(&mut self, run: &RunId, scope: String, first: MemoryState) -> &mut ModelRun {
        self.order.push(run.clone());
        self.runs.entry(run.clone()).or_insert(ModelRun {
            scope,
            views: vec![first],
            writes: Vec::new(),
            live: true,
            fork_point: 0,
            ended: false,
            events_applied: 0,
        })
    }

    pub(crate) fn begin(&mut self, run: &RunId, scope: &str) {
        let first = self.scopes.entry(scope.to_owned()).or_default().clone();
        self.add(run, scope.to_owned(), first);
    }

    pub(crate) fn begin_child(&mut self, child: &RunId, parent: &RunId, at: Seq, isolated: bool) {
        if isolated {
            self.add(child, child.to_string(), MemoryState::default());
            return;
        }
        let parent = &self.runs[parent];
        let first = parent.views[at.0 as usize].for_child();
        let scope = parent.scope.clone();
        self.add(child, scope, first);
    }

    pub(crate) fn fork(&mut self, fork: &RunId, source: &RunId, from: Seq, mode: ForkMode) {
        self.forks += 1;
        let begun = self.started.iter().filter(|((run, _), _)| run == source);
        let begun: Vec<_> = begun
            .map(|((_, node), child)| ((fork.clone(), node.clone()), child.clone()))
            .collect();
        self.started.extend(begun);
        let source = &self.runs[source];
        let scope = source.scope.clone();
        let views = match mode {
            ForkMode::Branch => source.views[..=from.0 as usize].to_vec(),
            // A replay sees what its source saw, up to the last recorded event.
            ForkMode::Replay => source.views.clone(),
        };
        let run = self.add(fork, scope, MemoryState::default());
        run.views = views;
        run.fork_point = from.0;
        run.live = mode == ForkMode::Branch;
    }

    pub(crate) fn runs(&self) -> Vec<RunId> {
        self.order.clone()
    }

    pub(crate) fn forks(&self) -> usize {
        self.forks
    }

    pub(crate) fn collapsed(&self) -> usize {
        self.collapsed
    }

    /// Texts of a scope's permanent notes, sorted.
    pub(crate) fn notes(&self, scope: &str) -> Vec<String> {
        let notes = self.notes.get(scope).into_iter().flatten();
        let mut texts: Vec<String> = notes.flat_map(|(_, texts)| texts.clone()).collect();
        texts.sort_unstable();
        texts
    }

    pub(crate) fn contains(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// Whether a child can write nothing more.
    pub(crate) fn caught_up(&self, child: &RunId) -> bool {
        self.runs.get(child).is_some_and(|run| run.ended)
    }

    pub(crate) fn mark(&mut self, child: &RunId, ended: bool) {
        let run = self.runs.get_mut(child).expect("the child began");
        run.ended = ended;
    }

    /// Children the run started itself: not those of its source, nor any of a replay.
    pub(crate) fn own_children(
        &self,
        run: &RunId,
        children: &[RunId],
        log: &[RecordedEvent],
    ) -> Vec<RunId> {
        let model_run = &self.runs[run];
        if !model_run.live {
            return Vec::new();
        }
        let own = |child: &&RunId| {
            log.iter().any(|r| {
                r.seq.0 >= model_run.fork_point
                    && matches!(&r.event, Event::NodeDispatched { child: c, .. } if c == *child)
            })
        };
        children.iter().filter(own).cloned().collect()
    }

    pub(crate) fn events_applied(&self, run: &RunId) -> usize {
        let run = &self.runs[run];
        run.events_applied.max(run.fork_point as usize)
    }

    pub(crate) fn read(&self, run: &RunId, key: &str, now: Timestamp) -> Option<Value> {
        self.visible_entries(run, now).remove(key)
    }

    /// What a run sees before its next event.
    pub(crate) fn visible_entries(&self, run: &RunId, now: Timestamp) -> VisibleEntries {
        let run = &self.runs[run];
        let next = run.events_applied.max(run.fork_point as usize);
        run.views[next].visible_entries(now)
    }

    pub(crate) fn view(&self, run: &RunId, at: Seq, now: Timestamp) -> VisibleEntries {
        self.runs[run].views[at.0 as usize].visible_entries(now)
    }

    /// Applies the next event of a run.
    pub(crate) fn event(&mut self, run: &RunId, recorded: &RecordedEvent) {
        if let Event::NodeDispatched { node, child, .. } = &recorded.event {
            let place = (run.clone(), node.to_string());
            self.started.insert(place, child.clone());
        }
        let joined = self.joined(run, recorded);
        self.clock += 1;
        let order = self.clock;
        let model_run = self.runs.get_mut(run).expect("the run began");
        model_run.events_applied = recorded.seq.0 as usize + 1;
        if !model_run.live {
            if model_run.views.len() <= model_run.events_applied {
                let last = model_run
                    .views
                    .last()
                    .expect("there is a first view")
                    .clone();
                model_run.views.push(last);
            }
            return;
        }
        let mut view = model_run
            .views
            .last()
            .expect("there is a first view")
            .clone();
        let notes = self.notes.entry(model_run.scope.clone()).or_default();
        match &recorded.event {
            Event::MemoryWritten { entry, .. } => {
                let write = Write {
                    order,
                    value: Some((entry.value.clone(), entry.expires_at)),
                };
                view.put(&entry.key, &write);
                model_run.writes.push((entry.key.clone(), write.clone()));
                let scope = self.scopes.entry(model_run.scope.clone()).or_default();
                scope.put(&entry.key, &write);
                if entry.is_note() && entry.expires_at.is_none() {
                    notes.insert(entry.id.clone(), vec![entry.value.to_string()]);
                }
            }
            Event::MemoryCompacted {
                output, sources, ..
            } => {
                self.collapsed += 1;
                // The oldest notes the run sees that still exist for everyone.
                let mut there: Vec<(u64, &String)> = notes
                    .keys()
                    .filter_map(|id| Some((view.entries.get(id)?.order, id)))
                    .collect();
                there.sort_unstable();
                assert!(
                    there.len() as u64 > self.above,
                    "{there:?} are not too many"
                );
                let oldest: Vec<&String> = there.iter().map(|(_, id)| *id).collect();
                assert!(sources.len() > 1, "{sources:?}");
                assert!(
                    oldest.iter().zip(sources).all(|(a, b)| *a == b),
                    "{oldest:?} before {sources:?}"
                );
                let texts: Vec<String> = sources
                    .iter()
                    .flat_map(|id| notes.remove(id))
                    .flatten()
                    .collect();
                assert_eq!(output.value, texts.join("\n").as_str());
                notes.insert(output.id.clone(), texts);
                let scope = self.scopes.entry(model_run.scope.clone()).or_default();
                let mut write = |key: &str, value: Option<(Value, Option<Timestamp>)>| {
                    let write = Write { order, value };
                    scope.put(key, &write);
                    model_run.writes.push((key.to_owned(), write.clone()));
                    write
                };
                let made = write(&output.id, Some((output.value.clone(), None)));
                view.put(&output.id, &made);
                for id in sources {
                    write(id, None);
                    view.removed.insert(id.clone(), order);
                }
            }
            Event::MemoryDeleted { forgotten, .. } => {
                let write = Write { order, value: None };
                notes.remove(forgotten);
                view.removed.insert(forgotten.clone(), order);
                model_run.writes.push((forgotten.clone(), write.clone()));
                let scope = self.scopes.entry(model_run.scope.clone()).or_default();
                scope.put(forgotten, &write);
            }
            _ => {}
        }
        for (key, write) in joined {
            view.put(&key, &write);
            model_run.writes.push((key, write));
        }
        model_run.views.push(view);
    }

    /// Writes that become visible because the event records the end of a child.
    fn joined(&self, run: &RunId, recorded: &RecordedEvent) -> Vec<(String, Write)> {
        let (node, ended) = match &recorded.event {
            Event::NodeCompleted { node, child, .. }
            | Event::NodeFailed { node, child, .. }
            | Event::NodeCancelled { node, child, .. } => (node, child),
            _ => return Vec::new(),
        };
        if ended.is_none_or(|status| !status.is_terminal()) {
            return Vec::new();
        }
        let child = self.started.get(&(run.clone(), node.to_string()));
        let Some(child) = child.and_then(|child| self.runs.get(child)) else {
            return Vec::new();
        };
        if child.scope != self.runs[run].scope {
            return Vec::new();
        }
        child.writes.clone()
    }
}
