//! What every back end of the stream must do. A back end's test file names it with `conformance_suite!`.
//!
//! - `cancels`: cancels that are announced
//! - `fence`: late writers are refused (invariant 7, fenced deltas)
//! - `texts`: texts that grow, side by side
//! - `joining`: readers that join at any moment (invariant 8, a cursor never expires)
//! - `limits`: what a stream holds no more of (invariant 10, nothing grows without a bound)
//! - `reader`: a reader that objects to every gap and double

pub mod cancels;
pub mod fence;
pub mod joining;
pub mod limits;
pub mod reader;
pub mod texts;

use std::{future::Future, sync::Arc};

use everturn_stream::{CancelNews, StreamOptions, StreamReader, StreamWriter};

/// A back end under test.
pub trait Backend {
    /// Its stream.
    type Stream: StreamWriter + StreamReader + CancelNews + 'static;
    /// Cases of a property test: fewer where each step is a round trip.
    const CASES: u32;
    /// A stream that holds nothing.
    fn fresh(&self, options: StreamOptions) -> impl Future<Output = Arc<Self::Stream>> + Send;
}

/// Makes one test of each rule.
#[macro_export]
macro_rules! conformance_suite {
    ($backend:expr) => {
        $crate::conformance_suite!($backend;
            fence::late_generation_is_refused,
            fence::fresh_stream_fences_by_what_it_has_seen,
            fence::newer_generation_empties_the_other_part,
            fence::a_generation_that_continues_shortens_nothing,
            fence::a_generation_that_continues_nothing_begins,
            fence::sealed_texts_are_forgotten_and_stay_refused,
            texts::offset_0_starts_anew,
            texts::gaps_are_reported,
            texts::several_texts_are_open_at_once,
            texts::conversations_do_not_mix,
            texts::a_removed_conversation_leaves_no_text,
            joining::concurrent_followers_assemble_the_same,
            joining::the_present_followers_learn_of_a_wait,
            limits::oversized_text_is_refused,
            limits::surplus_texts_are_forgotten,
            limits::slow_follower_is_cut_and_others_are_not,
            limits::too_many_followers_are_refused,
            limits::untouched_texts_expire,
            cancels::everybody_hears_of_a_cancel,
            cancels::who_takes_no_cancels_holds_up_nobody,
        );

        #[test]
        fn joining_at_any_point_has_no_gap_and_no_double() {
            $crate::conformance::joining::joining_at_any_point_has_no_gap_and_no_double(&$backend);
        }
    };
    ($backend:expr; $($module:ident::$name:ident,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::conformance::$module::$name(&$backend).await;
        })*
    };
}
