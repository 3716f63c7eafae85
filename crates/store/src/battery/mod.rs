//! The promises of storage as executable checks. Any implementation runs all of them:
//!
//! ```ignore
//! async fn open() -> tandem_store::battery::Fresh { MyStore::open().into() }
//! tandem_store::battery!(tests open); // each check as its own #[tokio::test]
//! ```
//!
//! A check gets a store that is empty and its own, knows nothing of the database behind it, never
//! sleeps, and passes every time it needs as a value. A new check is a public function in the file
//! of its topic and one name in the list below.

pub mod append;
pub mod audit;
pub mod compaction;
pub mod concurrency;
pub mod definitions;
pub mod guards;
pub mod idempotency;
pub mod inbox;
pub mod interrupts;
pub mod keys;
pub mod lanes;
pub mod memory;
pub mod outbox;
pub mod people;
pub mod room;
pub mod runs;
pub mod sample;
pub mod setbacks;
pub mod settings;
pub mod snapshot;
pub mod timers;
pub mod webhooks;

use crate::Store;
use std::any::Any;
use std::sync::Arc;

/// A store nobody used yet.
pub struct Fresh {
    pub store: Arc<dyn Store>,
    /// Whatever must outlive the store: a temporary directory, a schema to drop.
    pub keep: Box<dyn Any + Send>,
}

impl<S: Store + 'static> From<S> for Fresh {
    fn from(store: S) -> Self {
        Self {
            store: Arc::new(store),
            keep: Box::new(()),
        }
    }
}

/// Every check, one after the other, each on a fresh store.
pub async fn run_all<F, Fut>(open: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Fresh>,
{
    crate::battery!(calls open);
}

/// `battery!(tests open)` makes a module of tests for each topic; `open` is an async function
/// beside the invocation that gives a [`Fresh`] store.
#[macro_export]
macro_rules! battery {
    ($mode:ident $open:ident) => {
        $crate::battery! { @$mode $open;
            append: begins_at_zero, continues_without_gaps, reads_in_pages, reads_in_pages_of_bytes,
                refuses_what_is_too_long, reads_from_any_place,
                refuses_a_stale_position,
                refuses_to_begin_twice, several_streams_advance_together,
                one_conflict_undoes_the_whole_commit, appends_of_one_commit_build_on_each_other,
                refuses_malformed_commits, keeps_bodies_byte_for_byte, closed_store_says_so;
            audit: grows_with_its_commit, a_refused_commit_tells_nothing,
                concurrent_commits_make_one_chain, finds_the_entry_of_a_decision,
                seals_follow_one_another;
            guards: lease_guard_needs_the_holder, scope_guard_sees_live_runs_only,
                a_scope_is_taken_in_its_workspace_only,
                a_failed_guard_leaves_no_trace, guards_look_before_the_commit_writes;
            idempotency: answers_what_was_committed, a_used_key_conflicts,
                a_conflicting_commit_records_no_answer, forgets_the_oldest_first;
            interrupts: bound_to_their_tenant, newest_first_and_filtered, closing_keeps_identity;
            inbox: sorted_as_people_read, selections_combine, follows_its_questions,
                pages_neither_repeat_nor_skip;
            outbox: leases_what_is_due_earliest_first, a_leased_entry_is_not_given_twice,
                an_expired_lease_is_taken_over, released_entries_come_back_later,
                release_needs_the_lease, breaks_leases_of_others, put_with_lease_is_leased,
                commits_remove_entries, put_replaces_an_entry, next_due_follows_leases,
                a_lost_lease_fences_its_old_holder, concurrent_leases_are_disjoint;
            lanes: tenants_and_targets_are_told_apart, begin_after_the_one_served_last,
                leasing_takes_only_what_was_asked_of_each_lane, many_waiting_entries_hide_nobody;
            setbacks: a_timer_put_off_makes_room_for_others, a_parked_timer_waits_for_a_retry,
                setting_a_timer_anew_forgets_its_failures, an_entry_put_off_counts_its_failures,
                a_parked_entry_waits_for_a_retry, only_the_holder_puts_an_entry_off,
                parked_work_is_listed_by_tenant;
            people: groups_are_replaced_by_name, delegations_end, a_refused_commit_changes_nobody;
            timers: due_in_order, set_moves_and_clear_removes, keys_are_told_apart,
                a_refused_commit_sets_no_timer;
            runs: bound_to_their_tenant, a_projection_follows_its_run, identity_is_fixed,
                lists_newest_first, filters_combine, pages_stay_stable_while_runs_arrive,
                scope_finds_live_runs, counts_by_status;
            definitions: a_tenant_shadows_the_shared_document,
                a_workspace_shadows_its_tenant_and_nobody_else,
                a_registration_can_depend_on_what_the_id_meant, unregistering_keeps_pinned_content,
                registering_again_moves_the_id, lists_what_the_tenant_sees,
                registers_only_with_its_commit;
            keys: found_by_hash, listed_by_tenant_oldest_first, revoked_once,
                a_secret_belongs_to_one_key, changes_are_told;
            compaction: lasting_keys_are_told_when_there_are_too_many,
                lasting_keys_are_those_of_the_view, what_is_gone_cannot_be_collapsed;
            memory: a_scope_is_readable_as_of_every_position, a_run_is_seen_up_to_one_of_its_events,
                bound_to_tenant_and_scope, counts_what_is_there_now,
                joins_in_order, a_refused_commit_remembers_nothing,
                a_buried_run_leaves_its_row_and_its_memory;
            room: a_tenant_sees_its_own;
            settings: set_and_get, set_if_absent_has_one_winner, ping_answers;
            webhooks: listed_by_tenant, a_change_keeps_health_tenant_and_log,
                deliveries_are_numbered_and_settled, the_log_is_paged_newest_first,
                the_log_is_bounded, deleting_leaves_nothing, decided_only_with_its_event,
                going_to_sleep_is_guarded, waking_moves_an_entry_earlier_only;
            snapshot: replaced_with_its_append, a_refused_append_keeps_the_old_one;
            concurrency: distinct_streams_all_succeed, one_winner_for_each_position,
                readers_see_whole_commits, one_winner_for_an_idempotency_key,
                one_live_run_for_a_scope, one_first_registration;
        }
    };
    (@tests $open:ident; $($topic:ident: $($check:ident),+;)+) => {$(
        mod $topic {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    let fresh = super::$open().await;
                    $crate::battery::$topic::$check(::std::sync::Arc::clone(&fresh.store)).await;
                    fresh.store.close().await;
                }
            )+
        }
    )+};
    (@calls $open:ident; $($topic:ident: $($check:ident),+;)+) => {$($(
        let fresh = $open().await;
        $crate::battery::$topic::$check(::std::sync::Arc::clone(&fresh.store)).await;
        fresh.store.close().await;
    )+)+};
}

#[cfg(test)]
mod tests {
    use super::Fresh;
    use crate::memory::MemoryStore;

    async fn open() -> Fresh {
        MemoryStore::new().into()
    }

    crate::battery!(tests open);

    #[tokio::test]
    async fn run_all_runs() {
        super::run_all(open).await;
    }
}
