//! Texts that grow: where they begin anew, what is reported as a gap, and which texts have nothing to do with each other.

use everturn_stream::{Item, Piece, Published, StreamOptions, StreamReader, StreamWriter};

use Published::{Accepted, Gap};

use super::{
    Backend,
    reader::{Reader, mark},
};
use crate::support::{key, next, piece, publish, reasoning_key, sealing};

pub async fn offset_0_starts_anew(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    publish(&*stream, piece(&text, 1, 0, "abc")).await;
    let mut following = stream.follow(&"c".into()).await.unwrap();
    assert_eq!(
        publish(&*stream, piece(&text, 1, 0, "abcdef")).await,
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
    assert_eq!(publish(&*stream, end.clone()).await, Accepted);
    assert_eq!(next(&mut following.items).await, Some(Item::Delta(end)));
    assert!(stream.follow(&"c".into()).await.unwrap().open[0].is_ended);
}

pub async fn gaps_are_reported(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    assert_eq!(publish(&*stream, piece(&text, 1, 3, "def")).await, Gap);
    publish(&*stream, piece(&text, 1, 0, "äb")).await;
    for offset in [1, 2, 4] {
        assert_eq!(
            publish(&*stream, piece(&text, 1, offset, "x")).await,
            Gap,
            "{offset}"
        );
    }
    assert_eq!(publish(&*stream, piece(&text, 1, 3, "c")).await, Accepted);
    // A newer generation that does not begin at 0 leaves nothing of the older one to be seen.
    let mut reader = Reader::join(&*stream, "c").await;
    assert_eq!(publish(&*stream, piece(&text, 2, 4, "x")).await, Gap);
    reader.catch_up(&*stream).await;
    assert_eq!(reader.text(&text), Some(""));
}

pub async fn several_texts_are_open_at_once(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let keys = [key("a", 0), reasoning_key("a", 0), key("b", 0), key("b", 1)];
    for (number, text) in keys.iter().enumerate() {
        publish(&*stream, piece(text, 1, 0, &number.to_string())).await;
    }
    for (number, text) in keys.iter().enumerate() {
        publish(&*stream, piece(text, 1, 1, &number.to_string())).await;
    }
    let reader = Reader::join(&*stream, "c").await;
    for (number, text) in keys.iter().enumerate() {
        assert_eq!(
            reader.text(text),
            Some(number.to_string().repeat(2).as_str())
        );
    }
}

pub async fn conversations_do_not_mix(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    let text = key("run", 0);
    let mut other = stream.follow(&"other".into()).await.unwrap();
    publish(&*stream, piece(&text, 2, 0, "mine")).await;
    stream
        .announce(&"c".into(), sealing("run", 5))
        .await
        .unwrap();
    let marker = mark(&*stream, "other").await;
    assert_eq!(next(&mut other.items).await, Some(marker));
    assert_eq!(
        stream
            .publish(&"other".into(), piece(&text, 1, 0, "theirs"))
            .await
            .unwrap(),
        Accepted
    );
}

pub async fn a_removed_conversation_leaves_no_text(backend: &impl Backend) {
    let stream = backend.fresh(StreamOptions::default()).await;
    for text in [key("run", 0), reasoning_key("run", 0), key("other", 3)] {
        publish(&*stream, piece(&text, 1, 0, "secret")).await;
    }
    let kept = "kept".into();
    let of_kept = piece(&key("run", 0), 1, 0, "mine");
    stream.publish(&kept, of_kept).await.unwrap();
    stream.forget(&"c".into()).await.unwrap();
    assert_eq!(stream.follow(&"c".into()).await.unwrap().open, []);
    assert_eq!(stream.follow(&kept).await.unwrap().open.len(), 1);
    // A worker that has not heard of it goes on, and a piece that continues a text finds none.
    let later = piece(&key("run", 0), 1, 6, "!");
    assert_eq!(publish(&*stream, later).await, Gap);
}
