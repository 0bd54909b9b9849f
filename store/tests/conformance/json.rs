//! JSON and text survive the way through the tables to the letter.

use everturn_proto::words::{effect, execution_status};
use everturn_store::{StepClaim, ToolClaim, TurnStore};

use super::{
    Backend,
    fixture::{Turn, json, state, tool_end},
};

pub async fn tool_input_and_result_are_kept_to_the_letter(backend: &impl Backend) {
    let store = backend.open().await;
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let texts = [
        "9007199254740993",
        "123456789012345678901234567890",
        "1e400",
        "-0.10",
        "null",
        r#"{"z":1,"a":{"b":[2.50,true]}}"#,
        // Half of a pair: no Rust string holds it, JSON text does.
        r#""\ud800 and \u0000""#,
        &deep,
    ];
    for (number, text) in texts.into_iter().enumerate() {
        let turn = Turn::begun(store.clone(), &format!("c{number}"), "m").await;
        let mut call = turn.call(0, 0, effect::READ);
        call.tool_input = Some(json(text));
        turn.store.complete_step(&turn.step(0), state("", vec![call])).await.unwrap();
        let StepClaim::Stored(stored) = turn.store.claim_step(&turn.step(0)).await.unwrap() else { panic!() };
        // JSON null and no input are the same input.
        assert_eq!(stored.tool_calls[0].tool_input.clone().unwrap_or_default().as_str(), text);
        turn.thought(0).await;
        let ToolClaim::Run(record) = turn.store.claim_tool(&turn.tool(0, 0)).await.unwrap() else { panic!() };
        assert_eq!(record.call.tool_input.unwrap().as_str(), text);
        let ended = turn.store.finish_tool(&turn.tool(0, 0), tool_end(text)).await.unwrap();
        assert_eq!(ended.end.unwrap().result.as_str(), text);
        turn.observe(0, 0, "").await;

        let events = turn.events().await;
        let act = events[2].event_data.as_ref().unwrap().as_str();
        assert!(act.contains(&format!(r#""tool_input":{text},"#)), "{act}");
        let observe = events[3].event_data.as_ref().unwrap().as_str();
        assert!(observe.contains(&format!(r#""result":{text},"#)), "{observe}");
        let context = turn.store.context(&turn.conversation, 10).await.unwrap();
        assert_eq!(context[1].tool_calls[0].tool_input.clone().unwrap_or_default().as_str(), text);
        assert_eq!(context[1].tool_results[0].result.as_str(), text);
    }
}

pub async fn every_character_survives(backend: &impl Backend) {
    // Without NUL, which PostgreSQL does not hold and the gateway refuses.
    let all: String = ('\u{1}'..=char::MAX).collect();
    let turn = Turn::new(backend.open().await, "c", "m");
    turn.store.begin_turn(turn.begin(&all)).await.unwrap();
    turn.complete(0, &all, &[]).await;
    turn.end(0, execution_status::COMPLETED).await;
    assert!(turn.data("user_message").await["content"].as_str().unwrap() == all);
    assert!(turn.data("assistant_message").await["content"].as_str().unwrap() == all);
    let context = turn.store.context("c", 10).await.unwrap();
    assert!(context.len() == 2 && context.iter().all(|message| message.content == all));
}

pub async fn a_megabyte_survives(backend: &impl Backend) {
    let large = "x".repeat(1024 * 1024);
    let text = format!("\"{large}\"");
    let turn = Turn::new(backend.open().await, "c", "m");
    turn.store.begin_turn(turn.begin(&large)).await.unwrap();
    turn.asks(0, &large, &[effect::READ]).await;
    turn.store.claim_tool(&turn.tool(0, 0)).await.unwrap();
    turn.store.finish_tool(&turn.tool(0, 0), tool_end(&text)).await.unwrap();
    turn.observe(0, 0, "").await;
    let context = turn.store.context("c", 10).await.unwrap();
    assert!(context[1].content == large && context[1].tool_results[0].result.as_str() == text);
    assert!(turn.data("observe").await["result"] == large);
}
