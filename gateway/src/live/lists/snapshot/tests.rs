//! What readers are told of a list that has changed.

#![allow(clippy::unwrap_used)]

use chrono::{DateTime, Utc};
use everturn_proto::LogId;
use everturn_store::{Activity, Conversation};

use super::*;

/// A conversation that was active last at this second.
fn row(id: &str, second: i64) -> ListedConversation {
    let at = DateTime::<Utc>::from_timestamp(second, 0).unwrap();
    let conversation = Conversation {
        id: id.to_owned(),
        log_id: LogId::from("log"),
        tenant_id: "t".to_owned(),
        owner_id: None,
        agent: "a".to_owned(),
        title: None,
        model: None,
        message_count: 0,
        last_sequence: 0,
        created_at: at,
        active_at: at,
    };
    let activity = Activity::default();
    ListedConversation {
        conversation,
        activity,
    }
}

/// The list of these conversations. `has_more`: there are older ones.
fn list(rows: &[(&str, i64)], has_more: bool, earlier: Option<&ListSnapshot>) -> ListSnapshot {
    let conversations: Vec<_> = rows.iter().map(|(id, at)| row(id, *at)).collect();
    let next = conversations.last().map(|row| row.conversation.cursor());
    let next = next.filter(|_| has_more);
    let page = ListPage {
        conversations,
        next,
    };
    ListSnapshot::new(page, ListVersion::default(), earlier)
}

/// The frames in short: the name of each, and the ids in it.
fn short(frames: &str) -> Vec<String> {
    let frames = frames.split("\n\n").filter(|frame| !frame.is_empty());
    let short = frames.map(|frame| {
        let (event, data) = frame.split_once('\n').unwrap();
        let data: serde_json::Value =
            serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let name = event.strip_prefix("event: ").unwrap();
        assert_eq!(data["type"], name);
        let of_rows = data["conversations"].as_array().into_iter().flatten();
        let ids = of_rows.chain([&data["conversation"]]).map(|row| &row["id"]);
        let ids = ids.chain([&data["conversation_id"]]);
        let ids: Vec<_> = ids.filter_map(serde_json::Value::as_str).collect();
        format!("{name} {}", ids.join(" "))
    });
    short.collect()
}

#[test]
fn a_reader_gets_the_list_and_then_what_changes() {
    let first = list(&[("b", 2), ("a", 1)], false, None);
    assert_eq!(short(&first.frames_since(None)), ["list b a"]);
    let same = list(&[("b", 2), ("a", 1)], false, Some(&first));
    assert_eq!(same.frames_since(Some(&first)), "");
    let later = list(&[("c", 4), ("a", 3)], false, Some(&same));
    assert_eq!(
        short(&later.frames_since(Some(&first))),
        [
            "conversation_removed b",
            "conversation_changed a",
            "conversation_changed c"
        ]
    );
}

#[test]
fn a_change_that_moves_nothing_is_told() {
    let first = list(&[("b", 2), ("a", 1)], false, None);
    let mut asks = [row("b", 2), row("a", 1)];
    asks[1].activity.waiting_approvals = 1;
    let page = ListPage {
        conversations: asks.into(),
        next: None,
    };
    let frames =
        ListSnapshot::new(page, ListVersion::default(), Some(&first)).frames_since(Some(&first));
    assert_eq!(short(&frames), ["conversation_changed a"]);
    assert!(frames.contains(r#""state":"waiting_for_approval","waiting_approvals":1"#));
}

#[test]
fn what_only_leaves_the_newest_is_not_removed() {
    let first = list(&[("b", 2), ("a", 1)], false, None);
    let later = list(&[("c", 3), ("b", 2)], true, Some(&first));
    assert_eq!(
        short(&later.frames_since(Some(&first))),
        ["conversation_changed c"]
    );
    let removed = list(&[("c", 3), ("a", 1)], true, Some(&later));
    assert_eq!(
        short(&removed.frames_since(Some(&later))),
        ["conversation_removed b", "conversation_changed a"]
    );
}

#[test]
fn a_reader_that_may_have_missed_changes_gets_the_list_anew() {
    let first = list(&[("b", 2), ("a", 1)], true, None);
    let later = list(&[("d", 4), ("c", 3)], true, Some(&first));
    assert_eq!(short(&later.frames_since(Some(&first))), ["list d c"]);
    let all = list(&[("d", 4), ("c", 3)], false, Some(&first));
    assert_eq!(
        short(&all.frames_since(Some(&first))),
        [
            "conversation_removed b",
            "conversation_removed a",
            "conversation_changed c",
            "conversation_changed d"
        ]
    );
    let none = list(&[], false, None);
    assert_eq!(short(&first.frames_since(Some(&none))), ["list b a"]);
}
