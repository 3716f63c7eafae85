//! The real SQLite on a faulty disk: failing and partial writes, a full disk, a failing fsync, and
//! a power failure at any moment that loses unsynced data, completely or in part.
//!
//! A victim process commits on a preloaded disk (`faulty_disk/disk.c`) that fails according to a
//! seed and journals every change. From that journal the test builds what the disk would hold after
//! a power failure at some moment, opens the store on it and checks: every acknowledged commit is
//! there, no commit is there in part, and the store takes the next one.
//!
//! `TANDEM_DISK_SEEDS=100..200` tries other seeds. A failure prints its seed and moment.

#![cfg(target_os = "linux")]

#[path = "faulty_disk/journal.rs"]
mod journal;

use journal::{Journal, Rng};
use rusqlite::{Connection, OpenFlags};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use tandem_record::{Principal, Seq, StreamId, TenantId, Timestamp};
use tandem_store::battery::sample::commit;
use tandem_store::{
    Append, Commit, Error, IdempotencyKey, IdempotencyRecord, KeyRecord, NewEvent, Store,
    StoredResponse,
};
use tandem_store_sqlite::{Options, SqliteStore};

const DIRECTORY: &str = "TANDEM_TEST_DIRECTORY";
const COMMITS: &str = "TANDEM_TEST_COMMITS";
const SEEDS: &str = "TANDEM_DISK_SEEDS";
/// Number of processes that use the disk of one seed, one after the other.
const RESTARTS: u64 = 3;
/// Number of power failures per seed.
const CUTS: usize = 8;

/// Streams that every commit appends to, and how many events it appends.
const STREAMS: [(&str, u64); 2] = [("run:wide", 3), ("run:narrow", 1)];

/// Length of the large texts.
const LARGE: usize = 300_000;

/// The `n`-th commit. Most are small; some fill many pages, so that there are checkpoints.
fn numbered(n: u64) -> Commit {
    let appends = commit(STREAMS.map(|(stream, count)| {
        Append {
            stream: StreamId::new(stream),
            after: (n > 0).then(|| Seq(n * count - 1)),
            events: (0..count)
                .map(|_| NewEvent {
                    at: Timestamp(0),
                    body: body(stream, n),
                })
                .collect(),
            run: None,
            snapshot: None,
        }
    }));
    Commit {
        key: Some(key(n)),
        idempotency: vec![response(n)],
        ..appends
    }
}

/// Names in an order of their own, so that commits write to different pages.
fn scattered(n: u64) -> String {
    format!("{:016x}", Rng(n).next())
}

/// The key that the `n`-th commit makes.
fn key(n: u64) -> KeyRecord {
    KeyRecord {
        key_id: format!("k{}", scattered(n)),
        hash: format!("hash of key {n}"),
        name: String::new(),
        tenant: TenantId::new("t"),
        workspace: None,
        principal: Principal::new("p"),
        scopes: Vec::new(),
        roles: Vec::new(),
        created_at: Timestamp(0),
        expires_at: None,
        revoked_at: None,
        made_by: None,
        rotates: None,
        agent: None,
    }
}

/// The response to the request that makes it.
fn response(n: u64) -> IdempotencyRecord {
    IdempotencyRecord {
        key: IdempotencyKey(format!("request {}", scattered(n))),
        digest: String::new(),
        response: StoredResponse {
            status: 201,
            body: String::new(),
        },
        recorded_at: Timestamp(0),
        session: None,
    }
}

/// The text hardly compresses, so that large commits fill the WAL.
fn body(stream: &str, n: u64) -> String {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut rng = Rng(0);
        let letter = |_| char::from(b'0' + u8::try_from(rng.below(64)).expect("below 64"));
        let text = (0..LARGE + 1_000).map(letter);
        text.map(|c| if c == '\\' { 'z' } else { c }).collect()
    });
    let large = stream == STREAMS[0].0 && n % 4 == 3;
    let length = if large { LARGE } else { 100 };
    let from = usize::try_from(n % 1_000).expect("a small number");
    format!("\"{n} {}\"", &TEXT[from..from + length])
}

/// How many commits the store holds. `Err` when one is there in part.
async fn commits_in(store: &Arc<dyn Store>) -> Result<u64, String> {
    let mut counts = Vec::new();
    for (stream, count) in STREAMS {
        let slice = store.events(&StreamId::new(stream), None, usize::MAX).await;
        let events = slice.map_err(|fault| fault.to_string())?.events;
        let belongs = |place: usize| events[place].body == body(stream, place as u64 / count);
        if let Some(place) = (0..events.len()).find(|place| !belongs(*place)) {
            return Err(format!("{stream} has something else at {place}"));
        }
        if !(events.len() as u64).is_multiple_of(count) {
            return Err(format!("half a commit in {stream}"));
        }
        counts.push(events.len() as u64 / count);
    }
    let keys = store.list_keys(None).await;
    let keys = keys.map_err(|fault| fault.to_string())?.len() as u64;
    // A key without the response to its request would be made a second time.
    for n in 0..=keys {
        let found = store.idempotency_record(&response(n).key).await;
        let found = found.map_err(|fault| fault.to_string())?;
        if found.is_some() != (n < keys) {
            return Err(format!(
                "{keys} keys, but the response to request {n}: {found:?}"
            ));
        }
    }
    match counts[..] {
        [wide, narrow] if wide == narrow && narrow == keys => Ok(wide),
        _ => Err(format!(
            "a commit is there in part: {counts:?}, {keys} keys"
        )),
    }
}

/// Not a test of its own: commits on the given disk and journals what was acknowledged.
#[tokio::test(flavor = "current_thread")]
#[ignore = "the victim of the test below"]
async fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let wanted: u64 = std::env::var(COMMITS).unwrap().parse().unwrap();
    let acknowledged = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("acknowledged"));
    let mut acknowledged = acknowledged.unwrap();
    let opened = SqliteStore::open(directory.join("tandem.db"), Options::default());
    let store: Arc<dyn Store> = match opened {
        Ok(store) => Arc::new(store),
        Err(fault) => {
            assert_ne!(fault.code, "corrupt", "{fault}");
            return;
        }
    };
    let narrow = StreamId::new(STREAMS[1].0);
    let mut reader = None;
    for number in 0..wanted {
        // Another program that reads for a while, as a backup does. What was committed since it
        // began cannot be moved out of the WAL.
        match number % 6 {
            2 => reader = begin_read(&directory.join("tandem.db")),
            5 => reader = None,
            _ => {}
        }
        // A commit that was reported as failed may have been made.
        let Ok(events) = store.events(&narrow, None, usize::MAX).await else {
            continue;
        };
        let n = events.events.len() as u64;
        match store.commit(numbered(n)).await {
            Ok(_) => acknowledged.write_all(&n.to_le_bytes()).unwrap(),
            Err(Error::Fault(fault)) => assert_ne!(fault.code, "corrupt", "{fault}"),
            Err(Error::Conflict(conflict)) => panic!("no other writer: {conflict}"),
        }
    }
    // It would make the close wait.
    drop(reader);
    // Some processes shut down, some do not.
    if wanted.is_multiple_of(2) {
        store.close().await;
    }
    drop(acknowledged);
    std::process::exit(0);
}

/// A connection that holds the present state of the database.
fn begin_read(path: &Path) -> Option<Connection> {
    let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    reader.execute_batch("BEGIN").ok()?;
    let held = reader.query_row("SELECT count(*) FROM streams", (), |_| Ok(()));
    held.ok().map(|()| reader)
}

fn seeds() -> Range<u64> {
    let given = std::env::var(SEEDS).ok();
    let given = given.as_deref().and_then(|text| text.split_once(".."));
    given.map_or(0..12, |(from, to)| {
        from.parse().expect("a seed")..to.parse().expect("a seed")
    })
}

fn compiled(into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faulty_disk/disk.c");
    let library = into.join("disk.so");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status();
    assert!(compiler.expect("there is a C compiler").success());
    library
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_disk_loses_no_acknowledged_commit_and_leaves_none_partial() {
    let tools = tempfile::tempdir().unwrap();
    let disk = compiled(tools.path());
    let mut acknowledged = 0;
    for seed in seeds() {
        let place = tempfile::tempdir().unwrap();
        acknowledged += one_disk(seed, &disk, place.path()).await;
    }
    assert!(acknowledged > 0, "no commit was acknowledged at all");
}

async fn one_disk(seed: u64, disk: &Path, place: &Path) -> u64 {
    let mut rng = Rng(seed);
    let directory = place.join("disk");
    let journal = used_disk(seed, &mut rng, disk, &directory);
    let syncs = journal.syncs();
    // Half of them right before a sync: then most is unsynced.
    let mut cuts: Vec<usize> = (0..CUTS)
        .map(|number| match number % 2 {
            0 => rng.below(journal.len() + 1),
            _ => syncs[rng.below(syncs.len())],
        })
        .collect();
    // And once at the end of the journal.
    cuts.push(journal.len());
    for cut in cuts {
        let about = format!("seed {seed}, power gone after {cut} of {}", journal.len());
        check_power_cut(&journal, cut, &mut rng, place)
            .await
            .expect(&about);
    }
    let acknowledged_before = journal.acknowledged(journal.len());
    let about = format!("seed {seed}, no power cut");
    check_commits(&directory, acknowledged_before)
        .await
        .expect(&about);
    acknowledged_before
}

/// Several processes use one disk, one after the other.
fn used_disk(seed: u64, rng: &mut Rng, disk: &Path, directory: &Path) -> Journal {
    let written = directory.with_extension("journal");
    std::fs::create_dir(directory).unwrap();
    let per_mille = [0, 3, 10, 40][rng.below(4)];
    for restart in 0..RESTARTS {
        // Every third process ends on a disk that syncs nothing any more.
        let good_syncs = [usize::MAX, usize::MAX, 5 + rng.below(20)][rng.below(3)];
        let faults = Faults {
            seed: seed * RESTARTS + restart,
            per_mille,
            good_syncs,
            failing_sync: None,
        };
        run_victim(disk, directory, 5 + rng.below(30), faults);
    }
    Journal::read(&written)
}

/// What goes wrong for one process.
#[derive(Clone, Debug)]
struct Faults {
    seed: u64,
    per_mille: usize,
    /// Syncs of each file, before all of them fail.
    good_syncs: usize,
    /// A sync of a file by its number.
    failing_sync: Option<(&'static str, usize)>,
}

impl Faults {
    const NONE: Self = Self {
        seed: 0,
        per_mille: 0,
        good_syncs: usize::MAX,
        failing_sync: None,
    };
}

/// Attempts this many commits in a process on the given disk.
fn run_victim(disk: &Path, directory: &Path, commits: usize, faults: Faults) {
    let failing_sync = faults
        .failing_sync
        .map(|(file, number)| format!("{file}:{number}"));
    let victim = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "victim", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(COMMITS, commits.to_string())
        .env("LD_PRELOAD", disk)
        .env("FAULT_DIR", directory)
        .env("FAULT_JOURNAL", directory.with_extension("journal"))
        .env("FAULT_SEED", faults.seed.to_string())
        .env("FAULT_PER_MILLE", faults.per_mille.to_string())
        .env("FAULT_GOOD_SYNCS", faults.good_syncs.to_string())
        .env("FAULT_SYNC", failing_sync.unwrap_or_default())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&victim.stderr);
    assert!(victim.status.success(), "{faults:?}: {said}");
}

/// Checks that the store opens, holds at least the acknowledged commits and nothing in part, and
/// takes another one.
async fn check_commits(directory: &Path, acknowledged_before: u64) -> Result<(), String> {
    let opened = SqliteStore::open(directory.join("tandem.db"), Options::default());
    let store: Arc<dyn Store> = match opened {
        Ok(store) => Arc::new(store),
        // A file that never became a database may be refused with a message.
        Err(fault) if acknowledged_before == 0 && !fault.message.is_empty() => return Ok(()),
        Err(fault) => return Err(fault.to_string()),
    };
    let held = commits_in(&store).await?;
    if held < acknowledged_before {
        return Err(format!(
            "{acknowledged_before} were acknowledged, {held} are there"
        ));
    }
    let next = store.commit(numbered(held)).await;
    next.map_err(|error| error.to_string())?;
    let now = commits_in(&store).await?;
    store.close().await;
    match now == held + 1 {
        true => Ok(()),
        false => Err(format!("{held} and one more are {now}")),
    }
}

/// The WAL of a process whose last sync failed can be read by the next process, but is not on the
/// disk. The next process loses power during its start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_after_a_failed_sync_can_lose_power_at_any_moment() {
    let place = tempfile::tempdir().unwrap();
    let disk = compiled(place.path());
    let directory = place.path().join("disk");
    std::fs::create_dir(&directory).unwrap();
    let written = directory.with_extension("journal");
    run_victim(&disk, &directory, 60, Faults::NONE);
    let mut rng = Rng(0);
    for good_syncs in 3..6 {
        let failing = Faults {
            good_syncs,
            ..Faults::NONE
        };
        // An odd number: the process ends without a shutdown.
        run_victim(&disk, &directory, 9, failing);
        let before = Journal::read(&written).len();
        run_victim(&disk, &directory, 1, Faults::NONE);
        let journal = Journal::read(&written);
        let cuts = journal.syncs().into_iter().filter(|cut| *cut >= before);
        // What is lost is random.
        for cut in cuts.flat_map(|cut| [cut; 6]) {
            check_power_cut(&journal, cut, &mut rng, place.path())
                .await
                .unwrap_or_else(|error| {
                    panic!("{good_syncs} good syncs, power gone after {cut}: {error}")
                });
        }
    }
}

/// A checkpoint beside a reader moves a part of the WAL and syncs nothing. If the sync of a later
/// checkpoint fails, that part may be lost, and must not be removed from the WAL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_sync_of_a_checkpoint_loses_nothing_that_was_moved_before() {
    let place = tempfile::tempdir().unwrap();
    let disk = compiled(place.path());
    for number in 1..=8 {
        let directory = place.path().join(format!("disk-{number}"));
        std::fs::create_dir(&directory).unwrap();
        let failing = Faults {
            failing_sync: Some(("tandem.db", number)),
            ..Faults::NONE
        };
        run_victim(&disk, &directory, 80, failing);
        let journal = Journal::read(&directory.with_extension("journal"));
        let mut rng = Rng(number as u64);
        check_power_cut(&journal, journal.len(), &mut rng, place.path())
            .await
            .unwrap_or_else(|error| panic!("sync {number} failed: {error}"));
    }
}

/// Builds the disk after a power cut and checks the store on it.
async fn check_power_cut(
    journal: &Journal,
    cut: usize,
    rng: &mut Rng,
    place: &Path,
) -> Result<(), String> {
    let after = place.join("after");
    let acknowledged_before = journal.write_disk_after_power_cut(cut, rng, &after);
    let checked = check_commits(&after, acknowledged_before).await;
    std::fs::remove_dir_all(&after).unwrap();
    checked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_without_real_sync_is_detected_by_this_test() {
    let place = tempfile::tempdir().unwrap();
    let disk = compiled(place.path());
    // A seed whose processes get no other fault.
    let seed = (0..).find(|seed| Rng(*seed).below(4) == 0).unwrap();
    let mut rng = Rng(seed);
    let directory = place.path().join("disk");
    let journal = used_disk(seed, &mut rng, &disk, &directory).without_syncs();
    let mut lost = 0;
    for number in 0..CUTS {
        let after = place.path().join(format!("after-{number}"));
        let acknowledged_before =
            journal.write_disk_after_power_cut(journal.len(), &mut rng, &after);
        assert!(acknowledged_before > 0, "nothing was acknowledged");
        lost += usize::from(check_commits(&after, acknowledged_before).await.is_err());
    }
    assert!(lost > 0, "a disk without syncs lost nothing");
}
