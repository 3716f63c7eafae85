//! Runs simulations by seed: `--seed N` for one, `--seeds A..B` for many. Without `--only`, a range is
//! simulated with one process at a time, a part of it with several, and a few on SQLite files.

use clap::{Parser, ValueEnum};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tandem_store::Store;
use tandem_store_sqlite::{Options, SqliteStore};
use tandem_testkit::sim::{
    OpenStore, SimulationStats, StoreKind, Summary, run_conversations, run_crash_points, run_many,
    run_many_conversations, run_many_processes, run_processes, run_seeds,
};

#[derive(Parser)]
struct Arguments {
    /// One seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A range of seeds, the end excluded.
    #[arg(long, value_parser = range, default_value = "0..1000")]
    seeds: Range<u64>,
    /// Only one kind of simulation.
    #[arg(long)]
    only: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Incarnations of one process, one after the other.
    Incarnations,
    /// Several processes at the same time.
    Processes,
    /// Several processes on an SQLite file.
    Sqlite,
    /// Conversations, with one or several processes.
    Conversations,
    /// The same on an SQLite file.
    ConversationsSqlite,
    /// A short conversation whose process ends at each of its commits.
    ConversationCrashes,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Incarnations,
        Self::Processes,
        Self::Sqlite,
        Self::Conversations,
        Self::ConversationsSqlite,
        Self::ConversationCrashes,
    ];

    /// Simulations of several processes take longer: of a range, only the first seeds.
    fn share(self, seeds: &Range<u64>) -> Range<u64> {
        let count = seeds.end.saturating_sub(seeds.start);
        match self {
            Self::Incarnations => seeds.clone(),
            Self::Processes | Self::Conversations => seeds.start..seeds.start + count.div_ceil(8),
            Self::Sqlite | Self::ConversationsSqlite => {
                seeds.start..seeds.start + count.div_ceil(250)
            }
            Self::ConversationCrashes => seeds.start..seeds.start + count.div_ceil(500),
        }
    }

    fn simulate(self, seeds: Range<u64>) -> Summary {
        match self {
            Self::Incarnations => run_many(seeds),
            Self::Processes => run_many_processes(seeds),
            Self::Sqlite => run_seeds(seeds, "sqlite", |seed| on_sqlite(seed, run_processes)),
            Self::Conversations => run_many_conversations(seeds),
            Self::ConversationsSqlite => run_seeds(seeds, "conversations-sqlite", |seed| {
                on_sqlite(seed, run_conversations)
            }),
            Self::ConversationCrashes => run_seeds(seeds, "conversation-crashes", run_crash_points),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Incarnations => "one process at a time",
            Self::Processes => "several processes",
            Self::Sqlite => "several processes on SQLite",
            Self::Conversations => "conversations",
            Self::ConversationsSqlite => "conversations on SQLite",
            Self::ConversationCrashes => "conversations with a crash at each commit",
        }
    }
}

type Simulate = fn(u64, OpenStore, StoreKind) -> Result<SimulationStats, String>;

fn on_sqlite(seed: u64, simulate: Simulate) -> Result<SimulationStats, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join("sim.db");
    let store = SqliteStore::open(path, Options::default()).map_err(|fault| fault.to_string())?;
    let store: Arc<dyn Store> = Arc::new(store);
    simulate(seed, Arc::new(move || Arc::clone(&store)), StoreKind::Disk)
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|e| e.to_string());
    Ok(number(from)?..number(to)?)
}

#[expect(clippy::print_stdout, reason = "prints its results")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = arguments
        .seed
        .map_or(arguments.seeds, |seed| seed..seed + 1);
    let mut failed = false;
    for kind in Kind::ALL {
        let seeds = match arguments.only {
            Some(only) if only != kind => continue,
            Some(_) => seeds.clone(),
            None => kind.share(&seeds),
        };
        let started = Instant::now();
        let summary = kind.simulate(seeds);
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{}: {} seeds in {seconds:.1} s: {:?}",
            kind.name(),
            summary.seeds,
            summary.stats
        );
        for failure in &summary.failures {
            println!("{failure}");
        }
        failed |= !summary.failures.is_empty();
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
