//! The checks, as tests.

/// Makes a test of each check, in a module of the check's name in the library.
macro_rules! checks {
    ($($module:ident: $($check:ident),+;)+) => {
        $(mod $module {
            $(#[test]
            fn $check() {
                everturn_interleavings::$module::$check();
            })+
        })+
    };
}

checks! {
    models:
        calls_take_turns,
        a_cancelled_call_holds_nobody_up,
        the_younger_call_leaves,
        a_settled_call_lets_the_next_call_begin;
    think:
        attempts_get_the_stored_context;
    limits:
        every_request_is_published_once,
        an_answer_forgets_no_request,
        the_limit_holds_and_comes_back,
        the_last_stream_wakes_a_stopping_gateway,
        every_closed_stream_is_published,
        freed_memory_reaches_the_caller_that_waits,
        freed_memory_reaches_every_caller_that_waits,
        the_sums_are_zero_at_the_end,
        a_cancelled_caller_holds_nobody_up,
        a_tenant_has_one_account;
    live:
        a_tail_runs_while_it_has_readers,
        the_end_of_an_old_tail_leaves_the_new_tail_alone,
        a_reader_that_joins_gets_every_event_once,
        a_reader_ahead_of_the_tail_wakes_the_tail,
        a_reader_that_drops_its_wait_loses_no_frame,
        a_list_has_a_tail_while_it_has_readers,
        a_change_reaches_every_reader;
}
