//! Runs a single turn and prints it live.

use everturn_client::GatewayClient;
use everturn_proto::words::EventType;
use everturn_terminal::{
    frames::{FollowedTurn, KnownFrame},
    show,
};
use futures::StreamExt;

/// Runs a turn in a new conversation and prints its events. Returns the conversation's id, and whether the turn
/// completed.
pub(crate) async fn run_and_print(
    client: &GatewayClient,
    message: &str,
) -> anyhow::Result<(String, bool)> {
    let conversation_id = client.create_conversation(None).await?;
    println!("\nturn in conversation {conversation_id}\n");
    let message_id = client.submit(&conversation_id, message, None).await?;
    let mut turn = FollowedTurn::of(&message_id);
    let mut frames = std::pin::pin!(client.follow(&conversation_id, 0));
    while let Some(frame) = frames.next().await {
        if let Some(line) = show::line(&frame) {
            println!("{line}");
        }
        if turn.ends_with(&frame) {
            let is_complete = frame.event_type() == EventType::Complete;
            return Ok((conversation_id, is_complete));
        }
    }
    Ok((conversation_id, false))
}
