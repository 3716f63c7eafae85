//! Chunks and what subscriptions get from them.

use super::*;
use tandem_record::{TenantId, Webhook, WebhookHealth};
use tandem_store::FeedRow;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn subscription(events: &[&str]) -> Subscription {
    Subscription {
        webhook: Webhook {
            id: WebhookId::new("wh-1"),
            tenant: TenantId::new("t1"),
            workspace: None,
            url: "https://example.com/in".to_owned(),
            events: events.iter().map(ToString::to_string).collect(),
            tags: Vec::new(),
            created_at: NOW,
            created_by: None,
            generation: 0,
            overlap_until: None,
            earlier_overlaps: Vec::new(),
        },
        health: WebhookHealth::default(),
        dropped: 0,
        feed_start: 0,
    }
}

fn published(events: &[(u64, &str)]) -> PublishedEvents {
    let events = events.iter();
    PublishedEvents {
        run: RunId::new("r1"),
        workspace: None,
        tags: Vec::new(),
        at: NOW,
        events: events
            .map(|(seq, name)| (Seq(*seq), (*name).to_owned()))
            .collect(),
    }
}

/// A feed whose rows are numbered from `first`.
fn feed(first: u64, rows: &[PublishedEvents]) -> WebhookFeed {
    let rows: Vec<FeedRow> = (first..)
        .zip(rows)
        .map(|(position, row)| FeedRow {
            position,
            body: serde_json::to_string(row).expect("plain data"),
        })
        .collect();
    WebhookFeed {
        head: rows.last().map_or(0, |row| row.position),
        chunk: None,
        rows,
    }
}

fn select(feed: WebhookFeed) -> Chunk {
    let selected = Chunk::select(feed).expect("the rows are readable");
    selected.expect("there are rows")
}

fn delivered(changes: &[WebhookChange]) -> Vec<u64> {
    let delivered = changes.iter().filter_map(|change| match change {
        WebhookChange::Deliver { seq, .. } => Some(seq.0),
        _ => None,
    });
    delivered.collect()
}

#[test]
fn chunk_has_a_bounded_number_of_events() {
    let row = published(&[(0, "a"); 15]);
    assert_eq!(select(feed(5, &vec![row; 9])).end, 6, "30 events");
    let large = published(&[(0, "a"); 100]);
    assert_eq!(select(feed(5, &vec![large; 3])).end, 5, "at least one row");
    assert_eq!(Chunk::select(WebhookFeed::default()), Ok(None));
}

#[test]
fn chunk_under_way_keeps_its_end_and_skips_subscriptions_that_are_done() {
    let mut resumed = feed(5, &vec![published(&[(0, "a")]); 9]);
    resumed.chunk = Some((7, WebhookId::new("wh-b")));
    assert_eq!(Chunk::rows_needed(&resumed), 3);
    let chunk = select(resumed);
    assert_eq!(chunk.end, 7);
    let left = ["wh-a", "wh-b", "wh-c"].map(|id| chunk.is_left_for(&WebhookId::new(id)));
    assert_eq!(left, [false, false, true]);
}

#[test]
fn subscription_gets_only_what_it_asks_for_and_only_later_rows() {
    let rows = [
        published(&[(1, "a"), (2, "b")]),
        published(&[(3, "a"), (4, "b"), (5, "a")]),
    ];
    let chunk = select(feed(8, &rows));
    let mut of_a = subscription(&["a"]);
    assert_eq!(delivered(&chunk.deliveries_for(&of_a)), [1, 3, 5]);
    of_a.feed_start = 8;
    assert_eq!(delivered(&chunk.deliveries_for(&of_a)), [3, 5]);
    of_a.feed_start = 9;
    assert!(chunk.deliveries_for(&of_a).is_empty());
}

#[test]
fn workspace_and_tags_restrict_a_subscription() {
    let of_run = PublishedEvents {
        workspace: Some("w1".into()),
        tags: vec!["red".to_owned()],
        ..published(&[(1, "a")])
    };
    let chunk = select(feed(1, &[of_run]));
    let count = |workspace: Option<&str>, tags: &[&str]| {
        let mut to = subscription(&["a"]);
        to.webhook.workspace = workspace.map(Into::into);
        to.webhook.tags = tags.iter().map(ToString::to_string).collect();
        chunk.deliveries_for(&to).len()
    };
    assert_eq!(
        (count(None, &[]), count(Some("w1"), &["blue", "red"])),
        (1, 1)
    );
    assert_eq!((count(Some("w2"), &[]), count(None, &["blue"])), (0, 0));
}

#[test]
fn failed_subscription_gets_what_happened_before_it_failed() {
    let chunk = select(feed(1, &[published(&[(1, "a")])]));
    let mut failed = subscription(&["a"]);
    failed.health.failed_at = Some(NOW.plus_ms(1));
    assert_eq!(delivered(&chunk.deliveries_for(&failed)), [1]);
    failed.health.failed_at = Some(NOW);
    assert!(chunk.deliveries_for(&failed).is_empty());
}

#[test]
fn feed_that_grows_too_long_is_shortened_and_the_loss_is_counted() {
    let mut rows = vec![published(&[(1, "often")]); ROWS_TO_SHORTEN];
    rows[3] = published(&[(7, "rare")]);
    let mut long = feed(1, &rows);
    assert_eq!(Chunk::rows_needed(&long), ROWS_PER_CHUNK);
    long.head = 1 + MAX_FEED_ROWS;
    assert_eq!(Chunk::rows_needed(&long), ROWS_TO_SHORTEN);
    let chunk = select(long);
    assert_eq!(chunk.end, ROWS_TO_SHORTEN as u64);
    let often = chunk.deliveries_for(&subscription(&["often"]));
    let dropped = WebhookChange::Drop {
        webhook: WebhookId::new("wh-1"),
        count: (ROWS_TO_SHORTEN - 1 - KEPT_WHEN_SHORTENED) as u64,
    };
    assert_eq!(often[0], dropped);
    assert_eq!(delivered(&often).len(), KEPT_WHEN_SHORTENED);
    let rare = chunk.deliveries_for(&subscription(&["rare"]));
    assert_eq!((rare.len(), delivered(&rare)), (1, vec![7]));
}
