//! The text writer: when it publishes, and that nothing stops the model.

#![allow(clippy::unwrap_used)]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use everturn_proto::{LogId, limits::MAX_TEXT_BYTES};
use everturn_stream::{
    Announcement, InProcessStream, Notice, Part, Piece, Published, StreamError, StreamReader,
    StreamWriter, TextWriter,
};
use futures::FutureExt;
use tokio::time::{Instant, advance, sleep};

/// Remembers what was published when; answers from a list, then always `Accepted`.
#[derive(Default)]
struct Recorder {
    pieces: Mutex<Vec<(Duration, Piece)>>,
    answers: Mutex<VecDeque<Result<Published, StreamError>>>,
    started: Mutex<Option<Instant>>,
    hangs: bool,
}

#[async_trait]
impl StreamWriter for Recorder {
    async fn publish(&self, _: &LogId, piece: Piece) -> Result<Published, StreamError> {
        let started = *self
            .started
            .lock()
            .unwrap()
            .get_or_insert_with(Instant::now);
        self.pieces.lock().unwrap().push((started.elapsed(), piece));
        if self.hangs {
            std::future::pending::<()>().await;
        }
        self.answers
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(Ok(Published::Accepted))
    }

    async fn announce(&self, _: &LogId, _: Announcement) -> Result<(), StreamError> {
        Ok(())
    }

    async fn notify(&self, _: &LogId, _: Notice) -> Result<(), StreamError> {
        Ok(())
    }
}

impl Recorder {
    fn answering(answers: impl IntoIterator<Item = Result<Published, StreamError>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    fn pieces(&self) -> Vec<Piece> {
        self.pieces
            .lock()
            .unwrap()
            .iter()
            .map(|(_, piece)| piece.clone())
            .collect()
    }

    fn texts(&self) -> Vec<String> {
        self.pieces().into_iter().map(|piece| piece.text).collect()
    }
}

fn writer(stream: &Arc<Recorder>) -> TextWriter {
    TextWriter::new(
        Arc::clone(stream) as Arc<dyn StreamWriter>,
        "c".into(),
        "m",
        "run",
        2,
        7,
    )
}

fn down() -> Result<Published, StreamError> {
    Err(StreamError::Away("down".into()))
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn first_piece_at_once_then_at_most_one_in_20_ms() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "first ");
    settle().await;
    assert_eq!(recorder.texts(), ["first "]);
    for number in 0..100 {
        writer.push(Part::Text, &format!("{number} "));
        advance(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(20)).await;
    let pieces = recorder.pieces.lock().unwrap().clone();
    assert!((5..=7).contains(&pieces.len()), "{}", pieces.len());
    for pair in pieces.windows(2) {
        assert!(pair[1].0 >= pair[0].0 + Duration::from_millis(20));
        assert_eq!(pair[1].1.offset, pair[0].1.offset + pair[0].1.text.len());
    }
    assert_eq!(recorder.texts().concat(), writer.text_so_far(Part::Text));
    let piece = &pieces[0].1;
    assert_eq!(
        (piece.message_id.as_str(), piece.key.step, piece.generation),
        ("m", 2, 7)
    );
    assert_eq!(piece.key.agent_execution_id, "run");
}

#[tokio::test(start_paused = true)]
async fn parts_take_turns_within_the_same_rate() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    for _ in 0..100 {
        writer.push(Part::Reasoning, "r");
        writer.push(Part::Text, "t");
        advance(Duration::from_millis(1)).await;
        settle().await;
    }
    let pieces = recorder.pieces();
    assert!(pieces.len() <= 6, "{}", pieces.len());
    assert!(
        pieces
            .windows(2)
            .all(|pair| pair[0].key.part != pair[1].key.part)
    );
    assert_eq!(writer.text_so_far(Part::Reasoning).len(), 100);
}

#[tokio::test(start_paused = true)]
async fn finish_publishes_the_rest_with_its_end() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "a");
    settle().await;
    writer.push(Part::Text, "b");
    let started = Instant::now();
    writer.finish().await;
    assert!(
        started.elapsed() < Duration::from_millis(20),
        "the end does not wait for the next slot"
    );
    let pieces = recorder.pieces();
    assert_eq!(pieces.len(), 2, "a part without text has no end to publish");
    assert_eq!(
        (pieces[1].text.as_str(), pieces[1].offset, pieces[1].is_end),
        ("b", 1, true)
    );
}

#[tokio::test(start_paused = true)]
async fn finish_of_a_text_already_published_sends_only_the_end() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "a");
    sleep(Duration::from_millis(100)).await;
    writer.finish().await;
    let last = recorder.pieces().pop().unwrap();
    assert_eq!(
        (last.text.as_str(), last.offset, last.is_end),
        ("", 1, true)
    );
    TextWriter::new(
        Arc::clone(&recorder) as Arc<dyn StreamWriter>,
        "c".into(),
        "m",
        "run",
        3,
        1,
    )
    .finish()
    .await;
    assert_eq!(
        recorder.pieces().len(),
        2,
        "nothing said, nothing published"
    );
}

#[tokio::test(start_paused = true)]
async fn gap_is_filled_from_the_beginning() {
    let recorder = Recorder::answering([Ok(Published::Accepted), Ok(Published::Gap)]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "one ");
    settle().await;
    writer.push(Part::Text, "two ");
    sleep(Duration::from_millis(50)).await;
    writer.finish().await;
    assert_eq!(recorder.texts(), ["one ", "two ", "one two ", ""]);
    assert_eq!(recorder.pieces()[2].offset, 0);
}

fn is_superseded(writer: &TextWriter) -> bool {
    writer.superseded().now_or_never().is_some()
}

#[tokio::test(start_paused = true)]
async fn refused_means_superseded() {
    let recorder = Recorder::answering([Ok(Published::Accepted), Ok(Published::Refused)]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "one");
    settle().await;
    assert!(!is_superseded(&writer));
    writer.push(Part::Text, "two");
    sleep(Duration::from_millis(50)).await;
    assert!(is_superseded(&writer));
    writer.push(Part::Text, "three");
    sleep(Duration::from_millis(50)).await;
    assert_eq!(writer.text_so_far(Part::Text), "onetwothree");
    writer.finish().await;
    assert_eq!(recorder.pieces().len(), 2, "a superseded writer is silent");
}

#[tokio::test(start_paused = true)]
async fn errors_are_outlived_and_slowed_down_for() {
    let recorder = Recorder::answering([down(), down(), down(), Ok(Published::Accepted)]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "kept");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(recorder.texts(), ["kept"; 4]);
    let times: Vec<_> = recorder
        .pieces
        .lock()
        .unwrap()
        .iter()
        .map(|(at, _)| at.as_millis())
        .collect();
    assert_eq!(times, [0, 40, 120, 280]);
    assert!(!is_superseded(&writer));
}

#[tokio::test(start_paused = true)]
async fn finish_does_not_wait_for_a_stream_that_hangs() {
    let recorder = Arc::new(Recorder {
        hangs: true,
        ..Recorder::default()
    });
    let writer = writer(&recorder);
    writer.push(Part::Text, "x");
    let started = Instant::now();
    writer.finish().await;
    assert!(started.elapsed() <= Duration::from_secs(2));
    settle().await;
    assert_eq!(Arc::strong_count(&recorder), 1, "the task is gone");
}

#[tokio::test(start_paused = true)]
async fn stream_that_always_reports_gaps_is_not_hammered() {
    let recorder = Recorder::answering((0..10_000).map(|_| Ok(Published::Gap)));
    let writer = writer(&recorder);
    writer.push(Part::Text, "x");
    writer.finish().await;
    assert!(recorder.pieces().len() < 20);
}

#[tokio::test(start_paused = true)]
async fn dropping_stops_the_task() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    writer.push(Part::Text, "x");
    settle().await;
    writer.push(Part::Text, "never sent");
    drop(writer);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(recorder.texts(), ["x"]);
    assert_eq!(Arc::strong_count(&recorder), 1);
}

#[tokio::test(start_paused = true)]
async fn buffer_is_bounded_and_cut_between_characters() {
    let recorder = Recorder::answering([]);
    let writer = writer(&recorder);
    writer.push(Part::Text, &"x".repeat(MAX_TEXT_BYTES - 1));
    writer.push(Part::Text, "ä");
    writer.push(Part::Text, "y");
    assert_eq!(writer.text_so_far(Part::Text).len(), MAX_TEXT_BYTES - 1);
    writer.finish().await;
    assert!(
        recorder
            .pieces()
            .iter()
            .all(|piece| piece.offset + piece.text.len() < MAX_TEXT_BYTES)
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_reads_what_was_pushed() {
    let stream = InProcessStream::default();
    let writer = TextWriter::new(Arc::new(stream.clone()), "c".into(), "m", "run", 0, 1);
    for _ in 0..50 {
        writer.push(Part::Text, "täxt ");
        sleep(Duration::from_millis(3)).await;
    }
    writer.finish().await;
    let open = stream.follow(&"c".into()).await.unwrap().open;
    assert_eq!(
        (open.len(), open[0].text.as_str(), open[0].is_ended),
        (1, "täxt ".repeat(50).as_str(), true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_behind_waits_for_more_of_it() {
    let recorder = Recorder::answering([Ok(Published::Behind), Ok(Published::Behind)]);
    let writer = writer(&recorder);
    writer.set_continues(true);
    writer.push(Part::Text, "one ");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(recorder.texts(), ["one "], "there was no more of it");
    for word in ["two ", "three "] {
        writer.push(Part::Text, word);
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(recorder.texts(), ["one ", "one two ", "one two three "]);
    writer.push(Part::Text, "four");
    writer.finish().await;
    let pieces = recorder.pieces();
    assert_eq!((pieces[3].offset, pieces[3].text.as_str()), (14, "four"));
    assert!(pieces.iter().all(|piece| piece.continues));
}

#[tokio::test(start_paused = true)]
async fn a_whole_text_is_shown_however_short_it_is() {
    let recorder = Recorder::answering([Ok(Published::Behind), Ok(Published::Behind)]);
    let writer = writer(&recorder);
    writer.set_continues(true);
    writer.push(Part::Text, "short");
    settle().await;
    writer.finish().await;
    let pieces = recorder.pieces();
    let continues: Vec<_> = pieces.iter().map(|piece| piece.continues).collect();
    assert_eq!(continues, [true, true, false]);
    assert!(pieces[2].is_end && pieces[2].text == "short");
}
