//! The frames of a reply, as a provider streams them.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::sync::watch;

use super::{PACE, Piece, Reply, Wire};
use crate::crowd::stamp;

pub(super) fn frames(
    wire: Wire,
    reply: Reply,
    mut released: watch::Receiver<bool>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let (is_held, pace) = (reply.is_held, reply.pace.unwrap_or(PACE));
    let wait = stream::once(async move {
        if is_held {
            let _ = released.wait_for(|released| *released).await;
        }
        None
    });
    let mut rest: Vec<_> = reply.event.iter().map(|data| wire.raw(data)).collect();
    if !reply.is_cut {
        rest.extend(wire.end(&reply));
    }
    let begin = wire.begin(&reply).into_iter().map(Some);
    let (begun, count) = (Instant::now(), reply.pieces.len());
    let over = reply.over;
    let pieces = stream::iter(reply.pieces).enumerate();
    let text = pieces.then(move |(index, piece)| async move {
        if let Some(over) = over {
            let due = begun + due(over, index + 1, count);
            tokio::time::sleep_until(due.into()).await;
        } else if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        Some(match piece {
            Piece::Text(text) => wire.text(&text),
            Piece::Stamp => wire.text(&stamp(0)),
        })
    });
    stream::iter(begin)
        .chain(text)
        .chain(wait)
        .chain(stream::iter(rest.into_iter().map(Some)))
        .filter_map(|piece| async { piece.map(Ok) })
}

/// When this one of `count` pieces is sent that are spread over a time.
fn due(over: Duration, number: usize, count: usize) -> Duration {
    let share = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
    over * share(number) / share(count)
}
