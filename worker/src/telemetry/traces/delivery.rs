//! Makes the span of a turn's delivery at one gateway: from the first event in the readers' queues to the last.

use std::{num::NonZeroUsize, sync::Arc, time::SystemTime};

use everturn_gateway::{DeliveredEvent, Deliveries};
use everturn_store::TraceKey;
use everturn_telemetry::trace::SCOPE;
use lru::LruCache;
use opentelemetry::{
    KeyValue, global,
    trace::{Span, SpanBuilder, SpanKind, Tracer},
};
use tokio::sync::mpsc;

use super::known::KnownTraces;

/// Delivery reports that wait in the channel. Further reports are dropped and are missing in their traces, because
/// readers never wait for traces.
const WAITING: usize = 10_000;

/// The most events of one span. A delivery has an event in its span for each event of its turn, and a turn may have
/// thousands.
pub(super) const MAX_EVENTS: u32 = 256;
/// Turns in delivery. Every span keeps the span's events, so the worst case is about 20 MB. Beyond the limit, the oldest turn gets
/// no span.
const OPEN: NonZeroUsize = NonZeroUsize::new(2_000).unwrap();

/// Makes the spans of deliveries in a task of its own, which ends with the gateway.
pub(super) struct TracedDeliveries {
    news: mpsc::Sender<News>,
}

struct News {
    conversation_id: String,
    at: SystemTime,
    events: Vec<DeliveredEvent>,
    readers: usize,
}

/// A turn in delivery.
struct Delivery {
    from: SystemTime,
    events: Vec<(SystemTime, String)>,
}

impl TracedDeliveries {
    /// Starts the task. Must be called within a tokio runtime.
    pub(super) fn start(known: Arc<KnownTraces>) -> Self {
        let (news, mut waiting) = mpsc::channel::<News>(WAITING);
        tokio::spawn(async move {
            let mut open = LruCache::new(OPEN);
            while let Some(news) = waiting.recv().await {
                for event in &news.events {
                    note(&mut open, &known, &news, event).await;
                }
            }
        });
        Self { news }
    }
}

impl Deliveries for TracedDeliveries {
    fn delivered(&self, conversation_id: &str, events: Vec<DeliveredEvent>, readers: usize) {
        let news = News {
            conversation_id: conversation_id.to_owned(),
            at: SystemTime::now(),
            events,
            readers,
        };
        if self.news.try_send(news).is_err() {
            tracing::debug!("a trace lacks the span of a delivery");
        }
    }
}

async fn note(
    open: &mut LruCache<(String, String), Delivery>,
    known: &KnownTraces,
    news: &News,
    event: &DeliveredEvent,
) {
    let of = (news.conversation_id.clone(), event.message_id.clone());
    let delivery = open.get_or_insert_mut(of.clone(), || Delivery {
        from: news.at,
        events: Vec::new(),
    });
    if delivery.events.len() < MAX_EVENTS as usize {
        let name = event.event_type.as_str().to_owned();
        delivery.events.push((news.at, name));
    }
    if event.ends_turn
        && let Some(delivery) = open.pop(&of)
    {
        make_span(known, news, of.1, delivery).await;
    }
}

async fn make_span(known: &KnownTraces, news: &News, message_id: String, delivery: Delivery) {
    let turn = TraceKey::of_turn(&news.conversation_id, &message_id);
    let Some(trace) = known.of(&turn).await else {
        return;
    };
    let readers = i64::try_from(news.readers).unwrap_or(i64::MAX);
    let builder = SpanBuilder::from_name("deliver_turn")
        .with_kind(SpanKind::Internal)
        .with_start_time(delivery.from)
        .with_attributes([
            KeyValue::new("gen_ai.conversation.id", turn.conversation_id),
            KeyValue::new("everturn.message.id", message_id),
            KeyValue::new("everturn.readers", readers),
        ]);
    let mut span = global::tracer(SCOPE).build_with_context(builder, &trace.within());
    for (at, name) in delivery.events {
        span.add_event_with_timestamp(name, at, Vec::new());
    }
    span.end_with_timestamp(news.at);
}
