//! Changes of files are taken over while the host runs.

use super::fixtures::*;
use super::loading::{BOOKING, samples};
use crate::AgentWatcher;
use crate::discover::{AgentPlace, Snapshot, snapshot};
use crate::watch::PendingChange;

fn snapshot_of(desk: &Desk) -> Snapshot {
    snapshot(&[AgentPlace {
        id: "demo".to_owned(),
        path: desk.folder.path().join("demo"),
    }])
}

#[tokio::test]
async fn watcher_takes_a_change_over() {
    let desk = samples();
    let old = desk.version_of("booking");
    let mut changes = desk.registry.changes();
    let watcher = AgentWatcher::start(desk.registry.clone()).expect("a thread");
    desk.write(
        "demo/flows/booking.ts",
        &BOOKING.replace("When", "NEW: when"),
    );
    changes.changed().await.expect("the registry lives");
    assert_ne!(desk.version_of("booking"), old);
    desk.write("other/agent.ts", &agent(""));
    changes.changed().await.expect("the registry lives");
    assert_eq!(desk.registry.ids().len(), 2);
    drop(watcher);
}

/// What new turns use did not change.
#[test]
fn load_without_a_change_is_not_announced() {
    let desk = samples();
    let changes = desk.registry.changes();
    desk.registry.reload();
    desk.write("demo/flows/notes.txt", "nothing of an agent");
    desk.registry.reload();
    assert!(!changes.has_changed().expect("the registry lives"));
}

#[test]
fn change_is_taken_over_when_the_files_are_quiet() {
    let desk = samples();
    let loaded = snapshot_of(&desk);
    let mut pending = PendingChange::default();
    let mut settled = |files: &Snapshot| pending.is_settled(*files == loaded, files.clone());
    assert!(!settled(&loaded));
    desk.write("demo/flows/booking.ts", "half a fi");
    let half = snapshot_of(&desk);
    assert!(!settled(&half));
    desk.write("demo/flows/booking.ts", "half a file, and the rest");
    let whole = snapshot_of(&desk);
    assert!(!settled(&whole));
    assert!(settled(&whole));
}

#[test]
fn files_that_never_rest_are_loaded_all_the_same() {
    let desk = samples();
    let mut pending = PendingChange::default();
    let mut looks = 0;
    loop {
        looks += 1;
        desk.write("demo/flows/booking.ts", &"x".repeat(looks));
        if pending.is_settled(false, snapshot_of(&desk)) {
            break;
        }
    }
    assert!((2..10).contains(&looks), "{looks}");
}

/// Packages are large; a change there is noticed with the file that imports them.
#[test]
fn packages_are_not_watched() {
    let desk = samples();
    let before = snapshot_of(&desk);
    desk.write("demo/node_modules/x/index.js", "export const x = 1;");
    assert_eq!(snapshot_of(&desk), before);
    desk.write(
        "demo/tools/t.ts",
        "export const t = { handler: async () => 1 };",
    );
    assert_ne!(snapshot_of(&desk), before);
}
