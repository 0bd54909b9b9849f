//! What every back end of the stream must do (invariants 7, 8 and 10). A back end's test file names it with
//! `conformance_suite!`.

pub mod reader;

use std::{future::Future, sync::Arc, time::Duration};

use everturn_proto::SealedStep;
use everturn_stream::{
    Announcement, Item, Part, Piece, Published, StreamOptions, StreamReader, StreamWriter, TextKey,
};
use proptest::prelude::*;

use self::reader::{Reader, mark, next};

/// A back end under test.
pub trait Backend {
    /// Its stream.
    type Stream: StreamWriter + StreamReader + 'static;
    /// Cases of a property test: fewer where each step is a round trip.
    const CASES: u32;
    /// A stream that holds nothing.
    fn fresh(&self, options: StreamOptions) -> impl Future<Output = Arc<Self::Stream>> + Send;
}

/// Makes one test of each rule.
#[macro_export]
macro_rules! conformance_suite {
    ($backend:expr) => {
        $crate::conformance_suite!($backend; late_generation_is_refused, fresh_stream_fences_by_what_it_has_seen,
            newer_generation_empties_the_other_part, offset_0_starts_anew, gaps_are_reported,
            several_texts_are_open_at_once, sealed_texts_are_forgotten_and_stay_refused,
            conversations_do_not_mix, oversized_text_is_refused, surplus_texts_are_forgotten,
            slow_follower_is_cut_and_others_are_not, too_many_followers_are_refused,
            untouched_texts_expire, concurrent_followers_assemble_the_same);

        #[test]
        fn joining_at_any_point_has_no_gap_and_no_double() {
            $crate::conformance::joining_at_any_point_has_no_gap_and_no_double(&$backend);
        }
    };
    ($backend:expr; $($name:ident),*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::conformance::$name(&$backend).await;
        })*
    };
}

pub fn key(execution: &str, step: u32, part: Part) -> TextKey {
    TextKey {
        agent_execution_id: execution.to_owned(),
        step,
        part,
    }
}

fn piece(key: &TextKey, generation: u32, offset: usize, text: &str) -> Piece {
    let (key, text) = (key.clone(), text.to_owned());
    Piece {
        message_id: "m".to_owned(),
        key,
        generation,
        offset,
        text,
        is_end: false,
    }
}

fn sealing(execution: &str, step: u32) -> Announcement {
    Announcement {
        last_sequence: 1,
        sealed: vec![SealedStep {
            agent_execution_id: execution.to_owned(),
            step,
        }],
    }
}

use Published::{Accepted, Gap, Refused};

pub async fn late_generation_is_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    let mut reader = Reader::join(&*stream, "c").await;
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, 0, "old"))
            .await
            .unwrap(),
        Accepted
    );
    assert_eq!(
        stream
            .publish("c", piece(&text, 2, 0, "new"))
            .await
            .unwrap(),
        Accepted
    );
    for late in [
        piece(&text, 1, 3, "er"),
        piece(&text, 1, 0, "old"),
        piece(&key("run", 0, Part::Reasoning), 1, 0, "x"),
    ] {
        assert_eq!(stream.publish("c", late).await.unwrap(), Refused);
    }
    // Generations rise over the whole execution: a late piece of another step is late as well.
    assert_eq!(
        stream
            .publish("c", piece(&key("run", 1, Part::Text), 1, 0, "x"))
            .await
            .unwrap(),
        Refused
    );
    assert_eq!(
        stream
            .publish("c", piece(&key("child", 0, Part::Text), 1, 0, "child"))
            .await
            .unwrap(),
        Accepted
    );
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some("new"));
    assert_eq!(reader, Reader::join(&*stream, "c").await);
}

pub async fn fresh_stream_fences_by_what_it_has_seen(backend: &impl Backend) {
    // The stream lost everything in the middle of generation 2: all it sees is a piece it cannot place.
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    assert_eq!(
        stream
            .publish("c", piece(&text, 2, 40, "tail"))
            .await
            .unwrap(),
        Gap
    );
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, 0, "dead worker"))
            .await
            .unwrap(),
        Refused
    );
    assert_eq!(
        stream
            .publish("c", piece(&text, 2, 0, "whole tail"))
            .await
            .unwrap(),
        Accepted
    );
}

pub async fn newer_generation_empties_the_other_part(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let (text, reasoning) = (key("run", 0, Part::Text), key("run", 0, Part::Reasoning));
    let mut reader = Reader::join(&*stream, "c").await;
    stream
        .publish("c", piece(&text, 1, 0, "half an ans"))
        .await
        .unwrap();
    stream
        .publish("c", piece(&reasoning, 2, 0, "let me see"))
        .await
        .unwrap();
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some(""));
    assert_eq!(
        stream
            .publish("c", piece(&text, 2, 0, "answer"))
            .await
            .unwrap(),
        Accepted
    );
    reader.catch_up(&*stream).await;
    assert_eq!(reader, Reader::join(&*stream, "c").await);
}

pub async fn offset_0_starts_anew(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    stream
        .publish("c", piece(&text, 1, 0, "abc"))
        .await
        .unwrap();
    let mut following = stream.follow("c").await.unwrap();
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, 0, "abcdef"))
            .await
            .unwrap(),
        Accepted
    );
    let Some(Item::Start(started)) = next(&mut following.items).await else {
        panic!("no start")
    };
    assert_eq!((started.text.as_str(), started.generation), ("abcdef", 1));
    let end = Piece {
        is_end: true,
        ..piece(&text, 1, 6, "")
    };
    assert_eq!(stream.publish("c", end.clone()).await.unwrap(), Accepted);
    assert_eq!(next(&mut following.items).await, Some(Item::Delta(end)));
    assert!(stream.follow("c").await.unwrap().open[0].is_ended);
}

pub async fn gaps_are_reported(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, 3, "def"))
            .await
            .unwrap(),
        Gap
    );
    stream.publish("c", piece(&text, 1, 0, "äb")).await.unwrap();
    for offset in [1, 2, 4] {
        assert_eq!(
            stream
                .publish("c", piece(&text, 1, offset, "x"))
                .await
                .unwrap(),
            Gap,
            "{offset}"
        );
    }
    assert_eq!(
        stream.publish("c", piece(&text, 1, 3, "c")).await.unwrap(),
        Accepted
    );
    // A newer generation that does not begin at 0 leaves nothing of the older one to be seen.
    let mut reader = Reader::join(&*stream, "c").await;
    assert_eq!(
        stream.publish("c", piece(&text, 2, 4, "x")).await.unwrap(),
        Gap
    );
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some(""));
}

pub async fn several_texts_are_open_at_once(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let keys = [
        key("a", 0, Part::Text),
        key("a", 0, Part::Reasoning),
        key("b", 0, Part::Text),
        key("b", 1, Part::Text),
    ];
    for (number, text) in keys.iter().enumerate() {
        stream
            .publish("c", piece(text, 1, 0, &number.to_string()))
            .await
            .unwrap();
    }
    for (number, text) in keys.iter().enumerate() {
        stream
            .publish("c", piece(text, 1, 1, &number.to_string()))
            .await
            .unwrap();
    }
    let reader = Reader::join(&*stream, "c").await;
    for (number, text) in keys.iter().enumerate() {
        assert_eq!(
            reader.text(text),
            Some(number.to_string().repeat(2).as_str())
        );
    }
}

pub async fn sealed_texts_are_forgotten_and_stay_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let (text, later) = (key("run", 0, Part::Text), key("run", 1, Part::Text));
    stream
        .publish("c", piece(&text, 3, 0, "thought"))
        .await
        .unwrap();
    let mut following = stream.follow("c").await.unwrap();
    stream.announce("c", sealing("run", 0)).await.unwrap();
    assert_eq!(
        next(&mut following.items).await,
        Some(Item::Announced(sealing("run", 0)))
    );
    assert!(stream.follow("c").await.unwrap().open.is_empty());
    for late in [
        piece(&text, 3, 7, "!"),
        piece(&text, 9, 0, "again"),
        piece(&later, 2, 0, "older"),
    ] {
        assert_eq!(stream.publish("c", late).await.unwrap(), Refused);
    }
    assert_eq!(
        stream
            .publish("c", piece(&later, 4, 0, "answer"))
            .await
            .unwrap(),
        Accepted
    );
}

pub async fn conversations_do_not_mix(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    let mut other = stream.follow("other").await.unwrap();
    stream
        .publish("c", piece(&text, 2, 0, "mine"))
        .await
        .unwrap();
    stream.announce("c", sealing("run", 5)).await.unwrap();
    let marker = mark(&*stream, "other").await;
    assert_eq!(next(&mut other.items).await, Some(marker));
    assert_eq!(
        stream
            .publish("other", piece(&text, 1, 0, "theirs"))
            .await
            .unwrap(),
        Accepted
    );
}

pub async fn oversized_text_is_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0, Part::Text);
    let limit = everturn_proto::limits::MAX_TEXT_BYTES;
    stream
        .publish("c", piece(&text, 1, 0, &"x".repeat(limit - 1)))
        .await
        .unwrap();
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, limit - 1, "xx"))
            .await
            .unwrap(),
        Refused
    );
    assert_eq!(
        stream
            .publish("c", piece(&text, 1, limit - 1, "x"))
            .await
            .unwrap(),
        Accepted
    );
}

pub async fn surplus_texts_are_forgotten(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            max_open_texts: 3,
            ..StreamOptions::default()
        })
        .await;
    for number in 0..5 {
        stream
            .publish(
                "c",
                piece(&key(&format!("run_{number}"), 0, Part::Text), 1, 0, "x"),
            )
            .await
            .unwrap();
    }
    assert_eq!(stream.follow("c").await.unwrap().open.len(), 3);
    let forgotten = key("run_0", 0, Part::Text);
    assert_eq!(
        stream
            .publish("c", piece(&forgotten, 1, 1, "y"))
            .await
            .unwrap(),
        Gap
    );
}

pub async fn slow_follower_is_cut_and_others_are_not(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            follower_buffer: 4,
            ..StreamOptions::default()
        })
        .await;
    let text = key("run", 0, Part::Text);
    let mut slow = stream.follow("c").await.unwrap();
    let mut quick = stream.follow("c").await.unwrap();
    for offset in 0..10 {
        assert_eq!(
            stream
                .publish("c", piece(&text, 1, offset, "x"))
                .await
                .unwrap(),
            Accepted
        );
        assert!(next(&mut quick.items).await.is_some());
    }
    let mut received = 0;
    while next(&mut slow.items).await.is_some() {
        received += 1;
    }
    assert!(received <= 4, "{received}");
    assert_eq!(stream.follow("c").await.unwrap().open[0].text.len(), 10);
}

pub async fn too_many_followers_are_refused(backend: &impl Backend) {
    let stream = backend
        .fresh(StreamOptions {
            max_followers: 2,
            ..StreamOptions::default()
        })
        .await;
    let first = stream.follow("c").await.unwrap();
    let _second = stream.follow("c").await.unwrap();
    assert!(stream.follow("c").await.is_err());
    drop(first);
    assert!(stream.follow("c").await.is_ok());
}

pub async fn untouched_texts_expire(backend: &impl Backend) {
    let ttl = Duration::from_millis(300);
    let stream = backend
        .fresh(StreamOptions {
            ttl,
            ..StreamOptions::default()
        })
        .await;
    let (idle, busy) = (key("idle", 0, Part::Text), key("busy", 0, Part::Text));
    stream.publish("c", piece(&idle, 1, 0, "x")).await.unwrap();
    for offset in 0..8 {
        stream
            .publish("c", piece(&busy, 1, offset, "x"))
            .await
            .unwrap();
        tokio::time::sleep(ttl / 5).await;
    }
    let reader = Reader::join(&*stream, "c").await;
    assert_eq!(
        (reader.text(&idle), reader.text(&busy)),
        (None, Some("xxxxxxxx"))
    );
}

pub async fn concurrent_followers_assemble_the_same(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let writers = (0..4).map(|writer| {
        let stream = Arc::clone(&stream);
        tokio::spawn(async move {
            let text = key(&format!("run_{writer}"), 0, Part::Text);
            for offset in 0..100 {
                stream
                    .publish("c", piece(&text, 1, offset, "x"))
                    .await
                    .unwrap();
                tokio::task::yield_now().await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(Reader::join(&*stream, "c").await);
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let last = Reader::join(&*stream, "c").await;
    for mut reader in readers {
        reader.catch_up(&*stream).await;
        assert_eq!(reader, last);
    }
    assert!((0..4).all(|writer| {
        last.text(&key(&format!("run_{writer}"), 0, Part::Text))
            .unwrap()
            .len()
            == 100
    }));
}

/// One thing that happens to a conversation.
#[derive(Debug, Clone)]
enum Happening {
    Push {
        execution: u8,
        step: u32,
        part: Part,
        generation: u32,
        text: String,
        skew: usize,
    },
    Seal {
        execution: u8,
        step: u32,
    },
    Join,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let part = prop_oneof![Just(Part::Text), Just(Part::Reasoning)];
    // A skew of 1 or 2 puts the piece at a wrong offset; one of 9 at offset 0.
    let skew = prop_oneof![8 => Just(0_usize), 1 => 1..3_usize, 1 => Just(9_usize)];
    let push = (0..2_u8, 0..3_u32, part, 1..5_u32, "[a-zäß€]{0,4}", skew).prop_map(
        |(execution, step, part, generation, text, skew)| Happening::Push {
            execution,
            step,
            part,
            generation,
            text,
            skew,
        },
    );
    let seal =
        (0..2_u8, 0..3_u32).prop_map(|(execution, step)| Happening::Seal { execution, step });
    proptest::collection::vec(
        prop_oneof![12 => push, 1 => seal, 3 => Just(Happening::Join)],
        1..80,
    )
}

/// Whoever joins at whatever point ends with the texts of one who was there from the beginning.
pub fn joining_at_any_point_has_no_gap_and_no_double<B: Backend>(backend: &B) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    proptest!(ProptestConfig::with_cases(B::CASES), |(happenings in happenings())| {
        runtime.block_on(async {
            let stream = backend.fresh(StreamOptions::default()).await;
            let mut readers = vec![Reader::join(&*stream, "c").await];
            for happening in happenings {
                match happening {
                    Happening::Join => readers.push(Reader::join(&*stream, "c").await),
                    Happening::Seal { execution, step } => {
                        stream.announce("c", sealing(&format!("run_{execution}"), step)).await.unwrap();
                    }
                    Happening::Push { execution, step, part, generation, text, skew } => {
                        let key = key(&format!("run_{execution}"), step, part);
                        readers[0].catch_up(&*stream).await;
                        let length = readers[0].text(&key).map_or(0, str::len);
                        let offset = if skew == 9 { 0 } else { length + skew };
                        let published = stream.publish("c", piece(&key, generation, offset, &text)).await.unwrap();
                        readers[0].catch_up(&*stream).await;
                        if published == Accepted {
                            assert!(readers[0].text(&key).unwrap().ends_with(&text));
                            assert_eq!(readers[0].generation(&key), Some(generation));
                        }
                    }
                }
            }
            let last = Reader::join(&*stream, "c").await;
            for mut reader in readers {
                reader.catch_up(&*stream).await;
                assert_eq!(reader, last);
            }
        });
    });
}
