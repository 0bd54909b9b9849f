//! Readers that join at any moment have the same texts in the end (invariant 8, a cursor never expires).

use std::sync::Arc;

use everturn_stream::{
    Item, ModelWait, Notice, Part, Published, StreamOptions, StreamReader, StreamWriter, TextKey,
};
use proptest::prelude::*;

use super::{Backend, reader::Reader};
use crate::support::{key, next, piece, publish, sealing};

pub async fn concurrent_followers_assemble_the_same(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let writers = (0..4).map(|writer| {
        let stream = Arc::clone(&stream);
        tokio::spawn(async move {
            let text = key(&format!("run_{writer}"), 0);
            for offset in 0..100 {
                publish(&*stream, piece(&text, 1, offset, "x")).await;
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
    assert!(
        (0..4).all(|writer| { last.text(&key(&format!("run_{writer}"), 0)).unwrap().len() == 100 })
    );
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
                        stream.announce(&"c".into(), sealing(&format!("run_{execution}"), step)).await.unwrap();
                    }
                    Happening::Push { execution, step, part, generation, text, skew } => {
                        let key = TextKey { part, ..key(&format!("run_{execution}"), step) };
                        readers[0].catch_up(&*stream).await;
                        let length = readers[0].text(&key).map_or(0, str::len);
                        let offset = if skew == 9 { 0 } else { length + skew };
                        let published = publish(&*stream, piece(&key, generation, offset, &text)).await;
                        readers[0].catch_up(&*stream).await;
                        if published == Published::Accepted {
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

pub async fn the_present_followers_learn_of_a_wait(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let mut following = stream.follow(&"c".into()).await.unwrap();
    let wait = ModelWait {
        message_id: "m".to_owned(),
        agent_execution_id: "run".to_owned(),
        step: 0,
        code: "llm_overloaded".to_owned(),
        message: "The provider has too much to do.".to_owned(),
        attempt: 2,
        retry_after_ms: 1000,
    };
    let notice = Notice::ModelWaits(wait);
    stream.notify(&"c".into(), notice.clone()).await.unwrap();
    assert_eq!(next(&mut following.items).await, Some(Item::Notice(notice)));
    let later = stream.follow(&"c".into()).await.unwrap();
    assert_eq!(later.open, []);
}
