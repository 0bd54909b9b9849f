//! Late writers: an older generation, and a text whose event is saved, are refused (invariant 7, fenced deltas).

use everturn_stream::{Item, Piece, Published, StreamOptions, StreamReader, StreamWriter};

use Published::{Accepted, Behind, Gap, Refused};

use super::{Backend, reader::Reader};
use crate::support::{call_key, key, next, piece, publish, reasoning_key, sealing};

pub async fn late_generation_is_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    let mut reader = Reader::join(&*stream, "c").await;
    assert_eq!(publish(&*stream, piece(&text, 1, 0, "old")).await, Accepted);
    assert_eq!(publish(&*stream, piece(&text, 2, 0, "new")).await, Accepted);
    for late in [
        piece(&text, 1, 3, "er"),
        piece(&text, 1, 0, "old"),
        piece(&reasoning_key("run", 0), 1, 0, "x"),
    ] {
        assert_eq!(publish(&*stream, late).await, Refused);
    }
    // Generations rise over the whole agent execution: a late piece of another step is late as well.
    assert_eq!(
        publish(&*stream, piece(&key("run", 1), 1, 0, "x")).await,
        Refused
    );
    assert_eq!(
        publish(&*stream, piece(&key("child", 0), 1, 0, "child")).await,
        Accepted
    );
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some("new"));
    assert_eq!(reader, Reader::join(&*stream, "c").await);
}

pub async fn fresh_stream_fences_by_what_it_has_seen(backend: &impl Backend) {
    // The stream lost everything in the middle of generation 2: all it sees is a piece it cannot place.
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    assert_eq!(publish(&*stream, piece(&text, 2, 40, "tail")).await, Gap);
    assert_eq!(
        publish(&*stream, piece(&text, 1, 0, "dead worker")).await,
        Refused
    );
    assert_eq!(
        publish(&*stream, piece(&text, 2, 0, "whole tail")).await,
        Accepted
    );
}

pub async fn newer_generation_empties_the_other_part(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let (text, reasoning) = (key("run", 0), reasoning_key("run", 0));
    let mut reader = Reader::join(&*stream, "c").await;
    let call = call_key("run", 0, 3);
    publish(&*stream, piece(&text, 1, 0, "half an ans")).await;
    publish(&*stream, piece(&call, 1, 0, "write\n{")).await;
    publish(&*stream, piece(&reasoning, 2, 0, "let me see")).await;
    reader.catch_up(&*stream).await;
    assert_eq!([reader.text(&text), reader.text(&call)], [Some(""); 2]);
    assert_eq!(
        publish(&*stream, piece(&text, 2, 0, "answer")).await,
        Accepted
    );
    reader.catch_up(&*stream).await;
    assert_eq!(reader, Reader::join(&*stream, "c").await);
}

pub async fn sealed_texts_are_forgotten_and_stay_refused(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let (text, later) = (key("run", 0), key("run", 1));
    publish(&*stream, piece(&text, 3, 0, "thought")).await;
    publish(&*stream, piece(&call_key("run", 0, 0), 3, 0, "write\n")).await;
    let mut following = stream.follow(&"c".into()).await.unwrap();
    stream
        .announce(&"c".into(), sealing("run", 0))
        .await
        .unwrap();
    assert_eq!(
        next(&mut following.items).await,
        Some(Item::Announced(sealing("run", 0)))
    );
    assert!(stream.follow(&"c".into()).await.unwrap().open.is_empty());
    for late in [
        piece(&text, 3, 7, "!"),
        piece(&text, 9, 0, "again"),
        piece(&later, 2, 0, "older"),
    ] {
        assert_eq!(publish(&*stream, late).await, Refused);
    }
    assert_eq!(
        publish(&*stream, piece(&later, 4, 0, "answer")).await,
        Accepted
    );
}

pub async fn a_generation_that_continues_shortens_nothing(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let (text, reasoning) = (key("run", 0), reasoning_key("run", 0));
    let mut reader = Reader::join(&*stream, "c").await;
    let continued = |key, offset, text: &str| Piece {
        continues: true,
        ..piece(key, 2, offset, text)
    };
    publish(&*stream, piece(&reasoning, 1, 0, "let me see")).await;
    publish(&*stream, piece(&text, 1, 0, "half an ans")).await;
    let behind = continued(&text, 0, "half");
    assert_eq!(publish(&*stream, behind).await, Behind);
    // A generation that is behind changes nothing: who wrote the text so far may still write it.
    assert_eq!(publish(&*stream, piece(&text, 1, 11, "w")).await, Accepted);
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some("half an answ"));
    let caught_up = continued(&text, 0, "half an answer");
    assert_eq!(publish(&*stream, caught_up).await, Accepted);
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some("half an answer"));
    assert_eq!(
        reader.text(&reasoning),
        Some("let me see"),
        "the other part stays until it is published, too"
    );
    assert_eq!(publish(&*stream, piece(&text, 1, 12, "er")).await, Refused);
    assert_eq!(publish(&*stream, continued(&text, 14, ".")).await, Accepted);
    let equal = continued(&reasoning, 0, "let me see");
    assert_eq!(publish(&*stream, equal).await, Accepted);
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some("half an answer."));
    assert_eq!(reader, Reader::join(&*stream, "c").await);
}

pub async fn a_generation_that_continues_nothing_begins(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    let first = Piece {
        continues: true,
        ..piece(&text, 2, 0, "the text was lost")
    };
    assert_eq!(publish(&*stream, first).await, Accepted);
    let unknown = Piece {
        continues: true,
        ..piece(&text, 3, 17, "!")
    };
    assert_eq!(publish(&*stream, unknown).await, Gap);
}
