//! JSON and text survive the way through the tables.

use everturn_proto::{
    Thread,
    words::{AgentExecutionStatus, Effect},
};
use everturn_store::{
    PageLimit, StepClaim, StepClaims, ToolClaim, ToolClaims, ToolEnd, TurnInputs,
};

use super::{
    Backend,
    fixture::{EVERYTHING, Turn, json, state, tool_end},
};

/// Returns texts that every table keeps, character for character.
fn texts() -> Vec<String> {
    let texts = [
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "123456789012345678901234567890",
        "0.1000000000000000055511151231257827",
        "-0.10",
        "1e400",
        "-0",
        "null",
        "[]",
        r#""\\u0000 is a backslash, \u0001 is not""#,
        "\"\u{fffd} \u{ffff} e\u{301} \u{202e} \u{1f468}\u{200d}\u{1f469}\"",
        r#"{"z":1,"a":{"b":[2.50,true]}}"#,
        r#""\ud83d\ude00 \u00e9 \/""#,
        r#"{"a":1,"a":2}"#,
    ];
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    texts.into_iter().map(str::to_owned).chain([deep]).collect()
}

pub async fn tool_input_and_result_are_kept<B: Backend>(backend: &B) {
    let store = backend.open().await;
    for (number, text) in texts().into_iter().enumerate() {
        let expected = &text;
        let turn = Turn::begun(store.clone(), &format!("c{number}"), "m").await;
        let mut call = turn.call(0, 0, Effect::Read);
        call.tool_input = Some(json(&text));
        turn.store
            .complete_step(&turn.step(0), state("", vec![call]))
            .await
            .unwrap();
        let StepClaim::Stored(stored) = store.claim_step(&turn.step(0), None).await.unwrap() else {
            panic!()
        };
        // JSON null and a missing input are the same input.
        assert_eq!(
            stored.tool_calls[0]
                .tool_input
                .clone()
                .unwrap_or_default()
                .as_str(),
            expected
        );
        turn.thought(0).await;
        let ToolClaim::Run { record, .. } =
            turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap()
        else {
            panic!()
        };
        assert_eq!(record.call.tool_input.unwrap().as_str(), expected);
        let ended = turn
            .store
            .finish_tool(&turn.tool(0, 0), tool_end(&text))
            .await
            .unwrap();
        assert_eq!(ended.end.unwrap().result.as_str(), expected);
        turn.observe(0, 0, "").await;

        let events = turn.events().await;
        let act = events[2].event_data.as_ref().unwrap().as_str();
        assert!(
            act.contains(&format!(r#""tool_input":{expected},"#)),
            "{act}"
        );
        let observe = events[3].event_data.as_ref().unwrap().as_str();
        assert!(
            observe.contains(&format!(r#""result":{expected},"#)),
            "{observe}"
        );
        let (id, thread) = (&turn.conversation, Thread::Conversation);
        let context = turn.store.context(id, &thread, PageLimit::rows(10), None);
        let context = context.await.unwrap().messages;
        assert_eq!(
            context[1].tool_calls[0]
                .tool_input
                .clone()
                .unwrap_or_default()
                .as_str(),
            expected
        );
        assert_eq!(context[1].tool_results[0].result.as_str(), expected);
    }
}

pub async fn every_character_survives(backend: &impl Backend) {
    // The text has no NUL, because PostgreSQL cannot hold one and the gateway refuses it.
    let all: String = ('\u{1}'..=char::MAX).collect();
    let turn = Turn::new(backend.open().await, "c", "m");
    turn.begin_as_run(&all).await.unwrap();
    turn.complete(0, &all, &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    assert!(turn.data("user_message").await["content"].as_str().unwrap() == all);
    assert!(
        turn.data("assistant_message").await["content"]
            .as_str()
            .unwrap()
            == all
    );
    let context = turn
        .store
        .context("c", &Thread::Conversation, EVERYTHING, None)
        .await
        .unwrap()
        .messages;
    assert!(context.len() == 2 && context.iter().all(|message| message.content == all));
}

pub async fn a_megabyte_survives(backend: &impl Backend) {
    let large = "x".repeat(1024 * 1024);
    let text = format!("\"{large}\"");
    let turn = Turn::new(backend.open().await, "c", "m");
    turn.begin_as_run(&large).await.unwrap();
    turn.asks(0, &large, &[Effect::Read]).await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    turn.store
        .finish_tool(&turn.tool(0, 0), tool_end(&text))
        .await
        .unwrap();
    turn.observe(0, 0, "").await;
    let context = turn
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages;
    assert!(context[1].content == large && context[1].tool_results[0].result.as_str() == text);
    assert!(turn.data("observe").await["result"] == large);
}

/// Many readers write numbers out. What tools give stays short all the same.
pub async fn no_number_makes_a_result_long(backend: &impl Backend) {
    let store = backend.open().await;
    for (number, text) in [
        "1e131071".to_owned(),
        "1e999999999999".to_owned(),
        format!("[{}0]", "1e-400,".repeat(2000)),
        format!(r#"{{"deep":[{}-1E+307]}}"#, "9.9e307,".repeat(2000)),
    ]
    .into_iter()
    .enumerate()
    {
        let turn = Turn::begun(store.clone(), &format!("c{number}"), "m").await;
        turn.asks(0, "", &[Effect::Read]).await;
        let key = turn.tool(0, 0);
        turn.store.claim_tool(&key, "a").await.unwrap();
        let end = ToolEnd::of_result(&key.execution_id, json(&text), false, 1);
        turn.store.finish_tool(&key, end).await.unwrap();
        turn.observe(0, 0, "").await;
        let stored = turn.data("observe").await["result"].to_string();
        assert!(
            stored.len() < 2 * text.len() + 1000,
            "{} of {}",
            stored.len(),
            text.len()
        );
        let context = turn.store.context(
            &turn.conversation,
            &Thread::Conversation,
            PageLimit::rows(10),
            None,
        );
        let context = context.await.unwrap().messages;
        let shown = context[1].tool_results[0].result.as_str();
        assert!(shown.len() < 2 * text.len() + 1000, "{}", shown.len());
    }
}
