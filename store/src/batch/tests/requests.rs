//! Batches of user messages, and the keys and ids of batches.

use everturn_proto::{turn::SaveRequest, words::CheckpointType};

use super::*;

#[test]
fn a_message_is_taken_once_and_its_row_wins() {
    let taken = |message| {
        build(
            &steer("m2"),
            &Snapshot {
                message,
                ..Snapshot::default()
            },
        )
        .unwrap()
    };
    let inserted = taken(None);
    assert_eq!(inserted.events[0].message_id, "m2");
    assert_eq!(
        inserted.taken.unwrap().new_content.as_deref(),
        Some("and this")
    );
    let queued = taken(Some(StoredMessage {
        is_retry: false,
        content: "stored".into(),
        attachments: Vec::new(),
        model: None,
        is_waiting: true,
    }));
    assert_eq!(
        (field(&queued, 0, "content"), queued.new_messages),
        ("stored".into(), 1)
    );
    assert_eq!(
        taken(Some(StoredMessage {
            is_retry: false,
            content: "stored".into(),
            attachments: Vec::new(),
            model: None,
            is_waiting: false
        }))
        .events,
        []
    );
}

#[test]
fn keys_name_roles() {
    let keys = [
        (thought(3), "m/run_60d47de58b20dc6c/3/thought"),
        (
            observe(3, "exec_a", None),
            "m/run_60d47de58b20dc6c/3/observe/exec_a",
        ),
        (steer("m2"), "m2/user_message"),
        (end(3, failed()), "m/run_60d47de58b20dc6c/end"),
        (end(4, completed()), "m/run_60d47de58b20dc6c/end"),
    ];
    for (request, expected) in keys {
        assert_eq!(key(&request), expected);
    }
    assert!(BatchRequest::try_from(&SaveRequest::default()).is_err());
}

#[test]
fn stored_ids_never_change() {
    // A change here would store the batches of running turns twice.
    assert_eq!(
        event_id("c", "m/user_message", 0),
        "3aa4e6ac-0b60-59d9-ae15-e49b0d51478d"
    );
    assert_eq!(
        checkpoint_id("run_1", 0, &CheckpointType::LlmComplete, None),
        "81e0e567-0a92-5fda-ad07-72b933e410f1"
    );
}
