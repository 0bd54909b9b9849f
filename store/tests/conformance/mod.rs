//! The conformance suite: what every back end must do. To run it against another back end, implement [`Backend`] and
//! write `conformance_suite!(MyBackend::fresh().await);` in a file of its own (see `tests/sqlite.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    unreachable_pub
)]

pub mod answers;
pub mod approvals;
pub mod audit;
pub mod background;
pub mod blobs;
pub mod budgets;
pub mod chain;
pub mod checks;
pub mod chosen_models;
pub mod claims;
pub mod completions;
pub mod consents;
pub mod context;
pub mod conversations;
pub mod delegation;
pub mod deletion;
pub mod elsewhere;
pub mod failures;
pub mod fixture;
pub mod four_eyes;
pub mod hooks;
pub mod inbox;
pub mod json;
pub mod keys;
pub mod large;
pub mod leases;
pub mod list_changes;
pub mod lists;
pub mod log;
pub mod lost;
pub mod names;
pub mod outcomes;
pub mod outside;
pub mod owners;
pub mod past_calls;
pub mod questions;
pub mod races;
pub mod reconciliation;
pub mod resume;
pub mod resume_point;
pub mod retention;
pub mod retry;
pub mod runs;
pub mod saves;
pub mod tool_results;
pub mod tool_usage;
pub mod traces;
pub mod turn_results;
pub mod turns;
pub mod usage;
pub mod visibility;

use std::future::Future;

use everturn_store::{
    AgentExecutions, AuditTrail, Backlogs, Blobs, Consents, Failures, Keys, LeftOut, LostWorkers,
    OutsideTools, Owners, PastCalls, Reconciliation, Retention, TenantUsage, Tenants, ToolResults,
    TraceContexts, TurnResults, WorkerLeases,
};

use self::fixture::TurnStore;

/// An empty database of one back end.
pub trait Backend: Send + Sync {
    type Store: TurnStore
        + OutsideTools
        + AgentExecutions
        + TurnResults
        + Failures
        + PastCalls
        + ToolResults
        + Reconciliation
        + Backlogs
        + WorkerLeases
        + LostWorkers
        + LeftOut
        + Retention
        + Keys
        + Owners
        + Consents
        + TenantUsage
        + AuditTrail
        + Tenants
        + TraceContexts
        + Blobs
        + Clone
        + Send
        + Sync
        + 'static;

    /// Opens the database. Each call returns another handle, as another process would have it.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Returns the number of rows in all tables together, without the sums of tenants, which outlive conversations.
    fn row_count(&self) -> impl Future<Output = i64> + Send;

    /// Runs a statement directly on the database, without the store.
    fn run(&self, text: &'static str) -> impl Future<Output = ()> + Send;

    /// Runs a statement directly on the database, and returns why it was refused.
    fn refused(&self, text: &'static str) -> impl Future<Output = Option<String>> + Send;
}

/// Makes a test of every function of the suite; `$fresh` gives an empty database.
#[macro_export]
macro_rules! conformance_suite {
    ($fresh:expr) => {
        conformance_suite! { @tests $fresh;
            log::sequence_has_no_gap_under_64_writers,
            log::two_handles_write_at_once,
            log::pages_say_exactly_whether_there_is_more,
            log::pages_are_read_backwards,
            log::a_page_of_large_events_ends_at_its_bytes,
            log::status_of_an_unknown_conversation_is_none,
            log::last_sequences_of_many_conversations,
            log::a_log_says_where_it_parts_from_another_one,
            audit::entries_are_read_as_they_were_written,
            audit::entries_are_found_by_what_is_asked_for,
            audit::an_entry_stays_as_it_was_written,
            audit::only_entries_whose_time_is_over_are_removed,
            audit::entries_are_found_whatever_the_order_of_their_times,
            audit::whoever_reads_on_misses_no_entry,
            audit::a_change_and_its_entry_are_there_together,
            audit::an_entry_outlives_its_conversation,
            audit::tenants_are_listed_with_what_they_have,
            audit::tenants_are_told_what_they_took,
            turn_results::a_turn_has_its_answer_when_it_has_ended,
            turn_results::a_failed_turn_has_its_code,
            turn_results::a_turn_is_its_owners,
            turn_results::calls_over_mcp_are_found_and_listed,
            failures::failures_are_listed_with_the_newest_first,
            failures::a_tenant_has_its_own_failures,
            failures::failures_are_counted_by_agent_and_code,
            failures::a_failed_sub_agent_names_its_parent,
            past_calls::calls_are_listed_in_pages,
            past_calls::a_call_has_what_it_was_sent_and_what_it_answered,
            past_calls::a_call_keeps_its_context_after_a_compaction,
            past_calls::a_call_goes_with_its_conversation,
            past_calls::a_step_keeps_its_newest_tries,
            past_calls::tries_go_with_their_conversation,
            runs::a_late_begin_of_a_replaced_run_ends_no_turn,
            runs::a_replaced_run_changes_nothing,
            runs::an_epoch_that_came_too_late_is_of_no_use,
            runs::of_runs_that_begin_at_once_one_has_the_turn,
            inbox::a_cancelled_message_ends_at_its_start_and_reaches_no_model,
            inbox::a_message_cancelled_after_the_look_joins_no_turn,
            inbox::a_run_between_two_turns_sees_the_turn_that_a_lost_task_began,
            inbox::the_cancel_of_a_running_turn_outlives_its_run,
            inbox::a_newer_interrupt_ends_the_waiting_older_interrupt,
            inbox::the_contents_of_signals_are_stored_once,
            lost::a_lost_turn_ends_when_the_next_one_begins,
            lost::a_lost_turn_keeps_its_text,
            lost::a_lost_turn_that_still_works_ends_whole,
            lost::a_message_that_joined_a_lost_turn_does_not_end_it,
            lost::a_withdrawn_message_was_never_there,
            lost::a_message_is_taken_or_withdrawn,
            lost::a_repeated_message_names_the_turn_that_took_it,
            races::turns_that_begin_at_once_begin_once,
            races::a_queue_is_never_longer_than_its_limit,
            races::a_tool_is_started_once,
            races::the_end_of_a_tool_and_of_its_turn_agree,
            races::a_checkpoint_that_many_write_at_once_is_stored_once,
            races::everything_at_once_ends_without_a_deadlock,
            reconciliation::what_has_stalled_is_looked_at_once_by_all_gateways,
            reconciliation::due_checks_are_counted,
            reconciliation::a_sub_agent_alone_is_no_turn,
            reconciliation::a_look_takes_those_due_longest_and_no_more,
            reconciliation::what_a_look_did_not_reach_keeps_its_place,
            reconciliation::what_has_not_ended_is_told,
            reconciliation::a_turn_that_does_not_go_on_is_ended_with_an_error,
            checks::a_check_goes_with_its_turn,
            checks::a_check_stays_while_work_is_left,
            checks::a_check_without_a_reason_goes_when_it_is_due,
            checks::a_walk_goes_on_where_the_last_one_ended,
            checks::a_check_tells_whether_the_workflow_has_to_act,
            checks::a_check_tells_of_messages_without_a_signal,
            checks::a_check_tells_of_a_cancel_without_a_signal,
            checks::the_cancel_of_a_waiting_message_needs_no_signal,
            leases::a_lease_lasts_as_long_as_it_is_renewed,
            leases::a_lease_that_was_ended_is_there_until_a_gateway_removes_it,
            leases::left_out_tools_are_shown_while_their_worker_lives,
            leases::one_gateway_takes_a_lease_that_is_over,
            leases::a_worker_that_renews_is_not_removed,
            leases::a_lease_that_is_held_is_not_taken,
            leases::what_a_worker_held_comes_first,
            leases::a_sub_agent_is_named_by_its_call,
            hooks::a_step_of_hooks_is_no_call_of_a_model,
            hooks::hooks_after_a_turn_are_claimed_like_any_tool,
            hooks::hooks_of_too_many_turns_are_left_out,
            hooks::hooks_wait_for_their_workflow_until_they_begin,
            hooks::hooks_that_are_given_up_wait_no_longer,
            hooks::only_a_completed_turn_with_hooks_has_waiting_hooks,
            hooks::a_sub_agent_has_waiting_hooks_of_its_own,
            hooks::the_hooks_that_wait_longest_come_first,
            hooks::hooks_of_a_removed_conversation_do_not_wait,
            traces::the_first_trace_that_is_offered_is_kept,
            traces::a_trace_that_nobody_offered_begins_with_the_turn,
            traces::a_trace_goes_with_its_conversation,
            resume_point::the_resume_point_names_what_waits,
            resume_point::the_resume_point_is_at_the_last_checkpoint,
            resume_point::the_resume_point_is_for_those_who_see_the_conversation,
            retry::a_retry_goes_on_from_the_context_of_the_failed_turn,
            retry::a_failed_turn_is_retried_once,
            retry::a_turn_in_another_state_is_not_retried,
            retry::the_key_of_a_message_is_not_the_key_of_a_retry,
            retry::a_late_retry_ends_at_its_start,
            resume::checkpoints_and_what_they_name_are_enough_to_go_on,
            resume::a_record_that_is_missing_is_made_when_its_tool_ends,
            retention::what_is_old_is_removed_whole,
            retention::what_runs_or_waits_stays,
            retention::batches_are_bounded,
            retention::writers_and_removal_do_not_mix,
            turns::a_turn_creates_its_conversation,
            turns::a_turn_begins_once,
            turns::a_turn_without_content_or_row_is_refused,
            turns::the_agent_stays_pinned,
            context::queued_messages_wait_their_turn_in_the_context,
            context::a_context_is_read_up_to_its_limit,
            context::calls_and_results_of_a_step_are_one_message,
            context::a_summary_stands_for_what_was_compacted,
            context::only_what_is_new_is_read_again,
            context::a_cut_is_of_its_own_thread,
            context::a_turn_that_ends_before_its_summary_is_saved_does_not_show_it,
            context::only_a_summary_is_saved_as_one,
            turns::a_message_that_steered_an_answered_turn_has_no_turn_of_its_own,
            turns::a_message_that_steered_a_cancelled_turn_gets_its_own,
            saves::a_turn_with_one_tool_writes_six_events_and_few_rows,
            saves::a_batch_is_saved_once,
            saves::racing_saves_of_one_batch_store_it_once,
            saves::the_first_end_wins_and_nothing_follows,
            saves::cancel_closes_every_open_act,
            saves::cancel_ends_every_record,
            saves::cancel_keeps_the_text_so_far,
            saves::a_failed_end_does_not_read_the_partial_text,
            saves::an_end_by_a_time_out_keeps_the_text_so_far,
            saves::a_tool_that_left_no_end_is_ended_by_its_observe,
            saves::a_tools_plan_events_are_saved_before_its_observe,
            saves::steer_joins_the_running_turn,
            saves::parallel_results_stand_in_call_order,
            saves::saves_of_unknown_things_are_refused,
            answers::an_invalid_answer_completes_nothing,
            answers::a_valid_answer_is_told_as_a_value,
            answers::the_summary_of_a_turn_without_steps_is_kept,
            claims::generations_rise_until_the_call_is_made,
            claims::racing_claims_get_different_generations,
            claims::a_page_of_events_says_the_newest_generations,
            claims::the_first_completed_step_wins,
            claims::the_reply_of_an_obsolete_call_is_refused,
            claims::the_newest_partial_wins,
            claims::an_ended_execution_gives_no_claim,
            background::the_next_claim_of_a_step_goes_on_with_its_response,
            background::a_call_whose_claim_is_lost_notes_nothing,
            chain::a_step_knows_its_place_in_the_chain,
            chain::a_refused_call_waits_until_the_next_call,
            chain::a_step_falls_back_once_and_tells_it,
            chain::a_response_of_a_left_model_is_for_the_next_call_to_cancel,
            chain::a_call_that_is_useless_notes_nothing,
            chain::what_a_cut_call_took_counts_for_its_model,
            claims::tools_of_each_effect_class,
            claims::the_same_claimant_may_ask_again,
            claims::the_first_end_of_a_tool_wins,
            claims::a_reply_with_a_used_call_id_is_not_stored,
            completions::each_tool_has_a_checkpoint_before_and_one_after,
            completions::a_tool_that_is_closed_has_a_checkpoint_if_it_began,
            completions::a_sub_agents_call_has_a_checkpoint_before_and_one_after,
            budgets::a_call_reserves_and_its_answer_settles,
            budgets::a_call_that_was_cut_counts_in_full,
            usage::a_cut_call_counts_without_a_budget,
            usage::an_estimate_is_told,
            usage::a_response_that_is_read_again_settles_one_reservation,
            usage::a_call_of_a_dead_worker_counts_without_a_budget,
            tool_usage::tool_calls_count_at_the_end,
            tool_usage::the_sums_of_tools_are_paged,
            budgets::a_refused_call_gives_back_what_it_reserved,
            budgets::a_step_counts_once,
            budgets::the_end_settles_what_is_reserved,
            budgets::calls_at_once_never_take_more_than_there_is,
            budgets::an_end_tells_what_the_tree_took,
            budgets::a_tenant_has_a_budget_of_the_day,
            budgets::the_sums_of_a_tenant_outlive_its_conversations,
            elsewhere::a_call_that_was_not_made_does_not_count,
            elsewhere::a_tool_that_was_not_run_is_pending_again,
            elsewhere::a_turn_of_an_unknown_agent_is_left_to_others,
            elsewhere::a_sub_agent_of_an_unknown_agent_is_left_to_others,
            elsewhere::an_agent_of_other_tenants_is_unknown,
            elsewhere::a_sub_agent_of_other_tenants_is_unknown,
            outside::what_waits_is_listed,
            outside::lists_say_what_goes_on,
            outside::what_waits_is_listed_up_to_a_number_of_bytes,
            outside::a_call_runs_only_when_it_is_approved,
            outside::a_thought_that_is_saved_again_says_what_was_answered,
            outside::a_denied_call_never_runs,
            approvals::calls_that_wait_are_counted_by_agent,
            approvals::the_end_of_a_wait_is_one_time,
            four_eyes::another_input_needs_two_other_people,
            four_eyes::a_withdrawn_proposal_has_no_second,
            four_eyes::the_owner_of_the_conversation_and_keys_are_no_other_person,
            four_eyes::the_inbox_has_the_calls_that_wait_for_a_person,
            approvals::an_approval_may_be_remembered,
            approvals::who_answered_is_what_a_gateway_has_noted,
            approvals::an_answer_that_no_gateway_has_noted_is_an_operators,
            approvals::an_answer_through_the_engine_has_one_audit_entry,
            approvals::the_save_of_an_answer_through_a_gateway_writes_no_entry,
            approvals::only_gateways_answer_when_it_is_so_configured,
            approvals::whoever_asked_may_not_approve,
            approvals::whoever_asked_may_deny,
            approvals::the_newest_word_of_a_person_is_saved,
            approvals::a_word_without_the_right_does_not_count,
            approvals::an_answer_through_the_engine_is_saved_beside_noted_words,
            approvals::the_answers_to_a_call_are_bounded,
            approvals::a_conversation_knows_with_which_definitions_it_has_used_tools,
            questions::a_tool_asks_and_gets_the_answers,
            questions::an_answer_counts_for_its_question,
            questions::an_older_attempt_asks_nobody,
            questions::an_unanswered_question_ends_the_call,
            outside::the_clients_first_result_is_kept,
            outside::one_client_claims_a_call,
            outside::only_a_call_that_waits_is_claimed,
            outside::a_remote_tools_result_is_kept_when_its_run_claimed_the_call,
            outside::the_end_closes_what_waits,
            delegation::a_sub_agent_begins_once,
            delegation::a_sub_agent_has_its_own_context,
            delegation::a_call_that_may_not_have_one_is_ended,
            delegation::the_depth_and_the_number_of_sub_agents_are_limited,
            delegation::its_end_ends_the_call_that_started_it,
            delegation::a_parent_is_told_how_its_sub_agents_ended,
            delegation::a_call_whose_record_is_missing_keeps_the_answer,
            delegation::a_lost_sub_agent_ends_though_the_record_of_its_call_is_missing,
            delegation::the_end_of_a_parent_ends_the_tree_below,
            delegation::an_observe_ends_a_lost_sub_agent,
            delegation::a_lost_turn_ends_with_its_sub_agents,
            delegation::sub_agents_write_at_once,
            delegation::agent_executions_are_a_tree,
            delegation::agent_executions_are_paged,
            delegation::an_agent_execution_has_its_checkpoints_and_tool_calls,
            delegation::a_stranger_sees_no_agent_execution,
            names::each_tenant_has_its_own_names,
            names::a_name_is_one_owners_in_its_tenant,
            names::of_many_who_create_a_name_at_once_all_get_one,
            names::a_run_creates_only_a_conversation_of_its_tenant,
            conversations::creating_twice_gives_the_first,
            conversations::a_client_message_id_is_accepted_once,
            conversations::racing_posts_of_one_message_store_one,
            conversations::the_queue_has_a_limit,
            conversations::a_message_needs_its_conversation,
            conversations::a_tenant_has_a_limit_of_turns,
            conversations::turns_of_an_owner_are_limited,
            conversations::a_conversation_is_renamed,
            chosen_models::a_turn_is_pinned_to_the_model_of_its_message,
            chosen_models::a_model_that_the_agent_has_lost_is_unknown,
            chosen_models::a_repeated_message_has_the_same_model,
            chosen_models::a_conversation_changes_its_model_alone,
            visibility::a_caller_reads_only_what_is_theirs,
            visibility::a_caller_writes_only_what_is_theirs,
            visibility::a_caller_lists_only_what_is_theirs,
            outcomes::a_settled_outcome_is_an_event_and_changes_what_models_read,
            outcomes::an_outcome_is_settled_once,
            outcomes::a_call_that_did_not_happen_may_be_made_again,
            outcomes::only_an_unknown_outcome_of_ones_own_is_settled,
            outcomes::an_outcome_is_settled_while_its_turn_runs,
            tool_results::a_whole_result_is_read_in_slices,
            tool_results::a_slice_may_begin_anywhere,
            tool_results::a_result_is_read_by_those_who_may,
            tool_results::a_model_reads_results_of_its_thread,
            lists::lists_are_paged_by_last_update,
            lists::titles_are_searched_alike,
            lists::a_search_is_bounded_and_goes_on,
            lists::a_conversation_adds_up_its_calls,
            lists::conversations_that_wait_are_found,
            list_changes::a_list_changes_with_its_conversations,
            list_changes::a_list_changes_with_messages_and_turns,
            list_changes::the_middle_of_a_turn_changes_no_list,
            list_changes::a_list_changes_with_waiting_calls,
            list_changes::a_list_changes_with_removals,
            deletion::a_conversation_is_deleted_whole,
            deletion::who_still_works_on_it_finds_nothing,
            deletion::no_turn_creates_it_again,
            deletion::a_deletion_amid_its_turn,
            large::a_large_conversation_is_gone_at_once,
            large::a_large_old_conversation_is_removed,
            large::a_large_conversation_leaves_its_lists_at_once,
            large::definitions_without_a_turn_are_removed,
            json::tool_input_and_result_are_kept,
            json::every_character_survives,
            json::no_number_makes_a_result_long,
            json::a_megabyte_survives,
            keys::a_key_is_found_as_it_was_made,
            keys::an_id_is_given_once,
            keys::a_revoked_key_takes_its_sessions_along,
            keys::a_revoked_key_takes_the_keys_that_it_made_along,
            keys::lists_are_paged_and_by_tenant,
            keys::use_is_noted_coarsely,
            keys::sessions_that_ended_are_removed,
            keys::the_oldest_sessions_end_first,
            owners::an_owner_is_refused_until_allowed,
            owners::only_an_admin_of_all_refuses_credentials_with_rights_over_all,
            owners::sessions_know_their_sign_in_and_the_state_of_their_owner,
            owners::refused_owners_do_not_pile_up,
            consents::a_consent_is_of_one_person_and_one_server,
            consents::tokens_are_renewed_by_one_process,
            consents::a_renewal_is_free_again_after_its_time_or_a_failure,
            consents::a_begun_consent_is_taken_once_and_within_its_time,
            consents::begun_consents_do_not_pile_up,
            blobs::a_file_is_read_by_those_who_may,
            blobs::an_upload_that_is_repeated_is_one_file,
            blobs::a_message_gives_its_files_to_its_conversation,
            blobs::a_withdrawn_message_frees_its_files,
            blobs::files_go_with_their_conversation_or_after_a_day,
            blobs::what_a_tenant_leaves_lying_is_bounded,
            blobs::an_object_is_noted_until_its_blob_is_stored,
        }
    };
    (@tests $fresh:expr; $($module:ident::$name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                conformance::$module::$name(&$fresh).await;
            }
        )*
    };
}
