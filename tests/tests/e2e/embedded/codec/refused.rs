//! Payloads of senders without the right key: a signal is dropped and counted, an answer and a start are refused, and the
//! conversation goes on.

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_codec::{Codec, KeyRing};
use everturn_proto::ids;
use everturn_tests::{
    events::{contents, types},
    stack::Stack,
    wait,
};
use serde_json::{Value, json};
use temporalio_common::protos::temporal::api::common::v1::Payload;

use super::{
    KEYS, TABLE, key,
    keys::{approved, asking, waiting},
};
use crate::embedded::{
    approvals::{APPROVED_TURN, pending},
    health::Probes,
};

/// Signals a message that is encrypted with the first key of the ring, for the tenant of the label.
async fn signal_sealed(stack: &Stack, conversation: &str, ring: &str, label: &str, content: &str) {
    let message = Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: json!({"content": content}).to_string().into_bytes(),
        ..Payload::default()
    };
    let codec = Codec::new(KeyRing::parse(ring).unwrap());
    let sealed = codec.seal(&message, Some(label)).unwrap();
    let metadata: Vec<_> = sealed
        .metadata
        .iter()
        .map(|(name, value)| format!("{name}={}", str::from_utf8(value).unwrap()))
        .collect();
    let (workflow_id, data) = (ids::workflow_id(conversation), STANDARD.encode(sealed.data));
    let signal = ["workflow", "signal", "--name", "submit"];
    let to = ["--workflow-id", &workflow_id];
    let with = ["--input", &data, "--input-base64"];
    let mut command = [&signal[..], &to, &with].concat();
    for field in &metadata {
        command.extend(["--input-meta", field]);
    }
    stack.temporal.succeed(&command).await;
}

/// Waits until the worker has refused so many payloads for the reason.
async fn refused(probes: &Probes, reason: &str, count: u32) {
    let line = format!("everturn_payloads_refused_total{{reason=\"{reason}\"}} {count}");
    wait::until(&line, || async {
        let metrics = probes.text().await?;
        metrics.lines().any(|found| found == line).then_some(())
    })
    .await;
}

/// Waits until the history has the markers of so many refused signals.
async fn marked(stack: &Stack, conversation: &str, count: usize) {
    let is_mark =
        |event: &&Value| event["markerRecordedEventAttributes"]["markerName"] == "core_patch";
    wait::until("the history has the markers", || async {
        let history = stack.history(conversation).await;
        (history.iter().filter(is_mark).count() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_refused_signal_changes_nothing_and_is_counted() {
    let stack = asking().await;
    stack.configure(&format!("{TABLE}require = true\n"));
    let (own, stranger) = (key("own"), key("stranger"));
    let _gateway = stack.gateway_with(&[(KEYS, &own)]).await;
    let probes = Probes::free();
    let worker = probes.spawn(&stack, &["worker"], &[(KEYS, &own)]);
    let conversation = waiting(&stack).await;
    signal_sealed(&stack, &conversation, &own, "beta", "of another tenant").await;
    refused(&probes, "foreign_tenant", 1).await;
    stack
        .logged("worker", "has the key of another tenant")
        .await;
    let in_clear = json!({"content": "in clear"});
    stack.signal_message(&conversation, &in_clear).await;
    refused(&probes, "in_clear", 1).await;
    stack.logged("worker", "--codec-endpoint").await;
    signal_sealed(&stack, &conversation, &stranger, "default", "of a stranger").await;
    refused(&probes, "no_key", 1).await;
    stack.logged("worker", "has no key `stranger`").await;
    marked(&stack, &conversation, 3).await;
    worker.kill().await;
    // The next worker could open the third signal, and its replay follows the history.
    let probes = Probes::free();
    let ring = format!("{own}\n{stranger}");
    let _worker = probes.spawn(&stack, &["worker"], &[(KEYS, &ring)]);
    approved(&stack, &conversation).await;
    let (status, _) = stack.send(&conversation, &json!({"content": "next"})).await;
    assert_eq!(status, 202);
    let call = pending(&stack, &conversation, 1).await.remove(0);
    assert!(call["execution_id"].is_string());
    let events = stack.events(&conversation).await;
    assert_eq!(contents(&events, "user_message"), ["do it", "next"]);
    let metrics = probes.text().await.unwrap();
    assert!(!metrics.contains("payloads_refused_total{"), "{metrics}");
}

#[tokio::test]
async fn an_answer_in_clear_is_refused_and_the_call_waits_on() {
    let stack = asking().await;
    stack.configure(&format!("{TABLE}require = true\n"));
    let ring = key("own");
    let _running = super::start(&stack, &ring).await;
    let conversation = waiting(&stack).await;
    let call = pending(&stack, &conversation, 1).await.remove(0);
    let answer = json!({
        "execution_id": call["execution_id"], "decision": "approve", "input_hash": call["input_hash"],
    });
    let (workflow_id, answer) = (ids::workflow_id(&conversation), answer.to_string());
    let update = [
        "workflow",
        "update",
        "execute",
        "--name",
        "resolve_approval",
    ];
    let to = ["--workflow-id", &workflow_id, "--input", &answer];
    let output = stack.temporal.cli(&[&update[..], &to].concat()).await;
    assert!(!output.status.success());
    approved(&stack, &conversation).await;
}

#[tokio::test]
async fn a_start_in_clear_fails_and_the_conversation_is_free() {
    let stack = asking().await;
    stack.configure(&format!("{TABLE}require = true\n"));
    let ring = key("own");
    let _running = super::start(&stack, &ring).await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let input = json!({"conversation_id": conversation, "message": {"content": "in clear"}});
    stack.start_by_hand(&conversation, &input).await;
    stack.workflow_status(&conversation, "FAILED").await;
    let (status, _) = stack
        .send(&conversation, &json!({"content": "do it"}))
        .await;
    assert_eq!(status, 202);
    approved(&stack, &conversation).await;
    let events = stack.events(&conversation).await;
    assert_eq!(types(&events), APPROVED_TURN);
    assert_eq!(contents(&events, "user_message"), ["do it"]);
}
