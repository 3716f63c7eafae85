//! The storage contract as executable checks. Every implementation runs all of them:
//!
//! ```ignore
//! async fn open() -> tandem_store::battery::FreshStore { MyStore::open().into() }
//! tandem_store::battery!(tests open); // each check as its own #[tokio::test]
//! ```
//!
//! A check gets its own empty store, does not depend on the database behind it, never sleeps, and
//! passes every time it needs as a value. A new check is a public function in the file of its topic
//! and one name in the list below.

pub mod agent_log;
pub mod append;
pub mod audit;
pub mod chat_users;
pub mod compaction;
pub mod concurrency;
pub mod definitions;
pub mod escalations;
pub mod guards;
pub mod idempotency;
pub mod inbox;
pub mod interrupts;
pub mod keys;
pub mod lanes;
pub mod memory;
pub mod order;
pub mod outbox;
pub mod people;
pub mod processes;
pub mod proxies;
pub mod purged_sessions;
pub mod runs;
pub mod sample;
pub mod schedules;
pub mod sessions;
pub mod settings;
pub mod snapshot;
pub mod storage_usage;
pub mod test_records;
pub mod timers;
pub mod webhook_feed;
pub mod webhooks;
pub mod work_failures;

use crate::Store;
use std::any::Any;
use std::sync::Arc;

/// An empty store.
pub struct FreshStore {
    pub store: Arc<dyn Store>,
    /// Resources that must outlive the store: a temporary directory, a schema to drop.
    pub resources: Box<dyn Any + Send>,
}

impl<S: Store + 'static> From<S> for FreshStore {
    fn from(store: S) -> Self {
        Self {
            store: Arc::new(store),
            resources: Box::new(()),
        }
    }
}

/// Runs every check in sequence, each on a fresh store.
pub async fn run_all<F, Fut>(open: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = FreshStore>,
{
    crate::battery!(calls open);
}

/// `battery!(tests open)` makes a module of tests for each topic; `open` is an async function
/// beside the invocation that returns a [`FreshStore`].
#[macro_export]
macro_rules! battery {
    ($mode:ident $open:ident) => {
        $crate::battery! { @$mode $open;
            append: begins_at_zero, continues_without_gaps, reads_in_pages, reads_in_pages_of_bytes,
                rejects_oversized_bodies, reads_from_any_position,
                refuses_a_stale_position,
                refuses_to_begin_twice, several_streams_advance_together,
                one_conflict_rejects_the_whole_commit, appends_of_one_commit_build_on_each_other,
                refuses_malformed_commits, stores_bodies_byte_for_byte, closed_store_returns_closed_fault;
            audit: grows_with_its_commit, rejected_commit_writes_no_audit_entry,
                concurrent_commits_make_one_chain, finds_the_entry_of_a_decision,
                checkpoints_cover_consecutive_ranges;
            guards: lease_guard_needs_the_holder, scope_guard_sees_live_runs_only,
                a_scope_is_taken_in_its_workspace_only,
                failed_guard_writes_nothing, guards_are_checked_before_writes;
            idempotency: returns_the_committed_response, a_used_key_conflicts, records_several_keys_or_none,
                conflicting_commit_records_no_response, expires_oldest_responses_first,
                message_ids_do_not_expire;
            interrupts: bound_to_their_tenant, newest_first_and_filtered, closing_retains_identity;
            inbox: sorts_by_age_deadline_or_priority, inbox_filters_combine, inbox_follows_interrupt_changes,
                pages_neither_repeat_nor_skip, page_of_long_questions_is_bounded_in_bytes;
            outbox: leases_what_is_due_earliest_first, a_leased_entry_is_not_given_twice,
                an_expired_lease_is_taken_over, released_entries_become_due_later,
                release_needs_the_lease, breaks_leases_of_others, put_with_lease_is_leased,
                commits_remove_entries, put_replaces_an_entry, next_due_follows_leases,
                expired_lease_fences_its_old_holder, renewed_lease_is_not_taken_over,
                lost_leases_are_not_renewed, lease_number_fences_the_same_process,
                concurrent_leases_are_disjoint;
            lanes: lanes_separate_tenants_and_targets, listing_starts_after_last_served_lane,
                lease_respects_the_limit_of_each_lane, long_lane_does_not_hide_other_lanes;
            order: entries_are_leased_one_at_a_time_in_order, order_is_kept_across_commits_and_streams,
                failed_entry_holds_back_those_after_it, parked_entry_holds_back_those_after_it,
                removed_entries_release_those_after_them, expired_lease_keeps_the_order,
                replaced_entry_keeps_its_place, ordered_entries_of_others_do_not_wait,
                held_back_entries_are_not_due, only_the_first_of_an_order_is_put_with_a_lease,
                concurrent_processes_keep_the_order;
            work_failures: failed_timer_does_not_block_other_timers, a_parked_timer_waits_for_a_retry,
                setting_a_timer_again_clears_its_failures, failed_entry_counts_its_failures,
                a_parked_entry_waits_for_a_retry, only_the_lease_holder_records_a_failure,
                parked_work_is_listed_by_tenant;
            people: groups_are_replaced_by_name, ended_delegations_are_not_listed, rejected_commit_changes_no_group_or_delegation;
            processes: epoch_is_raised_by_its_own_changes_only, rejected_commit_raises_no_epoch,
                task_has_one_holder_until_its_lease_ends;
            timers: due_in_order, set_moves_and_clear_removes, timers_are_distinguished_by_name,
                rejected_commit_sets_no_timer, claimed_timer_is_due_again_when_its_claim_ends,
                failure_of_a_claimed_timer_reschedules_it, concurrent_claims_are_disjoint;
            runs: bound_to_their_tenant, descendants_are_counted_at_every_depth, a_projection_follows_its_run, identity_is_fixed,
                lists_newest_first, filters_combine, pages_stay_stable_while_runs_arrive,
                scope_finds_live_runs, counts_by_status;
            definitions: tenant_definition_overrides_the_shared_one,
                workspace_definition_overrides_only_its_own_tenant,
                registration_guard_checks_the_current_definition, unregistering_retains_pinned_documents,
                documents_are_stored_once_without_an_id,
                registering_again_replaces_the_definition, lists_what_the_tenant_sees,
                registers_only_with_its_commit;
            keys: found_by_hash, listed_by_tenant_oldest_first, revoked_once,
                a_secret_belongs_to_one_key, revoked_key_makes_no_key, key_changes_are_audited,
                key_is_made_with_the_response_to_its_request;
            compaction: non_expiring_keys_are_listed_above_the_threshold,
                non_expiring_keys_are_limited_to_the_view, compacting_missing_keys_conflicts;
            memory: a_scope_is_readable_as_of_every_position, run_writes_are_visible_up_to_an_event,
                bound_to_tenant_and_scope, counts_current_keys,
                joins_in_order, rejected_commit_writes_no_memory,
                purged_run_retains_its_row_and_memory;
            storage_usage: usage_is_limited_to_the_tenant;
            settings: set_and_get, set_if_absent_has_one_winner, ping_answers;
            webhook_feed: rows_are_numbered_for_each_tenant, row_is_stored_only_with_its_event,
                progress_is_stored_with_its_deliveries, finished_chunk_is_removed,
                webhook_starts_at_the_end_of_the_feed, feed_guard_rejects_later_rows,
                webhook_guard_rejects_another_body, dropped_deliveries_are_counted;
            webhooks: listed_by_tenant, changing_a_webhook_retains_health_tenant_and_log,
                deliveries_are_numbered_and_settled, the_log_is_paged_newest_first,
                the_log_is_bounded, deleting_removes_webhook_and_deliveries,
                no_delivery_guard_rejects_pending_deliveries, waking_moves_an_entry_earlier_only;
            snapshot: replaced_with_its_append, rejected_append_retains_the_old_snapshot,
                snapshot_ahead_of_its_log_is_refused, fold_starts_after_a_wanted_snapshot;
            chat_users: user_is_bound_to_its_tenant, users_are_listed_by_id_and_filtered,
                changed_user_retains_identity_and_moves_between_tags, touch_moves_activity_forward_only,
                rare_users_are_found_among_many;
            sessions: session_is_bound_to_its_tenant, changed_session_retains_identity,
                session_filters_combine, page_after_an_unknown_session_is_refused,
                pages_of_sessions_stay_stable_while_sessions_start;
            purged_sessions: ended_sessions_are_listed_by_their_end, purged_session_leaves_nothing,
                purge_does_not_release_positions_of_an_agent_log;
            escalations: escalation_is_bound_to_its_tenant,
                changed_escalation_retains_identity_and_moves_between_lists,
                escalation_filters_combine, rare_escalation_is_found_among_many;
            proxies: bridge_is_bound_to_its_tenant_and_keeps_its_desk, bridges_are_listed_by_filter,
                bridges_of_a_desk_are_found;
            schedules: schedule_is_bound_to_its_tenant, changed_schedule_retains_its_identity,
                schedule_filters_combine, runs_are_listed_latest_first, recipients_are_listed_in_order;
            agent_log: events_are_listed_in_the_order_of_their_commits,
                pages_of_an_agent_log_are_bounded_in_bytes, rejected_commit_logs_nothing,
                follower_of_an_agent_log_skips_nothing;
            test_records: test_records_are_listed_in_order;
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
    use super::FreshStore;
    use crate::memory::MemoryStore;

    async fn open() -> FreshStore {
        MemoryStore::new().into()
    }

    crate::battery!(tests open);

    #[tokio::test]
    async fn run_all_runs() {
        super::run_all(open).await;
    }
}
